/* What people read of sets: which is retired, begins anew, or goes on without a replica. */
#include "pm/run/news_int.h"

/* "set 0 goes on", "sets 0 and 2 go on" */
static void add_whole(const struct news *n, struct news_line *l, const struct replica_loss *loss, int whole)
{
    news_add(l, whole == 1 ? "; set" : "; sets");
    for (int s = 0, named = 0; s < n->replicas->replicas; s++)
        if (!loss[s].retired)
            news_add(l, named++ ? " and %d" : " %d", s);
    news_add(l, whole == 1 ? " goes on" : " go on");
}

static void tell_joined(struct news *n, int set)
{
    struct news_line l = {.len = 0};
    n->retired[set] = false;
    news_add(&l, "set %d has begun anew and is whole again", set);
    n->say(n->user, l.text);
}

/* It went on without that rank until now. */
static void tell_bound(struct news *n, int set)
{
    struct news_line l = {.len = 0};
    news_add(&l,
             "the program does what no replica can do for another (docs/replicas.md), and rank %d of set %d is dead",
             replica_of(n->replicas, n->served[set] - 1).rank, set);
    n->say(n->user, l.text);
}

/* All sets that this view retires lack one rank: nobody is left to do its part, whatever the program does. */
static bool is_one_rank(const struct news *n, const struct replica_loss *loss)
{
    int rank = -1;
    for (int s = 0; s < n->replicas->replicas; s++) {
        if (n->retired[s])
            continue;
        int lost = loss[s].retired ? replica_of(n->replicas, loss[s].native).rank : -1;
        if (lost < 0 || (rank >= 0 && lost != rank))
            return false;
        rank = lost;
    }
    return true;
}

void news_sets(struct news *n, const struct replica_loss *loss)
{
    int whole = 0;
    bool nobody_is_left = is_one_rank(n, loss);
    for (int s = 0; s < n->replicas->replicas; s++)
        whole += !loss[s].retired;
    for (int s = 0; s < n->replicas->replicas; s++)
        if (n->retired[s] && !loss[s].retired)
            tell_joined(n, s);
    for (int s = 0; s < n->replicas->replicas; s++) {
        struct news_line l = {.len = 0};
        char said[NEWS_LINE / 2];
        if (!loss[s].retired || n->retired[s])
            continue;
        n->retired[s] = true;
        n->lost_sets++;
        if (n->served[s] == loss[s].native + 1 && !nobody_is_left)
            tell_bound(n, s);
        if (!whole)
            continue;
        news_add(&l, "%s and is retired", replica_loss_said(n->replicas, s, &loss[s], said, sizeof said));
        add_whole(n, &l, loss, whole);
        n->say(n->user, l.text);
    }
}

void news_partner(struct news *n, const struct replica_loss *loss, int by)
{
    struct news_line l = {.len = 0};
    char said[NEWS_LINE / 2];
    struct replica who = replica_of(n->replicas, loss->native);
    n->lost_replicas++;
    n->served[who.set] = n->served[who.set] ? n->served[who.set] : loss->native + 1;
    news_add(&l, "%s and goes on: rank %d of set %d does its part",
             replica_loss_said(n->replicas, who.set, loss, said, sizeof said), who.rank, by);
    n->say(n->user, l.text);
}
