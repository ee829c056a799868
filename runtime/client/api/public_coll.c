/* The public collectives of groups with blocks of one length, on the process's instance: arguments to an engine's
 * call. */
#include "collectives/group.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/api/public_coll.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/client.h"
#include "runtime/client/op/rma.h"

_Static_assert((int)KEEL_COMPLEX_DOUBLE == (int)ELEMENT_COMPLEX_DOUBLE && (int)KEEL_USER == (int)ELEMENT_USER &&
                   (int)KEEL_MAXLOC == (int)ELEMENT_MAXLOC && (int)KEEL_XOR == (int)ELEMENT_XOR,
               "the public numbers are the inner ones");

struct engine_call public_coll_moves(enum schedule_kind kind, int root, const void *in, void *out, size_t len)
{
    return (struct engine_call){.kind = ENGINE_MOVE, .move = kind, .root = root, .in = in, .out = out, .len = len};
}

static keel_status begin_bytes(keel_group *g, const struct engine_call *call, bool gives, bool gets,
                               keel_request **request)
{
    if (call->len && ((gives && !call->in) || (gets && !call->out)))
        return public_wrong();
    if (public_group_is(g) && call->len > SIZE_MAX / 2 / (size_t)group_size(g->ranks))
        return public_wrong();
    return public_request_begin(g, call, request);
}

bool public_coll_combine(struct engine_call *call, const keel_combine *how, size_t n)
{
    if (!how || (unsigned)how->type >= ELEMENT_TYPES || (unsigned)how->op >= ELEMENT_OPS)
        return false;
    call->element = (struct element){.type = (enum element_type)how->type,
                                     .op = (enum element_op)how->op,
                                     .user = how->function,
                                     .context = how->context,
                                     .user_size = how->size};
    call->commutes = how->op == KEEL_USER && how->commutes;
    size_t size = element_valid(&call->element) ? element_size(&call->element) : 0;
    if (!size || n > SIZE_MAX / 2 / size)
        return false;
    call->len = n * size;
    return true;
}

static keel_status begin_reduction(keel_group *g, struct engine_call *call, size_t n, const keel_combine *how,
                                   keel_request **request)
{
    if (!public_coll_combine(call, how, n) || (call->len && (!call->in || !call->out)))
        return public_wrong();
    return public_request_begin(g, call, request);
}

static keel_status do_barrier(keel_group *group, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = {.kind = ENGINE_BARRIER};
    return public_request_begin(group, &call, request);
}

keel_status call_group_barrier_begin(keel_group *group, keel_request **request)
{
    return request ? do_barrier(group, request) : public_wrong();
}

keel_status call_group_barrier(keel_group *group)
{
    return do_barrier(group, NULL);
}

static keel_status do_bcast(keel_group *group, int root, void *data, size_t len, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_BCAST, root, NULL, data, len);
    return begin_bytes(group, &call, false, true, request);
}

keel_status call_group_bcast_begin(keel_group *group, int root, void *data, size_t len, keel_request **request)
{
    return request ? do_bcast(group, root, data, len, request) : public_wrong();
}

keel_status call_group_bcast(keel_group *group, int root, void *data, size_t len)
{
    return do_bcast(group, root, data, len, NULL);
}

static keel_status do_reduce(keel_group *group, int root, const void *in, void *out, size_t n, const keel_combine *how,
                             keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_REDUCE, root, in, out, 0);
    return begin_reduction(group, &call, n, how, request);
}

keel_status call_group_reduce_begin(keel_group *group, int root, const void *in, void *out, size_t n,
                                    const keel_combine *how, keel_request **request)
{
    return request ? do_reduce(group, root, in, out, n, how, request) : public_wrong();
}

keel_status call_group_reduce(keel_group *group, int root, const void *in, void *out, size_t n, const keel_combine *how)
{
    return do_reduce(group, root, in, out, n, how, NULL);
}

