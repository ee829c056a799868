#include "tests/sim/scale/wheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 16, NONE = 0 };

struct wheel {
    struct occurrence *pool; /* 0 is none */
    uint32_t n_pool, cap_pool, free;
    struct {
        uint32_t head, tail; /* beside each other: an event touches one line of the cache */
    } list[SLOTS];
    uint64_t used[SLOTS / 64]; /* bit: the slot has events */
    uint64_t slot;             /* being taken */
    uint32_t *heap;
    uint32_t n_heap, cap_heap;
};

static void *more(void *p, size_t bytes)
{
    p = realloc(p, bytes);
    if (!p) {
        fprintf(stderr, "sim-scale: out of memory\n");
        exit(1);
    }
    return p;
}

struct wheel *wheel_create(uint64_t now)
{
    struct wheel *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->n_pool = 1;
    w->slot = now / WHEEL_SLOT_NS;
    return w;
}

void wheel_destroy(struct wheel *w)
{
    struct occurrence o;
    while (wheel_take(w, UINT64_MAX, &o))
        free(o.far);
    free(w->pool);
    free(w->heap);
    free(w);
}

static void heap_add(struct wheel *w, uint32_t k)
{
    if (w->n_heap == w->cap_heap) {
        w->cap_heap = w->cap_heap ? 2 * w->cap_heap : 1024;
        w->heap = more(w->heap, w->cap_heap * sizeof *w->heap);
    }
    uint32_t i = w->n_heap++;
    for (; i > 0 && w->pool[k].t < w->pool[w->heap[(i - 1) / 2]].t; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = k;
}

static uint32_t heap_take(struct wheel *w)
{
    uint32_t top = w->heap[0], last = w->heap[--w->n_heap], i = 0;
    for (uint32_t c = 1; c < w->n_heap; c = 2 * i + 1) {
        if (c + 1 < w->n_heap && w->pool[w->heap[c + 1]].t < w->pool[w->heap[c]].t)
            c++;
        if (w->pool[w->heap[c]].t >= w->pool[last].t)
            break;
        w->heap[i] = w->heap[c];
        i = c;
    }
    if (w->n_heap)
        w->heap[i] = last;
    return top;
}

static void into_slot(struct wheel *w, uint32_t k)
{
    uint64_t slot = w->pool[k].t / WHEEL_SLOT_NS;
    uint32_t at = (uint32_t)((slot > w->slot ? slot : w->slot) % SLOTS);
    w->pool[k].next = NONE;
    if (w->list[at].head == NONE)
        w->list[at].head = k;
    else
        w->pool[w->list[at].tail].next = k;
    w->list[at].tail = k;
    w->used[at / 64] |= 1ull << at % 64;
}

/* The first slot from the present one on that has events. UINT64_MAX: there are none. */
static uint64_t next_slot(const struct wheel *w)
{
    uint32_t at = (uint32_t)(w->slot % SLOTS);
    for (uint32_t i = 0; i <= SLOTS / 64; i++) { /* the word where it begins comes a second time, for its lower bits */
        uint32_t word = (at / 64 + i) % (SLOTS / 64);
        uint64_t bits = w->used[word] & (i == 0 ? ~0ull << at % 64 : ~0ull);
        if (bits)
            return w->slot + (word * 64 + (uint32_t)__builtin_ctzll(bits) - at) % SLOTS;
    }
    return w->n_heap ? w->pool[w->heap[0]].t / WHEEL_SLOT_NS : UINT64_MAX;
}

struct occurrence *wheel_add(struct wheel *w, uint64_t t)
{
    uint32_t k = w->free;
    if (k) {
        w->free = w->pool[k].next;
    } else {
        if (w->n_pool >= w->cap_pool) {
            w->cap_pool = w->cap_pool ? 2 * w->cap_pool : 4096;
            w->pool = more(w->pool, w->cap_pool * sizeof *w->pool);
        }
        k = w->n_pool++;
    }
    struct occurrence *o = &w->pool[k];
    o->t = t;
    o->far = NULL;
    o->len = 0;
    o->value = 0;
    o->has_turn = 0;
    if (t / WHEEL_SLOT_NS < w->slot + SLOTS)
        into_slot(w, k);
    else
        heap_add(w, k);
    return o;
}

bool wheel_take(struct wheel *w, uint64_t end, struct occurrence *out)
{
    uint64_t slot = next_slot(w);
    if (slot == UINT64_MAX || slot > end / WHEEL_SLOT_NS)
        return false;
    w->slot = slot;
    while (w->n_heap && w->pool[w->heap[0]].t / WHEEL_SLOT_NS < slot + SLOTS)
        into_slot(w, heap_take(w));
    uint32_t at = (uint32_t)(w->slot % SLOTS), k = w->list[at].head;
    *out = w->pool[k];
    w->list[at].head = w->pool[k].next;
    if (w->list[at].head == NONE)
        w->used[at / 64] &= ~(1ull << at % 64);
    w->pool[k].next = w->free;
    w->free = k;
    return true;
}
