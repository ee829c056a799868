/* Histories of one 64-bit word, and whether they are linearizable: is there an order of the operations, each somewhere
 * between its call and its return, in which every one returned what it did? An operation that never returned took
 * effect at any time after its call, or never. The search is that of Wing and Gong, with Lowe's memory of states
 * already seen.
 *
 * Plain gets are no part of that order, for what one saw of a write under way may be taken back. Each of them for
 * itself saw what was complete when it was called, and perhaps some of what was under way, which may be undone
 * later: it is the last operation of a history of those alone. */
#ifndef KEEL_TESTS_SIM_DATA_HISTORY_H
#define KEEL_TESTS_SIM_DATA_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/arith.h"

enum history_kind { HISTORY_RMW, HISTORY_PUT, HISTORY_GET, HISTORY_PLAIN_GET };

struct history_op {
    enum history_kind kind;
    enum arith_rmw rmw;
    int64_t a, b;              /* of the atomic; PUT: a */
    int64_t result;            /* RMW, gets: what it returned */
    uint64_t called, returned; /* returned UINT64_MAX: unknown */
    int rank;
};

struct history {
    struct history_op *op;
    size_t n, capacity;
};

/* The place of the operation in the history. */
size_t history_call(struct history *h, const struct history_op *op);
/* It was refused, and nothing was done. */
void history_refused(struct history *h, size_t at);
void history_return(struct history *h, size_t at, int64_t result, uint64_t now);
enum history_verdict { HISTORY_OK, HISTORY_BROKEN, HISTORY_TOO_LONG };
enum history_verdict history_check(const struct history *h, int64_t initial);
#endif
