/* What a rank can ask about the job, and about itself. */
#include <keel/keel.h>

#include <stdio.h>
#include <string.h>

#include "runtime/base/export.h"
#include "runtime/base/fault.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/job/channel.h"
#include "runtime/client/job/process.h"

KEEL_EXPORT int keel_rank(void)
{
    return replica_of(&process_client.replicas, process_client.rank).rank;
}

KEEL_EXPORT int keel_size(void)
{
    return replica_map_is_used(&process_client.replicas) ? process_client.replicas.ranks : process_client.size;
}

int call_rank_node(int rank)
{
    if (!process_client.page || rank < 0 || rank >= process_client.size)
        return -1;
    return (int)(int32_t)(atomic_load_explicit(&page_rank(process_client.page, rank)->where, memory_order_acquire) >>
                          32);
}

bool call_rank_alive(int rank)
{
    return call_rank_node(rank) >= 0;
}

uint64_t call_view_epoch(void)
{
    return process_client.page ? atomic_load_explicit(&process_client.page->epoch, memory_order_acquire) : 0;
}

KEEL_EXPORT bool keel_restarted(void)
{
    return process_client.restarted;
}

keel_status call_resume(uint64_t *collectives)
{
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    FAULT_POINT("rank.resuming");
    process_client.resumed = true;
    if (collectives)
        *collectives = process_client.collectives;
    return KEEL_OK;
}

uint64_t call_collective_count(void)
{
    return process_client.collectives;
}

void call_timestep(uint64_t step)
{
    atomic_store_explicit(&process_client.step, step, memory_order_relaxed);
}

keel_status call_event(const char *name, int64_t number, const char *text)
{
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    if (!name || !*name || strlen(name) > 64)
        return KEEL_ERR_ARG;
    struct control r = {.type = CONTROL_EVENT, .a = number};
    int n = snprintf(r.text, sizeof r.text, "%s", name);
    if (text)
        snprintf(r.text + n + 1, sizeof r.text - (size_t)n - 1, "%s", text);
    (void)channel_tell(NULL, &r);
    return KEEL_OK;
}
