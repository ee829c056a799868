/* The public calls that replicas of a simulated program make, on the process that makes them; and what libkeel has
 * beside the code of runtime/client/replica in a process. */
#include "tests/sim/data/below.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "collectives/group.h"
#include "runtime/client/api/public_coll.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/group/coll.h"
#include "runtime/client/job/channel.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/segment_group.h"
#include "runtime/client/segment/segment_part.h"
#include "tests/sim/data/replicas.h"

static struct runner *self(void)
{
    return process_current()->user;
}

static struct client *client(void)
{
    return &self()->client;
}

/* ---- the calls ---- */

static keel_status below_put(keel_segment *s, int rank, size_t offset, const void *src, size_t len)
{
    return rma_put(client(), s, rank, offset, src, len);
}

static keel_status below_put_nb(keel_segment *s, int rank, size_t offset, const void *src, size_t len,
                                keel_handle *handle)
{
    return rma_start(client(), OP_PUT, s, rank, offset, src, NULL, len, handle);
}

static keel_status below_get(keel_segment *s, int rank, size_t offset, void *dst, size_t len)
{
    return rma_get(client(), s, rank, offset, dst, len);
}

static keel_status below_wait(keel_handle *handle)
{
    return rma_wait(client(), handle);
}

static keel_status below_fence_all(void)
{
    return rma_fence(client(), -1);
}

static keel_status below_acc(keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                             const void *src, size_t n)
{
    return rma_acc(client(), s, rank, offset, type, scale, src, n);
}

static keel_status below_acc_nb(keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                                const void *src, size_t n, keel_handle *handle)
{
    return rma_acc_nb(client(), s, rank, offset, type, scale, src, n, handle);
}

static keel_status below_rmw(keel_segment *s, int rank, size_t offset, keel_type type, keel_rmw_op op,
                             const void *operand, const void *expected, void *old)
{
    return rma_rmw(client(), s, rank, offset, type, op, operand, expected, old);
}

static keel_status below_fetch_add(keel_segment *s, int rank, size_t offset, int64_t add, int64_t *old)
{
    return rma_fetch_add(client(), s, rank, offset, add, old);
}

static keel_status below_compare_swap(keel_segment *s, int rank, size_t offset, int64_t expected, int64_t desired,
                                      int64_t *old)
{
    return rma_compare_swap(client(), s, rank, offset, expected, desired, old);
}

static keel_status below_signal(keel_segment *s, int rank, size_t word, int64_t add)
{
    return signal_send(client(), s, rank, word, add);
}

static keel_status below_wait_until(keel_segment *s, size_t word, keel_compare how, int64_t value, int from,
                                    int64_t *got)
{
    return signal_wait(client(), s, word, how, value, from, got);
}

static keel_status below_group_create(const int *ranks, int n, uint64_t tag, keel_group **group)
{
    return coll_create(client(), ranks, n, tag, group);
}

static keel_status below_group_split(keel_group *parent, int colour, int key, keel_group **group)
{
    return coll_split(parent, colour, key, group);
}

static keel_status below_group_barrier(keel_group *group)
{
    struct engine_call call = {.kind = ENGINE_BARRIER};
    return coll_run(group, &call, NULL);
}

/* Of integers. */
static keel_status below_group_allreduce(keel_group *group, const void *in, void *out, size_t n,
                                         const keel_combine *how)
{
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_ALLREDUCE, .in = in, .out = out, .early = true};
    call.element = (struct element){.type = (enum element_type)how->type, .op = (enum element_op)how->op};
    call.len = n * sizeof(int64_t);
    return coll_run(group, &call, NULL);
}

static int below_group_size(const keel_group *group)
{
    return group_size(group->ranks);
}

static keel_status below_segment_alloc_group(keel_group *group, const size_t *bytes, keel_redundancy redundancy,
                                             keel_segment **out)
{
    return segment_alloc_group(group, bytes, redundancy, out);
}

