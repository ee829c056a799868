#include "tests/sim/data/scenarios.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/data/replicas.h"
#include "tests/sim/data/slides.h"

enum { FEW = 10 }; /* nodes that most scenarios have at most; as many draws as then, so that each seed is what it was */

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

static void some_aims(struct setup *s, struct rng *rng, int n)
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

static void healthy(struct setup *s, struct rng *rng)
{
    (void)rng;
    s->disasters = 0;
    s->aims = 0;
    s->quiet = true;
}

static void random_mix(struct setup *s, struct rng *rng)
{
    (void)s;
    (void)rng;
}

/* Writers die where a put is in one copy and not in the other. */
static void writer_aims(struct setup *s, struct rng *rng, int n)
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
static void rank_kills(struct setup *s, struct rng *rng)
{
    s->kinds = 1 << DISASTER_RANK_KILL | 1 << DISASTER_RANK_FREEZE | 1 << DISASTER_BREAK;
    s->disasters = 3 + (int)rng_below(rng, 12);
    s->actions = 20 + (int)rng_below(rng, 100);
    s->exits = rng_below(rng, 2) ? 0.05 : 0;
    writer_aims(s, rng, 7);
}

static void node_kills(struct setup *s, struct rng *rng)
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
static void freezes(struct setup *s, struct rng *rng)
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
static void cuts(struct setup *s, struct rng *rng)
{
    s->kinds = 1 << DISASTER_CUT | 1 << DISASTER_BREAK | 1 << DISASTER_RANK_KILL;
    s->disasters = 3 + (int)rng_below(rng, 10);
    s->timeout_ns = rng_below(rng, 3) ? MS + rng_below(rng, 20 * MS) : 20 * SEC;
    s->actions = 10 + (int)rng_below(rng, 60);
}

/* Chunks: writers and the nodes of copies die between the announcement and the end of a remote write. */
static void large_puts(struct setup *s, struct rng *rng)
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
    writer_aims(s, rng, 5);
}

/* A writer in the middle of a chunk, and a node that may hold one of the copies, die together or one soon after the
 * other. */
static void three_copies(struct setup *s, struct rng *rng)
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
    writer_aims(s, rng, 5);
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
static void rebuilds(struct setup *s, struct rng *rng)
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

/* Who has a mutex, waits for one, or hands it over dies or freezes, and the nodes of its word. */
static void mutexes(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {"mutex.waiting", "mutex.chosen", "mutex.handed_over", "mutex.locked"};
    s->mutexes = 1 + (int)rng_below(rng, 2);
    s->actions = 10 + (int)rng_below(rng, 30);
    s->disasters = (int)rng_below(rng, 6);
    for (int i = (int)rng_below(rng, 5); i > 0 && s->aims < AIMS_MAX; i--) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, 60)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof *at)]);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* Who dies or freezes in a collective, between two messages to another rank, while a group allocates, or while the last
 * copy answers for the first. */
static void meetings(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {"coll.entering",
                                     "coll.left",
                                     "coll.view_seen",
                                     "direct.asked",
                                     "direct.connected",
                                     "parcel.sending",
                                     "parcel.sent",
                                     "parcel.passing",
                                     "segment.group_entering",
                                     "segment.group_agreed",
                                     "segment.group_number",
                                     "segment.group_placed",
                                     "segment.group_made",
                                     "replica.answering_for_primary"};
    enum { AT = sizeof at / sizeof at[0] };
    s->grouped = rng_below(rng, 2);
    s->rounds = 2 + (int)rng_below(rng, 6);
    for (int i = 1 + (int)rng_below(rng, 5); i > 0 && s->aims < AIMS_MAX; i--) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 6 : 60)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, AT)]);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* Parts of different sizes, and a segment of a group; disasters as in any run. */
static void parts(struct setup *s, struct rng *rng)
{
    s->uneven = true;
    s->grouped = rng_below(rng, 2);
    s->ranks = s->nodes + 1 + (int)rng_below(rng, 5);
}

/* Each rank has several threads; now and then more than there are lanes. Disasters as in any run, or aimed at
 * writers. */
