#include "runtime/agent/segments_int.h"

#include <stdlib.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/health.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/said.h"
#include "runtime/agent/strong.h"
#include "runtime/base/log.h"
#include "runtime/wire/segment_told.h"
#include "runtime/wire/system.h"

bool segments_init(struct segment_book *s, int members)
{
    *s = (struct segment_book){.freed.told = calloc((size_t)members, sizeof *s->freed.told),
                               .silent = calloc((size_t)members, sizeof *s->silent)};
    return s->freed.told && s->silent;
}

void segments_fini(struct segment_book *s)
{
    for (struct seg_wait *w = s->waits, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    for (struct refused *f = s->refused, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(s->freed.told);
    free(s->silent);
    *s = (struct segment_book){0};
}

void segments_decline(struct agent *a)
{
    struct view_event e = {.type = VIEW_DECLINED, .a = (uint32_t)a->self};
    if (a->segments.declined)
        return;
    a->segments.declined = true;
    log_warn("no memory for another node's data: they stay without a copy here");
    a->ops.submit(a->ops.user, &e);
}

keel_status segments_make_copies(struct agent *a, struct store_segment *s)
{
    for (int slot = 0; slot < a->view.nodes; slot++) {
        const struct view_copyset *g = &a->view.copyset[copyset_of(slot, s->redundancy)];
        if (view_copy_at(g, a->self) < 0)
            continue;
        bool whole = g->copy[view_copy_at(g, a->self)].whole || repair_is_filled(a, copyset_of(slot, s->redundancy));
        keel_status status = whole || !a->segments.declined ? store_make(&a->store, s, slot, g->generation) : KEEL_OK;
        if (status != KEEL_OK && whole)
            return status;
        if (status != KEEL_OK)
            segments_decline(a);
    }
    health_stakes(a);
    return KEEL_OK;
}

bool segments_use(const struct store *store, unsigned redundancy)
{
    for (const struct store_segment *s = store->first; s; s = s->next)
        if (s->redundancy == redundancy)
            return true;
    return false;
}

bool segments_hold(const struct store *store, unsigned redundancy)
{
    for (const struct store_segment *s = store->first; s; s = s->next)
        if (s->redundancy == redundancy && s->seg != SYSTEM_SEGMENT && s->bytes_per_rank > 0)
            return true;
    return false;
}

uint32_t segments_complete(const struct agent *a, uint64_t instances)
{
    uint32_t n = a->store.limit;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        if (s->instance > instances && s->seg < n)
            n = s->seg;
    for (const struct refused *f = a->segments.refused; f; f = f->next)
        if (f->number > instances && f->seg < n)
            n = f->seg;
    return n;
}

/* The last of them is known: as allocated, freed or refused. */
bool segments_heard(const struct agent *a, uint64_t instances)
{
    uint64_t last = a->view.born_at[a->self] ? a->segments.freed.instance : instances;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        if (s->seg < SEGMENT_GROUP_FIRST && s->instance > last)
            last = s->instance;
    for (const struct refused *f = a->segments.refused; f; f = f->next)
        last = f->number > last ? f->number : last;
    return last >= instances;
}

/* ---- requests of ranks ---- */

keel_status segments_refused(const struct segment_book *s, uint32_t seg)
{
    const struct refused *f = s->refused;
    while (f && f->seg != seg)
        f = f->next;
    return f ? f->status : KEEL_OK;
}

static void remember_refusal(struct agent *a, uint32_t seg, uint64_t number, keel_status status)
{
    struct refused *f = segments_refused(&a->segments, seg) == KEEL_OK ? malloc(sizeof *f) : NULL;
    if (!f && segments_refused(&a->segments, seg) == KEEL_OK)
        agent_break(a, "out of memory for what an allocation came to"); /* to who joins it would look freed */
    if (!f)
        return;
    *f = (struct refused){.next = a->segments.refused, .seg = seg, .number = number, .status = status};
    a->segments.refused = f;
    if (a->store.limit <= seg)
        a->store.limit = seg + 1; /* where it never was, too */
}

static void refuse(struct agent *a, struct proc *proc, const struct control *r, keel_status status)
{
    struct control reply = *r;
    reply.status = (int)status;
    a->ops.answer(a->ops.user, proc, &reply, -1);
}

/* There was no memory for it, perhaps, and now there is. */
static void is_here(struct agent *a, struct store_segment *s)
{
    if (s->starved)
        segments_here(a, s);
    s->starved = false;
}

void segments_create(struct agent *a, struct proc *proc, const struct control *r)
{
    if (store_was_freed(&a->store, r->seg)) {
        struct control reply = *r;
        reply.status = (int)segments_refused(&a->segments, r->seg);
        reply.a = 1; /* it was freed: a restarted rank repeats an old allocation */
        reply.b = r->seg == a->segments.freed.segment ? (int64_t)a->segments.freed.instance : 0;
        a->ops.answer(a->ops.user, proc, &reply, -1);
        return;
    }
    struct seg_wait *wait = malloc(sizeof *wait);
    bool known = store_find(&a->store, r->seg) != NULL;
    keel_status status =
        wait ? store_define(&a->store, r->seg, r->bytes, r->redundancy, (uint64_t)r->b) : KEEL_ERR_NOMEM;
    struct store_segment *s = status == KEEL_OK ? store_find(&a->store, r->seg) : NULL;
    if (s) {
        s->uneven = r->uneven != 0;
        status = segments_make_copies(a, s);
    }
    if (s && status == KEEL_OK)
        is_here(a, s);
    if (s && status == KEEL_OK && !s->said && !segments_announce(a, s))
        status = KEEL_ERR_NOMEM;
    if (status != KEEL_OK) {
        if (s && !known) {
            store_free(&a->store, r->seg);
            if (a->store.limit == r->seg + 1)
                a->store.limit = r->seg; /* it never was */
        }
        free(wait);
        refuse(a, proc, r, status);
        return;
    }
    *wait = (struct seg_wait){.next = a->segments.waits,
                              .proc = proc->id,
                              .id = r->id,
                              .at_once = r->a == 1,
                              .seg = r->seg,
                              .number = (uint64_t)r->b};
    a->segments.waits = wait;
    segments_acked(a);
}

static bool is_being_filled(const struct agent *a, uint32_t seg, int slot)
{
    const struct store_segment *s = slot >= 0 && slot < a->view.nodes ? store_find(&a->store, seg) : NULL;
    const struct view_copyset *g = s ? &a->view.copyset[copyset_of(slot, s->redundancy)] : NULL;
    int at = g ? view_copy_at(g, a->self) : -1;
    return at >= 0 && !g->copy[at].whole;
}

/* Not what is being filled: who loads there finds zeros, and what is stored there is overwritten. */
void segments_map(struct agent *a, struct proc *proc, const struct control *r)
{
    const struct store_copy *copy = store_copy(&a->store, r->seg, r->slot);
    struct control reply = *r;
    bool filled = is_being_filled(a, r->seg, r->slot);
    /* all nodes know a group's segment before anybody has it */
    bool gone = store_was_freed(&a->store, r->seg) || (r->seg >= SEGMENT_GROUP_FIRST && !store_find(&a->store, r->seg));
    copy = filled ? NULL : copy;
    reply.status = filled ? KEEL_IN_PROGRESS
                   : copy ? copy->lost ? KEEL_ERR_DATA_LOST : KEEL_OK
                   : gone ? KEEL_ERR_ARG
                          : KEEL_ERR_STATE;
    reply.bytes = copy ? copy->bytes : 0;
    if (r->a && reply.status == KEEL_OK)
        atomic_store(&a->page->tracked, 1);
    a->ops.answer(a->ops.user, proc, &reply, reply.status == KEEL_OK ? copy->handle : -1);
}

/* Only the last one can have been freed by a barrier instance that a joining rank has still to enter. */
static void forget(struct agent *a, uint32_t seg, uint64_t instance, keel_status status)
{
    if (status != KEEL_OK && seg < SEGMENT_GROUP_FIRST)
        remember_refusal(a, seg, instance, status);
    if (instance > a->segments.freed.instance) {
        a->segments.freed.segment = seg;
        a->segments.freed.instance = instance;
    }
    for (int copyset = 0; copyset < agent_copysets(a); copyset++)
        dedup_pool_forget(&a->dedup[copyset], seg);
    store_free(&a->store, seg);
    strong_segment_freed(a, seg);
    health_stakes(a);
}

/* Each node whose ranks free it says so. When everybody has heard it, it counts as done, and who joins where it is
 * done finds it so. */
static void tell_freed(struct agent *a, const struct control *r)
{
    struct wire w;
    msg_segment_freed_encode(&(struct msg_segment_freed){.seg = r->seg, .number = (uint64_t)r->b, .status = r->a}, &w);
    a->segments.freed.by_us = r->seg;
    for (int m = 0; m < a->members; m++)
        if (m != a->self && a->view.alive[m]) {
            agent_tell(a, m, &w, NULL);
            a->segments.freed.told[m] = agent_position(a, m);
        }
}

void segments_free(struct agent *a, struct proc *proc, const struct control *r)
{
    keel_status status = (keel_status)r->a;
    bool of_all = r->seg < SEGMENT_GROUP_FIRST && r->seg != SYSTEM_SEGMENT;
    bool known =
        store_find(&a->store, r->seg) || (status != KEEL_OK && segments_refused(&a->segments, r->seg) == KEEL_OK);
    if (known && r->seg != SYSTEM_SEGMENT)
        forget(a, r->seg, (uint64_t)r->b, status);
    if (of_all ? a->segments.freed.by_us != r->seg : known && r->seg != SYSTEM_SEGMENT)
        tell_freed(a, r);
    if (!of_all) {
        refuse(a, proc, r, KEEL_OK);
        return;
    }
    a->segments.freeing += !proc->freeing;
    proc->freeing = true;
    proc->freeing_id = r->id;
    proc->freeing_number = (uint64_t)r->b;
    segments_acked(a);
}

/* Who was born in a view that the sender did not know yet has not heard it, and may not hear it if the sender dies
 * now. */
static void pass_on(struct agent *a, const struct wire *w)
{
    for (int node = a->view.nodes + a->view.spares; node < a->view.next_id; node++)
        if (node != a->self && a->view.alive[node] && a->view.born_at[node] > w->epoch) {
            struct wire copy = *w;
            agent_tell(a, node, &copy, NULL);
        }
}

/* Heard of only now, it was there as well. */
static void freed(struct agent *a, const struct msg_segment_freed *m)
{
    if (a->store.limit <= m->seg && m->seg < SEGMENT_GROUP_FIRST)
        a->store.limit = m->seg + 1;
    forget(a, m->seg, m->number, (keel_status)m->status);
}

/* Of a segment that was there before this node was born: copies that are here instead of others, all of which died in
 * the same view or since. The commit of that view found no segment to mark. */
static void lose_what_was_before(struct agent *a, struct store_segment *s)
{
    for (int slot = 0; slot < a->view.nodes; slot++) {
        const struct view_copyset *g = &a->view.copyset[copyset_of(slot, s->redundancy)];
        if (view_copy_at(g, a->self) >= 0 && g->lost_at > 0 && g->lost_at >= a->view.born_at[a->self])
            store_mark_lost(&a->store, s, slot);
    }
}

/* What was agreed on nobody can refuse any more. A rank that comes to it here waits for memory, as it does in a dead
 * one's place. */
static void owe(struct agent *a, struct store_segment *s)
{
    if (s)
        s->agreed = true;
    if (!s || !ranks_come_to(a, s->instance))
        agent_break(a, "no memory for a segment that all ranks have");
}

/* It cannot be here: whoever asks refuses it to a rank, which tells all others; a rank here that allocates it, too,
 * tries again. Of a group's nobody may be left who frees it: it is as if nothing had been told. */
static void lack(struct agent *a, struct store_segment *s, bool known)
{
    if (s && s->seg >= SEGMENT_GROUP_FIRST && !known)
        store_free(&a->store, s->seg);
    else if (s)
        s->starved = true;
}

/* What became of it here. */
static keel_status made(struct agent *a, const struct msg_segment *m)
{
    if (store_was_freed(&a->store, m->seg))
        return KEEL_OK; /* who asks will hear of that */
    bool known = store_find(&a->store, m->seg) != NULL;
    keel_status status = store_define(&a->store, m->seg, m->bytes_per_rank, m->redundancy, m->number);
    struct store_segment *s = store_find(&a->store, m->seg);
    if (status == KEEL_OK)
        status = segments_make_copies(a, s);
    if (status == KEEL_ERR_MISMATCH) {
        log_warn("segment %u: another node's ranks allocate it with other arguments", m->seg);
        return KEEL_OK; /* the ranks report it */
    }
    if (s && !known && m->before)
        lose_what_was_before(a, s);
    if (s)
        s->uneven = s->uneven || m->uneven;
    if (s && status == KEEL_OK)
        is_here(a, s);
    else
        lack(a, s, known);
    if (status != KEEL_OK && m->agreed)
        owe(a, s);
    return status;
}

void segments_told(struct agent *a, int from, const struct wire *w)
{
    struct msg_segment segment;
    struct msg_segment_freed gone;
    pass_on(a, w);
    if (msg_segment_is_freed(w)) {
        msg_segment_freed_decode(w, &gone);
        freed(a, &gone);
    } else {
        msg_segment_decode(w, &segment);
        keel_status status = made(a, &segment);
        if (segment.asks && (status == KEEL_OK || !segment.agreed))
            segments_answer(a, from, segment.seg, status);
    }
    ranks_begin(a);
}

/* ---- views ---- */

/* The rank that waits for memory for it may be gone. */
static void feed(struct agent *a, struct store_segment *s)
{
    if (segments_make_copies(a, s) == KEEL_OK)
        is_here(a, s);
    else if (s->agreed)
        owe(a, s);
}

void segments_view_committed(struct agent *a, const struct view_copyset *before)
{
    said_silent(&a->view, a->segments.silent);
    for (struct store_segment *s = a->store.first; s; s = s->next) {
        if (s->starved)
            feed(a, s);
        for (int slot = 0; slot < a->view.nodes; slot++) {
            int copyset = copyset_of(slot, s->redundancy);
            const struct view_copyset *g = &a->view.copyset[copyset];
            int at = view_copy_at(g, a->self);
            if (g->generation == before[copyset].generation)
                continue;
            if (a->segments.declined && at >= 0 && g->copy[at].whole && !s->copy[slot].base && !s->copy[slot].lost &&
                g->lost_at != a->view.epoch && !s->starved)
                agent_break(a, "a copy counts as whole for which there was no memory"); /* it was called so before */
            int was = view_copy_at(&before[copyset], a->self);
            if (at < 0 && was >= 0 && before[copyset].copy[was].whole)
                store_leave(&a->store, s, slot); /* processes may have it mapped */
            else if (at < 0)
                store_drop(&a->store, s, slot);
            else if (g->lost_at == a->view.epoch)
                store_mark_lost(&a->store, s, slot);
            else if (store_rekey(&a->store, s, slot, g->generation) != KEEL_OK)
                agent_break(a, "memory cannot be registered");
        }
    }
}
