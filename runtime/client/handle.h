/* What a keel_handle holds. Under the client's lock.
 *
 *   opaque[0]  operations that are not complete
 *   opaque[1]  the first error of those that are
 *   opaque[2]  HANDLE_ flags
 *   opaque[3]  a sum over the rest and its place: that it is a handle's, and not what happened to be in the caller's memory,
 *              nor what is left of an earlier handle there */
#ifndef KEEL_CLIENT_HANDLE_H
#define KEEL_CLIENT_HANDLE_H

#include "runtime/client/client.h"

enum { HANDLE_AGGREGATE = 1, HANDLE_SEEN = 2 };

static inline uint64_t handle_mark(const keel_handle *h)
{
    uint64_t sum = (uint64_t)(uintptr_t)h ^ 0x6b65656c68616e64u;
    for (int i = 0; i < 3; i++)
        sum = (sum ^ h->opaque[i]) * 0x9e3779b97f4a7c15u;
    return sum;
}

/* After each change. */
static inline void handle_seal(keel_handle *h)
{
    h->opaque[3] = handle_mark(h);
}

static inline bool handle_is(const keel_handle *h)
{
    return h->opaque[3] == handle_mark(h);
}

static inline bool handle_is_done(const keel_handle *h)
{
    return h->opaque[0] == 0;
}

/* An operation is about to use it. KEEL_ERR_STATE: another does, and it is no aggregate. */
static inline keel_status handle_use(keel_handle *h)
{
    if (handle_is(h) && h->opaque[2] & HANDLE_AGGREGATE) {
        h->opaque[2] &= ~(uint64_t)HANDLE_SEEN;
        handle_seal(h);
        return KEEL_OK;
    }
    if (handle_is(h) && !handle_is_done(h))
        return KEEL_ERR_STATE;
    *h = (keel_handle){{0}};
    handle_seal(h);
    return KEEL_OK;
}

static inline void handle_add(keel_handle *h)
{
    h->opaque[0]++;
    handle_seal(h);
}

static inline void handle_note(keel_handle *h, keel_status status)
{
    if (h->opaque[1] == 0)
        h->opaque[1] = (uint64_t)(int64_t)status;
    handle_seal(h);
}

static inline void handle_end(keel_handle *h, keel_status status)
{
    h->opaque[0]--;
    handle_note(h, status);
}

/* The caller is told; an aggregate begins anew. */
static inline keel_status handle_result(keel_handle *h)
{
    keel_status status = (keel_status)(int64_t)h->opaque[1];
    h->opaque[2] |= HANDLE_SEEN;
    if (h->opaque[2] & HANDLE_AGGREGATE)
        h->opaque[1] = 0;
    handle_seal(h);
    return status;
}
#endif
