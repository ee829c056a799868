/* Wrong bits on purpose in this process (base/flip.h): a wrapper (api/calls.h) around whatever else there is, also
 * where the program has no replicas. It is put in only if the job has rules.
 *
 *   inject.c    the rules of this process, and what an operation gets by them
 *   wrap.c      which calls are operations, and which bytes they send
 *   flight.c    contributions to collectives that are to be wrong on their way
 *   op/flying.h   a wrong bit that is to be in what an operation sends, not in the program's memory
 *
 * An operation is a call that sends bytes: put, accumulate, put with signal, message, contribution to a collective. All
 * rules draw once for each, in the order of calls. */
#ifndef KEEL_CLIENT_INJECT_INJECT_H
#define KEEL_CLIENT_INJECT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/client/api/calls.h"

/* The bytes of an operation, where the program has them. len bytes each `apart`, and so on: shape NULL: len bytes. */
struct inject_bytes {
    const void *at;
    size_t len; /* all of them */
    const keel_strided *shape;
    const keel_piece *pieces; /* NULL: at, by shape */
    size_t pieces_n;
};

struct inject_operation {
    const char *call;
    int target; /* rank, -1: none or all */
    const keel_segment *segment;
    uint64_t offset;
    struct inject_bytes bytes;
};

extern const struct api_calls *inject_below;

/* In keel_init, before and after replicas put in their wrapper. They do nothing without rules. */
void inject_below_replicas(void);
void inject_begin(void);
/* The operation is about to be made; it was made, and has begun if it is one that only begins. */
void inject_before(const struct inject_operation *o);
void inject_after(const struct inject_operation *o, keel_status status);
/* The bit is in what the operation under way contributes. */
void inject_has_flown(void);
/* No more operations: rules that found none are told of. Once. */
void inject_end(void);
/* The table with those calls replaced that are operations. */
void inject_fill_in(struct api_calls *table);
#endif
