#include "tests/sim/data/scenarios_int.h"

#include <stdio.h>

/* The program runs two or three times side by side, and loses sets but for one. */
void scenario_replicas(struct setup *s, struct rng *rng)
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
void scenario_checks(struct setup *s, struct rng *rng)
{
    scenario_replicas(s, rng);
    s->checked = true;
    s->timeout_ns = 20 * SEC;
    s->check = (enum replica_check)(CHECK_FENCE + rng_below(rng, 3));
    s->on_death = (enum replica_death)rng_below(rng, 2);
    s->actions = 3 + (int)rng_below(rng, 12);
    for (int n = (int)rng_below(rng, 3); n > 0 && s->aims < AIMS_MAX; n--) {
        static const char *const at[] = {"replica.meeting",       "replica.saying",  "replica.said",
                                         "replica.all_complete",  "replica.leaving", "replica.mending",
                                         "replica.details_known", "mail.sending",    "replica.lock_drawn",
                                         "replica.task_drawn",    "replica.kept",    "replica.taking_over",
                                         "replica.took_over",     "replica.counted", "replica.brought"};
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 10 : 100)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof *at)]);
        a->action = (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* They do what a partner can do for the dead, which it does: of each rank one replica stays, in whatever set. */
void scenario_partners(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {
        "replica.meeting",     "replica.saying",     "replica.said",        "replica.leaving",   "replica.all_complete",
        "mail.sending",        "replica.kept",       "replica.taking_over", "replica.took_over", "replica.counted",
        "replica.lock_drawn",  "replica.task_drawn", "op.answered",         "order.executing",   "order.executed",
        "order.acknowledging", "order.answering",    "order.entries_came",  "order.telling",     "order.handing_over",
        "replica.brought",     "replica.has_left"};
    scenario_replicas(s, rng);
    s->checked = s->plain = true;
    s->timeout_ns = 20 * SEC;
    s->check = rng_below(rng, 2) ? CHECK_FENCE : (enum replica_check)(CHECK_HASH + rng_below(rng, 2));
    s->on_death = DEATH_PARTNER;
    s->actions = 3 + (int)rng_below(rng, 12);
    s->aims = 0;
    for (int n = 1 + (int)rng_below(rng, 4); n > 0 && s->aims < AIMS_MAX; n--) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 30 : 300)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof *at)]);
        a->action = rng_below(rng, 2) ? AIM_KILL : (enum aim_action)rng_below(rng, AIM_STALL + 1);
        a->ns = rng_below(rng, rng_below(rng, 2) ? 5 * MS : 120 * MS);
    }
}

/* A bit flips where it is put from, or where it was put. Nothing dies; or of three sets one process does, or two do,
 * when sets find that they differ, or mend. */
void scenario_wrong_bits(struct setup *s, struct rng *rng)
{
    static const char *const at[] = {"replica.saying", "replica.said", "replica.mending", "replica.details_known",
                                     "mail.sending"};
    scenario_checks(s, rng);
    scenario_healthy(s, rng);
    s->flip = s->check == CHECK_FENCE || rng_below(rng, 2) ? FLIP_SENDER : FLIP_TARGET;
    if (s->sets < 3 || rng_below(rng, 2))
        return;
    for (uint64_t n = 1 + rng_below(rng, 2); n > 0; n--) {
        struct aim *a = &s->aim[s->aims++];
        *a = (struct aim){.node = -1, .rank = -1, .nth = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 3 : 30)};
        snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, sizeof at / sizeof *at)]);
        a->action = AIM_KILL;
        a->flips = rng_below(rng, 2);
        if (a->flips) { /* it says to one of the others, or to both, that it differs */
            snprintf(a->point, sizeof a->point, "%s", at[rng_below(rng, 2)]);
            a->nth = 1;
            s->flip = FLIP_SENDER;
        }
    }
}
