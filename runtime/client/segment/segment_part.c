/* Parts of groups' segments, for processes that are no members: all agents know each segment, so what such a process
 * needs is how the part lies in its slot's copy. It finds a place of its own in the address range. */
#include <keel/segment.h>

#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/segment_part.h"
#include "runtime/wire/layout.h"

struct description {
    uint64_t hash; /* of the rest */
    uint32_t index, rank, redundancy, pad;
    uint64_t unit, bytes, at;
};
_Static_assert(sizeof(struct description) <= sizeof(keel_segment_part), "it has room");

static uint64_t hash_of(const struct description *d)
{
    const uint64_t words[] = {d->index, d->rank, d->redundancy, d->unit, d->bytes, d->at};
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = ((hash ^ words[i]) * 0x100000001b3u) ^ hash >> 29;
    return hash;
}

keel_status segment_describe(const struct keel_segment *s, int rank, keel_segment_part *out)
{
    if (!s || !out || s->retired || s->index < SEGMENT_GROUP_FIRST || rank < 0 || rank >= s->client->size)
        return KEEL_ERR_ARG;
    struct description d = {.index = s->index,
                            .rank = (uint32_t)rank,
                            .redundancy = (uint32_t)s->redundancy,
                            .unit = s->unit,
                            .bytes = s->part_bytes[rank],
                            .at = s->part_at[rank]};
    d.hash = hash_of(&d);
    memset(out, 0, sizeof *out);
    memcpy(out, &d, sizeof d);
    return KEEL_OK;
}

static bool is_one(const struct client *c, const struct description *d)
{
    return d->hash == hash_of(d) && d->index >= SEGMENT_GROUP_FIRST && d->rank < c->page->ranks &&
           d->redundancy < CLASSES;
}

keel_status segment_attach_part(struct client *c, const keel_segment_part *part, struct keel_segment **out)
{
    struct description d;
    if (out)
        *out = NULL;
    if (!part || !out)
        return KEEL_ERR_ARG;
    memcpy(&d, part, sizeof d);
    if (!is_one(c, &d))
        return KEEL_ERR_ARG;
    const struct segment_want want = {.redundancy = (keel_redundancy)d.redundancy};
    struct keel_segment *s = segment_new(c, d.index, &want);
    if (!s)
        return KEEL_ERR_NOMEM;
    s->attached = true;
    s->unit = d.unit;
    s->largest = s->part_bytes[d.rank] = d.bytes;
    s->part_at[d.rank] = d.at;
    uint64_t bytes = segment_lay_out(s), place = bytes ? range_above(&c->segments.range, bytes, 0) : 0;
    if (place && range_take_above(&c->segments.range, place, bytes, s))
        s->base = place;
    *out = s;
    return KEEL_OK;
}

keel_status segment_detach(struct client *c, struct keel_segment *s)
{
    keel_status status = rma_fence(c, -1);
    segment_release(s);
    return status;
}
