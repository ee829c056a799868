/* Collectives of groups, and of all ranks. A contribution is compared before it goes. Of one that goes while the call
 * is under way (..._begin), of lists of blocks and of broadcasts through the caller's own memory a majority cannot be
 * sent instead. */
#include "runtime/client/api/public_coll.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"
#include "runtime/wire/digest.h"

#include <stdlib.h>

#define BELOW replica.below

/* ---- contributions ---- */

/* *in: what to contribute, the caller's or the majority's. target: the root, or -1. */
static keel_status contribute(enum replica_call call, int target, const void **in, size_t len)
{
    if (replica_is_in_task())
        return KEEL_ERR_STATE;
    if (replica.sets == REPLICAS_MAX && *in && len)
        return replica_meet_before(call, target, NULL, 0, in, len);
    replica_did_bytes(call, target, NULL, 0, *in, *in ? len : 0);
    return replica_meet(call);
}

keel_status replica_contribute_kept(enum replica_call call, int target, const void *in, size_t len)
{
    if (replica_is_in_task())
        return KEEL_ERR_STATE;
    replica_did_bytes(call, target, NULL, 0, in, in ? len : 0);
    return replica_meet(call);
}

static keel_status contribute_blocks(enum replica_call call, const keel_group *group, const void *in,
                                     const size_t *lens, const size_t *at)
{
    uint64_t hash = 0, bytes = 0;
    int n = BELOW->group_size(group);
    if (replica_is_in_task())
        return KEEL_ERR_STATE;
    for (int m = 0; replica.check != CHECK_NONE && in && lens && at && m < n; m++) {
        hash = digest(&lens[m], sizeof lens[m], hash);
        hash = digest((const uint8_t *)in + at[m], lens[m], hash);
        bytes += lens[m];
    }
    replica_did(call, -1, NULL, 0, bytes, hash);
    return replica_meet(call);
}

static size_t combined_bytes(size_t n, const keel_combine *how)
{
    struct engine_call call = {.len = 0};
    return public_coll_combine(&call, how, n) ? call.len : 0;
}

static size_t pieces_bytes(const keel_group *group, const size_t *n, const keel_combine *how)
{
    size_t all = 0;
    for (int m = 0; n && m < BELOW->group_size(group); m++)
        all += n[m];
    return combined_bytes(all, how);
}

static size_t times(const keel_group *group, size_t len)
{
    size_t all;
    return __builtin_mul_overflow((size_t)BELOW->group_size(group), len, &all) ? 0 : all;
}

static size_t own_of(const keel_group *group, const size_t *n)
{
    return n ? n[BELOW->group_rank(group)] : 0;
}

static bool is_root(const keel_group *group, int root)
{
    return BELOW->group_rank(group) == root;
}

/* ---- calls on a group ---- */

