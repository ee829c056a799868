/* Rank and agent of one node: two rings (ring.h) in a sealed memfd, and an eventfd each to be woken by. */
#include "runtime/net/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/net/shm/ring.h"

enum {
    ARENA_BYTES = 2 * TP_SHM_MAX, /* messages of one poll */
    QUEUE_MAX = 64 * 1024 * 1024,
    FD_RINGS = 0,
    FD_AGENT_BELL = 1,
    FD_RANK_BELL = 2,
};

#define RINGS_MAGIC 0x6b65656c72696e67ull

/* Shared. */
struct rings {
    uint64_t magic, size;
    _Atomic uint32_t ended; /* by one side, for a reason of its own: the other one has nobody else to tell it */
    struct ring to_agent, to_rank;
};

/* A message that found the ring full. */
struct queued {
    STAILQ_ENTRY(queued) link;
    size_t len;
    uint8_t bytes[];
};

enum ep_state { EP_UP, EP_ENDING, EP_CLOSED };

struct shm_ep {
    struct tp_ep base;
    enum ep_state state;
    struct rings *rings;
    struct ring_tx tx;
    struct ring_rx rx;
    int own_bell, peer_bell; /* own_bell -1: the tp's */
    STAILQ_HEAD(, queued) queue;
    size_t queued_bytes;
    TAILQ_ENTRY(shm_ep) link;
};
TAILQ_HEAD(ep_list, shm_ep);

/* Ops end at once; their events wait for the next poll. An op in this list is linked through its provider words. */
struct done {
    STAILQ_ENTRY(done) link;
};
static_assert(sizeof(struct done) <= sizeof(((struct tp_op *)0)->provider), "fits the op");

struct shm_tp {
    struct tp base;
    int bell, epoll_fd;
    bool armed;
    int ending; /* eps in EP_ENDING */
    struct ep_list eps, graveyard;
    STAILQ_HEAD(, done) done;
    uint8_t *arena;
};

static const struct tp_table tp_shm;

static struct shm_tp *tp_of(struct tp *tp)
{
    return (struct shm_tp *)tp;
}