static void threads(struct setup *s, struct rng *rng)
{
    s->threads = rng_below(rng, 30) ? 1 + (int)rng_below(rng, 5) : 140;
    s->actions = s->threads > 5 ? 70 : 10 + (int)rng_below(rng, 60);
    if (s->threads > 5)
        s->rounds = 1;
    if (rng_below(rng, 3) == 0)
        writer_aims(s, rng, 4);
    s->mutexes = s->threads <= 5 ? (int)rng_below(rng, 3) : 0;
    s->signals = rng_below(rng, 2);
}

/* Ranks wait for each other's words, one thread each or several. Disasters as in any run. */
static void signals(struct setup *s, struct rng *rng)
{
    s->signals = true;
    s->threads = rng_below(rng, 3) ? 0 : 1 + (int)rng_below(rng, 3);
    s->mutexes = (int)rng_below(rng, 2);
    s->rounds = 2 + (int)rng_below(rng, 6);
    s->actions = 4 + (int)rng_below(rng, 40);
}

/* What is put is stored over, and what is stored is put over; disasters as in any run, or aimed at writers. */
static void stores(struct setup *s, struct rng *rng)
{
    s->stores = true;
    s->timeout_ns = 20 * SEC;
    s->rounds = 3 + (int)rng_below(rng, 8);
    s->actions = rng_below(rng, 2) ? 1 + (int)rng_below(rng, 4)
                                   : 4 + (int)rng_below(rng, 30); /* few: nobody else writes beside a store */
    if (rng_below(rng, 3) == 0)
        writer_aims(s, rng, 4);
}

/* The scrubber suspects blocks that are being written, or stored to, whatever goes wrong: it finds nothing. */
static void scrubs(struct setup *s, struct rng *rng)
{
    if (rng_below(rng, 2))
        stores(s, rng);
    s->scrubs = 20 + (int)rng_below(rng, 100);
    s->timeout_ns = 20 * SEC;
    s->rounds = 3 + (int)rng_below(rng, 8);
}

/* Bits flip in copies at rest, when the rest has gone wrong; the scrubber mends them. */
static void flips(struct setup *s, struct rng *rng)
{
    s->flips = true;
    s->triple = rng_below(rng, 3) == 0;
    s->scrubs = (int)rng_below(rng, 40);
    s->timeout_ns = 20 * SEC;
    s->rounds = 2 + (int)rng_below(rng, 6);
}

/* Writers die in the middle of puts, and nobody takes their places: whose part it is stores there afterwards. */
static void heirs(struct setup *s, struct rng *rng)
{
    stores(s, rng);
    s->wide = rng_below(rng, 3) > 0;
    s->nodes = 2 + (int)rng_below(rng, 2);
    s->ranks = 3 * s->nodes;
    s->policy = VIEW_DEGRADE;
    s->actions = 2 + (int)rng_below(rng, 8);
    s->kinds = 1 << DISASTER_RANK_KILL;
    s->disasters = (int)rng_below(rng, 2);
    writer_aims(s, rng, 3);
    while (s->aims < AIMS_MAX) { /* copies are made equal slowly, so that ranks may have met before */
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.point = "push.patch_asked", .node = -1, .rank = -1, .action = AIM_STALL};
        a->nth = 1 + (unsigned)rng_below(rng, 4);
        a->ns = rng_below(rng, 5 * MS);
    }
}

/* Somebody sleeps who has answers to send. Ranks or nodes die, too, or not. */
static void asleep(struct setup *s, struct rng *rng)
{
    s->timeout_ns = 20 * SEC;
    s->sticks = 1 + (int)rng_below(rng, 6);
    s->disasters = (int)rng_below(rng, 3);
    s->kinds = 1 << DISASTER_RANK_KILL | 1 << DISASTER_NODE_KILL | 1 << DISASTER_BREAK;
}

/* Ranks move, one by one, while others die, or do not: what they had under way, tasks, mutexes and parts go with
 * them. */
