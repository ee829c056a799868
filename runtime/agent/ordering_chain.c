/* Who is next to this node in the chain of sets, and what they say. */
#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/ordering_int.h"
#include "runtime/agent/repair.h"
#include "runtime/base/fault.h"
#include "runtime/wire/order.h"

struct order_late {
    struct order_late *next;
    int from;
    struct wire wire;
    uint8_t body[];
};

/* ---- the chain ---- */

/* The node that holds the part of that class in that set, as one of the chain; -1: none does. */
static int holder(const struct agent *a, int set, unsigned class)
{
    const struct ordering *o = &a->ordering;
    int slot = a->view.rank[replica_native(o->map, o->rank, set)].slot, node = a->view.began[slot];
    const struct view_copyset *g = &a->view.copyset[copyset_of(slot, class)];
    bool is = view_set_is_whole(&a->view, set) && a->view.alive[node] && g->copies > 0 && g->copy[0].node == node;
    return is ? node : -1;
}

static void find_neighbours(const struct agent *a, unsigned class, int *before, int *behind)
{
    const struct ordering *o = &a->ordering;
    *before = *behind = -1;
    if (!view_set_is_whole(&a->view, o->set))
        return;
    for (int s = 0; s < o->set; s++) {
        int node = holder(a, s, class);
        *before = node >= 0 ? node : *before;
    }
    for (int s = o->map->replicas - 1; s > o->set; s--) {
        int node = holder(a, s, class);
        *behind = node >= 0 ? node : *behind;
    }
}

/* Is the i-th rank of this node the i-th of its node in each set? */
static bool is_alike(const struct agent *a)
{
    const struct ordering *o = &a->ordering;
    for (int r = 0; r < a->view.ranks; r++)
        for (int s = 0; a->view.rank[r].slot == o->slot && s < o->map->replicas; s++)
            if (a->view.rank[replica_native(o->map, replica_of(o->map, r).rank, s)].index != a->view.rank[r].index)
                return false;
    return true;
}

/* The first rank of those that began on this node; the number of ranks: none has. */
static int first_of_node(const struct agent *a)
{
    int first = 0;
    while (first < a->view.ranks && a->view.began[a->view.rank[first].slot] != a->self)
        first++;
    return first;
}

static void begin(struct agent *a, int first)
{
    struct ordering *o = &a->ordering;
    o->map = a->view.replicas;
    o->slot = a->view.rank[first].slot;
    o->rank = replica_of(o->map, first).rank;
    o->set = replica_of(o->map, first).set;
    o->attempt = view_set_attempt(&a->view, o->set);
    o->alike = is_alike(a);
    for (unsigned class = 0; class < CLASSES; class ++) {
        struct ordered_part *p = &o->part[class];
        *p = (struct ordered_part){.agent = a, .class = class, .in = true};
        find_neighbours(a, class, &p->before, &p->behind);
        order_init(&p->order, p->before < 0, p->behind >= 0, &ordering_ops, p);
    }
}

void ordering_init(struct agent *a)
{
    struct ordering *o = &a->ordering;
    int first = first_of_node(a);
    o->late_tail = &o->late;
    if (a->view.replicas && first < a->view.ranks)
        begin(a, first);
}

void ordering_forget_late(struct ordering *o)
{
    for (struct order_late *l = o->late, *next; l; l = next) {
        next = l->next;
        free(l);
    }
}

/* ---- what other sets say ---- */

static void entries_came(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct msg_order m;
    msg_order_decode(w, &m);
    struct ordered_part *p = &a->ordering.part[m.class % CLASSES];
    size_t n = m.len / sizeof(struct order_entry);
    if (m.class >= CLASSES || !p->in || p->before != from || !n || w->epoch < a->ordering.joined)
        return;
    struct order_entry *entry = malloc(n * sizeof *entry);
    if (entry)
        memcpy(entry, body, n * sizeof *entry);
    FAULT_POINT("order.entries_came");
    if (!entry || !order_entries(&p->order, m.first, entry, n))
        agent_break(a, entry ? "entries of the leading set's order are missing, or there is no memory for them"
                             : "out of memory for the leading set's order");
    free(entry);
}

