#include "pm/run/news_int.h"

#include "pm/plane.h"
#include "pm/wire/bytes.h"
#include "runtime/base/plural.h"
#include "runtime/base/signals.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 288 };

void news_init(struct news *n, int nodes, int spares, int room, int ranks, const int *rank_node, char **names,
               void (*say)(void *user, const char *line), void *user)
{
    *n = (struct news){.nodes = nodes,
                       .total = nodes + spares + room,
                       .ranks = ranks,
                       .names = names,
                       .rank = pm_alloc((size_t)ranks * sizeof *n->rank),
                       .alive = pm_alloc((size_t)(nodes + spares + room) * sizeof *n->alive),
                       .say = say,
                       .user = user};
    for (int r = 0; r < ranks; r++)
        n->rank[r].node = rank_node[r];
    for (int i = 0; i < n->total; i++)
        n->alive[i] = i < nodes + spares;
}

void news_fini(struct news *n)
{
    free(n->rank);
    free(n->alive);
}

void news_started(struct news *n, uint64_t now_ns)
{
    n->begin_ns = now_ns;
}

void news_keels(struct news *n)
{
    n->keels = true;
}

const char *news_node(const struct news *n, int node, char *out, unsigned size)
{
    if (n->names)
        snprintf(out, size, "node %d (%s)", node, n->names[node]);
    else
        snprintf(out, size, "node %d", node);
    return out;
}

/* ---- lines ---- */

void news_add(struct news_line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->text + l->len, sizeof l->text - l->len, fmt, ap);
    va_end(ap);
    l->len += n > 0 ? (size_t)n : 0;
    if (l->len >= sizeof l->text)
        l->len = sizeof l->text - 1;
}

/* "rank 3", "ranks 3, 5 and 8", "ranks 0, 1, 2 and 61 more" */
static void add_ranks(struct news_line *l, const int *ranks, int count)
{
    enum { SHOWN = 8 };
    news_add(l, "%s %d", plural(count, "rank", "ranks"), ranks[0]);
    for (int i = 1; i < count && i < SHOWN; i++)
        news_add(l, i == count - 1 ? " and %d" : ", %d", ranks[i]);
    if (count > SHOWN)
        news_add(l, " and %d more", count - SHOWN);
}

static void add_death(const struct news *n, struct news_line *l, int rank)
{
    char name[NAME];
    const struct news_rank *k = &n->rank[rank];
    char did[SIGNAL_DID];
    news_add(l, "rank %d (pid %d, %s) %s", rank, k->pid, news_node(n, k->died_at, name, sizeof name),
             signal_did(k->signal, did, sizeof did));
}

/* ---- ranks ---- */

static void leave_out(struct news *n, int rank)
{
    struct news_line l = {.len = 0};
    add_death(n, &l, rank);
    news_add(&l, "; the job goes on without it");
    if (n->fault.signal == 0 && fault_is_own(n->rank[rank].signal))
        n->fault = (struct fault){rank, n->rank[rank].signal, n->rank[rank].restarts > 0};
    n->rank[rank].signal = 0;
    n->rank[rank].refused = false;
    n->rank[rank].lost = true;
    n->lost_ranks++;
    n->say(n->user, l.text);
}

/* The view has the rank on another node than before, which lives: it was moved. */
static void take_move(struct news *n, int rank, int to)
{
    struct news_line l = {.len = 0};
    char name[NAME];
    struct news_rank *k = &n->rank[rank];
    k->done = false; /* its process ended so that another one goes on */
    if (!k->signal)
        return;
    k->refused = false; /* one line says it all */
    add_death(n, &l, rank);
    news_add(&l, "; it continues on %s", news_node(n, to, name, sizeof name));
    k->signal = 0;
    n->say(n->user, l.text);
}

/* What the view says of it, in the line. */
static void take_outcome(struct news *n, struct news_line *l, int rank)
{
    char name[NAME];
    struct news_rank *k = &n->rank[rank];
    n->lost_ranks += k->node < 0 && !k->lost;
    k->lost = k->node < 0;
    if (k->node >= 0)
        news_add(l, "rank %d continues on %s", rank, news_node(n, k->node, name, sizeof name));
    else
        news_add(l, "the job goes on without rank %d", rank);
}

