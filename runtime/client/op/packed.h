/* Messages with many small pieces of a strided or vector operation (wire/pack.h), composed here: each is an operation
 * of its own, in one message. Under the client's lock. */
#ifndef KEEL_CLIENT_OP_PACKED_H
#define KEEL_CLIENT_OP_PACKED_H

#include "runtime/client/client.h"
#include "runtime/wire/pack.h"

/* Of a client at a time. More bytes fill no wire better; they only fall out of the caches before the agents come to
 * them. */
enum { PACKED_MAX = 16, PACKED_BYTES_MAX = 2 * PACK_BODY_MAX };

struct packed {
    struct packed *next;
    size_t runs, bytes;
    uint64_t base;              /* where the message's offset is, in the rank's part */
    char *local[PACK_RUNS_MAX]; /* a get's: where each piece goes */
    size_t len[PACK_RUNS_MAX];
    uint8_t body[PACK_BODY_MAX];
};

/* What one message can have of what comes next. */
struct packing {
    size_t run_max;     /* of a piece */
    uint64_t reach_max; /* from the first byte to the last */
    size_t runs, bytes;
    uint64_t first, end; /* where the pieces lie */
};
/* False: the piece does not fit any more. */
bool packing_add(struct packing *p, const keel_piece *run);

/* NULL: out of memory. */
struct packed *packed_take(struct packed_pool *pool);
void packed_give(struct packed_pool *pool, struct packed *p);
void packed_free_all(struct packed_pool *pool);
/* For one more: whether there are neither too many on their way, nor too many bytes. */
bool packed_has_room(void *pool);
/* An operation of op_alloc becomes this one; the pieces come with packed_add, as many as p says. */
void packed_init(struct client *c, struct op *op, struct packed *packed, const struct packing *p, enum op_kind kind,
                 keel_segment *s, int rank);
void packed_add(struct packed *packed, struct pack_writer *w, enum op_kind kind, const keel_piece *run);
/* The pieces of a get to where they go. */
void packed_answered(const struct packed *p, const uint8_t *data, size_t len);
#endif
