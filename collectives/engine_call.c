/* One instance as its call makes it: what all members must have passed alike, how long its input and output are, its
 * memory, and which members of each view it concerns. */
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
    if (c->kind == ENGINE_AGREE || c->kind == ENGINE_DECIDE)
        return folded(hash(hash(h, c->agree), c->arguments));
    if (c->kind != ENGINE_MOVE)
        return folded(c->kind == ENGINE_BARRIER ? hash(h, c->arguments) : h);
    h = hash(hash(hash(hash(h, c->move), (uint64_t)c->algorithm), c->varying), c->early);
    h = hash(h, c->varying && c->move != SCHEDULE_REDUCE_SCATTER ? 0 : c->len);
    if (c->move == SCHEDULE_BCAST || c->move == SCHEDULE_REDUCE || c->move == SCHEDULE_GATHER ||
        c->move == SCHEDULE_SCATTER)
        h = hash(h, (uint64_t)c->root);
    if (c->move >= SCHEDULE_REDUCE && c->move <= SCHEDULE_EXSCAN)
        h = hash(hash(hash(hash(h, c->element.type), c->element.op), element_size(&c->element)), c->commutes);
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

/* Whoever knows both how long its own block is where it comes from and where it goes says the same. */
static bool own_block_fits(const struct engine *e, const struct engine_call *c)
{
    size_t self = (size_t)e->self;
    if (!c->varying)
        return true;
    if (c->move == SCHEDULE_ALLTOALL)
        return c->in_blocks.len[self] == c->out_blocks.len[self];
    if (c->move == SCHEDULE_SCATTER)
        return c->root != e->self || c->in_blocks.len[self] == c->mine;
    if (c->move == SCHEDULE_GATHER)
        return c->root != e->self || c->out_blocks.len[self] == c->mine;
    return c->move != SCHEDULE_ALLGATHER || c->out_blocks.len[self] == c->mine;
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

/* ---- what is put by ---- */

/* Of two streams the last call, which others may ask about, and the one that is under way. */
enum { RECORDS_PUT_BY = 2 * STREAMS, LETTERS_PUT_BY = 4 };

bool engine_put_by(struct engine *e)
{
    if (!e->put_by.instance)
        e->put_by.instance = calloc(1, sizeof *e->put_by.instance);
    for (struct record *r; e->put_by.n_records < RECORDS_PUT_BY && (r = record_create(0)); e->put_by.n_records++) {
        r->next = e->put_by.records;
        e->put_by.records = r;
    }
    for (struct letter *l; e->put_by.n_letters < LETTERS_PUT_BY && (l = malloc(sizeof *l));)
        letter_free(e, l);
    return e->put_by.instance && e->put_by.n_letters == LETTERS_PUT_BY && e->put_by.n_records == RECORDS_PUT_BY;
}

void letter_free(struct engine *e, struct letter *l)
{
    if (e->put_by.n_letters == LETTERS_PUT_BY) {
        free(l);
        return;
    }
    l->next = e->put_by.letters;
    e->put_by.letters = l;
    e->put_by.n_letters++;
}

struct letter *letter_new(struct engine *e, size_t len, bool put_by)
{
    struct letter *l = malloc(sizeof *l + len);
    if (!l && !len && put_by && e->put_by.letters) {
        l = e->put_by.letters;
        e->put_by.letters = l->next;
        e->put_by.n_letters--;
    }
    return l;
}

void engine_put_by_fini(struct engine *e)
{
    free(e->put_by.instance);
    for (struct letter *l = e->put_by.letters, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    for (struct record *r = e->put_by.records, *next; r; r = next) {
        next = r->next;
        free(r);
    }
}

void record_destroy(struct engine *e, struct record *r)
{
    if (!r || r->room || e->put_by.n_records == RECORDS_PUT_BY) {
        free(r);
        return;
    }
    r->next = e->put_by.records;
    e->put_by.records = r;
    e->put_by.n_records++;
}

static struct record *take_record(struct engine *e)
{
    struct record *r = e->put_by.records;
    if (r) {
        e->put_by.records = r->next;
        e->put_by.n_records--;
    }
    return r;
}

/* ---- an instance ---- */

/* For what remains of it, which others may need: that it failed at least. */
static bool has_record(struct engine *e, struct instance *i)
{
    bool keeps = e->keeps && seq_stream(i->seq) == STREAM_ORDINARY && i->call.kind == ENGINE_MOVE;
    i->record = record_create(keeps ? i->out_len : 0);
    if (!i->record) {
        i->trouble = keeps && i->out_len ? ENGINE_NOMEM : i->trouble;
        i->record = take_record(e);
    }
    return i->record;
}

/* The input must outlive a failed attempt. */
static bool save_input(const struct engine *e, struct instance *i)
{
    size_t len = i->call.in == i->call.out ? engine_input_len(e, &i->call) : 0;
    if (!len)
        return true;
    i->saved = malloc(len);
    if (!i->saved)
        return false;
    memcpy(i->saved, i->call.in, len);
    i->call.in = i->saved;
    return true;
}

/* Who was not the first when an attempt began may be in the next one. */
static bool save_output(const struct engine *e, struct instance *i)
{
    if (i->call.move != SCHEDULE_EXSCAN || i->saved || !i->out_len || !e->self)
        return true;
    i->untouched = malloc(i->out_len);
    if (i->untouched)
        memcpy(i->untouched, i->call.out, i->out_len);
    return i->untouched;
}

/* Memory for it: its own, or, and then the call fails on all members, what was put by. */
static struct instance *instance_new(struct engine *e)
{
    struct instance *i = calloc(1, sizeof *i);
    if (i)
        return i;
    i = e->put_by.instance;
    e->put_by.instance = NULL;
    if (i)
        *i = (struct instance){.trouble = ENGINE_NOMEM};
    return i;
}

static bool may_return_early(const struct engine *e, struct instance *i)
{
    const struct engine_call *c = &i->call;
    bool same = c->move == SCHEDULE_BCAST || c->move == SCHEDULE_ALLREDUCE || c->move == SCHEDULE_ALLGATHER;
    size_t len = instance_differs(i) ? engine_input_len(e, c) : i->out_len;
    i->kept_len = instance_differs(i) ? 2 * len : len;
    return c->early && !c->varying && (same || instance_differs(i)) && len && len <= ENGINE_EARLY_MAX;
}

enum engine_status instance_create(struct engine *e, uint64_t seq, const struct engine_call *call,
                                   struct instance **out)
{
    struct instance *i = instance_new(e);
    if (!i)
        return ENGINE_LIMIT;
    i->seq = seq;
    i->call = *call;
    i->root = call->root;
    i->resend_at = UINT64_MAX;
    if (!call->refuses) {
        i->signature = engine_signature(e, call);
        i->out_len = call->kind == ENGINE_MOVE ? output_len(e, call) : 0;
    }
    if (!has_record(e, i)) {
        instance_destroy(e, i);
        return ENGINE_LIMIT;
    }
    *out = i;
    if (call->kind == ENGINE_DECIDE)
        i->trouble = ENGINE_OK;
    if (call->refuses)
        i->trouble = ENGINE_NOMEM;
    if (call->kind != ENGINE_MOVE || call->refuses)
        return ENGINE_OK;
    i->holds = call->move == SCHEDULE_BCAST && call->root == e->self;
    i->early = may_return_early(e, i);
    if (!save_input(e, i) || !save_output(e, i))
        i->trouble = ENGINE_NOMEM;
    if (!own_block_fits(e, call)) /* all are told, as if it had been another member's */
        i->trouble = ENGINE_MISMATCH;
    return ENGINE_OK;
}

void instance_destroy(struct engine *e, struct instance *i)
{
    while (i->inbox) {
        struct letter *l = i->inbox;
        i->inbox = l->next;
        letter_free(e, l);
    }
    roster_unref(i->members);
    schedule_fini(&i->schedule);
    free(i->tmp);
    free(i->kept);
    free(i->saved);
    free(i->untouched);
    record_destroy(e, i->record);
    if (e->put_by.instance)
        free(i);
    else
        e->put_by.instance = i;
}

/* ------------------------------------------------------------------------------------------------ who takes part */

void engine_forget_smaller(struct engine *e, bool all)
{
    for (struct smaller **at = &e->smaller; *at;) {
        struct smaller *s = *at;
        if (!all && s->number > e->stream[STREAM_ORDINARY].complete && engine_roster_at(e, roster_epoch(s->members))) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        roster_unref(s->members);
        free(s);
    }
}

/* False: there is no memory. */
static bool admit_for(struct engine *e, struct roster *r, uint64_t number)
{
    struct roster *members = roster_for(r, number);
    if (!members || members == r) {
        roster_unref(members);
        return members;
    }
    struct smaller *s = malloc(sizeof *s);
    if (!s) {
        roster_unref(members);
        return false;
    }
    *s = (struct smaller){e->smaller, number, members};
    e->smaller = s;
    return true;
}

/* Who joins has no more calls behind it than the others, who have begun each of those, or are one behind. */
bool engine_admit(struct engine *e, struct roster *r)
{
    uint64_t first = e->stream[STREAM_ORDINARY].complete + 1, last = roster_last_after(r);
    last = last < first + ENGINE_WINDOW ? last : first + ENGINE_WINDOW;
    for (uint64_t number = first; number <= last; number++)
        if (!admit_for(e, r, number))
            return false;
    return true;
}

struct roster *instance_roster_at(const struct engine *e, const struct instance *i, uint64_t epoch)
{
    for (const struct smaller *s = seq_stream(i->seq) == STREAM_ORDINARY ? e->smaller : NULL; s; s = s->next)
        if (s->number == seq_number(i->seq) && roster_epoch(s->members) == epoch)
            return s->members;
    return engine_roster_at(e, epoch);
}

struct roster *instance_roster(const struct engine *e, const struct instance *i)
{
    return instance_roster_at(e, i, roster_epoch(engine_roster(e)));
}
