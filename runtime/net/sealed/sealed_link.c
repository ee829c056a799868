/* Sealed connections: how they are made and end. */
#include "runtime/net/sealed/sealed_int.h"

#include <stdlib.h>
#include <string.h>

static struct sealed_ep *ep_new(struct sealed_tp *tp, void *user, bool accepted)
{
    struct sealed_ep *ep = tp->kept ? tp->kept : malloc(sizeof *ep);
    tp->kept = NULL;
    if (!ep)
        return NULL;
    *ep = (struct sealed_ep){.base = {.tp = &tp->base, .user = user}, .accepted = accepted};
    TAILQ_INIT(&ep->todo);
    TAILQ_INIT(&ep->asked);
    TAILQ_INIT(&ep->parts);
    TAILQ_INIT(&ep->frames);
    return ep;
}

void sealed_ep_free(struct sealed_tp *tp, struct sealed_ep *ep)
{
    sodium_memzero(&ep->box, sizeof ep->box);
    if (tp->kept)
        free(ep);
    else
        tp->kept = ep;
}

static keel_status ep_ready(struct sealed_tp *tp, struct sealed_ep *ep, keel_status status, struct tp_ep **out)
{
    if (status != KEEL_OK) {
        sealed_ep_free(tp, ep);
        return status;
    }
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    *out = &ep->base;
    return KEEL_OK;
}

keel_status sealed_listen(struct tp *base, struct tp_addr *out)
{
    struct tp *inner = ((struct sealed_tp *)base)->inner;
    return inner->table->listen(inner, out);
}

keel_status sealed_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
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

void sealed_request_free(struct sealed_tp *tp, struct tp_connreq *req)
{
    LIST_REMOVE(req, link);
    if (tp->kept_req)
        free(req);
    else
        tp->kept_req = req;
}

void sealed_reject(struct tp *base, struct tp_connreq *req)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    tp->inner->table->reject(tp->inner, req->inner);
    sealed_request_free(tp, req);
}

keel_status sealed_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    uint8_t scalar[BOX_POINT];
    struct sealed_ep *ep = ep_new(tp, user, true);
    randombytes_buf(scalar, sizeof scalar);
    if (!ep || !req->good || !box_answer(&ep->box, tp->secret, scalar, req->greeting, ep->answer)) {
        keel_status status = ep ? KEEL_ERR_AUTH : KEEL_ERR_NOMEM;
        if (ep)
            sealed_ep_free(tp, ep);
        sealed_reject(base, req);
        return status;
    }
    sodium_memzero(scalar, sizeof scalar);
    keel_status status = tp->inner->table->accept(tp->inner, req->inner, ep, &ep->inner);
    sealed_request_free(tp, req);
    return ep_ready(tp, ep, status, out);
}

int sealed_on_request(struct sealed_tp *tp, const struct tp_event *inner, struct tp_event *event)
{
    struct tp_connreq *req = tp->kept_req ? tp->kept_req : malloc(sizeof *req);
    tp->kept_req = NULL;
    if (!req) {
        tp->inner->table->reject(tp->inner, inner->req);
        return 0;
    }
    *req = (struct tp_connreq){.inner = inner->req, .good = box_is_greeting(tp->secret, inner->data, inner->len)};
    LIST_INSERT_HEAD(&tp->reqs, req, link);
    *event = (struct tp_event){.type = TP_CONNREQ, .req = req};
    if (req->good) { /* the caller refuses an empty hello in its own way, and counts it */
        memcpy(req->greeting, inner->data, sizeof req->greeting);
        event->data = (const uint8_t *)inner->data + BOX_GREETING;
        event->len = inner->len - BOX_GREETING;
    }
    return 1;
}

int sealed_on_connected(struct sealed_ep *ep, struct tp_event *event)
{
    if (!ep->accepted || ep->state != EP_GREETING)
        return 0; /* a connector waits for the answer */
    if (tp_send(ep->inner, ep->answer, sizeof ep->answer, NULL, 0, NULL) != KEEL_OK) {
        sealed_break_ep(ep);
        return 0;
    }
    sealed_mark(ep);
    ep->state = EP_UP;
    *event = (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base};
    return 1;
}

int sealed_on_sent(struct sealed_ep *ep, struct tp_op *op, keel_status status, struct tp_event *event)
{
    struct frame *f = (struct frame *)op; /* its first member */
    struct tp_op *tell = f->tell;
    TAILQ_REMOVE(&ep->frames, f, link);
    ep->frames_out--;
    TAILQ_INSERT_HEAD(&tp_of(&ep->base)->free_frames, f, link);
    sealed_push(ep);
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

void sealed_on_closed(struct sealed_ep *ep, keel_status status)
{
    ep->state = EP_CLOSED;
    ep->base.error = ep->inner ? ep->inner->error : 0;
    tell_lost(ep, &ep->asked);
    tell_lost(ep, &ep->todo);
    tell_lost(ep, &ep->parts);
    frames_lost(ep);
    ep->closed.event = (struct tp_event){.type = TP_CLOSED, .status = status, .ep = &ep->base};
    STAILQ_INSERT_TAIL(&tp_of(&ep->base)->told, &ep->closed, link);
}

void sealed_disconnect(struct tp_ep *ep)
{
    sealed_break_ep((struct sealed_ep *)ep);
}

static void jobs_free(struct job_list *list)
{
    struct job *job;
    while ((job = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, job, link);
        free(job);
    }
}

void sealed_told_free(struct sealed_tp *tp, struct told *told)
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
        sealed_told_free(tp, told);
    }
}

void sealed_ep_destroy(struct tp_ep *tp_ep)
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
