#include "tests/sim/data/history.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/data/sched.h"

enum { STATES_FIRST = 1 << 8, STATES_MIN = 1 << 10, STATES = 1 << 16, STEPS_MAX = 2000000 };

size_t history_call(struct history *h, const struct history_op *op)
{
    if (h->n == h->capacity) {
        size_t capacity = h->capacity ? 2 * h->capacity : 16;
        struct history_op *wider = sim_alloc(capacity * sizeof *wider);
        if (h->n)
            memcpy(wider, h->op, h->n * sizeof *wider);
        free(h->op);
        h->op = wider;
        h->capacity = capacity;
    }
    h->op[h->n] = *op;
    h->op[h->n].returned = UINT64_MAX;
    return h->n++;
}

void history_return(struct history *h, size_t at, int64_t result, uint64_t now)
{
    h->op[at].result = result;
    h->op[at].returned = now;
}

void history_refused(struct history *h, size_t at)
{
    h->op[at].kind = HISTORY_PLAIN_GET; /* that never returned */
}

/* The search: which operations are done (a set), and the word's value. */
struct search {
    const struct history_op *op; /* in the order of their calls */
    size_t n, words;
    uint64_t *done;
    uint64_t *seen; /* hashes of states, open addressing, 0: free */
    size_t states, states_max, seen_n;
    uint64_t steps;
};

static bool is_done(const struct search *s, size_t i)
{
    return s->done[i / 64] >> (i % 64) & 1;
}

static size_t place_of(const struct search *s, uint64_t h)
{
    size_t at = (size_t)h & (s->states - 1);
    while (s->seen[at] && s->seen[at] != h)
        at = (at + 1) & (s->states - 1);
    return at;
}

/* Most searches see few states: the table is as large as they need. */
static void widen(struct search *s)
{
    uint64_t *old = s->seen;
    size_t n = s->states;
    s->states *= 4;
    s->seen = sim_alloc(s->states * sizeof *s->seen);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            s->seen[place_of(s, old[i])] = old[i];
    free(old);
}

/* New here? A collision of 64-bit hashes would only make the search miss a way, one time in billions of runs. */
static bool remember(struct search *s, int64_t value)
{
    uint64_t h = ((uint64_t)value + 1) * 0x9e3779b97f4a7c15u;
    h ^= h >> 31;
    for (size_t i = 0; i < s->words; i++) {
        h = (h ^ s->done[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 29;
    }
    h += h == 0;
    if (s->seen_n == s->states / 2 && s->states < s->states_max)
        widen(s);
    size_t at = place_of(s, h);
    if (s->seen[at] == h)
        return false;
    if (s->seen_n < s->states / 2) {
        s->seen[at] = h;
        s->seen_n++;
    }
    return true;
}

/* Can the operation be next? *value is then what it leaves. */
static bool applies(const struct history_op *op, int64_t *value)
{
    bool known = op->returned != UINT64_MAX;
    if (op->kind != HISTORY_PUT && known && op->result != *value)
        return false;
    if (op->kind == HISTORY_RMW)
        (void)arith_rmw(op->rmw, sizeof *value, value, op->a, op->b);
    else if (op->kind == HISTORY_PUT)
        *value = op->a;
    return true;
}

static bool search(struct search *s, int64_t value)
{
    if (++s->steps > STEPS_MAX)
        return true;
    if (!remember(s, value))
        return false;
    uint64_t first_return = UINT64_MAX;
    bool left = false;
    for (size_t i = 0; i < s->n; i++)
        if (!is_done(s, i) && s->op[i].returned != UINT64_MAX) {
            left = true;
            first_return = s->op[i].returned < first_return ? s->op[i].returned : first_return;
        }
    if (!left)
        return true; /* those that never returned need not have happened */
    for (size_t i = 0; i < s->n && s->op[i].called <= first_return; i++) {
        int64_t next = value;
        if (is_done(s, i) || !applies(&s->op[i], &next))
            continue;
        s->done[i / 64] |= 1ull << (i % 64);
        if (search(s, next))
            return true;
        s->done[i / 64] &= ~(1ull << (i % 64));
    }
    return false;
}

static int by_call(const void *a, const void *b)
{
    const struct history_op *x = a, *y = b;
    return x->called < y->called ? -1 : x->called > y->called;
}

/* op: any order. states: memory for so many at most, a power of four. */
static enum history_verdict check(struct history_op *op, size_t n, size_t states, int64_t initial)
{
    qsort(op, n, sizeof *op, by_call);
    struct search s = {.op = op, .n = n, .words = (n + 63) / 64, .states = STATES_FIRST, .states_max = states};
    s.done = sim_alloc(s.words * sizeof *s.done);
    s.seen = sim_alloc(s.states * sizeof *s.seen);
    bool ok = search(&s, initial);
    free(s.done);
    free(s.seen);
    return !ok ? HISTORY_BROKEN : s.steps > STEPS_MAX ? HISTORY_TOO_LONG : HISTORY_OK;
}

/* A plain get, the last of what was complete before it, and of what was under way. */
static enum history_verdict check_plain(const struct history *h, const struct history_op *get, int64_t initial)
{
    struct history_op *op = sim_alloc(h->n * sizeof *op);
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (h->op[i].kind == HISTORY_PLAIN_GET || h->op[i].called > get->returned)
            continue;
        op[n] = h->op[i];
        if (op[n].returned > get->called)
            op[n].returned = UINT64_MAX;
        n++;
    }
    op[n] = *get;
    op[n++].kind = HISTORY_GET;
    enum history_verdict verdict = check(op, n, STATES_MIN, initial);
    free(op);
    return verdict;
}

enum history_verdict history_check(const struct history *h, int64_t initial)
{
    if (h->n == 0)
        return HISTORY_OK;
    struct history_op *op = sim_alloc(h->n * sizeof *op);
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->op[i].kind != HISTORY_PLAIN_GET)
            op[n++] = h->op[i];
    enum history_verdict verdict = n ? check(op, n, STATES, initial) : HISTORY_OK;
    free(op);
    for (size_t i = 0; i < h->n && verdict == HISTORY_OK; i++)
        if (h->op[i].kind == HISTORY_PLAIN_GET && h->op[i].returned != UINT64_MAX)
            verdict = check_plain(h, &h->op[i], initial);
    return verdict;
}
