#include "runtime/transport/sealed.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "runtime/base/log.h"
#include "runtime/transport/sealed_box.h"
#include "runtime/transport/stream.h"

enum {
    PIECE = 16 * 1024,            /* bytes of a write or read in one frame */
    WINDOW = 64,                  /* frames of one ep with the transport below; more waits, unsealed */
    QUEUE_MAX = 64 * 1024 * 1024, /* copied bytes that wait in one ep */
    INNER_BATCH = 64,
};

enum frame_type { FRAME_MESSAGE = 1, FRAME_WRITE, FRAME_WRITTEN, FRAME_READ, FRAME_PART };

/* Begins the text of each frame; both ends have one byte order. */
struct head {
    uint32_t type, last;
    uint64_t id; /* of the write or read */
};
/* Follows in FRAME_WRITE and FRAME_READ (where it writes, or reads), and FRAME_PART (offset in the read). */
struct place {
    uint64_t key, offset, len;
};
static_assert(BOX_GREETING <= TP_CONNECT_MAX - TP_HELLO_MAX, "a greeting fits");
static_assert(sizeof(struct head) + BOX_TAG <= TP_FRAME_MAX - TP_BULK_MAX, "a message fits");
static_assert(sizeof(struct head) + sizeof(struct place) + PIECE + BOX_TAG <= TP_FRAME_MAX, "a piece fits");

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
    struct place place;
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
    uint8_t secret[BOX_SECRET];
    struct sealed_ep_list eps, graveyard;
    struct told_list told;
    struct frame_list free_frames;
    LIST_HEAD(, region) regions;
    LIST_HEAD(, tp_connreq) reqs;
};

static const struct tp_table tp_sealed;

static struct sealed_tp *tp_of(const struct tp_ep *ep)
{
    return (struct sealed_tp *)ep->tp;
}

/* ---- frames ---- */

static struct frame *frame_take(struct sealed_tp *tp)
{
    struct frame *f = TAILQ_FIRST(&tp->free_frames);
    if (f)
        TAILQ_REMOVE(&tp->free_frames, f, link);
    else
        f = malloc(sizeof *f);
    if (f) {
        f->tell = NULL;
        f->len = 0;
    }
    return f;
}

static void frame_add(struct frame *f, const void *data, size_t len)
{
    if (len)
        memcpy(f->bytes + f->len, data, len);
    f->len += len;
}

/* The connection is of no more use. TP_CLOSED follows. */
static void break_ep(struct sealed_ep *ep)
{
    if (ep->state >= EP_ENDING)
        return;
    ep->state = EP_ENDING;
    tp_disconnect(ep->inner);
}

/* Somebody has changed what was sent. */
static int garbled(struct sealed_ep *ep, const char *what)
{
    log_warn_some("a sealed connection %s: %s; it ends", ep->accepted ? "that was made to us" : "that we have made",
                  what);
    if (ep->state >= EP_ENDING)
        return 0;
    ep->state = EP_ENDING;
    if (ep->inner->tp->table->reset)
        ep->inner->tp->table->reset(ep->inner);
    else
        tp_disconnect(ep->inner);
    return 0;
}

static void mark(struct sealed_ep *ep)
{
    if (ep->inner->tp->table->mark)
        ep->inner->tp->table->mark(ep->inner, ep->box.send_mark, ep->box.recv_mark);
}

/* Numbers of frames are spent once they are sealed: a frame that cannot be sent ends the connection. */
static void frame_send(struct sealed_ep *ep, struct frame *f)
{
    box_seal(&ep->box, f->bytes, f->len);
    f->len += BOX_TAG;
    TAILQ_INSERT_TAIL(&ep->frames, f, link);
    ep->frames_out++;
    if (tp_send(ep->inner, f->bytes, f->len, NULL, 0, &f->op) != KEEL_OK)
        break_ep(ep); /* what it should tell is told at the end */
}

/* Bytes that the next piece takes: a word of the target's memory is never divided. */
static size_t piece_of(const struct job *job)
{
    size_t left = job->len - job->at, past = (job->place.offset + job->at + PIECE) % 8;
    return left <= PIECE - past ? left : PIECE - past;
}