static void moves(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 6);
    s->policy = rng_below(rng, 8) ? VIEW_SUBSTITUTE : VIEW_DEGRADE;
    s->moves = 1 + (int)rng_below(rng, rng_below(rng, 2) ? 4 : 24);
    s->mutexes = rng_below(rng, 4) ? 0 : 1;
    s->threads = rng_below(rng, 4) ? 0 : 1 + (int)rng_below(rng, 3);
    s->rounds = 2 + (int)rng_below(rng, 8);
    s->disasters = (int)rng_below(rng, 5);
    if (rng_below(rng, 3) == 0)
        writer_aims(s, rng, 3);
    for (int i = (int)rng_below(rng, 4); i > 0 && s->aims < AIMS_MAX; i--) {
        static const char *const at[] = {"procs.releasing", "procs.moved", "rank.move_point",
                                         "rank.moving",     "rank.let_go", "rank.moved"};
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, 4)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, 6)]);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* Somebody who has come to a step of a move dies, freezes or is late. */
static void move_aims(struct setup *s, struct rng *rng)
{
    for (int n = (int)rng_below(rng, 4); n > 0 && s->aims < AIMS_MAX; n--) {
        static const char *const at[] = {"procs.releasing", "procs.moved",        "procs.staying", "procs.joining",
                                         "rank.move_point", "rank.moving",        "rank.let_go",   "rank.moved",
                                         "recover.settled", "push.rebuild_middle"};
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, 6)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof at[0])]);
        a->action = rng_below(rng, 2) ? AIM_NODE : (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* Each of some failures has a chain of moves, the last of which may be possible or not. */
static void user_plans(struct setup *s, struct rng *rng, int all)
{
    for (int failed = 0; failed < all && s->grid.nplans + 8 <= PLANS_MAX; failed++) {
        int moves = (int)rng_below(rng, 4), to = (int)rng_below(rng, (uint64_t)all),
            *plan = s->grid.plans + s->grid.nplans;
        if (!moves)
            continue;
        plan[0] = failed;
        plan[1] = moves;
        for (int i = 0; i < moves; i++) { /* from the end of the chain to who is lost */
            int from = i == moves - 1 ? failed : (int)rng_below(rng, (uint64_t)all);
            plan[2 + 2 * i] = from;
            plan[3 + 2 * i] = to;
            to = from;
        }
        s->grid.nplans += 2 + 2 * moves;
    }
}

static void some_place(struct setup *s, int place)
{
    for (int i = 0; i < s->grid.ndead; i++)
        if (s->grid.dead[i] == place)
            return;
    s->grid.dead[s->grid.ndead++] = place;
}

/* Nodes on a grid: when one dies ranks that live move by a node, line by line, and others die while they do: who moves,
 * where it goes, where it comes from, nodes that have nothing to do with it, idle spares, and more than there are
 * spares for. */
static void slides(struct setup *s, struct rng *rng)
{
    static const struct {
        const char *nodes, *layout;
        int slots, all;
    } shape[] = {
        {"5", "1D(1,1)", 4, 5},    {"6", "1D(1,2)", 4, 6},    {"3x2", "2D(1,1)", 4, 6},   {"3x2", "2D(2,1)", 2, 6},
        {"4x2", "2D(1,1)", 6, 8},  {"3x3", "2D(1,1)", 6, 9},  {"3x3", "2D(2,1)", 4, 9},   {"3tx3t", "2D(2,1)", 4, 9},
        {"4tx2", "2D(1,1)", 6, 8}, {"5x2", "2D(1,2)", 6, 10}, {"2x2x2", "3D(1,1)", 4, 8},
    };
    static const char *const method[] = {"hybrid(all)", "hybrid(all)", "1D",        "hybrid(1D+0D)",
                                         "0D",          "balance",     "repair(3)", "auto"};
    int i = (int)rng_below(rng, sizeof shape / sizeof shape[0]);
    s->grid.nodes = shape[i].nodes;
    s->grid.layout = shape[i].layout;
    s->grid.method = method[rng_below(rng, 8)];
    s->nodes = shape[i].slots;
    s->spares = shape[i].all - shape[i].slots;
    s->ranks = s->nodes + (int)rng_below(rng, rng_below(rng, 2) ? 1 : (uint64_t)s->nodes + 1);
    s->policy = VIEW_SUBSTITUTE;
    s->mutexes = rng_below(rng, 6) ? 0 : 1;
    s->threads = rng_below(rng, 6) ? 0 : 1 + (int)rng_below(rng, 2);
    s->rounds = 2 + (int)rng_below(rng, 6);
    s->kinds = rng_below(rng, 2) ? 1 << DISASTER_NODE_KILL
                                 : 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF | 1 << DISASTER_RANK_KILL |
                                       1 << DISASTER_NODE_FREEZE | 1 << DISASTER_BREAK;
    s->disasters = 1 + (int)rng_below(rng, 6);
    move_aims(s, rng);
}

/* 4x4 and its like, as a whole: places that are dead at the start, methods that look at the load of links or that the
 * user has written, bounds. */
static void grids(struct setup *s, struct rng *rng)
{
    static const struct {
        const char *nodes, *layout;
        int slots, all;
    } shape[] = {{"4x4", "2D(2,1)", 9, 16},   {"4x4", "2D(2,1)", 9, 16},  {"4tx4t", "2D(2,1)", 9, 16},
                 {"4x4", "2D(1,1)", 12, 16},  {"8x2", "2D(1,2)", 12, 16}, {"5x3", "2D(2,1)", 8, 15},
                 {"4x2x2", "3D(1,1)", 12, 16}};
    static const char *const method[] = {"balance", "balance",     "repair(2)",   "repair(5)", "user", "user",
                                         "auto",    "hybrid(all)", "hybrid(-2D)", "2D",        "0D"};
    int i = (int)rng_below(rng, sizeof shape / sizeof shape[0]), all = shape[i].all;
    s->grid.nodes = shape[i].nodes;
    s->grid.layout = shape[i].layout;
    s->grid.method = method[rng_below(rng, sizeof method / sizeof method[0])];
    s->grid.moves = rng_below(rng, 4) ? 0 : 1 + (int)rng_below(rng, 6);
    s->nodes = shape[i].slots - (rng_below(rng, 4) ? 0 : (int)rng_below(rng, 4));
    user_plans(s, rng, all);
    for (int n = (int)rng_below(rng, DEAD_MAX + 1); n > 0; n--)
        some_place(s, (int)rng_below(rng, (uint64_t)all));
    if (!slides_fit(s))
        s->grid.ndead = 0;
    s->spares = all - s->grid.ndead - s->nodes;
    s->ranks = s->nodes + (int)rng_below(rng, 3);
    s->policy = VIEW_SUBSTITUTE;
    s->timeout_ns = 20 * SEC;
    s->actions = 2 + (int)rng_below(rng, 8);
    s->rounds = 2 + (int)rng_below(rng, 4);
    s->kinds = rng_below(rng, 2) ? 1 << DISASTER_NODE_KILL
                                 : 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF | 1 << DISASTER_RANK_KILL |
                                       1 << DISASTER_NODE_FREEZE;
    s->disasters = 1 + (int)rng_below(rng, 7);
    s->aims = 0;
    move_aims(s, rng);
}

/* Ranks commit memory of their own, and die, freeze or are moved at each step of it and of going back. */
static void keeps(struct setup *s, struct rng *rng)
{
    s->nodes = 2 + (int)rng_below(rng, 4);
    s->spares = (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 3);
    s->policy = rng_below(rng, 5) ? VIEW_SUBSTITUTE : VIEW_DEGRADE;
    s->timeout_ns = 20 * SEC;
    s->keeps = true;
    s->triple = rng_below(rng, 8) == 0;
    s->moves = rng_below(rng, 2) ? 0 : (int)rng_below(rng, 12);
    s->rounds = 3 + (int)rng_below(rng, 9);
    s->actions = (int)rng_below(rng, 8);
    s->disasters = (int)rng_below(rng, 4);
    s->aims = 0;
    for (int n = 1 + (int)rng_below(rng, AIMS_MAX - 1); n > 0; n--) {
        static const char *const at[] = {
            "keep.opened",       "keep.copying",          "keep.copied",         "keep.marked",
            "keep.met",          "keep.restoring",        "keep.restored",       "keep.entering_again",
            "keep.going_back",   "rank.resuming",         "rank.barrier_left",   "rank.barrier_entering",
            "coll.written_down", "op.put_between_copies", "op.after_local_store"};
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1,
                          .rank = rng_below(rng, 2) ? -1 : (int)rng_below(rng, (uint64_t)s->ranks),
                          .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 4 : 20)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof at[0])]);
        a->action = rng_below(rng, 2) ? AIM_KILL : (enum aim_action)rng_below(rng, AIM_PAIR + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* The program runs two or three times side by side, and loses sets but for one. */
static void replicas(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {
        "order.acknowledging", "order.answering", "order.entries_came", "order.executed",       "order.executing",
        "order.handing_over",  "order.telling",   "order.told",         "group.creating",       "group.created",
        "recover.committed",   "recover.settled", "op.answered",        "op.before_local_store"};
    s->sets = 2 + (int)rng_below(rng, 2);
    int per = 1 + (int)rng_below(rng, 2), ranks = per + (int)rng_below(rng, 3);
    s->nodes = s->sets * per;
    s->spares = (int)rng_below(rng, 4);
    s->ranks = s->sets * ranks;
    s->policy = VIEW_DEGRADE;
    s->timeout_ns = rng_below(rng, 2) ? 20 * SEC : MS + rng_below(rng, 20 * MS); /* of what has an order: it has none */
    s->rounds = 1 + (int)rng_below(rng, 6);
    s->actions = 3 + (int)rng_below(rng, rng_below(rng, 2) ? 10 : 60);
    if (rng_below(rng, 2))
        s->kinds = 1 << DISASTER_BREAK | 1 << DISASTER_NODE_KILL | 1 << DISASTER_RANK_FREEZE;
    s->disasters = (int)rng_below(rng, 10);
    for (int n = (int)rng_below(rng, 4); n > 0 && s->aims < AIMS_MAX; n--) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 6 : 60)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof at[0])]);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* The same, and they compare what they do. */
