#include "pm/wire/waits.h"

#include "pm/wire/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
static const uint64_t HOLD_NS = 300000000;   /* a look of a debugger is over by then */
static const uint64_t DOUBT_NS = 1500000000; /* who waits for a node that does not answer has said so by then */
static const uint64_t OVER_NS = 1500000000;  /* what is not reported for so long is over: agents look twice a second */

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

/* ---- why ---- */

bool waits_is_stopped(const struct waits *w, int rank)
{
    for (int i = 0; i < w->nodes; i++)
        for (int k = 0; k < w->node[i].stopped_n; k++)
            if (w->node[i].stopped[k] == rank)
                return true;
    return false;
}

static const struct waits_silent *silent(const struct waits *w, int node)
{
    for (int i = 0; i < w->nodes; i++)
        for (int k = 0; k < w->node[i].silent_n && i != node; k++)
            if (w->node[i].silent[k].node == node)
                return &w->node[i].silent[k];
    return NULL;
}

static bool link_is_broken(const struct waits *w, int a, int b)
{
    for (int i = 0; i < w->nodes; i++)
        for (int k = 0; k < w->node[i].links; k++) {
            const int *link = w->node[i].link[k];
            if ((link[0] == a && link[1] == b) || (link[0] == b && link[1] == a))
                return true;
        }
    return false;
}

static int node_of(const struct waits *w, int rank)
{
    return rank >= 0 && rank < w->ranks ? w->rank_node[rank] : -1;
}

/* For another thread of its process. */
static bool is_of_own(const struct waits_entry *e)
{
    return e->whom == WAITS_HOLDER && e->for_rank == e->rank;
}

/* A wait of the rank's: of several threads' the first that is not for another one of them. */
static const struct waits_entry *wait_of(const struct waits *w, int rank)
{
    int node = node_of(w, rank);
    const struct waits_entry *own = NULL;
    for (int i = 0; node >= 0 && node < w->nodes && i < w->node[node].entries; i++) {
        const struct waits_entry *e = &w->node[node].entry[i];
        if (e->rank == rank && !is_of_own(e))
            return e;
        own = e->rank == rank ? e : own;
    }
    return own;
}

struct why {
    enum waits_why why;
    int a, b;
    bool view; /* SILENT: a view waits for it */
    bool own;  /* HOLDER: another thread of who waits */
};

static struct why between(int a, int b)
{
    return (struct why){.why = WAITS_LINK, .a = a < b ? a : b, .b = a < b ? b : a};
}

static bool is_dying(const struct waits *w, int node)
{
    for (int i = 0; i < w->nodes; i++)
        for (int k = 0; k < w->node[i].dying_n; k++)
            if (w->node[i].dying[k] == node)
                return true;
    return false;
}

/* A view needs an answer of each that lives. */
static struct why view_why(const struct waits *w)
{
    for (int node = 0; node < w->nodes; node++) {
        const struct waits_silent *s = is_dying(w, node) ? NULL : silent(w, node);
        if (s)
            return (struct why){.why = WAITS_SILENT, .a = node, .b = s->host, .view = true};
    }
    return (struct why){.why = WAITS_VIEW, .a = -1, .b = -1};
}

/* What stands in the way of an answer of that node's. */
static bool node_hinders(const struct waits *w, int node, struct why *out)
{
    const struct waits_silent *s = node >= 0 ? silent(w, node) : NULL;
    if (node >= 0 && is_dying(w, node)) {
        *out = view_why(w);
        return true;
    }
    if (s)
        *out = (struct why){.why = WAITS_SILENT, .a = node, .b = s->host};
    return s;
}

/* What stands in the way of an answer that passes from one node to another. */
static bool way_hinders(const struct waits *w, int from, int node, struct why *out)
{
    if (node_hinders(w, node, out))
        return true;
    bool broken = from >= 0 && from != node && link_is_broken(w, from, node);
    if (broken)
        *out = between(from, node);
    return broken;
}

/* Along the agents that wait for each other. */
static struct why node_why(const struct waits *w, int from, int node)
{
    struct why found;
    for (int steps = 0; steps <= w->nodes; steps++) {
        if (way_hinders(w, from, node, &found))
            return found;
        const struct waits_node *n = &w->node[node];
        for (int i = 0; i < n->behind_n; i++)
            if (way_hinders(w, node, n->behind[i], &found))
                return found;
        if (n->view)
            return view_why(w);
        if (!n->behind_n)
            break;
        from = node;
        node = n->behind[0];
    }
    return (struct why){.why = WAITS_NODE, .a = node, .b = -1};
}

