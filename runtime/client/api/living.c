#include "runtime/client/api/living.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A number: how often the place was taken in the upper half, the place + 1 in the lower. No number is used again
 * before a place was taken 2^32 times. Places never move, so who looks one up needs no lock: a place says what
 * number it has before and after it is read. */
struct living {
    _Atomic uint64_t number; /* 0: it is free */
    _Atomic(void *) object;  /* NULL while the kind changes */
    _Atomic enum living_kind kind;
    uint32_t uses;
    uint32_t next_free; /* place + 1 */
};

enum { FIRST = 16, ROWS = 27 };
_Static_assert(sizeof(uintptr_t) == 8, "a number fits a pointer");

/* Each row is twice as long as the one before it. The first is there without memory: those that every process has
 * need none. */
static struct living first_row[FIRST];
static struct living *_Atomic row[ROWS]; /* from row[1] on */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t rows, first_free; /* under the lock, like all changes */
/* In a fork's child: its parent's, which another thread may have been about to change. What they lead to stays
 * reachable. */
__attribute__((used)) static struct living *parents_row[ROWS], parents_first[FIRST];

static struct living *place_at(uint32_t i)
{
    if (i < FIRST)
        return &first_row[i];
    unsigned r = 31 - (unsigned)__builtin_clz(i / FIRST + 1);
    struct living *places = r < ROWS ? atomic_load_explicit(&row[r], memory_order_acquire) : NULL;
    return places ? &places[i - FIRST * ((1u << r) - 1)] : NULL;
}

/* The place that has the number now. */
static struct living *living_of(const void *number)
{
    uint64_t n = (uintptr_t)number;
    struct living *p = (uint32_t)n ? place_at((uint32_t)n - 1) : NULL;
    return p && atomic_load_explicit(&p->number, memory_order_acquire) == n ? p : NULL;
}

/* Lock held. Who sees the object sees its kind. */
static void place_fill(struct living *p, enum living_kind kind, void *object)
{
    atomic_store_explicit(&p->object, NULL, memory_order_release);
    atomic_store_explicit(&p->kind, kind, memory_order_release);
    atomic_store_explicit(&p->object, object, memory_order_release);
}

/* Lock held. Without memory it stays as it is. */
static void widen(void)
{
    struct living *places = rows == 0 ? first_row : rows < ROWS ? calloc((size_t)FIRST << rows, sizeof *places) : NULL;
    if (!places)
        return;
    uint32_t n = FIRST << rows, begin = FIRST * ((1u << rows) - 1);
    if (rows > 0)
        atomic_store_explicit(&row[rows], places, memory_order_release);
    rows++;
    for (uint32_t i = n; i-- > 0;) {
        places[i].next_free = first_free;
        first_free = begin + i + 1;
    }
}

void *living_take(enum living_kind kind)
{
    uint64_t number = 0;
    pthread_mutex_lock(&lock);
    if (!first_free || !place_at(first_free - 1)->next_free)
        widen();
    struct living *p = first_free ? place_at(first_free - 1) : NULL;
    if (p && (p->next_free || kind == LIVING_GROUP)) {
        number = (uint64_t)++p->uses << 32 | first_free;
        first_free = p->next_free;
        place_fill(p, kind, NULL);
        atomic_store_explicit(&p->number, number, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)number; // NOLINT(performance-no-int-to-ptr)
}

void living_set(void *number, void *object)
{
    pthread_mutex_lock(&lock);
    struct living *p = living_of(number);
    if (p)
        atomic_store_explicit(&p->object, object, memory_order_release);
    pthread_mutex_unlock(&lock);
}

void living_become(void *number, enum living_kind kind, void *object)
{
    pthread_mutex_lock(&lock);
    struct living *p = living_of(number);
    if (p)
        place_fill(p, kind, object);
    pthread_mutex_unlock(&lock);
}

void *living_find(const void *number, enum living_kind kind)
{
    const struct living *p = living_of(number);
    if (!p)
        return NULL;
    void *object = atomic_load_explicit(&p->object, memory_order_acquire);
    bool right = atomic_load_explicit(&p->kind, memory_order_acquire) == kind;
    bool same = atomic_load_explicit(&p->object, memory_order_acquire) == object &&
                atomic_load_explicit(&p->number, memory_order_relaxed) == (uintptr_t)number;
    return right && same ? object : NULL;
}

void living_give_back(void *number)
{
    pthread_mutex_lock(&lock);
    struct living *p = living_of(number);
    if (p) {
        atomic_store_explicit(&p->number, 0, memory_order_release);
        atomic_store_explicit(&p->object, NULL, memory_order_release);
        p->next_free = first_free;
        first_free = (uint32_t)(uintptr_t)number;
    }
    pthread_mutex_unlock(&lock);
}

void living_forget(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    lock = unlocked;
    for (int r = 1; r < ROWS; r++) {
        parents_row[r] = atomic_load_explicit(&row[r], memory_order_relaxed);
        atomic_store_explicit(&row[r], NULL, memory_order_relaxed);
    }
    memcpy(parents_first, first_row, sizeof first_row);
    memset(first_row, 0, sizeof first_row);
    rows = first_free = 0;
}
