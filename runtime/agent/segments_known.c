/* Who knows of which segments: the other nodes, the ranks that wait for that, and who is born. */
#include "runtime/agent/segments_int.h"

#include <stdlib.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/said.h"
#include "runtime/base/fault.h"
#include "runtime/wire/segment_has.h"
#include "runtime/wire/segment_told.h"
#include "runtime/wire/system.h"

static struct msg_segment told_of(const struct store_segment *s)
{
    return (struct msg_segment){.seg = s->seg,
                                .number = s->instance,
                                .bytes_per_rank = s->bytes_per_rank,
                                .redundancy = s->redundancy,
                                .uneven = s->uneven};
}

static void tell(struct agent *a, int node, const struct msg_segment *m)
{
    struct wire w;
    msg_segment_encode(m, &w);
    agent_tell(a, node, &w, NULL);
}

static void ask(struct agent *a, int node, struct store_segment *s, struct msg_segment m)
{
    m.asks = true;
    s->said[node] = KEEL_IN_PROGRESS;
    tell(a, node, &m);
}

void segments_tell(struct agent *a, int node, const struct store_segment *s)
{
    struct msg_segment m = told_of(s);
    tell(a, node, &m);
}

bool segments_announce(struct agent *a, struct store_segment *s)
{
    if (!s->said && !(s->said = calloc((size_t)a->members, sizeof *s->said)))
        return false;
    for (int m = 0; m < a->members; m++)
        if (m != a->self && a->view.alive[m])
            ask(a, m, s, told_of(s));
    FAULT_POINT("segment.asked");
    return true;
}

static void say_has(struct agent *a, int node, uint32_t seg, keel_status status)
{
    struct wire w;
    msg_segment_has_encode(&(struct msg_segment_has){.seg = seg, .status = (int32_t)status}, &w);
    agent_tell(a, node, &w, NULL);
}

void segments_answer(struct agent *a, int node, uint32_t seg, keel_status status)
{
    peer_unhurried(&a->peers, node); /* the answer says more */
    FAULT_POINT("segment.answering");
    say_has(a, node, seg, status);
    FAULT_POINT("segment.answered");
}

void segments_here(struct agent *a, const struct store_segment *s)
{
    for (int m = 0; m < a->members; m++)
        if (m != a->self && a->view.alive[m])
            say_has(a, m, s->seg, KEEL_OK);
}

void segments_has(struct agent *a, int from, const struct wire *w)
{
    struct msg_segment_has m;
    msg_segment_has_decode(w, &m);
    struct store_segment *s = store_find(&a->store, m.seg);
    peer_unhurried(&a->peers, from);
    if (!s || !s->said)
        return; /* it was freed meanwhile, or nobody here has asked */
    s->said[from] = (keel_status)m.status;
    segments_acked(a);
}

static keel_status together(const struct agent *a, const struct store_segment *s, enum said_by by)
{
    return s && s->said ? said_together(&a->view, a->self, s->said, a->segments.silent, s->redundancy, by) : KEEL_OK;
}

bool segments_wait_for(const struct agent *a, int node)
{
    for (const struct seg_wait *w = a->segments.waits; w; w = w->next) {
        const struct store_segment *s = store_find(&a->store, w->seg);
        if (s && s->said && s->said[node] == KEEL_IN_PROGRESS)
            return true;
    }
    return a->segments.freeing && !agent_acked(a, node, a->segments.freed.told[node]);
}

static bool all_know_of_freed(const struct agent *a)
{
    for (int m = 0; m < a->members; m++)
        if (m != a->self && !agent_acked(a, m, a->segments.freed.told[m]))
            return false;
    return true;
}

static void show_known(const struct proc *p, uint64_t what)
{
    if (p->intents && atomic_load(&p->intents->known) < what)
        atomic_store(&p->intents->known, what);
}

/* It counts here already, as the rank may do without such calls for long, and die. */
static void tell_those_who_free(struct agent *a)
{
    for (struct proc *p = a->segments.freeing && all_know_of_freed(a) ? a->ranks.procs : NULL; p; p = p->next) {
        struct control reply = {.type = CONTROL_SEG_FREE, .id = p->freeing_id};
        if (!p->freeing)
            continue;
        p->freeing = false;
        a->segments.freeing--;
        p->counted = p->freeing_number > p->counted ? p->freeing_number : p->counted;
        show_known(p, KNOWN_ENDED(p->freeing_number));
        if (reply.id)
            a->ops.answer(a->ops.user, p, &reply, -1);
    }
}

