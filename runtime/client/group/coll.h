/* Groups and collectives of this rank: what the pure engines of collectives/ need to run.
 *
 *   coll.c          engines: messages in and out, time
 *   coll_lives.c    whose lives members are, views
 *   coll_stopped.c  who is waited for for long
 *   coll_group.c    groups: their memory, their end
 *   coll_create.c   creations, splits and shrinks
 *   coll_stray.c    what comes before a group is known
 *   coll_call.c     calls on a group, requests
 *   quick.c         calls between ranks of a node that need no messages
 *   mail.c          users' messages
 *   courier.c       the streams that carry the messages
 *
 * A member of a group is one life of a rank: the one that had joined when the group was born. Engines go through the
 * views one by one (page_change): a view of a group is the epoch of the last change of any of its ranks' lives. */
#ifndef KEEL_CLIENT_GROUP_COLL_H
#define KEEL_CLIENT_GROUP_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/collective.h>
#include <keel/group.h>
#include <keel/segment.h>

#include "collectives/engine.h"
#include "runtime/client/stream/courier.h"
#include "runtime/client/group/look.h"
#include "runtime/client/group/witness.h"
#include "runtime/wire/wait.h"

struct group; /* collectives/group.h, which names a function that unistd.h has */

enum { STRAY_BYTES_MAX = 16 * 1024 * 1024, COLL_BUCKETS = 256 };

enum parcel_kind {
    PARCEL_ENGINE,
    PARCEL_LOST,
    PARCEL_GONE,
    PARCEL_MAIL,
    PARCEL_MAIL_TAKEN,
    PARCEL_SIGNAL,
    PARCEL_WHERE,
    PARCEL_REPLICA,
    PARCEL_PARTNER
};

/* What is known here of a rank, as of the last view that was gone through. */
struct known_life {
    uint64_t life;   /* page_rank.life */
    uint64_t newest; /* the greatest there was */
    uint64_t joined, changed;
    uint64_t after; /* what of all live ranks was complete when it joined (wire/complete.h) */
};

/* What the members are to agree on next. */
enum segment_step {
    SEGMENT_NONE,   /* no call is open */
    SEGMENT_WANTED, /* is it the same at all? */
    SEGMENT_DRAWN,  /* has nobody failed to draw a number? */
    SEGMENT_NUMBER, /* which one is it? */
    SEGMENT_PLACE,  /* where has each of them room? */
    SEGMENT_MADE,   /* has every agent made its copies? */
    SEGMENT_FREED,  /* may it go? */
};

/* Making or freeing a segment of a group: one agreement after the other (segment_group.c). */
struct segment_of_group {
    enum segment_step step;
    uint64_t value; /* this member's */
    struct keel_segment *segment;
    size_t *parts; /* [ranks], owned */
    keel_redundancy redundancy;
    keel_status able, before; /* before: what operations met */
    uint64_t fingerprint, place;
    int64_t drawn; /* -1: nothing */
    uint32_t index;
};

struct keel_group {
    struct client *client;
    struct keel_group *next, *next_of_id;
    struct group *ranks;
    struct engine *engine; /* NULL: this process is no member any more */
    int *node;             /* [size] for two-level algorithms */
    struct roster *first;  /* of a room: for that of the members that live when it becomes a group */
    uint64_t birth;        /* members are lives that joined before; UINT64_MAX: whoever lives (creation) */
    bool of_segments;      /* coll.segments */
    bool creation;         /* not a group yet: engine of a keel_group_create */
    int made;              /* creation: groups that came of it and are not freed, and calls under way */
    bool owes;             /* creation: a last shrink that is to be begun before any other call, */
    uint64_t closing;      /* and the seq of the one under way, 0: none */
    uint16_t generation;   /* of this memory: how many groups it held before */
    bool freed;
    bool gone;        /* it can be destroyed */
    bool view_missed; /* there was no memory for the last view */
    bool patient;     /* calls wait for who is stopped, without end */
    struct keel_group *creator;
    struct keel_request *requests; /* not complete, or not taken */
    struct keel_request *starting;
    struct keel_request *put_by; /* a request for a call for which there is no memory; NULL: in use */
    struct keel_request
        *unfinished; /* agree, shrink, creation: a call that ended by its time-out, to be gone on with */
    struct engine_call unfinished_call;
    struct segment_of_group segments;
    struct keel_group *room;   /* for what an unfinished call makes; NULL: there was no memory */
    struct board board;        /* head NULL: none */
    bool asked_board, boarded; /* in this view, by those who live in it */
};

