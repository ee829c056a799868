/* Kept memory of a set of replicas, whose ranks meet by themselves (keep.h). */
#include "runtime/client/keep/keep_int.h"
#include "runtime/client/op/rma.h"

const struct keep_table *keep_registered(const struct client *c)
{
    return &c->keep->now;
}

bool keep_registered_range(const struct client *c, uint64_t n, void **address, size_t *bytes)
{
    const struct keep *k = c->keep;
    if (n >= k->now.ranges)
        return false;
    *address = k->address[n];
    *bytes = k->now.entry[n].bytes;
    return true;
}

keel_status keep_may_commit(const struct client *c, uint64_t version)
{
    const struct keep *k = c->keep;
    if (!c->ready || !k || !k->segment || !k->restored)
        return KEEL_ERR_STATE;
    return version <= k->version ? KEEL_ERR_ARG : KEEL_OK;
}

keel_status keep_write(struct client *c, uint64_t version, uint64_t collectives)
{
    return keep_write_version(c, version, collectives + 1, "");
}

void keep_met(struct client *c, uint64_t version, uint64_t collectives, bool counts)
{
    struct keep *k = c->keep;
    if (!counts) {
        keep_take_back(c, collectives + 1);
        return;
    }
    k->side = k->side == 0;
    k->version = version;
}

void keep_must_restore(struct client *c)
{
    c->keep->restored = false;
}

keel_status keep_may_restore(const struct client *c)
{
    const struct keep *k = c->keep;
    return c->ready && k && k->segment && !k->restored ? KEEL_OK : KEEL_ERR_STATE;
}

keel_segment *keep_segment_of(const struct client *c)
{
    return c->keep ? c->keep->segment : NULL;
}

keel_status keep_take_over(struct client *c, uint64_t version, uint64_t collectives)
{
    struct keep *k = c->keep;
    struct keep_root root;
    keel_status status = keep_root_of(c, c->rank, &root);
    const int side = status == KEEL_OK && collectives ? keep_choose(&root, collectives - 1) : -1;
    if (status == KEEL_OK && (side < 0 || root.side[side].version != version))
        status = KEEL_ERR_MISMATCH;
    if (status == KEEL_OK)
        status = keep_load_side(c, "keel_keep_restore", side, version);
    if (status != KEEL_OK)
        return status;
    k->side = side;
    k->version = version;
    k->restored = true;
    return KEEL_OK;
}

keel_status keep_go_back(struct client *c, uint64_t *version)
{
    struct keep *k = c->keep;
    *version = 0;
    if (!c->ready || !k || !k->segment || !k->restored)
        return KEEL_ERR_STATE;
    *version = k->version;
    return k->version ? keep_load_side(c, "keel_keep_rollback", k->side, k->version) : KEEL_OK;
}
