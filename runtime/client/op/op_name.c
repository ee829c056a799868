/* The names of operations that count once (lane.h). */
#include <stddef.h>

#include "runtime/client/client.h"
#include "runtime/client/op/handle.h"
#include "runtime/client/op/op_int.h"

static struct op *op_of(struct lane_op *name)
{
    return (struct op *)((char *)name - offsetof(struct op, name));
}

const struct op *op_with_turn(const struct op *op)
{
    return op->name.waits ? op_of(op->client->ops.lanes.lane[op->name.lane].first) : op;
}

void name_take(struct op *op)
{
    struct lanes *l = &op->client->ops.lanes;
    if (!op_is_once(op) || op->of_task.is || op->named)
        return;
    if (op->unordered && l->apart) {
        lanes_take_apart(l, &op->name);
        return;
    }
    uint64_t held = op->handle ? handle_lanes(op->handle) : 0;
    lanes_take(l, &op->name, op->implicit ? op->rank : -1, op->handle ? &held : NULL);
    if (op->handle) {
        handle_keep_lanes(op->handle, held);
        handle_seal(op->handle);
    }
}

void name_end(struct op *op)
{
    struct client *c = op->client;
    if (!op->name.number || op->named)
        return;
    struct lane_op *next = lanes_end(&c->ops.lanes, &op->name);
    if (!op->handle && !op->implicit) /* its call returns */
        lanes_told_by_call(&c->ops.lanes, &op->name);
    if (next) {
        hold_wait(op_of(next));
        c->ops.serve = true;
    }
}