/* keel_group.closing: while it begins. */
#define CLOSING_BEGINS UINT64_MAX

struct keel_request {
    struct keel_request *next;
    struct keel_group *group; /* on whose list it is; NULL: on none */
    uint64_t seq;
    enum wait_call call;
    bool done, own; /* own: the runtime's, no caller waits */
    bool settles;   /* of who leaves: for whatever keeps it, one call after the other */
    bool stalled;   /* a process that it needs is stopped, for longer than the time-out */
    int blamed;     /* stalled: by that member */
    struct look look;
    keel_status status;
    uint64_t value, epoch; /* epoch: as in engine_result */
    struct roster *covered;
    size_t *blocks;      /* the caller's lists of blocks, copied */
    keel_covered *cover; /* memory for what the caller may ask for in the end */
};

struct keel_covered {
    struct client *client;
    struct roster *roster;
};

/* A message of a group that is not known here. */
struct stray {
    struct stray *next;
    uint64_t group;
    int from;
    uint64_t life;
    bool creating;
    size_t len;
    uint8_t data[];
};

/* Creations of one list and tag that were done with: their numbers are not used again. */
struct made_count {
    uint64_t id, number;
};

enum { COLL_MISSED_NS = 1000000 }; /* what there was no memory for is tried again then */

struct coll {
    struct known_life *life; /* [ranks] */
    struct stream *stream;   /* [ranks] */
    uint64_t changes;        /* seen, of page->changes */
    uint32_t behinds;        /* seen, of intents->behinds */
    uint64_t at;             /* when coll_tick is needed */
    struct keel_group *by_id[COLL_BUCKETS];
    struct keel_group *groups;
    struct keel_group *idle, *spent; /* memory of freed groups, to be used again and not */
    struct keel_group *room;         /* for a creation for which there is no memory: all are told; NULL: in use */
    struct keel_group *world, *node;
    /* Whoever lives: the collectives of all live ranks; and another time, for allocations and frees of segments. */
    struct keel_group *living, *segments;
    struct keel_request
        *unfinished; /* of that one: a call that ended by its time-out, to be gone on with; or the split barrier */
    bool split;      /* a barrier was begun and is not over */
    struct keel_request *deciding; /* of the other one: likewise */
    struct stray *strays, **strays_tail;
    size_t stray_bytes;
    int creating; /* creations, splits and shrinks under way */
    /* nothing is being created any more, and the senders of strays were not told, for want of memory */
    bool strays_left;
    bool view_missed; /* some group has not taken the last view for want of memory: none is looked at until it has */
    struct parcel *spare; /* for the next note, if there is no memory then */
    struct parcel *put_by;
    struct made_count *made;
    size_t n_made, cap_made;
    unsigned quick; /* calls over boards */
    bool gone;      /* some group is */
    struct witness witness;
    struct {
        keel_status status;
        uint64_t epoch;
    } ended;                 /* a barrier in two phases, of which the number is being written (witness.h) */
    keel_status broken;      /* collectives have ended for this process */
    enum wait_call for_call; /* whose those of all live ranks are for the program; WAIT_NO_CALL: their own */
};

struct client;

bool coll_init(struct client *c);
void coll_free(struct client *c);

/* coll.c; lock held */
void coll_see_views(struct client *c, uint64_t now);
void coll_tick(struct client *c, uint64_t now);
/* Nobody else lives whom the program knows as a rank: of the sets of replicas, of this one. */
bool coll_is_alone(const struct client *c);
/* A call of a group's is under way, or nobody has asked what it came to. */
bool coll_is_used(const struct client *c);
void coll_wake_at(struct client *c, uint64_t at);
void coll_received(struct client *c, int from, uint32_t kind, bool creating, const void *data, size_t len,
                   uint64_t now);
/* As engine_place, of whichever group it is for. */
bool coll_place(struct client *c, int from, const void *head, size_t total, size_t at, const void *data, size_t len,
                uint64_t now);
