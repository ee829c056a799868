/* Instances, what they send, and what remains of complete ones. */
#include "collectives/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_int.h"
#include "runtime/base/bitset.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------------------------------------------ life */

struct engine *engine_room(int n)
{
    struct engine *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->rosters = malloc(sizeof(struct roster *));
    e->leaving.heard = calloc(BITSET_WORDS(n), sizeof *e->leaving.heard);
    if (e->rosters && e->leaving.heard && engine_put_by(e))
        return e;
    engine_destroy(e);
    return NULL;
}

void engine_init(struct engine *e, uint64_t id, int self, struct roster *roster, const int *node,
                 const struct engine_ops *ops)
{
    e->ops = *ops;
    e->id = id;
    e->born = roster_epoch(roster);
    e->n = roster_size(roster);
    e->self = self;
    e->blamed = -1;
    e->node = node;
    e->rosters[0] = roster_ref(roster);
    e->n_rosters = e->cap_rosters = 1;
}

struct engine *engine_create(uint64_t id, int self, struct roster *roster, const int *node,
                             const struct engine_ops *ops)
{
    struct engine *e = engine_room(roster_size(roster));
    if (e)
        engine_init(e, id, self, roster, node, ops);
    return e;
}

static void free_letters(struct letter *l)
{
    while (l) {
        struct letter *next = l->next;
        free(l);
        l = next;
    }
}

void engine_destroy(struct engine *e)
{
    if (!e)
        return;
    if (e->pair)
        e->pair->pair = NULL;
    while (e->instances) {
        struct instance *i = e->instances;
        e->instances = i->next;
        instance_destroy(e, i);
    }
    while (e->records) {
        struct record *r = e->records;
        e->records = r->next;
        free(r);
    }
    free_letters(e->early);
    engine_put_by_fini(e);
    free(e->spare);
    free(e->leaving.heard);
    engine_board_fini(e);
    roster_unref(e->nodes.view);
    engine_forget_smaller(e, true);
    for (int i = 0; i < e->n_rosters; i++)
        roster_unref(e->rosters[i]);
    free(e->rosters);
    free(e);
}

void engine_skip_repairs(struct engine *e, uint64_t number)
{
    e->stream[STREAM_REPAIR].started = e->stream[STREAM_REPAIR].complete = number;
}

bool engine_join(struct engine *e, uint64_t complete)
{
    e->keeps = true;
    e->stream[STREAM_ORDINARY].started = e->stream[STREAM_ORDINARY].complete = complete;
    return engine_admit(e, e->rosters[0]);
}

uint64_t engine_repairs_started(const struct engine *e)
{
    return e->stream[STREAM_REPAIR].started;
}

bool engine_has_early(const struct engine *e)
{
    return e->early != NULL;
}

struct roster *engine_roster_at(const struct engine *e, uint64_t epoch)
{
    for (int i = e->n_rosters - 1; i >= 0; i--)
        if (roster_epoch(e->rosters[i]) == epoch)
            return e->rosters[i];
    return NULL;
}

/* With nothing going on only the current view matters. Who lingers goes on in a view that is still to come here, or
 * in this one. */
static void forget_rosters(struct engine *e)
{
    for (const struct instance *i = e->instances; i; i = i->next)
        if (i->state != INSTANCE_LINGERING)
            return;
    if (e->n_rosters == 1)
        return;
    for (int i = 0; i < e->n_rosters - 1; i++)
        roster_unref(e->rosters[i]);
    e->rosters[0] = e->rosters[e->n_rosters - 1];
    e->n_rosters = 1;
    engine_forget_smaller(e, false);
}

struct instance *engine_find(const struct engine *e, uint64_t seq)
{
    for (struct instance *i = e->instances; i; i = i->next)
        if (i->seq == seq)
            return i;
    return NULL;
}

/* The instance after that one, which may be gone meanwhile. */
static struct instance *after(const struct engine *e, uint64_t seq)
{
    struct instance *best = NULL;
    for (struct instance *i = e->instances; i; i = i->next)
        if (i->seq > seq && (!best || i->seq < best->seq))
            best = i;
    return best;
}

/* ------------------------------------------------------------------------------------------------ sending */