static void add_piece(struct frame *f, struct job *job, bool part)
{
    size_t n = piece_of(job);
    struct head head = {.type = (uint32_t)job->type, .id = job->id, .last = job->at + n == job->len};
    struct place place = {.key = job->place.key, .offset = (part ? 0 : job->place.offset) + job->at, .len = n};
    frame_add(f, &head, sizeof head);
    frame_add(f, &place, sizeof place);
    frame_add(f, job->memory + job->at, n);
    job->at += n;
}

/* The next frame of a job; true if that was all of it. */
static bool job_step(struct sealed_ep *ep, struct job *job, struct frame *f)
{
    struct head head = {.type = (uint32_t)job->type, .id = job->id};
    bool done = true;
    switch (job->type) {
    case FRAME_WRITE:
    case FRAME_PART:
        add_piece(f, job, job->type == FRAME_PART);
        done = job->at == job->len;
        break;
    case FRAME_READ:
        frame_add(f, &head, sizeof head);
        frame_add(f, &job->place, sizeof job->place);
        break;
    default:
        frame_add(f, &head, sizeof head);
        frame_add(f, job->memory, job->len);
        f->tell = job->op;
    }
    frame_send(ep, f);
    return done;
}

static void job_sent(struct sealed_ep *ep, struct job *job, struct job_list *list)
{
    TAILQ_REMOVE(list, job, link);
    if (job->type == FRAME_WRITE || job->type == FRAME_READ) {
        TAILQ_INSERT_TAIL(&ep->asked, job, link);
        return;
    }
    if (job->type == FRAME_MESSAGE && !job->op)
        ep->copied -= job->len;
    free(job);
}

static bool step_first(struct sealed_ep *ep, struct job_list *list)
{
    struct job *job = TAILQ_FIRST(list);
    if (!job || ep->state != EP_UP || ep->frames_out >= WINDOW)
        return false;
    struct frame *f = frame_take(tp_of(&ep->base));
    if (!f) {
        break_ep(ep);
        return false;
    }
    if (job_step(ep, job, f))
        job_sent(ep, job, list);
    return true;
}

static void push(struct sealed_ep *ep)
{
    bool again;
    do {
        again = step_first(ep, &ep->todo);
        again = step_first(ep, &ep->parts) || again;
    } while (again);
}

static struct job *job_new(enum frame_type type, struct tp_op *op, const void *memory, size_t len, size_t room)
{
    struct job *job = malloc(sizeof *job + room);
    if (!job)
        return NULL;
    *job = (struct job){.type = type, .op = op, .memory = (uint8_t *)(uintptr_t)memory, .len = len};
    job->told.job = job;
    return job;
}

/* ---- posts ---- */

static keel_status send_now(struct sealed_ep *ep, const void *header, size_t hlen, const void *body, size_t len)
{
    uint8_t bytes[sizeof(struct head) + TP_MSG_MAX + BOX_TAG];
    struct head head = {.type = FRAME_MESSAGE};
    memcpy(bytes, &head, sizeof head);
    if (hlen)
        memcpy(bytes + sizeof head, header, hlen);
    if (len)
        memcpy(bytes + sizeof head + hlen, body, len);
    box_seal(&ep->box, bytes, sizeof head + hlen + len);
    keel_status status = tp_send(ep->inner, bytes, sizeof head + hlen + len + BOX_TAG, NULL, 0, NULL);
    if (status == KEEL_OK)
        return status;
    break_ep(ep);
    return KEEL_ERR_LINK;
}

static keel_status send_frame(struct sealed_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                              struct tp_op *op)
{
    struct head head = {.type = FRAME_MESSAGE};
    struct frame *f = frame_take(tp_of(&ep->base));
    if (!f)
        return KEEL_ERR_NOMEM;
    if (op)
        op->ep = &ep->base;
    f->tell = op;
    frame_add(f, &head, sizeof head);
    frame_add(f, header, hlen);
    frame_add(f, body, len);
    frame_send(ep, f);
    return KEEL_OK;
}

