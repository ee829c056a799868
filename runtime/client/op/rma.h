/* One-sided calls on an instance, with the checks of their arguments. */
#ifndef KEEL_CLIENT_OP_RMA_H
#define KEEL_CLIENT_OP_RMA_H

#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/client/op/plan.h"

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
keel_status rma_acc_double(struct client *c, keel_segment *s, int rank, size_t offset, double scale, const double *src,
                           size_t n);
keel_status rma_rmw(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, keel_rmw_op op,
                    const void *operand, const void *expected, void *old);
keel_status rma_fetch_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add, int64_t *old);
/* The same where nobody is told what was there: sets of replicas need no order for it. */
keel_status rma_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add);
/* The same under a name of rma_draw_name, by the agent: to the part of each set in which it is to count. One at a time,
 * and in the order of the names, as agents take a lower one for done. */
uint64_t rma_draw_name(struct client *c);
keel_status rma_add_named(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add, uint64_t name);
keel_status rma_compare_swap(struct client *c, keel_segment *s, int rank, size_t offset, int64_t expected,
                             int64_t desired, int64_t *old);
#endif
