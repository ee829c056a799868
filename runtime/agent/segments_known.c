/* Who knows of which segments: the other nodes, the ranks that wait for that, and who is born. */
#include "runtime/agent/segments_int.h"

#include <stdlib.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/ranks.h"
#include "runtime/wire/segment_told.h"
#include "runtime/wire/system.h"

void segments_tell(struct agent *a, int node, const struct store_segment *s)
{
    struct wire w;
    msg_segment_encode(&(struct msg_segment){.seg = s->seg,
                                             .number = s->instance,
                                             .bytes_per_rank = s->bytes_per_rank,
                                             .redundancy = s->redundancy,
                                             .uneven = s->uneven},
                       &w);
    agent_tell(a, node, &w, NULL);
}

bool segments_announce(struct agent *a, struct store_segment *s)
{
    if (!s->announced && !(s->announced = calloc((size_t)a->members, sizeof *s->announced)))
        return false;
    for (int m = 0; m < a->members; m++)
        if (m != a->self && a->view.alive[m]) {
            segments_tell(a, m, s);
            s->announced[m] = agent_position(a, m);
        }
    return true;
}

static bool everybody_knows(const struct agent *a, uint32_t seg)
{
    const struct store_segment *s = store_find(&a->store, seg);
    for (int m = 0; s && s->announced && m < a->members; m++)
        if (m != a->self && !agent_acked(a, m, s->announced[m]))
            return false;
    return true;
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

/* True: there is nothing more to tell. */
static bool tell_who_allocates(struct agent *a, struct seg_wait *w)
{
    struct control reply = {.type = CONTROL_SEG_CREATE, .id = w->id, .seg = w->seg};
    struct proc *p = of_wait(a, w);
    bool all = everybody_knows(a, w->seg);
    if (p && all)
        show_known(p, KNOWN_MADE(w->number));
    if (p && w->id && (w->at_once ? !p->freeing : all)) {
        w->id = 0;
        a->ops.answer(a->ops.user, p, &reply, -1);
    }
    return !p || (all && !w->id);
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
        segments_tell(a, node, s);
        if (s->announced)
            s->announced[node] = agent_position(a, node);
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
