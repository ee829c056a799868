/* Memory of transfers: it grows by blocks, and shrinks only when the transport closes. What an RDMA device reads and
 * writes is registered, block by block. */
#include "runtime/net/ofi/ofi_int.h"

#include <stdlib.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

enum { XFERS_PER_BLOCK = 64, RBUFS_PER_BLOCK = 8, ALIGNED = 16 };

/* desc NULL: memory that the provider does not touch */
static void *block_add(struct ofi_tp *tp, size_t size, void **desc)
{
    struct pool_block *block = calloc(1, sizeof(struct pool_block) + sizeof(max_align_t) + size);
    if (!block)
        return NULL;
    uint8_t *memory = (uint8_t *)(block + 1);
    memory += (ALIGNED - (uintptr_t)memory % ALIGNED) % ALIGNED;
    if (desc)
        *desc = NULL;
    if (desc && tp->rdma) {
        int rc = fi_mr_reg(tp->domain, memory, size, FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 0, 0, &block->mr, NULL);
        char why[REFUSAL_MAX];
        if (rc) {
            log_error("transport: %zu bytes cannot be registered with the RDMA device: %s", size,
                      refusal_locking(-rc, why));
            free(block);
            return NULL;
        }
        *desc = fi_mr_desc(block->mr);
    }
    block->next = tp->pools.blocks;
    tp->pools.blocks = block;
    return memory;
}

struct xfer *ofi_xfer_take(struct ofi_tp *tp)
{
    struct xfer *x = TAILQ_FIRST(&tp->pools.free_xfers);
    if (!x) {
        struct xfer *fresh = block_add(tp, XFERS_PER_BLOCK * sizeof(*fresh), NULL);
        if (!fresh)
            return NULL;
        for (int i = 0; i < XFERS_PER_BLOCK; i++)
            TAILQ_INSERT_TAIL(&tp->pools.free_xfers, &fresh[i], link);
        x = fresh;
    }
    TAILQ_REMOVE(&tp->pools.free_xfers, x, link);
    x->control = x->written = x->given_up = false;
    return x;
}

struct xfer *ofi_rbuf_take(struct ofi_tp *tp)
{
    struct xfer *x = TAILQ_FIRST(&tp->pools.free_rbufs);
    if (!x) {
        size_t each = (sizeof(struct rbuf) + tp->pools.rbuf_bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
        void *desc;
        uint8_t *fresh = block_add(tp, RBUFS_PER_BLOCK * each, &desc);
        if (!fresh)
            return NULL;
        for (int i = 0; i < RBUFS_PER_BLOCK; i++) {
            struct rbuf *buf = (struct rbuf *)(fresh + (size_t)i * each);
            buf->x.kind = XFER_RECV;
            buf->desc = desc;
            TAILQ_INSERT_TAIL(&tp->pools.free_rbufs, &buf->x, link);
        }
        x = (struct xfer *)fresh;
    }
    TAILQ_REMOVE(&tp->pools.free_rbufs, x, link);
    ((struct rbuf *)x)->counts = false;
    return x;
}

static struct copybuf **copies_of(struct ofi_tp *tp, uint32_t size)
{
    return size == OFI_SMALL_COPY   ? &tp->pools.free_small
           : size == OFI_LARGE_COPY ? &tp->pools.free_large
                                    : &tp->pools.free_bulk;
}

struct copybuf *ofi_copy_take(struct ofi_tp *tp, size_t len)
{
    uint32_t size = len <= OFI_SMALL_COPY ? OFI_SMALL_COPY : len <= OFI_LARGE_COPY ? OFI_LARGE_COPY : TP_BULK_MAX;
    struct copybuf **list = copies_of(tp, size), *copy = *list;
    if (copy) {
        *list = copy->next;
        return copy;
    }
    /* a registration is dear, whatever its size */
    size_t each = (sizeof(*copy) + size + ALIGNED - 1) / ALIGNED * ALIGNED;
    int count = !tp->rdma ? 1 : size == OFI_SMALL_COPY ? 64 : size == OFI_LARGE_COPY ? 8 : 1;
    void *desc;
    uint8_t *fresh = block_add(tp, (size_t)count * each, &desc);
    for (int i = 0; fresh && i < count; i++) {
        copy = (struct copybuf *)(fresh + (size_t)i * each);
        copy->size = size;
        copy->desc = desc;
        if (i + 1 < count)
            ofi_copy_free(tp, copy);
    }
    return copy;
}

void ofi_copy_free(struct ofi_tp *tp, struct copybuf *copy)
{
    struct copybuf **list = copies_of(tp, copy->size);
    copy->next = *list;
    *list = copy;
}

void ofi_pools_free(struct ofi_tp *tp)
{
    while (tp->pools.blocks) {
        struct pool_block *next = tp->pools.blocks->next;
        if (tp->pools.blocks->mr)
            fi_close(&tp->pools.blocks->mr->fid);
        free(tp->pools.blocks);
        tp->pools.blocks = next;
    }
}

void ofi_xfer_free(struct ofi_tp *tp, struct xfer *x)
{
    x->ep = NULL;
    x->op = NULL;
    if (x->kind == XFER_RECV) {
        TAILQ_INSERT_HEAD(&tp->pools.free_rbufs, x, link);
        return;
    }
    if (x->copy) {
        ofi_copy_free(tp, x->copy);
        x->copy = NULL;
    }
    TAILQ_INSERT_HEAD(&tp->pools.free_xfers, x, link);
}