void engine_send(struct engine *e, const struct instance *i, int to, enum message_kind kind, uint32_t tag,
                 uint64_t epoch)
{
    uint8_t bytes[MESSAGE_HEAD + MESSAGE_VOTE_BYTES];
    struct message_head h = {kind, i->attempt, tag, i->signature, 0, e->id, i->seq, epoch};
    size_t len = MESSAGE_HEAD;
    if (kind == MESSAGE_WANT || kind == MESSAGE_ASK)
        h.behind = engine_pair_behind(e);
    message_head_write(bytes, &h);
    if (kind == MESSAGE_VOTE) {
        message_vote_write(bytes + len, &i->vote);
        len += MESSAGE_VOTE_BYTES;
    }
    e->ops.send(e->ops.user, to, i->seq, bytes, len, NULL, 0);
}

static void send_decided(struct engine *e, int to, enum message_kind kind, uint32_t tag, uint64_t seq,
                         const struct decision *d)
{
    uint8_t bytes[MESSAGE_HEAD + MESSAGE_VOTE_BYTES];
    struct message_head h = {kind, d->attempt, tag, d->vote.signature_min, 0, e->id, seq, d->epoch};
    message_head_write(bytes, &h);
    message_vote_write(bytes + MESSAGE_HEAD, &d->vote);
    e->ops.send(e->ops.user, to, seq, bytes, sizeof bytes, NULL, 0);
}

void engine_send_decision(struct engine *e, int to, uint64_t seq, const struct decision *d)
{
    send_decided(e, to, MESSAGE_DECIDED, 0, seq, d);
}

void engine_ask_whether_over(struct engine *e, int to, uint64_t seq)
{
    uint8_t bytes[MESSAGE_HEAD];
    struct message_head h = {.kind = MESSAGE_WANT, .tag = MESSAGE_WHETHER_OVER, .group = e->id, .seq = seq};
    message_head_write(bytes, &h);
    e->ops.send(e->ops.user, to, 0, bytes, sizeof bytes, NULL, 0);
}

void engine_send_skip(struct engine *e, int to, const struct instance *i)
{
    send_decided(e, to, MESSAGE_SKIP, (uint32_t)i->root, i->seq, &i->last);
}

void engine_tell_all(struct engine *e, uint64_t seq, const struct decision *d)
{
    struct meet_step plan[MEET_STEPS_MAX];
    int n = meet_plan(MEET_CUBE, engine_roster(e), e->self, plan);
    for (int k = 0; k < n; k++)
        if (!plan[k].wait)
            engine_send_decision(e, plan[k].member, seq, d);
}

/* ------------------------------------------------------------------------------------------------ starting,
 * completing */

bool engine_arguments_fit(const struct engine *e, const struct engine_call *c)
{
    if (c->kind != ENGINE_MOVE)
        return (unsigned)c->kind < ENGINE_MOVE && (unsigned)c->agree <= ENGINE_MAX;
    bool rooted = c->move == SCHEDULE_BCAST || c->move == SCHEDULE_REDUCE || c->move == SCHEDULE_GATHER ||
                  c->move == SCHEDULE_SCATTER;
    bool reduces = c->move >= SCHEDULE_REDUCE && c->move <= SCHEDULE_EXSCAN;
    if ((unsigned)c->move >= SCHEDULE_KINDS || (rooted && (c->root < 0 || c->root >= e->n)))
        return false;
    if (reduces && (!element_valid(&c->element) || c->len % element_size(&c->element)))
        return false;
    if (reduces && c->move == SCHEDULE_REDUCE_SCATTER && !c->in_blocks.len && !c->refuses)
        return false;
    return true;
}

/* What came before the call. */
static void deliver_early(struct engine *e, uint64_t seq)
{
    struct letter *mine = NULL, **end = &mine;
    for (struct letter **at = &e->early; *at;) {
        struct letter *l = *at;
        if (l->head.seq != seq) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = NULL;
        *end = l;
        end = &l->next;
    }
    while (mine) {
        struct letter *l = mine;
        mine = l->next;
        struct instance *i = engine_find(e, seq);
        l->next = NULL;
        if (i && i->state != INSTANCE_COMPLETE)
            instance_receive(e, i, l);
        else
            letter_free(e, l);
    }
}

/* What everybody has completed nobody will ask about. */
static void forget_records(struct engine *e, int stream, uint64_t number)
{
    for (struct record **at = &e->records; *at;) {
        struct record *r = *at;
        if (seq_stream(r->seq) == stream && seq_number(r->seq) <= number) {
            *at = r->next;
            record_destroy(e, r);
        } else {
            at = &r->next;
        }
    }
}

