/* Inside the engine:
 *   engine.c          the engine, and its instances from the call to the end
 *   engine_view.c     views, losses, time
 *   engine_record.c   what remains of complete instances
 *   engine_send.c, engine_receive.c: messages
 *   engine_instance.c takes one through its attempts, with engine_call.c, engine_move.c and engine_meeting.c
 *                     (engine_instance.h) */
#ifndef KEEL_COLLECTIVES_ENGINE_INT_H
#define KEEL_COLLECTIVES_ENGINE_INT_H

#include "collectives/board.h"
#include "collectives/engine.h"
#include "collectives/message.h"
#include "collectives/together.h"

struct letter { /* a message that waits to be looked at */
    struct letter *next;
    struct message_head head;
    int from;
    struct vote vote;
    size_t len;
    uint8_t data[];
};

struct decision {
    bool made;
    uint16_t attempt;
    uint64_t epoch;
    struct vote vote;
};

/* LINGERING: it has returned early, and waits for somebody to ask, or for nobody to need it any more. */
enum instance_state { INSTANCE_MOVING, INSTANCE_LINGERING, INSTANCE_MEETING, INSTANCE_COMPLETE };

struct instance {
    struct instance *next;
    uint64_t seq;
    struct engine_call call;
    uint32_t signature;
    enum instance_state state;
    uint16_t attempt;
    enum engine_status trouble; /* an error of our own that all shall return */
    bool starved;               /* there was no memory for data of the next attempt */
    int root;                   /* member; of a broadcast, whoever has the bytes */
    bool holds;                 /* BCAST: the whole of out is here */
    uint64_t finished;          /* epoch of the attempt whose result is here, 0: none */
    struct decision last;       /* of the attempt before */
    bool early;                 /* may return before the meeting */
    uint64_t returned; /* epoch of the attempt whose result is in `kept` and was returned by somebody; 0: none */
    bool told;         /* done was called */
    uint32_t behind;   /* as in a message's head, of the data that are here */
    uint64_t pause;    /* until then there is no new attempt: there was no memory for one */
    uint8_t *kept; /* the result; where each gets something else, the input, and as much room for what comes twice */
    size_t kept_len;
    bool taking_back; /* what is under way, as it is copied */
    size_t out_len;
    uint64_t brings; /* epoch of a returned result: this attempt brings it from `root` to those who have not got it */
    struct letter *inbox;
    /* moving */
    struct roster *members; /* of the attempt */
    bool built;             /* the schedule is; not before the sends of the last attempt are done */
    bool lost;              /* of what we sent something may be: others must not wait for it */
    struct schedule schedule;
    size_t at;      /* next step */
    bool placing;   /* what it waits for is coming in pieces (engine_place.c), */
    bool combining; /* and is combined at once, as the step after it would */
    size_t placed;  /* so many bytes of it are here */
    uint8_t *tmp;
    void *saved;        /* the input, if the output overwrites it */
    void *untouched;    /* EXSCAN: what was in out, for who turns out to be the first */
    unsigned sending;   /* data that must not change, */
    uint8_t *under_way; /* those of these steps, in tmp or */
    uint8_t marks[32];
    /* meeting */
    uint64_t epoch;
    struct vote vote;
    int step, steps;
    struct meet_step plan[MEET_STEPS_MAX];
    /* timer */
    uint64_t resend_at, rto;
    struct engine_result result; /* COMPLETE, but sends are still under way */
    struct record *record;       /* the memory for what remains of it */
};

struct record { /* of a complete instance, for those who have not heard */
    struct record *next;
    uint64_t seq;
    struct decision decision;
    bool keeps; /* what follows is the call's result */
    bool binds; /* this member must not leave before the others have heard of it */
    enum engine_status status;
    size_t len, room; /* bytes; room for so many */
    uint8_t bytes[];
};

enum { STREAM_ORDINARY, STREAM_AGREEMENT, STREAMS };

struct smaller { /* the members of a view that take part in a call */
    struct smaller *next;
    uint64_t number;
    struct roster *members;
};

/* The way over a board, before an instance is made (engine_board.c). */
struct shortcut {
    bool usable, active;
    struct board board;
    uint64_t left[STREAMS]; /* the last call of the stream that was posted and left */
    int row[STREAMS];       /* so many in a row were */
    uint64_t number;        /* active: the call, */
    struct engine_call call;
    uint32_t signature;
    struct roster *live; /* over these, */
    struct together how;
    struct board_meeting meeting; /* and its turn */
    unsigned chunk;
    void *saved; /* the input, if it is written over before the end */
    uint8_t *scratch;
};

