/* Rings and bells of a rank and its agent (shm.c): made, found by the other one, and given back. */
#include "runtime/net/shm/shm_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

enum { FD_RINGS, FD_AGENT_BELL, FD_RANK_BELL };

#define RINGS_MAGIC 0x6b65656c72696e67ull

/* ---- open and close ---- */

keel_status tp_shm_open(struct tp **out)
{
    struct shm_tp *tp = calloc(1, sizeof(*tp));
    if (!tp)
        return KEEL_ERR_NOMEM;
    tp->base.table = &tp_shm;
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->graveyard);
    STAILQ_INIT(&tp->done);
    tp->arena = malloc(ARENA_BYTES);
    tp->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (!tp->arena || tp->bell < 0 || tp->epoll_fd < 0 ||
        epoll_ctl(tp->epoll_fd, EPOLL_CTL_ADD, tp->bell, &event) != 0) {
        keel_status status = refusal_note(errno);
        shm_close(&tp->base);
        return status;
    }
    *out = &tp->base;
    return KEEL_OK;
}

keel_status shm_open_config(const struct tp_config *config, struct tp **out)
{
    (void)config;
    return tp_shm_open(out);
}

void shm_bury(struct shm_tp *tp)
{
    struct shm_ep *ep;
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, link);
        free(ep);
    }
}

static void ep_release(struct shm_ep *ep)
{
    const struct shm_tp *tp = (const struct shm_tp *)ep->base.tp;
    struct queued *message;
    while ((message = STAILQ_FIRST(&ep->queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->queue, link);
        free(message);
    }
    if (ep->rings)
        munmap(ep->rings, sizeof(*ep->rings));
    if (ep->own_bell >= 0) {
        epoll_ctl(tp->epoll_fd, EPOLL_CTL_DEL, ep->own_bell, NULL); /* a fork's child may have a copy */
        close(ep->own_bell);
    }
    if (ep->peer_bell >= 0)
        close(ep->peer_bell);
}

void shm_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct shm_ep *ep = (struct shm_ep *)tp_ep;
    struct shm_tp *tp = shm_tp_of(tp_ep->tp);
    struct done *done = STAILQ_FIRST(&tp->done), *next;
    for (; done; done = next) {
        next = STAILQ_NEXT(done, link);
        if (((struct tp_op *)done)->ep == tp_ep)
            STAILQ_REMOVE(&tp->done, done, done, link);
    }
    tp->ending -= ep->state == EP_ENDING;
    ep_release(ep);
    ep->state = EP_CLOSED;
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link); /* events of the caller's batch may still name it */
}

void shm_close(struct tp *base)
{
    struct shm_tp *tp = shm_tp_of(base);
    while (!TAILQ_EMPTY(&tp->eps))
        shm_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    shm_bury(tp);
    if (tp->bell >= 0)
        close(tp->bell);
    if (tp->epoll_fd >= 0)
        close(tp->epoll_fd);
    free(tp->arena);
    free(tp);
}

/* ---- connections ---- */

static struct shm_ep *ep_new(struct shm_tp *tp, int rings_fd, void *user)
{
    struct shm_ep *ep = calloc(1, sizeof(*ep));
    if (!ep)
        return NULL;
    ep->base.tp = &tp->base;
    ep->base.user = user;
    ep->own_bell = ep->peer_bell = -1;
    STAILQ_INIT(&ep->queue);
    void *rings = mmap(NULL, sizeof(struct rings), PROT_READ | PROT_WRITE, MAP_SHARED, rings_fd, 0);
    if (rings == MAP_FAILED) {
        free(ep);
        return NULL;
    }
    ep->rings = rings;
    return ep;
}

static int rings_create(void)
{
    /* sealed: a shrunk file would kill whoever touches it */
    int fd = memfd_create("keel-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, sizeof(struct rings)) != 0 ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

keel_status tp_shm_create(struct tp *base, void *user, int fds[TP_SHM_FDS], struct tp_ep **out)
{
    struct shm_tp *tp = shm_tp_of(base);
    fds[FD_RINGS] = rings_create();
    fds[FD_AGENT_BELL] = fcntl(tp->bell, F_DUPFD_CLOEXEC, 3);
    fds[FD_RANK_BELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct shm_ep *ep = NULL;
    if (fds[FD_RINGS] >= 0 && fds[FD_AGENT_BELL] >= 0 && fds[FD_RANK_BELL] >= 0)
        ep = ep_new(tp, fds[FD_RINGS], user);
    if (ep)
        ep->peer_bell = fcntl(fds[FD_RANK_BELL], F_DUPFD_CLOEXEC, 3);
    if (!ep || ep->peer_bell < 0) {
        keel_status status = refusal_note(errno);
        log_warn("transport: cannot create the rings of a rank: %m");
        if (ep)
            ep_release(ep);
        free(ep);
        for (int i = 0; i < TP_SHM_FDS; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        return status;
    }
    ep->rings->magic = RINGS_MAGIC;
    ep->rings->size = sizeof(struct rings);
    ep->tx.ring = &ep->rings->to_rank;
    ep->rx.ring = &ep->rings->to_agent;
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    *out = &ep->base;
    return KEEL_OK;
}

keel_status tp_shm_attach(struct tp *base, const int fds[TP_SHM_FDS], void *user, struct tp_ep **out)
{
    struct shm_tp *tp = shm_tp_of(base);
    struct stat info;
    if (fstat(fds[FD_RINGS], &info) != 0 || info.st_size != sizeof(struct rings))
        return KEEL_ERR_ARG;
    struct shm_ep *ep = ep_new(tp, fds[FD_RINGS], user);
    if (!ep)
        return refusal_note(errno);
    if (ep->rings->magic != RINGS_MAGIC || ep->rings->size != sizeof(struct rings)) {
        ep_release(ep);
        free(ep);
        return KEEL_ERR_ARG;
    }
    struct epoll_event event = {.events = EPOLLIN};
    ep->own_bell = fcntl(fds[FD_RANK_BELL], F_DUPFD_CLOEXEC, 3);
    ep->peer_bell = fcntl(fds[FD_AGENT_BELL], F_DUPFD_CLOEXEC, 3);
    if (ep->own_bell < 0 || ep->peer_bell < 0 || epoll_ctl(tp->epoll_fd, EPOLL_CTL_ADD, ep->own_bell, &event) != 0) {
        keel_status status = refusal_note(errno);
        ep_release(ep);
        free(ep);
        return status;
    }
    ep->tx.ring = &ep->rings->to_agent;
    ep->rx.ring = &ep->rings->to_rank;
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    *out = &ep->base;
    return KEEL_OK;
}
