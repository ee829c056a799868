/* Atomic operations and signals. */
#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/digest.h"

#define BELOW replica.below

/* What an atomic found is the same in all sets, and replicas compare it like anything else that they did. Where it
 * differs nothing can be mended. */
static keel_status found(enum replica_call call, int rank, keel_segment *segment, size_t offset, const void *old,
                         size_t len, keel_status status)
{
    if (status == KEEL_OK)
        replica_did_bytes(call, rank, segment, offset, old, len);
    return replica_after(status);
}

/* By an atomic a program may let another rank go on (a lock of its own), which then writes over what was put: that is
 * looked at before. Three compare in any case. */
static keel_status may_go(enum replica_call call, int rank, keel_segment *segment, size_t offset, const void **bytes,
                          size_t len)
{
    keel_status status = replica_meet_before(call, rank, segment, offset, bytes, len);
    if (status == KEEL_OK && replica.sets < REPLICAS_MAX && replica_inspects() && replica_has_put())
        status = replica_meet(call);
    return status;
}

/* Numbers that come as values, so that what is sent is the majority's. */
static keel_status values_may_go(enum replica_call call, int rank, keel_segment *segment, size_t offset, int64_t *v,
                                 size_t n)
{
    const void *bytes = v;
    keel_status met = replica_before_once(call, PARTNER_EXCHANGE, rank, sizeof *v);
    keel_status status = may_go(call, rank, segment, offset, &bytes, n * sizeof *v);
    replica_used(PARTNER_EXCHANGE, rank, sizeof *v);
    if (bytes != v)
        memcpy(v, bytes, n * sizeof *v);
    replica_changes(rank, segment, offset, sizeof *v);
    return met == KEEL_OK ? status : met;
}

/* Agents execute them in the same order in each set (agent/ordering.h). */
keel_status replica_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old)
{
    replica_used(PARTNER_EXCHANGE, rank, sizeof add);
    return replica_after(BELOW->fetch_add(segment, replica_native_of(rank), offset, add, old));
}

keel_status replica_fetch_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old)
{
    int64_t before = 0;
    keel_status status = values_may_go(CALL_fetch_add, rank, segment, offset, &add, 1);
    if (status != KEEL_OK)
        return status;
    status = BELOW->fetch_add(segment, replica_native_of(rank), offset, add, &before);
    if (old)
        *old = before;
    return found(CALL_fetch_add, rank, segment, offset, &before, sizeof before, status);
}

keel_status replica_compare_swap(keel_segment *segment, int rank, size_t offset, int64_t expected, int64_t desired,
                                 int64_t *old)
{
    int64_t v[] = {expected, desired}, before = 0;
    keel_status status = values_may_go(CALL_compare_swap, rank, segment, offset, v, 2);
    if (status != KEEL_OK)
        return status;
    status = BELOW->compare_swap(segment, replica_native_of(rank), offset, v[0], v[1], &before);
    if (old)
        *old = before;
    return found(CALL_compare_swap, rank, segment, offset, &before, sizeof before, status);
}

keel_status replica_rmw(keel_segment *segment, int rank, size_t offset, keel_type type, keel_rmw_op op,
                        const void *operand, const void *expected, void *old)
{
    int64_t before = 0;
    size_t size = arith_size(type) <= sizeof before ? arith_size(type) : 0;
    uint64_t how = digest(&op, sizeof op, (uint64_t)type);
    if (replica.check != CHECK_NONE && size && op == KEEL_RMW_COMPARE_SWAP && expected)
        how = digest(expected, size, how);
    keel_status met = replica_before_once(CALL_rmw, PARTNER_EXCHANGE, rank, size);
    replica_did(CALL_rmw, rank, segment, offset, 0, how);
    keel_status status = may_go(CALL_rmw, rank, segment, offset, &operand, size);
    replica_used(PARTNER_EXCHANGE, rank, size);
    if (met != KEEL_OK || status != KEEL_OK)
        return met != KEEL_OK ? met : status;
    replica_changes(rank, segment, offset, size);
    status = BELOW->rmw(segment, replica_native_of(rank), offset, type, op, operand, expected, &before);
    if (old && status == KEEL_OK)
        memcpy(old, &before, size);
    return found(CALL_rmw, rank, segment, offset, &before, old ? size : 0, status);
}

keel_status replica_signal(keel_segment *segment, int rank, size_t word, int64_t add)
{
    const void *bytes = &add;
    replica_did_bytes(CALL_signal, rank, segment, word, bytes, sizeof add);
    keel_status status = replica_meet(CALL_signal);
    replica_used(PARTNER_SIGNAL, rank, sizeof add);
    replica_changes(rank, segment, word, sizeof add);
    return status != KEEL_OK ? status : replica_after(BELOW->signal(segment, replica_native_of(rank), word, add));
}

/* The data go first, so that they can be written over; the signal tells of them when they are right. */
keel_status replica_put_signal(keel_segment *segment, int rank, size_t offset, const void *src, size_t len, size_t word,
                               int64_t add)
{
    int to = replica_native_of(rank);
    size_t room = BELOW->segment_bytes(segment, to);
    if (replica.check == CHECK_NONE || word % sizeof add || word > room || room - word < sizeof add)
        return replica_after(BELOW->put_signal(segment, to, offset, src, len, word, add)); /* or it is refused */
    keel_status status = replica_room(CALL_put_signal);
    if (status == KEEL_OK)
        status = replica_before(CALL_put_signal, PARTNER_PUT, rank, len);
    replica_used(PARTNER_PUT, rank, len);
    if (status == KEEL_OK)
        status = replica_did_put(CALL_put_signal, rank, segment, offset, src, len);
    status = replica_went(status == KEEL_OK ? BELOW->put(segment, to, offset, src, len) : status);
    return status != KEEL_OK ? status : replica_signal(segment, rank, word, add);
}

/* The leading replica says what it found; the others wait until theirs has come as far. Who does not ask what it was
 * hears the same in each set: the word is so, or its set has lost who would have made it so. */
keel_status replica_wait_until(keel_segment *segment, size_t word, keel_compare how, int64_t value, int from,
                               int64_t *got)
{
    struct replica_answer a;
    int64_t v = 0;
    int native = from < 0 ? from : replica_native_of(from);
    if (!got)
        return replica_after(BELOW->wait_until(segment, word, how, value, native, NULL));
    if (replica_decides(&a)) {
        keel_status status = replica_after(BELOW->wait_until(segment, word, how, value, native, &v));
        a = replica_tell((struct replica_answer){{status, v}});
    } else if (a.value[0] == KEEL_OK) {
        int64_t until = how == KEEL_GE || how == KEEL_GT ? a.value[1] : value;
        keel_status status =
            replica_after(BELOW->wait_until(segment, word, how == KEEL_GT ? KEEL_GE : how, until, native, &v));
        if (status != KEEL_OK)
            return status;
    }
    *got = a.value[1];
    return (keel_status)a.value[0];
}
