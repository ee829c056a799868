#include "pm/keeld/lines.h"

#include <string.h>

void lines_feed(struct lines *l, const void *data, size_t len, void (*emit)(void *user, const uint8_t *, size_t),
                void *user)
{
    const uint8_t *p = data;
    const uint8_t *newline = memrchr(p, '\n', len);
    if (newline) {
        size_t whole = (size_t)(newline - p) + 1;
        if (l->held.len) {
            bytes_append(&l->held, p, whole);
            emit(user, l->held.data, l->held.len);
            l->held.len = 0;
        } else {
            emit(user, p, whole);
        }
        p += whole;
        len -= whole;
    }
    bytes_append(&l->held, p, len);
    while (l->held.len >= LINES_MAX) {
        emit(user, l->held.data, LINES_MAX);
        bytes_drop(&l->held, LINES_MAX);
    }
}

void lines_flush(struct lines *l, void (*emit)(void *user, const uint8_t *, size_t), void *user)
{
    if (l->held.len)
        emit(user, l->held.data, l->held.len);
    l->held.len = 0;
}

void lines_finish(struct lines *l, void (*emit)(void *user, const uint8_t *, size_t), void *user)
{
    lines_flush(l, emit, user);
    bytes_free(&l->held);
}
