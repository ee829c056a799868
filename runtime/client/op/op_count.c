/* What is counted of operations that have ended well. */
#include "runtime/client/client.h"
#include "runtime/client/op/direction.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/op/packed.h"

static void count_direction(const struct op *op, struct counter_block *b)
{
    const struct page *page = op->client->page;
    int here = (int)page_rank(page, op->client->rank)->slot;
    if (page->grid.dims && op->plan.way != PLAN_PLAIN && op->kind != OP_RMW && here != op->slot)
        counter_add(b, direction_of(&page->grid, here, op->slot), op->packed ? op->packed->bytes : op->len);
}

void op_count(const struct op *op)
{
    static const enum counter of[][2] = {[OP_PUT] = {COUNTER_puts_away, COUNTER_puts_here},
                                         [OP_GET] = {COUNTER_gets_away, COUNTER_gets_here},
                                         [OP_ACC] = {COUNTER_accumulates_away, COUNTER_accumulates_here},
                                         [OP_RMW] = {COUNTER_atomics_away, COUNTER_atomics_here}};
    struct counter_block *b = client_counts(op->client);
    enum counter c = of[op->kind][op->plan.way == PLAN_PLAIN];
    if (!op->inspects)
        count_direction(op, b);
    if (op->inspects)
        counter_add(b, COUNTER_inspected, op->packed->runs);
    else if (op->kind == OP_RMW)
        counter_add(b, c, 1);
    else if (op->packed)
        counters_own(b, c, op->packed->runs, op->packed->bytes);
    else
        counters_own(b, c, 1, op->len);
}
