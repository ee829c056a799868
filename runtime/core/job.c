/* Start and end of a rank, its control socket, and what it can ask about the job. */
#include "runtime/core/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/core/collective_slot.h"
#include "runtime/transport/shm.h"

enum { WELCOME_FDS = 2 + TP_SHM_FDS, TIMEOUT_MS_DEFAULT = 30000, SPIN_US_DEFAULT = 30, ANSWER_MS = 30000 };

struct client client = {
    .control_fd = -1,
    .control_lock = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- control socket ---- */

/* One packet with up to max descriptors; its length, 0 if the agent is gone, -1 if none came in time. */
static ssize_t receive(void *buf, size_t len, int *fds, int max, int timeout_ms)
{
    struct pollfd pfd = {.fd = client.control_fd, .events = POLLIN};
    int ready;
    while ((ready = poll(&pfd, 1, timeout_ms)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        return -1;
    union {
        char bytes[CMSG_SPACE(WELCOME_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {buf, len};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(client.control_fd, &msg, MSG_CMSG_CLOEXEC);
    for (int i = 0; i < max; i++)
        fds[i] = -1;
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
        int count = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + (size_t)i * sizeof fd, sizeof fd);
            if (i < max)
                fds[i] = fd;
            else
                close(fd);
        }
    }
    return n < 0 ? 0 : n;
}

void control_tell(const struct control *r)
{
    /* A full socket means an agent that does not read: what is told here may be lost then. */
    (void)!send(client.control_fd, r, sizeof *r, MSG_NOSIGNAL | MSG_DONTWAIT);
}

keel_status control_request(struct control *r, int *fd)
{
    pthread_mutex_lock(&client.control_lock);
    r->id = ++client.control_id;
    keel_status status = KEEL_ERR_AGENT_GONE;
    uint64_t deadline = clock_now_ns() + (uint64_t)ANSWER_MS * KEEL_NS_PER_MS;
    if (send(client.control_fd, r, sizeof *r, MSG_NOSIGNAL) == (ssize_t)sizeof *r) {
        struct control reply;
        int passed = -1;
        for (;;) {
            uint64_t now = clock_now_ns();
            ssize_t n = now < deadline
                            ? receive(&reply, sizeof reply, &passed, 1, (int)((deadline - now) / KEEL_NS_PER_MS) + 1)
                            : -1;
            if (n <= 0) {
                status = n < 0 ? KEEL_ERR_TIMEOUT : KEEL_ERR_AGENT_GONE;
                break;
            }
            if (n == sizeof reply && reply.id == r->id) {
                *r = reply;
                status = (keel_status)reply.status;
                break;
            }
            if (passed >= 0)
                close(passed);
        }
        if (fd)
            *fd = passed;
        else if (passed >= 0)
            close(passed);
    }
    pthread_mutex_unlock(&client.control_lock);
    return status;
}

bool control_is_broken(void)
{
    struct pollfd pfd = {.fd = client.control_fd, .events = 0};
    return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLHUP | POLLERR));
}

/* ---- keel_init ---- */

static keel_status map_page(int fd)
{
    struct page head;
    if (pread(fd, &head, sizeof head, 0) != sizeof head || head.magic != PAGE_MAGIC)
        return KEEL_ERR_SYSTEM;
    void *m = mmap(NULL, page_bytes(head.nodes, head.members, head.ranks), PROT_READ, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED)
        return KEEL_ERR_NOMEM;
    client.page = m;
    return KEEL_OK;
}

static keel_status open_transports(const char *host, const int shm_fds[TP_SHM_FDS])
{
    struct tp_config config = {.host = host, .provider = "tcp"};
    keel_status status = tp_ofi.open(&config, &client.net);
    if (status == KEEL_OK)
        status = tp_shm_open(&client.shm);
    client.link = calloc(client.page->members, sizeof *client.link);
    if (status == KEEL_OK && !client.link)
        status = KEEL_ERR_NOMEM;
    if (status != KEEL_OK)
        return status;
    for (int m = 0; m < (int)client.page->members; m++)
        client.link[m] = (struct link){.node = m, .retry_ns = KEEL_NS_PER_MS};
    struct link *own = &client.link[client.node];
    status = tp_shm_attach(client.shm, shm_fds, own, &own->ep);
    own->state = LINK_UP;
    client.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN};
    if (status == KEEL_OK &&
        (client.epoll_fd < 0 ||
         epoll_ctl(client.epoll_fd, EPOLL_CTL_ADD, client.net->table->wait_fd(client.net), &ev) != 0 ||
         epoll_ctl(client.epoll_fd, EPOLL_CTL_ADD, client.shm->table->wait_fd(client.shm), &ev) != 0))
        status = KEEL_ERR_SYSTEM;
    return status;
}

