#include "runtime/redundancy/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/core/wire.h"

keel_status store_init(struct store *s, struct tp *net, int slots, const int *slot_ranks)
{
    *s = (struct store){.net = net, .slots = slots, .slot_ranks = slot_ranks};
    s->segment = calloc(STORE_SEGMENTS_MAX, sizeof *s->segment);
    return s->segment ? KEEL_OK : KEEL_ERR_NOMEM;
}

void store_fini(struct store *s)
{
    for (uint32_t seg = 0; s->segment && seg < s->count; seg++) {
        for (int slot = 0; s->segment[seg].known && slot < s->slots; slot++)
            store_drop(s, seg, slot);
        free(s->segment[seg].copy);
    }
    free(s->segment);
    s->segment = NULL;
}

size_t store_stride(uint64_t bytes_per_rank)
{
    return (size_t)(bytes_per_rank + 63) & ~(size_t)63;
}

keel_status store_define(struct store *s, uint32_t seg, uint64_t bytes_per_rank, uint32_t redundancy, uint64_t instance)
{
    if (seg >= STORE_SEGMENTS_MAX || bytes_per_rank > (uint64_t)1 << 46)
        return KEEL_ERR_LIMIT;
    struct store_segment *g = &s->segment[seg];
    if (g->known)
        return g->bytes_per_rank == bytes_per_rank && g->redundancy == redundancy ? KEEL_OK : KEEL_ERR_MISMATCH;
    g->copy = calloc((size_t)s->slots, sizeof *g->copy);
    if (!g->copy)
        return KEEL_ERR_NOMEM;
    g->known = true;
    g->bytes_per_rank = bytes_per_rank;
    g->redundancy = redundancy;
    g->instance = instance;
    if (seg >= s->count)
        s->count = seg + 1;
    return KEEL_OK;
}

keel_status store_make(struct store *s, uint32_t seg, int slot)
{
    struct store_segment *g = &s->segment[seg];
    struct store_copy *c = &g->copy[slot];
    if (c->base || c->lost)
        return KEEL_OK;
    size_t bytes = store_stride(g->bytes_per_rank) * (size_t)s->slot_ranks[slot];
    bytes = bytes ? (bytes + 4095) & ~(size_t)4095 : 4096;
    int fd = memfd_create("keel-segment", MFD_CLOEXEC);
    if (fd < 0)
        return KEEL_ERR_SYSTEM;
    void *base = MAP_FAILED;
    if (ftruncate(fd, (off_t)bytes) == 0)
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        close(fd);
        return KEEL_ERR_NOMEM;
    }
    keel_status status = s->net->table->reg(s->net, base, bytes, wire_key(seg, slot));
    if (status != KEEL_OK) {
        munmap(base, bytes);
        close(fd);
        return status;
    }
    *c = (struct store_copy){.base = base, .bytes = bytes, .fd = fd};
    log_debug("store: segment %u slot %d, %zu bytes", seg, slot, bytes);
    return KEEL_OK;
}

void store_mark_lost(struct store *s, uint32_t seg, int slot)
{
    store_drop(s, seg, slot);
    s->segment[seg].copy[slot].lost = true;
}

void store_drop(struct store *s, uint32_t seg, int slot)
{
    struct store_copy *c = &s->segment[seg].copy[slot];
    if (c->base) {
        s->net->table->unreg(s->net, wire_key(seg, slot));
        munmap(c->base, c->bytes);
        close(c->fd);
    }
    *c = (struct store_copy){0};
}

void store_free(struct store *s, uint32_t seg)
{
    if (seg >= s->count || !s->segment[seg].known)
        return;
    for (int slot = 0; slot < s->slots; slot++)
        store_drop(s, seg, slot);
    s->segment[seg].freed = true;
}
