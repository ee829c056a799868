/* The public calls on groups, on the process's instance: arguments to an engine's call. */
#include <keel/message.h>

#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/base/export.h"
#include "runtime/client/client.h"
#include "runtime/client/api/living.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment_group.h"
#include "runtime/client/stream/mail.h"

_Static_assert((int)KEEL_COMPLEX_DOUBLE == (int)ELEMENT_COMPLEX_DOUBLE && (int)KEEL_USER == (int)ELEMENT_USER &&
                   (int)KEEL_MAXLOC == (int)ELEMENT_MAXLOC && (int)KEEL_XOR == (int)ELEMENT_XOR,
               "the public numbers are the inner ones");
_Static_assert((int)KEEL_GROUP_AND == (int)ENGINE_AND && (int)KEEL_GROUP_MAX == (int)ENGINE_MAX, "and these");

/* ---- groups ---- */

/* A handle is the group's place in memory and, in the bits that no address has, how often that place was used before: so
 * what was freed is not taken for what is there now. */
enum { HANDLE_SHIFT = 48 };
_Static_assert(sizeof(uintptr_t) == 8, "addresses have bits to spare");

/* NULL: no group, or one that was freed, and its place has been used again. */
static keel_group *of(const keel_group *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    keel_group *g = (keel_group *)(bits & (((uintptr_t)1 << HANDLE_SHIFT) - 1));
    return g && g->generation == bits >> HANDLE_SHIFT ? g : NULL;
}

/* What is wrong with a call on no group, or with wrong arguments: at the wrong moment, the moment is. */
static keel_status wrong(void)
{
    return process_client.ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
}

/* What a call has made becomes the caller's handle. */
static keel_status give(keel_status status, keel_group **group)
{
    if (status == KEEL_OK && *group) // NOLINTNEXTLINE(performance-no-int-to-ptr)
        *group = (keel_group *)((uintptr_t)*group | (uintptr_t)(*group)->generation << HANDLE_SHIFT);
    return status;
}

static keel_status none(keel_group **group)
{
    if (group)
        *group = NULL;
    return wrong();
}

KEEL_EXPORT keel_group *keel_group_world(void)
{
    return process_client.ready ? process_client.coll.world : NULL;
}

KEEL_EXPORT keel_group *keel_group_node(void)
{
    return process_client.ready ? process_client.coll.node : NULL;
}

KEEL_EXPORT keel_status keel_group_create(const int *ranks, int n, uint64_t tag, keel_group **group)
{
    return group ? give(coll_create(&process_client, ranks, n, tag, group), group) : none(group);
}

KEEL_EXPORT keel_status keel_group_split(keel_group *parent, int colour, int key, keel_group **group)
{
    keel_group *g = of(parent);
    return g && group ? give(coll_split(g, colour, key, group), group) : none(group);
}

KEEL_EXPORT keel_status keel_group_shrink(keel_group *group, keel_group **survivors)
{
    keel_group *g = of(group);
    return g && survivors ? give(coll_shrink(g, survivors), survivors) : none(survivors);
}

KEEL_EXPORT keel_status keel_group_shrink_among(keel_group *group, const int *members, int n, keel_group **survivors)
{
    keel_group *g = of(group);
    return g && survivors ? give(coll_shrink_among(g, members, n, survivors), survivors) : none(survivors);
}

KEEL_EXPORT keel_status keel_group_revoke(keel_group *group)
{
    keel_group *g = of(group);
    return g ? coll_revoke(g) : wrong();
}

KEEL_EXPORT keel_status keel_group_patience(keel_group *group, bool waits)
{
    keel_group *g = of(group);
    keel_status status = g ? coll_check(g->client, g) : wrong();
    if (status == KEEL_OK)
        g->patient = waits;
    return status;
}

KEEL_EXPORT keel_status keel_group_free(keel_group *group)
{
    keel_group *g = of(group);
    if (g)
        return coll_group_free(g);
    return group || !process_client.ready ? wrong() : KEEL_OK;
}

static bool is_group(const keel_group *g)
{
    return g && !g->freed;
}

/* ... and this process is in the job. */
static bool is_here(const keel_group *g)
{
    return is_group(g) && g->client->ready;
}

