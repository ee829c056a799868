/* The collectives of one group, as one member sees them: barrier, agreement, shrink (liveness discovery), and
 * everything that moves data, all surviving any deaths. One struct per member and group; pure: no I/O, no clock. The
 * runtime and the simulators drive the same code. docs/protocols/collectives.md has the argument.
 *
 * An instance (one call on all members) goes through attempts. An attempt moves data after a schedule over the members
 * that live in one view, then all live members meet and decide: everybody has the result of the same attempt - done -
 * or not - a new attempt over those who live in the view of the decision, from the caller's untouched input - or an
 * error, the same for all. What moves no data has attempts that consist of the meeting alone.
 *
 *                  schedule finished, or it cannot be (view, loss, mismatch)
 *   ATTEMPT a ------------------------------------------------------------> MEETING a --- decided ---> complete
 *      ^                                                                     |   ^  |
 *      |                                                                     |   +--+ view: start again
 *      +------------------- decided: not all have it ------------------------+
 *
 * Two streams of instances, each numbered 1, 2, ... in the order of the calls, the same on all members: ordinary
 * ones, and agreements (agree, shrink), which also work on a revoked group.
 *
 * threads   none inside; the owner serialises. Callbacks come from inside the calls.
 * source    FT-ARMCI (barrier), Liveness-discovery (shrink, agree); see collectives/meet.h for what differs. */
#ifndef KEEL_COLLECTIVES_ENGINE_H
#define KEEL_COLLECTIVES_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/board.h"
#include "collectives/element.h"
#include "collectives/meet.h"
#include "collectives/roster.h"
#include "collectives/schedule.h"

enum engine_status {
    ENGINE_OK,
    ENGINE_BAD, /* of engine_start: an argument is wrong; nothing was started */
    /* of engine_start: too many instances are not complete; or one for which there was no memory is not, and
     * there is none for another */
    ENGINE_LIMIT,
    ENGINE_NOMEM,     /* some member had no memory */
    ENGINE_MISMATCH,  /* the members' arguments do not fit together */
    ENGINE_ROOT_DEAD, /* the root died, and with it what only it had, or what only it was to get */
    ENGINE_REVOKED,
    ENGINE_LATE, /* the others decided in a view before this member's first: it came too late to take part */
};

enum engine_kind {
    ENGINE_BARRIER,
    ENGINE_SHRINK, /* who lives: the result's members */
    /* on call.value, combined by call.agree; what a member that died returned is what the others return */
    ENGINE_AGREE,
    /* the same among the ordinary calls: whoever joined after it is told the value, too. call.arguments are the same on
     * all, and call.place where it is said, or all are told ENGINE_MISMATCH, and the value. It needs no memory but
     * what was put by. */
    ENGINE_DECIDE,
    ENGINE_MOVE, /* data, by call.move */
};

enum engine_agree { ENGINE_AND, ENGINE_OR, ENGINE_MIN, ENGINE_MAX };

enum { ENGINE_EARLY_MAX = 16384 }; /* longer ones wait, whatever call.early says */
enum { ENGINE_WINDOW = 64 };       /* instances of a stream that may be incomplete at a time */

/* Blocks of members, one entry each, in bytes. */
struct engine_blocks {
    const size_t *at, *len;
};

struct engine_call {
    enum engine_kind kind;
    enum meet_shape shape;   /* of the meeting; the same on all members */
    enum engine_agree agree; /* AGREE, DECIDE */
    uint64_t value;
    uint64_t arguments, place; /* DECIDE, and the first of BARRIER: what it is for; place 0: not said */
    /* ENGINE_MOVE. in and out: as in schedule.h, but with blocks by member instead of place; both stay valid until
     * done. in may be equal to out; otherwise they do not overlap. Blocks of members that the result does not cover are
     * filled with zeros. For BCAST there is only out; for REDUCE members other than the root give out too, len bytes
     * that may be overwritten. */
    enum schedule_kind move;
    int root; /* member */
    const void *in;
    void *out;
    size_t len; /* BCAST to EXSCAN: bytes of the vector; others, if all blocks are equal: bytes of a block */
    struct element element;                     /* reductions */
    bool commutes;                              /* of a user's operation; the others all do */
    bool varying;                               /* blocks have different lengths: */
    size_t mine;                                /* GATHER, SCATTER, ALLGATHER: bytes of the own block */
    struct engine_blocks in_blocks, out_blocks; /* where the kind has them; REDUCE_SCATTER: in_blocks cover len bytes */
    /* ALLREDUCE, ALLGATHER, BCAST of at most ENGINE_EARLY_MAX bytes, ALLTOALL of at most as many given where two live:
     * done when the data are here, without a meeting. A copy of the result (of what was given) is kept for those who
     * have not got it, until it is known that all have returned: they meet when somebody asks. (A broadcast's meeting
     * goes on at once.) Who lives gets the same, as ever; but a member that returns and dies may have returned what
     * the others did not, and of a broadcast a mismatch may be told to some only, and it does not wait for all to
     * have begun. Who leaves settles first (engine_settle). */
    bool early;
    /* this member's owner has no memory for it: all are told ENGINE_NOMEM; in, out and blocks are not looked at */
    bool refuses;
    int algorithm; /* enum schedule_algorithm + 1 to force one that fits, 0: the table chooses */
};

