/* The public calls of keel/keep.h, on the process's instance. */
#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"
#include "runtime/client/keep/keep.h"

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
    return keep_commit(&process_client, version);
}

keel_status call_keep_save(uint64_t version, const char *folder)
{
    return keep_save(&process_client, version, folder);
}

keel_status call_keep_restore(uint64_t *version, uint64_t *since)
{
    return keep_restore(&process_client, version, since);
}

keel_status call_keep_rollback(uint64_t *version)
{
    return keep_rollback(&process_client, version);
}

keel_status call_keep_get(int rank, const char *name, size_t offset, void *dst, size_t bytes, uint64_t *version)
{
    return keep_get(&process_client, rank, name, offset, dst, bytes, version);
}
