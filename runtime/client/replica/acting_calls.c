/* The library as the wrapper sees it where partners do the part of the dead: puts, gets, signals and collectives go the
 * way of acting.c. What is begun has ended when its call returns. Ranks are native ones of the own set, as in all calls
 * below the wrapper. acting.inc says of each call what becomes of it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/api/public_coll.h"
#include "runtime/client/client.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/replica/acting_int.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/shape.h"

static const struct api_calls *below;

/* ---- what is the own set's alone: from then on a set that loses a member is retired ---- */

#define STATUS_CALL(name, parameters, arguments)                                                                       \
    __attribute__((unused)) static keel_status binds_##name parameters                                                 \
    {                                                                                                                  \
        replica_binds();                                                                                               \
        return below->name arguments;                                                                                  \
    }
#define NEAR_CALL STATUS_CALL
#define VALUE_CALL(result, name, parameters, arguments)
#define VOID_CALL(name, parameters, arguments)
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL

/* What is kept: nobody has described it to other sets. */
void acting_binds_segment(const keel_segment *segment)
{
    if (segment && !segment->number)
        replica_binds();
}

/* Of another rank's part plain loads and stores, of which nobody knows; where they cannot be, as its only copy is on
 * another node, the address is a name alone. */
static bool may_be_touched(const keel_segment *segment, int native)
{
    int rank = acting_rank_of(native);
    bool is_one = replica.copies == SHARE_ONE || (segment && segment->redundancy == KEEL_REDUNDANCY_NONE);
    return rank >= 0 && rank != replica.rank && (!is_one || replica.node[rank] == replica.node[replica.rank]);
}

static void *act_address(keel_segment *segment, int native)
{
    if (may_be_touched(segment, native))
        replica_binds();
    return below->address(segment, native);
}

static void take_nothing(void *user, int origin, size_t at, const void *bytes, size_t len)
{
    (void)user, (void)origin, (void)at, (void)bytes, (void)len;
}

/* Who acts for a dead one may still be writing there. After a meeting. */
static keel_status act_segment_free(keel_segment *segment)
{
    keel_status status =
        segment && segment->of_all ? replica_passes(CALL_segment_free, NULL, 0, take_nothing, NULL) : KEEL_OK;
    return status == KEEL_OK ? below->segment_free(segment) : status;
}

int acting_rank_of(int native)
{
    bool is = native >= 0 && native < replica_map_natives(&replica.client->replicas);
    return is ? replica_of(&replica.client->replicas, native).rank : -1;
}

bool acting_may(const keel_segment *segment, int native, size_t offset, const void *bytes, size_t len)
{
    int rank = acting_rank_of(native);
    return segment && segment->number && bytes && len && rank >= 0 && replica_may_read(segment, rank, offset, len);
}

static bool is_a_death(keel_verdict verdict)
{
    return verdict == KEEL_RANK_DEAD || verdict == KEEL_NODE_DEAD;
}

/* Of any of its replicas: whoever lives does its part. */
static keel_status act_rank_status(int native, int timeout_ms, keel_verdict *verdict)
{
    int rank = acting_rank_of(native), set = rank < 0 ? -1 : acting_reads(rank);
    keel_verdict is = KEEL_RANK_DEAD;
    keel_status status = below->rank_status(set < 0 ? native : replica_native(&replica.client->replicas, rank, set),
                                            timeout_ms, verdict ? &is : NULL);
    for (int s = 0; s < replica.sets && set >= 0 && status == KEEL_OK && verdict && is_a_death(is); s++)
        if (s != set && replica_lives(rank, s))
            status = below->rank_status(replica_native(&replica.client->replicas, rank, s), timeout_ms, &is);
    if (verdict && status == KEEL_OK)
        *verdict = is;
    return status;
}

/* ---- puts and gets: what cannot be goes to the library, which refuses it ---- */

