/* One instance as its call makes it: what all members must have passed alike, how long its input and output are, its memory,
 * and which members of each view it concerns. */
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_instance.h"

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

struct record *record_create(size_t room)
{
    struct record *r = malloc(sizeof *r + room);
    if (r)
        *r = (struct record){.room = room};
    return r;
}

/* For what remains of it, which others may need. */
static bool has_record(const struct engine *e, struct instance *i)
{
    bool keeps = e->keeps && seq_stream(i->seq) == STREAM_ORDINARY && i->call.kind == ENGINE_MOVE;
    i->record = record_create(keeps ? i->out_len : 0);
    return i->record;
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
    i->out_len = call->kind == ENGINE_MOVE ? output_len(e, call) : 0;
    if (!has_record(e, i)) {
        instance_destroy(i);
        return NULL;
    }
    if (call->kind != ENGINE_MOVE)
        return i;
    i->holds = call->move == SCHEDULE_BCAST && call->root == e->self;
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
    free(i->record);
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

struct roster *instance_roster_at(const struct engine *e, const struct instance *i, uint64_t epoch)
{
    for (int k = 0; k < i->n_views; k++)
        if (roster_epoch(i->views[k]) == epoch)
            return i->views[k];
    return engine_roster_at(e, epoch);
}

struct roster *instance_roster(const struct engine *e, const struct instance *i)
{
    return instance_roster_at(e, i, roster_epoch(engine_roster(e)));
}
