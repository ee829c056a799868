/* How ranks of a set pass on to each other what each has to say, by puts and signals alone: what collectives are made
 * of where partners do the part of the dead (docs/adr/0197). Pure.
 *
 * Each rank has a *block*, and afterwards the blocks of all. In round k a rank puts the blocks that it has, its own and
 * those of up to 2^k - 1 ranks before it, to the rank 2^k behind it, and adds 1 to a word there; then it waits for its
 * own word of that round. So each word has one rank that adds to it, and says how many collectives that one has come
 * to. Whoever comes out of a collective knows that all have come to it.
 *
 *   a place is used again two collectives later    who puts there then has come out of the one between: all have come
 *                                                  to that one, and so have read what was there
 *   one meeting comes before a collective          its puts and signals follow from what was compared there, and from
 *                                                  each other's: a partner that does them again does the same
 *   the order of blocks is the ranks'              sums are the same in each set
 *
 *  threads   any.   blocks   never. */
#ifndef KEEL_CLIENT_REPLICA_PASSING_H
#define KEEL_CLIENT_REPLICA_PASSING_H

#include <stddef.h>
#include <stdint.h>

struct passing {
    int rank, size; /* of the set */
    size_t room;    /* bytes of a block, a multiple of 8 */
};

struct passing_round {
    int to, from; /* ranks */
    int blocks;   /* that go: the own one, and those of so many less one ranks before it, by passing_origin */
    size_t word;  /* the place of the word to which `from` adds, and this rank adds there at `to` */
};

/* Rounds of a collective; 0 where a rank is alone. */
int passing_rounds(int size);
struct passing_round passing_round(const struct passing *p, int round);
/* Whose block the i-th is that the rank has. */
static inline int passing_origin(const struct passing *p, int i)
{
    return (p->rank + p->size - i) % p->size;
}
/* Where that one's block lies in each part, in the collective of that number, from 1. */
size_t passing_place(const struct passing *p, uint64_t number, int origin);
/* Bytes of a part. */
size_t passing_bytes(const struct passing *p);
#endif
