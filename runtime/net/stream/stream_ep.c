/* A connection over sockets: events that wait to be told, descriptors, the end. */
#include "runtime/net/stream/stream_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- events that wait ---- */

void stream_tell(struct stream_tp *tp, struct told *told, struct tp_event event)
{
    told->event = event;
    STAILQ_INSERT_TAIL(&tp->told, told, link);
}

void stream_output_end(struct stream_ep *ep, struct output *o, keel_status status)
{
    o->told.holder = o;
    if (o->op)
        stream_tell(tp_of(&ep->base), &o->told,
                    (struct tp_event){.type = TP_DONE, .status = status, .ep = &ep->base, .op = o->op});
    else
        free(o);
}

int stream_take_told(struct stream_tp *tp, struct tp_event *events, int max)
{
    struct told *told;
    int n = 0;
    while (n < max && (told = STAILQ_FIRST(&tp->told)) != NULL) {
        STAILQ_REMOVE_HEAD(&tp->told, link);
        events[n++] = told->event;
        free(told->holder);
    }
    return n;
}

void stream_forget_told(struct stream_tp *tp, const struct tp_ep *ep)
{
    struct told *told = STAILQ_FIRST(&tp->told), *next;
    for (; told; told = next) {
        next = STAILQ_NEXT(told, link);
        if (ep && told->event.ep != ep)
            continue;
        STAILQ_REMOVE(&tp->told, told, told, link);
        free(told->holder);
    }
}

/* ---- descriptors ---- */

bool stream_watch(struct stream_tp *tp, int fd, uint32_t events, void *who, int how)
{
    struct epoll_event event = {.events = events, .data.ptr = who};
    return epoll_ctl(tp->epoll_fd, how, fd, &event) == 0;
}

void stream_watch_ep(struct stream_ep *ep, uint32_t events)
{
    if (ep->watched == events)
        return;
    stream_watch(tp_of(&ep->base), ep->fd, events, &ep->what, EPOLL_CTL_MOD);
    ep->watched = events;
}

/* Until it is executed anew, a child of a fork has a copy of every descriptor: the set would go on watching the socket
 * for memory that is another's by then, and the peer would not see the end. */
void stream_fd_close(struct stream_tp *tp, int *fd)
{
    if (*fd < 0)
        return;
    stream_watch(tp, *fd, 0, NULL, EPOLL_CTL_DEL); /* or it never was there */
    shutdown(*fd, SHUT_RDWR);
    close(*fd);
    *fd = -1;
}

void stream_spare_open(struct stream_tp *tp)
{
    if (tp->spare_fd < 0)
        tp->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* ---- the end of a connection ---- */

void stream_outputs_end(struct stream_ep *ep, bool say)
{
    struct output *o;
    while ((o = STAILQ_FIRST(&ep->out)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->out, link);
        if (say)
            stream_output_end(ep, o, KEEL_ERR_LINK);
        else
            free(o);
    }
}

void stream_unlist(struct stream_ep *ep)
{
    struct stream_tp *tp = tp_of(&ep->base);
    if (ep->ready)
        TAILQ_REMOVE(&tp->ready, ep, ready_link);
    if (ep->looked)
        TAILQ_REMOVE(&tp->looked, ep, looked_link);
    ep->ready = ep->looked = false;
}

void stream_ep_end(struct stream_ep *ep, keel_status status)
{
    if (ep->state == EP_ENDED)
        return;
    ep->state = EP_ENDED;
    stream_fd_close(tp_of(&ep->base), &ep->fd);
    stream_unlist(ep);
    stream_outputs_end(ep, true);
    stream_tell(tp_of(&ep->base), &ep->closed, (struct tp_event){.type = TP_CLOSED, .status = status, .ep = &ep->base});
}

/* Hard and at once. A reset, for the peer may not understand an orderly end: somebody who has put bytes into the stream
 * has made its numbers disagree with ours. */
void stream_ep_drop(struct stream_ep *ep)
{
    const struct linger at_once = {.l_onoff = 1};
    if (ep->fd >= 0)
        setsockopt(ep->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    stream_ep_end(ep, KEEL_ERR_LINK);
}

void stream_make_ready(struct stream_ep *ep)
{
    if (ep->ready)
        return;
    ep->ready = true;
    TAILQ_INSERT_TAIL(&tp_of(&ep->base)->ready, ep, ready_link);
}

/* The kernel says that it is over: what was received before comes first. */
void stream_ep_lost(struct stream_ep *ep)
{
    if (ep->state < EP_UP)
        stream_ep_end(ep, KEEL_ERR_LINK);
    if (ep->state != EP_UP)
        return;
    ep->state = EP_DOWN;
    stream_watch_ep(ep, 0); /* the poll reads the rest */
    stream_make_ready(ep);
}
