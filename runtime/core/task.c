/* Task pools. A pool is a replicated segment: on its home rank two counters (used by rounds of even and odd number) and
 * two round marks; on every rank the state words of its share of the tasks (task t is word t / size of rank t % size).
 *
 *   state word   round << 40 | claimed << 39 | rank << 16 | incarnation
 *                an older round's word means open; 0 is "done in round 0"; the first round is 1
 *
 *   open ──(compare-and-swap by who drew it)──► claimed(rank, incarnation) ──(commit)──► done(round)
 *    ▲                                             │ the claimant is dead by the view: compare-and-swap by another rank
 *    └── reset: the round number rises             └──► claimed(other)
 *
 * A claimant that is dead by the view was fenced before anybody saw that view, so two live ranks never run one task at the
 * same time; and what the dead one had accumulated is known to the copies by (task, step) and does not count again. */
#include "runtime/core/client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/core/task_id.h"

enum { POOL_HEAD = 64, WAIT_FIRST_NS = 50000, WAIT_MAX_NS = 2000000, MARK_AT = 16 };

struct keel_taskpool {
    keel_segment *segment;
    int64_t count;
    int home;
    uint32_t round;
    bool exhausted;
    int64_t current; /* the task this process runs, -1: none */
    int64_t *words;  /* [count] scratch for the end of a round */
};

#define CLAIMED ((int64_t)1 << 39)

static int64_t done_word(uint32_t round)
{
    return (int64_t)round << 40;
}

static int64_t claim_word(uint32_t round)
{
    return done_word(round) | CLAIMED | (int64_t)client.rank << 16 | (client.incarnation & 0xffff);
}

static uint32_t word_round(int64_t word)
{
    return (uint32_t)(word >> 40);
}

static bool claimant_lives(int64_t word)
{
    int rank = (int)(word >> 16 & 0x7fffff);
    if (rank >= client.size)
        return false;
    uint64_t where = atomic_load_explicit(&page_rank(client.page, rank)->where, memory_order_acquire);
    return (int32_t)(where >> 32) >= 0 && (where & 0xffff) == ((uint64_t)word & 0xffff);
}

static int word_rank(int64_t task)
{
    return (int)(task % client.size);
}

static size_t word_offset(int64_t task)
{
    return POOL_HEAD + 8 * (size_t)(task / client.size);
}

/* A mark tells a joining rank which round it is: round << 40 | barrier instance that opened it. */
static keel_status find_round(keel_taskpool *pool)
{
    uint64_t mark[2];
    pool->round = 1;
    keel_status status = keel_get(pool->segment, pool->home, MARK_AT, mark, sizeof mark);
    for (int i = 0; status == KEEL_OK && i < 2; i++)
        if ((mark[i] & 0xffffffffff) <= client.instance && mark[i] >> 40 > pool->round)
            pool->round = (uint32_t)(mark[i] >> 40);
    return status;
}

KEEL_EXPORT keel_status keel_taskpool_create(int64_t count, keel_taskpool **out)
{
    if (!out || count < 0 || count > UINT32_MAX)
        return KEEL_ERR_ARG;
    *out = NULL;
    keel_taskpool *pool = calloc(1, sizeof *pool);
    int64_t *words = calloc((size_t)count + 1, sizeof *words);
    keel_status status = pool && words ? KEEL_OK : KEEL_ERR_NOMEM;
    size_t share = client.size ? (size_t)(count + client.size - 1) / (size_t)client.size : 0;
    if (status == KEEL_OK)
        status = keel_segment_alloc(POOL_HEAD + 8 * share, KEEL_REDUNDANCY_SHADOW, &pool->segment);
    if (status == KEEL_OK) {
        pool->count = count;
        pool->current = -1;
        pool->words = words;
        pool->home = (int)(pool->segment->index % (uint32_t)client.size);
        status = find_round(pool);
    }
    if (status != KEEL_OK) {
        free(words);
        free(pool);
        return status;
    }
    *out = pool;
    return KEEL_OK;
}

KEEL_EXPORT keel_status keel_taskpool_free(keel_taskpool *pool)
{
    if (!pool)
        return KEEL_OK;
    keel_status status = keel_segment_free(pool->segment);
    free(pool->words);
    free(pool);
    return status;
}

KEEL_EXPORT keel_status keel_taskpool_reset(keel_taskpool *pool)
{
    if (!pool)
        return KEEL_ERR_ARG;
    if (!client.resumed)
        return KEEL_ERR_STATE;
    /* Nobody uses the next round's counter and mark before the barrier, and every rank writes the same: whoever dies,
     * they are right after it. */
    uint32_t next = pool->round + 1;
    int64_t zero = 0;
    uint64_t mark = (uint64_t)next << 40 | (client.instance + 1);
    keel_status status = keel_put(pool->segment, pool->home, 8 * (next & 1), &zero, sizeof zero);
    if (status == KEEL_OK)
        status = keel_put(pool->segment, pool->home, MARK_AT + 8 * (next & 1), &mark, sizeof mark);
    FAULT_POINT("task.reset_prepared");
    if (status == KEEL_OK)
        status = collective_enter(false);
    if (status != KEEL_OK)
        return status;
    pool->round = next;
    pool->exhausted = false;
    pool->current = -1;
    return KEEL_OK;
}

