/* One phase of a view change: what a member knows of it. How it goes: wave.c. */
#ifndef KEEL_DETECT_WAVE_H
#define KEEL_DETECT_WAVE_H

#include "detect/datagram.h"
#include "detect/idset.h"

enum { FANOUT = 8, PIECES_MAX = 32, DIRECT_MAX = 64 };

/* Whom a member passes a message on to: the head of these ids, for all of them. */
struct piece {
    int head, end;
};

/* One phase under way: as root (coordinator), inner node or leaf of the tree. */
struct wave {
    enum wave_phase phase;
    int root, parent;
    uint64_t ballot, index;
    uint64_t started;
    int end;  /* this member's part: the ids from its own up to here, exclusive */
    int size; /* members of the tree in it, itself included */
    int n_pieces;
    struct piece piece[PIECES_MAX];
    bool self_done, full_sent, answer_root;
    bool certain;        /* whom the tree leaves out is dead for certain, or declared in this batch */
    uint64_t child_done; /* bit i: all of piece i is complete */
    uint64_t value;      /* PREPARE: max so far. ACCEPT, COMMIT: the decision's */
    struct batch batch;
    uint64_t best_ballot; /* COLLECT: highest accepted proposal of the subtree, 0: none */
    struct batch best;
    uint64_t best_value;
    int attempts;
    uint64_t next_resend, rto;
    struct idset out; /* not in the tree: declared dead before the index, or left out by the root */
    int n_left, cap_left;
    /* of these, in ascending order, whom the root left out and does not declare in this batch; at others: those that
     * it named to them */
    int *left;
    uint64_t
        *acked; /* root: bitset of positions, acked_words long; behind it, of those that said that they are at work: */
    uint64_t *heard;
    unsigned acked_words;
    int direct_at, direct,
        direct_answers; /* root: the next position to write to directly; those written to last; what came since */
    uint64_t told_at;   /* root: of deaths, those who have not answered */
    int copy_from; /* the message that we answer: whose, its number (when it was sent), and when it came (outer time) */
    uint64_t copy_nonce, copy_at;
};

/* wave.c */
void wave_start(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch, uint64_t value);
void wave_join(struct member *m, const struct datagram *msg);
void wave_ack(struct member *m, const struct datagram *msg);
void wave_self_done(struct member *m);
void wave_cancel(struct member *m);
void wave_tick(struct member *m);

/* wave_send.c */
void wave_send_down(struct member *m, struct piece to, bool direct);
/* To one of our children for its piece, to others for themselves. */
void wave_send_direct(struct member *m, int id);
void wave_send_to_children(struct member *m); /* to those whose part has not answered */
void wave_send_ack(struct member *m, int to, unsigned flags);

/* wave_root.c: of a wave whose root this member is */
/* Did every member of the view answer, but those that the batch declares dead? Who is only believed dead may live, and
 * then has not. */
bool wave_everybody(struct member *m);
void wave_recheck(struct member *m);                   /* somebody was found dead, or time has passed */
void wave_tell_deaths(struct member *m);               /* to those who have not answered a PREPARE */
bool wave_waits_for(const struct member *m, int node); /* for its answer */
bool wave_make_acked(struct wave *r, int size);        /* of nobody; false: no memory */
void wave_write_again(struct member *m);               /* directly to the next of those whose answer is missing */
void wave_note_direct_answer(struct member *m);        /* one of those written to has answered */
/* So many in the tree have died since the phase began that most parts of it will not be complete. */
bool wave_is_torn(const struct member *m);
#endif
