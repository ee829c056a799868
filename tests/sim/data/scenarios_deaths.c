#include "tests/sim/data/returns.h"
#include "tests/sim/data/scenarios_int.h"

#include <stdio.h>

static const char *const points[] = {
    "rank.leaving",
    "rank.left",
    "rank.resuming",
    "rank.barrier_entering",
    "rank.barrier_left",
    "coll.writing_down",
    "coll.written_down",
    "op.intent_set",
    "op.put_between_copies",
    "op.before_local_store",
    "op.after_local_store",
    "op.answered",
    "op.chunk_in_one_copy",
    "op.chunk_in_two_copies",
    "task.reset_prepared",
    "task.claimed",
    "task.drawn",
    "task.committing",
    "task.committed",
    "task.accumulating",
    "acc.done",
    "replica.relaying",
    "strong.asking",
    "strong.compared",
    "replica.put_noted",
    "replica.put_applied",
    "replica.forwarding",
    "replica.applied_not_forwarded",
    "replica.forwarded",
    "replica.acknowledged_not_answered",
    "replica.forward_received",
    "replica.forward_stored",
    "recover.prepare_received",
    "recover.fenced",
    "recover.answered",
    "recover.commit_received",
    "recover.committed",
    "recover.settled",
    "push.doubts_half_told",
    "push.doubts_told",
    "push.rebuild_begun",
    "push.rebuild_middle",
    "push.rebuild_end",
    "push.snapshot_begun",
    "push.snapshot_block",
    "push.snapshot_end",
    "push.patch_asked",
    "push.scrub_judges",
    "push.scrub_mends",
    "push.patch_received",
    "push.restored_not_submitted",
    "push.restored_submitted",
    "procs.joining",
    "procs.joined",
    "segment.made",
    "segment.deciding",
    "segment.decided",
    "segment.told",
    "segment.counted",
};
enum { POINTS = sizeof points / sizeof points[0] };

void scenario_some_aims(struct setup *s, struct rng *rng, int n)
{
    for (int i = 0; i < n && s->aims < AIMS_MAX; i++) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1};
        snprintf(a->point, sizeof a->point, "%s", points[rng_below(rng, POINTS)]);
        a->nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 4 : 40);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

void scenario_healthy(struct setup *s, struct rng *rng)
{
    (void)rng;
    s->disasters = 0;
    s->aims = 0;
    s->quiet = true;
}

void scenario_random_mix(struct setup *s, struct rng *rng)
{
    (void)s;
    (void)rng;
}

/* Writers die where a put is in one copy and not in the other. */
void scenario_writer_aims(struct setup *s, struct rng *rng, int n)
{
    static const char *const at[] = {"op.put_between_copies", "op.before_local_store", "op.after_local_store",
                                     "op.answered",           "op.chunk_in_one_copy",  "op.chunk_in_two_copies",
                                     "op.chunk_in_all_copies"};
    enum { AT = sizeof at / sizeof at[0] };
    s->aims = 0;
    for (int i = 0; i < n; i++) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 20 : 600)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, AT)]);
        a->action = AIM_KILL;
    }
}

/* Writers die in the middle of many puts, again and again. */
void scenario_rank_kills(struct setup *s, struct rng *rng)
{
    s->kinds = 1 << DISASTER_RANK_KILL | 1 << DISASTER_RANK_FREEZE | 1 << DISASTER_BREAK;
    s->disasters = 3 + (int)rng_below(rng, 12);
    s->actions = 20 + (int)rng_below(rng, 100);
    s->exits = rng_below(rng, 2) ? 0.05 : 0;
    scenario_writer_aims(s, rng, 7);
}

void scenario_node_kills(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 4);
    s->spares = (int)rng_below(rng, 4);
    s->ranks = s->nodes + (int)rng_below(rng, 4);
    s->kinds = 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF | 1 << DISASTER_RANK_KILL;
    s->disasters = 2 + (int)rng_below(rng, 8);
    for (int i = 0; i < s->aims; i++)
        s->aim[i].action = rng_below(rng, 2) ? AIM_NODE : AIM_OFF;
}

/* Nobody dies, but everybody may be taken for dead: zombies. */
void scenario_freezes(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 4);
    s->ranks = s->nodes + (int)rng_below(rng, 4);
    s->kinds =
        1 << DISASTER_AGENT_FREEZE | 1 << DISASTER_NODE_FREEZE | 1 << DISASTER_RANK_FREEZE | 1 << DISASTER_RANK_KILL;
    s->disasters = 3 + (int)rng_below(rng, 8);
    for (int i = 0; i < s->aims; i++)
        s->aim[i].action = rng_below(rng, 2) ? AIM_FREEZE : AIM_FREEZE_NODE;
}