KEEL_EXPORT int keel_group_size(const keel_group *group)
{
    group = of(group);
    return is_here(group) ? group_size(group->ranks) : 0;
}

KEEL_EXPORT int keel_group_rank(const keel_group *group)
{
    group = of(group);
    return is_here(group) && group->engine ? group_member_of(group->ranks, group->client->rank) : -1;
}

KEEL_EXPORT int keel_group_to_world(const keel_group *group, int member)
{
    group = of(group);
    return is_here(group) ? group_rank(group->ranks, member) : -1;
}

KEEL_EXPORT int keel_group_from_world(const keel_group *group, int rank)
{
    group = of(group);
    return is_here(group) ? group_member_of(group->ranks, rank) : -1;
}

KEEL_EXPORT int keel_group_stopped(const keel_group *group)
{
    group = of(group);
    if (!is_here(group) || !group->engine)
        return -1;
    int blamed = engine_blamed(group->engine);
    return blamed < 0 && group->unfinished ? group->unfinished->blamed : blamed;
}

KEEL_EXPORT bool keel_group_alive(const keel_group *group, int member)
{
    group = of(group);
    if (!is_here(group) || group_rank(group->ranks, member) < 0)
        return false;
    client_lock(group->client);
    coll_see_views(group->client, group->client->env.now(group->client->env.user));
    bool lives = coll_member_lives(group, member);
    pthread_mutex_unlock(&group->client->lock);
    return lives;
}

/* The ranks of a that are in b (or are not), appended. */
static void pick(const struct group *a, const struct group *b, bool in, int *ranks, int *n)
{
    for (int m = 0; m < group_size(a); m++)
        if ((group_member_of(b, group_rank(a, m)) >= 0) == in)
            ranks[(*n)++] = group_rank(a, m);
}

KEEL_EXPORT keel_status keel_group_union(const keel_group *a, const keel_group *b, int *ranks, int *n)
{
    a = of(a);
    b = of(b);
    if (!is_here(a) || !is_here(b) || !ranks || !n)
        return wrong();
    *n = 0;
    for (int m = 0; m < group_size(a->ranks); m++)
        ranks[(*n)++] = group_rank(a->ranks, m);
    pick(b->ranks, a->ranks, false, ranks, n);
    return KEEL_OK;
}

KEEL_EXPORT keel_status keel_group_difference(const keel_group *a, const keel_group *b, int *ranks, int *n)
{
    a = of(a);
    b = of(b);
    if (!is_here(a) || !is_here(b) || !ranks || !n)
        return wrong();
    *n = 0;
    pick(a->ranks, b->ranks, false, ranks, n);
    return KEEL_OK;
}

KEEL_EXPORT keel_status keel_segment_alloc_group(keel_group *group, const size_t *bytes, keel_redundancy redundancy,
                                                 keel_segment **out)
{
    keel_group *g = of(group);
    if (!g && out)
        *out = NULL;
    return g ? segment_alloc_group(g, bytes, redundancy, out) : wrong();
}

/* ---- messages ---- */

KEEL_EXPORT keel_status keel_message_send(int rank, uint32_t tag, const void *data, size_t len)
{
    return mail_send(&process_client, rank, tag, data, len);
}

KEEL_EXPORT keel_status keel_message_receive(int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    return mail_receive(&process_client, rank, tag, data, max, len, from);
}

KEEL_EXPORT keel_status keel_message_test(int rank, uint32_t tag, size_t *len, int *from)
{
    return mail_test(&process_client, rank, tag, len, from);
}

/* ---- requests ---- */

/* Requests and lists of members are numbers to the program (living.h). */

static keel_status end_of(keel_request *number, keel_covered **covered, bool waits)
{
    keel_covered *list = NULL;
    keel_request *r = living_find(number, LIVING_REQUEST);
    bool left = !process_client.ready;
    if (covered)
        *covered = NULL;
    if (!r)
        return wrong();
    keel_covered **wanted = covered && !left ? &list : NULL;
    keel_status status = waits ? coll_wait(r, wanted, NULL) : coll_test(r, wanted);
    if (status == KEEL_IN_PROGRESS)
        return status;
    if (list) {
        living_become(number, LIVING_COVERED, list);
        *covered = (keel_covered *)(void *)number;
    } else {
        living_give_back(number);
    }
    return left ? KEEL_ERR_STATE : status;
}

