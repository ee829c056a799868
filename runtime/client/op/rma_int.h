/* Between rma.c, rma_wait.c, rma_update.c, shaped.c and shaped_ops.c. */
#ifndef KEEL_CLIENT_OP_RMA_INT_H
#define KEEL_CLIENT_OP_RMA_INT_H

#include "runtime/client/client.h"
#include "runtime/client/op/rma.h"

static inline keel_status rma_bad_call(const struct client *c)
{
    return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
}

/* An operation of its own, for the handle or implicit. Lock held. */
keel_status rma_op_for(struct client *c, keel_handle *handle, struct op **op);
#endif