static keel_status act_put(keel_segment *segment, int native, size_t offset, const void *src, size_t len)
{
    acting_binds_segment(segment);
    return acting_may(segment, native, offset, src, len)
               ? replica_puts(segment->number, acting_rank_of(native), offset, src, len)
               : below->put(segment, native, offset, src, len);
}

static keel_status act_get(keel_segment *segment, int native, size_t offset, void *dst, size_t len)
{
    acting_binds_segment(segment);
    return acting_may(segment, native, offset, dst, len)
               ? replica_reads(segment->number, acting_rank_of(native), offset, dst, len)
               : below->get(segment, native, offset, dst, len);
}

/* False: the library refuses it. */
static bool by_pieces(keel_segment *segment, int native, const keel_piece *pieces, size_t n, bool puts,
                      keel_status *status)
{
    if (acting_rank_of(native) < 0 || !replica_may_read_pieces(segment, acting_rank_of(native), pieces, n))
        return false;
    *status = KEEL_OK;
    for (size_t i = 0; i < n && *status == KEEL_OK; i++)
        *status = puts ? act_put(segment, native, pieces[i].offset, pieces[i].local, pieces[i].len)
                       : act_get(segment, native, pieces[i].offset, pieces[i].local, pieces[i].len);
    return true;
}

static keel_status act_put_vector(keel_segment *segment, int native, const keel_piece *pieces, size_t n)
{
    keel_status status;
    acting_binds_segment(segment);
    return by_pieces(segment, native, pieces, n, true, &status) ? status
                                                                : below->put_vector(segment, native, pieces, n);
}

static keel_status act_get_vector(keel_segment *segment, int native, const keel_piece *pieces, size_t n)
{
    keel_status status;
    acting_binds_segment(segment);
    return by_pieces(segment, native, pieces, n, false, &status) ? status
                                                                 : below->get_vector(segment, native, pieces, n);
}

/* dst NULL: a put. False: the library refuses it. */
static bool by_runs(keel_segment *segment, int native, size_t offset, const uint8_t *src, uint8_t *dst,
                    const keel_strided *how, keel_status *status)
{
    struct shape shape;
    struct shape_walk walk;
    uint64_t place[SHAPE_SIDES];
    if (acting_rank_of(native) < 0 ||
        !replica_may_read_shape(segment, acting_rank_of(native), offset, dst ? dst : src, how, &shape))
        return false;
    *status = KEEL_OK;
    shape_walk_init(&walk, &shape);
    while (*status == KEEL_OK && shape_walk_next(&walk, place)) {
        size_t at = offset + place[SHAPE_GLOBAL];
        *status = dst ? act_get(segment, native, at, dst + place[SHAPE_LOCAL], shape.run)
                      : act_put(segment, native, at, src + place[SHAPE_LOCAL], shape.run);
    }
    return true;
}

static keel_status act_put_strided(keel_segment *segment, int native, size_t offset, const void *src,
                                   const keel_strided *how)
{
    keel_status status;
    acting_binds_segment(segment);
    return by_runs(segment, native, offset, src, NULL, how, &status)
               ? status
               : below->put_strided(segment, native, offset, src, how);
}

static keel_status act_get_strided(keel_segment *segment, int native, size_t offset, void *dst, const keel_strided *how)
{
    keel_status status;
    acting_binds_segment(segment);
    return dst && by_runs(segment, native, offset, NULL, dst, how, &status)
               ? status
               : below->get_strided(segment, native, offset, dst, how);
}

#define BEGUN(name, parameters, arguments) static ACTING_BEGUN(name, parameters, arguments)
BEGUN(put, (keel_segment * segment, int native, size_t offset, const void *src, size_t len, keel_handle *handle),
      (segment, native, offset, src, len))
BEGUN(get, (keel_segment * segment, int native, size_t offset, void *dst, size_t len, keel_handle *handle),
      (segment, native, offset, dst, len))
BEGUN(put_vector, (keel_segment * segment, int native, const keel_piece *pieces, size_t n, keel_handle *handle),
      (segment, native, pieces, n))
BEGUN(get_vector, (keel_segment * segment, int native, const keel_piece *pieces, size_t n, keel_handle *handle),
      (segment, native, pieces, n))
