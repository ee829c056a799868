/* Jumps over the begin of functions of the running program, whose code becomes writable for that time. */
#ifndef ARMCI_GRAFT_PATCH_H
#define ARMCI_GRAFT_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRAFT_JUMP_LEN = 5 }; /* bytes of a function that are overwritten */

struct graft_jump {
    uint64_t from;        /* a function of the program */
    const void *to;       /* what runs in its place, with its arguments, */
    const char *argument; /* or, if this is set, with this as the only one; it stays the caller's, for good */
};

/* All of them; false (errno): the system does not allow it, and the functions can be called no more. Nobody may be in
 * them, as before main. */
bool graft_patch(const struct graft_jump *jump, size_t jumps);
#endif
