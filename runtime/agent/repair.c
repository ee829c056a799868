#include "runtime/agent/repair.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/pace.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/segments.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"

enum {
    WINDOW = 96, /* messages on their way to one copy */
    BURST = 8,   /* messages per round of the loop, so that requests are served in between */
    BLOCK = 64 * 1024,
    BLOCKS = 1, /* of a filling, the same: what others ask for waits for no more than one to be sent */
    WORD = 8,
    DOUBT_END = 1,    /* WIRE_DOUBT count: that was the last one */
    PATCH_ANSWER = 1, /* WIRE_PATCH count: answers a WIRE_FETCH */
    BLOCK_LOST = 1,   /* WIRE_SNAP_BLOCK count: there are no bytes, they died with another node */
    TASKS_PER_MESSAGE = WIRE_BODY_MAX / sizeof(struct dedup_task),
};

enum phase { PHASE_IDLE, PHASE_GATHER, PHASE_FETCH, PHASE_SPREAD, PHASE_DONE };

/* A doubt as the primary knows it: of its own copy, or told by another. */
struct claim {
    struct claim *next;
    int copy; /* place in the group's list */
    uint32_t rank, incarnation;
    struct patch patch;
    bool living; /* the writer lives, and will repeat its stores: it only says that this copy may be torn there */
    bool around; /* copies that are filled have these bytes from another copy */
};

/* A copy that is being filled. Goes on when the generation changes. */
struct fill {
    int node;
    uint64_t placed;
    bool begun, sent, here; /* here: the copy said that it has all */
    struct pace pace;
    uint32_t seg; /* where it is */
    uint64_t offset;
    uint64_t bytes, started_at;
};

struct repair {
    uint64_t generation; /* that this is for */
    bool told;           /* as a copy that is not the primary */
    uint64_t filled;     /* 1 + the epoch at which the copy was placed here that has said that it has all, 0: none */
    /* as the primary */
    enum phase phase;
    bool torn;     /* this copy may be: the group executes nothing */
    bool handover; /* DONE, and another copy will be the primary */
    bool told_by[COPIES_MAX];
    struct claim *claims, **claims_tail;
    struct claim *at;   /* FETCH, SPREAD: the next one to be dealt with */
    uint64_t at_offset; /* in it */
    int fetches;        /* answers awaited */
    struct fill fill[COPIES_MAX];
};

/* The one place where a phase changes. */
static void set_phase(struct repair *r, enum phase phase)
{
    static const unsigned char from[] = {[PHASE_IDLE] = 0x1f,
                                         [PHASE_GATHER] = 1 << PHASE_IDLE,
                                         [PHASE_FETCH] = 1 << PHASE_GATHER,
                                         [PHASE_SPREAD] = 1 << PHASE_FETCH,
                                         [PHASE_DONE] = 1 << PHASE_SPREAD};
    assert(from[phase] >> r->phase & 1);
    r->phase = phase;
    r->at = r->claims;
    r->at_offset = 0;
}

static bool is_primary(const struct agent *a, const struct view_group *g)
{
    return g->copies > 0 && g->copy[0].node == a->self;
}

/* ---- doubts ---- */

void repair_add_doubt(struct agent *a, uint32_t rank, uint32_t incarnation, const struct patch *patch)
{
    struct doubt *d = malloc(sizeof *d);
    if (!d) {
        agent_break(a, "out of memory for the patches of a dead writer");
        return;
    }
    *d = (struct doubt){.next = a->doubts, .rank = rank, .incarnation = incarnation, .patch = *patch};
    a->doubts = d;
}

/* A proposal that said that the writer gave up, or is dead, was not committed; it lives, and all copies have it now. */
void repair_forget_doubt(struct agent *a, uint32_t rank, uint32_t incarnation, const struct wire *w)
{
    struct doubt **link = &a->doubts;
    while (*link) {
        struct doubt *d = *link;
        const struct patch *p = &d->patch;
        if (d->epoch == 0 && d->rank == rank && d->incarnation == incarnation && p->torn && p->put == w->identity &&
            p->seg == w->seg && p->slot == w->slot && p->offset == w->offset) {
            *link = d->next;
            free(d);
        } else {
            link = &d->next;
        }
    }
}

static int group_of_patch(const struct agent *a, const struct patch *p)
{
    const struct store_segment *s = store_find(&a->store, p->seg);
    return s && p->slot < a->view.nodes ? group_of(p->slot, s->redundancy) : -1;
}

/* The group was made equal after the writer's end was known, or there is nothing to make it equal with. */
static bool is_settled(const struct agent *a, const struct doubt *d)
{
    int group = group_of_patch(a, &d->patch);
    if (group < 0 || view_copy_at(&a->view.group[group], a->self) < 0)
        return true;
    const struct view_group *g = &a->view.group[group];
    return d->epoch && g->mode == GROUP_DIRECT && (g->generation > d->epoch || g->copies == 1);
}

