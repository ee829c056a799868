#include "tasks.h"

#include <mpi.h>

#include <ga.h>
#include <macdecls.h>
#include <stdlib.h>

void ga_check(keel_status status)
{
    if (status != KEEL_OK)
        GA_Error((char *)(size_t)keel_status_text(status), (int)status);
}

double *ga_memory(size_t doubles)
{
    double *memory = calloc(doubles, sizeof *memory);
    if (!memory) {
        GA_Error("out of memory", 1);
        abort();
    }
    return memory;
}

void ga_phase(int number)
{
    if (keel_rank() == 0 || !keel_rank_alive(0))
        (void)keel_event("phase", number, NULL);
}

struct ga_array ga_array_create(const char *name, int ndim, const int *dims)
{
    struct ga_array a = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        a.dims[d] = dims[d];
    a.handle = NGA_Create(C_DBL, ndim, a.dims, (char *)(size_t)name, NULL);
    if (!a.handle)
        GA_Error("an array cannot be created", 1);
    return a;
}

size_t ga_array_size(const struct ga_array *a)
{
    size_t n = 1;
    for (int d = 0; d < a->ndim; d++)
        n *= (size_t)a->dims[d];
    return n;
}

/* The i-th slice along the first dimension. */
static void slice(const struct ga_array *a, int i, int *lo, int *hi)
{
    for (int d = 0; d < a->ndim; d++) {
        lo[d] = d ? 0 : i;
        hi[d] = d ? a->dims[d] - 1 : i;
    }
}

/* Leading dimensions of a packed block. */
static void pack(const struct ga_array *a, const int *lo, const int *hi, int *ld)
{
    for (int d = 1; d < a->ndim; d++)
        ld[d - 1] = hi[d] - lo[d] + 1;
}

void ga_array_write(const struct ga_array *a, double *from)
{
    int lo[GA_TASK_DIMS_MAX], hi[GA_TASK_DIMS_MAX], ld[GA_TASK_DIMS_MAX] = {1}, n = a->dims[0];
    size_t one = ga_array_size(a) / (size_t)n;
    for (int k = 0; k < n; k++) {
        int i = (k + GA_Nodeid() * n / GA_Nnodes()) % n;
        slice(a, i, lo, hi);
        pack(a, lo, hi, ld);
        NGA_Put(a->handle, lo, hi, from + (size_t)i * one, ld);
    }
}

void ga_array_read(const struct ga_array *a, double *into)
{
    int lo[GA_TASK_DIMS_MAX], hi[GA_TASK_DIMS_MAX];
    for (int d = 0; d < a->ndim; d++) {
        lo[d] = 0;
        hi[d] = a->dims[d] - 1;
    }
    ga_array_get(a, lo, hi, into);
}

void ga_array_get(const struct ga_array *a, const int *lo, const int *hi, double *block)
{
    int from[GA_TASK_DIMS_MAX], to[GA_TASK_DIMS_MAX], ld[GA_TASK_DIMS_MAX] = {1};
    for (int d = 0; d < a->ndim; d++) {
        from[d] = lo[d];
        to[d] = hi[d];
    }
    pack(a, lo, hi, ld);
    NGA_Get(a->handle, from, to, block, ld);
}

static ga_nbhdl_t adding[8];
static size_t adds;

static void wait_for_adds(void)
{
    while (adds > 0)
        NGA_NbWait(&adding[--adds]);
}

static void wait_if_full(void)
{
    if (adds == sizeof adding / sizeof *adding)
        wait_for_adds();
}

void ga_array_add(const struct ga_array *a, const int *lo, const int *hi, double *block)
{
    int from[GA_TASK_DIMS_MAX], to[GA_TASK_DIMS_MAX], ld[GA_TASK_DIMS_MAX] = {1}, all = GA_Nnodes();
    int *map = malloc((size_t)all * (2 * (size_t)a->ndim + 1) * sizeof *map);
    double one = 1;
    if (!map) {
        GA_Error("out of memory", 1);
        abort();
    }
    for (int d = 0; d < a->ndim; d++) {
        from[d] = lo[d];
        to[d] = hi[d];
    }
    pack(a, lo, hi, ld);
    int n = NGA_Locate_region(a->handle, from, to, map, map + (size_t)all * 2 * (size_t)a->ndim);
    for (int k = 0; k < n; k++) {
        int *first = map + (size_t)k * 2 * (size_t)a->ndim, *last = first + a->ndim;
        size_t at = 0;
        for (int d = 0; d < a->ndim; d++)
            at = at * (size_t)(hi[d] - lo[d] + 1) + (size_t)(first[d] - lo[d]);
        wait_if_full();
        NGA_NbAcc(a->handle, first, last, block + at, ld, &one, &adding[adds++]);
    }
    free(map);
}

void ga_tasks_run(keel_taskpool *pool, void (*task)(void *work, long number), void *work)
{
    int64_t number;
    for (ga_check(keel_task_next(pool, &number)); number >= 0; ga_check(keel_task_next(pool, &number))) {
        task(work, (long)number);
        wait_for_adds();
        ga_check(keel_task_commit(pool, number));
    }
}