KEEL_EXPORT keel_status keel_request_test(keel_request *request, keel_covered **covered)
{
    return end_of(request, covered, false);
}

KEEL_EXPORT keel_status keel_request_wait(keel_request *request, keel_covered **covered)
{
    return end_of(request, covered, true);
}

KEEL_EXPORT bool keel_covered_has(const keel_covered *covered, int member)
{
    const keel_covered *list = living_find(covered, LIVING_COVERED);
    return list && member >= 0 && member < roster_size(list->roster) && roster_has(list->roster, member);
}

KEEL_EXPORT int keel_covered_count(const keel_covered *covered)
{
    const keel_covered *list = living_find(covered, LIVING_COVERED);
    return list ? roster_live(list->roster) : 0;
}

KEEL_EXPORT void keel_covered_free(keel_covered *covered)
{
    keel_covered *list = living_find(covered, LIVING_COVERED);
    if (!list)
        return;
    living_give_back(covered);
    client_lock(list->client);
    roster_unref(list->roster);
    pthread_mutex_unlock(&list->client->lock);
    free(list);
}

/* request NULL: to the end. blocks: the lists that the call points to, taken over; or NULL. */
static keel_status start(keel_group *g, const struct engine_call *call, size_t *blocks, keel_request **request)
{
    keel_status status;
    if (!request) {
        status = coll_run(g, call, NULL);
        free(blocks);
        return status;
    }
    keel_request *number = living_take(LIVING_REQUEST), *r;
    if (!number) {
        free(blocks);
        return KEEL_ERR_LIMIT;
    }
    status = coll_call(g, call, blocks, &r);
    living_set(number, r);
    if (status == KEEL_OK)
        *request = number;
    else
        living_give_back(number);
    return status;
}

/* ---- without data ---- */

/* request NULL: to the end. */
static keel_status begin(keel_group *g, const struct engine_call *call, keel_request **request)
{
    if (request)
        *request = NULL;
    if (!g)
        return wrong();
    return start(g, call, NULL, request);
}

static keel_status do_barrier(keel_group *group, keel_request **request)
{
    group = of(group);
    struct engine_call call = {.kind = ENGINE_BARRIER};
    return begin(group, &call, request);
}

KEEL_EXPORT keel_status keel_group_barrier_begin(keel_group *group, keel_request **request)
{
    return request ? do_barrier(group, request) : wrong();
}

KEEL_EXPORT keel_status keel_group_sync(keel_group *group)
{
    const keel_group *g = of(group);
    keel_status status = g ? coll_check(g->client, g) : wrong();
    if (status == KEEL_OK)
        status = rma_fence(g->client, -1);
    return status == KEEL_OK ? keel_group_barrier(group) : status;
}

KEEL_EXPORT keel_status keel_group_fence(const keel_group *group)
{
    const keel_group *g = of(group);
    keel_status first = is_here(g) ? KEEL_OK : wrong();
    for (int m = 0; first != KEEL_ERR_ARG && is_here(g) && m < group_size(g->ranks); m++) {
        keel_status status = rma_fence(g->client, group_rank(g->ranks, m));
        first = first == KEEL_OK ? status : first;
    }
    return first;
}

KEEL_EXPORT keel_status keel_group_agree(keel_group *group, keel_group_op op, uint64_t value, uint64_t *result)
{
    group = of(group);
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = (enum engine_agree)op, .value = value};
    if (!result || !group || (unsigned)op > KEEL_GROUP_MAX)
        return wrong();
    return coll_run(group, &call, result);
}

/* ---- with data ---- */

/* A call that moves bytes. Buffers of no bytes may be NULL; members that have nothing to give or to get pass anything. */
static struct engine_call moves(enum schedule_kind kind, int root, const void *in, void *out, size_t len)
{
    return (struct engine_call){.kind = ENGINE_MOVE, .move = kind, .root = root, .in = in, .out = out, .len = len};
}

static bool is_root(const keel_group *g, int root)
{
    return is_group(g) && group_member_of(g->ranks, g->client->rank) == root;
}