static void forget_settled_doubts(struct agent *a)
{
    struct doubt **link = &a->doubts;
    while (*link) {
        struct doubt *d = *link;
        if (is_settled(a, d)) {
            *link = d->next;
            free(d);
        } else {
            link = &d->next;
        }
    }
}

static bool is_torn_in(const struct agent *a, int group, const struct patch *p)
{
    return p->len && p->torn && group_of_patch(a, p) == group;
}

static bool has_torn(const struct agent *a, int group)
{
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->epoch && is_torn_in(a, group, &d->patch))
            return true;
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, group, &c->note[i]))
                return true;
    return false;
}

/* The group was made equal, with what living writers had left there. */
static void forget_torn(struct agent *a, int group)
{
    for (struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, group, &c->note[i]) && c->note[i].generation < a->view.group[group].generation)
                c->note[i].torn = false;
}

/* What is known here of the group's patches goes to `know`: doubts, and what living writers may have torn. What they wrote remotely
 * is cut off (recover.c) and treated like a dead writer's: a copy that is torn must not be where others are filled from. */
typedef void knows(struct agent *a, int group, uint32_t rank, uint32_t incarnation, const struct patch *patch,
                   bool living);

static void for_each_patch(struct agent *a, int group, knows *know)
{
    struct patch patch;
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->epoch && group_of_patch(a, &d->patch) == group)
            know(a, group, d->rank, d->incarnation, &d->patch, false);
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, group, &c->note[i]))
                know(a, group, (uint32_t)c->rank, c->incarnation, &c->note[i], false);
    atomic_thread_fence(memory_order_seq_cst); /* the route was changed before: with op_store_here */
    for (const struct proc *p = a->procs; p; p = p->next)
        for (int i = 0; i < INTENT_MAX; i++)
            if (ranks_intent(a, p, i, &patch) && group_of_patch(a, &patch) == group)
                know(a, group, (uint32_t)p->rank, p->incarnation, &patch, true);
}

static void tell_one(struct agent *a, int group, uint32_t rank, uint32_t incarnation, const struct patch *patch,
                     bool living)
{
    const struct view_group *g = &a->view.group[group];
    struct wire w = {.type = WIRE_DOUBT,
                     .flags = (uint8_t)((patch->torn ? WIRE_F_TORN : 0) | (living ? WIRE_F_LIVING : 0)),
                     .slot = (uint16_t)group_slot(group),
                     .seg = patch->seg,
                     .offset = patch->offset,
                     .a = (int64_t)patch->len,
                     .b = (int64_t)patch->put,
                     .rank = rank,
                     .incarnation = incarnation,
                     .identity = g->generation,
                     .lane = patch->level};
    agent_tell(a, g->copy[0].node, &w, NULL);
}

static void tell_doubts(struct agent *a, int group)
{
    const struct view_group *g = &a->view.group[group];
    for_each_patch(a, group, tell_one);
    FAULT_POINT("push.doubts_half_told");
    struct wire w = {.type = WIRE_DOUBT,
                     .slot = (uint16_t)group_slot(group),
                     .identity = g->generation,
                     .count = DOUBT_END,
                     .step = group_class(group)};
    agent_tell(a, g->copy[0].node, &w, NULL);
}

/* ---- the primary: what is unequal ---- */

static void add_claim(struct agent *a, struct repair *r, int copy, uint32_t rank, uint32_t incarnation,
                      const struct patch *patch, bool living)
{
    struct claim *c = malloc(sizeof *c);
    if (!c) {
        agent_break(a, "out of memory for the patches of a dead writer");
        return;
    }
    *c = (struct claim){.copy = copy, .rank = rank, .incarnation = incarnation, .patch = *patch, .living = living};
    *r->claims_tail = c;
    r->claims_tail = &c->next;
}

static void free_claims(struct repair *r)
{
    for (struct claim *c = r->claims, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    r->claims = r->at = NULL;
    r->claims_tail = &r->claims;
}

/* The writer went on to another copy when this one was whole: so says a claim of the other about the same put. */
static bool went_on(const struct repair *r, const struct claim *c)
{
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->copy != c->copy && o->patch.torn && o->patch.level > c->patch.level && o->patch.put == c->patch.put &&
            o->rank == c->rank && o->incarnation == c->incarnation && o->patch.seg == c->patch.seg &&
            o->patch.offset < c->patch.offset + c->patch.len && c->patch.offset < o->patch.offset + o->patch.len)
            return true;
    return false;
}