static struct why plain(const struct waits_entry *e)
{
    return (struct why){.why = e->whom, .a = e->for_rank, .b = -1, .own = is_of_own(e)};
}

/* Along the chain. In one collective ranks wait for each other in turns: who waits in the same call is passed through, and
 * that is no ring unless nobody outside of it is waited for. */
static struct why why_of(const struct waits *w, const struct waits_entry *e)
{
    struct why found;
    const struct waits_entry *first = e;
    bool same = true;
    for (int steps = 0; steps <= w->ranks; steps++) {
        int here = node_of(w, e->rank), there = node_of(w, e->for_rank);
        if (e->whom == WAITS_NODE)
            return node_why(w, here, e->for_node);
        if (e->whom == WAITS_VIEW)
            return view_why(w);
        if (e->for_rank >= 0 && waits_is_stopped(w, e->for_rank))
            return (struct why){.why = WAITS_STOPPED, .a = e->for_rank, .b = -1};
        if (node_hinders(w, there, &found))
            return found;
        bool broken = here >= 0 && there >= 0 && here != there && link_is_broken(w, here, there);
        if (e->for_rank < 0)
            return plain(e);
        const struct waits_entry *next = wait_of(w, e->for_rank);
        if (!next || is_of_own(next)) /* a thread of it that we know nothing of has what is waited for */
            return plain(e);
        if (broken && strcmp(next->call, e->call) == 0)
            return between(here, there);
        same = same && e->whom == WAITS_ENTRY && strcmp(next->call, first->call) == 0;
        e = next;
    }
    return same ? (struct why){.why = WAITS_ENTRY, .a = -1, .b = -1}
                : (struct why){.why = WAITS_RING, .a = first->rank, .b = -1};
}

/* A ring has one name: its lowest rank. */
static struct why why(const struct waits *w, const struct waits_entry *e)
{
    struct why y = why_of(w, e);
    if (y.why != WAITS_RING)
        return y;
    for (int i = 0; i <= w->ranks && e; i++) /* into the ring */
        e = wait_of(w, e->for_rank);
    y.a = e ? e->rank : y.a;
    for (int i = 0; i <= w->ranks && e; i++) {
        y.a = e->rank < y.a ? e->rank : y.a;
        e = wait_of(w, e->for_rank);
    }
    return y;
}

/* ---- lines ---- */

static const char VIEW_NEEDS[] = "the next view, and that for ";

struct line {
    char *text;
    size_t len;
};

static void add(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->text + l->len, WAITS_LINE - l->len, fmt, ap);
    va_end(ap);
    l->len += n > 0 ? (size_t)n : 0;
    if (l->len >= WAITS_LINE)
        l->len = WAITS_LINE - 1;
}

/* "rank 3", "ranks 0-3 and 8", "ranks 0, 2, 4, 6 and 60 more" */
static void add_ranks(struct line *l, const bool *is, int ranks, int n)
{
    enum { SHOWN = 6 };
    int shown = 0, runs = 0;
    add(l, n == 1 ? "rank " : "ranks ");
    for (int r = 0, end; r < ranks && shown < n; r = end + 1) {
        for (end = r; end < ranks && is[end]; end++)
            ;
        if (end == r)
            continue;
        bool last = shown + (end - r) == n;
        if (runs == SHOWN) {
            add(l, " and %d more", n - shown);
            return;
        }
        add(l, runs == 0 ? "" : last ? " and " : ", ");
        add(l, end - r > 1 ? "%d-%d" : "%d", r, end - 1);
        shown += end - r;
        runs++;
    }
}

static void add_node(const struct waits *w, struct line *l, int node)
{
    add(l, w->names ? "node %d (%s)" : "node %d", node, w->names ? w->names[node] : "");
}

static void add_rank(const struct waits *w, struct line *l, int rank)
{
    if (rank < 0)
        add(l, "others");
    else if (node_of(w, rank) >= 0)
        add(l, "rank %d (node %d)", rank, node_of(w, rank));
    else
        add(l, "rank %d", rank);
}

