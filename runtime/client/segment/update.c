/* Updates that a program tells of (keel/update.h), on an instance. */
#include "runtime/client/op/near.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/update.h"
#include "runtime/wire/marks.h"

/* The copy of the client's slot on its node, where the caller's bytes are from *at on. */
static uint8_t *update(struct client *c, keel_segment *s, size_t offset, size_t len, size_t *at, keel_status *status)
{
    if (near_bad_range(c, s, c->rank, offset, len)) {
        *status = c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
        return NULL;
    }
    if (s->redundancy != KEEL_REDUNDANCY_NONE)
        atomic_fetch_or(&c->segments.stores, 1u << s->redundancy);
    uint8_t *copy = segment_map_home(s, status);
    if (copy)
        *status = KEEL_OK;
    *at = (size_t)s->part_at[c->rank] + offset;
    return copy;
}

keel_status update_begin(struct client *c, keel_segment *s, size_t offset, size_t len, uint8_t **address)
{
    keel_status status;
    size_t at;
    uint8_t *copy = update(c, s, offset, len, &at, &status);
    if (copy && s->redundancy != KEEL_REDUNDANCY_NONE)
        holders_add_unseen(copy, s->map_bytes[page_rank(c->page, c->rank)->slot], at, len);
    *address = copy ? copy + at : NULL;
    return status;
}

keel_status update_end(struct client *c, keel_segment *s, size_t offset, size_t len)
{
    keel_status status;
    size_t at;
    const uint8_t *copy = update(c, s, offset, len, &at, &status);
    if (!copy || s->redundancy == KEEL_REDUNDANCY_NONE)
        return status;
    return rma_put(c, s, c->rank, offset, copy + at, len);
}