/* The writer has begun a later put to these bytes at another copy: what the claim is about was complete. */
static bool is_outdated(const struct repair *r, const struct claim *c)
{
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->copy != c->copy && o->patch.torn && o->patch.put > c->patch.put && o->rank == c->rank &&
            o->incarnation == c->incarnation && o->patch.seg == c->patch.seg &&
            o->patch.offset < c->patch.offset + c->patch.len && c->patch.offset < o->patch.offset + o->patch.len)
            return true;
    return false;
}

/* A patch with the rest of its words: what is moved in a repair are whole ones, or half of a put that is under way there would be
 * moved, and half not. */
static struct patch in_words(const struct patch *p)
{
    struct patch words = *p;
    uint64_t head = p->offset % WORD;
    words.offset -= head;
    words.len = (p->len + head + WORD - 1) / WORD * WORD;
    return words;
}

/* A copy in which nothing tears the bytes, 0: none. The writer lets one copy at a time be torn, the one that it came to last: any
 * other one is whole. */
static int untorn_copy(const struct repair *r, const struct view_group *g, const struct patch *p)
{
    bool torn[COPIES_MAX] = {true};
    for (int i = 1; i < g->copies; i++)
        torn[i] = !g->copy[i].whole;
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->patch.torn && o->patch.seg == p->seg && o->patch.offset < p->offset + p->len &&
            p->offset < o->patch.offset + o->patch.len && !went_on(r, o))
            torn[o->copy] = true;
    for (int i = 1; i < g->copies; i++)
        if (!torn[i])
            return i;
    return 0;
}

/* Where the claim's bytes are whole, and which bytes to take from there: the rest of their words, too, if that is as whole. */
static int whole_copy(const struct repair *r, const struct view_group *g, const struct claim *c, struct patch *bytes)
{
    *bytes = in_words(&c->patch);
    int copy = untorn_copy(r, g, bytes);
    if (copy)
        return copy;
    *bytes = c->patch;
    copy = untorn_copy(r, g, bytes);
    if (copy)
        return copy;
    for (int i = 1; i < g->copies && !is_outdated(r, c); i++)
        if (g->copy[i].whole)
            return i; /* several writers raced for the patch: any value will do, the same everywhere */
    return 0;
}

static bool window_is_open(const struct agent *a, int node)
{
    const struct peer *peer = &a->peers.peer[node];
    return peer->next - 1 - peer->acked < WINDOW;
}

static bool must_fetch(const struct repair *r, const struct claim *c)
{
    return !c->living && c->copy == 0 && c->patch.torn && !went_on(r, c);
}

static bool is_one_filled(const struct view_group *g)
{
    return view_whole_copies(g) < g->copies;
}

/* A process of this node that lives may stand still in the middle of these bytes, here. A copy that is filled gets them from another
 * one, where they are whole; they are not stored here, where the process may go on at any moment. */
static int copy_around(const struct repair *r, const struct view_group *g, const struct claim *c, struct patch *bytes)
{
    *bytes = in_words(&c->patch);
    return c->living && c->copy == 0 && is_one_filled(g) ? untorn_copy(r, g, bytes) : 0;
}

static bool fills_are_open(const struct agent *a, const struct view_group *g)
{
    for (int i = 1; i < g->copies; i++)
        if (!g->copy[i].whole && !window_is_open(a, g->copy[i].node))
            return false;
    return true;
}

static void fill_begin(struct agent *a, int group, struct fill *f);

/* Ask for some of the bytes of the claim at r->at; false when the window is full. */
static bool fetch_some(struct agent *a, int group)
{
    struct repair *r = &a->repair[group];
    const struct view_group *g = &a->view.group[group];
    struct patch patch;
    int from = copy_around(r, g, r->at, &patch);
    r->at->around = from > 0;
    if (!r->at->around && must_fetch(r, r->at))
        from = whole_copy(r, g, r->at, &patch);
    if (from == 0)
        r->at_offset = patch.len;
    for (int i = 1; i < g->copies && r->at->around; i++)
        if (!g->copy[i].whole && !r->fill[i].begun)
            fill_begin(a, group, &r->fill[i]);
    for (; r->at_offset < patch.len; r->at_offset += WIRE_BODY_MAX) {
        if (!window_is_open(a, g->copy[from].node) || r->fetches >= WINDOW || (r->at->around && !fills_are_open(a, g)))
            return false;
        uint64_t left = patch.len - r->at_offset;
        struct wire w = {.type = WIRE_FETCH,
                         .flags = r->at->around ? WIRE_F_LIVING : 0,
                         .slot = (uint16_t)group_slot(group),
                         .seg = patch.seg,
                         .offset = patch.offset + r->at_offset,
                         .count = (uint32_t)(left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX),
                         .step = group_class(group),
                         .identity = g->generation};
        agent_tell(a, g->copy[from].node, &w, NULL);
        r->fetches++;
    }
    r->at = r->at->next;
    r->at_offset = 0;
    return true;
}

