/* Pure: the objects of a static library of x86-64 as graft_find needs them: their code, which of its bytes the linker
 * writes, and what these bytes name.
 *
 * A linker takes an object of a library whole, so its code stands in the program in one piece, as it stands in the
 * library but for the bytes that its relocations name. Each of these bytes gives an address away: of a section of an
 * object, or of a name that the library has not. Such a thing is an anchor here; it has one address in a program,
 * whoever refers to it. */
#ifndef ARMCI_GRAFT_ARCHIVE_H
#define ARMCI_GRAFT_ARCHIVE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graft_anchor {
    const char *name; /* of a thing that is not in the library; NULL: a section */
    int object;       /* whose section it is; -1: none's */
    unsigned section;
    uint64_t address; /* in the program; 0: nobody has told yet */
};

/* Four bytes of the code that hold the distance from their own place to anchor + offset. */
struct graft_reference {
    uint64_t at;
    int64_t offset;
    int anchor; /* -1: of no use, as what it names may have several places */
};

struct graft_function {
    const char *name;
    uint64_t at;
    uint64_t room; /* bytes from here to the next function that has a name for others, or to the end of the code */
    bool called;   /* as graft_find_calls has found */
};

struct graft_object {
    char *image; /* of the object's file, the object's own */
    size_t image_len;
    char name[32];
    const uint8_t *code;
    uint8_t *literal; /* for each byte of the code 0xff, or 0 where the linker writes */
    uint64_t len;
    unsigned section; /* the code's */
    struct graft_function *function;
    size_t functions;
    struct graft_reference *reference;
    size_t references;
    uint64_t address; /* of the code in the program; 0: the program does not have it */
};

struct graft_archive {
    struct graft_object *object;
    size_t count;
    struct graft_anchor *anchor;
    size_t anchors;
};

/* Reads a library of len bytes, which may be freed afterwards. false: it cannot be understood, *why says it (a
 * constant). */
bool graft_archive_read(struct graft_archive *a, const void *bytes, size_t len, const char **why);
void graft_archive_fini(struct graft_archive *a);
#endif
