/* Between archive.c, which takes an archive apart, and archive_names.c, which reads what its objects name. */
#ifndef KEEL_ARMCI_GRAFT_ARCHIVE_INT_H
#define KEEL_ARMCI_GRAFT_ARCHIVE_INT_H

#include "armci/graft/archive.h"

/* What one object's file holds, and where the objects of all names that others may use are. */
struct archive_view {
    const Elf64_Shdr *sections;
    size_t section_count;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    size_t names_len;
};

struct archive_name {
    const char *name;
    int object; /* -2: several have it */
    unsigned section;
    uint64_t value;
};

struct archive_reading {
    struct graft_archive *a;
    struct archive_view *view;
    struct archive_name *global; /* a hash table */
    size_t slots;
    const char *why;
};

/* archive_names.c. Of all objects, before the others; false: out of memory. */
bool archive_gather_names(struct archive_reading *r);
/* What the linker may write in an object's code, and what its code refers to. NULL, or why not. */
const char *archive_relocate(struct archive_reading *r, size_t object);
const char *archive_list_functions(struct graft_object *o, const struct archive_view *v);
#endif
