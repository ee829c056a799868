#include "runtime/client/api/living.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A number: how often the place was taken in the upper half, the place + 1 in the lower. No number is used again before a place was taken 2^32
 * times. */
struct place {
    void *object;
    uint32_t uses;
    uint32_t next_free; /* place + 1 */
    enum living_kind kind;
    bool taken;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places; /* under the lock, like the rest */
static uint32_t places_n, first_free;
/* In a fork's child: its parent's, which another thread may have been about to widen. They stay where they are. */
__attribute__((used)) static struct place *parents_places;

/* Lock held. */
static struct place *place_of(const void *number)
{
    uint64_t n = (uintptr_t)number;
    uint32_t i = (uint32_t)n - 1;
    return (uint32_t)n && i < places_n && places[i].taken && places[i].uses == n >> 32 ? &places[i] : NULL;
}

/* Lock held. */
static bool widen(void)
{
    uint32_t wider = places_n ? 2 * places_n : 16;
    struct place *more = wider > places_n ? realloc(places, wider * sizeof *more) : NULL;
    if (!more)
        return false;
    places = more;
    for (uint32_t i = wider; i-- > places_n;) {
        places[i] = (struct place){.next_free = first_free};
        first_free = i + 1;
    }
    places_n = wider;
    return true;
}

void *living_take(enum living_kind kind)
{
    uint64_t number = 0;
    pthread_mutex_lock(&lock);
    if (first_free || widen()) {
        struct place *p = &places[first_free - 1];
        number = (uint64_t)++p->uses << 32 | first_free;
        first_free = p->next_free;
        p->kind = kind;
        p->taken = true;
        p->object = NULL;
    }
    pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)number; // NOLINT(performance-no-int-to-ptr)
}

void living_set(void *number, void *object)
{
    pthread_mutex_lock(&lock);
    struct place *p = place_of(number);
    if (p)
        p->object = object;
    pthread_mutex_unlock(&lock);
}

void living_become(void *number, enum living_kind kind, void *object)
{
    pthread_mutex_lock(&lock);
    struct place *p = place_of(number);
    if (p)
        *p = (struct place){.object = object, .uses = p->uses, .kind = kind, .taken = true};
    pthread_mutex_unlock(&lock);
}

void *living_find(const void *number, enum living_kind kind)
{
    pthread_mutex_lock(&lock);
    const struct place *p = place_of(number);
    void *object = p && p->kind == kind ? p->object : NULL;
    pthread_mutex_unlock(&lock);
    return object;
}

void living_give_back(void *number)
{
    pthread_mutex_lock(&lock);
    struct place *p = place_of(number);
    if (p) {
        p->taken = false;
        p->object = NULL;
        p->next_free = first_free;
        first_free = (uint32_t)(p - places) + 1;
    }
    pthread_mutex_unlock(&lock);
}

void living_forget(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    lock = unlocked;
    parents_places = places;
    places = NULL;
    places_n = first_free = 0;
}