struct engine {
    struct engine_ops ops;
    uint64_t id, now;
    struct engine *pair; /* engine_pair.c; NULL: none */
    uint64_t born;       /* epoch of the roster that it was created with */
    int n, self;
    const int *node;
    bool revoked;
    int blamed;  /* for it, -1: for nobody */
    bool keeps;  /* results, for members that join */
    bool leaves; /* engine_settle: what returns from now on has met, as nobody would ask about it any more */
    struct {     /* of the record that binds, or of the revocation: */
        uint64_t seq;
        uint64_t *heard; /* those who have said that it is over there, or that they know */
        uint64_t at, rto;
        bool revoked; /* others may not know of the revocation, and of a call from which this member has returned */
    } leaving;
    struct { /* of one view: calls in it meet alike */
        struct roster *view;
        int steps;
        struct meet_step plan[MEET_STEPS_MAX];
    } nodes;
    struct roster **rosters; /* the views since the oldest incomplete instance began; the last is the current one */
    int n_rosters, cap_rosters;
    struct smaller *smaller; /* of them, for the ordinary calls that are not complete, without those who joined after */
    struct {
        uint64_t started, complete; /* all up to `complete` have returned here, */
        uint64_t everywhere;        /* and up to this one on all members that live */
        uint64_t starved;           /* bit number % ENGINE_WINDOW: for that one, not started yet, memory was missing */
    } stream[STREAMS];
    struct instance *instances;     /* by rising seq */
    struct record *records, *spare; /* spare: memory for that of the call that is posted */
    struct {                        /* put by, for a call for which there is no memory, and for what remains of it */
        struct instance *instance;  /* NULL: in use, or there was no memory for another */
        struct record *records;
        int n_records;
        struct letter *letters; /* for those without data; the last one is never kept */
        int n_letters;
    } put_by;
    struct letter *early; /* for instances not started here */
    struct shortcut shortcut;
};

/* seq: number within the stream and stream */
static inline uint64_t seq_make(uint64_t number, int stream)
{
    return number * STREAMS + (uint64_t)stream;
}
static inline int seq_stream(uint64_t seq)
{
    return (int)(seq % STREAMS);
}
static inline uint64_t seq_number(uint64_t seq)
{
    return seq / STREAMS;
}

static inline int stream_of(enum engine_kind kind)
{
    return kind == ENGINE_AGREE || kind == ENGINE_SHRINK ? STREAM_AGREEMENT : STREAM_ORDINARY;
}

static inline struct roster *engine_roster(const struct engine *e)
{
    return e->rosters[e->n_rosters - 1];
}
/* The instance, if it is begun here and not gone. */
struct instance *engine_find(const struct engine *e, uint64_t seq);
/* What was returned early lingers for those who have not returned. Not from inside an instance. */
void engine_forget_returned(struct engine *e);
/* The roster of an epoch, or NULL. */
struct roster *engine_roster_at(const struct engine *e, uint64_t epoch);
void engine_send(struct engine *e, const struct instance *i, int to, enum message_kind kind, uint32_t tag,
                 uint64_t epoch);
void engine_send_decision(struct engine *e, int to, uint64_t seq, const struct decision *d);
/* Has it returned from that call? MESSAGE_OVER, if so. */
void engine_ask_whether_over(struct engine *e, int to, uint64_t seq);
/* For a member that joined after the last decision. */
void engine_send_skip(struct engine *e, int to, const struct instance *i);
/* The instance is complete: its record is kept, its memory goes when the last send is done. It may be gone on
 * return. */
/* The caller gets its result now; the instance goes on. */
void engine_tell_early(struct engine *e, struct instance *i, const struct engine_result *result);
/* All members that live have returned from the calls of the stream up to that one. */
void engine_returned_everywhere(struct engine *e, int stream, uint64_t number);
/* How far the returns from earlier calls are behind that one here. */
uint32_t engine_behind(const struct engine *e, const struct instance *i);
void engine_complete(struct engine *e, struct instance *i, const struct engine_result *result);
/* To everybody whom the current plan of a meeting would send to. */
void engine_tell_all(struct engine *e, uint64_t seq, const struct decision *d);

/* engine_board.c: the call begins here without having been posted: who waits on the board learns that it is of no
 * use. */
void engine_begin_beside(struct engine *e, int stream, uint64_t number);
void engine_board_fini(struct engine *e);
/* engine.c */
bool engine_arguments_fit(const struct engine *e, const struct engine_call *c);
/* For members that join later: the call was completed so. There must be room for len bytes: */
bool engine_reserve_record(struct engine *e, size_t len);
void engine_keep_record(struct engine *e, uint64_t seq, const struct decision *d, enum engine_status status,
                        const void *bytes, size_t len);

