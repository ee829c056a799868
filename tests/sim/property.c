/* The properties; see world.h. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/bitset.h"
#include "tests/sim/look.h"
#include "tests/sim/world.h"

static bool same_events(const struct decision *d, const struct view_event *events, int n)
{
    if (d->n != n)
        return false;
    for (int i = 0; i < n; i++)
        if (d->events[i].type != events[i].type || d->events[i].a != events[i].a || d->events[i].b != events[i].b ||
            d->events[i].c != events[i].c || d->events[i].d != events[i].d)
            return false;
    return true;
}

static void check_death(struct world *w, const struct simnode *s, const struct view_event *e)
{
    struct simnode *victim = &w->nodes[e->a];
    if (!victim->tainted && !victim->dead)
        sim_fail(w, s->id, "declares node %u dead, and it is well", e->a);
    if (e->b == MEMBER_REFUSED && !victim->dead)
        sim_fail(w, s->id, "positive evidence against node %u, and it runs", e->a);
}

/* What only the dead have seen may be decided anew: the last one left goes on from what it has. */
static bool seen_by_the_living(const struct world *w, const struct simnode *but, uint64_t epoch)
{
    for (int i = 0; i < w->sc.n; i++)
        if (&w->nodes[i] != but && !w->nodes[i].dead && look_epoch(w->nodes[i].m) >= epoch)
            return true;
    return false;
}

/* Whose birth it has not heard of it does not exclude. */
static bool excludes(const struct simnode *s, const struct simnode *o)
{
    return look_born(s->m) && o->id < member_next_id(s->m) && !look_alive(s->m, o->id);
}

/* Of two that run, at most one has the other outside its view: there are never two jobs. */
static void check_one_job(struct world *w, const struct simnode *s)
{
    for (int i = 0; i < w->sc.n; i++) {
        const struct simnode *o = &w->nodes[i];
        if (o != s && !o->dead && excludes(s, o) && excludes(o, s))
            sim_fail(w, s->id,
                     "its view of epoch %llu and that of node %d, of epoch %llu, exclude each other, and both run",
                     (unsigned long long)look_epoch(s->m), i, (unsigned long long)look_epoch(o->m));
    }
}

void world_check_commit(struct world *w, struct simnode *s, uint64_t epoch, const struct view_event *events, int n,
                        uint64_t max_value)
{
    check_one_job(w, s);
    if (epoch <= w->n_history && !seen_by_the_living(w, s, epoch))
        w->n_history = epoch - 1;
    if (epoch == w->n_history + 1) {
        if (w->n_history == w->cap_history) {
            w->cap_history = w->cap_history ? 2 * w->cap_history : 64;
            w->history = realloc(w->history, w->cap_history * sizeof *w->history);
        }
        struct decision *d = &w->history[w->n_history++];
        d->n = n;
        d->max_value = max_value;
        memcpy(d->events, events, (size_t)n * sizeof *events);
    } else if (epoch > w->n_history) {
        sim_fail(w, s->id, "skips to epoch %llu", (unsigned long long)epoch);
    }
    struct decision *d = &w->history[epoch - 1];
    if (!same_events(d, events, n) || d->max_value != max_value)
        sim_fail(w, s->id, "commits something else in epoch %llu", (unsigned long long)epoch);
    if (look_epoch(s->m) != epoch)
        sim_fail(w, s->id, "commits epoch %llu out of order", (unsigned long long)epoch);
    w->last_commit = w->now;
    for (int i = 0; i < n; i++) {
        if (events[i].type == VIEW_NODE_DEAD) {
            if (events[i].a >= s->born) /* keeld and keelrun read births off the living (keeld_view.born) */
                sim_fail(w, s->id, "has node %u dead in a view in which it was not born before", events[i].a);
            check_death(w, s, &events[i]);
            continue;
        }
        if (events[i].type == VIEW_NODE_BORN) {
            if (events[i].a != s->born++ || events[i].b != 1 + events[i].a || events[i].c != events[i].a / 2)
                sim_fail(w, s->id, "has node %u born, and it is the turn of %u", events[i].a, s->born - 1);
            w->nodes[events[i].a].birth = epoch;
            continue;
        }
        int from = (int)events[i].a;
        if (events[i].b != ++s->ordered[from])
            sim_fail(w, s->id, "event %u of node %d ordered after %u", events[i].b, from, s->ordered[from] - 1);
    }
}

void world_check_settled(struct world *w, const struct simnode *s, uint64_t epoch)
{
    for (int i = 0; i < w->sc.n; i++) {
        const struct simnode *o = &w->nodes[i];
        if (look_alive(s->m, i) && !o->dead && o->birth <= epoch && look_epoch(o->m) < epoch)
            sim_fail(w, s->id, "epoch %llu settled, but node %d is at %llu", (unsigned long long)epoch, i,
                     (unsigned long long)look_epoch(o->m));
    }
}

