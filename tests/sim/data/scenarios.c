#include "tests/sim/data/replicas.h"
#include "tests/sim/data/returns.h"
#include "tests/sim/data/scenarios_int.h"

enum { FEW = 10 }; /* nodes that most scenarios have at most; as many draws as then, so that each seed is what it was */

const struct scenario scenario[] = {
    {"random", "any system, any program, any disasters", scenario_random_mix},
    {"healthy", "nothing goes wrong", scenario_healthy},
    {"rank-kills", "writers die in the middle of many puts", scenario_rank_kills},
    {"node-kills", "nodes die, also during recovery", scenario_node_kills},
    {"freezes", "frozen nodes, agents and ranks; zombies", scenario_freezes},
    {"cuts", "silent paths, broken connections, puts that are given up", scenario_cuts},
    {"large-puts", "chunks, and deaths between their copies", scenario_large_puts},
    {"three-copies", "chunks of three copies, whose writer dies with the node of one of them", scenario_three_copies},
    {"rebuilds", "three copies: two more nodes die while what the first one held is filled elsewhere",
     scenario_rebuilds},
    {"storm", "all of it at once", scenario_storm},
    {"joins", "nodes come while others die, and take over what these leave", scenario_joins},
    {"mutexes", "who has a mutex, waits for one or hands it over dies or freezes", scenario_mutexes},
    {"meetings", "who dies or freezes in collectives, messages between ranks and allocations of groups",
     scenario_meetings},
    {"parts", "parts of different sizes, segments of groups", scenario_parts},
    {"threads", "several threads of each rank do all that at once", scenario_threads},
    {"stores",
     "ranks store plainly into their parts, and bring it to the other copies now and then; disasters as in any run",
     scenario_stores},
    {"scrubs", "the scrubber suspects what is being written; disasters as in any run", scenario_scrubs},
    {"flips", "bits flip in copies at rest, and the scrubber mends them; disasters before", scenario_flips},
    {"heirs", "ranks store plainly where others die in the middle of puts", scenario_heirs},
    {"signals", "who signals to another rank, or waits for it, dies or freezes", scenario_signals},
    {"asleep", "answers stay where they are, though who owes them lives: they are asked for again", scenario_asleep},
    {"moves", "ranks that live move to other nodes, one by one, and ranks and nodes die", scenario_moves},
    {"slides", "nodes on a grid die, lines of ranks that live move by one node, and more die while they do",
     scenario_slides},
    {"together", "the same with several ranks a slot, of which some have left a collective and others not",
     scenario_together},
    {"refusals", "slides, or ranks that move, and nodes cannot start the processes that are to begin there",
     scenario_refusals},
    {"weighings", "the same by auto, whose figures agents say, and who is asked to move ranks that live",
     scenario_weighings},
    {"grids", "the same on grids of 16 nodes, some of them dead at the start, by methods that look at the load too",
     scenario_grids},
    {"keeps", "ranks commit kept memory and go back to it, and die, freeze or move at each step of that",
     scenario_keeps},
    {"replicas", "sets of a program that runs side by side are lost but for one, at each step of their common order",
     scenario_replicas},
    {"checks", "the same, and replicas compare what they do", scenario_checks},
    {"partners", "and do the part of the dead", scenario_partners},
    {"wrong-bits", "a bit flips where a replica puts from, or puts to: it is told, or mended", scenario_wrong_bits},
    {"no-memory", "the n-th allocation of a rank or of an agent fails", scenario_no_memory},
    {"scant", "nodes have no memory for what all or a group allocate, and die or freeze while they say so",
     scenario_scant},
    {"scarce", "allocations of a rank or of an agent fail while other things go wrong", scenario_scarce},
    {"each-of-a-rank", "a small program again and again, until each allocation of a rank has failed",
     scenario_each_of_a_rank},
    {"each-of-an-agent", "the same with those of an agent", scenario_each_of_an_agent},
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
    returns_place(s);
}

/* Some come back, some name a place, some neither; whoever was there may live, and others may name the same. */
static void some_join_the_grid(struct setup *s, struct rng *rng)
{
    int born = s->nodes + s->spares, most = NODES_MAX - 1 - born;
    s->joiners = 1 + (int)rng_below(rng, (uint64_t)(most < 4 ? most : 4));
    for (int i = 0; i < s->joiners; i++) {
        uint64_t kind = rng_below(rng, 5);
        s->join_at[i] = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 60 * MS);
        s->join_was[i] = kind < 3 ? 1 + (int)rng_below(rng, (uint64_t)(born + i)) : 0;
        s->join_place[i] = kind > 1 && kind < 4 ? 1 + (int)rng_below(rng, (uint64_t)(born + s->grid.ndead)) : 0;
    }
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
    if (s->grid.nodes) {
        some_join_the_grid(s, &rng);
        return;
    }
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
    scenario_some_aims(&s, &rng, (int)rng_below(&rng, 4));
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
