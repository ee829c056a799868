/* Kept memory: each set keeps its own, in a segment of its group. What a rank keeps is compared as it is kept: a
 * version is the same in all sets, and of three replicas the one that differs gets the memory of the others. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/keep/keep.h"
#include "runtime/client/keep/layout.h"
#include "runtime/client/replica/renew.h"
#include "runtime/client/replica/replica.h"

#define BELOW replica.below

/* Who asks for what cannot be takes part: the others would wait. A set ends with each of its nodes, so one copy is
 * all. */
keel_status replica_keep_room(size_t bytes_per_rank)
{
    struct client *c = replica.client;
    keel_segment *segment = NULL;
    size_t each = 0;
    if (!keep_wants_room(c, bytes_per_rank, &each))
        return KEEL_ERR_STATE;
    replica_binds(); /* what is kept is the own set's */
    replica_did(CALL_keep_room, -1, NULL, 0, bytes_per_rank, 0);
    keel_status status = replica_meet(CALL_keep_room);
    if (status != KEEL_OK)
        return status;
    size_t *bytes = each ? malloc((size_t)replica.size * sizeof *bytes) : NULL;
    for (int r = 0; bytes && r < replica.size; r++)
        bytes[r] = each;
    status =
        replica_after(BELOW->segment_alloc_group(replica.group, bytes, KEEL_REDUNDANCY_NONE, bytes ? &segment : NULL));
    free(bytes);
    if (status != KEEL_OK)
        return status;
    keep_has_room(c, segment, bytes_per_rank);
    if (replica.guest)
        keep_must_restore(c);
    replica_makes(CALL_keep_room, bytes_per_rank);
    replica_keeps();
    return KEEL_OK;
}

keel_status replica_keep_restore(uint64_t *version, uint64_t *since)
{
    if (!replica.guest || !version || keep_may_restore(replica.client) != KEEL_OK)
        return BELOW->keep_restore(version, since);
    if (since)
        *since = 0; /* the whole sets stand still in the commit of that version */
    return replica_is_guest(version);
}

/* ---- a version ---- */

static keel_status compare_range(uint64_t number, void *address, size_t len)
{
    const void *right = address;
    keel_status status = replica_meet_before(CALL_keep, -1, NULL, number, &right, len);
    if (status == KEEL_OK && right != address)
        memcpy(address, right, len);
    return status;
}

/* Names and sizes, and the bytes of each range. */
static keel_status compare_kept(uint64_t version)
{
    const struct client *c = replica.client;
    keel_status status = KEEL_OK;
    void *address;
    size_t len;
    replica_did_bytes(CALL_keep_commit, -1, NULL, version, keep_registered(c), sizeof(struct keep_table));
    for (uint64_t n = 0; status == KEEL_OK && keep_registered_range(c, n, &address, &len); n++)
        status = compare_range(n + 1, address, len);
    return status == KEEL_OK ? replica_meet(CALL_keep_commit) : status;
}

enum { WHY = 2 + 2 * REPLICAS_MAX, WORDS };

/* All ranks of the set say words, n of them: the greatest of each. blocks   until all have. */
static keel_status greatest(uint64_t *words, size_t n)
{
    const keel_combine how = {.type = KEEL_UINT64, .op = KEEL_MAX};
    uint64_t mine[WORDS];
    memcpy(mine, words, n * sizeof *words);
    return replica_after(BELOW->group_allreduce(replica.group, mine, words, n, &how));
}

keel_status replica_keep_commit(uint64_t version)
{
    struct client *c = replica.client;
    uint64_t said[WORDS] = {version, ~version};
    struct renew_waits who;
    keel_status status = replica_is_apart() ? KEEL_ERR_STATE : keep_may_commit(c, version);
    if (status == KEEL_OK)
        status = replica_after(BELOW->fence_all());
    if (status == KEEL_OK)
        replica_ask_who_waits(&who, &said[WHY]);
    if (status == KEEL_OK)
        status = compare_kept(version);
    replica_binds();
    if (status == KEEL_OK)
        status = replica_after(keep_write(c, version, replica.collectives));
    if (status != KEEL_OK)
        return status;
    renew_words(&who, said + 2);
    status = greatest(said, WORDS);
    if (status == KEEL_OK && said[0] != ~said[1])
        status = KEEL_ERR_MISMATCH;
    keep_met(c, version, replica.collectives, status == KEEL_OK);
    replica.collectives += status == KEEL_OK;
    if (status == KEEL_OK)
        replica_tells_why(said[WHY]);
    if (status == KEEL_OK)
        replica_hosts(said + 2, version);
    return status;
}

/* ---- and back ---- */

keel_status replica_keep_rollback(uint64_t *version)
{
    struct client *c = replica.client;
    uint64_t last = 0;
    if (!version)
        return KEEL_ERR_ARG;
    *version = 0;
    keel_status mine = replica_is_apart() ? KEEL_ERR_STATE : keep_go_back(c, &last);
    if (mine == KEEL_ERR_STATE)
        return mine;
    replica_binds();
    (void)replica_after(mine);
    uint64_t worst[2] = {mine == KEEL_OK ? 0 : (uint64_t) - (int64_t)mine << 32 | (uint32_t)replica.rank, 0};
    keel_status status = replica_meet(CALL_keep_rollback);
    if (status == KEEL_OK)
        status = greatest(worst, 2);
    if (status == KEEL_OK && worst[0]) {
        status = (keel_status) - (int64_t)(worst[0] >> 32);
        if ((int)(uint32_t)worst[0] != replica.rank)
            log_error("keel_keep_rollback: rank %d: %s", (int)(uint32_t)worst[0], keel_status_text(status));
    }
    replica.collectives += status == KEEL_OK;
    *version = status == KEEL_OK ? last : 0;
    return status;
}

keel_status replica_keep_get(int rank, const char *name, size_t offset, void *dst, size_t bytes, uint64_t *version)
{
    replica_binds();
    return replica_after(keep_get_behind(replica.client, replica.collectives, replica_native_of(rank), name, offset,
                                         dst, bytes, version));
}

/* A later job cannot begin with replicas and a save (--restore). */
keel_status replica_keep_save(uint64_t version, const char *folder)
{
    (void)version, (void)folder;
    return replica_refuses(CALL_keep_save);
}
