/* The tree of the wave under way: who is where in it. */
#ifndef KEEL_DETECT_TREE_H
#define KEEL_DETECT_TREE_H

#include "detect/wave.h"

/* Positions count the members of the tree in this member's part, itself being 0. */
bool tree_has(const struct member *m, int id);
int tree_pos(const struct member *m, int id);
int tree_id(const struct member *m, int pos);
int tree_levels(const struct wave *r);             /* below this member, at least 1 */
void tree_mark(struct member *m, int id, int end); /* root: all members from id up to end have answered */
void tree_split(struct member *m);                 /* makes the pieces */
bool tree_left_add(struct wave *r, int id);        /* this and the next two: false if there is no memory */
/* From `left`, in any order. */
bool tree_make_out(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch);
bool tree_leave_out(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch); /* as root */
/* Of `left`, as many as a message can name: of those in a piece, or of all if there is none. Returns their number. */
int tree_named(const struct wave *r, const struct piece *piece, const int **first);
#endif