static bool overlap(const struct patch *p, const struct patch *q)
{
    return p->seg == q->seg && p->offset < q->offset + q->len && q->offset < p->offset + p->len;
}

/* What the others get of the claim: the rest of its words, too, if nobody who lives may have torn that here. */
static struct patch to_spread(const struct repair *r, const struct claim *c)
{
    struct patch words = in_words(&c->patch);
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->living && o->copy == 0 && overlap(&o->patch, &words) && !overlap(&o->patch, &c->patch))
            return c->patch;
    return words;
}

/* Send some of the primary's bytes of the claim at r->at to all other copies; false when a window is full. */
static bool spread_some(struct agent *a, int group)
{
    struct repair *r = &a->repair[group];
    const struct view_group *g = &a->view.group[group];
    const struct patch patch = to_spread(r, r->at);
    const struct store_copy *copy = store_copy(&a->store, patch.seg, patch.slot);
    if (r->at->living || !copy || !copy->base || patch.len > copy->bytes || patch.offset > copy->bytes - patch.len)
        r->at_offset = patch.len; /* nothing to send, or freed meanwhile */
    for (; r->at_offset < patch.len; r->at_offset += WIRE_BODY_MAX) {
        for (int i = 1; i < g->copies; i++)
            if (!window_is_open(a, g->copy[i].node))
                return false;
        uint64_t left = patch.len - r->at_offset;
        struct wire w = {.type = WIRE_PATCH,
                         .slot = (uint16_t)group_slot(group),
                         .seg = patch.seg,
                         .offset = patch.offset + r->at_offset,
                         .len = (uint32_t)(left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX),
                         .step = group_class(group),
                         .identity = g->generation};
        struct chain_mark mark;
        chain_send(a, group, &w, copy->base + w.offset, &mark);
    }
    r->at = r->at->next;
    r->at_offset = 0;
    return true;
}

/* ---- the primary: filling a copy ---- */

static void send_dedup(struct agent *a, int group, int node, uint64_t placed)
{
    const struct dedup *d = &a->dedup[group];
    struct wire w = {.slot = (uint16_t)group_slot(group), .step = group_class(group), .identity = placed};
    for (int r = 0; r < d->ranks; r++)
        if (d->origin[r]) {
            w.type = WIRE_SNAP_ORIGIN;
            w.len = (uint32_t)dedup_origin_bytes(d->origin[r]);
            agent_tell(a, node, &w, d->origin[r]);
        }
    struct dedup_task batch[TASKS_PER_MESSAGE];
    size_t n = 0;
    for (size_t i = 0; i <= d->task_capacity; i++) {
        bool end = i == d->task_capacity;
        if (!end && d->task[i].steps)
            batch[n++] = d->task[i];
        if (n && (end || n == TASKS_PER_MESSAGE)) {
            w.type = WIRE_SNAP_TASKS;
            w.len = (uint32_t)(n * sizeof batch[0]);
            agent_tell(a, node, &w, batch);
            n = 0;
        }
    }
}

static void fill_begin(struct agent *a, int group, struct fill *f)
{
    struct wire begin = {.type = WIRE_SNAP_BEGIN,
                         .slot = (uint16_t)group_slot(group),
                         .step = group_class(group),
                         .status = (int32_t)a->forwards[group],
                         .identity = f->placed};
    agent_tell(a, f->node, &begin, NULL);
    FAULT_POINT("push.rebuild_begun");
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        segments_tell(a, f->node, s);
    send_dedup(a, group, f->node, f->placed);
    f->begun = true;
    f->started_at = a->now;
    if (segments_use(a, group_class(group)))
        agent_say(a, "rebuild", ",\"slot\":%d,\"redundancy\":%u,\"to\":%d", group_slot(group), group_class(group),
                  f->node);
}

static const struct store_segment *segment_from(const struct agent *a, uint32_t seg, unsigned redundancy)
{
    const struct store_segment *best = NULL;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        if (s->seg >= seg && s->redundancy == redundancy && (!best || s->seg < best->seg))
            best = s;
    return best;
}

/* The next block ends before what the copy has from another one; false: it would begin in it, and is behind it now. */
static bool goes_around(const struct repair *r, struct fill *f, uint64_t *end)
{
    for (const struct claim *c = r->claims; c; c = c->next) {
        const struct patch p = in_words(&c->patch);
        if (!c->around || p.seg != f->seg || p.offset + p.len <= f->offset || p.offset >= *end)
            continue;
        if (p.offset <= f->offset) {
            f->offset = p.offset + p.len;
            return false;
        }
        *end = p.offset;
    }
    return true;
}

