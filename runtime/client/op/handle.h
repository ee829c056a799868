/* What a keel_handle holds. Under the client's lock, unless it rests: then nobody but the caller, whose it is, changes
 * it.
 *
 *   opaque[0]  operations that are not complete
 *   opaque[1]  the first error of those that are
 *   opaque[2]  HANDLE_ flags, and above them the lanes of its operations (lane.h)
 *   opaque[3]  a sum over the rest and its place: that it is a handle's, and not what happened to be in the caller's
 *              memory,
 *              nor what is left of an earlier handle there */
#ifndef KEEL_CLIENT_OP_HANDLE_H
#define KEEL_CLIENT_OP_HANDLE_H

#ifdef KEEL_MEMCHECK_HEADER
#include <valgrind/memcheck.h>
#endif

#include "runtime/client/client.h"

enum { HANDLE_AGGREGATE = 1, HANDLE_SEEN = 2, HANDLE_FLAGS = 8 /* bits */ };

/* valgrind runs this process: handle_use looks at memory in which nothing has been written yet, as it may. In rma.c. */
extern bool handle_is_watched;

static inline void handle_tell_watcher(const keel_handle *h)
{
#ifdef KEEL_MEMCHECK_HEADER
    if (__builtin_expect(handle_is_watched, 0))
        (void)VALGRIND_MAKE_MEM_DEFINED(h, sizeof *h);
#endif
    (void)h;
}

/* Over what it holds, at that place. */
static inline uint64_t handle_sum(const keel_handle *h, const void *place)
{
    uint64_t sum = (uint64_t)(uintptr_t)place ^ 0x6b65656c68616e64u;
    for (int i = 0; i < 3; i++)
        sum = (sum ^ h->opaque[i]) * 0x9e3779b97f4a7c15u;
    return sum;
}

static inline uint64_t handle_mark(const keel_handle *h)
{
    return handle_sum(h, h);
}

/* Who looks whether it rests has no lock. */
static inline void handle_set(keel_handle *h, int i, uint64_t value)
{
    __atomic_store_n(&h->opaque[i], value, __ATOMIC_RELAXED);
}

/* After each change, the last store: who sees the sum sees what was stored before it, also the bytes of a get. */
static inline void handle_seal(keel_handle *h)
{
    __atomic_store_n(&h->opaque[3], handle_mark(h), __ATOMIC_RELEASE);
}

static inline bool handle_is(const keel_handle *h)
{
    return h->opaque[3] == handle_mark(h);
}

static inline bool handle_is_done(const keel_handle *h)
{
    return h->opaque[0] == 0;
}

static inline uint64_t handle_lanes(const keel_handle *h)
{
    return h->opaque[2] >> HANDLE_FLAGS;
}

/* To be sealed. */
static inline void handle_keep_lanes(keel_handle *h, uint64_t lanes)
{
    handle_set(h, 2, (h->opaque[2] & ((1u << HANDLE_FLAGS) - 1)) | lanes << HANDLE_FLAGS);
}

/* The program is told that what it has was done. To be sealed. */
static inline void handle_told(struct client *c, keel_handle *h)
{
    uint64_t lanes = handle_lanes(h);
    if (!lanes)
        return;
    lanes_told_by_handle(&c->ops.lanes, lanes);
    handle_keep_lanes(h, 0);
}

/* No operation uses it. Without the lock: what a handle in use shows meanwhile is no sum, or the sum of one in use.
 * Aggregates, and those that have lanes, are left to the lock. */
static inline bool handle_rests(const keel_handle *h)
{
    keel_handle now = {{0, 0, 0, __atomic_load_n(&h->opaque[3], __ATOMIC_ACQUIRE)}};
    for (int i = 0; i < 3; i++)
        now.opaque[i] = __atomic_load_n(&h->opaque[i], __ATOMIC_RELAXED);
    return now.opaque[0] == 0 && !(now.opaque[2] & ~(uint64_t)HANDLE_SEEN) && now.opaque[3] == handle_sum(&now, h);
}

/* An operation that has ended in the call itself is its last. */
static inline void handle_begin_done(keel_handle *h)
{
    for (int i = 0; i < 3; i++)
        handle_set(h, i, 0);
    handle_seal(h);
}

/* An operation is about to use it. KEEL_ERR_STATE: another does, and it is no aggregate. */
static inline keel_status handle_use(struct client *c, keel_handle *h)
{
    handle_tell_watcher(h);
    if (handle_is(h) && h->opaque[2] & HANDLE_AGGREGATE) {
        handle_set(h, 2, h->opaque[2] & ~(uint64_t)HANDLE_SEEN);
        handle_seal(h);
        return KEEL_OK;
    }
    if (handle_is(h) && !handle_is_done(h))
        return KEEL_ERR_STATE;
    if (handle_is(h))
        handle_told(c, h);
    handle_begin_done(h);
    return KEEL_OK;
}

static inline void handle_add(keel_handle *h)
{
    handle_set(h, 0, h->opaque[0] + 1);
    handle_seal(h);
}

static inline void handle_note(keel_handle *h, keel_status status)
{
    if (h->opaque[1] == 0)
        handle_set(h, 1, (uint64_t)(int64_t)status);
    handle_seal(h);
}

static inline void handle_end(keel_handle *h, keel_status status)
{
    handle_set(h, 0, h->opaque[0] - 1);
    handle_note(h, status);
}

/* The caller is told; an aggregate begins anew. Of one that has no lanes, as one that rests: without the lock. */
static inline keel_status handle_result_of_rest(keel_handle *h)
{
    keel_status status = (keel_status)(int64_t)h->opaque[1];
    handle_set(h, 2, h->opaque[2] | HANDLE_SEEN);
    if (h->opaque[2] & HANDLE_AGGREGATE)
        handle_set(h, 1, 0);
    handle_seal(h);
    return status;
}

static inline keel_status handle_result(struct client *c, keel_handle *h)
{
    handle_told(c, h);
    return handle_result_of_rest(h);
}
#endif
