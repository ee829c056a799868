/* Sealed connections: what comes, which is what a peer wants of our memory, or answers. */
#include "runtime/net/sealed/sealed_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"

/* ---- what a peer wants of our memory ---- */

keel_status sealed_reg(struct tp *base, void *memory, size_t len, uint64_t key)
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
                sealed_break_ep(ep);
                break;
            }
}

void sealed_unreg(struct tp *base, uint64_t key)
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

static uint8_t *reach(struct sealed_tp *tp, const struct remote_range *place)
{
    struct region *region;
    LIST_FOREACH(region, &tp->regions, link)
        if (region->key == place->key)
            return place->offset <= region->len && place->len <= region->len - place->offset
                       ? region->memory + place->offset
                       : NULL;
    return NULL;
}

static bool on_write(struct sealed_ep *ep, const struct head *head, const struct remote_range *place,
                     const uint8_t *data, size_t len)
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
        sealed_break_ep(ep);
    return true;
}

static bool on_read(struct sealed_ep *ep, const struct head *head, const struct remote_range *place)
{
    uint8_t *from = reach(tp_of(&ep->base), place);
    if (!from)
        return false;
    struct job *job = sealed_job_new(FRAME_PART, NULL, from, place->len, 0);
    if (!job)
        return false;
    job->id = head->id;
    job->place = *place;
    TAILQ_INSERT_TAIL(&ep->parts, job, link);
    sealed_push(ep);
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

static int on_part(struct sealed_ep *ep, const struct head *head, const struct remote_range *place, const uint8_t *data,
                   size_t len, struct tp_event *event)
{
    struct job *job = asked(ep, FRAME_READ, head->id);
    if (!job || place->len != len || place->offset != job->at || len > job->len - job->at ||
        (head->last && job->at + len != job->len))
        return sealed_garbled(ep, "a part of no read");
    if (len)
        memcpy(job->memory + job->at, data, len);
    job->at += len;
    return head->last ? job_done(ep, job, event) : 0;
}

/* An opened frame. 1 if it became an event. */
static int on_frame(struct sealed_ep *ep, const uint8_t *text, size_t len, struct tp_event *event)
{
    struct head head;
    struct remote_range place = {0};
    if (len < sizeof head)
        return sealed_garbled(ep, "a frame without a head");
    memcpy(&head, text, sizeof head);
    text += sizeof head;
    len -= sizeof head;
    if (head.type == FRAME_MESSAGE) {
        *event = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = text, .len = len};
        return 1;
    }
    if (head.type == FRAME_WRITTEN) {
        struct job *job = asked(ep, FRAME_WRITE, head.id);
        return job ? job_done(ep, job, event) : sealed_garbled(ep, "an answer to no write");
    }
    if (len < sizeof place)
        return sealed_garbled(ep, "a frame without a place");
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
        sealed_break_ep(ep);
    }
    return 0;
}

int sealed_on_received(struct sealed_ep *ep, const struct tp_event *inner, struct tp_event *event)
{
    struct sealed_tp *tp = tp_of(&ep->base);
    size_t len = inner->len;
    uint8_t *text =
        (uint8_t *)(uintptr_t)inner->data; /* opened in place: the receive buffer is ours until the next poll */
    if (ep->state == EP_GREETING) {
        if (!box_take_answer(&ep->box, tp->secret, text, len))
            return sealed_garbled(ep, "its answer is not of this job");
        sealed_mark(ep);
        ep->state = EP_UP;
        *event = (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base};
        return 1;
    }
    if (ep->state != EP_UP)
        return 0;
    if (!box_open(&ep->box, text, &len))
        return sealed_garbled(ep, "what came on it is not what was sent");
    return on_frame(ep, text, len, event);
}