static void checks(struct setup *s, struct rng *rng)
{
    replicas(s, rng);
    s->checked = true;
    s->timeout_ns = 20 * SEC;
    s->check = (enum replica_check)(CHECK_FENCE + rng_below(rng, 3));
    s->actions = 3 + (int)rng_below(rng, 12);
    for (int n = (int)rng_below(rng, 3); n > 0 && s->aims < AIMS_MAX; n--) {
        static const char *const at[] = {"replica.meeting", "replica.said", "replica.mending", "replica.details_known",
                                         "mail.sending"};
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 10 : 100)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof *at)]);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* A bit flips where it is put from, or where it was put. Nothing dies; or of three sets one process does, when sets
 * find that they differ, or mend. */
static void wrong_bits(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {"replica.said", "replica.mending", "replica.details_known", "mail.sending"};
    checks(s, rng);
    healthy(s, rng);
    s->flip = s->check == CHECK_FENCE || rng_below(rng, 2) ? FLIP_SENDER : FLIP_TARGET;
    if (s->sets < 3 || rng_below(rng, 2))
        return;
    struct aim *a = &s->aim[s->aims++];
    *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 3 : 30)};
    snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof *at)]);
    a->action = AIM_KILL;
}

/* The same with the method auto: agents say what they have measured, each something else, and ask whether slots that
 * live should move, at any moment; and die as they do. */