static keel_status accept_welcome(const struct control_welcome *w, const int *fds)
{
    client.rank = w->rank;
    client.size = w->size;
    client.node = w->node;
    client.incarnation = w->incarnation;
    client.restarted = w->restarted != 0;
    client.resumed = !client.restarted;
    client.job = w->job;
    client.instance = w->instance;
    client.collectives = w->collectives;
    client.segments = SYSTEM_SEGMENT + 1;
    client.segments_known = w->segments;
    memcpy(client.secret, w->secret, sizeof client.secret);
    client.timeout_ns = env_number("KEEL_TIMEOUT_MS", TIMEOUT_MS_DEFAULT) * KEEL_NS_PER_MS;
    client.spin_ns = env_number("KEEL_SPIN_US", SPIN_US_DEFAULT) * KEEL_NS_PER_US;
    char who[32];
    snprintf(who, sizeof who, "rank %d", client.rank);
    log_init(who);
    fault_init(client.node, client.rank, client.incarnation);
    keel_status status = map_page(fds[0]);
    void *intents = status == KEEL_OK
                        ? mmap(NULL, sizeof(struct intent_page), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0)
                        : MAP_FAILED;
    if (status == KEEL_OK && intents == MAP_FAILED)
        status = KEEL_ERR_NOMEM;
    if (status != KEEL_OK)
        return status;
    client.intents = intents;
    status = open_transports(w->host, fds + 2);
    if (status == KEEL_OK && !(client.segment[SYSTEM_SEGMENT] =
                                   segment_attach(SYSTEM_SEGMENT, SYSTEM_SEGMENT_BYTES, KEEL_REDUNDANCY_SHADOW)))
        status = KEEL_ERR_NOMEM;
    return status;
}

KEEL_EXPORT keel_status keel_init(void)
{
    if (client.ready || client.left)
        return KEEL_ERR_STATE;
    log_init("keel");
    const char *text = getenv("KEEL_FD");
    char *end;
    long fd = text ? strtol(text, &end, 10) : -1;
    if (!text || *end || fd < 0)
        return KEEL_ERR_NOT_LAUNCHED;
    if (sodium_init() < 0)
        return KEEL_ERR_SYSTEM;
    client.control_fd = (int)fd;
    struct control_welcome w;
    int fds[WELCOME_FDS];
    /* A standby waits here until it is needed: as long as the job runs. */
    ssize_t n = receive(&w, sizeof w, fds, WELCOME_FDS, -1);
    if (n == 0)
        return KEEL_ERR_AGENT_GONE;
    keel_status status = n == sizeof w && w.type == CONTROL_WELCOME && fds[WELCOME_FDS - 1] >= 0
                             ? accept_welcome(&w, fds)
                             : KEEL_ERR_NOT_LAUNCHED;
    for (int i = 0; i < WELCOME_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    client.ready = status == KEEL_OK;
    struct control here = {.type = CONTROL_HERE};
    if (client.ready)
        control_tell(&here);
    return status;
}

KEEL_EXPORT keel_status keel_finalize(void)
{
    if (!client.ready)
        return KEEL_ERR_STATE;
    keel_status status = keel_fence_all();
    struct control r = {.type = CONTROL_LEAVING};
    FAULT_POINT("rank.leaving");
    keel_status left = control_request(&r, NULL);
    FAULT_POINT("rank.left");
    client.ready = false;
    client.left = true;
    client.net->table->close(client.net);
    client.shm->table->close(client.shm);
    return status != KEEL_OK ? status : left;
}

KEEL_EXPORT _Noreturn void keel_abort(int code, const char *message)
{
    int exit_code = code & 0xff ? code & 0xff : 1; /* what an exit code can be, and a failure */
    fprintf(stderr, "%s\n", message ? message : "keel_abort");
    fflush(NULL);
    FAULT_POINT("rank.aborting");
    if (client.control_fd >= 0) {
        struct control r = {.type = CONTROL_ABORT, .a = exit_code};
        control_tell(&r);
    }
    FAULT_POINT("rank.aborted");
    _exit(exit_code);
}

/* ---- questions ---- */

KEEL_EXPORT int keel_rank(void)
{
    return client.rank;
}

KEEL_EXPORT int keel_size(void)
{
    return client.size;
}

KEEL_EXPORT int keel_rank_node(int rank)
{
    if (!client.page || rank < 0 || rank >= client.size)
        return -1;
    return (int)(int32_t)(atomic_load_explicit(&page_rank(client.page, rank)->where, memory_order_acquire) >> 32);
}

KEEL_EXPORT bool keel_rank_alive(int rank)
{
    return keel_rank_node(rank) >= 0;
}

KEEL_EXPORT uint64_t keel_view_epoch(void)
{
    return client.page ? atomic_load_explicit(&client.page->epoch, memory_order_acquire) : 0;
}

KEEL_EXPORT bool keel_restarted(void)
{
    return client.restarted;
}

KEEL_EXPORT keel_status keel_resume(uint64_t *collectives)
{
    if (!client.ready)
        return KEEL_ERR_STATE;
    FAULT_POINT("rank.resuming");
    client.resumed = true;
    if (collectives)
        *collectives = client.collectives;
    return KEEL_OK;
}

KEEL_EXPORT uint64_t keel_collective_count(void)
{
    return client.collectives;
}

KEEL_EXPORT keel_status keel_event(const char *name, int64_t number, const char *text)
{
    if (!client.ready)
        return KEEL_ERR_STATE;
    if (!name || !*name || strlen(name) > 64)
        return KEEL_ERR_ARG;
    struct control r = {.type = CONTROL_EVENT, .a = number};
    int n = snprintf(r.text, sizeof r.text, "%s", name);
    if (text)
        snprintf(r.text + n + 1, sizeof r.text - (size_t)n - 1, "%s", text);
    control_tell(&r);
    return KEEL_OK;
}
