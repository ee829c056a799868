/* Why a rank waits: along the chain of those that wait for each other. Pure. */
#include "pm/wire/waits_parts.h"

#include <string.h>

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

/* For another thread of its process. */
static bool is_of_own(const struct waits_entry *e)
{
    return e->whom == WAITS_HOLDER && e->for_rank == e->rank;
}

/* A wait of the rank's: of several threads' the first that is not for another one of them. */
static const struct waits_entry *wait_of(const struct waits *w, int rank)
{
    int node = waits_node_of(w, rank);
    const struct waits_entry *own = NULL;
    for (int i = 0; node >= 0 && node < w->nodes && i < w->node[node].entries; i++) {
        const struct waits_entry *e = &w->node[node].entry[i];
        if (e->rank == rank && !is_of_own(e))
            return e;
        own = e->rank == rank ? e : own;
    }
    return own;
}

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

/* Along the chain. In one collective ranks wait for each other in turns: who waits in the same call is passed through,
 * and that is no ring unless nobody outside of it is waited for. */
static struct why why_of(const struct waits *w, const struct waits_entry *e)
{
    struct why found;
    const struct waits_entry *first = e;
    bool same = true;
    for (int steps = 0; steps <= w->ranks; steps++) {
        int here = waits_node_of(w, e->rank), there = waits_node_of(w, e->for_rank);
        if (e->whom == WAITS_NODE)
            return node_why(w, here, e->for_node);
        if (e->whom == WAITS_VIEW)
            return view_why(w);
        if (e->whom == WAITS_MEMORY)
            return (struct why){.why = WAITS_MEMORY, .a = e->rank, .b = -1};
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
struct why waits_find_why(const struct waits *w, const struct waits_entry *e)
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