static void *below_address(keel_segment *s, int rank)
{
    return segment_address(s, rank);
}

static size_t below_segment_bytes(const keel_segment *s, int rank)
{
    return (size_t)s->part_bytes[rank];
}

static keel_status below_segment_describe(const keel_segment *s, int rank, keel_segment_part *out)
{
    return segment_describe(s, rank, out);
}

static keel_status below_segment_free(keel_segment *s)
{
    return segment_free(client(), s);
}

static keel_status below_segment_attach(const keel_segment_part *part, keel_segment **out)
{
    return segment_attach_part(client(), part, out);
}

static keel_status below_event(const char *name, int64_t number, const char *text)
{
    (void)number;
    world_say(self()->w, "event %s: %s", name, text);
    return KEEL_OK;
}

static keel_status below_finalize(void)
{
    program_leave(self()->program);
    return KEEL_OK;
}

const struct api_calls below_calls = {.put = below_put,
                                      .put_nb = below_put_nb,
                                      .get = below_get,
                                      .wait = below_wait,
                                      .fence_all = below_fence_all,
                                      .acc = below_acc,
                                      .acc_nb = below_acc_nb,
                                      .rmw = below_rmw,
                                      .fetch_add = below_fetch_add,
                                      .compare_swap = below_compare_swap,
                                      .signal = below_signal,
                                      .wait_until = below_wait_until,
                                      .group_create = below_group_create,
                                      .group_split = below_group_split,
                                      .group_barrier = below_group_barrier,
                                      .group_allreduce = below_group_allreduce,
                                      .group_size = below_group_size,
                                      .segment_alloc_group = below_segment_alloc_group,
                                      .address = below_address,
                                      .segment_bytes = below_segment_bytes,
                                      .segment_describe = below_segment_describe,
                                      .segment_attach = below_segment_attach,
                                      .segment_free = below_segment_free,
                                      .event = below_event,
                                      .finalize = below_finalize};

/* ---- what libkeel has beside it ---- */

const struct api_calls *calls_now(void)
{
    return self()->calls ? self()->calls : &below_calls;
}

const struct api_calls *calls_wrap(const struct api_calls *wrapper)
{
    const struct api_calls *before = calls_now();
    self()->calls = wrapper;
    return before;
}

void public_groups_are(keel_group *of_all, keel_group *on_node)
{
    (void)of_all, (void)on_node;
}

keel_status public_wrong(void)
{
    return KEEL_ERR_ARG;
}

/* Programs of the simulation add doubles. */
bool public_coll_combine(struct engine_call *call, const keel_combine *how, size_t n)
{
    call->element = (struct element){.type = (enum element_type)how->type, .op = (enum element_op)how->op};
    call->len = n * element_size(&call->element);
    return true;
}

void channel_event(const char *name, int64_t number, const char *text)
{
    (void)number;
    world_say(self()->w, "event %s: %s", name, text);
}

/* As its agent would have it: the set is retired by a process that ends so. */
void keel_abort(int code, const char *message)
{
    struct runner *r = self();
    replicas_told(r, message);
    runner_exit(r, code);
    __builtin_unreachable();
}

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the names are the linker's
int __wrap_nanosleep(const struct timespec *nap, struct timespec *left);
int __wrap_on_exit(void (*function)(int code, void *arg), void *arg);
int __wrap_fprintf(FILE *to, const char *format, ...);

int __wrap_nanosleep(const struct timespec *nap, struct timespec *left)
{
    (void)left;
    process_spend(process_current(), (uint64_t)nap->tv_sec * SEC + (uint64_t)nap->tv_nsec);
    return 0;
}

int __wrap_on_exit(void (*function)(int code, void *arg), void *arg)
{
    (void)function, (void)arg;
    return 0;
}

/* What a process writes for people. */
int __wrap_fprintf(FILE *to, const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (process_current())
        replicas_told(self(), text);
    else
        fputs(text, to);
    return n;
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
