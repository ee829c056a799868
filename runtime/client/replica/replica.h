/* A replica of a rank, where the program runs several times side by side (base/replica.h): what stands between the
 * program and the library, which counts the processes of all sets as native ranks. A wrapper (api/calls.h):
 *
 *   wrap*.c       ranks to native ranks and back; what means "all ranks" goes to the set's group
 *   rows.inc      what becomes of each public call
 *   bytes.c       which bytes a call would send
 *   exchange.c    replicas of a rank compare what they did (check.h), wherever a program relies on what it sent
 *   mismatch.c    what comes of a difference: told, or the majority's bytes are written over it
 *   landed.c      whether what was put lies where it was put (--check hash, all)
 *   vote.c        whether it lies so in all sets (--check all)
 *   came.c        what messages and collectives have brought (likewise)
 *   meeting.c     they leave it together, where one may do the part of a dead one later (partner.h)
 *   acting*.c     and does it
 *   elsewhere.c   segments of the other sets
 *   host.c        a set that begins anew reads what this one has (renew.h)
 *   guest.c       this set has begun anew
 *   world.c       the clock that libkeel-world.so shows the program (runtime/world), and ends without exit
 *   answer.c      what only one of them may decide: the leading one, and the others hear it
 *
 * Programs of one thread. Where several threads of a rank call, what they do must have an order that does not depend on
 * the moment. */
#ifndef KEEL_CLIENT_REPLICA_REPLICA_H
#define KEEL_CLIENT_REPLICA_REPLICA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <keel/keel.h>

#include "runtime/base/replica.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/replica/check.h"
#include "runtime/client/replica/partner.h"
#include "runtime/client/replica/passing.h"

enum { REPLICA_RING = 4096 };

/* The calls, as operations name them. */
enum replica_call {
#define STATUS_CALL(name, parameters, arguments) CALL_##name,
#define VALUE_CALL(result, name, parameters, arguments) CALL_##name,
#define VOID_CALL(name, parameters, arguments) CALL_##name,
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
    REPLICA_CALLS,
    REPLICA_CAME = 1 << 16 /* beside a call: what it has brought */
};

struct replica_self {
    struct client *client;
    const struct api_calls *below;
    int rank, size, set, sets;
    enum replica_check check;
    enum replica_mismatch on_mismatch;
    enum replica_share copies;   /* of a segment in this set: one, or all that the program asks for */
    bool partners;               /* one may do the part of another that has died */
    keel_group *group;           /* of the set */
    keel_group *on_node;         /* its ranks on this one's node */
    int nodes, *node;            /* of the set; [ranks] on which of them each is */
    int *native_node;            /* [nodes] */
    bool gone[REPLICAS_MAX];     /* that replica of this rank has ended, or this one's set goes on without it */
    uint32_t life[REPLICAS_MAX]; /* the incarnation of which it is; one that comes after it is another replica */
    pthread_mutex_t lock;        /* of what follows */
    struct check ops;
    struct check_entry ring[REPLICA_RING];
    uint64_t exchanges;
    uint64_t segments;      /* that this process has allocated */
    keel_segment **segment; /* [segments] by number, from 1; NULL: freed */
    uint64_t segments_max;
    uint64_t collectives; /* of all ranks that are complete */
    uint64_t epoch_seen;
    uint32_t guest;     /* attempt of its set, which has begun anew and has not joined yet (renew.h); 0: it is whole */
    uint64_t structure; /* the hash of the segments and groups that the program has made and freed */
    pid_t pid;          /* whose process it is */
    bool ended;         /* keel_finalize was called */
};
extern struct replica_self replica;

/* The program's rank as the library counts; what is no rank of the program is none of the library. */
static inline int replica_native_of(int rank)
{
    return rank >= 0 && rank < replica.size ? replica_native(&replica.client->replicas, rank, replica.set)
                                            : replica.client->size;
}

/* ---- exchange.c ---- */

/* An operation is about to be sent: it is compared at the next exchange. */
void replica_did(enum replica_call call, int target, const keel_segment *segment, uint64_t place, uint64_t len,
                 uint64_t bytes);