static void weighings(struct setup *s, struct rng *rng)
{
    slides(s, rng);
    s->grid.method = "auto";
    s->weighings = 1 + (int)rng_below(rng, rng_below(rng, 2) ? 6 : 40);
    s->disasters = (int)rng_below(rng, 5);
    for (int n = (int)rng_below(rng, 3); n > 0 && s->aims < AIMS_MAX; n--) {
        static const char *const at[] = {"weighing.said", "weighing.asked"};
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, 6)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, 2)]);
        a->action = rng_below(rng, 2) ? AIM_NODE : (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, 5 * MS);
    }
}

/* One allocation fails, in a rank or in an agent; nothing else goes wrong. */
static void no_memory(struct setup *s, struct rng *rng)
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

/* Allocations fail, in a rank, also in those that take its place, or in an agent, while other things go wrong. */
static void scarce(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 4);
    s->ranks = s->nodes + (int)rng_below(rng, 3);
    s->disasters = (int)rng_below(rng, 6);
    s->triple = rng_below(rng, 8) == 0;
    s->threads = rng_below(rng, 4) ? 0 : 1 + (int)rng_below(rng, 3);
    s->mutexes = rng_below(rng, 3) ? 0 : 1;
    if (s->threads > 0 || rng_below(rng, 2))
        some_aims(s, rng, 1 + (int)rng_below(rng, 3));
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

