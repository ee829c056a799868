/* What members contribute, and what must come out of it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/bitset.h"
#include "tests/sim/coll/world_int.h"

enum { UNIT = 8, EACH_MAX = 256 }; /* in larger groups not each looks at each */

/* ------------------------------------------------------------------------------------------------ contributions */

static uint64_t contribution(const struct coll_spec *s, int call, int member, size_t j)
{
    uint64_t x = ((uint64_t)call * 1000003 + (uint64_t)member) * 1000003 + j;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 32)) * 0x94d049bb133111ebu;
    if (s->type != ELEMENT_DOUBLE)
        return x ^ (x >> 31);
    double d = (double)(int64_t)x * 0x1p-40; /* sums of these depend on their order */
    memcpy(&x, &d, sizeof x);
    return x;
}

/* Maps x -> a x + b of 32-bit numbers, one after the other: associative, does not commute. */
static void compose(const void *left, void *right, size_t n, void *context)
{
    (void)context;
    for (size_t i = 0; i < n; i++) {
        uint32_t l[2], r[2];
        memcpy(l, (const char *)left + i * UNIT, UNIT);
        memcpy(r, (char *)right + i * UNIT, UNIT);
        r[1] += l[1] * r[0];
        r[0] *= l[0];
        memcpy((char *)right + i * UNIT, r, UNIT);
    }
}

/* Elements of the block that goes from one to the other. */
static size_t elements(const struct coll_spec *s, int from, int to)
{
    if (!s->varying)
        return (size_t)s->count;
    switch (s->move) {
    case SCHEDULE_ALLTOALL:
        return (size_t)((from * 2 + to * 3 + s->count) % 4);
    case SCHEDULE_SCATTER:
    case SCHEDULE_REDUCE_SCATTER:
        return (size_t)((to * 3 + s->count) % 5);
    default:
        return (size_t)((from * 3 + s->count) % 5);
    }
}

static bool takes_vector(const struct coll_spec *s)
{
    return s->move <= SCHEDULE_EXSCAN && s->move != SCHEDULE_REDUCE_SCATTER;
}

/* Elements of in, or out, of the member; blocks one after the other. */
static size_t total(const struct coll_member *m, const struct coll_spec *s, bool in)
{
    int n = m->w->p.n, self = m->id;
    size_t sum = 0;
    bool to_all = s->move == SCHEDULE_REDUCE_SCATTER || s->move == SCHEDULE_ALLTOALL;
    if (takes_vector(s))
        return (size_t)s->count;
    if (in ? !(to_all || (s->move == SCHEDULE_SCATTER && s->root == self))
           : s->move == SCHEDULE_SCATTER || s->move == SCHEDULE_REDUCE_SCATTER)
        return elements(s, in ? self : 0, in ? 0 : self);
    if (!in && s->move == SCHEDULE_GATHER && s->root != self)
        return 0;
    for (int i = 0; i < n; i++)
        sum += elements(s, in ? self : i, in ? i : self);
    return sum;
}

static void fill_blocks(struct coll_member *m, const struct coll_spec *s, int which, bool in)
{
    int n = m->w->p.n;
    size_t *at = calloc((size_t)n, sizeof *at), *len = calloc((size_t)n, sizeof *len), sum = 0;
    if (!at || !len)
        abort();
    for (int i = 0; i < n; i++) {
        at[i] = sum;
        len[i] = elements(s, in ? m->id : i, in ? i : m->id) * UNIT;
        sum += len[i];
    }
    free(m->b->lens[which]);
    free(m->b->lens[which + 1]);
    m->b->lens[which] = at;
    m->b->lens[which + 1] = len;
}

void coll_prepare(struct coll_member *m, const struct coll_spec *s, struct engine_call *c)
{
    *c = (struct engine_call){.kind = s->kind, .shape = s->shape, .agree = s->agree, .move = s->move, .root = s->root};
    c->value = contribution(s, m->current, m->id, 0);
    if (s->kind != ENGINE_MOVE)
        return;
    m->b->in_len = total(m, s, true) * UNIT;
    m->b->out_len = total(m, s, false) * UNIT;
    size_t room = m->b->in_len > m->b->out_len ? m->b->in_len : m->b->out_len;
    free(m->b->in);
    free(m->b->out);
    m->b->in = malloc(room + 1);
    m->b->out = malloc(room + 1);
    if (!m->b->in || !m->b->out)
        abort();
    memset(m->b->out, 0xee, room);
    for (size_t j = 0; j < m->b->in_len / UNIT; j++) {
        uint64_t v = contribution(s, m->current, m->id, j);
        memcpy(m->b->in + j * UNIT, &v, UNIT);
    }
    if (s->in_place || (s->move == SCHEDULE_BCAST && s->root == m->id))
        memcpy(m->b->out, m->b->in, m->b->in_len);
    if (!takes_vector(s)) {
        fill_blocks(m, s, 0, true);
        fill_blocks(m, s, 2, false);
    }
    c->in = s->in_place ? m->b->out : m->b->in;
    c->out = m->b->out;
    c->len = s->move == SCHEDULE_REDUCE_SCATTER ? m->b->in_len : (size_t)s->count * UNIT;
    c->element = (struct element){.type = s->type ? s->type : ELEMENT_UINT64, .op = s->op, .user = compose};
    c->varying = s->varying;
    c->mine =
        elements(s, s->move == SCHEDULE_SCATTER ? s->root : m->id, s->move == SCHEDULE_SCATTER ? m->id : s->root) *
        UNIT;
    c->in_blocks = (struct engine_blocks){m->b->lens[0], m->b->lens[1]};
    c->out_blocks = (struct engine_blocks){m->b->lens[2], m->b->lens[3]};
    c->algorithm = s->algorithm;
    c->early = s->early;
    if (s->user_op)
        c->element.op = ELEMENT_USER;
    if (s->user_op)
        c->element.user_size = UNIT;
}

