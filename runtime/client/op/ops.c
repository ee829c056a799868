#include "runtime/client/op/ops.h"

#include <stdlib.h>

#include "runtime/client/op/op.h"
#include "runtime/client/op/packed.h"

void ops_init(struct ops *o)
{
    o->waiting_tail = &o->waiting;
}

void ops_fini(struct ops *o)
{
    for (struct piece *p = o->free_pieces, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    for (struct op *op = o->free, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    packed_free_all(&o->packed);
    errors_free(&o->errors);
    o->free_pieces = NULL;
    o->free = NULL;
}
