/* Descriptors that a process keeps back for when it can have no more. Who cannot accept or make a connection gives all
 * of them up, and tries again: a node whose descriptors are used up still says so, and takes the connections that a
 * recovery needs. What may be refused instead, as others can do it (a process, a copy), asks first and leaves them.
 * Of the whole process; any thread. A process that has never held any has nothing to give. */
#ifndef KEEL_BASE_RESERVE_H
#define KEEL_BASE_RESERVE_H

#include <stdbool.h>

enum { RESERVE_MAX = 256 };

/* Hold n, at most RESERVE_MAX; those that cannot be had are not held. Once, and from then on. */
void reserve_hold(int n);
/* A call failed with this errno. True: it was for want of descriptors, and those held back have been given up, which a
 * line says: the call may be made again. */
bool reserve_give(int error);
/* False: they are given up, and cannot be had again yet. What may be refused is to be refused, as with EMFILE. */
bool reserve_is_whole(void);
#endif