static keel_status sealed_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                               struct tp_op *op)
{
    struct sealed_ep *ep = (struct sealed_ep *)tp_ep;
    if (hlen > TP_BULK_MAX || len > TP_BULK_MAX - hlen)
        return KEEL_ERR_ARG;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    if (TAILQ_EMPTY(&ep->todo) && !op && hlen + len <= TP_MSG_MAX)
        return send_now(ep, header, hlen, body, len);
    if (TAILQ_EMPTY(&ep->todo) && ep->frames_out < WINDOW)
        return send_frame(ep, header, hlen, body, len, op);
    if (!op && ep->copied >= QUEUE_MAX) {
        break_ep(ep);
        return KEEL_ERR_LINK;
    }
    struct job *job = job_new(FRAME_MESSAGE, op, NULL, hlen + len, hlen + len);
    if (!job)
        return KEEL_ERR_NOMEM;
    job->memory = job->bytes;
    if (hlen)
        memcpy(job->bytes, header, hlen);
    if (len)
        memcpy(job->bytes + hlen, body, len);
    if (op)
        op->ep = tp_ep;
    else
        ep->copied += job->len;
    TAILQ_INSERT_TAIL(&ep->todo, job, link);
    push(ep);
    return KEEL_OK;
}

static keel_status post_access(struct tp_ep *tp_ep, enum frame_type type, const void *memory, size_t len,
                               struct place place, struct tp_op *op)
{
    struct sealed_ep *ep = (struct sealed_ep *)tp_ep;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    struct job *job = job_new(type, op, memory, len, 0);
    if (!job)
        return KEEL_ERR_NOMEM;
    job->place = place;
    job->id = ++ep->last_id;
    op->ep = tp_ep;
    TAILQ_INSERT_TAIL(&ep->todo, job, link);
    push(ep);
    return KEEL_OK;
}

static keel_status sealed_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                                struct tp_op *op)
{
    return post_access(ep, FRAME_WRITE, src, len, (struct place){key, offset, len}, op);
}

static keel_status sealed_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return post_access(ep, FRAME_READ, dst, len, (struct place){key, offset, len}, op);
}

/* ---- what a peer wants of our memory ---- */

static keel_status sealed_reg(struct tp *base, void *memory, size_t len, uint64_t key)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    struct region *region;
    LIST_FOREACH(region, &tp->regions, link)
        if (region->key == key)
            return KEEL_ERR_ARG;
    region = malloc(sizeof *region);
    if (!region)
        return KEEL_ERR_NOMEM;
    *region = (struct region){.key = key, .memory = memory, .len = len};
    LIST_INSERT_HEAD(&tp->regions, region, link);
    return KEEL_OK;
}

/* Parts that are still to be read from it are lost with their connection. */
static void forget_region(struct sealed_tp *tp, uint64_t key)
{
    struct sealed_ep *ep;
    struct job *job;
    TAILQ_FOREACH(ep, &tp->eps, link)
        TAILQ_FOREACH(job, &ep->parts, link)
            if (job->place.key == key) {
                break_ep(ep);
                break;
            }
}

static void sealed_unreg(struct tp *base, uint64_t key)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    struct region *region;
    LIST_FOREACH(region, &tp->regions, link)
        if (region->key == key) {
            LIST_REMOVE(region, link);
            free(region);
            forget_region(tp, key);
            return;
        }
}

static uint8_t *reach(struct sealed_tp *tp, const struct place *place)
{
    struct region *region;
    LIST_FOREACH(region, &tp->regions, link)
        if (region->key == place->key)
            return place->offset <= region->len && place->len <= region->len - place->offset
                       ? region->memory + place->offset
                       : NULL;
    return NULL;
}

static bool on_write(struct sealed_ep *ep, const struct head *head, const struct place *place, const uint8_t *data,
                     size_t len)
{
    uint8_t *to = reach(tp_of(&ep->base), place);
    if (!to || place->len != len)
        return false;
    if (len)
        memcpy(to, data, len);
    if (!head->last)
        return true;
    uint8_t bytes[sizeof(struct head) + BOX_TAG];
    struct head answer = {.type = FRAME_WRITTEN, .id = head->id};
    memcpy(bytes, &answer, sizeof answer);
    box_seal(&ep->box, bytes, sizeof answer);
    if (tp_send(ep->inner, bytes, sizeof bytes, NULL, 0, NULL) != KEEL_OK)
        break_ep(ep);
    return true;
}

