#include "runtime/client/op/packed.h"

#include <stdlib.h>
#include <string.h>

bool packing_add(struct packing *p, const keel_piece *run)
{
    uint64_t first = p->runs && p->first < run->offset ? p->first : run->offset;
    uint64_t end = p->runs && p->end > run->offset + run->len ? p->end : run->offset + run->len;
    if (run->len > p->run_max || end - first > p->reach_max || !pack_has_room(p->runs, p->bytes, run->len))
        return false;
    p->runs++;
    p->bytes += run->len;
    p->first = first;
    p->end = end;
    return true;
}

struct packed *packed_take(struct packed_pool *pool)
{
    struct packed *p = pool->free;
    if (p)
        pool->free = p->next;
    else
        p = malloc(sizeof *p);
    if (p) {
        p->bytes = 0;
        pool->living++;
    }
    return p;
}

void packed_give(struct packed_pool *pool, struct packed *p)
{
    if (!p)
        return;
    p->next = pool->free;
    pool->free = p;
    pool->living--;
    pool->bytes -= p->bytes;
}

void packed_free_all(struct packed_pool *pool)
{
    for (struct packed *p = pool->free, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    pool->free = NULL;
}

bool packed_has_room(void *pool)
{
    const struct packed_pool *p = pool;
    return p->living < PACKED_MAX && p->bytes < PACKED_BYTES_MAX;
}

void packed_init(struct client *c, struct op *op, struct packed *packed, const struct packing *p, enum op_kind kind,
                 keel_segment *s, int rank)
{
    packed->runs = 0;
    packed->bytes = p->bytes;
    c->ops.packed.bytes += p->bytes;
    packed->base = p->first;
    op_init(c, op, kind, s, rank, (size_t)p->first, pack_head(p->runs) + (kind == OP_GET ? 0 : p->bytes));
    op->packed = packed;
    op->src = packed->body;
}

void packed_add(struct packed *packed, struct pack_writer *w, enum op_kind kind, const keel_piece *run)
{
    packed->local[packed->runs] = run->local;
    packed->len[packed->runs++] = run->len;
    pack_add(w, run->offset - packed->base, kind == OP_GET ? NULL : run->local, run->len);
}

void packed_answered(const struct packed *p, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < p->runs && p->len[i] <= len; i++) {
        if (p->len[i] == 8)
            memcpy(p->local[i], data, 8); /* one store: 8-byte elements are never torn */
        else
            memcpy(p->local[i], data, p->len[i]);
        data += p->len[i];
        len -= p->len[i];
    }
}