static keel_status do_allreduce(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                                keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_ALLREDUCE, 0, in, out, 0);
    call.early = true;
    return begin_reduction(group, &call, n, how, request);
}

keel_status call_group_allreduce_begin(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                                       keel_request **request)
{
    return request ? do_allreduce(group, in, out, n, how, request) : public_wrong();
}

keel_status call_group_allreduce(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how)
{
    return do_allreduce(group, in, out, n, how, NULL);
}

static keel_status do_scan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                           keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_SCAN, 0, in, out, 0);
    return begin_reduction(group, &call, n, how, request);
}

keel_status call_group_scan_begin(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                                  keel_request **request)
{
    return request ? do_scan(group, in, out, n, how, request) : public_wrong();
}

keel_status call_group_scan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how)
{
    return do_scan(group, in, out, n, how, NULL);
}

static keel_status do_exscan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                             keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_EXSCAN, 0, in, out, 0);
    return begin_reduction(group, &call, n, how, request);
}

keel_status call_group_exscan_begin(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                                    keel_request **request)
{
    return request ? do_exscan(group, in, out, n, how, request) : public_wrong();
}

keel_status call_group_exscan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how)
{
    return do_exscan(group, in, out, n, how, NULL);
}

static keel_status do_gather(keel_group *group, int root, const void *in, void *out, size_t len, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_GATHER, root, in, out, len);
    return begin_bytes(group, &call, true, public_group_root_is_me(group, root), request);
}

keel_status call_group_gather_begin(keel_group *group, int root, const void *in, void *out, size_t len,
                                    keel_request **request)
{
    return request ? do_gather(group, root, in, out, len, request) : public_wrong();
}

keel_status call_group_gather(keel_group *group, int root, const void *in, void *out, size_t len)
{
    return do_gather(group, root, in, out, len, NULL);
}

static keel_status do_scatter(keel_group *group, int root, const void *in, void *out, size_t len,
                              keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_SCATTER, root, in, out, len);
    return begin_bytes(group, &call, public_group_root_is_me(group, root), true, request);
}

keel_status call_group_scatter_begin(keel_group *group, int root, const void *in, void *out, size_t len,
                                     keel_request **request)
{
    return request ? do_scatter(group, root, in, out, len, request) : public_wrong();
}

keel_status call_group_scatter(keel_group *group, int root, const void *in, void *out, size_t len)
{
    return do_scatter(group, root, in, out, len, NULL);
}

static keel_status do_allgather(keel_group *group, const void *in, void *out, size_t len, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_ALLGATHER, 0, in, out, len);
    call.early = true;
    return begin_bytes(group, &call, true, true, request);
}

keel_status call_group_allgather_begin(keel_group *group, const void *in, void *out, size_t len, keel_request **request)
{
    return request ? do_allgather(group, in, out, len, request) : public_wrong();
}

keel_status call_group_allgather(keel_group *group, const void *in, void *out, size_t len)
{
    return do_allgather(group, in, out, len, NULL);
}

static keel_status do_alltoall(keel_group *group, const void *in, void *out, size_t len, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_ALLTOALL, 0, in, out, len);
    call.early = true;
    return begin_bytes(group, &call, true, true, request);
}

keel_status call_group_alltoall_begin(keel_group *group, const void *in, void *out, size_t len, keel_request **request)
{
    return request ? do_alltoall(group, in, out, len, request) : public_wrong();
}

keel_status call_group_alltoall(keel_group *group, const void *in, void *out, size_t len)
{
    return do_alltoall(group, in, out, len, NULL);
}

keel_status call_group_sync(keel_group *group)
{
    const keel_group *g = public_group_of(group);
    if (!g)
        return public_wrong();
    keel_status status = coll_check(g->client, g);
    if (status == KEEL_OK)
        status = rma_fence(g->client, -1);
    return status == KEEL_OK ? call_group_barrier(group) : status;
}