static void each_of_an_agent(struct setup *s, struct rng *rng)
{
    each_allocation(s, rng);
    s->fail_node = (int)rng_below(rng, (uint64_t)s->nodes);
}

static void each_of_a_rank(struct setup *s, struct rng *rng)
{
    each_allocation(s, rng);
    s->fail_rank = (int)rng_below(rng, (uint64_t)s->ranks);
}

static void storm(struct setup *s, struct rng *rng)
{
    s->nodes = 3 + (int)rng_below(rng, 5);
    s->spares = (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 4);
    s->disasters = 8 + (int)rng_below(rng, 16);
    s->actions = 10 + (int)rng_below(rng, 60);
    s->yield = 0.1;
    s->aims = 0;
    some_aims(s, rng, 6);
}

/* Nodes come while ranks work, and while others, or they themselves, die, freeze or are cut off: most often soon
 * after one came. */
static void joins(struct setup *s, struct rng *rng)
{
    s->nodes = 2 + (int)rng_below(rng, 4);
    s->spares = (int)rng_below(rng, 2);
    s->joiners = 1 + (int)rng_below(rng, 3);
    s->ranks = s->nodes + (int)rng_below(rng, 4);
    s->triple = rng_below(rng, 3) == 0;
    s->grouped = rng_below(rng, 3) == 0;
    s->rounds = 3 + (int)rng_below(rng, 6);
    s->kinds = 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF | 1 << DISASTER_RANK_KILL | 1 << DISASTER_NODE_FREEZE |
               1 << DISASTER_CUT | 1 << DISASTER_BREAK;
    s->disasters = (int)rng_below(rng, 8);
    for (int i = 0; i < s->joiners; i++)
        s->join_at[i] = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 80 * MS);
}

const struct scenario scenario[] = {
    {"random", "any system, any program, any disasters", random_mix},
    {"healthy", "nothing goes wrong", healthy},
    {"rank-kills", "writers die in the middle of many puts", rank_kills},
    {"node-kills", "nodes die, also during recovery", node_kills},
    {"freezes", "frozen nodes, agents and ranks; zombies", freezes},
    {"cuts", "silent paths, broken connections, puts that are given up", cuts},
    {"large-puts", "chunks, and deaths between their copies", large_puts},
    {"three-copies", "chunks of three copies, whose writer dies with the node of one of them", three_copies},
    {"rebuilds", "three copies: two more nodes die while what the first one held is filled elsewhere", rebuilds},
    {"storm", "all of it at once", storm},
    {"joins", "nodes come while others die, and take over what these leave", joins},
    {"mutexes", "who has a mutex, waits for one or hands it over dies or freezes", mutexes},
    {"meetings", "who dies or freezes in collectives, messages between ranks and allocations of groups", meetings},
    {"parts", "parts of different sizes, segments of groups", parts},
    {"threads", "several threads of each rank do all that at once", threads},
    {"stores",
     "ranks store plainly into their parts, and bring it to the other copies now and then; disasters as in any run",
     stores},
    {"scrubs", "the scrubber suspects what is being written; disasters as in any run", scrubs},
    {"flips", "bits flip in copies at rest, and the scrubber mends them; disasters before", flips},
    {"heirs", "ranks store plainly where others die in the middle of puts", heirs},
    {"signals", "who signals to another rank, or waits for it, dies or freezes", signals},
    {"asleep", "answers stay where they are, though who owes them lives: they are asked for again", asleep},
    {"moves", "ranks that live move to other nodes, one by one, and ranks and nodes die", moves},
    {"slides", "nodes on a grid die, lines of ranks that live move by one node, and more die while they do", slides},
    {"weighings", "the same by auto, whose figures agents say, and who is asked to move ranks that live", weighings},
    {"grids", "the same on grids of 16 nodes, some of them dead at the start, by methods that look at the load too",
     grids},
    {"keeps", "ranks commit kept memory and go back to it, and die, freeze or move at each step of that", keeps},
    {"replicas", "sets of a program that runs side by side are lost but for one, at each step of their common order",
     replicas},
    {"checks", "the same, and replicas compare what they do", checks},
    {"wrong-bits", "a bit flips where a replica puts from, or puts to: it is told, or mended", wrong_bits},
    {"no-memory", "the n-th allocation of a rank or of an agent fails", no_memory},
    {"scarce", "allocations of a rank or of an agent fail while other things go wrong", scarce},
    {"each-of-a-rank", "a small program again and again, until each allocation of a rank has failed", each_of_a_rank},
    {"each-of-an-agent", "the same with those of an agent", each_of_an_agent},
};
const int scenarios = sizeof scenario / sizeof scenario[0];

