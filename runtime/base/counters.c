#include "runtime/base/counters.h"

#include <assert.h>
#include <pthread.h>

const struct counter_row counters[COUNTERS_N] = {
#define COUNTERS_ROW(name, kind, who, help) {#name, COUNTER_##kind, COUNTER_##who, help},
    COUNTERS(COUNTERS_ROW)
#undef COUNTERS_ROW
};

static void join(uint64_t *sum, enum counter c, uint64_t value)
{
    if (counters[c].kind != COUNTER_MOST)
        sum[c] += value;
    else if (value > sum[c])
        sum[c] = value;
}

void counters_take(uint64_t *sum, const struct counter_block *b)
{
    for (int c = 0; c < COUNTERS_N; c++)
        join(sum, (enum counter)c, atomic_load_explicit(&b->count[c], memory_order_relaxed));
}

void counters_sum(uint64_t *sum, const uint64_t *more)
{
    for (int c = 0; c < COUNTERS_N; c++)
        join(sum, (enum counter)c, more[c]);
}

void counters_take_page(uint64_t *sum, const struct counter_page *page)
{
    uint32_t used = atomic_load_explicit(&page->used, memory_order_acquire);
    for (uint32_t i = 0; i < COUNTER_BLOCKS && (i < COUNTER_THREADS || i < used); i++)
        counters_take(sum, &page->block[i]);
}

/* ---- threads and their blocks ---- */

_Thread_local struct counter_block *counter_mine;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter_page *process_page; /* under lock, as the next two */
static bool taken[COUNTER_BLOCKS];
static bool key_made;
static pthread_key_t key;

/* A thread has ended: what it counted stays, and the next one adds to it. */
static void give_back(void *block)
{
    pthread_mutex_lock(&lock);
    if (process_page)
        taken[(struct counter_block *)block - process_page->block] = false;
    pthread_mutex_unlock(&lock);
    counter_mine = NULL;
}

void counters_process(struct counter_page *page)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    if (!page)
        lock = unlocked; /* a fork's child: it was another thread's */
    pthread_mutex_lock(&lock);
    key_made = key_made || pthread_key_create(&key, give_back) == 0;
    process_page = page && key_made ? page : NULL;
    for (int i = 0; i < COUNTER_BLOCKS; i++)
        taken[i] = i < COUNTER_THREADS;
    counter_mine = NULL;
    pthread_mutex_unlock(&lock);
}

static struct counter_block *take(struct counter_page *page)
{
    struct counter_block *b = NULL;
    pthread_mutex_lock(&lock);
    for (int i = COUNTER_THREADS; page == process_page && i < COUNTER_BLOCKS && !b; i++)
        if (!taken[i] && pthread_setspecific(key, &page->block[i]) == 0) {
            taken[i] = true;
            b = &page->block[i];
            if (atomic_load(&page->used) < (uint32_t)i + 1)
                atomic_store(&page->used, (uint32_t)i + 1);
        }
    pthread_mutex_unlock(&lock);
    return b;
}

void counters_thread(struct counter_page *page)
{
    if (!counter_mine)
        counter_mine = take(page);
}

void counters_near_first(struct counter_page *page, enum counter c, uint64_t n, uint64_t bytes)
{
    counters_thread(page);
    if (counter_mine) {
        counters_near(page, c, n, bytes);
        return;
    }
    struct counter_block *b = &page->block[COUNTER_SHARED];
    atomic_fetch_add_explicit(&b->count[c], n, memory_order_relaxed);
    if (bytes)
        atomic_fetch_add_explicit(&b->count[c + 1], bytes, memory_order_relaxed);
}