/* engine_pair.c: what a question says of the other engine's calls; and neither of us can go on: we are in other
 * calls. */
uint32_t engine_pair_behind(const struct engine *e);
bool engine_pair_disagrees(const struct engine *e, const struct message_head *h);

/* engine_send.c. Everybody passes it on once, and again in each new view: so it reaches all, whoever dies. */
void engine_tell_revoked(struct engine *e);

/* engine_record.c. What everybody has completed nobody will ask about. */
void engine_forget_records(struct engine *e, int stream, uint64_t number);
/* With the result, if members may join that need it; every one has the same. */
void engine_record_result(struct engine *e, struct instance *i, enum engine_status status);

/* engine.c. With nothing going on only the current view matters. Who lingers goes on in a view that is still to come
 * here, or in this one. */
void engine_forget_rosters(struct engine *e);
/* The instance after that one, which may be gone meanwhile. */
struct instance *engine_after(const struct engine *e, uint64_t seq);
/* What was sent is copied when it is still under way so long after its call was complete. */
#define ENGINE_KEEP_AFTER_NS (20ull * 1000 * 1000)

/* engine_leave.c: whom else a member that leaves must ask, and that one has answered */
void engine_go_on_leaving(struct engine *e);
void engine_heard_over(struct engine *e, int from, uint64_t seq);
/* It is revoked here: whoever leaves tells all. That one knows, or cannot be told. */
void engine_owes_revocation(struct engine *e);
void engine_heard_revoked(struct engine *e, int from);
void engine_send_revoked(struct engine *e, int to);
/* Is it the root of this reduction or gathering, which alone knows that it came to its end? */
bool engine_is_sink(const struct engine *e, const struct instance *i);
uint64_t engine_leaving_deadline(const struct engine *e);
int engine_leaving_waits_for(const struct engine *e, uint64_t seq);

/* engine_call.c: what all members must have passed alike. */
uint32_t engine_signature(const struct engine *e, const struct engine_call *c);
/* Bytes that in holds. */
size_t engine_input_len(const struct engine *e, const struct engine_call *c);
enum engine_status instance_create(struct engine *e, uint64_t seq, const struct engine_call *call,
                                   struct instance **out);
void instance_destroy(struct engine *e, struct instance *i);
struct record *record_create(size_t room);
void record_destroy(struct engine *e, struct record *r);
/* For so many bytes, not cleared; put_by: in memory that is put by, if need be. NULL: there is no memory. */
struct letter *letter_new(struct engine *e, size_t len, bool put_by);
void letter_free(struct engine *e, struct letter *l);
/* False: there is no memory to put by. */
bool engine_put_by(struct engine *e);
void engine_put_by_fini(struct engine *e);
/* Before the roster is the engine's: who takes part in each call to come and under way. False: no memory. */
bool engine_admit(struct engine *e, struct roster *r);
void engine_forget_smaller(
    struct engine *e, bool all); /* all; or those of views that are not the engine's any more, or of complete calls */

/* engine_move.c */
uint8_t *engine_bytes_of(const struct instance *i, struct schedule_region r);
/* What was sent to that member, first of what is under way, may change. */
void instance_sent(struct instance *i, int member);
/* Is something of that region under way? */
bool instance_sends(const struct instance *i, const struct schedule_region *r, size_t len);

/* engine_meeting.c */
uint64_t engine_combine(enum engine_agree op, uint64_t a, uint64_t b);
void instance_tick(struct engine *e, struct instance *i);
int instance_waits_for(const struct engine *e, const struct instance *i);

/* Does this call give each member something else? */
static inline bool instance_differs(const struct instance *i)
{
    return i->call.move == SCHEDULE_ALLTOALL;
}

/* engine_instance.c. progress and receive: the instance may be gone on return. */
void instance_begin(struct engine *e, struct instance *i); /* the first attempt */
void instance_progress(struct engine *e, struct instance *i);
void instance_receive(struct engine *e, struct instance *i, struct letter *l); /* takes the letter over */
void instance_view(struct engine *e, struct instance *i);
void instance_lost(struct engine *e, struct instance *i, int member);
void instance_unsent(struct engine *e, struct instance *i, int member);
void instance_settle(struct engine *e, struct instance *i);
void instance_ready(struct engine *e,
                    struct instance *i); /* data are here: no time to wait for memory; it may be gone on return */
void instance_starved(struct engine *e, struct instance *i, const struct message_head *h);
#endif