/* For whom, and why. */
static void add_why(const struct waits *w, struct line *l, struct why y)
{
    switch (y.why) {
    case WAITS_STOPPED:
        add_rank(w, l, y.a);
        add(l, ", which is stopped by a signal or a debugger");
        break;
    case WAITS_SILENT:
        add(l, "%s", y.view ? VIEW_NEEDS : "");
        add_node(w, l, y.a);
        add(l, ", %s", y.b > 0 ? "whose agent does not run, though its host answers" : "which is silent");
        break;
    case WAITS_LINK:
        add(l, "each other: the link between nodes %d and %d is broken", y.a, y.b);
        break;
    case WAITS_RING:
        add(l, "each other: none can go on before rank %d does", y.a);
        break;
    case WAITS_NODE:
        add(l, "an answer of ");
        add_node(w, l, y.a);
        break;
    case WAITS_VIEW:
        add(l, "what the loss of a node has left to do: a view, or copies that are made equal");
        break;
    case WAITS_HOLDER:
        if (y.own)
            add(l, "another thread of the same process");
        else
            add_rank(w, l, y.a);
        add(l, y.a < 0 ? ", which run tasks" : ", which has it");
        break;
    case WAITS_ENTRY:
        add_rank(w, l, y.a);
        add(l, y.a < 0 ? "" : ", which has not called it");
        break;
    case WAITS_WORD:
        add_rank(w, l, y.a);
        add(l, y.a < 0 ? ", of which none has sent it" : ", which has not sent it");
        break;
    case WAITS_TAKING:
        add_rank(w, l, y.a);
        add(l, y.a < 0 ? "" : ", which has not taken what was sent to it");
        break;
    }
}

static uint64_t age(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

/* For how long it is waited for. That nobody does is only said where nobody is named. */
static void add_doubt(struct line *l, const struct waits_doubt *d, bool named)
{
    add(l, "%s%s%s", d->how, *d->why ? "; " : "", d->why);
    if (d->limit_ms >= 0)
        add(l, ": waiting %.3g s", d->limit_ms / 1e3);
    else if (d->waited_for)
        add(l, ": it is waited for without a limit");
    else if (!named)
        add(l, ": it is given time as long as nothing waits for it");
}

static void tell(struct waits *w, struct waits_reason *r, uint64_t now)
{
    char text[WAITS_LINE];
    struct line l = {text, 0};
    add_ranks(&l, r->rank, w->ranks, r->n);
    add(&l, r->n == 1 ? " has waited %.0f s in %s%s for " : " have waited %.0f s in %s%s for ",
        (double)age(now, r->since_ns) / (double)SECOND, r->call, r->calls ? " and other calls" : "");
    struct waits_doubt *d = r->why == WAITS_SILENT ? &w->doubt[r->a] : NULL;
    if (d && *d->how) {
        add(&l, "%s", r->direct ? "" : VIEW_NEEDS);
        add_node(w, &l, r->a);
        add(&l, ", which is ");
        add_doubt(&l, d, true);
        d->due = false;
        d->told = r->doubted = true;
    } else {
        add_why(w, &l, (struct why){r->why, r->a, r->b, !r->direct && r->why == WAITS_SILENT, !r->others});
    }
    w->say(w->user, text);
}

static void tell_end(const struct waits *w, const struct waits_reason *r)
{
    char text[WAITS_LINE];
    struct line l = {text, 0};
    add(&l, "the wait for ");
    switch (r->why) {
    case WAITS_SILENT:
    case WAITS_NODE:
        add_node(w, &l, r->a);
        break;
    case WAITS_LINK:
        add(&l, "the link between nodes %d and %d", r->a, r->b);
        break;
    case WAITS_VIEW:
        add(&l, "views and copies");
        break;
    default:
        add_rank(w, &l, r->a);
    }
    add(&l, " is over after %.0f s", (double)age(r->last_ns, r->begun_ns) / (double)SECOND);
    w->say(w->user, text);
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
            if (node_of(w, e->rank) != i || waits_is_stopped(w, e->rank))
                continue;
            struct why y = why(w, e);
            join(reason_of(w, y, now), e, y);
        }
}

