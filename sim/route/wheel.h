/* The event queue: a wheel of one list per nanosecond over the next 65,536 ns with two levels of bitmap over it, and a
 * binary heap for what is farther away. Events are numbers (codes) whose list links live in the objects they belong to,
 * so nothing is allocated per event in the wheel. Events of the same time come out of the heap by code, then out of the
 * wheel newest first: any order would do, as long as it is always the same. */
#ifndef KEEL_SIM_ROUTE_WHEEL_H
#define KEEL_SIM_ROUTE_WHEEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WHEEL_SLOTS = 1 << 16, WHEEL_EMPTY = -1 };

struct wheel_far {
    uint64_t time;
    uint32_t code;
};

struct wheel {
    int32_t *slot;    /* [WHEEL_SLOTS] code of the first event, or WHEEL_EMPTY */
    uint64_t *bits;   /* [1024] one per slot */
    uint64_t sum[16]; /* one per word of bits */
    struct wheel_far *heap;
    size_t n, cap;
};

bool wheel_init(struct wheel *w);
void wheel_fini(struct wheel *w);
/* returns false when memory is out. */
bool wheel_push_far(struct wheel *w, uint64_t time, uint32_t code);
uint32_t wheel_pop_far(struct wheel *w);

/* *link becomes the rest of the list behind this event. now <= time < now + WHEEL_SLOTS. */
static inline void wheel_push(struct wheel *w, uint64_t time, uint32_t code, int32_t *link)
{
    uint32_t i = (uint32_t)time & (WHEEL_SLOTS - 1);
    *link = w->slot[i];
    w->slot[i] = (int32_t)code;
    w->bits[i >> 6] |= 1ull << (i & 63);
    w->sum[i >> 12] |= 1ull << (i >> 6 & 63);
}

/* The time of the next event in the wheel, at or after now; UINT64_MAX when it is empty. */
uint64_t wheel_next(const struct wheel *w, uint64_t now);

static inline void wheel_drop(struct wheel *w, uint64_t time)
{
    uint32_t i = (uint32_t)time & (WHEEL_SLOTS - 1);
    w->bits[i >> 6] &= ~(1ull << (i & 63));
    if (!w->bits[i >> 6])
        w->sum[i >> 12] &= ~(1ull << (i >> 6 & 63));
}
#endif
