/* Pure: where a program has the objects of a library that it was linked with, all of them or a line that says what
 * stands against it. Found is what has every byte of the object's code at one place only, and refers to the same
 * things as all other objects do. */
#ifndef ARMCI_GRAFT_FIND_H
#define ARMCI_GRAFT_FIND_H

#include "armci/graft/archive.h"

/* The program's code: len bytes that it has at this address. */
struct graft_code {
    const uint8_t *bytes;
    size_t len;
    uint64_t address;
};

enum { GRAFT_STEP = 16 }; /* objects begin at multiples of it, and most functions */

/* Sets the address of each object that the program has. false: why holds the reason, of less than why_len bytes. The
 * program must have the function needed; an object that another one refers to must be there; and of an object that is
 * not found nothing may be there that could be a part of it. (An object of jumps only has no parts that say anything:
 * it is there as a whole, or it is the program's own.) */
bool graft_find(struct graft_archive *a, const struct graft_code *code, const char *needed, char *why, size_t why_len);
/* Does any of these bytes of the program belong to an object that was found? */
bool graft_overlaps(const struct graft_archive *a, uint64_t address, uint64_t len);
/* How many bytes from the begin of an object's function may be overwritten: its own, and what the linker fills up
 * behind the object. */
uint64_t graft_room(const struct graft_code *code, const struct graft_object *o, const struct graft_function *f);
/* Sets called of each function of an object that was found, where the program calls it from outside the library's code.
 * By instructions that name it; a call by a pointer is not seen. One pass over the code, which has 50 MB in NWChem. */
void graft_find_calls(struct graft_archive *a, const struct graft_code *code);
#endif