void world_check_barrier(struct world *w, const struct simnode *s, uint64_t seq)
{
    w->last_barrier = w->now;
    if (s->tainted)
        return;
    for (int i = 0; i < w->sc.n; i++) {
        const struct simnode *o = &w->nodes[i];
        if (bitset_has(s->participants, i) && !o->dead && o->entered < seq && seq > w->nodes[i].join_base)
            sim_fail(w, s->id, "leaves barrier %llu, but node %d has entered %llu", (unsigned long long)seq, i,
                     (unsigned long long)o->entered);
    }
}

/* The links that are down at the end, and no others; whatever end noticed. */
static void check_links(struct world *w, const struct simnode *s)
{
    struct member_link known[MEMBER_LINKS_MAX];
    int n = member_links(s->m, known, MEMBER_LINKS_MAX);
    if (w->sc.link_words && s->link_words > w->sc.link_words)
        sim_fail(w, s->id, "has %d reports of links, more than %d", s->link_words, w->sc.link_words);
    if (!w->sc.links_told)
        return;
    for (int k = 0; k < w->n_links_down; k++) {
        int a = w->links_down[k].a, b = w->links_down[k].b, i = 0;
        while (i < n && !(known[i].a == (a < b ? a : b) && known[i].b == (a < b ? b : a)))
            i++;
        if (i == n)
            sim_fail(w, s->id, "does not know that the link between %d and %d is broken", a, b);
        if (known[i].since_ns < w->first_action || known[i].since_ns > w->first_action + 2 * SEC)
            sim_fail(w, s->id, "thinks that a link is broken since %.1f ms", (double)(known[i].since_ns - SEC) / MS);
    }
    if (n != w->n_links_down)
        sim_fail(w, s->id, "knows %d broken links, there are %d", n, w->n_links_down);
}

void world_check_end(struct world *w)
{
    int running = 0, first = -1;
    for (int i = 0; i < w->sc.n; i++) {
        const struct simnode *s = &w->nodes[i];
        if (s->dead || (s->frozen && w->now < s->thaw_at))
            continue;
        running++;
        if (first < 0)
            first = i;
    }
    if (!running && !w->sc.may_lose_quorum)
        sim_fail(w, -1, "nobody is left");
    for (int i = 0; i < w->sc.n; i++) {
        const struct simnode *s = &w->nodes[i];
        if (s->dead || (s->frozen && w->now < s->thaw_at))
            continue;
        check_links(w, s);
        if (look_epoch(s->m) != w->n_history)
            sim_fail(w, i, "is at epoch %llu of %llu", (unsigned long long)look_epoch(s->m),
                     (unsigned long long)w->n_history);
        if (look_settled(s->m) != w->n_history)
            sim_fail(w, i, "only %llu of %llu epochs are settled", (unsigned long long)look_settled(s->m),
                     (unsigned long long)w->n_history);
        for (int k = 0; k < w->sc.n; k++) {
            const struct simnode *o = &w->nodes[k];
            bool runs = !o->dead && (w->sc.quiet || !(o->frozen && w->now < o->thaw_at));
            if (look_alive(s->m, k) != runs)
                sim_fail(w, i, "has node %d %s its view, but it %s", k, runs ? "not in" : "in",
                         runs ? "runs" : "is gone");
        }
        for (int k = 0; k < w->sc.submitters; k++)
            if (!w->nodes[k].dead && s->ordered[k] != w->nodes[k].submitted)
                sim_fail(w, i, "%u of %u events of node %d are ordered", s->ordered[k], w->nodes[k].submitted, k);
        /* slow is not hanging: with every fifth message lost the last one may not be reached */
        if (s->participant && barrier_completed(s->b) != w->target && w->now > w->last_barrier + 2 * SEC)
            sim_fail(w, i, "hangs in barrier %llu", (unsigned long long)barrier_completed(s->b) + 1);
    }
    if (w->sc.commit_within && w->last_commit > w->first_action + w->sc.commit_within)
        sim_fail(w, -1, "the last commit came %.1f ms after the first failure",
                 (double)(w->last_commit - w->first_action) / MS);
    if (w->sc.commit_not_before && w->n_history && w->last_commit < w->first_action + w->sc.commit_not_before)
        sim_fail(w, -1, "the last commit came only %.1f ms after the first failure",
                 (double)(w->last_commit - w->first_action) / MS);
    if (w->sc.no_views && w->n_history > 0)
        sim_fail(w, -1, "%llu views changed", (unsigned long long)w->n_history);
    if (w->sc.commit_within && w->n_history == 0)
        sim_fail(w, -1, "nothing was committed");
}