/* The same of bytes that lie together. */
void replica_did_bytes(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                       const void *bytes, size_t len);
/* Replicas of this rank compare all that they did; this one has come to that call. blocks   until the others have, or
 * have ended. */
keel_status replica_meet(enum replica_call call);
/* The same before bytes are sent that cannot be written over afterwards, as the last operation, which is named here.
 * *bytes: what to send, the caller's or those of the majority until the next such call. With two replicas it only
 * notes the operation: there is no majority, and the next exchange tells. */
keel_status replica_meet_before(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                                const void **bytes, size_t len);
/* Before an operation is told of: an exchange, where no more are remembered. */
keel_status replica_room(enum replica_call call);
/* A wait of this process lasts. */
void replica_lasts(void);
/* What a call below came to. Where a member of the set has died the set is retired: this process waits for its end,
 * and the call does not return. */
keel_status replica_after(keel_status status);
/* To a replica of this rank, with a tag; false: it has ended. An error of this process ends in *status. */
bool replica_send(int set, uint32_t tag, const void *data, size_t len, keel_status *status);
bool replica_hear(int set, uint32_t tag, void *data, size_t len, keel_status *status);
/* An answer; false also if that one compares where this one waits for an answer: they have parted. */
bool replica_hear_answer(int set, void *data, size_t len);
/* What a process has sent that ends now may be lost to one that stands still. So a replica that tells others of a
 * difference for which its set may end waits until they have said that they have read it.
 * blocks   until that one has said so, has ended, or has come to its next exchange, as it had to read nothing. */
bool replica_has_read(int set, keel_status *status);
void replica_await_reader(int set, keel_status *status);
const char *replica_call_name(enum replica_call call);

enum replica_tag {
    REPLICA_SUM,
    REPLICA_THERE,
    REPLICA_DETAIL,
    REPLICA_ENTRIES,
    REPLICA_READ,
    REPLICA_BYTES,
    REPLICA_LINE,
    REPLICA_MEND,
    REPLICA_PARTS,
    REPLICA_VOTE,
    REPLICA_ANSWER,
    REPLICA_COMPLETE,
    REPLICA_WAITS,
    REPLICA_TOLD,
    REPLICA_TOLD_PART
};

/* ---- meeting.c: all of it comes to nothing where nobody does the part of another ---- */

void replica_partners_begin(void);
/* Before an operation on the memory of a rank, which adds so many bytes to what is kept of this one: a meeting, if what
 * it does may not lie in one interval with what was done since the last one. And: it goes. */
keel_status replica_before(enum replica_call call, enum partner_use use, int rank, size_t bytes);
void replica_used(enum partner_use use, int rank, size_t bytes);
/* replica_before of what three replicas compare before it goes: these meet then. */
static inline keel_status replica_before_once(enum replica_call call, enum partner_use use, int rank, size_t bytes)
{
    return replica.sets < REPLICAS_MAX ? replica_before(call, use, rank, bytes) : KEEL_OK;
}
/* blocks   until nothing that this process has begun is under way. */
keel_status replica_rest(void);
/* After replica_rest: in which sets all is complete that this replica writes. It says so as it comes to an exchange. */
unsigned replica_comes_complete(void);
/* The replica of this rank in that set has died; the sets in which this one writes. */
void replica_partner_died(int set);
unsigned replica_acts(void);
/* After an exchange in which those that are `there` have said so, in complete [sets]. The lock is held.
 * blocks   until each of them knows that all is complete, or has died. */
keel_status replica_leave_together(const unsigned *complete, const bool *there);

/* ---- acting.c: where one may do the part of another ---- */

/* Collective over the set. */
keel_status replica_acting_begin(void);
/* The program is about to do what no partner can do for another: a set that has lost a process, or loses one, is
 * retired. blocks   the first in a process, until its node has a view that says so. Does not return where the own set
 * is retired by that. */
void replica_binds(void);
/* Is there a view that says that somebody has died? Who acts for one more set by that does there what is kept.
 * blocks   until it has. */
