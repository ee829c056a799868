#include "runtime/agent/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/health.h"
#include "runtime/agent/parcels.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/segments.h"
#include "runtime/agent/store.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/signals.h"
#include "runtime/wire/complete.h"
#include "runtime/wire/system.h"

bool ranks_init(struct ranks *r, int count)
{
    *r = (struct ranks){.conn = calloc((size_t)count, sizeof(struct conn *)),
                        .joined = calloc((size_t)count, sizeof *r->joined),
                        .started = calloc((size_t)count, sizeof *r->started)};
    return r->conn && r->joined && r->started;
}

void ranks_fini(struct ranks *r)
{
    free((void *)r->conn);
    free(r->joined);
    free(r->started);
    *r = (struct ranks){0};
}

struct proc *ranks_find(const struct agent *a, int id)
{
    for (struct proc *p = a->ranks.procs; p; p = p->next)
        if (p->id == id)
            return p;
    return NULL;
}

struct proc *ranks_of(const struct agent *a, struct life life)
{
    for (struct proc *p = a->ranks.procs; p; p = p->next)
        if (life_equal(p->life, life))
            return p;
    return NULL;
}

/* ---- start and end ---- */

struct proc *ranks_started(struct agent *a, int id)
{
    struct proc *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct proc){.next = a->ranks.procs, .id = id, .life = LIFE_NONE};
    a->ranks.procs = p;
    return p;
}

struct conn *ranks_conn(struct agent *a, struct proc *proc)
{
    proc->conn = calloc(1, sizeof *proc->conn);
    if (!proc->conn)
        return NULL;
    proc->conn->node = a->self;
    proc->conn->life = LIFE_NONE;
    return proc->conn;
}

void ranks_welcome(struct agent *a, struct proc *proc, struct life life, struct tp_ep *ep, struct intent_page *intents,
                   struct control_welcome *w)
{
    uint64_t joined = life.incarnation > 0 ? a->ranks.joined[life.rank] : 0;
    proc->life = life;
    proc->intents = intents;
    atomic_store(&intents->segments, complete_segments(joined));
    atomic_store(&intents->collectives, complete_collectives(joined));
    a->ranks.started[life.rank] = life.incarnation + 1;
    struct conn *c = proc->conn;
    c->ep = ep;
    c->life = life;
    c->next = a->conns;
    a->conns = c;
    a->ranks.conn[life.rank] = c;
    *w = (struct control_welcome){.type = CONTROL_WELCOME,
                                  .rank = life.rank,
                                  .size = a->view.ranks,
                                  .node = a->self,
                                  .incarnation = life.incarnation,
                                  .restarted = life.incarnation > 0,
                                  .job = a->job,
                                  .instance = complete_segments(joined),
                                  .collectives = complete_collectives(joined),
                                  .segments = segments_complete(a, complete_segments(joined))};
    memcpy(w->secret, a->secret, sizeof w->secret);
    a->ranks.slides_due = true;
    parcels_look(a);
}

void ranks_exited(struct agent *a, struct proc *proc, int code, int signal)
{
    if (life_is_none(proc->life) || a->view.stopped) {
        ranks_free(a, proc);
        return;
    }
    /* What it has sent and not been heard is dropped with the connection when the view says that it is dead. */
    proc->exited = true;
    struct view_event e = view_event_of_life(signal ? VIEW_RANK_DEAD : VIEW_RANK_DONE, proc->life);
    e.c = signal == SIGNAL_HIDDEN ? 0 : (uint32_t)(signal ? signal : code);
    e.d = proc->intents && atomic_load(&proc->intents->open) != 0;
    a->ops.submit(a->ops.user, &e);
}

void ranks_refused(struct agent *a, struct life life)
{
    struct view_event e = view_event_of_life(VIEW_REFUSED, life);
    e.c = (uint32_t)a->self;
    FAULT_POINT("procs.refused");
    a->ops.submit(a->ops.user, &e);
}

void ranks_ended_job(struct agent *a, struct proc *proc, int code)
{
    struct view_event stop = {.type = VIEW_STOP, .a = (uint32_t)code};
    proc->exited = true;
    a->ops.submit(a->ops.user, &stop);
}

/* How long it took from the question to the view in which the rank is elsewhere. */
static void look_at_move(struct agent *a, const struct proc *proc)
{
    int rank = proc->life.rank;
    if (rank >= 0 && proc->released && a->view.rank[rank].moved.epoch == a->view.epoch &&
        a->view.rank[rank].moved.from == a->self)
        weighing_left(a, a->now - proc->released_at);
}

void ranks_free(struct agent *a, struct proc *proc)
{
    look_at_move(a, proc);
    struct proc **link = &a->ranks.procs;
    while (*link != proc)
        link = &(*link)->next;
    a->recovery.complete = ranks_complete(a);
    *link = proc->next;
    segments_proc_gone(a, proc);
    if (proc->conn && !life_is_none(proc->life))
        agent_drop_conn(a, proc->conn);
    else
        free(proc->conn);
    a->ops.forgotten(a->ops.user, proc);
    free(proc);
}

