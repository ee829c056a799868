/* Strided and vector operations on an instance. */
#ifndef KEEL_CLIENT_OP_SHAPED_H
#define KEEL_CLIENT_OP_SHAPED_H

#include <stdbool.h>
#include <stddef.h>

#include <keel/keel.h>

#include "runtime/client/op/plan.h"

struct client;

struct shaped {
    enum op_kind kind; /* OP_PUT, OP_GET, OP_ACC */
    keel_type type;    /* OP_ACC */
    const void *scale; /* OP_ACC; NULL: one */
    keel_handle *handle;
    bool blocks; /* until it is complete; without a handle */
};
keel_status shaped_strided(struct client *c, const struct shaped *how, keel_segment *s, int rank, size_t offset,
                           const void *local, const keel_strided *shape);
keel_status shaped_vector(struct client *c, const struct shaped *how, keel_segment *s, int rank,
                          const keel_piece *pieces, size_t n);
#endif