void replica_look_for_deaths(void);
/* As of the last look: has the rank a process in that set? And what came of a write or read there; KEEL_OK where
 * nothing goes any more: it has died. blocks   until the view says so. */
bool replica_lives(int rank, int set);
keel_status replica_settled(keel_status status, int rank, int set);
/* In all sets for which this replica acts. The segment by its number, of a part that may be read and written so.
 * blocks   until it is complete there. */
keel_status replica_puts(uint64_t segment, int rank, size_t offset, const void *src, size_t len);
keel_status replica_signals(uint64_t segment, int rank, size_t word, int64_t add);
/* Likewise, and also to the parts of the dead (acting_once.c): len bytes of elements, or of a body that is packed; and
 * an atomic, with what it found. blocks   until its turn has come in the order of all sets. */
keel_status replica_accumulates(uint64_t segment, int rank, size_t offset, const struct rma_named *how, const void *src,
                                size_t len);
keel_status replica_exchanges(uint64_t segment, int rank, size_t offset, const struct rma_named *how, int64_t *old);
/* Whoever has told this process something by an atomic, or by a word that it has read, knew of deaths: this one does,
 * too, when this returns. A view that others act by has been prepared here, and until it is here it is said so.
 * blocks   until then. */
void replica_learn_what_is_known(void);
/* In the own set, or in the lowest in which the rank lives. */
keel_status replica_reads(uint64_t segment, int rank, size_t offset, void *dst, size_t len);
/* For a word of the own part, which that rank changes; -1: any. */
keel_status replica_waits(keel_segment *segment, size_t word, keel_compare how, int64_t value, int from, int64_t *got);
/* Each rank has bytes, as many as it likes: all get those of each rank, piece after piece, of each piece that of rank 0
 * first. After a meeting. */
typedef void replica_taker(void *user, int origin, size_t at, const void *bytes, size_t len);
keel_status replica_passes(enum replica_call call, const void *mine, size_t len, replica_taker *take, void *user);
/* This rank, behind its last meeting: collectives go on without it. blocks   as a meeting. */
keel_status replica_leaves(void);
/* acting_calls.c: the library, where these do what it does. */
const struct api_calls *replica_acting_calls(const struct api_calls *library);
/* What is kept is done in these sets, too; it is not needed any more. */
void replica_take_over(unsigned sets);
void replica_forget_kept(void);

/* ---- mismatch.c ---- */

/* The bytes of the last operation, which is not sent yet; NULL: it is. */
struct replica_last {
    const void *bytes;
    size_t len;
};
/* The lock is held. sums, there: of the exchange. */
keel_status replica_differ(const struct check_outcome *o, const struct check_sum *sums, const bool *there,
                           struct replica_last *last);

/* This process ends its set, and says why. */
_Noreturn void replica_stop(const char *text);

/* ---- bytes.c ---- */

struct shape;
/* May so many bytes be read where the caller says? No: the library refuses the call. */
bool replica_may_read(const keel_segment *segment, int rank, size_t offset, size_t len);
bool replica_may_read_elements(const keel_segment *segment, int rank, size_t offset, keel_type type, size_t n);
bool replica_may_read_pieces(const keel_segment *segment, int rank, const keel_piece *pieces, size_t n);
/* shape: what `how` says, if they may. */
bool replica_may_read_shape(const keel_segment *segment, int rank, size_t offset, const void *src,
                            const keel_strided *how, struct shape *shape);
/* Of one that may be read; without what lies where. */
uint64_t replica_hash_of_shape(const keel_strided *how);
/* Are there bytes in an element that are no part of it? The bytes with zeros there, until the next such call; as they
 * are, if there are none. */
bool replica_has_gaps(const keel_combine *how);
const void *replica_without_gaps(const void *in, size_t bytes, const keel_combine *how);

/* ---- landed.c ---- */

