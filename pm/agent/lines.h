/* Cuts a stream of bytes into whole lines, so that lines of different ranks never mix. Pure. */
#ifndef KEEL_PM_LINES_H
#define KEEL_PM_LINES_H

#include "pm/wire/bytes.h"

enum { LINES_MAX = 64 * 1024 }; /* a longer line is passed on in pieces of this size */

struct lines {
    struct bytes held; /* the line that has begun and not ended */
};

/* emit gets one or more whole lines (the last byte is a newline, or the piece of a line that is too long). */
void lines_feed(struct lines *l, const void *data, size_t len, void (*emit)(void *user, const uint8_t *, size_t),
                void *user);
/* End of the stream: emit what is held, with a newline added. Frees. */
void lines_end(struct lines *l, void (*emit)(void *user, const uint8_t *, size_t), void *user);
#endif