BEGUN(put_strided,
      (keel_segment * segment, int native, size_t offset, const void *src, const keel_strided *how,
       keel_handle *handle),
      (segment, native, offset, src, how))
BEGUN(get_strided,
      (keel_segment * segment, int native, size_t offset, void *dst, const keel_strided *how, keel_handle *handle),
      (segment, native, offset, dst, how))

/* ---- signals ---- */

static keel_status act_signal(keel_segment *segment, int native, size_t word, int64_t add)
{
    bool can = word % sizeof add == 0 && acting_may(segment, native, word, &add, sizeof add);
    return can ? replica_signals(segment->number, acting_rank_of(native), word, add)
               : below->signal(segment, native, word, add);
}

/* Whoever should have changed the word: if it is dead, its partner does. */
static keel_status act_wait_until(keel_segment *segment, size_t word, keel_compare how, int64_t value, int from,
                                  int64_t *got)
{
    bool is = from == KEEL_ANY_RANK || acting_rank_of(from) >= 0;
    return is ? replica_waits(segment, word, how, value, acting_rank_of(from), got)
              : below->wait_until(segment, word, how, value, from, got);
}

/* ---- collectives of all ranks ---- */

static bool is_of_all(const keel_group *group)
{
    return group == replica.group;
}

/* Of this process alone nobody else does anything. */
#define ELSE_BINDS(group, name, arguments)                                                                             \
    ((group) && below->group_size(group) == 1 ? below->name arguments : binds_##name arguments)

static keel_status act_group_barrier(keel_group *group)
{
    return is_of_all(group) ? replica_passes(CALL_group_barrier, NULL, 0, take_nothing, NULL)
                            : ELSE_BINDS(group, group_barrier, (group));
}

static keel_status act_group_sync(keel_group *group)
{
    return is_of_all(group) ? replica_passes(CALL_group_sync, NULL, 0, take_nothing, NULL)
                            : ELSE_BINDS(group, group_sync, (group));
}

struct of_one {
    uint8_t *data;
    size_t len;
    int root;
    bool came; /* it has not left */
};

static void take_of_one(void *user, int origin, size_t at, const void *bytes, size_t len)
{
    struct of_one *o = user;
    o->came = o->came || origin == o->root;
    if (origin == o->root && origin != replica.rank && at < o->len && len <= o->len - at)
        memcpy(o->data + at, bytes, len);
}

static keel_status act_group_bcast(keel_group *group, int root, void *data, size_t len)
{
    struct of_one o = {data, len, root, false};
    if (!is_of_all(group) || root < 0 || root >= replica.size || (len && !data))
        return ELSE_BINDS(group, group_bcast, (group, root, data, len));
    keel_status status = replica_passes(CALL_group_bcast, data, root == replica.rank ? len : 0, take_of_one, &o);
    return status == KEEL_OK && !o.came ? KEEL_ERR_RANK_DEAD : status;
}

static void take_each(void *user, int origin, size_t at, const void *bytes, size_t len)
{
    const struct of_one *o = user;
    if (at < o->len && len <= o->len - at)
        memcpy(o->data + (size_t)origin * o->len + at, bytes, len);
}

static keel_status act_group_allgather(keel_group *group, const void *in, void *out, size_t len)
{
    struct of_one o = {out, len, -1, false};
    if (!is_of_all(group) || (len && (!in || !out)))
        return ELSE_BINDS(group, group_allgather, (group, in, out, len));
    return replica_passes(CALL_group_allgather, in, len, take_each, &o);
}

/* Rank by rank, so that it is the same in each set. end: of which ranks. */
struct reduction {
    struct element element;
    uint8_t *sum, *scratch; /* [len] each */
    size_t len, size;
    int end;
    size_t taken; /* of how many bytes somebody has said something: who has left does not */
};

static void take_term(void *user, int origin, size_t at, const void *bytes, size_t len)
{
    struct reduction *r = user;
    if (origin >= r->end || at >= r->len || len > r->len - at)
        return;
    if (at >= r->taken)
        memcpy(r->sum + at, bytes, len);
    else
        element_combine(&r->element, r->sum + at, r->sum + at, bytes, len / r->size, r->scratch);
    r->taken = at + len > r->taken ? at + len : r->taken;
}

/* NULL: nobody wants it here. */
static keel_status reduce(enum replica_call call, const void *in, void *out, size_t n, const keel_combine *how, int end)
{
    struct engine_call c = {.len = 0};
    (void)public_coll_combine(&c, how, n);
    struct reduction r = {.element = c.element, .len = c.len, .size = c.len / n, .end = end};
    r.sum = malloc(2 * c.len);
    if (!r.sum)
        replica_stop("no memory for a reduction");
    r.scratch = r.sum + c.len;
    keel_status status = replica_passes(call, in, c.len, take_term, &r);
    if (status == KEEL_OK && out && r.taken)
        memcpy(out, r.sum, c.len);
    free(r.sum);
    return status;
}

/* Elements that do not lie in two pieces; else the library's own way, of a set that is whole. */
static bool can_reduce(const keel_group *group, const void *in, const void *out, size_t n, const keel_combine *how)
{
    struct engine_call c = {.len = 0};
    return is_of_all(group) && in && out && n && public_coll_combine(&c, how, n) && 16 % (c.len / n) == 0;
}

static keel_status act_group_allreduce(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how)
{
    return can_reduce(group, in, out, n, how) ? reduce(CALL_group_allreduce, in, out, n, how, replica.size)
                                              : ELSE_BINDS(group, group_allreduce, (group, in, out, n, how));
}

static keel_status act_group_reduce(keel_group *group, int root, const void *in, void *out, size_t n,
                                    const keel_combine *how)
{
    bool mine = root == replica.rank;
    if (root < 0 || root >= replica.size || !can_reduce(group, in, mine ? out : in, n, how))
        return ELSE_BINDS(group, group_reduce, (group, root, in, out, n, how));
    return reduce(CALL_group_reduce, in, mine ? out : NULL, n, how, replica.size);
}

static keel_status act_group_exscan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how)
{
    const void *to = replica.rank ? out : in; /* rank 0 gets nothing */
    return can_reduce(group, in, to, n, how) ? reduce(CALL_group_exscan, in, out, n, how, replica.rank)
                                             : ELSE_BINDS(group, group_exscan, (group, in, out, n, how));
}

