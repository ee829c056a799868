/* Messages: whose comes first, where any will do, is the moment's. The leading replica takes it, the others hear which
 * it was. */
#include "runtime/client/client.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/replica/replica.h"

#define BELOW replica.below

keel_status replica_message_send(int rank, uint32_t tag, const void *data, size_t len)
{
    keel_status status;
    bool reads = data && len && len <= KEEL_MESSAGE_MAX; /* else it is refused, or nothing is to be read */
    replica_bound_by(BOUND_MESSAGES);
    if (replica.sets == REPLICAS_MAX && reads) {
        status = replica_meet_before(CALL_message_send, rank, NULL, tag, &data, len);
    } else {
        replica_did_bytes(CALL_message_send, rank, NULL, tag, reads ? data : NULL, len);
        status = replica_meet(CALL_message_send);
    }
    replica_used(PARTNER_SIGNAL, rank, len);
    return status != KEEL_OK ? status : replica_after(BELOW->message_send(replica_native_of(rank), tag, data, len));
}

static int rank_of(int native)
{
    return native < 0 ? native : replica_of(&replica.client->replicas, native).rank;
}

keel_status replica_message_receive(int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    struct replica_answer a;
    int who = -1;
    size_t bytes = 0;
    keel_status status;
    if (rank != KEEL_ANY_RANK) {
        status = replica_after(BELOW->message_receive(replica_native_of(rank), tag, data, max, &bytes, &who));
    } else if (replica_decides(&a)) {
        status = replica_after(BELOW->message_receive(KEEL_ANY_RANK, tag, data, max, &bytes, &who));
        (void)replica_tell((struct replica_answer){{status, rank_of(who)}});
    } else if (a.value[1] < 0) {
        return (keel_status)a.value[0];
    } else {
        status =
            replica_after(BELOW->message_receive(replica_native_of((int)a.value[1]), tag, data, max, &bytes, &who));
    }
    if (from && who >= 0)
        *from = rank_of(who);
    if (len && who >= 0)
        *len = bytes;
    return replica_came(status, CALL_message_receive, rank_of(who), tag, data, bytes < max ? bytes : max);
}

static void sender(const struct client *c, const void *native, struct wait_said *out)
{
    (void)c;
    out->whom = WAIT_FOR_WORD;
    out->rank = *(const int *)native;
}

/* The message that the leading one has seen comes here, too. */
static keel_status await(int rank, uint32_t tag, size_t *len)
{
    int native = replica_native_of(rank);
    struct wait wait = {.call = WAIT_RECEIVE, .whom = sender, .arg = &native};
    keel_status status;
    while ((status = BELOW->message_test(native, tag, len, NULL)) == KEEL_IN_PROGRESS)
        nap(&wait);
    waits_over(replica.client, &wait);
    return replica_after(status);
}

keel_status replica_message_test(int rank, uint32_t tag, size_t *len, int *from)
{
    struct replica_answer a;
    size_t bytes = 0;
    int who = -1;
    keel_status status;
    if (replica_decides(&a)) {
        int native = rank == KEEL_ANY_RANK ? rank : replica_native_of(rank);
        status = replica_after(BELOW->message_test(native, tag, &bytes, &who));
        who = rank_of(who);
        (void)replica_tell((struct replica_answer){{status, who}});
    } else {
        status = (keel_status)a.value[0];
        who = (int)a.value[1];
        if (status == KEEL_OK)
            status = await(who, tag, &bytes);
    }
    if (len && status == KEEL_OK)
        *len = bytes;
    if (from && status == KEEL_OK)
        *from = who;
    return status;
}
