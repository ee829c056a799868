#include "tests/sim/data/scenarios_int.h"

/* One allocation fails, in a rank or in an agent; nothing else goes wrong. */
void scenario_no_memory(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 2);
    s->ranks = s->nodes + (int)rng_below(rng, 2);
    s->rounds = 1 + (int)rng_below(rng, 4);
    s->aims = s->disasters = 0;
    bool node = rng_below(rng, 2);
    s->fail_node = node ? (int)rng_below(rng, (uint64_t)s->nodes) : -1;
    s->fail_rank = node ? -1 : (int)rng_below(rng, (uint64_t)s->ranks);
    s->fail_at = 1 + rng_below(rng, node ? 1200 : 80);
}

/* Nodes have no memory for segments that all or a group allocate, and say so; others die, or they themselves, at any
 * step of that. */
void scenario_scant(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {"segment.asked",        "segment.answering", "segment.answered",
                                     "segment.made",         "segment.deciding",  "segment.decided",
                                     "segment.group_placed", "segment.group_made"};
    enum { AT = sizeof at / sizeof at[0] };
    s->scant = true;
    s->nodes = 2 + (int)rng_below(rng, 4);
    s->ranks = s->nodes + (int)rng_below(rng, 3);
    s->rounds = 2 + (int)rng_below(rng, 5);
    s->disasters = (int)rng_below(rng, 5);
    for (int i = 1 + (int)rng_below(rng, 4); i > 0 && s->aims < AIMS_MAX; i--) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 6 : 40)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, AT)]);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* Allocations fail, in a rank, also in those that take its place, or in an agent, while other things go wrong. */
void scenario_scarce(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 4);
    s->ranks = s->nodes + (int)rng_below(rng, 3);
    s->disasters = (int)rng_below(rng, 6);
    s->triple = rng_below(rng, 8) == 0;
    s->threads = rng_below(rng, 4) ? 0 : 1 + (int)rng_below(rng, 3);
    s->mutexes = rng_below(rng, 3) ? 0 : 1;
    if (s->threads > 0 || rng_below(rng, 2))
        scenario_some_aims(s, rng, 1 + (int)rng_below(rng, 3));
    bool node = rng_below(rng, 2);
    s->fail_node = node ? (int)rng_below(rng, (uint64_t)(s->nodes + s->spares)) : -1;
    s->fail_rank = node ? -1 : (int)rng_below(rng, (uint64_t)s->ranks);
    s->fail_again = rng_below(rng, 2);
    uint64_t most = node ? 2500 : 200;
    s->fail_at = 1 + rng_below(rng, rng_below(rng, 2) ? most : most / 10);
    s->fail_more = rng_below(rng, 3) ? 0 : rng_below(rng, rng_below(rng, 2) ? 4 : 60);
}

/* A small program, of which one allocation after the other fails. */
static void each_allocation(struct setup *s, struct rng *rng)
{
    s->nodes = 3;
    s->spares = 0;
    s->ranks = 3;
    s->rounds = 2;
    s->actions = 4 + (int)rng_below(rng, 4);
    s->aims = s->disasters = 0;
    s->timeout_ns = 20 * SEC;
    s->each = true;
    s->fail_node = s->fail_rank = -1;
}

void scenario_each_of_an_agent(struct setup *s, struct rng *rng)
{
    each_allocation(s, rng);
    s->fail_node = (int)rng_below(rng, (uint64_t)s->nodes);
}

void scenario_each_of_a_rank(struct setup *s, struct rng *rng)
{
    each_allocation(s, rng);
    s->fail_rank = (int)rng_below(rng, (uint64_t)s->ranks);
}