static keel_status act_group_scan(keel_group *group, const void *in, void *out, size_t n, const keel_combine *how)
{
    return can_reduce(group, in, out, n, how) ? reduce(CALL_group_scan, in, out, n, how, replica.rank + 1)
                                              : ELSE_BINDS(group, group_scan, (group, in, out, n, how));
}

/* ---- all of it ---- */

enum { /* each call has one row */
#define ACTS(name) ROW_##name,
#define BINDS(name) ROW_##name,
#define PASSED(name, why) ROW_##name,
#include "runtime/client/replica/acting.inc"
#undef ACTS
#undef BINDS
#undef PASSED
};
#define STATUS_CALL(name, parameters, arguments) _Static_assert(ROW_##name >= 0, "a row");
#define NEAR_CALL STATUS_CALL
#define VALUE_CALL(result, name, parameters, arguments) STATUS_CALL(name, parameters, arguments)
#define VOID_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL

const struct api_calls *replica_acting_calls(const struct api_calls *library)
{
    static struct api_calls calls;
    below = library;
    acting_adds_begin(library);
    acting_mail_begin(library);
    calls = *library;
#define act_get_strong act_get /* one copy is all that there is of what replicas have */
#define act_get_strong_nb act_get_nb
#define ACTS(name) calls.name = act_##name;
#define BINDS(name) calls.name = binds_##name;
#define PASSED(name, why)
#include "runtime/client/replica/acting.inc"
#undef ACTS
#undef BINDS
#undef PASSED
    return &calls;
}
