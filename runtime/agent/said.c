#include "runtime/agent/said.h"

#include <string.h>

static bool takes_part(const struct view *v, int rank)
{
    return view_rank_takes_part(v, rank) && v->rank[rank].node >= 0;
}

void said_silent(const struct view *v, uint8_t *silent)
{
    _Static_assert(CLASSES <= 8, "a bit each");
    memset(silent, 0, (size_t)view_ids(v));
    for (int i = 0; i < v->nodes * CLASSES; i++)
        for (int k = 0; k < v->copyset[i].copies; k++)
            silent[v->copyset[i].copy[k].node] |= (uint8_t)(1u << copyset_class(i));
    for (int r = 0; r < v->ranks; r++)
        if (takes_part(v, r))
            silent[v->rank[r].node] = 0;
}

keel_status said_together(const struct view *v, int self, const keel_status *said, const uint8_t *silent,
                          unsigned class, enum said_by by)
{
    keel_status together = KEEL_OK;
    for (int node = 0; node < view_ids(v); node++) {
        bool counts = node != self && v->alive[node] && (by == SAID_BY_ALL || silent[node] >> class & 1);
        if (!counts || said[node] == KEEL_OK)
            continue;
        if (said[node] != KEEL_IN_PROGRESS)
            return said[node];
        together = KEEL_IN_PROGRESS;
    }
    return together;
}
