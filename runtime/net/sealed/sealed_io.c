/* Sealed connections: what is posted, and the frames that it becomes. */
#include "runtime/net/sealed/sealed_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"

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
void sealed_break_ep(struct sealed_ep *ep)
{
    if (ep->state >= EP_ENDING)
        return;
    ep->state = EP_ENDING;
    tp_disconnect(ep->inner);
}

/* Somebody has changed what was sent. */
int sealed_garbled(struct sealed_ep *ep, const char *what)
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

void sealed_mark(struct sealed_ep *ep)
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
        sealed_break_ep(ep); /* what it should tell is told at the end */
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
    struct remote_range place = {.key = job->place.key, .offset = (part ? 0 : job->place.offset) + job->at, .len = n};
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
        sealed_break_ep(ep);
        return false;
    }
    if (job_step(ep, job, f))
        job_sent(ep, job, list);
    return true;
}

void sealed_push(struct sealed_ep *ep)
{
    bool again;
    do {
        again = step_first(ep, &ep->todo);
        again = step_first(ep, &ep->parts) || again;
    } while (again);
}

struct job *sealed_job_new(enum frame_type type, struct tp_op *op, const void *memory, size_t len, size_t room)
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
    uint8_t *bytes = tp_of(&ep->base)->message; /* too large for a stack */
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
    sealed_break_ep(ep);
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

keel_status sealed_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
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
        sealed_break_ep(ep);
        return KEEL_ERR_LINK;
    }
    struct job *job = sealed_job_new(FRAME_MESSAGE, op, NULL, hlen + len, hlen + len);
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
    sealed_push(ep);
    return KEEL_OK;
}

bool sealed_room(const struct tp_ep *tp_ep)
{
    const struct sealed_ep *ep = (const struct sealed_ep *)tp_ep;
    return TAILQ_EMPTY(&ep->todo) && (ep->state != EP_UP || tp_room(ep->inner));
}

bool sealed_moved(const struct tp_ep *tp_ep, struct tp_moved *moved)
{
    const struct sealed_ep *ep = (const struct sealed_ep *)tp_ep;
    return ep->state == EP_UP && tp_moved(ep->inner, moved);
}

static keel_status post_access(struct tp_ep *tp_ep, enum frame_type type, const void *memory, size_t len,
                               struct remote_range place, struct tp_op *op)
{
    struct sealed_ep *ep = (struct sealed_ep *)tp_ep;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    struct job *job = sealed_job_new(type, op, memory, len, 0);
    if (!job)
        return KEEL_ERR_NOMEM;
    job->place = place;
    job->id = ++ep->last_id;
    op->ep = tp_ep;
    TAILQ_INSERT_TAIL(&ep->todo, job, link);
    sealed_push(ep);
    return KEEL_OK;
}

keel_status sealed_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return post_access(ep, FRAME_WRITE, src, len, (struct remote_range){key, offset, len}, op);
}

keel_status sealed_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return post_access(ep, FRAME_READ, dst, len, (struct remote_range){key, offset, len}, op);
}
