/* A version of the kept memory is gone back to: by a process that takes its rank over, alone, and by all who live,
 * together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/keep/keep_int.h"
#include "runtime/client/keep/save.h"
#include "runtime/client/op/rma.h"

static keel_status tell(const char *call, int rank, keel_status status)
{
    if (status == KEEL_ERR_DATA_LOST)
        log_error("%s: what rank %d has kept is lost: no copy of it is left", call, rank);
    return status;
}

static keel_status misfit(const char *call, uint64_t version, const struct keep_entry *kept,
                          const struct keep_entry *now)
{
    char has[64] = "does not have it", wants[64] = "is not registered";
    if (kept)
        snprintf(has, sizeof has, "has %llu bytes", (unsigned long long)kept->bytes);
    if (now)
        snprintf(wants, sizeof wants, "is registered with %llu bytes", (unsigned long long)now->bytes);
    log_error("%s: %s: version %llu %s, and it %s", call, kept ? kept->name : now->name, (unsigned long long)version,
              has, wants);
    return KEEL_ERR_MISMATCH;
}

/* Names and sizes are what the version has; the order may be another one. */
static keel_status compare(const struct keep *k, const char *call, uint64_t version, const struct keep_table *kept)
{
    for (uint64_t i = 0; i < kept->ranges; i++) {
        const struct keep_entry *now = keep_find(&k->now, kept->entry[i].name);
        if (!now || now->bytes != kept->entry[i].bytes)
            return misfit(call, version, &kept->entry[i], now);
    }
    for (uint64_t i = 0; i < k->now.ranges; i++)
        if (!keep_find(kept, k->now.entry[i].name))
            return misfit(call, version, NULL, &k->now.entry[i]);
    return KEEL_OK;
}

keel_status keep_table_of(struct client *c, const char *call, int rank, int side, struct keep_table *t)
{
    struct keep *k = c->keep;
    keel_status status = rma_get(c, k->segment, rank, keep_table_at(k->room, side), t, sizeof *t);
    if (status == KEEL_OK && !keep_table_is_sound(t, k->room)) {
        log_error("%s: what rank %d has kept is no table of ranges: something has written there", call, rank);
        status = KEEL_ERR_SYSTEM;
    }
    return tell(call, rank, status);
}

keel_status keep_load_side(struct client *c, const char *call, int side, uint64_t version)
{
    struct keep *k = c->keep;
    struct keep_table t;
    keel_status status = keep_table_of(c, call, c->rank, side, &t);
    if (status == KEEL_OK)
        status = compare(k, call, version, &t);
    FAULT_POINT("keep.restoring");
    for (uint64_t i = 0; i < t.ranges && status == KEEL_OK; i++) {
        const struct keep_entry *now = keep_find(&k->now, t.entry[i].name);
        status = rma_get(c, k->segment, c->rank, keep_bytes_at(k->room, side) + t.entry[i].at,
                         k->address[now - k->now.entry], now->bytes);
    }
    FAULT_POINT("keep.restored");
    return tell(call, c->rank, status);
}

/* The predecessor had made the version, and may have entered the meeting for it, or not; and if it is to be saved, too,
 * the meetings behind it. What became of the save is for those to say who have asked for it. */
static keel_status enter_again(struct client *c, const struct keep_root *root, const struct keep_side *s)
{
    struct keep *k = c->keep;
    const char *folder = s->saves ? root->folder : "";
    keel_status status = KEEL_OK;
    if (s->at > c->collectives) {
        k->meeting = s->at;
        FAULT_POINT("keep.entering_again");
        status = keep_meet(c, s->version, folder);
    }
    if (status == KEEL_OK && s->saves && c->collectives < s->at + SAVE_MEETINGS) {
        if (k->saved_at != s->at) {
            k->saved_at = s->at;
            k->save_status = KEEL_OK;
        }
        status = keep_save_files(c, s->version, folder);
        status = c->collectives < s->at + SAVE_MEETINGS ? status : KEEL_OK;
    }
    return status;
}

/* The last version, if there is one. */
static keel_status go_on(struct client *c, uint64_t *version, uint64_t *since)
{
    struct keep *k = c->keep;
    struct keep_root root;
    keel_status status = keep_root_of(c, c->rank, &root);
    if (status != KEEL_OK)
        return tell("keel_keep_restore", c->rank, status);
    const int side = keep_choose(&root, c->collectives);
    const struct keep_side *s = &root.side[side < 0 ? 0 : side];
    *version = 0;
    *since = c->collectives;
    if (side < 0)
        return KEEL_OK;
    status = keep_load_side(c, "keel_keep_restore", side, s->version);
    if (status == KEEL_OK)
        status = enter_again(c, &root, s);
    if (status != KEEL_OK)
        return status;
    k->side = side;
    k->version = *version = s->version;
    *since = c->collectives - s->at - (s->saves ? SAVE_MEETINGS : 0);
    return KEEL_OK;
}