/* Replicas look at what they have put where it lies. */
bool replica_inspects(void);
/* Before more is put than is remembered. */
bool replica_inspects_soon(void);
/* A put is about to be sent, as replica_did: of bytes that lie together, of pieces, of a shape. */
keel_status replica_did_put(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                            const void *bytes, size_t len);
keel_status replica_did_pieces(enum replica_call call, int target, const keel_segment *segment,
                               const keel_piece *pieces, size_t n);
keel_status replica_did_shape(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                              const void *src, const keel_strided *how);
bool replica_has_put(void); /* since the last exchange */
/* replica_after of that put: it is looked at if it went. */
keel_status replica_went(keel_status status);
/* What is put there is not what will lie there: something is added or exchanged. */
void replica_changes(int target, const keel_segment *segment, uint64_t place, uint64_t len);
/* The three steps of an exchange; the lock is held. What was put is complete, and looked at: *wrong ranges do not lie
 * there. blocks   until then. */
keel_status replica_inspect(size_t *wrong);
/* With --check all, if this rank has put something: what all vote, then as above. any: ranges do not lie where they
 * were put. */
keel_status replica_inspect_all_sets(size_t *wrong, const bool *there, bool *any);
/* wrong [sets]: what all that are `there` have found. They get the bytes of a set in which they are right, or it is
 * told as --on-mismatch says. blocks   until all have. */
keel_status replica_mend_memory(const size_t *wrong, const bool *there);
void replica_inspected(void);

/* ---- elsewhere.c ---- */

/* A segment of that number was allocated; it is about to be freed. blocks   the first, until the replicas have
 * allocated it, too. */
keel_status replica_describes(const keel_segment *segment, uint64_t number);
void replica_detaches(uint64_t number);
/* The part of a rank in another set, for calls below with its native rank; NULL: there is none, or no memory. And in
 * any set, the own one, too. */
keel_segment *replica_elsewhere(uint64_t number, int set, int target);
keel_segment *replica_part_in(uint64_t number, int set, int target);

/* ---- vote.c ---- */

struct sent;
/* Compares what was put with what lies in all other sets; suspect: the votes say that this
 * one is wrong. */
keel_status replica_vote(const struct sent *sent, const uint8_t *bytes, const bool *there, bool *suspect);
/* wrong [sets]: one's own is known, and of all that are there afterwards. */
keel_status replica_share_wrong(size_t *wrong, const bool *there);

/* ---- came.c ---- */

/* The call has brought bytes, if that is its status, from a rank or -1. They are compared, and the majority's are put
 * in their place. blocks   until all have them. */
keel_status replica_came(keel_status status, enum replica_call call, int from, uint64_t tag, void *bytes, size_t len);
/* In blocks, n of them: compared later, and never replaced. */
keel_status replica_came_in_blocks(keel_status status, enum replica_call call, const void *bytes, const size_t *lens,
                                   const size_t *at, int n);
/* What has begun will bring bytes; and what it came to: replica_came if it has ended. */
keel_status replica_comes_later(keel_status status, keel_request *const *request, enum replica_call call, void *bytes,
                                size_t len);
keel_status replica_has_come(keel_status status, const keel_request *request);

/* ---- differing.c ---- */

/* Lines of the event log, by one of the sets a and b: to whom this rank sent what the other replica did not send alike,
 * as far as both remember it. */
void replica_tell_differing(const struct check *mine, const struct check *theirs, int a, int b);
/* On the standard error of the rank, and by that set in the event log. Each replica tells the same at the same point,
 * as whatever a program writes appears once, from one of them. Of many of a rank: how many there are by now. */
void replica_tell_people(int set, const char *text);

/* ---- answer.c ---- */

enum { ANSWER_VALUES = 4 };
struct replica_answer {
    int64_t value[ANSWER_VALUES];
};
/* Is it for this replica to decide? Else *out is what the leading one has decided. blocks   until it has. */
bool replica_decides(struct replica_answer *out);
/* The answer of the one that decides, to the others. Returns it. */
struct replica_answer replica_tell(struct replica_answer answer);

/* How many there have been; and so many there have been, from here on. */
uint64_t replica_answers(void);
void replica_answers_are(uint64_t number);

