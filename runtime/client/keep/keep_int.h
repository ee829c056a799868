/* Between the files of kept memory. */
#ifndef KEEL_CLIENT_KEEP_KEEP_INT_H
#define KEEL_CLIENT_KEEP_KEEP_INT_H

#include "runtime/client/client.h"
#include "runtime/client/keep/keep.h"
#include "runtime/client/keep/layout.h"

enum { KEEP_BLOCK = 64 * 1024 };
/* Beside a version, what a collective is for: others' calls do not fit. */
#define KEEP_CALL 0x6b65657000000000u

/* A side as this process has left it. */
struct keep_own {
    /* All of its bytes are from puts of this process that are complete: so they are what all copies have, and what
     * nobody else changes. */
    bool mine;
    struct keep_table table; /* if it is mine */
};

struct keep {
    keel_segment *segment; /* NULL: no room yet */
    size_t room;
    struct keep_table now; /* what is registered */
    void *address[KEEP_RANGES];
    bool restored;    /* keel_keep_restore has been here, or there was nothing to go back to */
    int side;         /* of the last version that was committed, -1: none */
    uint64_t version; /* the same one, 0: none */
    /* a meeting that this process is on its way to, or in: it is gone on with by the same call */
    uint64_t entering;       /* version, 0: none */
    uint64_t meeting;        /* number of that collective */
    uint64_t saving;         /* version that is committed and being saved, 0: none */
    uint64_t saved_at;       /* number of the collective that has committed it */
    keel_status save_status; /* of its first meeting */
    int about;               /* the rank that what this process says in its second meeting is of */
    uint64_t loading;        /* number of the meeting of a load that this process has prepared, 0: none */
    keel_status load_status; /* what it says in it */
    bool load_filled;        /* ... and whether nothing is left to be filled for the dead; then what all have said */
    struct keep_own own[2];
};

/* All copies have the bytes when it returns. */
keel_status keep_put(struct client *c, size_t at, const void *src, size_t len);
/* What no death takes back. */
keel_status keep_root_of(struct client *c, int rank, struct keep_root *root);
/* commit.c: all live ranks meet for the version; again after an error, too. folder: that of a save, else empty. */
keel_status keep_meet(struct client *c, uint64_t version, const char *folder);
/* keep_commit, of a version that is then saved to the folder; empty: it is not. */
keel_status keep_commit_in(struct client *c, uint64_t version, const char *folder);
/* commit.c: makes the version in the side that does not have the last one; and it does not count. */
keel_status keep_write_version(struct client *c, uint64_t version, uint64_t meeting, const char *folder);
void keep_take_back(struct client *c, uint64_t meeting);
/* restore.c: the memory that is registered gets what the side has. */
keel_status keep_load_side(struct client *c, const char *call, int side, uint64_t version);
/* restore.c: the table of a side, which is one. call: the name of the public call, for lines. */
keel_status keep_table_of(struct client *c, const char *call, int rank, int side, struct keep_table *t);
/* No rank below this one lives, as far as this process knows. */
bool keep_is_lowest(const struct client *c);
/* The rank takes part in nothing any more, and has not died: it has called keel_finalize, or its program has ended. */
bool keep_has_left(const struct client *c, int rank);
/* What all live ranks say of something, the worst, with a line that names the rank that it is of. about: which one
 * `mine` is of, of which this rank has said so in a line. *any: one of them has said done. */
keel_status keep_agree(struct client *c, const char *call, uint64_t what, keel_status mine, int about, bool done,
                       bool *any);
#endif