static keel_status begin_bytes(keel_group *g, const struct engine_call *call, bool gives, bool gets,
                               keel_request **request)
{
    if (call->len && ((gives && !call->in) || (gets && !call->out)))
        return wrong();
    if (is_group(g) && call->len > SIZE_MAX / 2 / (size_t)group_size(g->ranks))
        return wrong();
    return begin(g, call, request);
}

/* Fills in what a reduction does; false: there is no such thing. */
static bool set_combine(struct engine_call *call, const keel_combine *how, size_t n)
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
    if (!set_combine(call, how, n) || (call->len && (!call->in || !call->out)))
        return wrong();
    return begin(g, call, request);
}

/* Copies of the caller's lists of lengths and places, two lists of each if there are. NULL: there is no memory, and the call refuses. */
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

static keel_status do_bcast(keel_group *group, int root, void *data, size_t len, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_BCAST, root, NULL, data, len);
    return begin_bytes(group, &call, false, true, request);
}

KEEL_EXPORT keel_status keel_group_bcast_begin(keel_group *group, int root, void *data, size_t len,
                                               keel_request **request)
{
    return request ? do_bcast(group, root, data, len, request) : wrong();
}

static keel_status do_reduce(keel_group *group, int root, const void *in, void *out, size_t n, const keel_combine *how,
                             keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_REDUCE, root, in, out, 0);
    return begin_reduction(group, &call, n, how, request);
}

KEEL_EXPORT keel_status keel_group_reduce_begin(keel_group *group, int root, const void *in, void *out, size_t n,
                                                const keel_combine *how, keel_request **request)
{
    return request ? do_reduce(group, root, in, out, n, how, request) : wrong();
}

static keel_status do_allreduce(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                                keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_ALLREDUCE, 0, in, out, 0);
    call.early = true;
    return begin_reduction(group, &call, n, how, request);
}

KEEL_EXPORT keel_status keel_group_allreduce_begin(keel_group *group, const void *in, void *out, size_t n,
                                                   const keel_combine *how, keel_request **request)
{
    return request ? do_allreduce(group, in, out, n, how, request) : wrong();
}

static keel_status do_scan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                           keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_SCAN, 0, in, out, 0);
    return begin_reduction(group, &call, n, how, request);
}

KEEL_EXPORT keel_status keel_group_scan_begin(keel_group *group, const void *in, void *out, size_t n,
                                              const keel_combine *how, keel_request **request)
{
    return request ? do_scan(group, in, out, n, how, request) : wrong();
}

static keel_status do_exscan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how,
                             keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_EXSCAN, 0, in, out, 0);
    return begin_reduction(group, &call, n, how, request);
}

KEEL_EXPORT keel_status keel_group_exscan_begin(keel_group *group, const void *in, void *out, size_t n,
                                                const keel_combine *how, keel_request **request)
{
    return request ? do_exscan(group, in, out, n, how, request) : wrong();
}

static keel_status do_reduce_scatter(keel_group *group, const void *in, void *out, const size_t *n,
                                     const keel_combine *how, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_REDUCE_SCATTER, 0, in, out, 0);
    if (!is_group(group) || !n)
        return wrong();
    if (request)
        *request = NULL;
    size_t total = 0;
    for (int m = 0; m < group_size(group->ranks); m++) {
        if (n[m] > SIZE_MAX / 2 - total)
            return wrong();
        total += n[m];
    }
    int me = group_member_of(group->ranks, group->client->rank);
    if (!set_combine(&call, how, total) || (call.len && !in) || (me >= 0 && n[me] && !out))
        return wrong();
    size_t *blocks = keep_blocks(group, &call, NULL, NULL, NULL, NULL);
    size_t members = (size_t)group_size(group->ranks), at = 0;
    for (size_t m = 0; blocks && m < members; m++) {
        blocks[m] = at;
        blocks[members + m] = n[m] * element_size(&call.element);
        at += blocks[members + m];
    }
    call.in_blocks = blocks_of(group, blocks, 0);
    return start(group, &call, blocks, request);
}

KEEL_EXPORT keel_status keel_group_reduce_scatter_begin(keel_group *group, const void *in, void *out, const size_t *n,
                                                        const keel_combine *how, keel_request **request)
{
    return request ? do_reduce_scatter(group, in, out, n, how, request) : wrong();
}

static keel_status do_gather(keel_group *group, int root, const void *in, void *out, size_t len, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_GATHER, root, in, out, len);
    return begin_bytes(group, &call, true, is_root(group, root), request);
}

