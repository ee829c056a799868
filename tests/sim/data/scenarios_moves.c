#include "tests/sim/data/scenarios_int.h"

#include <stdio.h>

#include "tests/sim/data/slides.h"

/* Ranks move, one by one, while others die, or do not: what they had under way, tasks, mutexes and parts go with
 * them. */
void scenario_moves(struct setup *s, struct rng *rng)
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
        scenario_writer_aims(s, rng, 3);
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
        static const char *const at[] = {"procs.releasing", "procs.moved",         "procs.staying", "procs.joining",
                                         "rank.move_point", "rank.moving",         "rank.let_go",   "rank.moved",
                                         "recover.settled", "push.rebuild_middle", "procs.held"};
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
void scenario_slides(struct setup *s, struct rng *rng)
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

/* Nodes on a grid with several ranks a slot: one dies as ranks leave a collective, some of which are late, so that some
 * are asked to go behind it and others before they have left it. */
void scenario_together(struct setup *s, struct rng *rng)
{
    scenario_slides(s, rng);
    s->ranks = s->nodes * (RANKS_MAX / s->nodes);
    s->rounds = 6 + (int)rng_below(rng, 6);
    s->actions = 2 + (int)rng_below(rng, 6);
    s->threads = 0;
    s->kinds = 1 << DISASTER_RANK_FREEZE;
    s->disasters = (int)rng_below(rng, 12);
    unsigned ranks = (unsigned)s->ranks, met = ranks * (unsigned)rng_below(rng, 8);
    for (s->aims = 0; s->aims < AIMS_MAX; s->aims++) {
        struct aim *a = &s->aim[s->aims];
        *a = (struct aim){.node = -1, .rank = -1};
        snprintf(a->point, sizeof a->point, "rank.barrier_%s", s->aims % 2 ? "entering" : "left");
        a->action = s->aims ? AIM_STALL : AIM_NODE;
        a->nth = met + 1 + (unsigned)rng_below(rng, ranks);
        a->ns = rng_below(rng, 60 * MS);
    }
}

/* Slides or moves, and nodes where a rank is to begin cannot start a process. */
void scenario_refusals(struct setup *s, struct rng *rng)
{
    if (rng_below(rng, 3))
        scenario_slides(s, rng);
    else
        scenario_moves(s, rng);
    s->spares += s->grid.nodes ? 0 : (int)rng_below(rng, 3);
    s->refusals = 1 + (int)rng_below(rng, 4);
    s->disasters = 1 + (int)rng_below(rng, 5);
    if (rng_below(rng, 2) && s->aims < AIMS_MAX) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.point = "procs.refused", .node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, 2)};
        a->action = rng_below(rng, 2) ? AIM_NODE : AIM_STALL;
        a->ns = rng_below(rng, 5 * MS);
    }
}

/* 4x4 and its like, as a whole: places that are dead at the start, methods that look at the load of links or that the
 * user has written, bounds. */
void scenario_grids(struct setup *s, struct rng *rng)
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

/* The same with the method auto: agents say what they have measured, each something else, and ask whether slots that
 * live should move, at any moment; and die as they do. */
void scenario_weighings(struct setup *s, struct rng *rng)
{
    scenario_slides(s, rng);
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
