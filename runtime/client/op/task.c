/* Task pools. A pool is a replicated segment: on its home rank two counters (used by rounds of even and odd number) and
 * two round marks; on every rank the state words of its share of the tasks (task t is word t / size of rank t % size).
 *
 *   state word   round << 32 | claimed << 31 | rank << 11 | incarnation modulo 2^11
 *                an older round's word means open; 0 is "done in round 0"; the first round is 1
 *
 *   open ──(compare-and-swap by who drew it)──► claimed(rank, incarnation) ──(commit)──► done(round)
 *    ▲                                             │ the claimant is dead by the view: compare-and-swap by another rank
 *    └── reset: the round number rises             └──► claimed(other)
 *
 * A claimant that is dead by the view was fenced before anybody saw that view, so two live ranks never run one task at
 * the same time; and what the dead one had accumulated is known to the copies by (task, step) and does not count
 * again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/move.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/task.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"
#include "runtime/wire/task_id.h"

enum { POOL_HEAD = 64, MARK_AT = 16, WAIT_MS = 1, ROUND_MAX = INT32_MAX, RANK_BITS = 20, INCARNATION_BITS = 11 };

struct keel_taskpool {
    keel_segment *segment;
    int64_t count;
    int home;
    uint32_t round;
    bool exhausted;
    int64_t current; /* the task this process runs, -1: none */
    int64_t *words;  /* [count] scratch for the end of a round */
};

/* Tells a joining rank which round it is. Who reads while another one writes may have a word of each: both hold the low
 * half of the collective's number. A mark that is being written is of no round yet, as it is written before the
 * collective. */
struct mark {
    uint64_t round;      /* << 32 | low half of: */
    uint64_t collective; /* the number of the one that opened it */
};

static struct mark mark_of(uint32_t round, uint64_t collective)
{
    return (struct mark){(uint64_t)round << 32 | (uint32_t)collective, collective};
}

/* The round, if the collective that opens it is complete, which is one of so many; else 0. */
static uint32_t mark_round(const struct mark *m, uint64_t collectives)
{
    bool whole = (uint32_t)m->round == (uint32_t)m->collective;
    return whole && m->collective <= collectives ? (uint32_t)(m->round >> 32) : 0;
}

#define CLAIMED ((int64_t)1 << (RANK_BITS + INCARNATION_BITS))

static int64_t done_word(uint32_t round)
{
    return (int64_t)round << 32;
}

static int64_t incarnation_bits(uint64_t incarnation)
{
    return (int64_t)(incarnation & ((1u << INCARNATION_BITS) - 1));
}

static int64_t claim_word(const struct client *c, uint32_t round)
{
    return done_word(round) | CLAIMED | (int64_t)c->rank << INCARNATION_BITS | incarnation_bits(c->incarnation);
}

static uint32_t word_round(int64_t word)
{
    return (uint32_t)((uint64_t)word >> 32);
}

static int claimant(int64_t word)
{
    return (int)(word >> INCARNATION_BITS & ((1 << RANK_BITS) - 1));
}

static bool claimant_lives(const struct client *c, int64_t word)
{
    int rank = claimant(word);
    if (rank >= c->size)
        return false;
    uint64_t where = atomic_load_explicit(&page_rank(c->page, rank)->where, memory_order_acquire);
    return (int32_t)(where >> 32) >= 0 && incarnation_bits(where & 0xffffffff) == incarnation_bits((uint64_t)word);
}

static int word_rank(const struct client *c, int64_t task)
{
    return (int)(task % c->size);
}

static size_t word_offset(const struct client *c, int64_t task)
{
    return POOL_HEAD + 8 * (size_t)(task / c->size);
}

static keel_status find_round(struct client *c, keel_taskpool *pool)
{
    struct mark mark[2];
    struct op op;
    pool->round = 1;
    if (pool->segment->freed || !c->restarted)
        return KEEL_OK;
    if (near_bad_range(c, pool->segment, pool->home, MARK_AT, sizeof mark))
        return KEEL_ERR_ARG;
    op_init(c, &op, OP_GET, pool->segment, pool->home, MARK_AT, sizeof mark);
    op.dst = (uint8_t *)mark;
    op.patient = true; /* the others were told that the pool is there */
    keel_status status = op_run(&op);
    for (int i = 0; status == KEEL_OK && i < 2; i++)
        if (mark_round(&mark[i], c->collectives) > pool->round)
            pool->round = mark_round(&mark[i], c->collectives);
    return status == KEEL_ERR_ARG ? KEEL_OK
                                  : status; /* the others are freeing it: this process comes too late for it */
}

