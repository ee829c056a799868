/* What the search of worst_zero.c works on: the tables made before it, and the state of its descent. */
#ifndef KEEL_SIM_PLACE_WORST_ZERO_STATE_H
#define KEEL_SIM_PLACE_WORST_ZERO_STATE_H
#include <string.h>

#include "sim/place/worst_zero.h"

enum { LANE = 16, MAX_ROUTE = 1024, MAX_TIES = 64, MAX_REACH = 512 };
typedef uint8_t lane __attribute__((vector_size(LANE)));

/* A spare as seen from a slot. */
struct near {
    int32_t dist, spare;
    int8_t side;
};

struct zero {
    const struct setup *setup;
    const struct grid *grid;
    const struct pattern *pattern;
    const int32_t *home; /* [slots] */
    int32_t slots, spares, failures;
    int r;               /* sides with spares */
    size_t lanes, links; /* per vector over links */
    lane *bring;         /* [slots][spares][lanes] messages of the slot there, see bring_make */
    lane *change;        /* the same, less those it had at home (mod 256) */
    lane *exact;         /* the messages of the slot there when its peers are at home, less those it had (mod 256) */
    lane *in, *out;      /* [slots][spares][lanes] the route from the spare to the slot's home, and back */
    lane *across;        /* [spares][spares][lanes] the route from one spare to another */
    lane *count;         /* [lanes] scratch of really */
    lane *bound;         /* [failures + 1][lanes] */
    lane *need;          /* [failures + 1][lanes] what a link must carry after one failure more, for open lanes */
    lane *alone;         /* [slots][lanes] the most the slot can bring on any spare in reach */
    lane *nearer;        /* [failures][lanes], [failures][lanes], [spares][lanes]: scratch of close_lanes */
    lane *top, *most;
    bool *reached;  /* [spares] */
    uint32_t *open; /* [failures + 1][lanes] the lanes of the map in which a link may become the worst: opens of them */
    size_t opens[WORST_MAX + 1];
    struct near *near;               /* [slots][spares] by distance, then node */
    int32_t *spare_node;             /* [spares] */
    int8_t *spare_side;              /* [spares] */
    int32_t *spare_of;               /* [slots] index of the spare it is on, -1 at home */
    bool *taken;                     /* [spares] */
    int8_t *side;                    /* [ndims][nodes] as in struct place */
    int8_t (*mirror)[GRID_MAX_DIMS]; /* [slots] +1 upper half, -1 lower half, 0 middle or not to be turned round */
    int balance[WORST_MAX + 1][GRID_MAX_DIMS];
    int32_t path[WORST_MAX], path_spare[WORST_MAX];
    int32_t *home_load, *load; /* [links] */
    uint64_t hash[WORST_MAX + 1][2];
    struct search *search; /* maps met and worst cases known */
    uint32_t task;
    int64_t maps, cannot;
    const atomic_bool *stop;
};

/* How many collisions a sequence of so many failures must beat to be taken. */
static inline int32_t to_beat(const struct zero *z, int32_t failures)
{
    return worst_best_need(&z->search->best, failures, z->task) - 1;
}

static inline bool lane_any(lane a)
{
    uint64_t half[LANE / 8];
    memcpy(half, &a, sizeof half);
    return half[0] | half[1];
}

static inline lane lane_max(lane a, lane b)
{
    lane more = (lane)(a > b);
    return (a & more) | (b & ~more);
}

static inline lane *pair(const struct zero *z, lane *table, int32_t slot, int32_t spare)
{
    return table + ((size_t)slot * (size_t)z->spares + (size_t)spare) * z->lanes;
}

static inline int32_t route(const struct zero *z, int32_t from, int32_t to, int32_t *links)
{
    return grid_route(z->grid, NULL, from, to, links, MAX_ROUTE);
}

/* Everything but what depends on the number of failures. returns false when out of memory. */
bool zero_open(struct zero *z, struct search *s);
void zero_close(struct zero *z);
/* What a thread changes: made for z, which is a copy of another. */
bool zero_open_branch(struct zero *z);
void zero_close_branch(struct zero *z);
/* What each slot brings to each link from each spare that z->failures failures can send it to. returns false when out
 * of memory. */
bool bring_make(struct zero *z);
/* Adds delta on each link that the slot's messages use while it and its peers are at home; only those whose peer is
 * substituted when gone is set. */
void home_messages(const struct zero *z, int32_t slot, bool gone, int delta, uint8_t *sum);
#endif
