/* The operations of a process: those under way, those that wait in line, and memory for more. Lock held. */
#ifndef KEEL_CLIENT_OP_OPS_H
#define KEEL_CLIENT_OP_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/client/op/errors.h"
#include "runtime/client/op/lane.h"

struct op;
struct packed;
struct piece;

enum { SEQ_SLOTS = 256 }; /* hash of messages that wait for an answer */

/* Messages with many pieces (packed.h). */
struct packed_pool {
    struct packed *free;
    uint64_t living, bytes;
};

/* What each operation looks at comes first. */
struct ops {
    struct op *active, *active_last;
    struct op *waiting, **waiting_tail; /* served in order when something is given back */
    struct piece *free_pieces;
    struct op *free;
    uint64_t next_seq;
    int messages;         /* awaiting answers */
    int large;            /* announced puts under way */
    bool serve;           /* something was given back */
    struct op *announced; /* active puts some plan of which was in chunks */
    uint64_t next_number; /* of puts */
    uint64_t living;      /* of op_alloc; for leak checks, as the next one */
    uint64_t pieces_living;
    struct errors errors; /* of implicit ones */
    struct packed_pool packed;
    struct piece *by_seq[SEQ_SLOTS];
    struct lanes lanes;
};

void ops_init(struct ops *o);
/* Nothing is under way. */
void ops_fini(struct ops *o);
#endif
