/* Messages where partners do the part of the dead. Each has a number among those of its rank to its receiver, which its
 * replicas count alike, as they send the same. Who acts for a set brings it there, and keeps it until the next meeting
 * is left; who acts for one more set brings it once more. The receiver's process takes each number once, whichever
 * replica has brought it (stream/mail.h), so that it need not be known how far a dead one came.
 *
 * The next meeting is left when all is complete, so it is complete when the receiver's process has it: what only its
 * sender has still to pass on is lost with that. A message tells of deaths as a signal does (acting.c). */
#include <stdlib.h>

#include <keel/message.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/acting_int.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/stream/mail.h"

static struct {
    const struct api_calls *below;
    uint64_t *numbers; /* [ranks] of the last message to each */
} us;

void acting_mail_begin(const struct api_calls *library)
{
    us.below = library;
}

/* ---- to one set ---- */

static bool has_left(int native)
{
    return atomic_load_explicit(&page_rank(replica.client->page, native)->done, memory_order_acquire);
}

keel_status acting_mail_in(int set, const struct kept_write *w)
{
    const struct mail_mark mark = {w->letter, acting_deaths()};
    int native = replica_native(&replica.client->replicas, w->rank, set);
    void *wrong = set == replica.set ? flying_copy(&replica.client->flying, w->bytes, w->len) : NULL;
    struct wait wait = {.whom = NULL};
    keel_status met;
    do
        met = mail_bring(replica.client, native, (uint32_t)w->place, &mark, wrong ? wrong : w->bytes, w->len);
    while (nap_for_memory(met, &wait));
    free(wrong);
    FAULT_POINT("replica.brought");
    if (met != KEEL_ERR_RANK_DEAD)
        return met;
    while (replica_lives(w->rank, set) && !has_left(native))
        acting_await_view(&wait); /* the one that says what has become of it */
    waits_over(replica.client, &wait);
    return KEEL_OK; /* nobody wants it there */
}

/* ---- what the rank does ---- */

keel_status act_message_send(int native, uint32_t tag, const void *data, size_t len)
{
    int rank = acting_rank_of(native);
    if (rank < 0 || len > KEEL_MESSAGE_MAX || (len && !data))
        return us.below->message_send(native, tag, data, len); /* which refuses it */
    if (!us.numbers && !(us.numbers = calloc((size_t)replica.size, sizeof *us.numbers)))
        return KEEL_ERR_NOMEM;
    const struct kept_write w = {.pass = KEPT_NAMED,
                                 .rank = rank,
                                 .place = tag,
                                 .letter = us.numbers[rank] + 1,
                                 .once = {.unordered = true},
                                 .len = len,
                                 .bytes = data};
    keel_status status = acting_writes(&w, NULL);
    us.numbers[rank] += status == KEEL_OK;
    return status;
}

/* Of a rank, or of any; -2: it is none. */
static int sender_of(int native)
{
    int rank = native == KEEL_ANY_RANK ? KEEL_ANY_RANK : acting_rank_of(native);
    return native != KEEL_ANY_RANK && rank < 0 ? -2 : rank;
}

/* Who is told of something knows of all deaths that its sender knew of. */
static keel_status told(keel_status status)
{
    if (status == KEEL_OK)
        acting_learn(mail_deaths(replica.client));
    return status;
}

keel_status act_message_receive(int native, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    return told(mail_receive_brought(replica.client, sender_of(native), tag, data, max, len, from));
}

keel_status act_message_test(int native, uint32_t tag, size_t *len, int *from)
{
    return told(mail_test_brought(replica.client, sender_of(native), tag, len, from));
}