/* ---- what it says ---- */

/* The rank has given up operations that may still come, or be in some copies only. */
static void take_doubts(struct agent *a, struct proc *proc)
{
    uint32_t told = proc->intents ? atomic_load(&proc->intents->doubted) : 0;
    struct view_event e = view_event_of_life(VIEW_RANK_DOUBT, proc->life);
    if (proc->doubts_told == told)
        return;
    e.c = told - proc->doubts_told - 1;
    e.d = (int32_t)(atomic_load(&proc->intents->unequal) - proc->doubts_told) <= 0;
    proc->doubts_told = told;
    a->ops.submit(a->ops.user, &e);
}

/* Each process says it; one event is enough, as the view forgets nothing. */
void ranks_needs(struct agent *a, uint32_t needs)
{
    struct view_event e = {.type = VIEW_NEEDS, .a = needs};
    if (a->ranks.needs_told & needs)
        return;
    a->ranks.needs_told |= needs;
    a->ops.submit(a->ops.user, &e);
}

void ranks_writes(struct agent *a, int rank)
{
    const struct view_event e = {.type = VIEW_NEEDS, .a = NEEDS_FILES, .b = (uint32_t)rank};
    a->ops.submit(a->ops.user, &e);
}

static void joins(struct agent *a, const struct proc *proc, const struct control *r)
{
    const struct view_event e = {.type = VIEW_SET_JOINS, .a = (uint32_t)r->a, .b = (uint32_t)r->b};
    if (a->view.replicas && r->a == replica_of(a->view.replicas, proc->life.rank).set)
        a->ops.submit(a->ops.user, &e);
}

void ranks_control(struct agent *a, struct proc *proc, const struct control *r)
{
    struct view_event e = view_event_of_life(VIEW_RANK_LEFT, proc->life);
    struct control reply = *r;
    switch (r->type) {
    case CONTROL_SEG_CREATE:
        segments_create(a, proc, r);
        break;
    case CONTROL_SEG_MAP:
        segments_map(a, proc, r);
        break;
    case CONTROL_SEG_FREE:
        segments_free(a, proc, r);
        break;
    case CONTROL_CHECK:
        if (r->node >= 0 && r->node < a->members)
            a->ops.check(a->ops.user, r->node);
        break;
    case CONTROL_STATUS:
        health_ask(a, r);
        break;
    case CONTROL_BEHIND:
        health_left_behind(a, r);
        break;
    case CONTROL_DOUBT:
        take_doubts(a, proc);
        break;
    case CONTROL_LEAVING:
        ranks_leaves(a, proc);
        a->ops.submit(a->ops.user, &e);
        reply.status = KEEL_OK;
        a->ops.answer(a->ops.user, proc, &reply, -1);
        break;
    case CONTROL_NEEDS:
        ranks_needs(a, (uint32_t)r->a);
        break;
    case CONTROL_JOINS:
        joins(a, proc, r);
        break;
    case CONTROL_ABORT:
        e = (struct view_event){VIEW_STOP, (uint32_t)r->a & 0xff, (uint32_t)proc->life.rank + 1, 0, 0};
        a->ops.submit(a->ops.user, &e);
        break;
    default:
        log_error("rank %d sends an unknown control message %u", proc->life.rank, r->type);
    }
}

bool ranks_intent(const struct agent *a, const struct proc *proc, int i, struct patch *patch)
{
    const struct intent *t = proc->intents ? &proc->intents->entry[i] : NULL;
    if (!t || !atomic_load_explicit(&t->active, memory_order_acquire))
        return false;
    *patch = (struct patch){.seg = t->seg, .slot = (int)t->slot, .offset = t->offset, .len = t->len};
    const struct store_copy *copy =
        patch->slot >= 0 && patch->slot < a->view.nodes ? store_copy(&a->store, patch->seg, patch->slot) : NULL;
    if (!copy || !copy->base || patch->len == 0 || patch->offset >= copy->bytes)
        return false;
    if (patch->len > copy->bytes - patch->offset) /* caught while the rank changed the entry */
        patch->len = copy->bytes - patch->offset;
    patch->torn = true;
    patch->level = COPIES_MAX - 1; /* no other copy is torn while this one is written */
    return true;
}

void ranks_doubt_intents(struct agent *a, struct life writer)
{
    const struct proc *proc = ranks_of(a, writer);
    struct patch patch;
    for (int i = 0; proc && i < INTENT_MAX; i++)
        if (ranks_intent(a, proc, i, &patch))
            repair_add_doubt(a, writer, &patch);
}

/* ---- views ---- */

