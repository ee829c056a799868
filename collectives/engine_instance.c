/* One instance: its attempts and meetings.
 *
 * Why all get the same (docs/protocols/collectives.md has it in full): a member leaves meeting a only with the votes of all that
 * live in one view, each given in that view, or because somebody who left it says so. Who has left it votes no more in it but
 * answers with the decision, so that nobody can complete the meeting in a later view without it. A decision "done" needs
 * that all have the result of the same attempt; they keep it until they hear the decision. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_int.h"
#include "runtime/base/bitset.h"

#define RESEND_MIN_NS (20ull * 1000 * 1000)
#define RESEND_MAX_NS (640ull * 1000 * 1000)

static void set_state(struct instance *i, enum instance_state to)
{
    assert(i->state != INSTANCE_COMPLETE);
    i->state = to;
}

/* ------------------------------------------------------------------------------------------------ the call */

static uint64_t hash(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static uint32_t folded(uint64_t h)
{
    return (uint32_t)(h ^ h >> 32);
}

uint32_t engine_signature(const struct engine *e, const struct engine_call *c)
{
    uint64_t h = hash(hash(2166136261u, c->kind), c->shape);
    if (c->kind == ENGINE_AGREE)
        return folded(hash(h, c->agree));
    if (c->kind != ENGINE_MOVE)
        return folded(h);
    h = hash(hash(hash(hash(h, c->move), (uint64_t)c->algorithm), c->varying), c->early);
    h = hash(h, c->varying && c->move != SCHEDULE_REDUCE_SCATTER ? 0 : c->len);
    if (c->move == SCHEDULE_BCAST || c->move == SCHEDULE_REDUCE || c->move == SCHEDULE_GATHER ||
        c->move == SCHEDULE_SCATTER)
        h = hash(h, (uint64_t)c->root);
    if (c->move >= SCHEDULE_REDUCE && c->move <= SCHEDULE_EXSCAN)
        h = hash(hash(hash(h, c->element.type), c->element.op), c->commutes);
    const size_t *lens = c->move == SCHEDULE_REDUCE_SCATTER            ? c->in_blocks.len
                         : c->varying && c->move == SCHEDULE_ALLGATHER ? c->out_blocks.len
                                                                       : NULL;
    for (int m = 0; lens && m < e->n; m++) /* the same list for all: each finds its own steps from it */
        h = hash(h, lens[m]);
    return folded(h);
}

size_t engine_input_len(const struct engine *e, const struct engine_call *c)
{
    size_t len = 0;
    if (c->move == SCHEDULE_BCAST)
        return 0;
    if (c->move <= SCHEDULE_EXSCAN)
        return c->len;
    if (c->move == SCHEDULE_GATHER || c->move == SCHEDULE_ALLGATHER)
        return c->varying ? c->mine : c->len;
    if (c->move == SCHEDULE_SCATTER && c->root != e->self)
        return 0;
    if (!c->varying)
        return c->len * (size_t)e->n;
    for (int m = 0; m < e->n; m++)
        if (c->in_blocks.at[m] + c->in_blocks.len[m] > len)
            len = c->in_blocks.at[m] + c->in_blocks.len[m];
    return len;
}

/* Bytes that out holds on every member, where that is the same. */
static size_t output_len(const struct engine *e, const struct engine_call *c)
{
    size_t len = 0;
    if (c->move != SCHEDULE_ALLGATHER)
        return c->len;
    for (int m = 0; m < e->n; m++) {
        size_t end = c->varying ? c->out_blocks.at[m] + c->out_blocks.len[m] : ((size_t)m + 1) * c->len;
        len = end > len ? end : len;
    }
    return len;
}

struct instance *instance_create(struct engine *e, uint64_t seq, const struct engine_call *call)
{
    struct instance *i = calloc(1, sizeof *i);
    if (!i)
        return NULL;
    i->seq = seq;
    i->call = *call;
    i->signature = engine_signature(e, call);
    i->root = call->root;
    i->resend_at = UINT64_MAX;
    for (int k = 0; k < e->n_rosters; k++)
        if (!instance_admit(i, e->rosters[k])) {
            instance_destroy(i);
            return NULL;
        }
    if (call->kind != ENGINE_MOVE)
        return i;
    i->holds = call->move == SCHEDULE_BCAST && call->root == e->self;
    i->out_len = output_len(e, call);
    i->early = call->early && !call->varying && i->out_len && i->out_len <= ENGINE_EARLY_MAX &&
               (call->move == SCHEDULE_BCAST || call->move == SCHEDULE_ALLREDUCE || call->move == SCHEDULE_ALLGATHER);
    size_t len = call->in == call->out ? engine_input_len(e, call) : 0;
    if (len) { /* the input must outlive a failed attempt */
        i->saved = malloc(len);
        if (!i->saved) {
            instance_destroy(i);
            return NULL;
        }
        memcpy(i->saved, call->in, len);
        i->call.in = i->saved;
    }
    return i;
}

void instance_destroy(struct instance *i)
{
    while (i->inbox) {
        struct letter *l = i->inbox;
        i->inbox = l->next;
        free(l);
    }
    roster_unref(i->members);
    for (int k = 0; k < i->n_views; k++)
        roster_unref(i->views[k]);
    free(i->views);
    schedule_fini(&i->schedule);
    free(i->tmp);
    free(i->kept);
    free(i->saved);
    free(i);
}

/* ------------------------------------------------------------------------------------------------ who takes part */

bool instance_admit(struct instance *i, struct roster *r)
{
    struct roster *mine = seq_stream(i->seq) == STREAM_ORDINARY ? roster_for(r, seq_number(i->seq)) : roster_ref(r);
    if (!mine || mine == r) {
        roster_unref(mine);
        return mine;
    }
    struct roster **more = realloc(i->views, (size_t)(i->n_views + 1) * sizeof(struct roster *));
    if (!more) {
        roster_unref(mine);
        return false;
    }
    i->views = more;
    i->views[i->n_views++] = mine;
    return true;
}

/* The view of an epoch as it concerns this call, or NULL. */
static struct roster *view_at(const struct engine *e, const struct instance *i, uint64_t epoch)
{
    for (int k = 0; k < i->n_views; k++)
        if (roster_epoch(i->views[k]) == epoch)
            return i->views[k];
    return engine_roster_at(e, epoch);
}

static struct roster *view_now(const struct engine *e, const struct instance *i)
{
    return view_at(e, i, roster_epoch(engine_roster(e)));
}

/* ------------------------------------------------------------------------------------------------ letters */

static void keep(struct instance *i, struct letter *l)
{
    struct letter **end = &i->inbox;
    while (*end)
        end = &(*end)->next;
    *end = l;
}

/* Take out the letter that fits, if it is here. */
static struct letter *take(struct instance *i, enum message_kind kind, int from, uint32_t tag, uint64_t epoch)
{
    for (struct letter **at = &i->inbox; *at; at = &(*at)->next) {
        struct letter *l = *at;
        if (l->head.kind == kind && l->from == from && l->head.tag == tag && l->head.epoch == epoch &&
            l->head.attempt == i->attempt) {
            *at = l->next;
            return l;
        }
    }
    return NULL;
}

/* A new attempt has begun: what was kept is looked at again. The instance may be gone on return. */
static void reread(struct engine *e, struct instance *i)
{
    uint64_t seq = i->seq;
    uint16_t attempt = i->attempt;
    struct letter *old = i->inbox;
    i->inbox = NULL;
    while (old) {
        struct letter *l = old;
        old = l->next;
        l->next = NULL;
        struct instance *still = e->instances;
        while (still && still->seq != seq)
            still = still->next;
        if (still && still->state != INSTANCE_COMPLETE && l->head.attempt >= attempt)
            instance_receive(e, still, l);
        else
            free(l);
    }
}

/* ------------------------------------------------------------------------------------------------ an attempt */

/* The blocks of a call, by place of the attempt's members. */
static void place_blocks(const struct instance *i, const struct engine_blocks *from, struct schedule_block *to)
{
    for (int p = 0; p < roster_live(i->members); p++) {
        size_t m = (size_t)roster_member(i->members, p);
        if (i->call.varying || i->call.move == SCHEDULE_REDUCE_SCATTER)
            to[p] = from->at ? (struct schedule_block){from->at[m], from->len[m]} : (struct schedule_block){0, 0};
        else
            to[p] = (struct schedule_block){m * i->call.len, i->call.len};
    }
}

/* What dead members would have sent stays empty, the same for all. */
static void clear_absent(const struct engine *e, struct instance *i)
{
    const struct engine_call *c = &i->call;
    bool receives = c->move == SCHEDULE_ALLGATHER || c->move == SCHEDULE_ALLTOALL ||
                    (c->move == SCHEDULE_GATHER && c->root == e->self);
    for (int m = 0; receives && m < e->n; m++) {
        if (roster_has(i->members, m))
            continue;
        size_t at = c->varying ? c->out_blocks.at[m] : (size_t)m * c->len;
        memset((char *)c->out + at, 0, c->varying ? c->out_blocks.len[m] : c->len);
    }
}

/* A user's operation writes to its right operand: where that must not be, a copy is made. */
static size_t scratch_of(const struct instance *i)
{
    size_t most = 0;
    for (size_t k = 0; k < i->schedule.n && i->call.element.op == ELEMENT_USER; k++)
        if (i->schedule.step[k].op == SCHEDULE_COMBINE && i->schedule.step[k].len > most)
            most = i->schedule.step[k].len;
    return most;
}

static bool make_schedule(const struct engine *e, struct instance *i, struct schedule_block *blocks, int *nodes)
{
    const struct engine_call *c = &i->call;
    int places = roster_live(i->members);
    bool reduces = c->move >= SCHEDULE_REDUCE && c->move <= SCHEDULE_EXSCAN;
    place_blocks(i, &c->in_blocks, blocks);
    place_blocks(i, &c->out_blocks, blocks + places);
    for (int p = 0; e->node && p < places; p++)
        nodes[p] = e->node[roster_member(i->members, p)];
    struct schedule_shape shape = {
        .kind = c->move,
        .places = places,
        .me = roster_place(i->members, e->self),
        .root = roster_place(i->members, i->root),
        .len = c->len,
        .unit = reduces ? element_size(&c->element) : 1,
        .mine = c->varying ? c->mine : c->len,
        .uniform = !c->varying,
        .ordered = c->element.op == ELEMENT_USER && !c->commutes,
        .in = blocks,
        .out = blocks + places,
        .node = e->node ? nodes : NULL,
    };
    if (i->repairs) {
        shape.kind = SCHEDULE_BCAST;
        shape.len = i->out_len;
        shape.unit = 1;
        return schedule_build(&i->schedule, SCHEDULE_BINOMIAL, &shape);
    }
    enum schedule_algorithm a = (enum schedule_algorithm)(c->algorithm - 1);
    if (!c->algorithm || !schedule_fits(a, &shape))
        a = schedule_choose(&shape);
    return schedule_build(&i->schedule, a, &shape);
}

static bool build(const struct engine *e, struct instance *i)
{
    size_t places = (size_t)roster_live(i->members);
    struct schedule_block *blocks = malloc(2 * places * sizeof *blocks);
    int *nodes = malloc(places * sizeof *nodes);
    schedule_fini(&i->schedule);
    free(i->tmp);
    i->tmp = NULL;
    bool ok = blocks && nodes && make_schedule(e, i, blocks, nodes);
    free(blocks);
    free(nodes);
    if (!ok)
        return false;
    size_t data = i->schedule.tmp + scratch_of(i);
    i->tmp = malloc(data + i->schedule.n + 1);
    if (!i->tmp)
        return false;
    i->under_way = i->tmp + data;
    memset(i->under_way, 0, i->schedule.n);
    if (!i->repairs)
        clear_absent(e, i);
    i->at = 0;
    i->placing = false;
    i->built = true;
    return true;
}

uint8_t *engine_bytes_of(const struct instance *i, struct schedule_region r)
{
    if (r.buffer == SCHEDULE_TMP)
        return i->tmp + r.at;
    if (r.buffer == SCHEDULE_OUT && i->returned) /* out is the caller's again, and the bytes are the same */
        return i->kept + r.at;
    return (uint8_t *)(r.buffer == SCHEDULE_IN ? (void *)(uintptr_t)i->call.in : i->call.out) + r.at;
}

bool instance_sends(const struct instance *i, const struct schedule_region *r, size_t len)
{
    for (size_t k = 0; k < i->at && i->sending; k++)
        if (i->under_way[k] && schedule_overlap(&i->schedule.step[k].to, r, i->schedule.step[k].len, len))
            return true;
    return false;
}

void instance_sent(struct instance *i, int member)
{
    assert(i->sending > 0);
    i->sending--;
    for (size_t k = 0; k < i->schedule.n; k++)
        if (i->under_way[k] && roster_member(i->members, i->schedule.step[k].peer) == member) {
            i->under_way[k] = false;
            return;
        }
}

static void send_data(struct engine *e, struct instance *i, size_t at)
{
    const struct schedule_step *s = &i->schedule.step[at];
    uint8_t head[MESSAGE_HEAD];
    struct message_head h = {MESSAGE_DATA, i->attempt, s->tag, i->signature, e->id, i->seq, roster_epoch(i->members)};
    message_head_write(head, &h);
    if (!e->ops.send(e->ops.user, roster_member(i->members, s->peer), i->seq, head, sizeof head,
                     s->len ? engine_bytes_of(i, s->to) : NULL, s->len)) {
        i->sending++;
        i->under_way[at] = true;
    }
}

enum outcome { STEP_DONE, STEP_WAITS, STEP_FAILED };

static enum outcome receive_data(struct instance *i, const struct schedule_step *s)
{
    struct letter *l = take(i, MESSAGE_DATA, roster_member(i->members, s->peer), s->tag, roster_epoch(i->members));
    if (!l)
        return STEP_WAITS;
    bool fits = l->len == s->len;
    if (fits && l->len)
        memcpy(engine_bytes_of(i, s->to), l->data, l->len);
    if (!fits)
        i->trouble = ENGINE_MISMATCH;
    free(l);
    return fits ? STEP_DONE : STEP_FAILED;
}

static enum outcome take_step(struct engine *e, struct instance *i, const struct schedule_step *s)
{
    if (s->op == SCHEDULE_SEND) {
        send_data(e, i, i->at);
        return STEP_DONE;
    }
    if (instance_sends(i, &s->to, s->len))
        return STEP_WAITS;
    if (s->op == SCHEDULE_RECV)
        return receive_data(i, s);
    uint8_t *to = engine_bytes_of(i, s->to), *from = engine_bytes_of(i, s->from);
    if (s->op == SCHEDULE_COPY) {
        memmove(to, from, s->len);
    } else {
        const struct element *el = &i->call.element;
        size_t n = s->len / element_size(el);
        element_combine(el, to, s->from_is_left ? from : to, s->from_is_left ? to : from, n, i->tmp + i->schedule.tmp);
    }
    return STEP_DONE;
}

/* ------------------------------------------------------------------------------------------------ a meeting */

static void set_timer(struct engine *e, struct instance *i)
{
    i->rto = RESEND_MIN_NS;
    i->resend_at = e->now + i->rto;
}

static void plan_meeting(struct engine *e, struct instance *i)
{
    struct roster *view = view_now(e, i);
    if (i->call.shape != MEET_CUBE || !e->node || !meet_has_nodes(view, e->node)) {
        i->steps = meet_plan(i->call.shape, view, e->self, i->plan);
        return;
    }
    if (e->nodes.view != view) {
        roster_unref(e->nodes.view);
        e->nodes.view = roster_ref(view);
        e->nodes.steps = meet_plan_nodes(view, e->node, e->self, e->nodes.plan);
    }
    i->steps = e->nodes.steps;
    memcpy(i->plan, e->nodes.plan, (size_t)i->steps * sizeof i->plan[0]);
}

static void enter_meeting(struct engine *e, struct instance *i)
{
    int s = seq_stream(i->seq);
    set_state(i, INSTANCE_MEETING);
    i->epoch = roster_epoch(view_now(e, i));
    i->vote = (struct vote){
        .finished_min = i->finished,
        .finished_max = i->finished,
        .returned_max = i->returned,
        .complete_min = e->stream[s].complete,
        .value = i->call.value,
        .signature_min = i->signature,
        .signature_max = i->signature,
        .holder_min = i->holds || i->returned ? (uint32_t)e->self : UINT32_MAX,
        .trouble = i->trouble,
    };
    plan_meeting(e, i);
    i->step = 0;
    set_timer(e, i);
}

/* The attempt cannot be finished, and others may not know: they are told, and tell others, so that all meet soon. */
static void flush(struct engine *e, struct instance *i)
{
    struct meet_step plan[MEET_STEPS_MAX];
    int n = meet_plan(MEET_CUBE, view_now(e, i), e->self, plan);
    i->finished = 0;
    for (int k = 0; k < n; k++)
        if (!plan[k].wait)
            engine_send(e, i, plan[k].member, MESSAGE_FLUSH, 0, roster_epoch(view_now(e, i)));
    enter_meeting(e, i);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t engine_combine(enum engine_agree op, uint64_t a, uint64_t b)
{
    switch (op) {
    case ENGINE_AND:
        return a & b;
    case ENGINE_OR:
        return a | b;
    case ENGINE_MIN:
        return least(a, b);
    default:
        return most(a, b);
    }
}

static void merge(struct vote *v, const struct vote *other, enum engine_agree op)
{
    v->finished_min = least(v->finished_min, other->finished_min);
    v->finished_max = most(v->finished_max, other->finished_max);
    v->returned_max = most(v->returned_max, other->returned_max);
    v->complete_min = least(v->complete_min, other->complete_min);
    v->value = engine_combine(op, v->value, other->value);
    v->signature_min = (uint32_t)least(v->signature_min, other->signature_min);
    v->signature_max = (uint32_t)most(v->signature_max, other->signature_max);
    v->holder_min = (uint32_t)least(v->holder_min, other->holder_min);
    v->trouble = (uint32_t)most(v->trouble, other->trouble);
}

/* Somebody left this meeting before us: its decision is ours, once we are in that view. */
static bool heard_decision(struct engine *e, struct instance *i, struct decision *d)
{
    for (struct letter **at = &i->inbox; *at; at = &(*at)->next) {
        struct letter *l = *at;
        if (l->head.kind != MESSAGE_DECIDED || l->head.attempt != i->attempt || !view_at(e, i, l->head.epoch))
            continue;
        *at = l->next;
        *d = (struct decision){true, i->attempt, l->head.epoch, l->vote};
        free(l);
        return true;
    }
    return false;
}

/* They decided in a view in which this member did not live yet. The letter that says so, or NULL. */
static const struct letter *late_letter(const struct engine *e, const struct instance *i)
{
    enum message_kind kind = e->keeps ? MESSAGE_RESULT : MESSAGE_DECIDED;
    for (const struct letter *l = i->inbox; l; l = l->next)
        if (l->head.kind == kind && l->head.attempt >= i->attempt && l->head.epoch < e->born)
            return l;
    return NULL;
}

/* The others are in a later attempt: so are we, without a result. The instance may be gone on return. */
static bool skip(struct engine *e, struct instance *i)
{
    for (struct letter **at = &i->inbox; *at; at = &(*at)->next) {
        struct letter *l = *at;
        if (l->head.kind != MESSAGE_SKIP || l->head.attempt < i->attempt)
            continue;
        *at = l->next;
        i->last = (struct decision){true, l->head.attempt, l->head.epoch, l->vote};
        i->attempt = (uint16_t)(l->head.attempt + 1);
        if ((int)l->head.tag >= 0 && (int)l->head.tag < e->n)
            i->root = (int)l->head.tag;
        free(l);
        roster_unref(i->members);
        i->members = roster_ref(view_now(e, i));
        i->finished = 0;
        i->built = i->lost = false;
        enter_meeting(e, i);
        return true;
    }
    return false;
}

/* What the others got. */
static enum engine_status late_result(const struct engine *e, struct instance *i, const struct letter *l)
{
    if (!e->keeps)
        return ENGINE_LATE;
    enum engine_status status = (enum engine_status)l->head.tag;
    bool moves = i->call.kind == ENGINE_MOVE;
    if (status != ENGINE_OK)
        return status > ENGINE_LATE ? ENGINE_MISMATCH : status;
    if (l->head.signature != i->signature || (moves && l->len != i->out_len))
        return ENGINE_MISMATCH;
    if (l->len && moves)
        memcpy(i->call.out, l->data, l->len);
    return ENGINE_OK;
}

static bool meet(struct engine *e, struct instance *i, struct decision *d)
{
    if (heard_decision(e, i, d)) {
        engine_tell_all(e, i->seq, d); /* who waits for our vote gets this instead */
        return true;
    }
    for (; i->step < i->steps; i->step++) {
        const struct meet_step *s = &i->plan[i->step];
        if (!s->wait) {
            engine_send(e, i, s->member, MESSAGE_VOTE, s->tag, i->epoch);
            continue;
        }
        struct letter *l = take(i, MESSAGE_VOTE, s->member, s->tag, i->epoch);
        if (!l)
            return false;
        merge(&i->vote, &l->vote, i->call.agree);
        free(l);
    }
    *d = (struct decision){true, i->attempt, i->epoch, i->vote};
    return true;
}

/* ------------------------------------------------------------------------------------------------ the decision */

/* The result is made from the root's data alone: who lives has it. Else it is made from those of the attempt's members. */
static bool only_root_gives(const struct instance *i)
{
    return i->call.move == SCHEDULE_BCAST || i->call.move == SCHEDULE_SCATTER;
}

static bool is_rooted(const struct instance *i)
{
    return only_root_gives(i) || i->call.move == SCHEDULE_REDUCE || i->call.move == SCHEDULE_GATHER;
}

/* Whom the result of this attempt covers. */
static struct roster *covered(const struct engine *e, const struct instance *i, struct roster *then)
{
    struct roster *r = i->repairs ? view_at(e, i, i->repairs) : i->members;
    return only_root_gives(i) || !r ? then : r;
}

/* Is what was to move where it should be? Else i->root becomes who has the bytes of a broadcast whose root is dead, or of a
 * result that somebody has returned: then nobody may get another. */
static bool has_moved(const struct engine *e, struct instance *i, const struct vote *v, struct roster *then,
                      struct engine_result *result)
{
    bool dead = is_rooted(i) && !roster_has(then, i->root), all = v->finished_min && v->finished_min == v->finished_max;
    if (all && (!dead || only_root_gives(i))) {
        result->members = covered(e, i, then);
        return true;
    }
    i->repairs = v->returned_max;
    if (v->returned_max || (dead && i->call.move == SCHEDULE_BCAST && v->holder_min != UINT32_MAX))
        i->root = (int)v->holder_min;
    else if (dead)
        *result = (struct engine_result){.status = ENGINE_ROOT_DEAD};
    return result->status != ENGINE_OK;
}

/* Is the instance over, and how? */
static bool is_over(struct engine *e, struct instance *i, const struct decision *d, struct engine_result *result)
{
    const struct vote *v = &d->vote;
    struct roster *then = view_at(e, i, d->epoch);
    *result = (struct engine_result){.status = ENGINE_OK, .value = v->value, .members = then};
    if (v->signature_min != v->signature_max)
        *result = (struct engine_result){.status = ENGINE_MISMATCH};
    else if (v->trouble)
        *result = (struct engine_result){.status = (enum engine_status)v->trouble};
    else if (i->call.kind == ENGINE_AGREE)
        return i->attempt > 0;
    else if (i->call.kind == ENGINE_MOVE)
        return has_moved(e, i, v, then, result);
    return true;
}

/* Over the members of that view. */
static void begin_attempt(struct engine *e, struct instance *i, struct roster *members)
{
    roster_unref(i->members);
    i->members = roster_ref(members);
    i->finished = 0;
    i->built = i->lost = false;
    bool rooted = i->call.kind == ENGINE_MOVE && (is_rooted(i) || i->repairs);
    bool rootless = rooted && !roster_has(members, i->root);
    if (i->call.kind != ENGINE_MOVE || i->trouble || rootless || members != view_now(e, i)) {
        enter_meeting(e, i); /* nothing to move, or one of them is dead meanwhile, as all will learn */
        return;
    }
    set_state(i, INSTANCE_MOVING);
    set_timer(e, i);
}

void instance_begin(struct engine *e, struct instance *i)
{
    begin_attempt(e, i, view_now(e, i));
    instance_progress(e, i);
}

/* What is here is what all will get, if not from those who sent it then from us. */
static void return_early(struct engine *e, struct instance *i)
{
    struct engine_result result = {.status = ENGINE_OK, .members = covered(e, i, i->members)};
    if (!i->early || i->returned || i->sending || !(i->kept = malloc(i->out_len)))
        return;
    memcpy(i->kept, i->call.out, i->out_len);
    i->returned = i->repairs ? i->repairs : roster_epoch(i->members);
    enter_meeting(e, i); /* with the vote that says so */
    engine_tell_early(e, i, &result);
}

static void move(struct engine *e, struct instance *i)
{
    if (!i->built && i->sending)
        return;
    if (!i->built && !build(e, i)) {
        i->trouble = ENGINE_NOMEM;
        flush(e, i);
        return;
    }
    for (; i->at < i->schedule.n; i->at++) {
        enum outcome o = take_step(e, i, &i->schedule.step[i->at]);
        if (o == STEP_FAILED)
            flush(e, i);
        if (o != STEP_DONE)
            return;
    }
    i->finished = roster_epoch(i->members);
    i->holds |= i->call.move == SCHEDULE_BCAST;
    return_early(e, i);
    if (i->state == INSTANCE_MOVING)
        enter_meeting(e, i);
}

/* A new attempt has begun: what was kept for it is looked at. The instance may be gone on return. */
static void go_on(struct engine *e, struct instance *i)
{
    uint64_t seq = i->seq;
    reread(e, i);
    for (i = e->instances; i && i->seq != seq;)
        i = i->next;
    if (i && i->state != INSTANCE_COMPLETE)
        instance_progress(e, i);
}

void instance_progress(struct engine *e, struct instance *i)
{
    struct decision d;
    struct engine_result result;
    if (e->keeps && skip(e, i)) {
        go_on(e, i);
        return;
    }
    if (i->state == INSTANCE_MOVING)
        move(e, i);
    const struct letter *late = late_letter(e, i);
    if (late) {
        result = (struct engine_result){.status = late_result(e, i, late)};
        i->last = (struct decision){e->keeps, late->head.attempt, late->head.epoch, late->vote};
        engine_complete(e, i, &result);
        return;
    }
    if (i->state != INSTANCE_MEETING || !meet(e, i, &d))
        return;
    i->last = d;
    if (is_over(e, i, &d, &result)) {
        engine_complete(e, i, &result);
        return;
    }
    if (i->call.kind == ENGINE_AGREE)
        i->call.value = d.vote.value; /* the second meeting makes sure that all have it */
    i->attempt++;
    begin_attempt(e, i, view_at(e, i, d.epoch));
    go_on(e, i);
}

/* ------------------------------------------------------------------------------------------------ events */

/* A message of an attempt that the sender is in, and we are, too. False: it is to be kept. */
static bool receive_now(struct engine *e, struct instance *i, const struct letter *l)
{
    const struct message_head *h = &l->head;
    bool moving = i->state == INSTANCE_MOVING;
    uint64_t ours = roster_epoch(i->members);
    switch (h->kind) {
    case MESSAGE_DATA:
    case MESSAGE_ASK:
        if (moving && (h->epoch != ours || h->signature != i->signature))
            flush(e, i); /* it has another idea of the call, or of who takes part */
        else if (moving)
            return h->kind == MESSAGE_ASK;
        else if (h->kind == MESSAGE_ASK && (i->lost || i->finished != h->epoch))
            engine_send(e, i, l->from, MESSAGE_FLUSH, 0, roster_epoch(view_now(e, i)));
        return true;
    case MESSAGE_FLUSH:
        if (moving)
            flush(e, i);
        return true;
    case MESSAGE_WANT:
        for (int k = 0; !moving && h->epoch == i->epoch && k < i->step; k++)
            if (!i->plan[k].wait && i->plan[k].member == l->from && i->plan[k].tag == h->tag)
                engine_send(e, i, l->from, MESSAGE_VOTE, h->tag, i->epoch);
        return true;
    case MESSAGE_VOTE: /* who could not finish, or finished something else, tells that we cannot */
        if (moving && (l->vote.finished_min != ours || l->vote.finished_max != ours))
            flush(e, i);
        return false;
    default:
        return h->kind != MESSAGE_DECIDED;
    }
}

void instance_receive(struct engine *e, struct instance *i, struct letter *l)
{
    const struct message_head *h = &l->head;
    bool done = true;
    if (e->keeps && i->last.made && h->attempt <= i->last.attempt && h->epoch > i->last.epoch &&
        h->kind != MESSAGE_FLUSH && h->kind != MESSAGE_RESULT && h->kind != MESSAGE_SKIP)
        engine_send_skip(e, l->from, i);
    if (h->kind == MESSAGE_RESULT || h->kind == MESSAGE_SKIP) {
        done = h->attempt < i->attempt || h->epoch >= e->born; /* not for who was there */
    } else if (h->attempt == i->attempt) {
        done = receive_now(e, i, l);
    } else if (h->attempt == i->attempt + 1) {
        done = h->kind == MESSAGE_WANT || h->kind == MESSAGE_ASK;
    } else if (i->last.made && h->attempt == i->last.attempt) { /* it has not heard the last decision */
        if (h->kind == MESSAGE_WANT || (h->kind == MESSAGE_VOTE && h->epoch > i->last.epoch))
            engine_send_decision(e, l->from, i->seq, &i->last);
    }
    if (done)
        free(l);
    else
        keep(i, l);
    instance_progress(e, i);
}

void instance_view(struct engine *e, struct instance *i)
{
    if (i->last.made)
        engine_tell_all(e, i->seq, &i->last);
    if (i->state == INSTANCE_MOVING)
        i->finished = 0;
    enter_meeting(e, i);
    instance_progress(e, i);
}

void instance_lost(struct engine *e, struct instance *i, int member)
{
    if (i->call.kind == ENGINE_MOVE && roster_has(i->members, member)) {
        i->lost = true;
        if (i->state == INSTANCE_MOVING)
            flush(e, i);
        else
            engine_send(e, i, member, MESSAGE_FLUSH, 0, roster_epoch(view_now(e, i)));
    }
    set_timer(e, i);
    instance_progress(e, i);
}

void instance_starved(struct engine *e, struct instance *i, const struct message_head *h)
{
    if (h->attempt < i->attempt || (h->attempt == i->attempt && i->state != INSTANCE_MOVING))
        return; /* nobody needs it any more */
    i->trouble = ENGINE_NOMEM;
    if (i->state == INSTANCE_MOVING)
        flush(e, i);
    instance_progress(e, i);
}

/* Who is waited for is asked again, each time after twice as long. */
void instance_tick(struct engine *e, struct instance *i)
{
    int member = instance_waits_for(e, i);
    i->rto = least(2 * i->rto, RESEND_MAX_NS);
    i->resend_at = e->now + i->rto;
    if (member < 0)
        return;
    if (i->state == INSTANCE_MEETING)
        engine_send(e, i, member, MESSAGE_WANT, i->plan[i->step].tag, i->epoch);
    else
        engine_send(e, i, member, MESSAGE_ASK, i->schedule.step[i->at].tag, roster_epoch(i->members));
}

int instance_waits_for(const struct engine *e, const struct instance *i)
{
    (void)e;
    if (i->state == INSTANCE_MEETING)
        return i->step < i->steps ? i->plan[i->step].member : -1;
    if (i->state != INSTANCE_MOVING || !i->built || i->at == i->schedule.n)
        return -1;
    const struct schedule_step *s = &i->schedule.step[i->at];
    return s->op == SCHEDULE_RECV ? roster_member(i->members, s->peer) : -1;
}