keel_status taskpool_create(struct client *c, keel_status able, int64_t count, keel_taskpool **out)
{
    if (out)
        *out = NULL;
    if (!c->ready)
        return KEEL_ERR_STATE;
    bool wrong = !out || count < 0 || count > UINT32_MAX; /* told to all: the others would wait for this rank */
    keel_taskpool *pool = wrong ? NULL : segment_zeroed(c, 1, sizeof *pool);
    int64_t *words = wrong ? NULL : segment_zeroed(c, (size_t)count + 1, sizeof *words);
    size_t share = wrong ? 0 : (size_t)(count + c->size - 1) / (size_t)c->size;
    keel_segment *segment;
    able = wrong ? KEEL_ERR_ARG : pool && words ? able : KEEL_ERR_NOMEM;
    keel_status status =
        segment_alloc_for(c, able, SEGMENT_OF_TASKS + (uint64_t)count, POOL_HEAD + 8 * share, &segment);
    if (status == KEEL_OK) {
        assert(pool && words); /* else this rank would have made the allocation fail */
        pool->segment = segment;
        pool->count = count;
        pool->current = -1;
        pool->words = words;
        pool->home = (int)(pool->segment->index % (uint32_t)c->size);
        status = find_round(c, pool);
    }
    if (status != KEEL_OK) {
        free(words);
        free(pool);
        return status;
    }
    *out = pool;
    return KEEL_OK;
}

keel_status taskpool_free(struct client *c, keel_taskpool *pool, bool *gone)
{
    *gone = false;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (!pool)
        return KEEL_OK;
    if (pool->current >= 0 || c->coll.split)
        return KEEL_ERR_STATE;
    if (c->segments.unfinished.under_way && c->segments.unfinished.segment != pool->segment)
        return KEEL_ERR_STATE;
    keel_status status = segment_free(c, pool->segment);
    if (c->segments.unfinished.under_way || status == KEEL_ERR_MISMATCH) /* it ended by its time-out; it is not freed */
        return status;
    free(pool->words);
    free(pool);
    *gone = true;
    return status;
}

keel_status taskpool_reset(struct client *c, keel_taskpool *pool)
{
    if (!collective_may_begin(c))
        return KEEL_ERR_STATE;
    if (pool->round == ROUND_MAX)
        return KEEL_ERR_LIMIT;
    /* Nobody uses the next round's counter and mark before the barrier, and every rank writes the same: whoever dies,
     * they are right after it. */
    uint32_t next = pool->round + 1;
    int64_t zero = 0;
    struct mark mark = mark_of(next, c->collectives + 1);
    const struct engine_call call = {.kind = ENGINE_BARRIER, .arguments = 1 + pool->segment->index};
    keel_status status = rma_put(c, pool->segment, pool->home, 8 * (next & 1), &zero, sizeof zero);
    if (status == KEEL_OK)
        status = rma_put(c, pool->segment, pool->home, MARK_AT + sizeof mark * (next & 1), &mark, sizeof mark);
    FAULT_POINT("task.reset_prepared");
    if (status == KEEL_OK)
        status = collective_run(c, &call);
    if (status != KEEL_OK)
        return status;
    pool->round = next;
    pool->exhausted = false;
    pool->current = -1;
    return KEEL_OK;
}

/* Make the task ours if its word is still `expected` or an older round's. *ours tells. */
static keel_status claim(struct client *c, keel_taskpool *pool, int64_t task, int64_t expected, bool *ours)
{
    *ours = false;
    for (;;) {
        int64_t old;
        keel_status status = rma_compare_swap(c, pool->segment, word_rank(c, task), word_offset(c, task), expected,
                                              claim_word(c, pool->round), &old);
        if (status != KEEL_OK)
            return status;
        if (old == expected ||
            old == claim_word(c, pool->round)) { /* or an earlier try of ours timed out, and took effect */
            *ours = true;
            return KEEL_OK;
        }
        if (word_round(old) >= pool->round) /* later: we came back, and the others have gone on (keel_resume) */
            return KEEL_OK;
        expected = old;
    }
}

static keel_status begin(struct client *c, keel_taskpool *pool, int64_t task, int64_t *out)
{
    pool->current = task;
    c->task_run.open = true;
    c->task_run.id = task_id(pool->segment->index, (uint32_t)task);
    c->task_run.round = pool->round;
    c->task_run.copysets = 0;
    c->task_run.broken = false;
    FAULT_POINT("task.claimed");
    *out = task;
    return KEEL_OK;
}

static keel_status draw(struct client *c, keel_taskpool *pool, int64_t *out)
{
    *out = -1;
    while (!pool->exhausted) {
        int64_t task;
        keel_status status = rma_fetch_add(c, pool->segment, pool->home, 8 * (pool->round & 1), 1, &task);
        if (status != KEEL_OK)
            return status;
        if (task < 0 || task >= pool->count) {
            pool->exhausted = true;
            break;
        }
        FAULT_POINT("task.drawn");
        bool ours;
        status = claim(c, pool, task, done_word(pool->round - 1), &ours);
        if (status != KEEL_OK)
            return status;
        if (ours)
            return begin(c, pool, task, out);
    }
    return KEEL_OK;
}

