/* Inside of sealed connections (sealed.h): their structures, and what their files give each other. */
#ifndef KEEL_NET_SEALED_SEALED_INT_H
#define KEEL_NET_SEALED_SEALED_INT_H

#include <assert.h>
#include <sodium.h>
#include <sys/queue.h>

#include "runtime/net/sealed/sealed.h"
#include "runtime/net/sealed/sealed_box.h"

enum {
    PIECE = 16 * 1024,            /* bytes of a write or read in one frame */
    WINDOW = 64,                  /* frames of one ep with the transport below; more waits, unsealed */
    QUEUE_MAX = 64 * 1024 * 1024, /* copied bytes that wait in one ep */
    INNER_BATCH = 16,
};

enum frame_type { FRAME_MESSAGE = 1, FRAME_WRITE, FRAME_WRITTEN, FRAME_READ, FRAME_PART };

/* Begins the text of each frame; both ends have one byte order. */
struct head {
    uint32_t type, last;
    uint64_t id; /* of the write or read */
};
/* Follows in FRAME_WRITE and FRAME_READ (where it writes, or reads), and FRAME_PART (offset in the read). */
struct remote_range {
    uint64_t key, offset, len;
};
static_assert(BOX_GREETING <= TP_CONNECT_MAX - TP_HELLO_MAX, "a greeting fits");
static_assert(sizeof(struct head) + BOX_TAG <= TP_FRAME_MAX - TP_BULK_MAX, "a message fits");
static_assert(sizeof(struct head) + sizeof(struct remote_range) + PIECE + BOX_TAG <= TP_FRAME_MAX, "a piece fits");

/* An event that waits for the next poll. */
struct told {
    STAILQ_ENTRY(told) link;
    struct tp_event event;
    struct job *job;     /* freed with it, or NULL */
    struct frame *frame; /* of use again with it, or NULL */
};
STAILQ_HEAD(told_list, told);

/* What was posted and is not wholly on its way, what waits for its answer, or what a peer has asked for. */
struct job {
    TAILQ_ENTRY(job) link;
    enum frame_type type;
    struct tp_op *op;
    uint8_t *memory; /* the caller's, a region's, or bytes */
    size_t len, at;
    struct remote_range place;
    uint64_t id;
    struct told told;
    uint8_t bytes[]; /* of a message without op */
};
TAILQ_HEAD(job_list, job);

struct frame {
    struct tp_op op; /* with the transport below */
    TAILQ_ENTRY(frame) link;
    struct tp_op *tell; /* a message's */
    struct told told;
    size_t len;
    uint8_t bytes[TP_FRAME_MAX];
};
TAILQ_HEAD(frame_list, frame);

/*  GREETING --answer--> UP --we end it--> ENDING
 *      '------------------'-------'--TP_CLOSED below--> CLOSED
 * An acceptor is UP at once. ENDING: nothing that comes is looked at any more. */
enum ep_state { EP_GREETING, EP_UP, EP_ENDING, EP_CLOSED };

struct sealed_ep {
    struct tp_ep base;
    struct tp_ep *inner;
    enum ep_state state;
    bool accepted;
    struct box box;
    uint8_t answer[BOX_ANSWER]; /* an acceptor's, until it is connected */
    struct job_list todo, asked, parts;
    struct frame_list frames; /* with the transport below */
    int frames_out;
    size_t copied;
    uint64_t last_id;
    struct told closed;
    TAILQ_ENTRY(sealed_ep) link;
};
TAILQ_HEAD(sealed_ep_list, sealed_ep);

struct tp_connreq {
    LIST_ENTRY(tp_connreq) link;
    struct tp_connreq *inner;
    bool good;
    uint8_t greeting[BOX_GREETING];
};

struct region {
    LIST_ENTRY(region) link;
    uint64_t key;
    uint8_t *memory;
    size_t len;
};

struct sealed_tp {
    struct tp base;
    struct tp *inner;
    uint8_t *secret; /* BOX_SECRET bytes */
    struct sealed_ep_list eps, graveyard;
    struct sealed_ep
        *kept; /* memory of one that could not be made, for the next: so attempts get further where memory is scarce; */
    struct tp_connreq *kept_req; /* likewise */
    struct told_list told;
    struct frame_list free_frames;
    LIST_HEAD(, region) regions;
    LIST_HEAD(, tp_connreq) reqs;
    uint8_t message[sizeof(struct head) + TP_MSG_MAX + BOX_TAG]; /* that is being sealed */
};

static inline struct sealed_tp *tp_of(const struct tp_ep *ep)
{
    return (struct sealed_tp *)ep->tp;
}

/* sealed_io.c */
void sealed_break_ep(struct sealed_ep *ep);
int sealed_garbled(struct sealed_ep *ep, const char *what);
void sealed_mark(struct sealed_ep *ep);
void sealed_push(struct sealed_ep *ep);
struct job *sealed_job_new(enum frame_type type, struct tp_op *op, const void *memory, size_t len, size_t room);
bool sealed_room(const struct tp_ep *ep);
bool sealed_moved(const struct tp_ep *ep, struct tp_moved *moved);
keel_status sealed_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                        struct tp_op *op);
keel_status sealed_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                         struct tp_op *op);
keel_status sealed_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op);

/* sealed_serve.c */
keel_status sealed_reg(struct tp *base, void *memory, size_t len, uint64_t key);
void sealed_unreg(struct tp *base, uint64_t key);
int sealed_on_received(struct sealed_ep *ep, const struct tp_event *inner, struct tp_event *event);

/* sealed_link.c */
void sealed_ep_free(struct sealed_tp *tp, struct sealed_ep *ep);
keel_status sealed_listen(struct tp *base, struct tp_addr *out);
keel_status sealed_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                           struct tp_ep **out);
void sealed_request_free(struct sealed_tp *tp, struct tp_connreq *req);
void sealed_reject(struct tp *base, struct tp_connreq *req);
keel_status sealed_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out);
int sealed_on_request(struct sealed_tp *tp, const struct tp_event *inner, struct tp_event *event);
int sealed_on_connected(struct sealed_ep *ep, struct tp_event *event);
int sealed_on_sent(struct sealed_ep *ep, struct tp_op *op, keel_status status, struct tp_event *event);
void sealed_on_closed(struct sealed_ep *ep, keel_status status);
void sealed_disconnect(struct tp_ep *ep);
void sealed_told_free(struct sealed_tp *tp, struct told *told);
void sealed_ep_destroy(struct tp_ep *tp_ep);
#endif