/* A broadcast's root may have returned before others have begun: until they have met it must not run away from them. */
static bool has_returned(const struct instance *i)
{
    return i->told && i->call.move != SCHEDULE_BCAST;
}

static void count_complete(struct engine *e, int s)
{
    uint64_t complete = e->stream[s].started;
    for (const struct instance *i = e->instances; i; i = i->next)
        if (seq_stream(i->seq) == s && !has_returned(i) && seq_number(i->seq) <= complete)
            complete = seq_number(i->seq) - 1;
    e->stream[s].complete = complete;
}

static void take_out(struct engine *e, struct instance *i)
{
    struct instance **at = &e->instances;
    while (*at != i)
        at = &(*at)->next;
    *at = i->next;
}

static void finish(struct engine *e, struct instance *i)
{
    take_out(e, i);
    count_complete(e, seq_stream(i->seq));
    if (!i->told)
        e->ops.done(e->ops.user, i->seq, &i->result);
    instance_destroy(e, i);
    forget_rosters(e);
}

void engine_returned_everywhere(struct engine *e, int stream, uint64_t number)
{
    if (number > e->stream[stream].everywhere)
        e->stream[stream].everywhere = number;
}

uint32_t engine_behind(const struct engine *e, const struct instance *i)
{
    uint32_t behind =
        (uint32_t)(seq_number(i->seq) - 1 - least(e->stream[seq_stream(i->seq)].complete, seq_number(i->seq) - 1));
    return behind > i->behind ? behind : i->behind;
}

void engine_forget_returned(struct engine *e)
{
    bool any = false;
    for (struct instance *i = e->instances, *next; i; i = next) {
        next = i->next;
        int s = seq_stream(i->seq);
        if (!i->told || i->sending || seq_number(i->seq) > e->stream[s].everywhere)
            continue;
        take_out(e, i);
        instance_destroy(e, i);
        forget_records(e, s, e->stream[s].everywhere);
        any = true;
    }
    if (any)
        forget_rosters(e);
}

void engine_send_revoked(struct engine *e, int to)
{
    uint8_t bytes[MESSAGE_HEAD];
    struct message_head h = {.kind = MESSAGE_REVOKED, .tag = (uint32_t)(e->blamed + 1), .group = e->id};
    message_head_write(bytes, &h);
    e->ops.send(e->ops.user, to, 0, bytes, sizeof bytes, NULL, 0);
}

/* Everybody passes it on once, and again in each new view: so it reaches all, whoever dies. */
static void tell_revoked(struct engine *e)
{
    struct meet_step plan[MEET_STEPS_MAX];
    int n = meet_plan(MEET_CUBE, engine_roster(e), e->self, plan);
    for (int k = 0; k < n; k++)
        if (!plan[k].wait)
            engine_send_revoked(e, plan[k].member);
}

enum engine_status engine_start(struct engine *e, const struct engine_call *call, uint64_t now, uint64_t *seq)
{
    e->now = now;
    int s = stream_of(call->kind);
    if (!engine_arguments_fit(e, call))
        return ENGINE_BAD;
    if (e->revoked && s == STREAM_ORDINARY)
        return ENGINE_REVOKED;
    if (e->stream[s].started - e->stream[s].complete >= ENGINE_WINDOW)
        return ENGINE_LIMIT;
    struct instance *i;
    (void)engine_put_by(e); /* what was used is there again, as soon as there is memory */
    enum engine_status status = instance_create(e, seq_make(e->stream[s].started + 1, s), call, &i);
    if (status != ENGINE_OK)
        return status;
    uint64_t bit = 1ull << (++e->stream[s].started % ENGINE_WINDOW);
    if (e->stream[s].starved & bit)
        i->trouble = ENGINE_NOMEM;
    e->stream[s].starved &= ~bit;
    engine_begin_beside(e, s, e->stream[s].started);
    *seq = i->seq;
    struct instance **end = &e->instances;
    while (*end)
        end = &(*end)->next;
    *end = i;
    instance_begin(e, i);
    deliver_early(e, *seq);
    return ENGINE_OK;
}

void engine_tell_early(struct engine *e, struct instance *i, const struct engine_result *result)
{
    i->told = true;
    count_complete(e, seq_stream(i->seq));
    e->ops.done(e->ops.user, i->seq, result);
}

bool engine_is_sink(const struct engine *e, const struct instance *i)
{
    return i->call.kind == ENGINE_MOVE && i->call.root == e->self &&
           (i->call.move == SCHEDULE_REDUCE || i->call.move == SCHEDULE_GATHER);
}

