/* A version of the kept memory is made: see layout.h.
 *
 * What has changed is found by looking: each byte of a range is compared with what the side holds, which is where it is
 * to be the same. So no change is missed, whoever made it by whatever means, nothing stands in the way of a program's
 * own handlers or system calls, and no memory is needed. It is done where the side lies on this node and all of it is
 * this process's own (struct keep_own); else all bytes travel. */
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/keep/keep_int.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/rma.h"

enum { RUN_MAX = 1024 * 1024 };

/* Bytes that are to travel, not put yet. */
struct run {
    struct client *c;
    keel_handle handle;
    size_t at; /* in the part */
    const uint8_t *from;
    size_t len;
    keel_status status;
};

static void run_flush(struct run *r)
{
    if (r->len && r->status == KEEL_OK)
        r->status = rma_start(r->c, OP_PUT, r->c->keep->segment, r->c->rank, r->at, r->from, NULL, r->len, &r->handle);
    if (r->len)
        FAULT_POINT("keep.copying");
    r->len = 0;
}

static void run_add(struct run *r, size_t at, const uint8_t *from, size_t len)
{
    if (r->len && (at != r->at + r->len || from != r->from + r->len || r->len >= RUN_MAX))
        run_flush(r);
    if (!r->len) {
        r->at = at;
        r->from = from;
    }
    r->len += len;
}

static bool side_is_near(struct client *c)
{
    const struct near *n = &c->keep->segment->near[c->rank];
    if (!near_valid(n, &n->get_tag))
        rma_near_update(c, c->keep->segment, c->rank);
    return near_valid(n, &n->get_tag);
}

/* The pages of a block that differ from what the side has; all, where the route has changed while they were looked
 * at: that may have been another copy. */
static void add_changed(struct run *r, size_t at, const uint8_t *from, size_t len)
{
    const struct near *n = &r->c->keep->segment->near[r->c->rank];
    if (!side_is_near(r->c)) { /* it would be read through the network */
        run_add(r, at, from, len);
        return;
    }
    const uint8_t *there = near_base(n) + at;
    if (memcmp(there, from, len) == 0 && near_valid(n, &n->get_tag))
        return;
    for (size_t i = 0; i < len; i += KEEP_PAGE) {
        size_t page = len - i < KEEP_PAGE ? len - i : KEEP_PAGE;
        if (memcmp(there + i, from + i, page) != 0 || !near_valid(n, &n->get_tag))
            run_add(r, at + i, from + i, page);
    }
}

static void add_range(struct run *r, size_t at, const uint8_t *from, size_t len, bool mine)
{
    for (size_t i = 0; i < len && r->status == KEEL_OK; i += KEEP_BLOCK) {
        size_t n = len - i < KEEP_BLOCK ? len - i : KEEP_BLOCK;
        if (mine)
            add_changed(r, at + i, from + i, n);
        else
            run_add(r, at + i, from + i, n);
    }
}

/* Names and bytes; all copies have them when it returns. */
static keel_status write_bytes(struct client *c, int side)
{
    struct keep *k = c->keep;
    struct keep_own *own = &k->own[side];
    struct run r = {.c = c};
    keel_status status = rma_aggregate(c, &r.handle);
    if (status != KEEL_OK)
        return status;
    const bool mine = own->mine && memcmp(&own->table, &k->now, sizeof k->now) == 0;
    own->mine = false;
    if (!mine)
        run_add(&r, keep_table_at(k->room, side), (const uint8_t *)&k->now, sizeof k->now);
    for (uint64_t i = 0; i < k->now.ranges; i++) {
        const struct keep_entry *e = &k->now.entry[i];
        add_range(&r, keep_bytes_at(k->room, side) + e->at, k->address[i], e->bytes, mine);
    }
    run_flush(&r);
    status = rma_wait(c, &r.handle);
    return r.status != KEEL_OK ? r.status : status;
}

keel_status keep_write_version(struct client *c, uint64_t version, uint64_t meeting, const char *folder)
{
    struct keep *k = c->keep;
    const int side = k->side == 0;
    const size_t at = offsetof(struct keep_root, side) + (size_t)side * sizeof(struct keep_side);
    const struct keep_side none = {.at = meeting, .saves = *folder != 0};
    keel_status status = keep_put(c, at, &none, sizeof none);
    FAULT_POINT("keep.opened");
    if (status == KEEL_OK && *folder)
        status = keep_put(c, offsetof(struct keep_root, folder), folder, strlen(folder) + 1);
    if (status == KEEL_OK)
        status = write_bytes(c, side);
    FAULT_POINT("keep.copied");
    if (status == KEEL_OK)
        status = keep_put(c, at + offsetof(struct keep_side, version), &version, sizeof version);
    FAULT_POINT("keep.marked");
    k->own[side].mine = status == KEEL_OK;
    k->own[side].table = k->now;
    return status;
}

/* The ranks have met and found that they differ, or the like: the version does not count, so that whoever takes the
 * rank over begins with the one before, to which the others go back. */
void keep_take_back(struct client *c, uint64_t meeting)
{
    struct keep *k = c->keep;
    const int side = k->side == 0;
    const struct keep_side none = {.at = meeting};
    k->own[side].mine = false;
    (void)keep_put(c, offsetof(struct keep_root, side) + (size_t)side * sizeof none, &none, sizeof none);
}

/* Another number for another folder: ranks that differ in it are to be found. */
static uint64_t mixed(const char *folder)
{
    uint64_t hash = 0;
    for (; *folder; folder++)
        hash = (hash ^ (uint8_t)*folder) * 0x100000001b3u + 1;
    return hash << 16;
}

keel_status keep_meet(struct client *c, uint64_t version, const char *folder)
{
    struct keep *k = c->keep;
    struct engine_call call = {.kind = ENGINE_BARRIER, .arguments = (KEEP_CALL ^ version) + mixed(folder)};
    keel_status status = collective_run(c, &call);
    if (c->collectives < k->meeting)
        return status; /* it is gone on with by the same call */
    k->entering = 0;
    FAULT_POINT("keep.met");
    return status;
}

keel_status keep_commit_in(struct client *c, uint64_t version, const char *folder)
{
    struct keep *k = c->keep;
    if (!k || !k->segment || !k->restored || !collective_may_begin(c) || k->saving ||
        (k->entering ? k->entering != version : c->coll.unfinished != NULL))
        return KEEL_ERR_STATE;
    if (version <= k->version)
        return KEEL_ERR_ARG;
    if (!k->entering) {
        keel_status status = rma_fence(c, -1);
        if (status == KEEL_OK)
            status = keep_write_version(c, version, c->collectives + 1, folder);
        if (status != KEEL_OK)
            return status;
        k->entering = version;
        k->meeting = c->collectives + 1;
    }
    keel_status status = keep_meet(c, version, folder);
    if (status == KEEL_OK) {
        k->side = k->side == 0;
        k->version = version;
    } else if (!k->entering) {
        keep_take_back(c, k->meeting);
    }
    return status;
}

keel_status keep_commit(struct client *c, uint64_t version)
{
    return keep_commit_in(c, version, "");
}