static keel_status read_words(struct client *c, keel_taskpool *pool)
{
    size_t size = (size_t)c->size, share = ((size_t)pool->count + size - 1) / size;
    int64_t *part = malloc(8 * share + 8);
    keel_status status = part ? KEEL_OK : KEEL_ERR_NOMEM;
    for (size_t r = 0; r < size && status == KEEL_OK; r++) {
        status = rma_get(c, pool->segment, (int)r, POOL_HEAD, part, 8 * share);
        for (size_t i = 0; status == KEEL_OK && i < share && i * size + r < (size_t)pool->count; i++)
            pool->words[i * size + r] = part[i];
    }
    free(part);
    return status;
}

/* The counter is used up: find a task that nobody alive has. *busy: some are still being run, one of them by *runner
 * (-1: not known). */
static keel_status take_over(struct client *c, keel_taskpool *pool, int64_t *out, bool *busy, int *runner)
{
    *out = *runner = -1;
    *busy = false;
    keel_status status = read_words(c, pool);
    for (int64_t t = 0; t < pool->count && status == KEEL_OK; t++) {
        int64_t word = pool->words[t];
        if (word == done_word(pool->round) || word_round(word) > pool->round)
            continue;
        bool open = word_round(word) != pool->round; /* drawn, and not claimed yet or never */
        if (!open && word != claim_word(c, pool->round) && claimant_lives(c, word)) {
            *busy = true;
            *runner = claimant(word);
            continue;
        }
        bool ours;
        status = claim(c, pool, t, word, &ours);
        if (ours)
            return begin(c, pool, t, out);
        *busy = true;
    }
    return status;
}

/* One thread at a time, and none while a task is open, but for one that is broken: *again. */
static bool may_draw(struct client *c, const keel_taskpool *pool, bool *again)
{
    client_lock(c);
    if (c->task_run.open && c->task_run.broken)
        task_rest(c, -1); /* what is still under way belongs to the run before */
    bool busy = c->task_run.drawing || (c->task_run.open && !(c->task_run.broken && pool->current >= 0));
    *again = !busy && c->task_run.open;
    c->task_run.drawing = c->task_run.drawing || !busy;
    pthread_mutex_unlock(&c->lock);
    return !busy;
}

static void drawn(struct client *c)
{
    client_lock(c);
    c->task_run.drawing = false;
    pthread_mutex_unlock(&c->lock);
}

static void runs_a_task(const struct client *c, const void *runner, struct wait_said *out)
{
    (void)c;
    out->whom = WAIT_FOR_HOLDER;
    out->rank = *(const int *)runner;
}

static keel_status draw_or_take_over(struct client *c, keel_taskpool *pool, int64_t *task)
{
    int runner;
    struct wait wait = {.call = WAIT_TASK, .whom = runs_a_task, .arg = &runner, .keeps = true};
    keel_status status = draw(c, pool, task);
    while (status == KEEL_OK && *task < 0) {
        bool busy;
        status = take_over(c, pool, task, &busy, &runner);
        if (status != KEEL_OK || *task >= 0 || !busy)
            break;
        /* Others compute; nothing announces the end of a task, so look again. */
        uint64_t now = c->env.now(c->env.user);
        waits_last(c, &wait, now, now);
        c->env.sleep(c->env.user, WAIT_MS);
    }
    waits_over(c, &wait);
    return status;
}

keel_status task_next(struct client *c, keel_taskpool *pool, int64_t *task)
{
    bool again;
    if (!c->ready || !c->resumed)
        return KEEL_ERR_STATE;
    move_point(c);
    if (!may_draw(c, pool, &again))
        return KEEL_ERR_STATE;
    keel_status status = !task   ? KEEL_ERR_ARG
                         : again ? begin(c, pool, pool->current, task)
                                 : draw_or_take_over(c, pool, task);
    drawn(c);
    return status;
}

keel_status task_commit(struct client *c, keel_taskpool *pool, int64_t task)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (task < 0 || task >= pool->count)
        return KEEL_ERR_ARG;
    client_lock(c);
    if (pool->current == task)
        task_rest(c, -1);
    bool open = pool->current == task && !c->task_run.broken;
    pthread_mutex_unlock(&c->lock);
    if (!open)
        return KEEL_ERR_STATE;
    FAULT_POINT("task.committing");
    int64_t mine = claim_word(c, pool->round), old;
    keel_status status = rma_compare_swap(c, pool->segment, word_rank(c, task), word_offset(c, task), mine,
                                          done_word(pool->round), &old);
    if (status != KEEL_OK)
        return status;
    pool->current = -1;
    c->task_run.open = false;
    FAULT_POINT("task.committed");
    return old == mine || old == done_word(pool->round) ? KEEL_OK : KEEL_ERR_FENCED;
}
