#include "pm/wire/waits_parts.h"

#include "pm/wire/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t HOLD_NS = 300000000;  /* a look of a debugger is over by then */
static const uint64_t OVER_NS = 1500000000; /* what is not reported for so long is over: agents look twice a second */

void waits_init(struct waits *w, int nodes, int ranks, const int *rank_node, void (*say)(void *user, const char *line),
                void *user)
{
    *w = (struct waits){.nodes = nodes,
                        .ranks = ranks,
                        .rank_node = pm_alloc((size_t)ranks * sizeof *rank_node),
                        .node = pm_alloc((size_t)nodes * sizeof *w->node),
                        .doubt = pm_alloc((size_t)nodes * sizeof *w->doubt),
                        .say = say,
                        .user = user};
    waits_view(w, rank_node, NULL);
}

static void reason_free(struct waits_reason *r)
{
    free(r->rank);
    free(r);
}

void waits_node_clear(struct waits_node *n)
{
    free(n->entry);
    free(n->stopped);
    free(n->silent);
    free(n->link);
    free(n->behind);
    free(n->dying);
    *n = (struct waits_node){0};
}

void waits_fini(struct waits *w)
{
    for (int i = 0; w->node && i < w->nodes; i++)
        waits_node_clear(&w->node[i]);
    for (struct waits_reason *r = w->reasons, *next; r; r = next) {
        next = r->next;
        reason_free(r);
    }
    free(w->node);
    free(w->doubt);
    free(w->rank_node);
    *w = (struct waits){0};
}

/* ---- reports ---- */

void waits_view(struct waits *w, const int *rank_node, const bool *alive)
{
    memcpy(w->rank_node, rank_node, (size_t)w->ranks * sizeof *rank_node);
    for (int i = 0; alive && i < w->nodes; i++)
        if (!alive[i]) {
            waits_node_clear(&w->node[i]);
            w->doubt[i] = (struct waits_doubt){0};
        }
}

/* ---- reasons ---- */

static struct waits_reason *reason_of(struct waits *w, struct why y, uint64_t now)
{
    struct waits_reason *r = w->reasons;
    bool pair = y.why == WAITS_LINK;
    while (r && !(r->why == y.why && r->a == y.a && (!pair || r->b == y.b)))
        r = r->next;
    if (r) {
        r->b = y.b > r->b ? y.b : r->b;
        return r;
    }
    r = pm_alloc(sizeof *r);
    *r = (struct waits_reason){.next = w->reasons,
                               .why = y.why,
                               .a = y.a,
                               .b = y.b,
                               .rank = pm_alloc((size_t)w->ranks * sizeof *r->rank),
                               .first_ns = now};
    return w->reasons = r;
}

static void join(struct waits_reason *r, const struct waits_entry *e, struct why y)
{
    r->direct = r->direct || !y.view;
    r->others = r->others || !y.own;
    if (r->n == 0) {
        snprintf(r->call, sizeof r->call, "%s", e->call);
        r->since_ns = e->since_ns;
    }
    r->calls = r->calls || strcmp(r->call, e->call) != 0;
    r->since_ns = e->since_ns < r->since_ns ? e->since_ns : r->since_ns;
    r->n += !r->rank[e->rank];
    r->rank[e->rank] = true;
}

static void find_reasons(struct waits *w, uint64_t now)
{
    for (struct waits_reason *r = w->reasons; r; r = r->next) {
        r->last_ns = r->n > 0 ? now : r->last_ns;
        memset(r->rank, 0, (size_t)w->ranks * sizeof *r->rank);
        r->n = 0;
        r->calls = r->direct = r->others = false;
    }
    for (int i = 0; i < w->nodes; i++)
        for (int k = 0; k < w->node[i].entries; k++) {
            const struct waits_entry *e = &w->node[i].entry[k];
            if (waits_node_of(w, e->rank) != i || waits_is_stopped(w, e->rank))
                continue;
            struct why y = waits_find_why(w, e);
            join(reason_of(w, y, now), e, y);
        }
}

/* Since the reason is there, when to say it: the i-th time, 0 the first. */
static uint64_t due(enum waits_why why, unsigned i)
{
    static const uint64_t in_the_way[] = {1, 30, 60}, odd[] = {5, 30, 60}, usual[] = {60, 600, 3600};
    const uint64_t *at = why <= WAITS_LINK ? in_the_way : why <= WAITS_LEAVING ? odd : usual;
    return WAITS_SECOND * (i < 2 ? at[i] : at[2] * (i - 1));
}

/* A moment ago a line said how it is with the node, and for how long it is waited for. */
static bool just_told(const struct waits *w, const struct waits_reason *r, uint64_t now)
{
    uint64_t at = r->why == WAITS_SILENT ? w->doubt[r->a].alone_ns : 0;
    return at && now < at + 2 * WAITS_DOUBT_NS;
}

static uint64_t look_at(struct waits *w, struct waits_reason *r, uint64_t now)
{
    if (r->n == 0)
        return r->last_ns + OVER_NS;
    /* it was there before it was seen, but not before somebody waited */
    uint64_t seen = r->first_ns > OVER_NS ? r->first_ns - OVER_NS : 0, from = r->since_ns > seen ? r->since_ns : seen;
    uint64_t at = from + due(r->why, r->lines);
    uint64_t held = w->doubts && r->why == WAITS_SILENT && !*w->doubt[r->a].how ? WAITS_DOUBT_NS : HOLD_NS;
    at = at < r->first_ns + held ? r->first_ns + held : at;
    if (now < at)
        return at;
    bool told = !r->lines && just_told(w, r, now);
    if (!r->lines)
        r->begun_ns = r->since_ns;
    while (from + due(r->why, r->lines) <= now)
        r->lines++;
    if (told)
        r->doubted = true;
    else
        waits_tell(w, r, now);
    return from + due(r->why, r->lines);
}

/* ---- nodes that do not answer ---- */

void waits_patience(struct waits *w, int node, const struct waits_doubt *said, uint64_t now)
{
    if (node < 0 || node >= w->nodes)
        return;
    struct waits_doubt *d = &w->doubt[node];
    if (strcmp(d->how, said->how) == 0 && said->waited_for <= d->waited_for)
        return;
    bool told = d->told;
    uint64_t alone = d->alone_ns;
    uint64_t since = d->due ? d->since_ns : now;
    *d = *said;
    d->due = true;
    d->told = told;
    d->alone_ns = alone;
    d->since_ns = since;
}

uint64_t waits_tick(struct waits *w, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    find_reasons(w, now);
    for (struct waits_reason **link = &w->reasons, *r; (r = *link) != NULL;) {
        uint64_t at = look_at(w, r, now);
        if (r->n == 0 && now >= at) {
            if (r->lines && !r->doubted)
                waits_tell_end(w, r);
            *link = r->next;
            reason_free(r);
            continue;
        }
        next = at < next ? at : next;
        link = &r->next;
    }
    for (int i = 0; i < w->nodes; i++) {
        uint64_t at = waits_tell_alone(w, i, now);
        next = at < next ? at : next;
    }
    return next;
}