static void ring_the_bell(int bell)
{
    uint64_t one = 1;
    while (write(bell, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void end(struct shm_ep *ep)
{
    if (ep->state != EP_UP)
        return;
    ep->state = EP_ENDING;
    tp_of(ep->base.tp)->ending++;
    atomic_store_explicit(&ep->rings->ended, 1, memory_order_release);
    ring_the_bell(ep->peer_bell);
}

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
        tp_shm.close(&tp->base);
        return status;
    }
    *out = &tp->base;
    return KEEL_OK;
}

static keel_status shm_open_config(const struct tp_config *config, struct tp **out)
{
    (void)config;
    return tp_shm_open(out);
}

static void bury(struct shm_tp *tp)
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

static void shm_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct shm_ep *ep = (struct shm_ep *)tp_ep;
    struct shm_tp *tp = tp_of(tp_ep->tp);
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

static void shm_close(struct tp *base)
{
    struct shm_tp *tp = tp_of(base);
    while (!TAILQ_EMPTY(&tp->eps))
        shm_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    bury(tp);
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
    struct shm_tp *tp = tp_of(base);
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
    struct shm_tp *tp = tp_of(base);
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

static void shm_disconnect(struct tp_ep *tp_ep)
{
    end((struct shm_ep *)tp_ep);
}

/* ---- sending ---- */

static enum ring_result put(struct shm_ep *ep, const void *header, size_t hlen, const void *body, size_t len)
{
    bool bell = false;
    enum ring_result result = ring_put(&ep->tx, header, hlen, body, len, &bell);
    if (bell)
        ring_the_bell(ep->peer_bell);
    return result;
}

static keel_status enqueue(struct shm_ep *ep, const void *header, size_t hlen, const void *body, size_t len)
{
    size_t total = sizeof(struct queued) + hlen + len;
    if (ep->queued_bytes + total > QUEUE_MAX) {
        end(ep);
        return KEEL_ERR_LINK;
    }
    struct queued *message = malloc(total);
    if (!message)
        return KEEL_ERR_NOMEM;
    message->len = hlen + len;
    if (hlen)
        memcpy(message->bytes, header, hlen);
    if (len)
        memcpy(message->bytes + hlen, body, len);
    STAILQ_INSERT_TAIL(&ep->queue, message, link);
    ep->queued_bytes += total;
    return KEEL_OK;
}

static void flush(struct shm_ep *ep)
{
    struct queued *message;
    while ((message = STAILQ_FIRST(&ep->queue)) != NULL) {
        enum ring_result result = put(ep, message->bytes, message->len, NULL, 0);
        if (result == RING_BROKEN)
            end(ep);
        if (result != RING_OK)
            return;
        STAILQ_REMOVE_HEAD(&ep->queue, link);
        ep->queued_bytes -= sizeof(*message) + message->len;
        free(message);
    }
}

static keel_status shm_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                            struct tp_op *op)
{
    struct shm_ep *ep = (struct shm_ep *)tp_ep;
    if (hlen > TP_SHM_MAX || len > TP_SHM_MAX - hlen)
        return KEEL_ERR_ARG;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    enum ring_result result = STAILQ_EMPTY(&ep->queue) ? put(ep, header, hlen, body, len) : RING_NONE;
    if (result == RING_BROKEN) {
        end(ep);
        return KEEL_ERR_LINK;
    }
    keel_status status = result == RING_OK ? KEEL_OK : enqueue(ep, header, hlen, body, len);
    if (status == KEEL_OK && op) {
        op->ep = tp_ep;
        STAILQ_INSERT_TAIL(&tp_of(tp_ep->tp)->done, (struct done *)op, link);
    }
    return status;
}

/* ---- progress ---- */

static void awake(struct shm_tp *tp)
{
    struct shm_ep *ep;
    uint64_t count;
    tp->armed = false;
    while (read(tp->bell, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->own_bell >= 0)
            while (read(ep->own_bell, &count, sizeof(count)) < 0 && errno == EINTR)
                ;
        ring_awake(&ep->rx);
        ring_fed(&ep->tx);
    }
}

/* Messages of one ep; *used counts the arena. false: no room for more, leave the rest for the next poll. */
static bool receive(struct shm_tp *tp, struct shm_ep *ep, struct tp_event *events, int max, int *n, size_t *used)
{
    enum ring_result result = RING_OK;
    size_t len = 0;
    uint64_t before = ep->rx.tail;
    while (*n < max) {
        result = ring_take(&ep->rx, tp->arena + *used, ARENA_BYTES - *used, &len);
        if (result != RING_OK)
            break;
        events[(*n)++] = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = tp->arena + *used, .len = len};
        *used += (len + 7) & ~(size_t)7;
        if (*used > ARENA_BYTES)
            *used = ARENA_BYTES;
    }
    if (ep->rx.tail != before && ring_publish(&ep->rx))
        ring_the_bell(ep->peer_bell);
    if (result == RING_BROKEN) {
        log_error("transport: a ring holds nonsense: dropping the connection");
        end(ep);
    }
    return *n < max && !(result == RING_NONE && len);
}

static int tell_done(struct shm_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct done *done;
    while (n < max && (done = STAILQ_FIRST(&tp->done)) != NULL) {
        struct tp_op *op = (struct tp_op *)done;
        STAILQ_REMOVE_HEAD(&tp->done, link);
        events[n++] = (struct tp_event){.type = TP_DONE, .ep = op->ep, .op = op};
    }
    return n;
}

static int tell_closed(struct shm_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct shm_ep *ep;
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->state != EP_ENDING || n == max)
            continue;
        ep->state = EP_CLOSED;
        tp->ending--;
        events[n++] = (struct tp_event){.type = TP_CLOSED, .status = KEEL_ERR_LINK, .ep = &ep->base};
    }
    return n;
}