/* Does this thread hold what answers are told under? */
bool replica_is_answering(void);

/* ---- host.c, guest.c ---- */

/* What the program does that a set which begins anew cannot take over. */
enum replica_bound {
    BOUND_NOT,
    BOUND_LATE, /* not yet, either: its processes do not come to keel_keep_restore */
    BOUND_FILES,
    BOUND_WORLD,
    BOUND_TURNS,
    BOUND_MESSAGES,
    BOUND_CHECK,
    BOUND_STRUCTURE,
    BOUNDS
};
/* It does so: sets that are lost stay so from here on. */
void replica_bound_by(enum replica_bound what);
/* There is room for kept memory: sets that are lost may begin anew. */
void replica_keeps(void);
/* The program has made or freed something that each process of the rank must have. */
void replica_makes(enum replica_call call, uint64_t what);
/* In keel_keep_commit, before replicas compare: the sets whose guest of this rank waits, by the one that decides. None
 * where replicas do not go in step, or do each other's part. *why_not: why a set that is lost stays so (BOUND_NOT: none
 * does), as far as this rank knows. */
struct renew_waits;
void replica_ask_who_waits(struct renew_waits *out, uint64_t *why_not);
/* When all of the set have said so, the greatest: rank 0 tells people, once. And, of a guest: which were told. */
void replica_tells_why(uint64_t bound);
void replica_was_told_why(uint64_t told);
/* When the version counts, and all of the set have said who waits, words [2 * REPLICAS_MAX] the greatest of each.
 * blocks   until the set that waits for all has joined, or is lost. */
void replica_hosts(const uint64_t *words, uint64_t version);
/* keel_keep_restore of a guest. blocks   until its set has joined; for good, if it is lost. */
keel_status replica_is_guest(uint64_t *version);

/* exchange.c: the replica of that life in that set is there from here on; or none is. */
void replica_is_with(int set, uint32_t life);
void replica_is_without(int set);

/* ---- world.c ---- */

struct world_place;
/* Where this process is in the world that replicas share; false: each has its own. */
bool replica_world_place(struct world_place *out);
void replica_world_go_on(const struct world_place *place);
void replica_world_begin(void);
/* All replicas have met. */
void replica_world_met(void);

/* ---- wrap_task.c ---- */

bool replica_is_in_task(void);

/* ---- wrap_atomic.c ---- */

/* An addition of the wrapper's own, to a word of the set's: what it finds is the same in all sets. After a meeting, as
 * before any exchange. */
keel_status replica_add(keel_segment *segment, int rank, size_t offset, int64_t add, int64_t *old);

/* ---- wrap_coll.c ---- */

/* Inside a task, or between keel_barrier_begin and its end, nothing is allowed that all ranks do together. */
bool replica_is_apart(void);

/* The call goes with these bytes, NULL: none. They are compared; a majority cannot be sent instead. */
keel_status replica_contribute_kept(enum replica_call call, int target, const void *in, size_t len);

/* ---- wrap.c ---- */

/* The process comes to its end with that code. */
void replica_ends(int code);

/* Puts the wrapper in its place, in a job whose program has replicas. Collective over the set. */
keel_status replica_begin(struct client *c);
/* The call cannot be right with replicas yet: says so, once a call. */
keel_status replica_refuses(enum replica_call call);
/* A new segment of the wrapper's own, of all ranks, gets its number, and other sets are told where it lies; it was
 * freed. */
keel_status replica_owns(keel_segment *segment);
void replica_disowns(uint64_t number);
keel_segment *replica_segment(uint64_t number);

// NOLINTBEGIN(bugprone-macro-parentheses) names, types and lists in parentheses
#define STATUS_CALL(name, parameters, arguments) keel_status replica_##name parameters;
#define VALUE_CALL(result, name, parameters, arguments) result replica_##name parameters;
#define VOID_CALL(name, parameters, arguments) void replica_##name parameters;
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
// NOLINTEND(bugprone-macro-parentheses)
#endif
