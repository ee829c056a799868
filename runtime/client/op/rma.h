/* One-sided calls on an instance, with the checks of their arguments. */
#ifndef KEEL_CLIENT_OP_RMA_H
#define KEEL_CLIENT_OP_RMA_H

#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/client/op/plan.h"
#include "runtime/wire/limits.h"

struct client;
struct op;

keel_status rma_put(struct client *c, keel_segment *s, int rank, size_t offset, const void *src, size_t len);
keel_status rma_get(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len);
keel_status rma_get_strong(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len);
keel_status rma_start(struct client *c, enum op_kind kind, keel_segment *s, int rank, size_t offset, const void *src,
                      void *dst, size_t len, keel_handle *handle);
keel_status rma_start_strong(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len,
                             keel_handle *handle);
/* Start an operation of op_alloc; lock held. handle: in use (handle.h), or NULL. */
void rma_op_start(struct op *op, keel_handle *handle);
/* The part may be reached by plain loads and stores from now on. */
void rma_near_update(struct client *c, keel_segment *s, int rank);
keel_status rma_aggregate(struct client *c, keel_handle *handle);
keel_status rma_wait_all(struct client *c, keel_handle *handles, size_t n);
keel_status rma_wait_any(struct client *c, keel_handle *handles, size_t n, size_t *which);
keel_status rma_wait(struct client *c, keel_handle *handle);
keel_status rma_test(struct client *c, keel_handle *handle);
keel_status rma_fence(struct client *c, int rank); /* -1: all */
void rma_acc_init(struct client *c, struct op *op, keel_segment *s, int rank, size_t offset, keel_type type,
                  const void *scale, const void *src, size_t n);
keel_status rma_acc(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                    const void *src, size_t n);
/* For an operation that ends in the call itself: no lock, if no other uses the handle, which may be NULL. */
keel_status rma_use_at_once(struct client *c, keel_handle *handle);
keel_status rma_acc_nb(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                       const void *src, size_t n, keel_handle *handle);
keel_status rma_rmw(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, keel_rmw_op op,
                    const void *operand, const void *expected, void *old);
keel_status rma_fetch_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add, int64_t *old);
/* The same where nobody is told what was there: sets of replicas need no order for it. */
keel_status rma_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add);
/* What counts once, under a name that its caller has drawn: by the agent, to the part of each set in which it is to
 * count. One at a time, and in the order of the names, as agents take a lower one for done. */
struct rma_named {
    uint64_t name;
    enum op_kind kind; /* OP_ACC, or OP_RMW: */
    bool unordered;    /* an addition of which nobody is told what it found */
    uint32_t what;     /* keel_rmw_op; of an accumulate the keel_type of its elements */
    uint8_t word;      /* bytes of an atomic */
    int64_t a, b;      /* its operands, as in arith_rmw; of an accumulate its scale */
    bool packed;       /* src has pieces from the offset on (wire/pack.h) */
    const void *src;   /* of an accumulate: len bytes, of one message */
    size_t len;
};
enum { RMA_NAMED_MAX = WIRE_BODY_MAX }; /* bytes of an accumulate that are one message, however far it is */
uint64_t rma_draw_name(struct client *c);
/* found: what an atomic returns, or NULL. */
keel_status rma_run_named(struct client *c, keel_segment *s, int rank, size_t offset, const struct rma_named *how,
                          int64_t *found);
/* What keel_rmw has been given, without its name. False: it is refused, if its word is anywhere. */
bool rma_name_rmw(keel_type type, keel_rmw_op op, const void *operand, const void *expected, struct rma_named *out);
/* What that found, as the caller of keel_rmw wants it; old may be NULL. */
void rma_store_found(const struct rma_named *how, int64_t found, void *old);
keel_status rma_compare_swap(struct client *c, keel_segment *s, int rank, size_t offset, int64_t expected,
                             int64_t desired, int64_t *old);
#endif