struct engine_result {
    enum engine_status status;
    uint64_t value; /* AGREE, DECIDE */
    /* whom the result covers; NULL with an error, and for who joined later. Valid during the callback: take a
     * reference */
    const struct roster *members;
    uint64_t epoch; /* for who joined later and is told the others' result: of the view that they decided in; else 0 */
};

struct engine_ops {
    void *user;
    /* Reliable and in order while the connection holds; what is lost with it is made good (see engine_lost). True (and
     * always with seq 0): data may be changed at once. False: the engine does not touch data until engine_sent(member,
     * seq), which must come, also if the peer died; for what goes to one member in the order of sending. */
    bool (*send)(void *user, int member, uint64_t seq, const void *head, size_t head_len, const void *data, size_t len);
    /* The instance is complete. Once for each started one; may come from within engine_start. May call engine_start. */
    void (*done)(void *user, uint64_t seq, const struct engine_result *result);
    /* The call is complete but for data that are under way, and has been for a while, or could return early: whoever
     * they go to may compute, and need not say for long that it has them. Whoever can copies them, and says
     * engine_sent, from within this call if it likes. NULL: nobody can. */
    void (*keep)(void *user, uint64_t seq);
    /* The call is complete, and whatever was sent of it to members that live has arrived, as their votes say: it need
     * not be sent again, nor be acknowledged. engine_sent, as in keep. NULL: who sends learns of it otherwise. */
    void (*arrived)(void *user, uint64_t seq);
    /* The call has failed, for all who live: nobody needs data that were sent of it and are under way. engine_sent,
     * as in keep. NULL: they are waited for. */
    void (*useless)(void *user, uint64_t seq);
    /* engine_pair: that member waits in a call of this engine, and this one in a call of the other. NULL: nobody
     * wants to know. */
    void (*misfit)(void *user, int member);
};

struct engine;

/* In two steps, of which the first takes all memory, for at most n members; NULL if out of it. The second: for member
 * self of group `id`, of which those in roster live. node[n]: of each member, for two-level algorithms, or NULL; the
 * caller's, kept. The roster gets a reference. */
struct engine *engine_room(int n);
void engine_init(struct engine *e, uint64_t id, int self, struct roster *roster, const int *node,
                 const struct engine_ops *ops);
void engine_destroy(struct engine *e); /* takes NULL; no callback */
/* Of a new engine: so many agreements of this group were complete before it was made (an earlier engine had the same
 * identity). */
void engine_skip_agreements(struct engine *e, uint64_t number);
uint64_t engine_agreements_started(const struct engine *e);
/* Something has come for a call that is not started here. */
bool engine_has_early(const struct engine *e);
/* Of a new engine, the same on all members: members may join later, with a roster that names them. So many ordinary
 * calls were complete when this one joined (0: it was there from the start), as a member that lives has counted them;
 * others may be one ahead, and some one behind: of the calls up to that number it is no member (roster_set_after).
 * Barriers, broadcasts and allreduces keep their results until nobody can join who has not got them: a member that
 * comes too late for such a call, which would be ENGINE_LATE, gets the status and the bytes that the others got.
 * False: there is no memory. */
bool engine_join(struct engine *e, uint64_t complete);

/* Of the calls that end when the group is revoked? */
bool engine_is_ordinary(uint64_t seq);
/* A member is in a call of one of the two at a time, and all make the calls of both in one order: where one waits in a
 * call of one engine and another in a call of the other, neither would ever go on. Whoever finds that tells by
 * ops.misfit, and both engines are revoked, on all members. Groups of the same members. */
void engine_pair(struct engine *a, struct engine *b);

/* Of those of its stream, from 1 on. */
uint64_t engine_number(uint64_t seq);
/* The next instance of its stream. *seq names it. ENGINE_OK, ENGINE_BAD, ENGINE_LIMIT, ENGINE_REVOKED: with an
 * error nothing was started. Without memory for its part the member takes part all the same, in memory that was put by,
 * and all are told ENGINE_NOMEM. */
enum engine_status engine_start(struct engine *e, const struct engine_call *call, uint64_t now, uint64_t *seq);

