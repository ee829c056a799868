/* A wrong bit on purpose in what the next operation sends, and not in the program's memory (client/inject). */
#ifndef KEEL_CLIENT_OP_FLYING_H
#define KEEL_CLIENT_OP_FLYING_H

#include <stdbool.h>
#include <stdint.h>

/* Who sends so many bytes next takes it. len 0: nobody is to. */
struct flying {
    uint64_t len, bit;
    bool shaped; /* they are pieces, and the operation that has the byte takes it (shaped_ops.c) */
};
#endif
