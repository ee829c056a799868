/* Who is who in a job whose program runs several times side by side. Each run is a *set*, one
 * process for each rank of the program; all below the public calls counts the processes of all sets as *native ranks*.
 * Pure. */
#ifndef KEEL_BASE_REPLICA_H
#define KEEL_BASE_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPLICAS_MAX = 3, REPLICA_NAME = 48 };

/* When replicas of a rank compare what they did; and what comes of two that differ where nobody can say which is
 * right. */
enum replica_check { CHECK_NONE, CHECK_FENCE, CHECK_HASH, CHECK_ALL };
enum replica_mismatch { MISMATCH_STOP, MISMATCH_REPORT, MISMATCH_KEEP };
/* What a program sees of the world, and the files that it writes: one for all sets, or each set has all of its own.
 * Copies of a segment in a set: one, or all. */
enum replica_share { SHARE_ONE, SHARE_ALL };
/* What becomes of a set that loses a process: it is retired; or it goes on, as replicas of the dead one's rank in other
 * sets do its part (docs/adr/0197). */
enum replica_death { DEATH_RETIRES, DEATH_PARTNER };

struct replica {
    int rank; /* that the program sees */
    int set;
};

struct replica_map {
    int ranks;    /* of the program, in each set */
    int replicas; /* sets; 0: the program runs once, a native rank is a rank, and the arrays are NULL */
    int *native;  /* [replicas * ranks] the native rank of rank q of set s is native[s * ranks + q] */
    int *place;   /* [replicas * ranks] where each native rank stands in that array */
};

static inline bool replica_map_is_used(const struct replica_map *m)
{
    return m->replicas > 0;
}
static inline int replica_map_natives(const struct replica_map *m)
{
    return m->ranks * m->replicas;
}

/* Set after set, in the order of ranks. What init makes, fini frees; false: no memory. */
bool replica_map_init(struct replica_map *m, int ranks, int replicas);
/* native [ranks * replicas] as in the struct stays the caller's. False: a native rank is missing or there twice, or no
 * memory; nothing is to be freed then. */
bool replica_map_init_from(struct replica_map *m, int ranks, int replicas, const int *native);
void replica_map_fini(struct replica_map *m);

/* Of a job without replicas: that rank, of set 0. */
static inline struct replica replica_of(const struct replica_map *m, int native)
{
    if (!replica_map_is_used(m))
        return (struct replica){native, 0};
    return (struct replica){m->place[native] % m->ranks, m->place[native] / m->ranks};
}
static inline int replica_native(const struct replica_map *m, int rank, int set)
{
    return replica_map_is_used(m) ? m->native[set * m->ranks + rank] : rank;
}

/* Why a set ends before the others, if it does (runtime/view/sets.c). */
struct replica_loss {
    bool retired;
    int native; /* who was lost first, */
    int node;   /* where, */
    int signal; /* by what: killed by it (base/signals.h), */
    int code;   /* or ended by itself with that; both 0: its node died */
    uint64_t epoch;
    uint32_t coming; /* it has begun anew (runtime/view/renew.c): the incarnation of its processes; 0: it has not */
};

/* Is a process of that incarnation to end with its set? */
static inline bool replica_is_over(const struct replica_loss *loss, uint32_t incarnation)
{
    return loss->retired && (!loss->coming || loss->coming != incarnation);
}

/* May the program run so? group [natives]: the nodes of the native ranks, or the racks of these. No two replicas of a
 * rank are in one group. If two are: *rank is the first such rank. */
bool replica_map_is_apart(const struct replica_map *m, const int *group, int *rank);
/* Two ranks share a node in one set if they do in each: the sets are alike, so that nothing that a program asks of
 * its nodes has two answers. If not: rank[0] and rank[1] share one in set `set` and not in set 0, or the other way
 * round. */
bool replica_map_is_even(const struct replica_map *m, const int *node, int rank[2], int *set);

/* number[ranks]: the node of each rank as the program counts nodes, in the order in which the ranks of the set come to
 * them. In sets that are alike the numbers are the same. node [natives]. */
void replica_map_number(const struct replica_map *m, int set, const int *node, int *number);

/* As people are told of it: "rank 3 of set 1", or, in a job without replicas, "rank 3". Returns out. */
const char *replica_name(const struct replica_map *m, int native, char out[REPLICA_NAME]);
/* "set 1 has lost rank 3 (node 5 died)". Returns out. */
const char *replica_loss_said(const struct replica_map *m, int set, const struct replica_loss *loss, char *out,
                              size_t size);
#endif