/* Send the next block; false when all are sent. */
static bool fill_block(struct agent *a, int group, struct fill *f)
{
    int slot = group_slot(group);
    struct wire w = {
        .type = WIRE_SNAP_BLOCK, .slot = (uint16_t)slot, .step = group_class(group), .identity = f->placed};
    for (;;) {
        const struct store_segment *s = store_find(&a->store, f->seg);
        if (!s || s->redundancy != group_class(group)) {
            s = segment_from(a, f->seg, group_class(group));
            if (!s)
                return false;
            f->seg = s->seg;
            f->offset = 0;
        }
        const struct store_copy *copy = &s->copy[slot];
        w.seg = s->seg;
        if (copy->lost) {
            w.count = BLOCK_LOST;
            agent_tell(a, f->node, &w, NULL);
            w.count = 0;
        } else if (copy->base && f->offset < copy->bytes) {
            uint64_t end = copy->bytes;
            if (!goes_around(&a->repair[group], f, &end))
                continue;
            uint64_t left = end - f->offset;
            w.offset = f->offset;
            w.len = (uint32_t)(left < BLOCK ? left : BLOCK);
            agent_tell_from_store(a, f->node, &w, copy->base + f->offset);
            a->blocks++;
            pace_sent(&f->pace, agent_position(a, f->node), a->now);
            f->offset += w.len;
            f->bytes += w.len;
            return true;
        }
        f->seg++;
        f->offset = 0;
    }
}

static bool fill_step(struct agent *a, int group, struct fill *f)
{
    bool moved = false;
    if (!f->begun) {
        fill_begin(a, group, f);
        moved = true;
    }
    if (f->bytes)
        FAULT_POINT("push.rebuild_middle");
    for (int i = 0; i < BLOCKS && !f->sent && pace_may_send(&f->pace, a->peers.peer[f->node].acked, a->now); i++) {
        moved = true;
        if (fill_block(a, group, f))
            continue;
        struct wire end = {.type = WIRE_SNAP_END,
                           .slot = (uint16_t)group_slot(group),
                           .step = group_class(group),
                           .identity = f->placed};
        FAULT_POINT("push.rebuild_end");
        agent_tell(a, f->node, &end, NULL);
        f->sent = true;
    }
    return moved;
}

/* ---- the primary: driving it ---- */

static void claim_own(struct agent *a, int group, uint32_t rank, uint32_t incarnation, const struct patch *patch,
                      bool living)
{
    add_claim(a, &a->repair[group], 0, rank, incarnation, patch, living);
}

static void gather(struct agent *a, int group)
{
    struct repair *r = &a->repair[group];
    const struct view_group *g = &a->view.group[group];
    set_phase(r, PHASE_GATHER);
    for_each_patch(a, group, claim_own);
    for (const struct claim *c = r->claims; c && is_one_filled(g) && view_whole_copies(g) > 1; c = c->next)
        r->torn = r->torn || c->living;
}

static bool all_told(const struct repair *r, const struct view_group *g)
{
    for (int i = 1; i < g->copies; i++)
        if (g->copy[i].whole && !r->told_by[i])
            return false;
    return true;
}

static bool all_acked(const struct agent *a, int group)
{
    struct chain_mark mark;
    chain_mark(a, group, &mark);
    return chain_reached(a, &mark);
}

static bool all_filled(const struct repair *r, const struct view_group *g)
{
    for (int i = 1; i < g->copies; i++)
        if (!g->copy[i].whole && !(r->fill[i].sent && r->fill[i].here))
            return false;
    return true;
}

static void finish(struct agent *a, int group)
{
    struct repair *r = &a->repair[group];
    const struct view_group *g = &a->view.group[group];
    for (int i = 1; i < g->copies; i++)
        if (!g->copy[i].whole && segments_use(a, group_class(group)))
            agent_say(a, "copied", ",\"slot\":%d,\"redundancy\":%u,\"to\":%d,\"bytes\":%llu,\"ms\":%.3f",
                      group_slot(group), group_class(group), g->copy[i].node, (unsigned long long)r->fill[i].bytes,
                      (double)(a->now - r->fill[i].started_at) / KEEL_NS_PER_MS);
    set_phase(r, PHASE_DONE);
    int home = a->view.home[group_slot(group)];
    r->handover = home != a->self && home >= 0 && view_copy_at(g, home) > 0;
    struct view_event e = {.type = VIEW_RESTORED, .a = (uint32_t)group, .d = g->generation};
    FAULT_POINT("push.restored_not_submitted");
    a->ops.submit(a->ops.user, &e);
    FAULT_POINT("push.restored_submitted");
}