/* Since the reason is there, when to say it: the i-th time, 0 the first. */
static uint64_t due(enum waits_why why, unsigned i)
{
    static const uint64_t in_the_way[] = {1, 30, 60}, odd[] = {5, 30, 60}, usual[] = {60, 600, 3600};
    const uint64_t *at = why <= WAITS_LINK ? in_the_way : why <= WAITS_VIEW ? odd : usual;
    return SECOND * (i < 2 ? at[i] : at[2] * (i - 1));
}

/* A moment ago a line said how it is with the node, and for how long it is waited for. */
static bool just_told(const struct waits *w, const struct waits_reason *r, uint64_t now)
{
    uint64_t at = r->why == WAITS_SILENT ? w->doubt[r->a].alone_ns : 0;
    return at && now < at + 2 * DOUBT_NS;
}

static uint64_t look_at(struct waits *w, struct waits_reason *r, uint64_t now)
{
    if (r->n == 0)
        return r->last_ns + OVER_NS;
    /* it was there before it was seen, but not before somebody waited */
    uint64_t seen = r->first_ns > OVER_NS ? r->first_ns - OVER_NS : 0, from = r->since_ns > seen ? r->since_ns : seen;
    uint64_t at = from + due(r->why, r->lines);
    uint64_t held = w->doubts && r->why == WAITS_SILENT && !*w->doubt[r->a].how ? DOUBT_NS : HOLD_NS;
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
        tell(w, r, now);
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

void waits_answers(struct waits *w, int node)
{
    char text[WAITS_LINE];
    struct line l = {text, 0};
    if (node < 0 || node >= w->nodes)
        return;
    bool told = w->doubt[node].told;
    w->doubt[node] = (struct waits_doubt){0};
    add_node(w, &l, node);
    add(&l, " answers again");
    if (told)
        w->say(w->user, text);
}

/* Nobody waits for it, as far as is known, or who does was told with what was known then. */
static uint64_t tell_alone(struct waits *w, int node, uint64_t now)
{
    char text[WAITS_LINE];
    struct line l = {text, 0};
    struct waits_doubt *d = &w->doubt[node];
    if (!d->due)
        return UINT64_MAX;
    uint64_t hold =
        d->limit_ms >= 0 && d->limit_ms * 1e6 / 4 < (double)DOUBT_NS ? (uint64_t)(d->limit_ms * 1e6 / 4) : DOUBT_NS;
    if (now < d->since_ns + hold)
        return d->since_ns + hold;
    add_node(w, &l, node);
    add(&l, " is ");
    add_doubt(&l, d, false);
    d->due = false;
    d->told = true;
    d->alone_ns = d->limit_ms >= 0 ? now : 0;
    w->say(w->user, text);
    return UINT64_MAX;
}

uint64_t waits_tick(struct waits *w, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    find_reasons(w, now);
    for (struct waits_reason **link = &w->reasons, *r; (r = *link) != NULL;) {
        uint64_t at = look_at(w, r, now);
        if (r->n == 0 && now >= at) {
            if (r->lines && !r->doubted)
                tell_end(w, r);
            *link = r->next;
            reason_free(r);
            continue;
        }
        next = at < next ? at : next;
        link = &r->next;
    }
    for (int i = 0; i < w->nodes; i++) {
        uint64_t at = tell_alone(w, i, now);
        next = at < next ? at : next;
    }
    return next;
}

bool waits_text(const struct waits *w, int node, int i, uint64_t now, int *rank, char text[WAITS_LINE])
{
    struct line l = {text, 0};
    if (node < 0 || node >= w->nodes || i >= w->node[node].entries)
        return false;
    const struct waits_entry *e = &w->node[node].entry[i];
    *rank = e->rank;
    add(&l, "has waited %.1f s in %s for ", (double)age(now, e->since_ns) / (double)SECOND, e->call);
    struct why y = why(w, e);
    bool of_rank = y.why == WAITS_STOPPED || y.why >= WAITS_HOLDER,
         between_two = y.why == WAITS_LINK || y.why == WAITS_RING;
    bool direct = of_rank ? y.a == e->for_rank : y.why == WAITS_SILENT && node_of(w, e->for_rank) == y.a;
    if (e->whom != WAITS_NODE && e->whom != WAITS_VIEW && e->for_rank >= 0 && !between_two && !direct) {
        add_rank(w, &l, e->for_rank);
        add(&l, ", and that for ");
    }
    add_why(w, &l, y);
    return true;
}
