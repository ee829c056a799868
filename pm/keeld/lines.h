/* Cuts a stream of bytes into whole lines, so that lines of different ranks never mix; no byte is added or lost.
 * Pure. */
#ifndef KEEL_PM_KEELD_LINES_H
#define KEEL_PM_KEELD_LINES_H

#include "pm/wire/bytes.h"

enum { LINES_MAX = 64 * 1024 }; /* a longer line is passed on in pieces of this size */

struct lines {
    struct bytes held; /* the line that has begun and not ended */
};

/* emit gets one or more whole lines (the last byte is a newline), or a piece of a line that is too long. */
void lines_feed(struct lines *l, const void *data, size_t len, void (*emit)(void *user, const uint8_t *, size_t),
                void *user);
/* Emit the beginning of a line that is held. */
void lines_flush(struct lines *l, void (*emit)(void *user, const uint8_t *, size_t), void *user);
/* End of the stream: emit what is held. Frees. */
void lines_finish(struct lines *l, void (*emit)(void *user, const uint8_t *, size_t), void *user);
#endif
