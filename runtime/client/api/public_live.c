/* The public collectives of all live ranks, on the process's instance. */
#include "runtime/base/export.h"
#include "runtime/client/job/process.h"
#include "runtime/client/group/collective.h"

KEEL_EXPORT keel_status keel_barrier(void)
{
    return collective_barrier(&process_client);
}

KEEL_EXPORT keel_status keel_sync(void)
{
    return collective_barrier(&process_client);
}

KEEL_EXPORT keel_status keel_barrier_begin(void)
{
    return collective_barrier_begin(&process_client);
}

KEEL_EXPORT keel_status keel_barrier_test(uint64_t *epoch)
{
    return collective_barrier_test(&process_client, epoch);
}

KEEL_EXPORT keel_status keel_barrier_end(uint64_t *epoch)
{
    return collective_barrier_end(&process_client, epoch);
}

KEEL_EXPORT keel_status keel_bcast(int root, void *buffer, size_t len)
{
    return collective_bcast(&process_client, root, buffer, len);
}

KEEL_EXPORT keel_status keel_allreduce_sum(const double *in, double *out, size_t n)
{
    return collective_allreduce_sum(&process_client, in, out, n);
}
