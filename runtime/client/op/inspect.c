#include "runtime/client/op/inspect.h"

#include "runtime/client/op/handle.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/packed.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/threads.h"
#include "runtime/wire/digest.h"

enum { TOGETHER_MAX = 1024 }; /* ranges of a message: the answer fits what a rank gets from the agent of its node */

static bool inspect_near(const keel_segment *s, int rank, struct inspected *part, size_t n)
{
    const struct near *near = &s->near[rank];
    if (!near_valid(near, &near->get_tag))
        return false;
    const uint8_t *base = near_base(near);
    for (size_t i = 0; i < n; i++) {
        struct inspected *l = &part[i];
        l->found =
            l->bytes ? digest_difference(base + l->offset, l->bytes, l->len) : digest(base + l->offset, l->len, 0);
    }
    return near_valid(near, &near->get_tag);
}

/* How many of them go together; they are sorted by their places. */
static size_t together(const struct inspected *part, size_t n)
{
    size_t k = 0, bytes = 0;
    while (k < n && k < TOGETHER_MAX && part[k].offset + part[k].len - part[0].offset <= UINT32_MAX &&
           pack_has_room(k, bytes, part[k].len))
        bytes += part[k++].len;
    return k;
}

/* NULL: out of memory. */
static struct op *inspect_op(struct client *c, keel_segment *s, int rank, struct inspected *part, size_t n)
{
    struct op *op = op_alloc(c);
    struct packed *packed = op ? packed_take(&c->ops.packed) : NULL;
    bool compares = part[0].bytes;
    if (!packed) {
        if (op) {
            op_init(c, op, OP_GET, NULL, rank, 0, 0);
            op_free(op);
        }
        return NULL;
    }
    struct pack_writer w;
    packed->runs = 0;
    packed->bytes = n * DIGEST_BYTES;
    packed->base = part[0].offset;
    pack_begin(&w, packed->body, n);
    for (size_t i = 0; i < n; i++) {
        packed->local[packed->runs] = (char *)&part[i].found;
        packed->len[packed->runs++] = DIGEST_BYTES;
        pack_add(&w, part[i].offset - packed->base, part[i].bytes, part[i].len);
    }
    c->ops.packed.bytes += packed->bytes;
    op_init(c, op, OP_GET, s, rank, (size_t)packed->base, pack_end(&w, compares));
    op->packed = packed;
    op->src = packed->body;
    op->inspects = true;
    op->compares = compares;
    return op;
}

keel_status inspect_parts(struct client *c, keel_segment *s, int rank, struct inspected *part, size_t n)
{
    keel_handle handle = {{0}};
    if (n == 0 || inspect_near(s, rank, part, n))
        return KEEL_OK;
    client_lock(c);
    keel_status status = c->leaving ? KEEL_ERR_STATE : handle_use(c, &handle);
    for (size_t at = 0; at < n && status == KEEL_OK;) {
        struct wait wait = {.call = WAIT_GET, .whom = waits_for_any_op};
        client_wait(c, packed_has_room, &c->ops.packed, &wait);
        size_t k = together(part + at, n - at);
        struct op *op = inspect_op(c, s, rank, part + at, k);
        if (op)
            rma_op_start(op, &handle);
        else
            handle_note(&handle, KEEL_ERR_NOMEM);
        at += op ? k : n;
    }
    pthread_mutex_unlock(&c->lock);
    return status == KEEL_OK ? rma_wait(c, &handle) : status;
}
