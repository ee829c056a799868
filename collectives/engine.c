/* The engine of a group: its life, and its instances from the call to the end. */
#include "collectives/engine.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/engine_int.h"
#include "runtime/base/bitset.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- life ---- */

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

void engine_skip_agreements(struct engine *e, uint64_t number)
{
    e->stream[STREAM_AGREEMENT].started = e->stream[STREAM_AGREEMENT].complete = number;
}

bool engine_join(struct engine *e, uint64_t complete)
{
    e->keeps = true;
    e->stream[STREAM_ORDINARY].started = e->stream[STREAM_ORDINARY].complete = complete;
    return engine_admit(e, e->rosters[0]);
}

uint64_t engine_agreements_started(const struct engine *e)
{
    return e->stream[STREAM_AGREEMENT].started;
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

void engine_forget_rosters(struct engine *e)
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

struct instance *engine_after(const struct engine *e, uint64_t seq)
{
    struct instance *best = NULL;
    for (struct instance *i = e->instances; i; i = i->next)
        if (i->seq > seq && (!best || i->seq < best->seq))
            best = i;
    return best;
}

/* ---- starting, completing ---- */

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
    engine_forget_rosters(e);
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
        engine_forget_records(e, s, e->stream[s].everywhere);
        any = true;
    }
    if (any)
        engine_forget_rosters(e);
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
    i->resend_at = i->sending && e->ops.keep ? e->now + ENGINE_KEEP_AFTER_NS : UINT64_MAX;
    i->result = *result;
    if (i->last.made) {
        engine_record_result(e, i, result->status);
        engine_forget_records(e, s, i->last.vote.complete_min);
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

/* ---- queries ---- */

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