void news_refused(struct news *n, int node, int rank, const char *why)
{
    struct news_line l = {.len = 0};
    char name[NAME];
    if (rank >= n->ranks || node < 0 || node >= n->total)
        return;
    news_node(n, node, name, sizeof name);
    if (rank < 0) {
        news_add(&l, "%s has no process ready for a rank: %s", name, why);
    } else {
        struct news_rank *k = &n->rank[rank];
        news_add(&l, "%s could not start rank %d: %s", name, rank, why);
        k->refused = k->node == node; /* else that view came by another node first */
        if (!k->refused && !n->replicas && !k->lost) {
            news_add(&l, "; ");
            take_outcome(n, &l, rank);
        }
    }
    n->say(n->user, l.text);
}

/* The view says what becomes of a rank that could not be started. */
static void refusal_ends(struct news *n, int rank)
{
    struct news_line l = {.len = 0};
    struct news_rank *k = &n->rank[rank];
    k->refused = false;
    if (n->replicas)
        return;
    take_outcome(n, &l, rank);
    n->say(n->user, l.text);
}

void news_ended(struct news *n, int node, int rank, int pid, int signal)
{
    if (rank < 0 || rank >= n->ranks || node < 0 || node >= n->total)
        return;
    struct news_rank *k = &n->rank[rank];
    bool moved = k->node >= 0 && k->node != node; /* that view came by another node first */
    if (moved && (signal == 0 || !n->alive[node]))
        return;
    k->done = signal == 0;
    k->signal = signal;
    k->pid = pid;
    k->died_at = node;
    if (n->replicas)
        k->signal = 0; /* news_sets tells of it */
    if (k->signal && k->node < 0)
        leave_out(n, rank); /* the view without it came by another node first */
    if (moved)
        take_move(n, rank, k->node);
}

void news_begun(struct news *n, int node, int rank)
{
    struct news_line l = {.len = 0};
    if (rank < 0 || rank >= n->ranks || !n->rank[rank].signal || n->rank[rank].died_at != node)
        return; /* it moved here when its node died: told with that */
    struct news_rank *k = &n->rank[rank];
    k->restarts++;
    n->restarts++;
    add_death(n, &l, rank);
    news_add(&l, "; started again, %d of %d", k->restarts, PLANE_MAX_RESTARTS);
    k->signal = 0;
    n->say(n->user, l.text);
}

/* ---- nodes ---- */

/* Nothing where no node is free: that needs no reason. */
static void add_no_way(const struct news *n, struct news_line *l)
{
    if (!n->method || n->free < 1)
        return;
    news_add(l, ": --substitution %s has no way to ", n->method);
    if (n->free == 1)
        news_add(l, "the node that is free");
    else
        news_add(l, "any of the %d nodes that are free", n->free);
}

static void node_died(struct news *n, int node, const int *rank_node, uint64_t now_ns)
{
    struct news_line l = {.len = 0};
    char name[NAME];
    int *ranks = pm_alloc((size_t)n->ranks * sizeof *ranks), had = 0;
    news_add(&l, "%s died %.1f s after the start", news_node(n, node, name, sizeof name),
             (double)(now_ns - n->begin_ns) / 1e9);
    for (int to = -1; to < n->total && !n->replicas; to++) {
        int count = 0;
        for (int r = 0; r < n->ranks; r++)
            if (n->rank[r].node == node && !n->rank[r].done && rank_node[r] == to)
                ranks[count++] = r;
        had += count;
        if (count == 0)
            continue;
        news_add(&l, "; ");
        if (to < 0)
            news_add(&l, "the job goes on without ");
        add_ranks(&l, ranks, count);
        if (to >= 0)
            news_add(&l, " %s on %s", plural(count, "continues", "continue"), news_node(n, to, name, sizeof name));
        else
            add_no_way(n, &l);
        n->lost_ranks += to < 0 ? count : 0;
        for (int i = 0; i < count; i++)
            n->rank[ranks[i]].signal = 0;
    }
    if (had > 0 && !n->keels)
        news_add(&l, " if the program calls keel_init");
    if (had == 0 && (!n->replicas || node >= n->nodes))
        news_add(&l, node >= n->nodes ? "; it was a spare" : "; no rank ran there");
    free(ranks);
    n->alive[node] = false;
    n->lost_nodes++;
    n->say(n->user, l.text);
}

void news_returned(struct news *n, int was, int node, uint64_t dead_ms)
{
    struct news_line l = {.len = 0};
    char name[NAME];
    n->alive[node] = true;
    n->returned++;
    news_add(&l, "%s was declared dead %.3g s ago, lives, and comes back as node %d, a spare",
             news_node(n, was, name, sizeof name), (double)dead_ms / 1e3, node);
    n->say(n->user, l.text);
}