/* ---- without messages (collectives/board.h) ----
 * Members that share memory may do a call there, as long as all who live take that way. A call that was posted is
 * looked at until it is done, or left; then engine_start does it with messages, with the same arguments. Either way it
 * is one call of its stream. Nothing else of its stream is begun before it is complete.
 *
 *   engine_post ──► engine_look ... ──► ENGINE_POST_DONE
 *                        │ engine_look, engine_leave
 *                        └──────────────► ENGINE_POST_LEFT ──► engine_start */
enum engine_post {
    ENGINE_POST_WAITS,
    ENGINE_POST_GOES_ON, /* has met once more, and waits again */
    ENGINE_POST_DONE,
    ENGINE_POST_LEFT,
};

/* All members that live now have this board, line m is member m's; NULL: it is not so, or not any more. To be said with
 * each view that changes it, before the next call; not while a call is posted. False: there is no memory. */
bool engine_board(struct engine *e, const struct board *board);
/* Post the next call of its stream. False: it cannot be done so, or is rarely (nothing has happened). */
bool engine_post(struct engine *e, const struct engine_call *call);
uint64_t engine_posted(const struct engine *e); /* the name of the last one */
/* How many turns the call that was posted takes at least. */
unsigned engine_turns(const struct engine *e);
/* This process runs on that processor, counted from 1 (0: unknown): said with what is posted from now on, and who of
 * those that the call waits for said the same last. -1: nobody. */
int engine_beside(struct engine *e, uint32_t processor);
/* DONE: *result is there, members as in done, until the next call on the engine. */
enum engine_post engine_look(struct engine *e, struct engine_result *result);
/* Wait no longer: DONE or LEFT. */
enum engine_post engine_leave(struct engine *e, struct engine_result *result);
/* The call that was left: the same, but that its input may be elsewhere, until engine_left_free. */
const struct engine_call *engine_left(const struct engine *e);
void engine_left_free(struct engine *e);

/* A newer view: epochs rise from call to call. Nothing is taken any more from those who are dead in it. False: there
 * was no memory, nothing has changed. */
bool engine_view(struct engine *e, struct roster *roster, uint64_t now) __attribute__((warn_unused_result));
void engine_receive(struct engine *e, int from, const void *data, size_t len, uint64_t now);
/* A piece of a long message that comes in pieces, in their order: `total` bytes of data after the head, of which these
 * are those from `at` on. True: it was taken, or nobody needs it any more. False (of the first only): the engine takes
 * it as a whole. Lengths, but for the last, are multiples of ENGINE_PIECE_UNIT. */
enum { ENGINE_HEAD = 40, ENGINE_PIECE_UNIT = 8 };
bool engine_place(struct engine *e, int from, const void *head, size_t total, size_t at, const void *data, size_t len,
                  uint64_t now);
/* A message whose first bytes are these could not be kept for want of memory: a call that needs it ends with
 * ENGINE_NOMEM, on all. */
void engine_starved(struct engine *e, int from, const void *head, size_t len, uint64_t now);
void engine_sent(struct engine *e, int member, uint64_t seq, uint64_t now);
/* What was sent to a live member may be lost: the connection broke. */
void engine_lost(struct engine *e, int member, uint64_t now);
/* Data for a live member were not sent, as there was no memory: what moves them just now ends with ENGINE_NOMEM, on
 * all. */
void engine_unsent(struct engine *e, int member, uint64_t now);
void engine_tick(struct engine *e, uint64_t now);
uint64_t engine_deadline(const struct engine *e); /* when to tick; UINT64_MAX: never */
/* This member's ordinary calls, pending and future ones, return ENGINE_REVOKED, and soon everybody's. */
void engine_revoke(struct engine *e, uint64_t now);

/* The same, because of that member, as all will know: engine_blamed. */
void engine_revoke_for(struct engine *e, int member, uint64_t now);
int engine_blamed(const struct engine *e); /* -1: nobody */

bool engine_revoked(const struct engine *e);
/* Before this member leaves, which is no death: what it has returned early reaches all who live, too. Settled: it
 * has. */
void engine_settle(struct engine *e, uint64_t now);
bool engine_settled(const struct engine *e);
/* The first call of which it is not so, or 0. */
uint64_t engine_unsettled(const struct engine *e);
/* Ordinary calls: up to that number all have returned here, and so many were begun. */
void engine_calls(const struct engine *e, uint64_t *returned, uint64_t *begun);
/* Whom the instance waits for right now, or -1: for a check of its life, and for messages about a hang. */
int engine_waits_for(const struct engine *e, uint64_t seq);
/* The group a message is for. False: not a message of collectives. */
bool engine_peek(const void *data, size_t len, uint64_t *group);
#endif