static bool on_read(struct sealed_ep *ep, const struct head *head, const struct place *place)
{
    uint8_t *from = reach(tp_of(&ep->base), place);
    if (!from)
        return false;
    struct job *job = job_new(FRAME_PART, NULL, from, place->len, 0);
    if (!job)
        return false;
    job->id = head->id;
    job->place = *place;
    TAILQ_INSERT_TAIL(&ep->parts, job, link);
    push(ep);
    return true;
}

/* ---- answers ---- */

static struct job *asked(struct sealed_ep *ep, enum frame_type type, uint64_t id)
{
    struct job *job;
    TAILQ_FOREACH(job, &ep->asked, link)
        if (job->id == id)
            return job->type == type ? job : NULL;
    return NULL;
}

static int job_done(struct sealed_ep *ep, struct job *job, struct tp_event *event)
{
    *event = (struct tp_event){.type = TP_DONE, .status = KEEL_OK, .ep = &ep->base, .op = job->op};
    TAILQ_REMOVE(&ep->asked, job, link);
    free(job);
    return 1;
}

static int on_part(struct sealed_ep *ep, const struct head *head, const struct place *place, const uint8_t *data,
                   size_t len, struct tp_event *event)
{
    struct job *job = asked(ep, FRAME_READ, head->id);
    if (!job || place->len != len || place->offset != job->at || len > job->len - job->at ||
        (head->last && job->at + len != job->len))
        return garbled(ep, "a part of no read");
    if (len)
        memcpy(job->memory + job->at, data, len);
    job->at += len;
    return head->last ? job_done(ep, job, event) : 0;
}

/* An opened frame. 1 if it became an event. */
static int on_frame(struct sealed_ep *ep, const uint8_t *text, size_t len, struct tp_event *event)
{
    struct head head;
    struct place place = {0};
    if (len < sizeof head)
        return garbled(ep, "a frame without a head");
    memcpy(&head, text, sizeof head);
    text += sizeof head;
    len -= sizeof head;
    if (head.type == FRAME_MESSAGE) {
        *event = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = text, .len = len};
        return 1;
    }
    if (head.type == FRAME_WRITTEN) {
        struct job *job = asked(ep, FRAME_WRITE, head.id);
        return job ? job_done(ep, job, event) : garbled(ep, "an answer to no write");
    }
    if (len < sizeof place)
        return garbled(ep, "a frame without a place");
    memcpy(&place, text, sizeof place);
    text += sizeof place;
    len -= sizeof place;
    if (head.type == FRAME_PART)
        return on_part(ep, &head, &place, text, len, event);
    bool good = head.type == FRAME_WRITE  ? on_write(ep, &head, &place, text, len)
                : head.type == FRAME_READ ? on_read(ep, &head, &place)
                                          : false;
    if (!good) { /* as when a provider is asked for memory that is not there: nobody is to blame */
        log_debug("a sealed connection asked for memory that is not there; it ends");
        break_ep(ep);
    }
    return 0;
}

static int on_received(struct sealed_ep *ep, const struct tp_event *inner, struct tp_event *event)
{
    struct sealed_tp *tp = tp_of(&ep->base);
    size_t len = inner->len;
    uint8_t *text =
        (uint8_t *)(uintptr_t)inner->data; /* opened in place: the receive buffer is ours until the next poll */
    if (ep->state == EP_GREETING) {
        if (!box_take_answer(&ep->box, tp->secret, text, len))
            return garbled(ep, "its answer is not of this job");
        mark(ep);
        ep->state = EP_UP;
        *event = (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base};
        return 1;
    }
    if (ep->state != EP_UP)
        return 0;
    if (!box_open(&ep->box, text, &len))
        return garbled(ep, "what came on it is not what was sent");
    return on_frame(ep, text, len, event);
}

/* ---- connections ---- */