/* ------------------------------------------------------------------------------------------------ results */

/* The reduction of element j over the covered members first..last-1, in order. False: there is none. */
static bool reduced(const struct coll_member *m, const struct coll_spec *s, const struct roster *r, int last, size_t j,
                    uint64_t *value)
{
    struct element e = {.type = ELEMENT_UINT64, .op = s->op};
    bool any = false;
    for (int i = roster_next(r, 0); i >= 0 && i < last; i = roster_next(r, i + 1)) {
        uint64_t v = contribution(s, m->current, i, j), sum = *value;
        if (!any)
            *value = v;
        else if (s->user_op)
            compose(&sum, &v, 1, NULL), *value = v;
        else
            element_combine(&e, value, &sum, &v, 1, NULL);
        any = true;
    }
    return any;
}

/* What is in the element of out that nothing was written to. */
static uint64_t before(const struct coll_member *m, const struct coll_spec *s, size_t j)
{
    uint64_t untouched;
    memset(&untouched, 0xee, sizeof untouched);
    return s->in_place ? contribution(s, m->current, m->id, j) : untouched;
}

static void expect(const struct coll_member *m, const struct coll_spec *s, size_t j, uint64_t want)
{
    uint64_t have;
    memcpy(&have, m->b->out + j * UNIT, UNIT);
    if (have != want)
        coll_fail(m->w, m->id, "call %d (%s, algorithm %d): element %zu is %llx, not %llx", m->current,
                  schedule_kind_name(s->move), s->algorithm - 1, j, (unsigned long long)have, (unsigned long long)want);
}

/* The same for everybody, so computed once for a call and a roster: large groups would take the square of their
 * size. */
static bool reduced_for_all(const struct coll_member *m, const struct coll_spec *s, const struct roster *r, size_t j,
                            uint64_t *value)
{
    struct coll_known *k = &m->w->known;
    if (j || k->call != m->current + 1 || k->members != r) {
        bool any = reduced(m, s, r, m->w->p.n, j, value);
        if (!j && any)
            *k = (struct coll_known){m->current + 1, r, *value};
        return any;
    }
    *value = k->first;
    return true;
}

static void check_vector(const struct coll_member *m, const struct coll_spec *s, const struct roster *r)
{
    bool scans = s->move == SCHEDULE_SCAN || s->move == SCHEDULE_EXSCAN;
    int last = s->move == SCHEDULE_SCAN ? m->id + 1 : m->id;
    for (size_t j = 0; j < (size_t)s->count; j++) {
        uint64_t v = 0;
        if (s->move == SCHEDULE_BCAST)
            v = contribution(s, m->current, s->root, j);
        else if (scans ? !reduced(m, s, r, last, j, &v) : !reduced_for_all(m, s, r, j, &v))
            v = before(m, s, j);
        expect(m, s, j, v);
    }
}

static void check_blocks(const struct coll_member *m, const struct coll_spec *s, const struct roster *r)
{
    int n = m->w->p.n;
    if (s->move == SCHEDULE_GATHER && s->root != m->id)
        return;
    size_t at = 0;
    if (s->move == SCHEDULE_SCATTER || s->move == SCHEDULE_REDUCE_SCATTER) {
        for (int i = 0; i < m->id; i++)
            at += elements(s, s->root, i);
        for (size_t j = 0; j < elements(s, s->root, m->id); j++) {
            uint64_t v = 0;
            if (s->move == SCHEDULE_SCATTER)
                v = contribution(s, m->current, s->root, at + j);
            else
                reduced(m, s, r, n, at + j, &v);
            expect(m, s, j, v);
        }
        return;
    }
    for (int i = 0; i < n; at += elements(s, i, m->id), i++) {
        size_t there = 0;
        for (int k = 0; s->move == SCHEDULE_ALLTOALL && k < m->id; k++)
            there += elements(s, i, k);
        for (size_t j = 0; j < elements(s, i, m->id); j++)
            expect(m, s, at + j, roster_has(r, i) ? contribution(s, m->current, i, there + j) : 0);
    }
}

void coll_check_data(const struct coll_member *m, const struct coll_spec *s, const struct engine_result *r)
{
    if (s->kind != ENGINE_MOVE || s->type == ELEMENT_DOUBLE)
        return;
    if (s->move == SCHEDULE_REDUCE && s->root != m->id)
        return;
    if (takes_vector(s))
        check_vector(m, s, r->members);
    else
        check_blocks(m, s, r->members);
}