static void ack_came(struct agent *a, int from, const struct wire *w)
{
    struct msg_ordered m;
    msg_ordered_decode(w, &m);
    struct ordered_part *p = &a->ordering.part[m.class % CLASSES];
    if (m.class < CLASSES && p->in && p->behind == from && w->epoch >= a->ordering.joined)
        order_acked(&p->order, m.upto);
}

static bool must_wait(const struct agent *a)
{
    if (a->recovery.frozen || a->ordering.late)
        return true;
    for (unsigned class = 0; class < CLASSES; class ++)
        if (repair_holds(a, copyset_of(a->ordering.slot, class)))
            return true;
    return false;
}

void ordering_told(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct ordering *o = &a->ordering;
    if (!o->map)
        return;
    if (!must_wait(a)) {
        if (w->type == WIRE_ORDER)
            entries_came(a, from, w, body);
        else
            ack_came(a, from, w);
        return;
    }
    struct order_late *l = malloc(sizeof *l + w->len);
    if (!l) {
        agent_break(a, "out of memory for what another set says");
        return;
    }
    *l = (struct order_late){.from = from, .wire = *w};
    if (w->len)
        memcpy(l->body, body, w->len);
    *o->late_tail = l;
    o->late_tail = &l->next;
}

void ordering_unstash(struct agent *a)
{
    struct ordering *o = &a->ordering;
    struct order_late *l = o->late, *next;
    o->late = NULL;
    o->late_tail = &o->late;
    for (; l; l = next) {
        next = l->next;
        ordering_told(a, l->from, &l->wire, l->body);
        free(l);
    }
}

/* ---- views ---- */

static void look_at_chain(struct agent *a, struct ordered_part *p)
{
    int before, behind;
    find_neighbours(a, p->class, &before, &behind);
    if (before == p->before && behind == p->behind)
        return;
    p->before = before;
    p->behind = behind;
    FAULT_POINT("order.handing_over");
    if (!order_chain(&p->order, before < 0, behind >= 0))
        agent_break(a, "out of memory for an order that is to be decided here");
}

/* Ranks begin anew here: nobody knows what those before them had sent. */
static void begin_anew(struct agent *a, int first)
{
    struct ordering *o = &a->ordering;
    for (unsigned class = 0; o->map && class < CLASSES; class ++) {
        ordering_give_back(a, &o->part[class], true);
        order_fini(&o->part[class].order);
    }
    begin(a, first);
}

static void look_who_begins(struct agent *a)
{
    const struct ordering *o = &a->ordering;
    int first = a->view.replicas ? first_of_node(a) : a->view.ranks;
    if (first < a->view.ranks &&
        (!o->map || view_set_attempt(&a->view, replica_of(a->view.replicas, first).set) != o->attempt))
        begin_anew(a, first);
}

static void join(struct agent *a, struct ordered_part *p)
{
    find_neighbours(a, p->class, &p->before, &p->behind);
    if (!order_begin_anew(&p->order, p->before < 0, p->behind >= 0))
        agent_break(a, "a set joins while operations of this one are under way");
}

void ordering_view_committed(struct agent *a)
{
    struct ordering *o = &a->ordering;
    bool any_joins = a->view.joined != o->joined;
    look_who_begins(a);
    o->joined = a->view.joined;
    for (unsigned class = 0; o->map && class < CLASSES; class ++) {
        struct ordered_part *p = &o->part[class];
        bool is_whole = view_set_is_whole(&a->view, o->set);
        if (!p->in || view_set_is_coming(&a->view, o->set))
            continue;
        p->in = holder(a, o->set, class) == a->self;
        ordering_give_back(a, p, !p->in && (is_whole || a->partners)); /* whose set is retired is told so then */
        if (p->in && any_joins)
            join(a, p);
        else if (p->in)
            look_at_chain(a, p);
    }
}

bool ordering_waits(const struct agent *a)
{
    for (unsigned class = 0; a->ordering.map && class < CLASSES; class ++) {
        const struct ordered_part *p = &a->ordering.part[class];
        if (p->in && p->waiting)
            return true;
    }
    return false;
}

bool ordering_waits_for(const struct agent *a, int node)
{
    for (unsigned class = 0; a->ordering.map && class < CLASSES; class ++) {
        const struct ordered_part *p = &a->ordering.part[class];
        if (p->in &&
            ((p->behind == node && p->order.passed < p->order.known) || (p->before == node && p->order.helds > 0)))
            return true;
    }
    return false;
}
