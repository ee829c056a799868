/* The public collectives of groups with blocks of their own lengths: the caller's lists are copied. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/api/public_coll.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/client.h"

/* Copies of the caller's lists of lengths and places, two lists of each if there are. NULL: there is no memory, and
 * the call refuses. */
static size_t *keep_blocks(const keel_group *g, struct engine_call *call, const size_t *at, const size_t *lens,
                           const size_t *at2, const size_t *lens2)
{
    size_t n = (size_t)group_size(g->ranks), bytes = n * sizeof *at;
    size_t *blocks = calloc(4 * n + 1, sizeof *blocks);
    call->refuses = !blocks;
    if (!blocks)
        return NULL;
    const size_t *lists[] = {at, lens, at2, lens2};
    for (size_t i = 0; i < 4; i++)
        if (lists[i])
            memcpy(blocks + i * n, lists[i], bytes);
    return blocks;
}

static struct engine_blocks blocks_of(const keel_group *g, const size_t *blocks, int which)
{
    size_t n = (size_t)group_size(g->ranks);
    if (!blocks)
        return (struct engine_blocks){NULL, NULL};
    return (struct engine_blocks){blocks + 2 * (size_t)which * n, blocks + (2 * (size_t)which + 1) * n};
}

/* Lists are there, and no block ends beyond what can be. */
static bool lists_fit(const keel_group *g, const size_t *at, const size_t *lens, const void *memory)
{
    if (!at || !lens)
        return false;
    for (int m = 0; m < group_size(g->ranks); m++)
        if (lens[m] > SIZE_MAX / 4 || at[m] > SIZE_MAX / 4 || (lens[m] && !memory))
            return false;
    return true;
}

static keel_status do_reduce_scatter(keel_group *group, const void *in, void *out, const size_t *n,
                                     const keel_combine *how, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_REDUCE_SCATTER, 0, in, out, 0);
    if (!public_group_is(group) || !n)
        return public_wrong();
    if (request)
        *request = NULL;
    size_t total = 0;
    for (int m = 0; m < group_size(group->ranks); m++) {
        if (n[m] > SIZE_MAX / 2 - total)
            return public_wrong();
        total += n[m];
    }
    int me = group_member_of(group->ranks, group->client->rank);
    if (!public_coll_combine(&call, how, total) || (call.len && !in) || (me >= 0 && n[me] && !out))
        return public_wrong();
    size_t *blocks = keep_blocks(group, &call, NULL, NULL, NULL, NULL);
    size_t members = (size_t)group_size(group->ranks), at = 0;
    for (size_t m = 0; blocks && m < members; m++) {
        blocks[m] = at;
        blocks[members + m] = n[m] * element_size(&call.element);
        at += blocks[members + m];
    }
    call.in_blocks = blocks_of(group, blocks, 0);
    return public_request_start(group, &call, blocks, request);
}

keel_status call_group_reduce_scatter_begin(keel_group *group, const void *in, void *out, const size_t *n,
                                            const keel_combine *how, keel_request **request)
{
    return request ? do_reduce_scatter(group, in, out, n, how, request) : public_wrong();
}

keel_status call_group_reduce_scatter(keel_group *group, const void *in, void *out, const size_t *n,
                                      const keel_combine *how)
{
    return do_reduce_scatter(group, in, out, n, how, NULL);
}

static keel_status do_gather_v(keel_group *group, int root, const void *in, size_t len, void *out, const size_t *lens,
                               const size_t *at, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_GATHER, root, in, out, 0);
    bool lists = public_group_root_is_me(group, root);
    if (!public_group_is(group) || (len && !in) || (lists && !lists_fit(group, at, lens, out)))
        return public_wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, lists ? at : NULL, lists ? lens : NULL, NULL, NULL);
    call.varying = true;
    call.mine = len;
    call.out_blocks = blocks_of(group, blocks, 0);
    return public_request_start(group, &call, blocks, request);
}