/* All phases that can be gone through now. */
static bool group_step(struct agent *a, int group)
{
    struct repair *r = &a->repair[group];
    const struct view_group *g = &a->view.group[group];
    bool moved = false;
    /* What this copy has executed is in those that it fetches from. */
    if (r->phase == PHASE_GATHER && all_told(r, g) && (!r->torn || all_acked(a, group))) {
        set_phase(r, PHASE_FETCH);
        moved = true;
    }
    if (r->phase == PHASE_FETCH) {
        while (r->at && fetch_some(a, group))
            moved = true;
        if (!r->at && r->fetches == 0) {
            set_phase(r, PHASE_SPREAD);
            moved = true;
            if (r->torn) {
                r->torn = false;
                execute_unstash(a);
            }
        }
    }
    if (r->phase == PHASE_SPREAD) {
        for (int i = 0; i < BURST && r->at && spread_some(a, group); i++)
            moved = true;
        for (int i = 1; i < g->copies; i++)
            if (!g->copy[i].whole)
                moved |= fill_step(a, group, &r->fill[i]);
        if (!r->at && all_filled(r, g) && all_acked(a, group) && !a->broken) {
            finish(a, group);
            moved = true;
        }
    }
    return moved;
}

bool repair_step(struct agent *a)
{
    bool moved = false;
    if (a->frozen)
        return false; /* what is sent now would only be sent again */
    for (int group = 0; group < agent_groups(a); group++)
        if (a->repair[group].phase != PHASE_IDLE && a->repair[group].phase != PHASE_DONE)
            moved |= group_step(a, group);
    return moved;
}

bool repair_holds(const struct agent *a, int group)
{
    const struct repair *r = &a->repair[group];
    return r->torn || (r->phase == PHASE_DONE && r->handover);
}

/* ---- views ---- */

/* Copies that go on being filled by this primary. */
static void keep_fills(struct repair *r, const struct view_group *g, bool was_primary)
{
    struct fill old[COPIES_MAX];
    memcpy(old, r->fill, sizeof old);
    for (int i = 0; i < COPIES_MAX; i++) {
        r->fill[i] = (struct fill){.node = i < g->copies ? g->copy[i].node : -1,
                                   .placed = i < g->copies ? g->copy[i].placed : 0};
        for (int k = 0; was_primary && k < COPIES_MAX; k++)
            if (i < g->copies && !g->copy[i].whole && old[k].node == r->fill[i].node &&
                old[k].placed == r->fill[i].placed)
                r->fill[i] = old[k];
    }
}

void repair_view_committed(struct agent *a, const struct view_group *before)
{
    forget_settled_doubts(a);
    for (int group = 0; group < agent_groups(a); group++) {
        struct repair *r = &a->repair[group];
        const struct view_group *g = &a->view.group[group];
        if (r->generation == g->generation)
            continue;
        free_claims(r);
        set_phase(r, PHASE_IDLE);
        r->generation = g->generation;
        r->told = r->handover = false;
        r->fetches = 0;
        memset(r->told_by, 0, sizeof r->told_by);
        keep_fills(r, g, is_primary(a, &before[group]) && is_primary(a, g));
        r->torn = is_primary(a, g) && g->mode == GROUP_REPAIR && g->copies > 1 && has_torn(a, group);
        if (g->mode == GROUP_DIRECT && view_copy_at(g, a->self) >= 0)
            forget_torn(a, group);
    }
}

void repair_view_settled(struct agent *a)
{
    for (int group = 0; group < agent_groups(a); group++) {
        const struct view_group *g = &a->view.group[group];
        struct repair *r = &a->repair[group];
        if (g->generation > a->settled || g->mode != GROUP_REPAIR)
            continue;
        int place = view_copy_at(g, a->self);
        if (place > 0 && g->copy[place].whole && !r->told) {
            tell_doubts(a, group);
            r->told = true;
        }
        if (place == 0 && r->phase == PHASE_IDLE)
            gather(a, group);
    }
}

/* ---- messages ---- */

static void receive_doubt(struct agent *a, int from, const struct wire *w)
{
    unsigned redundancy = w->step;
    if (w->count != DOUBT_END) {
        const struct store_segment *s = store_find(&a->store, w->seg);
        if (!s)
            return; /* freed meanwhile */
        redundancy = s->redundancy;
    }
    if (redundancy >= CLASSES)
        return;
    int group = group_of(w->slot, redundancy);
    struct repair *r = &a->repair[group];
    const struct view_group *g = &a->view.group[group];
    int copy = view_copy_at(g, from);
    if (!is_primary(a, g) || copy < 1 || w->identity != g->generation || g->mode != GROUP_REPAIR)
        return;
    if (w->count == DOUBT_END) {
        FAULT_POINT("push.doubts_told");
        r->told_by[copy] = true;
        return;
    }
    struct patch patch = {.seg = w->seg,
                          .slot = w->slot,
                          .offset = w->offset,
                          .len = (uint64_t)w->a,
                          .torn = w->flags & WIRE_F_TORN,
                          .level = (uint8_t)(w->lane < COPIES_MAX ? w->lane : COPIES_MAX - 1),
                          .put = (uint64_t)w->b};
    add_claim(a, r, copy, w->rank, w->incarnation, &patch, w->flags & WIRE_F_LIVING);
}