/* Without this member the others might decide otherwise: whether a root that is gone had got the data, or why a call
 * failed, only the votes of all say. */
static bool binds(const struct engine *e, const struct instance *i, enum engine_status status)
{
    return !e->keeps && seq_stream(i->seq) == STREAM_ORDINARY &&
           (status == ENGINE_OK ? engine_is_sink(e, i) : status != ENGINE_REVOKED);
}

/* With the result, if members may join that need it; every one has the same. */
static void keep_record(struct engine *e, struct instance *i, enum engine_status status)
{
    struct record *r = i->record;
    size_t len = e->keeps && status == ENGINE_OK && i->call.kind == ENGINE_MOVE ? i->out_len : 0;
    bool keeps = e->keeps && seq_stream(i->seq) == STREAM_ORDINARY && len <= r->room; /* else the others have it */
    len = keeps ? len : 0;
    i->record = NULL;
    *r = (struct record){.next = e->records,
                         .seq = i->seq,
                         .decision = i->last,
                         .keeps = keeps,
                         .binds = binds(e, i, status),
                         .status = status,
                         .len = len,
                         .room = r->room};
    if (len)
        memcpy(r->bytes, i->call.out, len);
    e->records = r;
}

bool engine_reserve_record(struct engine *e, size_t len)
{
    if (e->spare && e->spare->room >= len)
        return true;
    free(e->spare);
    e->spare = record_create(len);
    return e->spare;
}

void engine_keep_record(struct engine *e, uint64_t seq, const struct decision *d, enum engine_status status,
                        const void *bytes, size_t len)
{
    struct record *r = e->spare, *before = e->records;
    e->spare = NULL;
    if (before && before->keeps && seq_stream(before->seq) == seq_stream(seq)) { /* that of the call before */
        e->records = before->next;
        e->spare = before;
    }
    *r = (struct record){
        .next = e->records, .seq = seq, .decision = *d, .keeps = true, .status = status, .len = len, .room = r->room};
    if (len)
        memcpy(r->bytes, bytes, len);
    e->records = r;
    forget_records(e, seq_stream(seq), seq_number(seq) - 1);
}

#define KEEP_AFTER_NS (20ull * 1000 * 1000)

/* All who live have finished this member's attempt: each has had what was sent to it. Nothing of an earlier one is
 * under way, for an attempt moves nothing before the last one's sends are over. Whoever joined later and was told
 * the result has not voted: what it has sent is of an attempt of its own. */
static bool all_has_arrived(const struct instance *i)
{
    const struct vote *v = &i->last.vote;
    return i->call.kind == ENGINE_MOVE && i->result.status == ENGINE_OK && i->last.made && i->finished &&
           v->finished_min == i->finished && v->finished_max == i->finished;
}

void engine_complete(struct engine *e, struct instance *i, const struct engine_result *result)
{
    int s = seq_stream(i->seq);
    i->state = INSTANCE_COMPLETE;
    i->resend_at = i->sending && e->ops.keep ? e->now + KEEP_AFTER_NS : UINT64_MAX;
    i->result = *result;
    if (i->last.made) {
        keep_record(e, i, result->status);
        forget_records(e, s, i->last.vote.complete_min);
        engine_returned_everywhere(e, s, i->last.vote.complete_min);
    }
    if (!i->sending)
        finish(e, i);
    else if (e->ops.useless && result->status != ENGINE_OK)
        e->ops.useless(e->ops.user, i->seq);
    else if (e->ops.arrived && all_has_arrived(i))
        e->ops.arrived(e->ops.user, i->seq);
}

void engine_sent(struct engine *e, int member, uint64_t seq, uint64_t now)
{
    e->now = now;
    struct instance *i = engine_find(e, seq);
    if (!i)
        return;
    instance_sent(i, member);
    if (i->state != INSTANCE_COMPLETE && !i->taking_back)
        instance_progress(e, i);
    else if (i->state == INSTANCE_COMPLETE && !i->sending)
        finish(e, i);
}

/* ------------------------------------------------------------------------------------------------ views, losses,
 * time */

