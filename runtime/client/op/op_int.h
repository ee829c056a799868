/* Between the rooms of an operation:
 *   op.c        from the call to the end: plan, advance, finish
 *   op_piece.c  its pieces, on their way to a node each
 *   op_name.c   its name, if it counts once, and its turn in its lane
 *   op_note.c   its notes at agents
 *   op_hold.c   what else it holds of what is limited, and the line of those who wait for that
 *   op_send.c   sending pieces, as far as the plan allows
 *   op_event.c  what comes back */
#ifndef KEEL_CLIENT_OP_OP_INT_H
#define KEEL_CLIENT_OP_OP_INT_H

#include "runtime/client/op/op.h"
#include "runtime/wire/stripe.h"

/* op.c: atomics and barrier entries have no bytes; they are one unit long. */
bool op_is_unit(const struct op *op);
/* A put whose bytes are in the copy here from the beginning; once that is mapped. */
bool op_is_in_place(const struct op *op);

/* op_piece.c. NULL: out of memory. */
struct piece *piece_new(struct op *op, int leg, const struct stripe_piece *part);
/* It goes out as a message: it gets a seq, by which its answer finds it. */
void piece_hash(struct piece *p);
struct piece *piece_of(const struct client *c, uint64_t seq);
/* Its message is not on its way any more. */
void piece_unhash(struct piece *p);
void piece_free(struct piece *p);
/* Nothing more is expected of it, but perhaps the provider's event. */
void piece_done(struct piece *p);
/* Take back what is on its way by message; accesses use our memory and must end by themselves (a dropped connection
 * flushes them). What counts once keeps its pieces, unless all are taken: they are sent again. */
void piece_take_back(struct op *op, bool all);

/* op_hold.c. The line: */
void hold_wait(struct op *op);
void hold_wait_no_more(struct op *op);
bool hold_others_wait(const struct op *op); /* they were first: what is free is theirs */
bool hold_has_some(const struct op *op);    /* of what others may be waiting for */
/* The entry of the intent page for the copy on this node; false: none is free. */
bool hold_intent(struct op *op);
void hold_intent_move(struct op *op, uint64_t end);
void hold_large_end(struct op *op);
/* All of it: the operation is complete. */
void hold_release(struct op *op);

/* op_name.c. At its start, and at its end: whoever comes next in its lane is served after those who wait already. */
void name_take(struct op *op);
void name_end(struct op *op);

/* op_note.c. A note at the agent of a leg for these bytes, the one that it has already if they are sent again; -1:
 * none is free. */
bool note_has_room(const struct op *op, int node);
int note_take(struct op *op, int node, const struct stripe_piece *part);
/* The leg has the bytes of the piece. When all have them nothing is in doubt there any more. */
void note_done(struct op *op, const struct piece *p);
/* Its plan is in chunks: from now on its notes may say "torn". */
void note_announce(struct op *op);
/* No agent that is alive can call a copy torn that this put has been to. */
bool note_all_given_back(struct op *op, uint64_t now);
/* The agent answers: the note that it was asked to forget under this number says nothing any more. */
void note_cleared(struct client *c, uint64_t seq);
/* To an agent that is connected again: what it was asked to forget. */
void note_clear_again(const struct client *c, int node);
void note_free_all(struct op *op);

/* op.c. May it end with an error, and nothing was done, if no more than that was sent? */
bool op_may_fail_here(const struct op *op, uint64_t sent);
/* There is none for something that it needs now. */
void op_no_memory(struct op *op, uint64_t now);

/* op_count.c. It has ended well. */
void op_count(const struct op *op);

/* op_send.c */
void op_post(struct op *op, int leg, uint64_t now);
bool op_store_here(struct op *op);
#endif