static struct sealed_ep *ep_new(struct sealed_tp *tp, void *user, bool accepted)
{
    struct sealed_ep *ep = calloc(1, sizeof *ep);
    if (!ep)
        return NULL;
    ep->base = (struct tp_ep){.tp = &tp->base, .user = user};
    ep->accepted = accepted;
    TAILQ_INIT(&ep->todo);
    TAILQ_INIT(&ep->asked);
    TAILQ_INIT(&ep->parts);
    TAILQ_INIT(&ep->frames);
    return ep;
}

static void ep_free(struct sealed_ep *ep)
{
    sodium_memzero(&ep->box, sizeof ep->box);
    free(ep);
}

static keel_status ep_ready(struct sealed_tp *tp, struct sealed_ep *ep, keel_status status, struct tp_ep **out)
{
    if (status != KEEL_OK) {
        ep_free(ep);
        return status;
    }
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    *out = &ep->base;
    return KEEL_OK;
}

static keel_status sealed_listen(struct tp *base, struct tp_addr *out)
{
    struct tp *inner = ((struct sealed_tp *)base)->inner;
    return inner->table->listen(inner, out);
}

static keel_status sealed_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                                  struct tp_ep **out)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    uint8_t bytes[TP_CONNECT_MAX], scalar[BOX_POINT];
    if (len > TP_HELLO_MAX)
        return KEEL_ERR_ARG;
    struct sealed_ep *ep = ep_new(tp, user, false);
    if (!ep)
        return KEEL_ERR_NOMEM;
    randombytes_buf(scalar, sizeof scalar);
    box_greet(&ep->box, tp->secret, scalar, hello, len, bytes);
    sodium_memzero(scalar, sizeof scalar);
    if (len)
        memcpy(bytes + BOX_GREETING, hello, len);
    keel_status status = tp->inner->table->connect(tp->inner, to, bytes, BOX_GREETING + len, ep, &ep->inner);
    return ep_ready(tp, ep, status, out);
}

static void request_free(struct tp_connreq *req)
{
    LIST_REMOVE(req, link);
    free(req);
}

static void sealed_reject(struct tp *base, struct tp_connreq *req)
{
    struct tp *inner = ((struct sealed_tp *)base)->inner;
    inner->table->reject(inner, req->inner);
    request_free(req);
}

static keel_status sealed_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    uint8_t scalar[BOX_POINT];
    struct sealed_ep *ep = ep_new(tp, user, true);
    randombytes_buf(scalar, sizeof scalar);
    if (!ep || !req->good || !box_answer(&ep->box, tp->secret, scalar, req->greeting, ep->answer)) {
        keel_status status = ep ? KEEL_ERR_AUTH : KEEL_ERR_NOMEM;
        if (ep)
            ep_free(ep);
        sealed_reject(base, req);
        return status;
    }
    sodium_memzero(scalar, sizeof scalar);
    keel_status status = tp->inner->table->accept(tp->inner, req->inner, ep, &ep->inner);
    request_free(req);
    return ep_ready(tp, ep, status, out);
}

static int on_request(struct sealed_tp *tp, const struct tp_event *inner, struct tp_event *event)
{
    struct tp_connreq *req = calloc(1, sizeof *req);
    if (!req) {
        tp->inner->table->reject(tp->inner, inner->req);
        return 0;
    }
    req->inner = inner->req;
    req->good = box_is_greeting(tp->secret, inner->data, inner->len);
    LIST_INSERT_HEAD(&tp->reqs, req, link);
    *event = (struct tp_event){.type = TP_CONNREQ, .req = req};
    if (req->good) { /* the caller refuses an empty hello in its own way, and counts it */
        memcpy(req->greeting, inner->data, sizeof req->greeting);
        event->data = (const uint8_t *)inner->data + BOX_GREETING;
        event->len = inner->len - BOX_GREETING;
    }
    return 1;
}

static int on_connected(struct sealed_ep *ep, struct tp_event *event)
{
    if (!ep->accepted || ep->state != EP_GREETING)
        return 0; /* a connector waits for the answer */
    if (tp_send(ep->inner, ep->answer, sizeof ep->answer, NULL, 0, NULL) != KEEL_OK) {
        break_ep(ep);
        return 0;
    }
    mark(ep);
    ep->state = EP_UP;
    *event = (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base};
    return 1;
}