KEEL_EXPORT keel_status keel_group_gather_begin(keel_group *group, int root, const void *in, void *out, size_t len,
                                                keel_request **request)
{
    return request ? do_gather(group, root, in, out, len, request) : wrong();
}

static keel_status do_scatter(keel_group *group, int root, const void *in, void *out, size_t len,
                              keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_SCATTER, root, in, out, len);
    return begin_bytes(group, &call, is_root(group, root), true, request);
}

KEEL_EXPORT keel_status keel_group_scatter_begin(keel_group *group, int root, const void *in, void *out, size_t len,
                                                 keel_request **request)
{
    return request ? do_scatter(group, root, in, out, len, request) : wrong();
}

static keel_status do_allgather(keel_group *group, const void *in, void *out, size_t len, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_ALLGATHER, 0, in, out, len);
    call.early = true;
    return begin_bytes(group, &call, true, true, request);
}

KEEL_EXPORT keel_status keel_group_allgather_begin(keel_group *group, const void *in, void *out, size_t len,
                                                   keel_request **request)
{
    return request ? do_allgather(group, in, out, len, request) : wrong();
}

static keel_status do_alltoall(keel_group *group, const void *in, void *out, size_t len, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_ALLTOALL, 0, in, out, len);
    call.early = true;
    return begin_bytes(group, &call, true, true, request);
}

KEEL_EXPORT keel_status keel_group_alltoall_begin(keel_group *group, const void *in, void *out, size_t len,
                                                  keel_request **request)
{
    return request ? do_alltoall(group, in, out, len, request) : wrong();
}

static keel_status do_gather_v(keel_group *group, int root, const void *in, size_t len, void *out, const size_t *lens,
                               const size_t *at, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_GATHER, root, in, out, 0);
    bool lists = is_root(group, root);
    if (!is_group(group) || (len && !in) || (lists && !lists_fit(group, at, lens, out)))
        return wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, lists ? at : NULL, lists ? lens : NULL, NULL, NULL);
    call.varying = true;
    call.mine = len;
    call.out_blocks = blocks_of(group, blocks, 0);
    return start(group, &call, blocks, request);
}

KEEL_EXPORT keel_status keel_group_gather_v_begin(keel_group *group, int root, const void *in, size_t len, void *out,
                                                  const size_t *lens, const size_t *at, keel_request **request)
{
    return request ? do_gather_v(group, root, in, len, out, lens, at, request) : wrong();
}

static keel_status do_scatter_v(keel_group *group, int root, const void *in, const size_t *lens, const size_t *at,
                                void *out, size_t len, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_SCATTER, root, in, out, 0);
    bool lists = is_root(group, root);
    if (!is_group(group) || (len && !out) || (lists && !lists_fit(group, at, lens, in)))
        return wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, lists ? at : NULL, lists ? lens : NULL, NULL, NULL);
    call.varying = true;
    call.mine = len;
    call.in_blocks = blocks_of(group, blocks, 0);
    return start(group, &call, blocks, request);
}

KEEL_EXPORT keel_status keel_group_scatter_v_begin(keel_group *group, int root, const void *in, const size_t *lens,
                                                   const size_t *at, void *out, size_t len, keel_request **request)
{
    return request ? do_scatter_v(group, root, in, lens, at, out, len, request) : wrong();
}

static keel_status do_allgather_v(keel_group *group, const void *in, size_t len, void *out, const size_t *lens,
                                  const size_t *at, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_ALLGATHER, 0, in, out, 0);
    if (!is_group(group) || (len && !in) || !lists_fit(group, at, lens, out))
        return wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, at, lens, NULL, NULL);
    call.varying = true;
    call.mine = len;
    call.out_blocks = blocks_of(group, blocks, 0);
    return start(group, &call, blocks, request);
}

KEEL_EXPORT keel_status keel_group_allgather_v_begin(keel_group *group, const void *in, size_t len, void *out,
                                                     const size_t *lens, const size_t *at, keel_request **request)
{
    return request ? do_allgather_v(group, in, len, out, lens, at, request) : wrong();
}