/* The group of a message about bytes, if it is of this generation; else -1. */
static int group_of_message(const struct agent *a, const struct wire *w)
{
    int group = w->step < CLASSES ? group_of(w->slot, w->step) : -1; /* also of a segment that was freed meanwhile */
    return group >= 0 && a->view.group[group].generation == w->identity ? group : -1;
}

static bool copy_is_in_range(const struct store_copy *copy, uint64_t offset, uint64_t len)
{
    return copy && copy->base && len <= copy->bytes && offset <= copy->bytes - len;
}

static void answer_fetch(struct agent *a, int from, const struct wire *w)
{
    struct wire answer = {.type = WIRE_PATCH,
                          .flags = w->flags & WIRE_F_LIVING,
                          .slot = w->slot,
                          .seg = w->seg,
                          .offset = w->offset,
                          .count = PATCH_ANSWER,
                          .step = w->step,
                          .identity = w->identity};
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    const void *body = NULL;
    if (group_of_message(a, w) < 0)
        return;
    if (w->count <= WIRE_BODY_MAX && copy_is_in_range(copy, w->offset, w->count)) {
        answer.len = w->count;
        body = copy->base + w->offset;
    }
    agent_tell(a, from, &answer, body);
}

/* Bytes of another copy for those that are filled. */
static void fill_around(struct agent *a, int group, const struct wire *w, const void *body)
{
    const struct view_group *g = &a->view.group[group];
    for (int i = 1; i < g->copies; i++) {
        struct fill *f = &a->repair[group].fill[i];
        struct wire block = {.type = WIRE_SNAP_BLOCK,
                             .slot = w->slot,
                             .seg = w->seg,
                             .offset = w->offset,
                             .len = w->len,
                             .step = w->step,
                             .identity = f->placed};
        if (g->copy[i].whole)
            continue;
        agent_tell(a, f->node, &block, body);
        f->bytes += w->len;
    }
}

static void receive_patch(struct agent *a, int from, const struct wire *w, const void *body)
{
    int group = group_of_message(a, w);
    if (group < 0)
        return;
    struct repair *r = &a->repair[group];
    const struct view_group *g = &a->view.group[group];
    bool answer = w->count == PATCH_ANSWER;
    if (answer ? r->phase != PHASE_FETCH || r->fetches == 0 || view_copy_at(g, from) < 1
               : !chain_is_before(a, group, from))
        return;
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    FAULT_POINT("push.patch_received");
    if (answer && w->flags & WIRE_F_LIVING && w->len)
        fill_around(a, group, w, body);
    else if (copy_is_in_range(copy, w->offset, w->len))
        memcpy(copy->base + w->offset, body, w->len);
    if (answer)
        r->fetches--;
    else
        chain_relay(a, group, from, w, body);
}

static void snap_begin(struct agent *a, int group)
{
    FAULT_POINT("push.snapshot_begun");
    dedup_fini(&a->dedup[group]);
    if (!dedup_init(&a->dedup[group], a->view.ranks))
        agent_break(a, "out of memory for the records of operations");
}

static void snap_tasks(struct agent *a, int group, const struct wire *w, const void *body)
{
    struct dedup_task t;
    for (uint32_t i = 0; i < w->len / sizeof t; i++) {
        memcpy(&t, (const char *)body + i * sizeof t, sizeof t);
        if (t.steps && !dedup_task_reserve(&a->dedup[group], t.task, t.round))
            agent_break(a, "out of memory for the records of tasks");
        else if (t.steps)
            dedup_task_record(&a->dedup[group], t.task, t.round, t.steps - 1);
    }
}