static int on_sent(struct sealed_ep *ep, struct tp_op *op, keel_status status, struct tp_event *event)
{
    struct frame *f = (struct frame *)op; /* its first member */
    struct tp_op *tell = f->tell;
    TAILQ_REMOVE(&ep->frames, f, link);
    ep->frames_out--;
    TAILQ_INSERT_HEAD(&tp_of(&ep->base)->free_frames, f, link);
    push(ep);
    if (!tell)
        return 0;
    *event = (struct tp_event){.type = TP_DONE, .status = status, .ep = &ep->base, .op = tell};
    return 1;
}

static void tell_lost(struct sealed_ep *ep, struct job_list *list)
{
    struct job *job;
    while ((job = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, job, link);
        if (!job->op) {
            free(job);
            continue;
        }
        job->told.event = (struct tp_event){.type = TP_DONE, .status = KEEL_ERR_LINK, .ep = &ep->base, .op = job->op};
        STAILQ_INSERT_TAIL(&tp_of(&ep->base)->told, &job->told, link);
    }
}

/* The transport below has told of all that it had taken: these could not be sent. */
static void frames_lost(struct sealed_ep *ep)
{
    struct frame *f;
    while ((f = TAILQ_FIRST(&ep->frames)) != NULL) {
        TAILQ_REMOVE(&ep->frames, f, link);
        if (!f->tell) {
            TAILQ_INSERT_HEAD(&tp_of(&ep->base)->free_frames, f, link);
            continue;
        }
        f->told = (struct told){.event = {.type = TP_DONE, .status = KEEL_ERR_LINK, .ep = &ep->base, .op = f->tell},
                                .frame = f};
        STAILQ_INSERT_TAIL(&tp_of(&ep->base)->told, &f->told, link);
    }
}

static void on_closed(struct sealed_ep *ep, keel_status status)
{
    ep->state = EP_CLOSED;
    tell_lost(ep, &ep->asked);
    tell_lost(ep, &ep->todo);
    tell_lost(ep, &ep->parts);
    frames_lost(ep);
    ep->closed.event = (struct tp_event){.type = TP_CLOSED, .status = status, .ep = &ep->base};
    STAILQ_INSERT_TAIL(&tp_of(&ep->base)->told, &ep->closed, link);
}

static void sealed_disconnect(struct tp_ep *ep)
{
    break_ep((struct sealed_ep *)ep);
}

static void jobs_free(struct job_list *list)
{
    struct job *job;
    while ((job = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, job, link);
        free(job);
    }
}

static void told_free(struct sealed_tp *tp, struct told *told)
{
    if (told->frame)
        TAILQ_INSERT_HEAD(&tp->free_frames, told->frame, link);
    free(told->job);
}

static void forget_told(struct sealed_tp *tp, const struct tp_ep *ep)
{
    struct told *told = STAILQ_FIRST(&tp->told), *next;
    for (; told; told = next) {
        next = STAILQ_NEXT(told, link);
        if (told->event.ep != ep)
            continue;
        STAILQ_REMOVE(&tp->told, told, told, link);
        told_free(tp, told);
    }
}

static void sealed_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct sealed_ep *ep = (struct sealed_ep *)tp_ep;
    struct sealed_tp *tp = tp_of(tp_ep);
    tp_ep_destroy(ep->inner);
    forget_told(tp, tp_ep);
    jobs_free(&ep->todo);
    jobs_free(&ep->asked);
    jobs_free(&ep->parts);
    TAILQ_CONCAT(&tp->free_frames, &ep->frames, link);
    ep->state = EP_CLOSED;
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link);
}

/* ---- open, close, poll ---- */

static void bury(struct sealed_tp *tp)
{
    struct sealed_ep *ep;
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, link);
        ep_free(ep);
    }
}

