#include "apps/npb/common.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char npb_class_names[CLASSES + 1] = "SWA";

bool npb_complain(struct npb_complaint *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return false;
}

void npb_barrier(void)
{
    must(keel_group_barrier(keel_group_world()), "waiting for all ranks");
}

void npb_start(struct npb *npb)
{
    npb_barrier();
    npb->puts = npb->bytes = npb->sums = npb->gathers = 0;
    if (npb->rank == 0)
        must(keel_event("npb_start", npb->size, NULL), "event");
    npb->started = now();
}

void npb_stop(struct npb *npb, struct outcome *out)
{
    struct {
        double seconds;
        uint64_t puts, bytes;
    } mine = {now() - npb->started, npb->puts, npb->bytes}, *all = reserve((size_t)npb->size, sizeof mine);
    out->sums = npb->sums;
    out->gathers = npb->gathers;
    npb_gather(npb, &mine, all, sizeof mine);
    for (int r = 0; r < npb->size; r++) {
        out->seconds = all[r].seconds > out->seconds ? all[r].seconds : out->seconds;
        out->puts += all[r].puts;
        out->bytes += all[r].bytes;
    }
    keel_local_free(all);
}

void npb_gather(struct npb *npb, const void *in, void *out, size_t bytes)
{
    npb->gathers++;
    must(keel_group_allgather(keel_group_world(), in, out, bytes), "gathering from all ranks");
}

void npb_sum(struct npb *npb, double *values, size_t n)
{
    assert(n <= NPB_SUM_MAX);
    double *all = npb->terms;
    npb->sums++;
    must(keel_group_allgather(keel_group_world(), values, all, n * sizeof *values), "terms of a sum");
    for (size_t i = 0; i < n; i++) {
        values[i] = 0;
        for (size_t r = 0; r < (size_t)npb->size; r++)
            values[i] += all[r * n + i];
    }
}

void npb_sum_int(struct npb *npb, int32_t *values, size_t n)
{
    static const keel_combine add = {.type = KEEL_INT32, .op = KEEL_SUM};
    npb->sums++;
    must(keel_group_allreduce(keel_group_world(), values, values, n, &add), "sum of all ranks");
}
