/* What counts once, in each set for which a replica acts: signals, accumulates and atomics, under a name that all
 * replicas of the rank give it. Agents remember names, so who does something again need not know how far it came.
 *
 * Signals go to those ranks that live in the set. Accumulates and atomics have one order in all sets
 * (agent/ordering.h), by the nodes that hold the part, and so they go wherever such a node may be, also to the parts of
 * the dead. What an atomic finds there is nobody's answer: it is asked for in a set in which its target lives. */
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/replica/acting_int.h"
#include "runtime/wire/arith.h"

static keel_status signal_in(int set, const struct kept_write *w)
{
    keel_segment *s = acting_segment(w, set);
    int native = replica_native(&replica.client->replicas, w->rank, set);
    keel_status status = s ? acting_tell_deaths(set, w->rank) : KEEL_OK;
    if (status != KEEL_OK || !replica_lives(w->rank, set))
        return status;
    status = rma_run_named(replica.client, s, native, w->place, &w->once, NULL);
    if (status == KEEL_OK)
        signal_tell(replica.client, native);
    return replica_settled(status, w->rank, set);
}

static bool is_frozen(void)
{
    return atomic_load_explicit(&replica.client->page->frozen, memory_order_acquire);
}

void replica_learn_what_is_known(void)
{
    struct wait wait = {0};
    if (!replica.partners)
        return;
    while (is_frozen())
        acting_await_view(&wait);
    waits_over(replica.client, &wait);
    replica_look_for_deaths();
}

keel_status acting_once_in(int set, const struct kept_write *w, struct acting_found *found)
{
    int64_t value = 0;
    if (w->letter)
        return acting_mail_in(set, w);
    if (w->once.unordered)
        return signal_in(set, w);
    keel_segment *s = acting_segment(w, set);
    int native = replica_native(&replica.client->replicas, w->rank, set);
    if (!s)
        return KEEL_OK;
    keel_status status = rma_run_named(replica.client, s, native, w->place, &w->once, &value);
    FAULT_POINT("replica.counted");
    if (found)
        replica_learn_what_is_known();
    if (found && status == KEEL_OK && replica_lives(w->rank, set))
        *found = (struct acting_found){true, value};
    return replica_settled(status, w->rank, set);
}

/* ---- what the rank does ---- */

keel_status replica_signals(uint64_t segment, int rank, size_t word, int64_t add)
{
    const struct rma_named once = {.name = rma_draw_name(replica.client),
                                   .kind = OP_RMW,
                                   .unordered = true,
                                   .what = KEEL_RMW_ADD,
                                   .word = sizeof add,
                                   .a = add};
    const struct kept_write w = {.pass = KEPT_NAMED, .rank = rank, .segment = segment, .place = word, .once = once};
    return acting_writes(&w, NULL);
}

/* Each piece is one message, and has a name: replicas cut it alike, however far they are. What is packed is one. */
keel_status replica_accumulates(uint64_t segment, int rank, size_t offset, const struct rma_named *how, const void *src,
                                size_t len)
{
    keel_status status = KEEL_OK;
    size_t most = how->packed ? len : RMA_NAMED_MAX;
    for (size_t at = 0; at < len && status == KEEL_OK; at += most) {
        struct kept_write w = {
            .pass = KEPT_NAMED, .rank = rank, .segment = segment, .place = offset + at, .once = *how};
        w.bytes = w.once.src = (const uint8_t *)src + at;
        w.len = w.once.len = len - at < most ? len - at : most;
        w.once.name = rma_draw_name(replica.client);
        status = acting_writes(&w, NULL);
    }
    return status;
}

/* Where the target is dead in each set for which this replica acts, it asks as it reads: in the lowest in which that
 * lives. Who acts there brings the same name. */
keel_status replica_exchanges(uint64_t segment, int rank, size_t offset, const struct rma_named *how, int64_t *old)
{
    struct acting_found found = {.is = false};
    struct kept_write w = {.pass = KEPT_NAMED, .rank = rank, .segment = segment, .place = offset, .once = *how};
    w.once.name = rma_draw_name(replica.client);
    keel_status status = acting_writes(&w, &found);
    while (status == KEEL_OK && !found.is) {
        int set = acting_reads(rank);
        if (set < 0)
            return replica_after(KEEL_ERR_RANK_DEAD); /* the job ends with its last one */
        status = acting_once_in(set, &w, &found);
    }
    *old = found.value;
    return status;
}