keel_status call_group_gather_v_begin(keel_group *group, int root, const void *in, size_t len, void *out,
                                      const size_t *lens, const size_t *at, keel_request **request)
{
    return request ? do_gather_v(group, root, in, len, out, lens, at, request) : public_wrong();
}

keel_status call_group_gather_v(keel_group *group, int root, const void *in, size_t len, void *out, const size_t *lens,
                                const size_t *at)
{
    return do_gather_v(group, root, in, len, out, lens, at, NULL);
}

static keel_status do_scatter_v(keel_group *group, int root, const void *in, const size_t *lens, const size_t *at,
                                void *out, size_t len, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_SCATTER, root, in, out, 0);
    bool lists = public_group_root_is_me(group, root);
    if (!public_group_is(group) || (len && !out) || (lists && !lists_fit(group, at, lens, in)))
        return public_wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, lists ? at : NULL, lists ? lens : NULL, NULL, NULL);
    call.varying = true;
    call.mine = len;
    call.in_blocks = blocks_of(group, blocks, 0);
    return public_request_start(group, &call, blocks, request);
}

keel_status call_group_scatter_v_begin(keel_group *group, int root, const void *in, const size_t *lens,
                                       const size_t *at, void *out, size_t len, keel_request **request)
{
    return request ? do_scatter_v(group, root, in, lens, at, out, len, request) : public_wrong();
}

keel_status call_group_scatter_v(keel_group *group, int root, const void *in, const size_t *lens, const size_t *at,
                                 void *out, size_t len)
{
    return do_scatter_v(group, root, in, lens, at, out, len, NULL);
}

static keel_status do_allgather_v(keel_group *group, const void *in, size_t len, void *out, const size_t *lens,
                                  const size_t *at, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_ALLGATHER, 0, in, out, 0);
    if (!public_group_is(group) || (len && !in) || !lists_fit(group, at, lens, out))
        return public_wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, at, lens, NULL, NULL);
    call.varying = true;
    call.mine = len;
    call.out_blocks = blocks_of(group, blocks, 0);
    return public_request_start(group, &call, blocks, request);
}

keel_status call_group_allgather_v_begin(keel_group *group, const void *in, size_t len, void *out, const size_t *lens,
                                         const size_t *at, keel_request **request)
{
    return request ? do_allgather_v(group, in, len, out, lens, at, request) : public_wrong();
}

keel_status call_group_allgather_v(keel_group *group, const void *in, size_t len, void *out, const size_t *lens,
                                   const size_t *at)
{
    return do_allgather_v(group, in, len, out, lens, at, NULL);
}

static keel_status do_alltoall_v(keel_group *group, const void *in, const size_t *in_lens, const size_t *in_at,
                                 void *out, const size_t *out_lens, const size_t *out_at, keel_request **request)
{
    group = public_group_of(group);
    struct engine_call call = public_coll_moves(SCHEDULE_ALLTOALL, 0, in, out, 0);
    if (!public_group_is(group) || !lists_fit(group, in_at, in_lens, in) || !lists_fit(group, out_at, out_lens, out))
        return public_wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, in_at, in_lens, out_at, out_lens);
    call.varying = true;
    call.in_blocks = blocks_of(group, blocks, 0);
    call.out_blocks = blocks_of(group, blocks, 1);
    return public_request_start(group, &call, blocks, request);
}

keel_status call_group_alltoall_v_begin(keel_group *group, const void *in, const size_t *in_lens, const size_t *in_at,
                                        void *out, const size_t *out_lens, const size_t *out_at, keel_request **request)
{
    return request ? do_alltoall_v(group, in, in_lens, in_at, out, out_lens, out_at, request) : public_wrong();
}

keel_status call_group_alltoall_v(keel_group *group, const void *in, const size_t *in_lens, const size_t *in_at,
                                  void *out, const size_t *out_lens, const size_t *out_at)
{
    return do_alltoall_v(group, in, in_lens, in_at, out, out_lens, out_at, NULL);
}