static struct proc *of_wait(const struct agent *a, const struct seg_wait *w)
{
    struct proc *p = a->ranks.procs;
    while (p && p->id != w->proc)
        p = p->next;
    return p;
}

/* All ranks have agreed on it: who could not have it is to have it now, or to end. */
static void ask_again(struct agent *a, struct store_segment *s)
{
    struct msg_segment told = told_of(s);
    told.agreed = true;
    for (int m = 0; m < a->members; m++)
        if (m != a->self && a->view.alive[m] && s->said[m] != KEEL_OK && s->said[m] != KEEL_IN_PROGRESS)
            ask(a, m, s, told);
}

/* What a rank that allocates is told now; KEEL_IN_PROGRESS: nothing yet. */
static keel_status answer_to(struct agent *a, const struct seg_wait *w, const struct proc *p, keel_status all)
{
    struct store_segment *s = store_find(&a->store, w->seg);
    if (w->at_once)
        return p->freeing ? KEEL_IN_PROGRESS : together(a, s, SAID_BY_SILENT);
    if (w->seg >= SEGMENT_GROUP_FIRST || all == KEEL_OK)
        return all;
    ask_again(a, s);
    return KEEL_IN_PROGRESS;
}

/* True: there is nothing more to tell. */
static bool tell_who_allocates(struct agent *a, struct seg_wait *w)
{
    struct control reply = {.type = CONTROL_SEG_CREATE, .id = w->id, .seg = w->seg};
    struct proc *p = of_wait(a, w);
    keel_status all = together(a, store_find(&a->store, w->seg), SAID_BY_ALL);
    keel_status status = p && w->id ? answer_to(a, w, p, all) : KEEL_IN_PROGRESS;
    if (p && all == KEEL_OK)
        show_known(p, KNOWN_MADE(w->number));
    if (status != KEEL_IN_PROGRESS) {
        w->id = 0;
        reply.status = (int)status;
        a->ops.answer(a->ops.user, p, &reply, -1);
    }
    return !p || (status != KEEL_OK && status != KEEL_IN_PROGRESS) || (all == KEEL_OK && !w->id);
}

void segments_acked(struct agent *a)
{
    struct seg_wait **link = &a->segments.waits;
    tell_those_who_free(a);
    while (*link) {
        struct seg_wait *w = *link;
        if (!tell_who_allocates(a, w)) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        free(w);
    }
}

void segments_proc_gone(struct agent *a, const struct proc *proc)
{
    struct seg_wait **link = &a->segments.waits;
    a->segments.freeing -= proc->freeing;
    while (*link) {
        struct seg_wait *w = *link;
        if (w->proc != proc->id) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        free(w);
    }
}

static void tell_it_was_freed(struct agent *a, int node, uint32_t seg, uint64_t instance, keel_status status)
{
    struct wire w;
    msg_segment_freed_encode(&(struct msg_segment_freed){.seg = seg, .number = instance, .status = status}, &w);
    agent_tell(a, node, &w, NULL);
    a->segments.freed.told[node] = agent_position(a, node);
}

/* All that is known here, in the order in which it was heard of, so numbers ascend: whoever sends to it something about
 * a segment has told it of that before. */
static void introduce(struct agent *a, int node)
{
    for (struct store_segment *s = a->store.first; s; s = s->next) {
        if (s->seg == SYSTEM_SEGMENT)
            continue;
        struct msg_segment m = told_of(s);
        m.before = true;
        if (s->said)
            ask(a, node, s, m);
        else
            tell(a, node, &m);
    }
    for (const struct refused *f = a->segments.refused; f; f = f->next)
        tell_it_was_freed(a, node, f->seg, f->number, f->status);
    if (a->segments.freed.instance && segments_refused(&a->segments, a->segments.freed.segment) == KEEL_OK)
        tell_it_was_freed(a, node, a->segments.freed.segment, a->segments.freed.instance, KEEL_OK);
    uint32_t last = a->store.limit - 1;
    if (a->store.limit > 0 && last != a->segments.freed.segment && store_was_freed(&a->store, last) &&
        segments_refused(&a->segments, last) == KEEL_OK)
        tell_it_was_freed(a, node, last, 0, KEEL_OK);
}

void segments_meet(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_BORN && (int)events[i].a != a->self && a->view.alive[events[i].a] &&
            a->view.alive[a->self])
            introduce(a, (int)events[i].a);
}
