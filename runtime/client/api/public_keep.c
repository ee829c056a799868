/* The public calls of keel/keep.h, on the process's instance. */
#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"
#include "runtime/client/keep/keep.h"

/* What waits meanwhile waits for this call, and in none that the program has not made. */
static keel_status told(keel_status status)
{
    process_client.coll.for_call = WAIT_NO_CALL;
    return status;
}

static struct client *tell_as(enum wait_call call)
{
    process_client.coll.for_call = call;
    return &process_client;
}

keel_status call_keep_room(size_t bytes_per_rank)
{
    return keep_room(&process_client, bytes_per_rank);
}

keel_status call_keep(const char *name, void *address, size_t bytes)
{
    return keep_range(&process_client, name, address, bytes);
}

keel_status call_keep_commit(uint64_t version)
{
    return told(keep_commit(tell_as(WAIT_KEEP_COMMIT), version));
}

keel_status call_keep_save(uint64_t version, const char *folder)
{
    return told(keep_save(tell_as(WAIT_KEEP_SAVE), version, folder));
}

keel_status call_keep_restore(uint64_t *version, uint64_t *since)
{
    return told(keep_restore(tell_as(WAIT_KEEP_RESTORE), version, since));
}

keel_status call_keep_rollback(uint64_t *version)
{
    return told(keep_rollback(tell_as(WAIT_KEEP_ROLLBACK), version));
}

keel_status call_keep_get(int rank, const char *name, size_t offset, void *dst, size_t bytes, uint64_t *version)
{
    return keep_get(&process_client, rank, name, offset, dst, bytes, version);
}
