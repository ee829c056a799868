/* What acting.c, acting_once.c and acting_pass.c share; nobody else includes this. */
#ifndef KEEL_CLIENT_REPLICA_ACTING_INT_H
#define KEEL_CLIENT_REPLICA_ACTING_INT_H

#include "runtime/client/client.h"
#include "runtime/client/replica/kept.h"
#include "runtime/client/replica/passing.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/waits.h"

/* What an atomic has found, in a set in which its target lives. */
struct acting_found {
    bool is;
    int64_t value;
};

/* What is the wrapper's own. */
struct acting_room {
    struct passing passing; /* its blocks come first, with a word behind them: acting_pass.c */
    size_t told;            /* where words about deaths begin */
    keel_segment *segment;
    uint8_t *part; /* this rank's */
};

/* ---- acting.c ---- */

/* Waits a moment for another view. */
void acting_await_view(struct wait *wait);
/* The rank's part there; NULL: nothing goes there any more. */
keel_segment *acting_segment(const struct kept_write *w, int set);
/* The epoch of the last death that this process knows of. And: until it knows of all up to that one. */
uint64_t acting_deaths(void);
void acting_learn(uint64_t epoch);
/* Before a signal: its target is told what this process knows of deaths. */
keel_status acting_tell_deaths(int set, int rank);
/* Kept, and written in all sets for which this replica acts. found: NULL, or of an atomic. */
keel_status acting_writes(const struct kept_write *w, struct acting_found *found);
/* The set whose memory this replica reads of the rank; -1: it lives nowhere. */
int acting_reads(int rank);
/* As replica_waits, in this call; but for keel_wait_until somebody always changes the word. */
keel_status acting_waits(enum wait_call call, keel_segment *segment, size_t word, keel_compare how, int64_t value,
                         int from, int64_t *got);

/* ---- acting_pass.c ---- */

/* room: whose passing is set; the caller's, for good. Returns the bytes that it takes. */
size_t acting_pass_begin(struct acting_room *room);

/* ---- acting_once.c ---- */

/* Signals have no order among them; accumulates and atomics have one in all sets. */
static inline bool acting_is_ordered(const struct kept_write *w)
{
    return w->pass == KEPT_NAMED && !w->once.unordered;
}
keel_status acting_once_in(int set, const struct kept_write *w, struct acting_found *found);

/* ---- acting_mail.c ---- */

void acting_mail_begin(const struct api_calls *library);
/* A message, to the rank's process in that set. blocks   until that has it, or has died. */
keel_status acting_mail_in(int set, const struct kept_write *w);
keel_status act_message_send(int native, uint32_t tag, const void *data, size_t len);
keel_status act_message_receive(int native, uint32_t tag, void *data, size_t max, size_t *len, int *from);
keel_status act_message_test(int native, uint32_t tag, size_t *len, int *from);

/* ---- acting_calls.c: of the library's calls, with native ranks of the own set ---- */

/* -1: it is none. */
int acting_rank_of(int native);
/* Can it be done with these bytes? No: the library refuses it. */
bool acting_may(const keel_segment *segment, int native, size_t offset, const void *bytes, size_t len);
void acting_binds_segment(const keel_segment *segment);
/* What is begun has ended when its call returns. */
#define ACTING_BEGUN(name, parameters, arguments)                                                                      \
    keel_status act_##name##_nb parameters                                                                             \
    {                                                                                                                  \
        keel_status status = rma_use_at_once(replica.client, handle);                                                  \
        return status == KEEL_OK ? act_##name arguments : status;                                                      \
    }

/* ---- acting_adds.c ---- */

void acting_adds_begin(const struct api_calls *library);
keel_status act_acc(keel_segment *segment, int native, size_t offset, keel_type type, const void *scale,
                    const void *src, size_t n);
keel_status act_acc_nb(keel_segment *segment, int native, size_t offset, keel_type type, const void *scale,
                       const void *src, size_t n, keel_handle *handle);
keel_status act_acc_double(keel_segment *segment, int native, size_t offset, double scale, const double *src, size_t n);
keel_status act_acc_vector(keel_segment *segment, int native, keel_type type, const void *scale,
                           const keel_piece *pieces, size_t n);
keel_status act_acc_vector_nb(keel_segment *segment, int native, keel_type type, const void *scale,
                              const keel_piece *pieces, size_t n, keel_handle *handle);
keel_status act_acc_strided(keel_segment *segment, int native, size_t offset, keel_type type, const void *scale,
                            const void *src, const keel_strided *how);
keel_status act_acc_strided_nb(keel_segment *segment, int native, size_t offset, keel_type type, const void *scale,
                               const void *src, const keel_strided *how, keel_handle *handle);
keel_status act_rmw(keel_segment *segment, int native, size_t offset, keel_type type, keel_rmw_op op,
                    const void *operand, const void *expected, void *old);
keel_status act_fetch_add(keel_segment *segment, int native, size_t offset, int64_t add, int64_t *old);
keel_status act_compare_swap(keel_segment *segment, int native, size_t offset, int64_t expected, int64_t desired,
                             int64_t *old);
#endif
