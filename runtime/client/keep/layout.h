/* How kept memory lies in a rank's part of the segment of kept memory, and which version a process that begins finds
 * there. Pure.
 *
 *   root      one page: which version each side holds
 *   side 0    one page that names the ranges, then their bytes, one behind the other
 *   side 1    the same
 *
 * A commit writes into the side that does not hold the last version: no word of it first, then the bytes, then the word
 * that names the version, each when all copies have what was before it; then all live ranks meet. So a version's word
 * says that its bytes are whole, and the other side stays whole until all have met.
 *
 * That meeting is a collective of all live ranks, and has a number. A process that takes a rank over knows how many of
 * them count (keel_resume): it is the number n of those that the others have completed, or one less. A version whose
 * meeting is at most n was committed by all. One whose meeting is n + 1 the others may have committed on the
 * predecessor's entry, or wait in: the process enters it, too, and it is committed. One with a later meeting cannot be
 * gone on from, as the collectives before it are still to come here; then the other side's meeting is at most n + 1, as
 * the predecessor had left it. */
#ifndef KEEL_CLIENT_KEEP_LAYOUT_H
#define KEEL_CLIENT_KEEP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEEP_PAGE = 4096, KEEP_RANGES = 63, KEEP_NAME = 48, KEEP_ALIGN = 64, KEEP_FOLDER = 1024, KEEP_SUM = 32 };

struct keep_side {
    uint64_t version; /* 0: not whole. Written last */
    uint64_t at;      /* number of the collective in which all commit it */
    uint64_t saves;   /* 1: files are written in the SAVE_MEETINGS collectives behind it */
    uint64_t pad;
};

/* Of the last version that was saved: what the rank has written. */
struct keep_file {
    uint64_t bytes;
    uint8_t sum[KEEP_SUM];
};

struct keep_root {
    struct keep_side side[2];
    uint64_t
        loaded; /* this part has what `keelrun --restore` gave: number of the last meeting about that; 0: not yet */
    struct keep_file file;
    uint64_t
        said[2];    /* in each meeting of the last save: its number, and below it what (save.c). Before it is entered */
    uint64_t about; /* where an error is said in the second one: the rank that it is of */
    char folder[KEEP_FOLDER]; /* where it is saved to */
};
_Static_assert(sizeof(struct keep_root) <= KEEP_PAGE, "a page");

struct keep_entry {
    char name[KEEP_NAME]; /* with a zero */
    uint64_t bytes, at;   /* from the begin of the side's bytes */
};

struct keep_table {
    uint64_t ranges, used; /* bytes of the side that are used */
    uint64_t pad[6];
    struct keep_entry entry[KEEP_RANGES];
};
_Static_assert(sizeof(struct keep_table) == KEEP_PAGE, "a page");

/* Bytes of a part with room for so many kept bytes; 0: that cannot be. */
size_t keep_part_bytes(size_t room);
/* Where side `side`'s table, and its bytes, begin in a part. */
size_t keep_table_at(size_t room, int side);
size_t keep_bytes_at(size_t room, int side);
/* Bytes that a range takes. */
size_t keep_rounded(size_t bytes);
/* The side of the version that a process goes on from where `count` collectives count: -1, there is none. */
int keep_choose(const struct keep_root *root, uint64_t count);
/* The table can be what a commit has written. */
bool keep_table_is_sound(const struct keep_table *t, size_t room);
/* The entry of that name, or NULL. */
const struct keep_entry *keep_find(const struct keep_table *t, const char *name);
#endif