bool engine_view(struct engine *e, struct roster *roster, uint64_t now)
{
    assert(roster_epoch(roster) > roster_epoch(engine_roster(e)));
    e->now = now;
    if (e->n_rosters == e->cap_rosters) {
        int cap = 2 * e->cap_rosters;
        struct roster **more = realloc(e->rosters, (size_t)cap * sizeof(struct roster *));
        if (!more)
            return false;
        e->rosters = more;
        e->cap_rosters = cap;
    }
    bool admitted = engine_admit(e, roster);
    e->rosters[e->n_rosters] = roster_ref(roster);
    e->n_rosters += admitted;
    if (!admitted) {
        roster_unref(roster);
        engine_forget_smaller(e, false);
        return false;
    }
    forget_rosters(e);
    if (e->revoked)
        tell_revoked(e);
    for (const struct record *r = e->records; r; r = r->next)
        engine_tell_all(e, r->seq, &r->decision);
    for (struct instance *i = after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state != INSTANCE_COMPLETE)
            instance_view(e, i);
        i = after(e, seq);
    }
    engine_go_on_leaving(e);
    return true;
}

void engine_lost(struct engine *e, int member, uint64_t now)
{
    e->now = now;
    for (struct instance *i = after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state != INSTANCE_COMPLETE)
            instance_lost(e, i, member);
        i = after(e, seq);
    }
}

void engine_unsent(struct engine *e, int member, uint64_t now)
{
    e->now = now;
    for (struct instance *i = after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state != INSTANCE_COMPLETE)
            instance_unsent(e, i, member);
        i = after(e, seq);
    }
}

void engine_tick(struct engine *e, uint64_t now)
{
    e->now = now;
    for (struct instance *i = after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (now >= i->resend_at && i->state != INSTANCE_COMPLETE) {
            instance_tick(e, i);
        } else if (now >= i->resend_at) {
            i->resend_at = now + KEEP_AFTER_NS; /* again, if there was no memory */
            e->ops.keep(e->ops.user, seq);
        }
        i = after(e, seq);
    }
    engine_go_on_leaving(e);
}

uint64_t engine_deadline(const struct engine *e)
{
    uint64_t first = engine_leaving_deadline(e);
    for (const struct instance *i = e->instances; i; i = i->next)
        first = i->resend_at < first ? i->resend_at : first;
    return first;
}

void engine_revoke_for(struct engine *e, int member, uint64_t now)
{
    if (!e->revoked)
        e->blamed = member;
    engine_revoke(e, now);
    if (member >= 0)
        engine_heard_revoked(e, member);
}

void engine_revoke(struct engine *e, uint64_t now)
{
    static const struct engine_result revoked = {.status = ENGINE_REVOKED};
    e->now = now;
    if (e->revoked)
        return;
    e->revoked = true;
    engine_owes_revocation(e);
    tell_revoked(e);
    for (struct instance *i = after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (seq_stream(seq) == STREAM_ORDINARY && i->state != INSTANCE_COMPLETE) {
            i->last.made = false;
            engine_complete(e, i, &revoked);
        }
        i = after(e, seq);
    }
    if (e->pair)
        engine_revoke(e->pair, now);
}

/* ------------------------------------------------------------------------------------------------ leaving */

void engine_settle(struct engine *e, uint64_t now)
{
    e->now = now;
    e->leaves = true;
    engine_forget_returned(e);
    for (struct instance *i = after(e, 0); i;) {
        uint64_t seq = i->seq;
        if (i->state == INSTANCE_LINGERING)
            instance_settle(e, i);
        i = after(e, seq);
    }
    engine_forget_returned(e);
    engine_go_on_leaving(e);
}

/* ------------------------------------------------------------------------------------------------ queries */

bool engine_is_ordinary(uint64_t seq)
{
    return seq_stream(seq) == STREAM_ORDINARY;
}

uint64_t engine_number(uint64_t seq)
{
    return seq_number(seq);
}

int engine_blamed(const struct engine *e)
{
    return e->blamed;
}

bool engine_revoked(const struct engine *e)
{
    return e->revoked;
}

void engine_calls(const struct engine *e, uint64_t *returned, uint64_t *begun)
{
    *returned = e->stream[STREAM_ORDINARY].complete;
    *begun = e->stream[STREAM_ORDINARY].started;
}

int engine_waits_for(const struct engine *e, uint64_t seq)
{
    const struct instance *i = engine_find(e, seq);
    return i && i->state != INSTANCE_COMPLETE ? instance_waits_for(e, i) : engine_leaving_waits_for(e, seq);
}

bool engine_peek(const void *data, size_t len, uint64_t *group)
{
    struct message_head h;
    if (!message_head_read(data, len, &h))
        return false;
    *group = h.group;
    return true;
}
