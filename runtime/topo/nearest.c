/* The nearest free node, by looking at all of them: several at a time, in a block's worth of distances on the stack,
 * and once more at a block that has one as near as any before. */
#include "runtime/topo/place.h"

enum { BLOCK = 128 };
typedef int32_t lane __attribute__((vector_size(PLACE_ALIGN)));

static inline lane lane_min(lane a, lane b)
{
    lane less = a < b;
    return (a & less) | (b & ~less);
}

/* Distances of the free nodes first .. first + n - 1; those that are not wanted are INT32_MAX away. returns the
 * least. */
static int32_t distances(const struct place *p, int32_t node, unsigned avoid, int32_t first, int32_t n, lane *dist)
{
    const lane *bit = (const lane *)(p->free_bit + first);
    lane least = (lane){0} + INT32_MAX;
    int32_t lanes = (n + PLACE_LANES - 1) / PLACE_LANES, best = INT32_MAX;
    for (int32_t k = 0; k < lanes; k++)
        dist[k] = (lane){0};
    for (int d = 0; d < p->grid.ndims; d++) {
        const lane *at = (const lane *)(p->free_at + (size_t)d * (size_t)p->room + first);
        int32_t c = p->coord[node][d], size = p->grid.size[d];
        for (int32_t k = 0; k < lanes; k++) {
            lane off = at[k] - c, away = off ^ (off >> 31);
            away -= off >> 31;
            dist[k] += p->grid.torus[d] ? lane_min(away, size - away) : away;
        }
    }
    for (int32_t k = 0; k < lanes; k++) {
        if (avoid) { /* a side, and none of these */
            lane wanted = (bit[k] & ~(int32_t)avoid) != 0;
            dist[k] = (dist[k] & wanted) | (INT32_MAX & ~wanted);
        }
        if (k + 1 == lanes)
            for (int32_t i = n - k * PLACE_LANES; i < PLACE_LANES; i++)
                dist[k][i] = INT32_MAX; /* past the end */
        least = lane_min(least, dist[k]);
    }
    for (int i = 0; i < PLACE_LANES; i++)
        best = least[i] < best ? least[i] : best;
    return best;
}

int32_t place_nearest(const struct place *p, int32_t node, unsigned avoid)
{
    lane dist[BLOCK / PLACE_LANES];
    const int32_t *each = (const int32_t *)dist;
    int32_t best = -1, near = INT32_MAX;
    for (int32_t first = 0; first < p->nfree; first += BLOCK) {
        int32_t n = p->nfree - first < BLOCK ? p->nfree - first : BLOCK;
        int32_t least = distances(p, node, avoid, first, n, dist);
        if (least == INT32_MAX || least > near)
            continue;
        for (int32_t i = 0; i < n; i++)
            if (each[i] == least && (least < near || p->free_list[first + i] < best)) {
                near = least;
                best = p->free_list[first + i];
            }
    }
    return best;
}