static void snap_block(struct agent *a, const struct wire *w, const void *body)
{
    struct store_segment *s = store_find(&a->store, w->seg);
    if (!s)
        return;
    if (w->count == BLOCK_LOST) {
        store_mark_lost(&a->store, s, w->slot);
        return;
    }
    if (a->declined && !s->copy[w->slot].base)
        return; /* the view that takes this copy away is coming */
    if (store_make(&a->store, s, w->slot, a->view.group[group_of(w->slot, s->redundancy)].generation) != KEEL_OK) {
        segments_decline(a);
        return;
    }
    FAULT_POINT("push.snapshot_block");
    a->blocks++;
    const struct store_copy *copy = &s->copy[w->slot];
    if (copy_is_in_range(copy, w->offset, w->len) && store_fill(&a->store, copy, w->offset, body, w->len) != KEEL_OK) {
        store_drop(&a->store, s, w->slot); /* with a hole in it: what follows finds nothing either */
        a->repair[group_of(w->slot, s->redundancy)].filled = 0;
        segments_decline(a);
    }
}

bool repair_is_filled(const struct agent *a, int group)
{
    const struct view_group *g = &a->view.group[group];
    int at = view_copy_at(g, a->self);
    return at >= 0 && a->repair[group].filled == g->copy[at].placed + 1;
}

/* It counts as whole when it says that it is, not when everything has come: for some of that there may have been no memory. */
static void snap_end(struct agent *a, int group, const struct wire *w)
{
    struct wire here = {.type = WIRE_SNAP_HERE, .slot = w->slot, .step = w->step, .identity = w->identity};
    for (struct store_segment *s = a->store.first; s; s = s->next) {
        const struct store_copy *copy = &s->copy[w->slot];
        if (s->redundancy != w->step || copy->base || copy->lost)
            continue;
        /* The primary has freed it, and we will. */
        if (a->declined || store_make(&a->store, s, w->slot, a->view.group[group].generation) != KEEL_OK) {
            segments_decline(a);
            return;
        }
    }
    FAULT_POINT("push.snapshot_end");
    a->repair[group].filled = w->identity + 1;
    agent_tell(a, a->view.group[group].copy[0].node, &here, NULL);
}

static void receive_here(struct agent *a, int from, const struct wire *w)
{
    if (w->step >= CLASSES)
        return;
    int group = group_of(w->slot, w->step);
    for (int i = 1; i < COPIES_MAX && is_primary(a, &a->view.group[group]); i++) {
        struct fill *f = &a->repair[group].fill[i];
        if (f->node == from && f->placed == w->identity)
            f->here = true;
    }
}

/* Only from the primary, and only for the copy that was placed here when it says. */
static void receive_snap(struct agent *a, int from, const struct wire *w, const void *body)
{
    if (w->step >= CLASSES)
        return;
    int group = group_of(w->slot, w->step);
    const struct view_group *g = &a->view.group[group];
    int copy = view_copy_at(g, a->self);
    if (g->copy[0].node != from || copy < 1 || g->copy[copy].whole || g->copy[copy].placed != w->identity)
        return;
    switch (w->type) {
    case WIRE_SNAP_BEGIN:
        snap_begin(a, group);
        a->forwards[group] = (uint32_t)w->status;
        break;
    case WIRE_SNAP_ORIGIN:
        if (!dedup_origin_load(&a->dedup[group], body, w->len))
            agent_break(a, "cannot keep what is known of operations");
        break;
    case WIRE_SNAP_TASKS:
        snap_tasks(a, group, w, body);
        break;
    case WIRE_SNAP_BLOCK:
        snap_block(a, w, body);
        break;
    default:
        snap_end(a, group, w);
        break;
    }
}

void repair_receive(struct agent *a, int from, const struct wire *w, const void *body)
{
    if (w->slot >= a->view.nodes) {
        log_error("node %d sends a message of type %u for slot %u", from, w->type, w->slot);
        return;
    }
    switch (w->type) {
    case WIRE_DOUBT:
        receive_doubt(a, from, w);
        break;
    case WIRE_FETCH:
        answer_fetch(a, from, w);
        break;
    case WIRE_PATCH:
        receive_patch(a, from, w, body);
        break;
    case WIRE_SNAP_HERE:
        receive_here(a, from, w);
        break;
    default:
        receive_snap(a, from, w, body);
        break;
    }
}

keel_status repair_init(struct agent *a)
{
    a->repair = calloc((size_t)agent_groups(a), sizeof *a->repair);
    if (!a->repair)
        return KEEL_ERR_NOMEM;
    for (int group = 0; group < agent_groups(a); group++) {
        struct repair *r = &a->repair[group];
        r->claims_tail = &r->claims;
        r->generation = a->view.group[group].generation;
        for (int i = 0; i < COPIES_MAX; i++)
            r->fill[i].node = -1;
    }
    return KEEL_OK;
}

void repair_fini(struct agent *a)
{
    for (int group = 0; a->repair && group < agent_groups(a); group++)
        free_claims(&a->repair[group]);
    free(a->repair);
    a->repair = NULL;
    for (struct doubt *d = a->doubts, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    a->doubts = NULL;
}
