/* A wrong bit on purpose in what the next operation sends, and not in the program's memory (client/inject). */
#ifndef KEEL_CLIENT_OP_FLYING_H
#define KEEL_CLIENT_OP_FLYING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Who sends so many bytes next takes it. len 0: nobody is to. */
struct flying {
    uint64_t len, bit;
    bool shaped; /* they are pieces, and the operation that has the byte takes it (shaped_ops.c) */
};

/* A copy of these bytes with the wrong bit, to be freed; NULL: it is not in them, or there is no memory for it. */
static inline void *flying_copy(struct flying *f, const void *data, size_t len)
{
    uint8_t *copy = f->len && f->len == len ? malloc(len) : NULL;
    if (!copy)
        return NULL;
    memcpy(copy, data, len);
    copy[f->bit / 8] ^= (uint8_t)(1U << f->bit % 8);
    f->len = 0;
    return copy;
}
#endif
