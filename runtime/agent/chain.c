#include "runtime/agent/chain.h"

#include <stdlib.h>

#include "runtime/agent/agent.h"
#include "runtime/base/fault.h"
#include "runtime/wire/relayed.h"

/* Something that was passed on, and not yet acknowledged. */
struct passed_on {
    struct passed_on *next;
    int from, to;
    uint64_t from_seq, to_seq;
};

bool chain_init(struct chain_relays *r, int members)
{
    *r = (struct chain_relays){.tail = &r->first, .of = calloc((size_t)members, sizeof *r->of)};
    return r->of != NULL;
}

void chain_fini(struct chain_relays *relays)
{
    for (struct passed_on *r = relays->first, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    free(relays->of);
    *relays = (struct chain_relays){0};
}

bool chain_keeps(const struct view_copyset *g)
{
    return g->copies > 2 && g->copy[1].whole && g->copy[2].whole;
}

void chain_mark(const struct agent *a, int copyset, struct chain_mark *mark)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    *mark = (struct chain_mark){0};
    for (int i = 1; i < g->copies; i++) {
        if (i > 1 && g->copy[i].whole)
            continue;
        mark->node[mark->nodes] = g->copy[i].node;
        mark->seq[mark->nodes++] = agent_position(a, g->copy[i].node);
    }
    if (chain_keeps(g)) {
        mark->relayed = a->relays.of[g->copy[1].node].sent;
        mark->behind = g->copy[2].node;
    }
}

void chain_send(struct agent *a, int copyset, const struct wire *w, const void *body, struct chain_mark *mark)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    for (int i = 1; i < g->copies; i++) {
        if (i > 1 && g->copy[i].whole)
            continue;
        bool relayed = i == 1 && chain_keeps(g);
        struct wire out = *w;
        chain_ask_for_word(&out, relayed);
        FAULT_POINT("replica.forwarding");
        agent_tell(a, g->copy[i].node, &out, body);
        if (relayed) /* one that is cut off never passes it on: it will be sent again */
            a->relays.of[g->copy[i].node].sent = agent_position(a, g->copy[i].node);
    }
    chain_mark(a, copyset, mark);
}

/* The first node of the mark passes on what it gets: has it said that it did? living: but for nodes that it does not
 * wait for. */
static bool is_relayed(const struct agent *a, const struct chain_mark *m, bool living)
{
    const struct relays_of *first = &a->relays.of[m->node[0]];
    return !m->relayed || !a->view.alive[m->node[0]] || (living ? first->passed_living : first->passed) >= m->relayed;
}

bool chain_reached(const struct agent *a, const struct chain_mark *m)
{
    for (int i = 0; i < m->nodes; i++)
        if (!agent_acked(a, m->node[i], m->seq[i]))
            return false;
    return is_relayed(a, m, false);
}

static bool is_waited_for(const struct agent *a, int node)
{
    return !a->fences.node[node] && !a->fences.doomed[node];
}

bool chain_reached_living(const struct agent *a, const struct chain_mark *m)
{
    for (int i = 0; i < m->nodes; i++)
        if (is_waited_for(a, m->node[i]) && !agent_acked(a, m->node[i], m->seq[i]))
            return false;
    return m->nodes == 0 || !is_waited_for(a, m->node[0]) || is_relayed(a, m, true) || !is_waited_for(a, m->behind);
}

bool chain_is_before(const struct agent *a, int copyset, int from)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    int place = view_copy_at(g, a->self);
    return place > 0 && g->copy[g->copy[place].whole ? place - 1 : 0].node == from;
}

void chain_came(struct chain_relays *r, int from)
{
    r->of[from].due = r->due = true;
}

void chain_relay(struct agent *a, int copyset, int from, const struct wire *w, const void *body)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    int place = view_copy_at(g, a->self), next = place + 1;
    if (!g->copy[place].whole || next >= g->copies || !g->copy[next].whole)
        return;
    FAULT_POINT("replica.relaying");
    struct passed_on *r = malloc(sizeof *r);
    if (!r) {
        agent_break(a, "out of memory for what is passed on");
        return;
    }
    struct wire relayed = *w;
    chain_ask_for_word(&relayed, false); /* nobody comes behind it */
    agent_tell(a, g->copy[next].node, &relayed, body);
    *r = (struct passed_on){
        .from = from, .from_seq = w->seq, .to = g->copy[next].node, .to_seq = agent_position(a, g->copy[next].node)};
    *a->relays.tail = r;
    a->relays.tail = &r->next;
}

bool chain_drained(const struct agent *a)
{
    for (const struct passed_on *r = a->relays.first; r; r = r->next)
        if (is_waited_for(a, r->to) && !agent_acked(a, r->to, r->to_seq))
            return false;
    return true;
}

static void drop_acked(struct agent *a)
{
    struct passed_on **link = &a->relays.first;
    while (*link) {
        struct passed_on *r = *link;
        if (agent_acked(a, r->to, r->to_seq)) {
            *link = r->next;
            free(r);
        } else {
            link = &r->next;
        }
    }
    a->relays.tail = link;
}

/* Up to where everything of that node was passed on and acknowledged; living: by nodes that are waited for. */
static uint64_t relayed_up_to(const struct agent *a, int from, bool living)
{
    uint64_t position = a->peers.peer[from].received;
    for (const struct passed_on *r = a->relays.first; r; r = r->next)
        if (r->from == from && r->from_seq <= position && (!living || is_waited_for(a, r->to)))
            position = r->from_seq - 1;
    return position;
}

static void tell(struct agent *a, int from)
{
    struct msg_relayed m = {.up_to = relayed_up_to(a, from, false), .living = relayed_up_to(a, from, true)};
    struct wire w;
    struct relays_of *theirs = &a->relays.of[from];
    theirs->due = m.up_to < a->peers.peer[from].received;
    if (m.up_to + m.living == theirs->told)
        return;
    theirs->told = m.up_to + m.living; /* neither goes back */
    msg_relayed_encode(&m, &w);
    agent_tell(a, from, &w, NULL);
}

void chain_step(struct agent *a)
{
    struct chain_relays *r = &a->relays;
    if (!r->first && !r->due)
        return;
    drop_acked(a);
    r->due = false;
    for (int from = 0; from < a->members; from++)
        if (r->of[from].due) {
            tell(a, from);
            r->due = r->due || r->of[from].due;
        }
}

static void raise_to(uint64_t *value, uint64_t to)
{
    if (to > *value)
        *value = to;
}

void chain_told(struct chain_relays *r, int from, const struct wire *w)
{
    struct msg_relayed m;
    msg_relayed_decode(w, &m);
    raise_to(&r->of[from].passed, m.up_to);
    raise_to(&r->of[from].passed_living, m.living);
}
