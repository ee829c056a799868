#include "tests/sim/data/scenarios_int.h"

#include <stdio.h>

/* Who has a mutex, waits for one, or hands it over dies or freezes, and the nodes of its word. */
void scenario_mutexes(struct setup *s, struct rng *rng)
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
void scenario_meetings(struct setup *s, struct rng *rng)
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
void scenario_parts(struct setup *s, struct rng *rng)
{
    s->uneven = true;
    s->grouped = rng_below(rng, 2);
    s->ranks = s->nodes + 1 + (int)rng_below(rng, 5);
}

/* Each rank has several threads; now and then more than there are lanes. Disasters as in any run, or aimed at
 * writers. */
void scenario_threads(struct setup *s, struct rng *rng)
{
    s->threads = rng_below(rng, 30) ? 1 + (int)rng_below(rng, 5) : 140;
    s->actions = s->threads > 5 ? 70 : 10 + (int)rng_below(rng, 60);
    if (s->threads > 5)
        s->rounds = 1;
    if (rng_below(rng, 3) == 0)
        scenario_writer_aims(s, rng, 4);
    s->mutexes = s->threads <= 5 ? (int)rng_below(rng, 3) : 0;
    s->signals = rng_below(rng, 2);
}

/* Ranks wait for each other's words, one thread each or several. Disasters as in any run. */
void scenario_signals(struct setup *s, struct rng *rng)
{
    s->signals = true;
    s->threads = rng_below(rng, 3) ? 0 : 1 + (int)rng_below(rng, 3);
    s->mutexes = (int)rng_below(rng, 2);
    s->rounds = 2 + (int)rng_below(rng, 6);
    s->actions = 4 + (int)rng_below(rng, 40);
}

/* What is put is stored over, and what is stored is put over; disasters as in any run, or aimed at writers. */
void scenario_stores(struct setup *s, struct rng *rng)
{
    s->stores = true;
    s->timeout_ns = 20 * SEC;
    s->rounds = 3 + (int)rng_below(rng, 8);
    s->actions = rng_below(rng, 2) ? 1 + (int)rng_below(rng, 4)
                                   : 4 + (int)rng_below(rng, 30); /* few: nobody else writes beside a store */
    if (rng_below(rng, 3) == 0)
        scenario_writer_aims(s, rng, 4);
}

/* The scrubber suspects blocks that are being written, or stored to, whatever goes wrong: it finds nothing. */
void scenario_scrubs(struct setup *s, struct rng *rng)
{
    if (rng_below(rng, 2))
        scenario_stores(s, rng);
    s->scrubs = 20 + (int)rng_below(rng, 100);
    s->timeout_ns = 20 * SEC;
    s->rounds = 3 + (int)rng_below(rng, 8);
}

/* Bits flip in copies at rest, when the rest has gone wrong; the scrubber mends them. */
void scenario_flips(struct setup *s, struct rng *rng)
{
    s->flips = true;
    s->triple = rng_below(rng, 3) == 0;
    s->scrubs = (int)rng_below(rng, 40);
    s->timeout_ns = 20 * SEC;
    s->rounds = 2 + (int)rng_below(rng, 6);
}

/* Writers die in the middle of puts, and nobody takes their places: whose part it is stores there afterwards. */
void scenario_heirs(struct setup *s, struct rng *rng)
{
    scenario_stores(s, rng);
    s->wide = rng_below(rng, 3) > 0;
    s->nodes = 2 + (int)rng_below(rng, 2);
    s->ranks = 3 * s->nodes;
    s->policy = VIEW_DEGRADE;
    s->actions = 2 + (int)rng_below(rng, 8);
    s->kinds = 1 << DISASTER_RANK_KILL;
    s->disasters = (int)rng_below(rng, 2);
    scenario_writer_aims(s, rng, 3);
    while (s->aims < AIMS_MAX) { /* copies are made equal slowly, so that ranks may have met before */
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.point = "push.patch_asked", .node = -1, .rank = -1, .action = AIM_STALL};
        a->nth = 1 + (unsigned)rng_below(rng, 4);
        a->ns = rng_below(rng, 5 * MS);
    }
}

/* Somebody sleeps who has answers to send. Ranks or nodes die, too, or not. */
void scenario_asleep(struct setup *s, struct rng *rng)
{
    s->timeout_ns = 20 * SEC;
    s->sticks = 1 + (int)rng_below(rng, 6);
    s->disasters = (int)rng_below(rng, 3);
    s->kinds = 1 << DISASTER_RANK_KILL | 1 << DISASTER_NODE_KILL | 1 << DISASTER_BREAK;
}

/* Ranks commit memory of their own, and die, freeze or are moved at each step of it and of going back. */
void scenario_keeps(struct setup *s, struct rng *rng)
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