/* Paths are silent for a while; operations are given up. */
void scenario_cuts(struct setup *s, struct rng *rng)
{
    s->kinds = 1 << DISASTER_CUT | 1 << DISASTER_BREAK | 1 << DISASTER_RANK_KILL;
    s->disasters = 3 + (int)rng_below(rng, 10);
    s->timeout_ns = rng_below(rng, 3) ? MS + rng_below(rng, 20 * MS) : 20 * SEC;
    s->actions = 10 + (int)rng_below(rng, 60);
}

/* Chunks: writers and the nodes of copies die between the announcement and the end of a remote write. */
void scenario_large_puts(struct setup *s, struct rng *rng)
{
    s->wide = true;
    s->nodes = 3 + (int)rng_below(rng, 3);
    s->spares = (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 3);
    s->rounds = 1 + (int)rng_below(rng, 3);
    s->actions = 10 + (int)rng_below(rng, 20);
    s->kinds = 1 << DISASTER_RANK_KILL | 1 << DISASTER_BREAK | 1 << DISASTER_RANK_FREEZE;
    if (rng_below(rng, 3) == 0)
        s->kinds |= 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF;
    s->disasters = 3 + (int)rng_below(rng, 6);
    scenario_writer_aims(s, rng, 5);
}

/* A writer in the middle of a chunk, and a node that may hold one of the copies, die together or one soon after the
 * other. */
void scenario_three_copies(struct setup *s, struct rng *rng)
{
    s->wide = s->triple = true;
    s->nodes = 4 + (int)rng_below(rng, 3);
    s->spares = (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 2);
    s->rounds = 1 + (int)rng_below(rng, 3);
    s->actions = 6 + (int)rng_below(rng, 10);
    s->timeout_ns = 20 * SEC;
    s->kinds = 1 << DISASTER_RANK_KILL | 1 << DISASTER_BREAK;
    s->disasters = (int)rng_below(rng, 3);
    scenario_writer_aims(s, rng, 5);
    for (int i = 0; i < s->aims; i++) {
        static const char *const at[] = {"op.chunk_in_one_copy", "op.chunk_in_two_copies"};
        struct aim *a = &s->aim[i];
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, 2)]);
        a->nth = 1 + (unsigned)rng_below(rng, 12);
        a->action = AIM_PAIR;
        a->ns = rng_below(rng, 2) ? 0 : rng_below(rng, 30 * MS);
    }
}

/* Three copies: a node dies, and while what it held is filled elsewhere two more, the one that sends, the one that
 * gets, or any other. */
void scenario_rebuilds(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {"push.doubts_told",        "push.rebuild_begun",  "push.rebuild_middle",
                                     "push.rebuild_end",        "push.snapshot_begun", "push.snapshot_block",
                                     "push.snapshot_end",       "push.patch_received", "push.restored_not_submitted",
                                     "push.restored_submitted", "recover.answered",    "recover.committed"};
    enum { AT = sizeof at / sizeof at[0] };
    s->triple = rng_below(rng, 4) > 0;
    s->nodes = 5 + (int)rng_below(rng, 2);
    s->spares = 2 + (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 3);
    s->rounds = 2 + (int)rng_below(rng, 4);
    s->actions = 8 + (int)rng_below(rng, 20);
    s->kinds = 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF;
    s->disasters = 1;
    s->aims = 0;
    for (int i = 0; i < 3; i++) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 4 : 30)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, AT)]);
        a->action = rng_below(rng, 3) ? rng_below(rng, 2) ? AIM_NODE : AIM_OFF : AIM_FREEZE_NODE;
        a->ns = rng_below(rng, 120 * MS);
    }
}

void scenario_storm(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 5);
    s->spares = (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 4);
    s->disasters = 8 + (int)rng_below(rng, 16);
    s->actions = 10 + (int)rng_below(rng, 60);
    s->yield = 0.1;
    s->aims = 0;
    scenario_some_aims(s, rng, 6);
}

static void joins_without_a_grid(struct setup *s, struct rng *rng)
{
    s->nodes = 2 + (int)rng_below(rng, 4);
    s->spares = (int)rng_below(rng, 2);
    s->ranks = s->nodes + (int)rng_below(rng, 4);
    s->triple = rng_below(rng, 3) == 0;
    s->grouped = rng_below(rng, 3) == 0;
    s->rounds = 3 + (int)rng_below(rng, 6);
}

/* Nodes come while ranks work, and while others, or they themselves, die, freeze or are cut off: most often soon
 * after one came. Two of three are one that has died. Some come to a grid. */
void scenario_joins(struct setup *s, struct rng *rng)
{
    bool grid = rng_below(rng, 3) == 0;
    (grid ? scenario_slides : joins_without_a_grid)(s, rng);
    s->joiners = 1 + (int)rng_below(rng, 3);
    s->kinds = 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF | 1 << DISASTER_RANK_KILL | 1 << DISASTER_NODE_FREEZE |
               1 << DISASTER_CUT | 1 << DISASTER_BREAK;
    s->disasters = (int)rng_below(rng, 8);
    for (int i = 0; i < s->joiners; i++)
        s->join_at[i] = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 80 * MS);
    returns_draw(s, rng);
}
