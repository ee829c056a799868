/* Saves, between save.c, load.c and the others. */
#ifndef KEEL_CLIENT_KEEP_SAVE_H
#define KEEL_CLIENT_KEEP_SAVE_H

#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/save/save.h"

struct client;

enum {
    SAVE_MEETINGS = 2, /* collectives behind that of the commit */
    LOAD_MEETINGS = 3, /* collectives in which a job begins with what was saved */
};

/* The meetings that are still to come of the save of the version that all have committed (keep->saved_at); KEEL_OK also
 * where they are over. */
keel_status keep_save_files(struct client *c, uint64_t version, const char *folder);
/* The program's segments of all ranks, in the order of their allocation; how many. out may be NULL. */
size_t keep_segments(const struct client *c, struct keel_segment **out);
/* The manifest, or the folder, that the job was told to begin with, or NULL. */
const char *keep_begins_with(void);
/* load.c: the contents of what was saved, into this rank's parts and a side, with its version, and those of ranks that
 * are dead for good; all meet. */
keel_status keep_load_files(struct client *c, const char *where);
#endif