void ranks_joined(struct agent *a, uint64_t value)
{
    for (int r = 0; r < a->view.ranks; r++)
        if (a->view.rank[r].joined == a->view.epoch && a->view.rank[r].state == RANK_RUNNING)
            a->ranks.joined[r] = value;
}

void ranks_view_committed(struct agent *a)
{
    for (struct proc *proc = a->ranks.procs, *next; proc; proc = next) {
        next = proc->next;
        const int rank = proc->life.rank;
        if (rank >= 0 && proc->exited &&
            (!life_equal(view_life(&a->view, rank), proc->life) || a->view.rank[rank].state != RANK_RUNNING))
            ranks_free(a, proc);
    }
    parcels_look(a);
}

static struct proc *free_standby(const struct agent *a)
{
    for (struct proc *p = a->ranks.procs; p; p = p->next)
        if (life_is_none(p->life) && !p->exited)
            return p;
    return NULL;
}

/* The lowest live rank of the leading set; -1: no set is whole. */
static int who_asks(const struct view *v)
{
    for (int s = 0; s < v->replicas->replicas; s++)
        for (int r = 0; view_set_is_whole(v, s) && r < v->replicas->ranks; r++)
            if (view_rank_takes_part(v, replica_native(v->replicas, r, s)))
                return replica_native(v->replicas, r, s);
    return -1;
}

/* Sets that are lost begin anew, where the program keeps memory. */
static void ask_for_sets(struct agent *a)
{
    const struct view *v = &a->view;
    int asks = v->replicas && v->keeps && !v->stopped ? who_asks(v) : -1;
    for (int s = 0; asks >= 0 && v->rank[asks].node == a->self && s < v->replicas->replicas; s++)
        if (view_set_may_begin(v, s)) {
            struct view_event e = {.type = VIEW_SET_BEGINS, .a = (uint32_t)s, .b = view_set_attempt(v, s)};
            a->ops.submit(a->ops.user, &e);
        }
}

static bool may_begin(const struct agent *a, int rank)
{
    const struct view_rank *k = &a->view.rank[rank];
    return k->node == a->self && k->state == RANK_RUNNING && k->joined && k->joined <= a->recovery.settled &&
           a->ranks.started[rank] != k->incarnation + 1 && segments_heard(a, complete_segments(a->ranks.joined[rank]));
}

void ranks_begin(struct agent *a)
{
    for (int r = 0; r < a->view.ranks && !a->view.stopped; r++) {
        const struct view_rank *k = &a->view.rank[r];
        if (!may_begin(a, r))
            continue;
        a->ranks.started[r] = k->incarnation + 1;
        struct proc *proc = free_standby(a);
        FAULT_POINT("procs.joining");
        a->ops.assign(a->ops.user, proc, view_life(&a->view, r));
        FAULT_POINT("procs.joined");
        agent_say(a, proc ? "substituted" : "respawned", J_INT("rank", r), J_UINT("incarnation", k->incarnation));
    }
}

void ranks_view_settled(struct agent *a)
{
    ask_for_sets(a);
    a->ranks.slides_due = true;
    ranks_begin(a);
}

/* ---- what all do together ---- */

static uint64_t segments_of(const struct proc *p)
{
    uint64_t here = atomic_load(&p->intents->segments);
    return here > p->counted ? here : p->counted;
}

/* What ranks have written where the death of all nodes that run them leaves it (client/group/witness.h), as far as this
 * node has copies: whole or not, a word never says more than was complete. */
static uint64_t written(const struct agent *a)
{
    uint64_t most = 0;
    for (int r = 0; r < a->view.ranks; r++) {
        const struct store_copy *c = store_copy(&a->store, SYSTEM_SEGMENT, a->view.rank[r].slot);
        size_t at = (size_t)a->view.rank[r].index * SYSTEM_SEGMENT_BYTES + SYSTEM_COMPLETE_AT;
        uint64_t here = c && c->base ? atomic_load((_Atomic uint64_t *)(void *)(c->base + at)) : 0;
        most = here > most ? here : most;
    }
    return most;
}

uint64_t ranks_complete(const struct agent *a)
{
    uint64_t most = a->recovery.complete, there = written(a);
    most = there > most ? there : most;
    for (const struct proc *p = a->ranks.procs; p; p = p->next) {
        uint64_t here = p->intents ? complete_value(segments_of(p), atomic_load(&p->intents->collectives)) : 0;
        most = here > most ? here : most;
    }
    return most;
}

bool ranks_come_to(const struct agent *a, uint64_t number)
{
    for (int r = 0; r < a->view.ranks; r++) {
        const struct view_rank *k = &a->view.rank[r];
        if (k->node != a->self || !view_rank_takes_part(&a->view, r))
            continue;
        const struct proc *p = ranks_of(a, view_life(&a->view, r));
        uint64_t before = k->joined ? complete_segments(a->ranks.joined[r]) : 0;
        if ((p && p->intents ? segments_of(p) : before) < number)
            return true;
    }
    return false;
}
