/* Groups, rosters and engines in one step, which the runtime makes in two: the room where memory may still be short,
 * then what fills it. */
#ifndef KEEL_TESTS_COLLECTIVES_MADE_H
#define KEEL_TESTS_COLLECTIVES_MADE_H

#include <string.h>

#include "collectives/engine.h"
#include "collectives/group.h"
#include "collectives/roster.h"
#include "runtime/base/bitset.h"

static inline struct engine *made_engine(uint64_t id, int self, struct roster *with, const int *node,
                                         const struct engine_ops *ops)
{
    struct engine *e = engine_room(roster_size(with));
    if (e)
        engine_init(e, id, self, with, node, ops);
    return e;
}

static inline struct roster *made_roster(int n, const uint64_t *live, uint64_t epoch)
{
    struct roster *r = roster_room(n);
    if (!r)
        return NULL;
    memcpy(roster_room_bits(r), live, BITSET_WORDS(n) * sizeof *live);
    roster_fill(r, n, epoch);
    return r;
}

static inline enum group_status made_group(int ranks, const int *list, int n, uint64_t number, struct group **out)
{
    *out = NULL;
    struct group *g = group_room(n);
    if (!g)
        return GROUP_NOMEM;
    enum group_status status = group_list_in(g, ranks, list, n, number);
    if (status == GROUP_OK)
        *out = g;
    else
        group_unref(g);
    return status;
}
#endif