#define AFTER(call) (status != KEEL_OK ? status : replica_after(call))
/* A call that contributes bytes from `in` and brings others to `to`, and the one that only begins. */
#define CONTRIBUTES(name, root, bytes, to, to_bytes, parameters, arguments)                                            \
    keel_status replica_##name parameters                                                                              \
    {                                                                                                                  \
        keel_status status = contribute(CALL_##name, root, &in, bytes);                                                \
        return replica_came(AFTER(BELOW->name arguments), CALL_##name, -1, 0, to, to_bytes);                           \
    }
#define CONTRIBUTES_KEPT(name, root, bytes, to, to_bytes, parameters, arguments)                                       \
    keel_status replica_##name parameters                                                                              \
    {                                                                                                                  \
        keel_status status = replica_contribute_kept(CALL_##name, root, in, bytes);                                    \
        return replica_comes_later(AFTER(BELOW->name arguments), request, CALL_##name, to, to_bytes);                  \
    }
/* The same of elements. What a begun call brings is not compared where these have gaps. */
#define CONTRIBUTES_ELEMENTS(name, root, bytes, to, to_bytes, parameters, arguments)                                   \
    keel_status replica_##name parameters                                                                              \
    {                                                                                                                  \
        in = replica_without_gaps(in, bytes, how);                                                                     \
        keel_status status = contribute(CALL_##name, root, &in, bytes);                                                \
        return replica_came(AFTER(BELOW->name arguments), CALL_##name, -1, 0, to, to_bytes);                           \
    }
#define CONTRIBUTES_ELEMENTS_KEPT(name, root, bytes, to, to_bytes, parameters, arguments)                              \
    keel_status replica_##name parameters                                                                              \
    {                                                                                                                  \
        keel_status status = replica_contribute_kept(CALL_##name, root, replica_without_gaps(in, bytes, how), bytes);  \
        return replica_comes_later(AFTER(BELOW->name arguments), request, CALL_##name,                                 \
                                   replica_has_gaps(how) ? NULL : (to), to_bytes);                                     \
    }
#define CONTRIBUTES_FOR_BLOCKS(name, root, bytes, out_lens, out_at, n, parameters, arguments)                          \
    keel_status replica_##name parameters                                                                              \
    {                                                                                                                  \
        keel_status status = contribute(CALL_##name, root, &in, bytes);                                                \
        return replica_came_in_blocks(AFTER(BELOW->name arguments), CALL_##name, out, out_lens, out_at, n);            \
    }
#define BLOCKS(name, lens, at, came, parameters, arguments)                                                            \
    keel_status replica_##name parameters                                                                              \
    {                                                                                                                  \
        keel_status status = contribute_blocks(CALL_##name, group, in, lens, at);                                      \
        status = AFTER(BELOW->name arguments);                                                                         \
        return came;                                                                                                   \
    }
#define P(...) (__VA_ARGS__)

keel_status replica_group_barrier(keel_group *group)
{
    keel_status status = replica_is_in_task() ? KEEL_ERR_STATE : replica_meet(CALL_group_barrier);
    return AFTER(BELOW->group_barrier(group));
}

keel_status replica_group_barrier_begin(keel_group *group, keel_request **request)
{
    keel_status status = replica_is_in_task() ? KEEL_ERR_STATE : replica_meet(CALL_group_barrier_begin);
    return AFTER(BELOW->group_barrier_begin(group, request));
}

/* Its fence comes first, so that what was put is complete when replicas meet. */
keel_status replica_group_sync(keel_group *group)
{
    keel_status status = replica_is_in_task() ? KEEL_ERR_STATE : replica_fence_all();
    return AFTER(BELOW->group_sync(group));
}

keel_status replica_group_bcast(keel_group *group, int root, void *data, size_t len)
{
    keel_status status = replica_contribute_kept(CALL_group_bcast, root, is_root(group, root) ? data : NULL, len);
    return replica_came(AFTER(BELOW->group_bcast(group, root, data, len)), CALL_group_bcast, -1, 0,
                        is_root(group, root) ? NULL : data, len);
}

keel_status replica_group_bcast_begin(keel_group *group, int root, void *data, size_t len, keel_request **request)
{
    keel_status status = replica_contribute_kept(CALL_group_bcast_begin, root, is_root(group, root) ? data : NULL, len);
    return replica_comes_later(AFTER(BELOW->group_bcast_begin(group, root, data, len, request)), request,
                               CALL_group_bcast_begin, is_root(group, root) ? NULL : data, len);
}

CONTRIBUTES_ELEMENTS(group_reduce, root, combined_bytes(n, how), is_root(group, root) ? out : NULL,
                     combined_bytes(n, how),
                     P(keel_group *group, int root, const void *in, void *out, size_t n, const keel_combine *how),
                     P(group, root, in, out, n, how))
CONTRIBUTES_ELEMENTS_KEPT(group_reduce_begin, root, combined_bytes(n, how), is_root(group, root) ? out : NULL,
                          combined_bytes(n, how),
                          P(keel_group *group, int root, const void *in, void *out, size_t n, const keel_combine *how,
                            keel_request **request),
                          P(group, root, in, out, n, how, request))
CONTRIBUTES_ELEMENTS(group_allreduce, -1, combined_bytes(n, how), out, combined_bytes(n, how),
                     P(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how),
                     P(group, in, out, n, how))
CONTRIBUTES_ELEMENTS_KEPT(group_allreduce_begin, -1, combined_bytes(n, how), out, combined_bytes(n, how),
                          P(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                            keel_request **request),
                          P(group, in, out, n, how, request))
CONTRIBUTES_ELEMENTS(group_reduce_scatter, -1, pieces_bytes(group, n, how), out, combined_bytes(own_of(group, n), how),
                     P(keel_group *group, const void *in, void *out, const size_t *n, const keel_combine *how),
                     P(group, in, out, n, how))
CONTRIBUTES_ELEMENTS_KEPT(group_reduce_scatter_begin, -1, pieces_bytes(group, n, how), out,
                          combined_bytes(own_of(group, n), how),
                          P(keel_group *group, const void *in, void *out, const size_t *n, const keel_combine *how,
                            keel_request **request),
                          P(group, in, out, n, how, request))
CONTRIBUTES_ELEMENTS(group_scan, -1, combined_bytes(n, how), out, combined_bytes(n, how),
                     P(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how),
                     P(group, in, out, n, how))
CONTRIBUTES_ELEMENTS_KEPT(group_scan_begin, -1, combined_bytes(n, how), out, combined_bytes(n, how),
                          P(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                            keel_request **request),
                          P(group, in, out, n, how, request))
CONTRIBUTES_ELEMENTS(group_exscan, -1, combined_bytes(n, how), is_root(group, 0) ? NULL : out, combined_bytes(n, how),
                     P(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how),
                     P(group, in, out, n, how))
CONTRIBUTES_ELEMENTS_KEPT(group_exscan_begin, -1, combined_bytes(n, how), is_root(group, 0) ? NULL : out,
                          combined_bytes(n, how),
                          P(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                            keel_request **request),
                          P(group, in, out, n, how, request))
CONTRIBUTES(group_gather, root, len, is_root(group, root) ? out : NULL, times(group, len),
            P(keel_group *group, int root, const void *in, void *out, size_t len), P(group, root, in, out, len))
CONTRIBUTES_KEPT(group_gather_begin, root, len, is_root(group, root) ? out : NULL, times(group, len),
                 P(keel_group *group, int root, const void *in, void *out, size_t len, keel_request **request),
                 P(group, root, in, out, len, request))
CONTRIBUTES(group_scatter, root, is_root(group, root) ? times(group, len) : 0, out, len,
            P(keel_group *group, int root, const void *in, void *out, size_t len), P(group, root, in, out, len))
CONTRIBUTES_KEPT(group_scatter_begin, root, is_root(group, root) ? times(group, len) : 0, out, len,
                 P(keel_group *group, int root, const void *in, void *out, size_t len, keel_request **request),
                 P(group, root, in, out, len, request))
CONTRIBUTES(group_allgather, -1, len, out, times(group, len),
            P(keel_group *group, const void *in, void *out, size_t len), P(group, in, out, len))
CONTRIBUTES_KEPT(group_allgather_begin, -1, len, out, times(group, len),
                 P(keel_group *group, const void *in, void *out, size_t len, keel_request **request),
                 P(group, in, out, len, request))
CONTRIBUTES(group_alltoall, -1, times(group, len), out, times(group, len),
            P(keel_group *group, const void *in, void *out, size_t len), P(group, in, out, len))
CONTRIBUTES_KEPT(group_alltoall_begin, -1, times(group, len), out, times(group, len),
                 P(keel_group *group, const void *in, void *out, size_t len, keel_request **request),
                 P(group, in, out, len, request))
CONTRIBUTES_FOR_BLOCKS(group_gather_v, root, len, is_root(group, root) ? lens : NULL, at, BELOW->group_size(group),
                       P(keel_group *group, int root, const void *in, size_t len, void *out, const size_t *lens,
                         const size_t *at),
                       P(group, root, in, len, out, lens, at))
CONTRIBUTES_KEPT(group_gather_v_begin, root, len, NULL, 0,
                 P(keel_group *group, int root, const void *in, size_t len, void *out, const size_t *lens,
                   const size_t *at, keel_request **request),
                 P(group, root, in, len, out, lens, at, request))
BLOCKS(group_scatter_v, is_root(group, root) ? lens : NULL, at,
       replica_came(status, CALL_group_scatter_v, -1, 0, out, len),
       P(keel_group *group, int root, const void *in, const size_t *lens, const size_t *at, void *out, size_t len),
       P(group, root, in, lens, at, out, len))
BLOCKS(group_scatter_v_begin, is_root(group, root) ? lens : NULL, at,
       replica_comes_later(status, request, CALL_group_scatter_v_begin, out, len),
       P(keel_group *group, int root, const void *in, const size_t *lens, const size_t *at, void *out, size_t len,
         keel_request **request),
       P(group, root, in, lens, at, out, len, request))
CONTRIBUTES_FOR_BLOCKS(group_allgather_v, -1, len, lens, at, BELOW->group_size(group),
                       P(keel_group *group, const void *in, size_t len, void *out, const size_t *lens,
                         const size_t *at),
                       P(group, in, len, out, lens, at))
CONTRIBUTES_KEPT(group_allgather_v_begin, -1, len, NULL, 0,
                 P(keel_group *group, const void *in, size_t len, void *out, const size_t *lens, const size_t *at,
                   keel_request **request),
                 P(group, in, len, out, lens, at, request))
BLOCKS(group_alltoall_v, in_lens, in_at,
       replica_came_in_blocks(status, CALL_group_alltoall_v, out, out_lens, out_at, BELOW->group_size(group)),
       P(keel_group *group, const void *in, const size_t *in_lens, const size_t *in_at, void *out,
         const size_t *out_lens, const size_t *out_at),
       P(group, in, in_lens, in_at, out, out_lens, out_at))
BLOCKS(group_alltoall_v_begin, in_lens, in_at, status,
       P(keel_group *group, const void *in, const size_t *in_lens, const size_t *in_at, void *out,
         const size_t *out_lens, const size_t *out_at, keel_request **request),
       P(group, in, in_lens, in_at, out, out_lens, out_at, request))

/* ---- collectives of all ranks, which are those of the set ---- */

enum { BYTES_MAX = 64 * 1024 };

static keel_status counted(keel_status status)
{
    if (status == KEEL_OK)
        replica.collectives++;
    return status;
}

static keel_request *split; /* barrier_begin, until it is over */

bool replica_is_apart(void)
{
    return split || replica_is_in_task();
}

static keel_status barrier(enum replica_call call)
{
    if (replica_is_apart())
        return KEEL_ERR_STATE;
    keel_status status = replica_after(BELOW->fence_all());
    if (status == KEEL_OK)
        status = replica_meet(call);
    return counted(AFTER(BELOW->group_barrier(replica.group)));
}

keel_status replica_barrier(void)
{
    return barrier(CALL_barrier);
}

keel_status replica_sync(void)
{
    return barrier(CALL_sync);
}

keel_status replica_barrier_begin(void)
{
    if (replica_is_apart())
        return KEEL_ERR_STATE;
    keel_status status = replica_after(BELOW->fence_all());
    if (status == KEEL_OK)
        status = replica_meet(CALL_barrier_begin);
    return AFTER(BELOW->group_barrier_begin(replica.group, &split));
}

static keel_status over(keel_status status, uint64_t *epoch)
{
    if (epoch)
        *epoch = 0; /* no view that the program could see has ever changed */
    if (status != KEEL_IN_PROGRESS && status != KEEL_ERR_TIMEOUT)
        split = NULL;
    return counted(status);
}

keel_status replica_barrier_test(uint64_t *epoch)
{
    return split ? over(replica_request_test(split, NULL), epoch) : KEEL_ERR_STATE;
}

keel_status replica_barrier_end(uint64_t *epoch)
{
    return split ? over(replica_request_wait(split, NULL), epoch) : KEEL_ERR_STATE;
}

keel_status replica_bcast(int root, void *buffer, size_t len)
{
    if (root < 0 || root >= replica.size || len > BYTES_MAX || (!buffer && len))
        return KEEL_ERR_ARG;
    if (replica_is_apart())
        return KEEL_ERR_STATE;
    keel_status status = replica_after(BELOW->fence_all());
    if (status == KEEL_OK)
        status = replica_contribute_kept(CALL_bcast, root, root == replica.rank ? buffer : NULL, len);
    status = counted(AFTER(BELOW->group_bcast(replica.group, root, buffer, len)));
    return replica_came(status, CALL_bcast, -1, 0, root == replica.rank ? NULL : buffer, len);
}

keel_status replica_allreduce_sum(const double *in, double *out, size_t n)
{
    const keel_combine sum = {.type = KEEL_DOUBLE, .op = KEEL_SUM};
    const void *bytes = in;
    if (n > BYTES_MAX / sizeof *in || (n && (!in || !out)))
        return KEEL_ERR_ARG;
    if (replica_is_apart())
        return KEEL_ERR_STATE;
    keel_status status = replica_after(BELOW->fence_all());
    if (status == KEEL_OK)
        status = contribute(CALL_allreduce_sum, -1, &bytes, n * sizeof *in);
    status = counted(AFTER(BELOW->group_allreduce(replica.group, bytes, out, n, &sum)));
    return replica_came(status, CALL_allreduce_sum, -1, 0, out, n * sizeof *out);
}
