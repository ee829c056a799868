#include "runtime/agent/receive.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/parcels.h"
#include "runtime/base/log.h"
#include "runtime/wire/digested.h"
#include "runtime/wire/kinds.h"

enum { TOLD_EACH = 16 }; /* of those that came wrong; then the 32nd, the 64th, ... */

static bool is_told(uint64_t n)
{
    return n <= TOLD_EACH || (n & (n - 1)) == 0;
}

static void tell(struct agent *a, const struct conn *c, const char *what, const char *then)
{
    char who[REPLICA_NAME], nth[32] = "";
    counter_add(&a->counts, COUNTER_damaged, 1);
    uint64_t n = atomic_load_explicit(&a->counts.count[COUNTER_damaged], memory_order_relaxed);
    if (n > TOLD_EACH)
        snprintf(nth, sizeof nth, " (number %" PRIu64 ")", n);
    if (is_told(n))
        log_warn("%s: %s came otherwise than it was sent%s, and %s",
                 a->view.replicas ? replica_name(a->view.replicas, c->life.rank, who) : "a rank", what, nth, then);
}

/* The rank sends it again: by its answer, or, where nobody knows what it was, as its connection breaks. */
static void digested(struct agent *a, struct conn *c, const struct wire *w)
{
    struct wire plain;
    const void *body;
    switch (w->extension ? digested_open(w, &plain, &body) : DIGESTED_WRONG) {
    case DIGESTED_RIGHT:
        execute_request(a, c, &plain, body);
        break;
    case DIGESTED_BODY_WRONG:
        tell(a, c, w->type == WIRE_ACC ? "an accumulate" : "an atomic", "is sent again");
        execute_reply(c, w->seq, WIRE_RETRY, 0, NULL, 0);
        break;
    default:
        tell(a, c, "a message", "its connection is made anew");
        tp_disconnect(c->ep);
    }
}

/* Where the program has replicas all messages of such a type have digests. */
static bool is_digested(const struct agent *a, const struct wire *w)
{
    return w->extension || (a->view.replicas && wire_kinds[w->type].digested);
}

void receive_from_rank(struct agent *a, struct conn *c, const struct tp_event *e)
{
    const struct wire *w = e->data;
    if (!e->len || wire_bytes(w, e->len) != e->len || !wire_is_known(w, WIRE_FROM_RANK)) {
        log_error("malformed message from rank %d", c->life.rank);
        if (a->view.replicas) /* bits may have been flipped: whatever it was, it comes again */
            tp_disconnect(c->ep);
        return;
    }
    if (w->type == WIRE_PARCEL || w->type == WIRE_PARCEL_BACK)
        parcels_take(a, c, w);
    else if (is_digested(a, w))
        digested(a, c, w);
    else
        execute_request(a, c, w, w + 1);
}