static bool any_revokes(const struct coll_world *w)
{
    for (int i = 0; i < w->p.faults; i++)
        if (w->p.fault[i].kind == COLL_REVOKES)
            return true;
    return false;
}

static bool rooted(const struct coll_spec *s)
{
    return s->kind == ENGINE_MOVE && (s->move == SCHEDULE_BCAST || s->move == SCHEDULE_REDUCE ||
                                      s->move == SCHEDULE_GATHER || s->move == SCHEDULE_SCATTER);
}

/* What it returns is made from everybody's data for everybody: then who has left is covered, too. */
/* Of no bytes: like a barrier, it lists who lives when it ends. */
static bool moves(const struct coll_spec *s)
{
    return s->kind == ENGINE_MOVE && s->count;
}

static bool from_all_for_all(const struct coll_spec *s)
{
    return s->kind == ENGINE_AGREE || (moves(s) && !rooted(s));
}

/* The list of a barrier, a broadcast or the like is who lives when it ends: one that has left may have been told a
 * longer one. */
static bool lists_givers(const struct coll_spec *s)
{
    return from_all_for_all(s) || (moves(s) && (s->move == SCHEDULE_REDUCE || s->move == SCHEDULE_GATHER));
}

static bool has_returned(const struct coll_outcome *o)
{
    return o->done && o->status != ENGINE_REVOKED;
}

void coll_check_done(const struct coll_member *m, int call, const struct engine_result *r)
{
    struct coll_world *w = m->w;
    const struct coll_spec *s = &w->p.call[call];
    if (r->status == ENGINE_REVOKED && any_revokes(w))
        return;
    bool one_way = s->early && s->move == SCHEDULE_BCAST; /* waits for nobody but who sends */
    if (w->awaited[call] && !one_way)
        coll_fail(w, m->id, "leaves call %d before %d others have come", call, w->awaited[call]);
    if (r->status == ENGINE_ROOT_DEAD && rooted(s) &&
        (w->member[s->root].dead ||
         (w->member[s->root].left &&
          !(w->member[s->root].outcome[call].done && w->member[s->root].outcome[call].status == ENGINE_OK))))
        return;
    if (r->status != ENGINE_OK || !r->members)
        coll_fail(w, m->id, "call %d returns %d", call, (int)r->status);
    for (int i = 0; i < w->p.n && w->p.n <= EACH_MAX; i++) {
        const struct coll_member *other = &w->member[i];
        bool stays = !other->left || (moves(s) && from_all_for_all(s) && has_returned(&other->outcome[call]));
        bool counts = !other->dead && stays;
        if (counts && !roster_has(r->members, i))
            coll_fail(w, m->id, "call %d does not cover %d, which lives", call, i);
        bool empty = s->kind == ENGINE_MOVE && (s->varying || one_way); /* nothing of it was needed */
        bool later = (s->move == SCHEDULE_SCAN || s->move == SCHEDULE_EXSCAN) && i > m->id;
        if (roster_has(r->members, i) && !other->outcome[call].begun && !empty && !later)
            coll_fail(w, m->id, "call %d covers %d, which has not come", call, i);
    }
    coll_check_data(m, s, r);
    if (w->stats.sums && s->type == ELEMENT_DOUBLE && s->move == SCHEDULE_ALLREDUCE)
        memcpy(&w->stats.sums[call], m->b->out, sizeof(double));
}

static bool same_members(const struct roster *a, const struct roster *b)
{
    if (!a || !b || a == b)
        return a == b;
    return !memcmp(roster_bits(a), roster_bits(b), BITSET_WORDS(roster_size(a)) * sizeof(uint64_t));
}

/* All who completed a call got the same; of agreements and of what is made from everybody's data for everybody also
 * those who died after it. */
void coll_check_end(struct coll_world *w)
{
    for (int c = 0; c < w->p.calls; c++) {
        const struct coll_outcome *status = NULL, *first = NULL;
        const struct coll_spec *s = &w->p.call[c];
        bool agreed = s->kind == ENGINE_AGREE;
        bool uniform = agreed || (moves(s) && !rooted(s) && !s->early);
        bool one_way = s->early && s->move == SCHEDULE_BCAST;
        for (int i = 0; i < w->p.n; i++) {
            const struct coll_outcome *o = &w->member[i].outcome[c];
            if (!has_returned(o) || (w->member[i].dead && !uniform))
                continue;
            if (!status)
                status = o;
            bool lost = s->kind == ENGINE_MOVE && rooted(s) && w->member[s->root].dead; /* with the root that had it */
            if ((status->status != o->status && !lost) || (agreed && status->value != o->value))
                coll_fail(w, i, "call %d: another result than others", c);
            if (one_way || (w->member[i].left && (lost || !lists_givers(s))))
                continue;
            if (!first)
                first = o;
            if (!same_members(first->members, o->members))
                coll_fail(w, i, "call %d: other members covered than others", c);
            w->stats.retries += o->members && roster_live(o->members) < roster_live(w->view[0]);
        }
    }
}