static int shm_poll(struct tp *base, struct tp_event *events, int max)
{
    struct shm_tp *tp = tp_of(base);
    struct shm_ep *ep, *first = TAILQ_FIRST(&tp->eps);
    size_t used = 0;
    int n = 0;
    if (tp->armed)
        awake(tp);
    if (!TAILQ_EMPTY(&tp->graveyard))
        bury(tp);
    if (!STAILQ_EMPTY(&tp->done))
        n = tell_done(tp, events, max);
    if (tp->ending && STAILQ_EMPTY(&tp->done))
        n += tell_closed(tp, events + n, max - n);
    bool more = true;
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->state != EP_UP)
            continue;
        bool over = atomic_load_explicit(&ep->rings->ended, memory_order_acquire);
        if (!STAILQ_EMPTY(&ep->queue))
            flush(ep);
        if (more && n < max)
            more = receive(tp, ep, events, max, &n, &used);
        if (over && !ring_has_record(&ep->rx))
            end(ep);
    }
    if (!more && first != TAILQ_LAST(&tp->eps, ep_list)) { /* the next poll starts with another rank */
        TAILQ_REMOVE(&tp->eps, first, link);
        TAILQ_INSERT_TAIL(&tp->eps, first, link);
    }
    return n;
}

static int shm_wait_fd(struct tp *base)
{
    return tp_of(base)->epoll_fd;
}

static bool shm_arm(struct tp *base)
{
    struct shm_tp *tp = tp_of(base);
    struct shm_ep *ep;
    if (tp->ending || !STAILQ_EMPTY(&tp->done))
        return false;
    tp->armed = true; /* the next poll clears the flags, whatever comes of this */
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->state != EP_UP)
            continue;
        if (!ring_sleep(&ep->rx))
            return false;
        if (!STAILQ_EMPTY(&ep->queue) && !ring_starve(&ep->tx, STAILQ_FIRST(&ep->queue)->len))
            return false;
    }
    return true;
}

/* ---- what rings do not do ---- */

static keel_status no_listen(struct tp *tp, struct tp_addr *out)
{
    (void)tp, (void)out;
    return KEEL_ERR_STATE;
}
static keel_status no_connect(struct tp *tp, const struct tp_addr *to, const void *hello, size_t len, void *user,
                              struct tp_ep **out)
{
    (void)tp, (void)to, (void)hello, (void)len, (void)user, (void)out;
    return KEEL_ERR_STATE;
}
static keel_status no_accept(struct tp *tp, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    (void)tp, (void)req, (void)user, (void)out;
    return KEEL_ERR_STATE;
}
static void no_reject(struct tp *tp, struct tp_connreq *req)
{
    (void)tp, (void)req;
}
static keel_status no_reg(struct tp *tp, void *memory, size_t len, uint64_t key)
{
    (void)tp, (void)memory, (void)len, (void)key;
    return KEEL_ERR_STATE;
}
static void no_unreg(struct tp *tp, uint64_t key)
{
    (void)tp, (void)key;
}
static keel_status no_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                            struct tp_op *op)
{
    (void)ep, (void)src, (void)len, (void)key, (void)offset, (void)op;
    return KEEL_ERR_STATE;
}
static keel_status no_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    (void)ep, (void)dst, (void)len, (void)key, (void)offset, (void)op;
    return KEEL_ERR_STATE;
}

static const struct tp_table tp_shm = {
    .name = "shm",
    .open = shm_open_config,
    .close = shm_close,
    .listen = no_listen,
    .connect = no_connect,
    .accept = no_accept,
    .reject = no_reject,
    .disconnect = shm_disconnect,
    .ep_destroy = shm_ep_destroy,
    .reg = no_reg,
    .unreg = no_unreg,
    .send = shm_send,
    .write = no_write,
    .read = no_read,
    .poll = shm_poll,
    .wait_fd = shm_wait_fd,
    .arm = shm_arm,
};
