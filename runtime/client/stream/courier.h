/* Messages between ranks: a reliable ordered stream to each. To a rank of this node through the hall (hall.h), as long
 * as both lives last; to a rank of another over a connection between the two (direct.h) while there is one, else
 * through the agent of the receiver's node. Whenever its way changes a stream begins anew after what was acknowledged,
 * and what comes twice is dropped. A message is cut into pieces; the sender keeps them until the receiver has
 * acknowledged them, and sends them again on a new connection, or when there was no memory for them. A stream belongs
 * to one life of the receiver and one of the sender: when a view says that either has ended, so has the stream.
 *
 *   sent, not acknowledged: at most a window of pieces, so a receiver that is not looking costs so much and no more;
 *   between two ranks
 *   nothing is sent while what was sent waits for the socket, so that no copies of it pile up here
 *
 * Like all of the client: under its lock. */
#ifndef KEEL_CLIENT_STREAM_COURIER_H
#define KEEL_CLIENT_STREAM_COURIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/engine.h"
#include "runtime/wire/wire.h"

enum {
    COURIER_WINDOW = 64,         /* through an agent or the hall */
    COURIER_WINDOW_DIRECT = 512, /* where the sockets say how much they take */
    COURIER_HEAD_MAX = 128,
    COURIER_PIECE = WIRE_BODY_MAX,
    COURIER_TOGETHER = WIRE_BULK_MAX / WIRE_BODY_MAX, /* pieces in one message between two ranks */
    COURIER_COPY_MAX = 4096,                          /* longer data stay the caller's until they are acknowledged */
    COURIER_LOOSE_MAX = 64 * 1024,
};

struct client;
struct keel_group;
struct parcel;

struct stream {
    /* out: pieces are numbered from 1 */
    struct parcel *head, **tail; /* not acknowledged */
    struct parcel *at;           /* holds piece sent + 1, NULL: all are sent */
    uint64_t next, sent, acked;
    uint64_t retry_at, retry_ns;
    size_t loose;    /* weight of what is not acknowledged and no caller waits for */
    bool direct;     /* the way it goes now */
    bool aside;      /* through the agent, past what is hollow */
    bool handed_on;  /* this process leaves: it goes through the agent from now on */
    unsigned hollow; /* parcels that nobody needs any more */
    unsigned put_by; /* so many of these are in memory that is put by */
    bool
        missed; /* there was no memory to send a message of a collective: its engines are to hear of it at missed_at; */
    bool missed_data; /* and it had data */
    uint64_t missed_at;
    /* a call is complete but for what waits here: the receiver's process was asked about, and was seen to be stopped
     * first (0: it is not) */
    uint64_t asked_at, stopped_since;
    bool behind;   /* this process leaves, and it is to hear that it was not waited for */
    bool given_up; /* it has been for longer than the time-out: calls do not wait for room to it */
    /* in */
    uint64_t received, told; /* told: of it the sender knows */
    bool ack_due;
    uint64_t refused; /* of that life of the sender the next piece was not taken, and has not come again; 0: none */
    bool refusal_due; /* it has not been told, or may not have heard */
    uint8_t *whole;   /* the message whose pieces are coming */
    size_t whole_len, whole_have;
    bool dropping; /* there was no memory for it, and who waits for it knows */
    bool placed;   /* its pieces go where they belong as they come; it began with these: */
    uint8_t first[ENGINE_HEAD];
};

struct parcel_tag {
    uint32_t kind;
    bool creating; /* of a group that is being created */
    bool tell;     /* to be acknowledged at once */
    struct keel_group
        *group; /* with seq: who hears when data that were not copied are the caller's again; NULL: all is copied */
    uint64_t seq;
};

/* A message of a collective. True: head and data are copied, or nobody is there to get them. Else coll_delivered
 * follows, also if the receiver dies. What there is no memory for goes in memory that was put by, with data from where
 * they are; and where that is in use, it is as if it had been lost (coll_lost, later). */
bool courier_send(struct client *c, int rank, const struct parcel_tag *tag, const void *head, size_t head_len,
                  const void *data, size_t len);
/* All is copied. False: there is no memory for it, nothing was sent. */
bool courier_offer(struct client *c, int rank, const struct parcel_tag *tag, const void *head, size_t head_len,
                   const void *data, size_t len);
/* The last message to that rank is of that kind, and not on its way yet. */
bool courier_has_unsent(const struct client *c, int rank, uint32_t kind);
/* Memory for messages of calls for which there is none. False: there is none to put by. */
bool courier_put_by(struct client *c);
/* There will be memory for one more note (head only, not of a collective). False: there is none. */
bool courier_reserve(struct client *c);
/* The group was revoked, or its call of that name is complete (0: all of its calls are over): its callers have their
 * memory back. */
void courier_keep(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now);
/* That call has failed: nobody needs data of it, and its caller has its memory back. */
void courier_drop(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now);
/* What the ranks were sent of that call has arrived, and whatever was sent to them before it: it is known otherwise
 * than by their acknowledgements. */
void courier_arrived(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now);
void courier_receive(struct client *c, const struct wire *w, const void *body, size_t len, uint64_t now);
void courier_connection_up(struct client *c, int node, uint64_t now);
void courier_connection_lost(struct client *c, int node);
void courier_direct_up(struct client *c, int rank, uint64_t now);
void courier_direct_lost(struct client *c, int rank);
/* This process leaves, and what it has sent to ranks that are not looking leaves with its sockets: the agents take that
 * over. Then wait until they have. */
void courier_farewell(struct client *c);
int courier_hands_over_to(const struct client *c); /* whom that waits for, or -1 */
bool courier_has_handed_over(void *client);
/* What a view says: that life of the rank is over. */
void courier_reset(struct client *c, int rank);
/* Something of a call of the group (or of no certain one) has not been sent yet: a connection is being made, or
 * there is no room. */
bool courier_has_given_up(const struct client *c, int rank); /* it is stopped, and not waited for any more */
int courier_engine_to(const struct client *c, const struct keel_group *group); /* the first such rank, or -1 */
bool courier_has_engine(const struct client *c, const struct keel_group *group);
/* The same to that rank, of a group of which that holds. */
bool courier_has_engine_of(const struct client *c, int rank, bool (*of)(const struct keel_group *, const void *),
                           const void *arg);
/* What is for the rank could go, if there were a connection. */
bool courier_lacks_connection(const struct client *c, int rank);
/* Something small for a rank of this node, through its agent: the rank sleeps and has work to do. */
void courier_wake(struct client *c, int rank);
/* There may be room again in the ring to it. */
void courier_room(struct client *c, int rank, uint64_t now);
/* There may be room again in the sockets to other ranks. */
void courier_flow(struct client *c, uint64_t now);
/* Returns when it is needed next. */
uint64_t courier_tick(struct client *c, uint64_t now);
void courier_free(struct client *c);
#endif
