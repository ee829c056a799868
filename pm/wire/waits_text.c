/* What is said of waits. Pure. */
#include "pm/wire/waits_parts.h"

#include "pm/wire/bytes.h"
#include "runtime/base/plural.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    add(l, "%s ", plural(n, "rank", "ranks"));
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

/* The same, set by set: "rank 3 of set 0 and ranks 0-2 of set 1". */
static void add_natives(const struct waits *w, struct line *l, const bool *is, int n)
{
    const struct replica_map *m = w->replicas;
    if (!m) {
        add_ranks(l, is, w->ranks, n);
        return;
    }
    bool *of_set = pm_alloc((size_t)m->ranks * sizeof *of_set);
    for (int s = 0, before = 0; s < m->replicas; s++) {
        int count = 0;
        for (int r = 0; r < m->ranks; r++) {
            of_set[r] = is[replica_native(m, r, s)];
            count += of_set[r];
        }
        if (!count)
            continue;
        add(l, before ? " and " : "");
        add_ranks(l, of_set, m->ranks, count);
        add(l, " of set %d", s);
        before += count;
    }
    free(of_set);
}

static void add_node(const struct waits *w, struct line *l, int node)
{
    add(l, w->names ? "node %d (%s)" : "node %d", node, w->names ? w->names[node] : "");
}

static const char *name_of(const struct waits *w, int rank, char out[REPLICA_NAME])
{
    static const struct replica_map none = {.replicas = 0};
    return replica_name(w->replicas ? w->replicas : &none, rank, out);
}

static void add_rank(const struct waits *w, struct line *l, int rank)
{
    char name[REPLICA_NAME];
    if (rank < 0)
        add(l, "others");
    else if (waits_node_of(w, rank) >= 0)
        add(l, "%s (node %d)", name_of(w, rank, name), waits_node_of(w, rank));
    else
        add(l, "%s", name_of(w, rank, name));
}

/* For whom, and why. */
static void add_why(const struct waits *w, struct line *l, struct why y)
{
    char name[REPLICA_NAME];
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
        add(l, "each other: none can go on before %s does", name_of(w, y.a, name));
        break;
    case WAITS_NODE:
        add(l, "an answer of ");
        add_node(w, l, y.a);
        break;
    case WAITS_VIEW:
        add(l, "what the loss of a node has left to do: a view, or copies that are made equal");
        break;
    case WAITS_MEMORY:
        add(l, "memory, of which there is none for ");
        add_rank(w, l, y.a);
        break;
    case WAITS_LEAVING:
        add_rank(w, l, y.a);
        add(l, ", which has not left that node: the memory of the ranks there follows them when all have");
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

void waits_tell(struct waits *w, struct waits_reason *r, uint64_t now)
{
    char text[WAITS_LINE];
    struct line l = {text, 0};
    add_natives(w, &l, r->rank, r->n);
    add(&l, " %s waited %.0f s in %s%s for ", plural(r->n, "has", "have"),
        (double)age(now, r->since_ns) / (double)WAITS_SECOND, r->call, r->calls ? " and other calls" : "");
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

void waits_tell_end(const struct waits *w, const struct waits_reason *r)
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
    case WAITS_MEMORY:
        add(&l, "memory of ");
        add_rank(w, &l, r->a);
        break;
    default:
        add_rank(w, &l, r->a);
    }
    add(&l, " is over after %.0f s", (double)age(r->last_ns, r->begun_ns) / (double)WAITS_SECOND);
    w->say(w->user, text);
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
uint64_t waits_tell_alone(struct waits *w, int node, uint64_t now)
{
    char text[WAITS_LINE];
    struct line l = {text, 0};
    struct waits_doubt *d = &w->doubt[node];
    if (!d->due)
        return UINT64_MAX;
    uint64_t hold = d->limit_ms >= 0 && d->limit_ms * 1e6 / 4 < (double)WAITS_DOUBT_NS
                        ? (uint64_t)(d->limit_ms * 1e6 / 4)
                        : WAITS_DOUBT_NS;
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

bool waits_text(const struct waits *w, int node, int i, uint64_t now, int *rank, char text[WAITS_LINE])
{
    struct line l = {text, 0};
    if (node < 0 || node >= w->nodes || i >= w->node[node].entries)
        return false;
    const struct waits_entry *e = &w->node[node].entry[i];
    *rank = e->rank;
    add(&l, "has waited %.1f s in %s for ", (double)age(now, e->since_ns) / (double)WAITS_SECOND, e->call);
    struct why y = waits_find_why(w, e);
    bool of_rank = y.why == WAITS_STOPPED || y.why >= WAITS_LEAVING,
         between_two = y.why == WAITS_LINK || y.why == WAITS_RING;
    bool direct = of_rank ? y.a == e->for_rank : y.why == WAITS_SILENT && waits_node_of(w, e->for_rank) == y.a;
    if (e->whom != WAITS_NODE && e->whom != WAITS_VIEW && e->for_rank >= 0 && !between_two && !direct) {
        add_rank(w, &l, e->for_rank);
        add(&l, ", and that for ");
    }
    add_why(w, &l, y);
    return true;
}
