/* The public collectives of all live ranks, on the process's instance. */
#include "runtime/client/api/calls.h"
#include "runtime/client/job/process.h"
#include "runtime/client/group/collective.h"

keel_status call_barrier(void)
{
    return collective_barrier(&process_client);
}

keel_status call_sync(void)
{
    return collective_barrier(&process_client);
}

keel_status call_barrier_begin(void)
{
    return collective_barrier_begin(&process_client);
}

keel_status call_barrier_test(uint64_t *epoch)
{
    return collective_barrier_test(&process_client, epoch);
}

keel_status call_barrier_end(uint64_t *epoch)
{
    return collective_barrier_end(&process_client, epoch);
}

keel_status call_bcast(int root, void *buffer, size_t len)
{
    return collective_bcast(&process_client, root, buffer, len);
}

keel_status call_allreduce_sum(const double *in, double *out, size_t n)
{
    return collective_allreduce_sum(&process_client, in, out, n);
}
