/* Collectives: a contribution into replicated memory, the barrier, and reading everybody's. What a rank contributed before
 * it died is in memory or it is not, the same for all readers after the barrier; so all live ranks get the same result. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/protocol/collective_slot.h"

enum { KIND_BCAST = 2, KIND_SUM = 3 };

static size_t slot_offset(uint64_t instance)
{
    return (instance & 1) * sizeof(struct collective_slot);
}

/* Through the primary, so that one copy decides whether it has taken effect. */
static keel_status put_through(struct client *c, size_t offset, const void *src, size_t len)
{
    struct op op;
    op_init(c, &op, OP_PUT, c->system, c->rank, offset, len);
    op.src = src;
    op.always_through = true;
    return op_run(&op);
}

keel_status collective_contribute(struct client *c, uint32_t kind, const void *data, size_t len)
{
    uint64_t instance = c->instance + 1;
    size_t at = slot_offset(instance);
    keel_status status = KEEL_OK;
    if (len)
        status = put_through(c, at + offsetof(struct collective_slot, data), data, len);
    struct collective_head head = {.tag = instance, .kind = kind, .len = (uint32_t)len};
    if (status == KEEL_OK)
        status = put_through(c, at, &head, sizeof head);
    return status;
}

/* What rank contributed to the last instance; *present is false if it did not. */
keel_status collective_read(struct client *c, int rank, uint32_t kind, void *data, size_t len, bool *present)
{
    size_t at = slot_offset(c->instance);
    keel_segment *s = c->system;
    struct collective_head head;
    keel_status status = rma_get(c, s, rank, at, &head, sizeof head);
    *present = status == KEEL_OK && head.tag == c->instance;
    if (status == KEEL_ERR_DATA_LOST) { /* so is it for everybody */
        *present = false;
        return KEEL_OK;
    }
    if (status != KEEL_OK || !*present)
        return status;
    if (head.kind != kind || head.len != len)
        return KEEL_ERR_MISMATCH;
    return len ? rma_get(c, s, rank, at + offsetof(struct collective_slot, data), data, len) : KEEL_OK;
}

keel_status collective_enter(struct client *c, bool internal)
{
    keel_status status = rma_fence(c, -1);
    if (status != KEEL_OK)
        return status;
    struct op op;
    op_init(c, &op, OP_ENTER, NULL, 0, 0, 0);
    op.flags = internal ? WIRE_F_INTERNAL : 0;
    op.a = (int64_t)c->instance + 1;
    FAULT_POINT("rank.barrier_entering");
    status = op_run(&op);
    FAULT_POINT("rank.barrier_left");
    if (status != KEEL_OK)
        return status;
    c->instance++;
    c->collectives += !internal;
    return KEEL_OK;
}

keel_status collective_barrier(struct client *c)
{
    if (!c->ready || !c->resumed)
        return KEEL_ERR_STATE;
    return collective_enter(c, false);
}

keel_status collective_bcast(struct client *c, int root, void *buffer, size_t len)
{
    if (!c->ready || !c->resumed)
        return KEEL_ERR_STATE;
    if (root < 0 || root >= c->size || len > COLLECTIVE_BYTES_MAX || (!buffer && len))
        return KEEL_ERR_ARG;
    keel_status status = c->rank == root ? collective_contribute(c, KIND_BCAST, buffer, len) : KEEL_OK;
    if (status == KEEL_OK)
        status = collective_enter(c, false);
    if (status != KEEL_OK || c->rank == root)
        return status;
    bool present;
    status = collective_read(c, root, KIND_BCAST, buffer, len, &present);
    return status == KEEL_OK && !present ? KEEL_ERR_RANK_DEAD : status;
}

keel_status collective_allreduce_sum(struct client *c, const double *in, double *out, size_t n)
{
    if (!c->ready || !c->resumed)
        return KEEL_ERR_STATE;
    if (n > COLLECTIVE_BYTES_MAX / sizeof *in || (n && (!in || !out)))
        return KEEL_ERR_ARG;
    keel_status status = collective_contribute(c, KIND_SUM, in, n * sizeof *in);
    if (status == KEEL_OK)
        status = collective_enter(c, false);
    double *theirs = status == KEEL_OK ? calloc(2 * n + 1, sizeof *theirs) : NULL;
    if (status == KEEL_OK && !theirs)
        status = KEEL_ERR_NOMEM;
    double *sum = theirs + n;
    for (int r = 0; r < c->size && status == KEEL_OK; r++) {
        bool present;
        status = collective_read(c, r, KIND_SUM, theirs, n * sizeof *theirs, &present);
        for (size_t i = 0; status == KEEL_OK && present && i < n; i++)
            sum[i] += theirs[i];
    }
    if (status == KEEL_OK && n)
        memcpy(out, sum, n * sizeof *out);
    free(theirs);
    return status;
}