/* Some nodes have no memory for the copies that others leave, or only for a few. */
static void some_are_full(struct setup *s, struct rng *rng)
{
    bool some = !s->quiet && !s->fail_at && !s->each && rng_below(rng, 2);
    for (int i = 0; i < NODES_MAX; i++)
        s->room[i] = -1;
    for (int i = 0; i < FEW || i < s->nodes + s->spares; i++)
        s->room[i] = some && rng_below(rng, 2) ? (int)rng_below(rng, rng_below(rng, 2) ? 3 : 20) : -1;
}

/* Ranks in blocks, as the launcher places them. */
static void place(struct setup *s)
{
    for (int r = 0; r < s->ranks; r++)
        s->rank_node[r] = r * s->nodes / s->ranks;
}

/* Each rule for where copies go, and racks of two or three, and switches of them. */
static void place_copies(struct setup *s, struct rng *rng)
{
    s->copies_at = rng_below(rng, 3) ? COPIES_AT_HALF : COPIES_AT_NEXT;
    s->domain_levels = (int)rng_below(rng, 3);
    for (int i = 0; i < s->domain_levels * (s->nodes + s->spares + s->joiners); i++)
        s->domain[i] = (int)rng_below(rng, 3);
}

/* Nodes come late in any scenario but where nothing is to go wrong, or only one thing. Drawn apart, so that the rest
 * is as without. */
static void some_join(struct setup *s, uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed * 2654435761u + 29);
    bool may = !s->joiners && !s->sets && !s->quiet && !s->fail_at && !s->each &&
               s->nodes + s->spares + 1 < NODES_MAX && s->nodes + s->spares != FEW;
    if (!may || rng_below(&rng, 6))
        return;
    s->joiners = 1;
    s->join_at[0] = rng_below(&rng, rng_below(&rng, 2) ? 5 * MS : 60 * MS);
}

void scenario_setup(const struct scenario *sc, uint64_t seed, struct setup *out)
{
    struct rng rng;
    rng_seed(&rng, seed * 2654435761u + 17);
    struct setup s = {.scenario = sc->name, .seed = seed};
    s.nodes = 2 + (int)rng_below(&rng, 4);
    s.spares = (int)rng_below(&rng, 3);
    s.ranks = s.nodes + (int)rng_below(&rng, 4);
    s.policy = rng_below(&rng, 4) ? VIEW_SUBSTITUTE : VIEW_DEGRADE;
    s.timeout_ns = rng_below(&rng, 4) ? 20 * SEC : MS + rng_below(&rng, 40 * MS);
    s.rounds = 1 + (int)rng_below(&rng, 8);
    s.actions = 2 + (int)rng_below(&rng, rng_below(&rng, 3) ? 20 : 80);
    s.disasters = (int)rng_below(&rng, 6);
    s.yield = rng_below(&rng, 2) ? 0.1 : 0;
    some_aims(&s, &rng, (int)rng_below(&rng, 4));
    sc->change(&s, &rng);
    some_are_full(&s, &rng);
    if (s.sets)
        replicas_place(&s, &rng);
    else
        place(&s);
    s.signals = s.signals || rng_below(&rng, 4) == 0;
    s.stores =
        (s.stores || rng_below(&rng, 4) == 0) && s.timeout_ns >= SEC && !s.fail_at && !s.each && !s.keeps && !s.flips;
    s.signals = s.signals && !s.keeps;
    some_join(&s, seed);
    place_copies(&s, &rng);
    *out = s;
}