/* Make the task ours if its word is still `expected` or an older round's. *ours tells. */
static keel_status claim(keel_taskpool *pool, int64_t task, int64_t expected, bool *ours)
{
    *ours = false;
    for (;;) {
        int64_t old;
        keel_status status = keel_compare_swap(pool->segment, word_rank(task), word_offset(task), expected,
                                               claim_word(pool->round), &old);
        if (status != KEEL_OK)
            return status;
        if (old == expected) {
            *ours = true;
            return KEEL_OK;
        }
        if (word_round(old) >= pool->round) /* later: we came back, and the others have gone on (keel_resume) */
            return KEEL_OK;
        expected = old;
    }
}

static keel_status begin(keel_taskpool *pool, int64_t task, int64_t *out)
{
    pool->current = task;
    client.in_task = true;
    client.task = task_id(pool->segment->index, pool->round, (uint32_t)task);
    client.task_step = 0;
    FAULT_POINT("task.claimed");
    *out = task;
    return KEEL_OK;
}

static keel_status draw(keel_taskpool *pool, int64_t *out)
{
    *out = -1;
    while (!pool->exhausted) {
        int64_t task;
        keel_status status = keel_fetch_add(pool->segment, pool->home, 8 * (pool->round & 1), 1, &task);
        if (status != KEEL_OK)
            return status;
        if (task < 0 || task >= pool->count) {
            pool->exhausted = true;
            break;
        }
        FAULT_POINT("task.drawn");
        bool ours;
        status = claim(pool, task, done_word(pool->round - 1), &ours);
        if (status != KEEL_OK)
            return status;
        if (ours)
            return begin(pool, task, out);
    }
    return KEEL_OK;
}

static keel_status read_words(keel_taskpool *pool)
{
    size_t size = (size_t)client.size, share = ((size_t)pool->count + size - 1) / size;
    int64_t *part = malloc(8 * share + 8);
    keel_status status = part ? KEEL_OK : KEEL_ERR_NOMEM;
    for (size_t r = 0; r < size && status == KEEL_OK; r++) {
        status = keel_get(pool->segment, (int)r, POOL_HEAD, part, 8 * share);
        for (size_t i = 0; status == KEEL_OK && i < share && i * size + r < (size_t)pool->count; i++)
            pool->words[i * size + r] = part[i];
    }
    free(part);
    return status;
}

/* The counter is used up: find a task that nobody alive has. *busy: some are still being run. */
static keel_status take_over(keel_taskpool *pool, int64_t *out, bool *busy)
{
    *out = -1;
    *busy = false;
    keel_status status = read_words(pool);
    for (int64_t t = 0; t < pool->count && status == KEEL_OK; t++) {
        int64_t word = pool->words[t];
        if (word == done_word(pool->round) || word_round(word) > pool->round)
            continue;
        bool open = word_round(word) != pool->round; /* drawn, and not claimed yet or never */
        if (!open && claimant_lives(word)) {
            *busy = true;
            continue;
        }
        bool ours;
        status = claim(pool, t, word, &ours);
        if (ours)
            return begin(pool, t, out);
        *busy = true;
    }
    return status;
}

KEEL_EXPORT keel_status keel_task_next(keel_taskpool *pool, int64_t *task)
{
    if (!pool || !task)
        return KEEL_ERR_ARG;
    if (!client.ready || !client.resumed || pool->current >= 0)
        return KEEL_ERR_STATE;
    keel_status status = draw(pool, task);
    uint64_t wait_ns = WAIT_FIRST_NS;
    while (status == KEEL_OK && *task < 0) {
        bool busy;
        status = take_over(pool, task, &busy);
        if (status != KEEL_OK || *task >= 0 || !busy)
            break;
        /* Others compute; nothing announces the end of a task, so look again. */
        struct timespec pause = {0, (long)wait_ns};
        nanosleep(&pause, NULL);
        wait_ns = wait_ns * 2 > WAIT_MAX_NS ? WAIT_MAX_NS : wait_ns * 2;
    }
    return status;
}

KEEL_EXPORT keel_status keel_task_commit(keel_taskpool *pool, int64_t task)
{
    if (!pool || task < 0 || task >= pool->count)
        return KEEL_ERR_ARG;
    if (pool->current != task)
        return KEEL_ERR_STATE;
    FAULT_POINT("task.committing");
    int64_t mine = claim_word(pool->round), old;
    keel_status status =
        keel_compare_swap(pool->segment, word_rank(task), word_offset(task), mine, done_word(pool->round), &old);
    if (status != KEEL_OK)
        return status;
    pool->current = -1;
    client.in_task = false;
    FAULT_POINT("task.committed");
    return old == mine ? KEEL_OK : KEEL_ERR_FENCED;
}