static keel_status do_alltoall_v(keel_group *group, const void *in, const size_t *in_lens, const size_t *in_at,
                                 void *out, const size_t *out_lens, const size_t *out_at, keel_request **request)
{
    group = of(group);
    struct engine_call call = moves(SCHEDULE_ALLTOALL, 0, in, out, 0);
    if (!is_group(group) || !lists_fit(group, in_at, in_lens, in) || !lists_fit(group, out_at, out_lens, out))
        return wrong();
    if (request)
        *request = NULL;
    size_t *blocks = keep_blocks(group, &call, in_at, in_lens, out_at, out_lens);
    call.varying = true;
    call.in_blocks = blocks_of(group, blocks, 0);
    call.out_blocks = blocks_of(group, blocks, 1);
    return start(group, &call, blocks, request);
}

KEEL_EXPORT keel_status keel_group_alltoall_v_begin(keel_group *group, const void *in, const size_t *in_lens,
                                                    const size_t *in_at, void *out, const size_t *out_lens,
                                                    const size_t *out_at, keel_request **request)
{
    return request ? do_alltoall_v(group, in, in_lens, in_at, out, out_lens, out_at, request) : wrong();
}

/* ---- blocking ---- */

KEEL_EXPORT keel_status keel_group_barrier(keel_group *group)
{
    return do_barrier(group, NULL);
}

KEEL_EXPORT keel_status keel_group_bcast(keel_group *group, int root, void *data, size_t len)
{
    return do_bcast(group, root, data, len, NULL);
}

KEEL_EXPORT keel_status keel_group_reduce(keel_group *group, int root, const void *in, void *out, size_t n,
                                          const keel_combine *how)
{
    return do_reduce(group, root, in, out, n, how, NULL);
}

KEEL_EXPORT keel_status keel_group_allreduce(keel_group *group, const void *in, void *out, size_t n,
                                             const keel_combine *how)
{
    return do_allreduce(group, in, out, n, how, NULL);
}

KEEL_EXPORT keel_status keel_group_reduce_scatter(keel_group *group, const void *in, void *out, const size_t *n,
                                                  const keel_combine *how)
{
    return do_reduce_scatter(group, in, out, n, how, NULL);
}

KEEL_EXPORT keel_status keel_group_scan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how)
{
    return do_scan(group, in, out, n, how, NULL);
}

KEEL_EXPORT keel_status keel_group_exscan(keel_group *group, const void *in, void *out, size_t n,
                                          const keel_combine *how)
{
    return do_exscan(group, in, out, n, how, NULL);
}

KEEL_EXPORT keel_status keel_group_gather(keel_group *group, int root, const void *in, void *out, size_t len)
{
    return do_gather(group, root, in, out, len, NULL);
}

KEEL_EXPORT keel_status keel_group_scatter(keel_group *group, int root, const void *in, void *out, size_t len)
{
    return do_scatter(group, root, in, out, len, NULL);
}

KEEL_EXPORT keel_status keel_group_allgather(keel_group *group, const void *in, void *out, size_t len)
{
    return do_allgather(group, in, out, len, NULL);
}

KEEL_EXPORT keel_status keel_group_alltoall(keel_group *group, const void *in, void *out, size_t len)
{
    return do_alltoall(group, in, out, len, NULL);
}

KEEL_EXPORT keel_status keel_group_gather_v(keel_group *group, int root, const void *in, size_t len, void *out,
                                            const size_t *lens, const size_t *at)
{
    return do_gather_v(group, root, in, len, out, lens, at, NULL);
}

KEEL_EXPORT keel_status keel_group_scatter_v(keel_group *group, int root, const void *in, const size_t *lens,
                                             const size_t *at, void *out, size_t len)
{
    return do_scatter_v(group, root, in, lens, at, out, len, NULL);
}

KEEL_EXPORT keel_status keel_group_allgather_v(keel_group *group, const void *in, size_t len, void *out,
                                               const size_t *lens, const size_t *at)
{
    return do_allgather_v(group, in, len, out, lens, at, NULL);
}

KEEL_EXPORT keel_status keel_group_alltoall_v(keel_group *group, const void *in, const size_t *in_lens,
                                              const size_t *in_at, void *out, const size_t *out_lens,
                                              const size_t *out_at)
{
    return do_alltoall_v(group, in, in_lens, in_at, out, out_lens, out_at, NULL);
}
