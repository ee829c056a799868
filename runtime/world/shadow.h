/* Files that a program with replicas writes (docs/adr/0187): set 0 writes them where they are, and what was there
 * before is kept beside them until the job ends, so that the other sets, which may be behind, still find it. Those
 * write to files of their own, beside them, too. All these have the names that are made here. Pure. */
#ifndef KEEL_WORLD_SHADOW_H
#define KEEL_WORLD_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHADOW_PATH = 4096 };
enum shadow_kind {
    SHADOW_BEFORE, /* what was there before the job wrote it */
    SHADOW_NONE,   /* there was nothing */
    SHADOW_OWN,    /* of set 1, 2: its file */
    SHADOW_GONE,   /* of set 1, 2: it has removed it */
    SHADOW_MAKING  /* being made */
};

/* The file of that kind beside path. False: the name is too long, or such a file itself, or not a file at all
 * ("a/"). */
bool shadow_name(enum shadow_kind kind, uint64_t job, int set, int rank, const char *path, char out[SHADOW_PATH]);
/* Where files are none that a program leaves behind. */
bool shadow_is_system(const char *path);
#endif