/* There is no memory for a message that begins so. True: it need not be sent again, its call will say so. */
bool coll_starved(struct client *c, int from, uint32_t kind, const void *head, size_t len, uint64_t now);
/* Messages to that rank are lost, of whatever group; or, with data, were not sent for want of memory. */
void coll_lost(struct client *c, int rank, bool no_memory, uint64_t now);
/* What was sent to that rank. */
void coll_delivered(struct client *c, struct keel_group *g, uint64_t seq, int rank, uint64_t now);
/* All calls end with that status, from now on. */
void coll_break(struct client *c, keel_status status);
/* The same without a word: this process leaves the job. Threads that wait return with the status. */
void coll_end(struct client *c, keel_status status);
/* The epoch of the view, as agents count, in which a roster's epoch began; 0: nobody's life has changed yet. */
uint64_t coll_epoch(uint64_t of_roster);
bool coll_member_lives(const struct keel_group *g, int member);
/* A group of whoever lives, that is always there? */
bool coll_is_of_all(const struct keel_group *g);
/* A room becomes the group of the members that live now, with an engine if this process is one of them. False: there is
 * no memory, which is possible for the group of whoever lives only. */
bool coll_start_engine(struct keel_group *g);
/* False: there is no memory, not even what was reserved (courier_reserve). */
bool coll_note(struct client *c, int rank, enum parcel_kind kind, uint64_t group, uint64_t number);

/* coll_group.c; lock held */
/* The world, the node, and all who live. */
bool coll_first_groups(struct client *c);
struct keel_group *coll_group_find(const struct client *c, uint64_t id);
void coll_room_free(struct client *c, struct keel_group *room); /* takes NULL */
void coll_group_destroy(struct keel_group *g);
/* True: kept, or answered. */
void coll_stray(struct client *c, uint64_t group, int from, bool creating, const void *data, size_t len);
void coll_strays_view(struct client *c);
/* The senders of what is left when nothing is being created any more. */
void coll_strays_told(struct client *c, uint64_t now);
void coll_collect(struct client *c);

/* coll_call.c; lock held unless it says so */
keel_status coll_status(enum engine_status status);
/* The same of a call of that group. Those of all who live are revoked when ranks disagree about which they are in
 * (engine_pair), and by nothing else. */
keel_status coll_status_of(const struct keel_group *g, enum engine_status status);
/* Takes the request over; it is freed with an error. */
keel_status coll_begin(struct keel_group *g, const struct engine_call *call, struct keel_request *r);
/* Zeroed. KEEL_ERR_LIMIT: there is no memory for it, and what was put by is in use. */
keel_status coll_request_new(struct keel_group *g, struct keel_request **out);
/* g: the one that it was made for. */
void coll_request_free(struct keel_group *g, struct keel_request *r);
/* Until it is complete; the lock is given back meanwhile. KEEL_ERR_TIMEOUT, with !r->done: a process that it needs
 * is stopped. */
keel_status coll_await(struct keel_request *r);
/* Is it complete? Looks once at what has come. */
bool coll_poll(struct keel_request *r);
/* A call to its end, over a board or with messages. *out: its request, the caller's, or NULL if there is none with an
 * error. An agree or shrink that ends by its time-out is gone on with by the next, equal one; another until then is
 * KEEL_ERR_STATE. */
keel_status coll_finish(struct keel_group *g, const struct engine_call *call, struct keel_request **out);

/* Before this process leaves: what it has returned early (engine_settle) is sent round; and it has reached all who
 * live. */
void coll_settle(struct client *c);
int coll_settles_for(const struct client *c); /* whom that waits for, or -1 */
bool coll_is_settled(void *client);

/* The public calls on an instance; these take the lock. */
keel_status coll_wait(struct keel_request *r, keel_covered **covered, uint64_t *value);
keel_status coll_test(struct keel_request *r, keel_covered **covered);
keel_status coll_check(const struct client *c, const struct keel_group *g);
/* blocks: the lists that the call points to, taken over; or NULL. */
keel_status coll_call(struct keel_group *g, const struct engine_call *call, size_t *blocks,
                      struct keel_request **request);
/* To its end; *value (NULL is allowed): of an agreement. */
keel_status coll_run(struct keel_group *g, const struct engine_call *call, uint64_t *value);
keel_status coll_create(struct client *c, const int *list, int n, uint64_t tag, keel_group **out);
keel_status coll_split(struct keel_group *g, int colour, int key, keel_group **out);
keel_status coll_shrink(struct keel_group *g, keel_group **out);
keel_status coll_shrink_among(struct keel_group *g, const int *members, int n, keel_group **out);
keel_status coll_revoke(struct keel_group *g);
keel_status coll_group_free(struct keel_group *g);
#endif