static void sealed_close(struct tp *base)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    struct region *region;
    struct frame *frame;
    while (!TAILQ_EMPTY(&tp->eps))
        sealed_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    tp->inner->table->close(tp->inner);
    bury(tp);
    while (!LIST_EMPTY(&tp->reqs)) // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is off the list
        request_free(LIST_FIRST(&tp->reqs));
    while ((region = LIST_FIRST(&tp->regions)) != NULL) {
        LIST_REMOVE(region, link);
        free(region);
    }
    while ((frame = TAILQ_FIRST(&tp->free_frames)) != NULL) {
        TAILQ_REMOVE(&tp->free_frames, frame, link);
        free(frame);
    }
    sodium_memzero(tp->secret, sizeof tp->secret);
    free(tp);
}

static int on_event(struct sealed_tp *tp, const struct tp_event *inner, struct tp_event *event)
{
    if (inner->type == TP_CONNREQ)
        return on_request(tp, inner, event);
    struct sealed_ep *ep = tp_ep_user(inner->ep);
    switch (inner->type) {
    case TP_CONNECTED:
        return on_connected(ep, event);
    case TP_RECV:
        return on_received(ep, inner, event);
    case TP_DONE:
        return on_sent(ep, inner->op, inner->status, event);
    default:
        on_closed(ep, inner->status);
        return 0;
    }
}

static int tell(struct sealed_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct told *told;
    while (n < max && (told = STAILQ_FIRST(&tp->told)) != NULL) {
        STAILQ_REMOVE_HEAD(&tp->told, link);
        events[n++] = told->event;
        told_free(tp, told);
    }
    return n;
}

/* Looks below until there is something to tell or nothing more has come: pieces of writes leave no event. */
static int sealed_poll(struct tp *base, struct tp_event *events, int max)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    struct tp_event inner[INNER_BATCH];
    bury(tp);
    int n = tell(tp, events, max), got = 1;
    while (n == 0 && got > 0) {
        got = tp_poll(tp->inner, inner, max < INNER_BATCH ? max : INNER_BATCH);
        for (int i = 0; i < got; i++)
            n += on_event(tp, &inner[i], &events[n]);
        n += tell(tp, events + n, max - n);
    }
    return n;
}

static int sealed_wait_fd(struct tp *base)
{
    struct tp *inner = ((struct sealed_tp *)base)->inner;
    return inner->table->wait_fd(inner);
}

static bool sealed_arm(struct tp *base)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    return STAILQ_EMPTY(&tp->told) && tp->inner->table->arm(tp->inner);
}

static keel_status no_open(const struct tp_config *config, struct tp **out)
{
    (void)config;
    (void)out;
    return KEEL_ERR_ARG; /* see tp_sealed_open */
}

static const struct tp_table tp_sealed = {
    .name = "sealed",
    .open = no_open,
    .close = sealed_close,
    .listen = sealed_listen,
    .connect = sealed_connect,
    .accept = sealed_accept,
    .reject = sealed_reject,
    .disconnect = sealed_disconnect,
    .ep_destroy = sealed_ep_destroy,
    .reg = sealed_reg,
    .unreg = sealed_unreg,
    .send = sealed_send,
    .write = sealed_write,
    .read = sealed_read,
    .poll = sealed_poll,
    .wait_fd = sealed_wait_fd,
    .arm = sealed_arm,
};

keel_status tp_sealed_open(struct tp *inner, const uint8_t secret[32], struct tp **out)
{
    struct sealed_tp *tp = calloc(1, sizeof *tp);
    if (!tp || sodium_init() < 0) {
        free(tp);
        inner->table->close(inner);
        return tp ? KEEL_ERR_SYSTEM : KEEL_ERR_NOMEM;
    }
    *tp = (struct sealed_tp){.base.table = &tp_sealed, .inner = inner};
    memcpy(tp->secret, secret, sizeof tp->secret);
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->graveyard);
    TAILQ_INIT(&tp->free_frames);
    STAILQ_INIT(&tp->told);
    *out = &tp->base;
    return KEEL_OK;
}

keel_status tp_net_open(const struct tp_config *config, const uint8_t *secret, struct tp **out)
{
    struct tp *inner;
    if (!secret)
        return tp_ofi.open(config, out);
    keel_status status = tp_stream.open(config, &inner);
    return status == KEEL_OK ? tp_sealed_open(inner, secret, out) : status;
}
