/* Segments: collective allocation, and the mappings of this node's copies. */
#include "runtime/core/client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/core/collective_slot.h"

enum { KIND_ALLOC = 1 };

struct alloc_arguments {
    uint64_t bytes;
    uint32_t redundancy;
    uint32_t index;
};

struct keel_segment *segment_attach(uint32_t index, uint64_t bytes_per_rank, keel_redundancy redundancy)
{
    struct keel_segment *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->index = index;
    s->bytes_per_rank = bytes_per_rank;
    s->stride = (size_t)(bytes_per_rank + 63) & ~(size_t)63;
    s->redundancy = redundancy;
    s->map = calloc(client.page->nodes, sizeof *s->map);
    s->map_bytes = calloc(client.page->nodes, sizeof *s->map_bytes);
    s->near = calloc(client.page->ranks, sizeof *s->near);
    if (!s->map || !s->map_bytes || !s->near) {
        segment_release(s);
        return NULL;
    }
    for (int r = 0; r < (int)client.page->ranks; r++)
        s->near[r].route = &page_slot(client.page, (int)page_rank(client.page, r)->slot)->route;
    return s;
}

void segment_release(struct keel_segment *s)
{
    for (uint32_t slot = 0; s->map && slot < client.page->nodes; slot++) {
        uint8_t *base = atomic_load(&s->map[slot]);
        if (base)
            munmap(base, s->map_bytes[slot]);
    }
    free((void *)s->map);
    free(s->map_bytes);
    free(s->near);
    free(s);
}

uint8_t *segment_map(struct keel_segment *s, int slot, keel_status *status)
{
    *status = KEEL_OK;
    uint8_t *base = atomic_load_explicit(&s->map[slot], memory_order_acquire);
    if (base)
        return base;
    struct control r = {.type = CONTROL_SEG_MAP, .seg = s->index, .slot = slot};
    int fd;
    *status = control_request(&r, &fd);
    if (*status != KEEL_OK)
        return NULL;
    void *m = mmap(NULL, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (m == MAP_FAILED) {
        *status = KEEL_ERR_NOMEM;
        return NULL;
    }
    uint8_t *expected = NULL;
    s->map_bytes[slot] = r.bytes;
    if (!atomic_compare_exchange_strong(&s->map[slot], &expected, m)) {
        munmap(m, r.bytes); /* another thread was first */
        return expected;
    }
    return m;
}

/* All ranks pass what they were given; each compares its own with everybody's. */
static keel_status agree_on_arguments(const struct alloc_arguments *mine)
{
    keel_status status = collective_contribute(KIND_ALLOC, mine, sizeof *mine);
    if (status == KEEL_OK)
        status = collective_enter(true);
    for (int r = 0; r < client.size && status == KEEL_OK; r++) {
        struct alloc_arguments theirs;
        bool present;
        status = collective_read(r, KIND_ALLOC, &theirs, sizeof theirs, &present);
        if (status == KEEL_OK && present && memcmp(&theirs, mine, sizeof theirs) != 0)
            status = KEEL_ERR_MISMATCH;
    }
    return status;
}

KEEL_EXPORT keel_status keel_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out)
{
    if (!out)
        return KEEL_ERR_ARG;
    *out = NULL;
    if (!client.ready)
        return KEEL_ERR_STATE;
    if (redundancy != KEEL_REDUNDANCY_NONE && redundancy != KEEL_REDUNDANCY_SHADOW)
        return KEEL_ERR_ARG;
    if (client.segments >= CLIENT_SEGMENTS_MAX)
        return KEEL_ERR_LIMIT;
    uint32_t index = client.segments;
    bool exists = index < client.segments_known; /* from before this process joined */
    keel_status status = KEEL_OK;
    struct control r = {.type = CONTROL_SEG_CREATE,
                        .seg = index,
                        .bytes = bytes_per_rank,
                        .redundancy = (uint32_t)redundancy,
                        .b = (int64_t)client.instance + 1};
    if (exists) {
        status = control_request(&r, NULL);
    } else {
        /* Every rank's agent makes its copies before the barrier, so that all are there after it. A rank whose arguments
         * differ takes part in the comparison all the same, so that everybody learns of it. */
        keel_status made = control_request(&r, NULL);
        if (made != KEEL_OK && made != KEEL_ERR_MISMATCH)
            return made;
        struct alloc_arguments mine = {bytes_per_rank, (uint32_t)redundancy, index};
        status = agree_on_arguments(&mine);
        if (status == KEEL_OK && made != KEEL_OK)
            status = made;
    }
    client.segments++;
    if (status != KEEL_OK)
        return status;
    struct keel_segment *s = segment_attach(index, bytes_per_rank, redundancy);
    if (!s)
        return KEEL_ERR_NOMEM;
    s->freed = exists && r.a == 1;
    client.segment[index] = s;
    *out = s;
    return KEEL_OK;
}

KEEL_EXPORT keel_status keel_segment_free(keel_segment *segment)
{
    if (!client.ready)
        return KEEL_ERR_STATE;
    if (!segment)
        return KEEL_OK;
    keel_status status = KEEL_OK;
    if (!segment->freed) { /* else the others freed it before this process joined */
        status = collective_enter(true);
        if (status != KEEL_OK)
            return status;
        struct control r = {.type = CONTROL_SEG_FREE, .seg = segment->index};
        status = control_request(&r, NULL);
    }
    client.segment[segment->index] = NULL;
    segment_release(segment);
    return status;
}

KEEL_EXPORT size_t keel_segment_bytes_per_rank(const keel_segment *segment)
{
    return segment ? (size_t)segment->bytes_per_rank : 0;
}