void news_added(struct news *n, int node)
{
    struct news_line l = {.len = 0};
    char name[NAME];
    n->alive[node] = true;
    news_add(&l, "%s is new, a spare", news_node(n, node, name, sizeof name));
    n->say(n->user, l.text);
}

/* ---- nodes that are late, or cut off ---- */

static void say_waits(struct news *n, const char *line)
{
    (n->say_waits ? n->say_waits : n->say)(n->user, line);
}

void news_late(struct news *n, int node, double by_ms, int silence_ms)
{
    char line[NEWS_LINE], name[NAME];
    if (node < 0 || node >= n->total || by_ms < 2 * n->late_ms || by_ms <= 0)
        return;
    n->late_ms = by_ms;
    snprintf(line, sizeof line,
             "%s got no processor for %.2g s: --silence %dms has room for a quarter of itself, and a node may be taken "
             "for dead that is not",
             news_node(n, node, name, sizeof name), by_ms / 1e3, silence_ms);
    say_waits(n, line);
}

void news_cut_off(struct news *n, int node, double limit_ms)
{
    char line[NEWS_LINE], name[NAME];
    if (node < 0 || node >= n->total)
        return;
    snprintf(line, sizeof line, "%s hears too few of the others: it ends in %.3g s if that stays so",
             news_node(n, node, name, sizeof name), limit_ms / 1e3);
    say_waits(n, line);
}

void news_auto(struct news *n, int slot, const char *chose, int moves, const char *why, const char *prices)
{
    struct news_line l = {.len = 0};
    if (moves == 0)
        return; /* it was looked at, and nothing pays; or no node is free, which is told with the death */
    if (slot >= 0)
        news_add(&l, "auto: slot %d goes by %s, %d move%s", slot, chose, moves, moves == 1 ? "" : "s");
    else
        news_add(&l,
                 moves == 1 ? "auto: %d slot that lives goes elsewhere, as by %s"
                            : "auto: %d slots that live go elsewhere, as by %s",
                 moves, chose);
    news_add(&l, ": %s", why);
    if (prices[0])
        news_add(&l, " (seconds: %s)", prices);
    n->say(n->user, l.text);
}

/* ---- views ---- */

void news_view(struct news *n, uint64_t epoch, const int *rank_node, const bool *alive, uint64_t now_ns)
{
    if (epoch <= n->epoch)
        return;
    n->epoch = epoch;
    for (int i = 0; i < n->total; i++)
        if (n->alive[i] && !alive[i])
            node_died(n, i, rank_node, now_ns);
    for (int r = 0; r < n->ranks; r++) {
        if (rank_node[r] >= 0 && rank_node[r] != n->rank[r].node)
            take_move(n, r, rank_node[r]);
        bool elsewhere = rank_node[r] != n->rank[r].node;
        n->rank[r].node = rank_node[r];
        if (n->rank[r].signal && rank_node[r] < 0)
            leave_out(n, r);
        else if (n->rank[r].refused && elsewhere)
            refusal_ends(n, r);
    }
}

void news_over(struct news *n, int code)
{
    struct news_line l = {.len = 0};
    const char *comma = "";
    for (int r = 0; r < n->ranks && code == 0; r++)
        if (n->rank[r].signal)
            leave_out(n, r);
    if (!n->lost_nodes && !n->lost_ranks && !n->lost_sets && !n->lost_replicas && !n->restarts)
        return;
    news_add(&l, "the job ended with exit code %d after ", code);
    if (n->lost_nodes)
        news_add(&l, "the loss of %d %s", n->lost_nodes, plural(n->lost_nodes, "node", "nodes")), comma = ", ";
    if (n->returned)
        news_add(&l, " (%d came back)", n->returned);
    if (n->lost_ranks)
        news_add(&l, "%sthe loss of %d %s", comma, n->lost_ranks, plural(n->lost_ranks, "rank", "ranks")), comma = ", ";
    if (n->lost_sets)
        news_add(&l, "%sthe loss of %d %s", comma, n->lost_sets, plural(n->lost_sets, "set", "sets")), comma = ", ";
    if (n->lost_replicas)
        news_add(&l, "%sthe loss of %d %s", comma, n->lost_replicas, plural(n->lost_replicas, "replica", "replicas")),
            comma = ", ";
    if (n->restarts)
        news_add(&l, "%s%d %s of a rank", comma, n->restarts, plural(n->restarts, "restart", "restarts"));
    n->say(n->user, l.text);
}