const char *keep_begins_with(void)
{
    const char *folder = getenv(SAVE_ENV);
    return folder && *folder ? folder : NULL;
}

keel_status keep_restore(struct client *c, uint64_t *version, uint64_t *since)
{
    struct keep *k = c->keep;
    uint64_t made = 0, behind = 0;
    if (!version)
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    *version = 0;
    if (since)
        *since = 0;
    if (!c->ready || !k || !k->segment || k->version || c->task_run.open || c->coll.split)
        return KEEL_ERR_STATE;
    c->resumed = true;
    keel_status status = keep_begins_with() ? keep_load_files(c, keep_begins_with()) : KEEL_OK;
    if (status == KEEL_OK && (c->restarted || keep_begins_with()))
        status = go_on(c, &made, &behind);
    if (status != KEEL_OK)
        return status;
    k->restored = true;
    *version = made;
    if (since)
        *since = behind;
    if (since || !behind)
        return KEEL_OK;
    log_error("keel_keep_restore: the others have completed %llu more collectives since version %llu, and this program "
              "does not ask how many: it would begin them anew",
              (unsigned long long)behind, (unsigned long long)made);
    return KEEL_ERR_STATE;
}

bool keep_has_left(const struct client *c, int rank)
{
    const struct page_rank *r = page_rank(c->page, rank);
    const int32_t node = (int32_t)(atomic_load_explicit(&r->where, memory_order_acquire) >> 32);
    return atomic_load(&r->done) || (node >= 0 && !atomic_load(&r->life));
}

keel_status keep_agree(struct client *c, const char *call, uint64_t what, keel_status mine, int about, bool done,
                       bool *any)
{
    struct engine_call decide = {.kind = ENGINE_DECIDE,
                                 .agree = ENGINE_MAX,
                                 .arguments = KEEP_CALL ^ what,
                                 .value = mine != KEEL_OK ? (uint64_t) - (int64_t)mine << 32 | (uint32_t)about : done};
    uint64_t worst = 0;
    keel_status status = collective_agree(c, &decide, &worst);
    *any = worst == 1;
    if (status != KEEL_OK || !(worst >> 32))
        return status;
    status = (keel_status) - (int64_t)(worst >> 32);
    const int rank = (int)(uint32_t)worst;
    if (worst != decide.value)
        log_error("%s: rank %d: %s", call, rank,
                  status == KEEL_ERR_RANK_DEAD && keep_has_left(c, rank) ? "it has left" : keel_status_text(status));
    return status;
}

keel_status keep_rollback(struct client *c, uint64_t *version)
{
    struct keep *k = c->keep;
    if (!version)
        return c->ready ? KEEL_ERR_ARG : KEEL_ERR_STATE;
    *version = 0;
    if (!c->ready || !k || !k->segment || !k->restored || k->entering || k->saving || !collective_may_begin(c))
        return KEEL_ERR_STATE;
    keel_status status = k->version ? keep_load_side(c, "keel_keep_rollback", k->side, k->version) : KEEL_OK;
    FAULT_POINT("keep.going_back");
    bool none;
    status = keep_agree(c, "keel_keep_rollback", ~k->version, status, c->rank, false, &none);
    if (status == KEEL_OK)
        *version = k->version;
    return status;
}

keel_status keep_get(struct client *c, int rank, const char *name, size_t offset, void *dst, size_t len,
                     uint64_t *version)
{
    return keep_get_behind(c, c->collectives, rank, name, offset, dst, len, version);
}

keel_status keep_get_behind(struct client *c, uint64_t collectives, int rank, const char *name, size_t offset,
                            void *dst, size_t len, uint64_t *version)
{
    struct keep *k = c->keep;
    struct keep_root root;
    struct keep_table t;
    if (version)
        *version = 0;
    if (!c->ready || !k || !k->segment)
        return KEEL_ERR_STATE;
    if (rank < 0 || rank >= c->size || !name || (!dst && len))
        return KEEL_ERR_ARG;
    keel_status status = keep_root_of(c, rank, &root);
    const int side = status == KEEL_OK && collectives ? keep_choose(&root, collectives - 1) : -1;
    if (status == KEEL_OK && side < 0)
        return KEEL_ERR_STATE;
    if (status == KEEL_OK)
        status = keep_table_of(c, "keel_keep_get", rank, side, &t);
    const struct keep_entry *e = status == KEEL_OK ? keep_find(&t, name) : NULL;
    if (status == KEEL_OK && (!e || len > e->bytes || offset > e->bytes - len))
        return KEEL_ERR_ARG;
    if (status == KEEL_OK)
        status = rma_get(c, k->segment, rank, keep_bytes_at(k->room, side) + e->at + offset, dst, len);
    if (status == KEEL_OK && version)
        *version = root.side[side].version;
    return tell("keel_keep_get", rank, status);
}
