#include "runtime/client/job/channel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/client/job/process.h"

enum {
    TIMEOUT_MS_DEFAULT = 30000,
    VERDICT_MS = 5000, /* until a verdict that could fall is known, and acted upon */
    SAID_MS = 1000     /* WAIT_SAID_NS */
};

static struct {
    pthread_mutex_t lock;
    int fd;
    uint32_t id; /* under the lock */
} channel = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

void channel_open(int fd)
{
    channel.fd = fd;
}

bool channel_is_open(void)
{
    return channel.fd >= 0;
}

void channel_forget(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    channel.lock = unlocked;
    close(channel.fd);
    channel.fd = -1;
}

ssize_t channel_receive(void *buf, size_t len, int *fds, int max, int timeout_ms)
{
    struct pollfd pfd = {.fd = channel.fd, .events = POLLIN};
    int ready;
    for (int i = 0; i < max; i++)
        fds[i] = -1;
    while ((ready = poll(&pfd, 1, timeout_ms)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        return -1;
    union {
        char bytes[CMSG_SPACE(CHANNEL_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {buf, len};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(channel.fd, &msg, MSG_CMSG_CLOEXEC);
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

/* An agent that is awake sees at once that there is something. */
static bool put(const struct control *r, int flags)
{
    if (send(channel.fd, r, sizeof *r, MSG_NOSIGNAL | flags) != (ssize_t)sizeof *r)
        return false;
    if (process_client.intents)
        atomic_fetch_add(&process_client.intents->asked, 1);
    return true;
}

bool channel_tell(void *user, const struct control *r)
{
    (void)user;
    return put(r, MSG_DONTWAIT);
}

void channel_event(const char *name, int64_t number, const char *text)
{
    struct control r = {.type = CONTROL_EVENT, .a = number};
    size_t at = strlen(name) + 1, len = strnlen(text, sizeof r.text - at);
    memcpy(r.text, name, at);
    memcpy(r.text + at, text, len);
    while (!put(&r, 0) && errno == EINTR)
        ;
}

unsigned long channel_patience_ms(const struct page *page)
{
    unsigned long ms = page ? (unsigned long)page->patience_ms + VERDICT_MS : 0;
    return ms > TIMEOUT_MS_DEFAULT ? ms : TIMEOUT_MS_DEFAULT;
}

/* The answer to request r, before the deadline; other answers came too late for theirs. */
static keel_status await_answer(struct control *r, int *passed)
{
    uint64_t begun = clock_now_ns(), now = begun;
    uint64_t deadline = begun + (uint64_t)channel_patience_ms(process_client.page) * KEEL_NS_PER_MS;
    struct wait wait = {.call = r->type == CONTROL_LEAVING ? WAIT_FINALIZE : WAIT_ALLOC}; /* for all agents */
    struct control reply;
    keel_status status = KEEL_ERR_TIMEOUT;
    while (now < deadline) {
        int left_ms = (int)((deadline - now) / KEEL_NS_PER_MS) + 1;
        ssize_t n = channel_receive(&reply, sizeof reply, passed, 1, now < begun + WAIT_SAID_NS ? SAID_MS : left_ms);
        if (n == 0) {
            status = KEEL_ERR_AGENT_GONE;
            break;
        }
        if (n == sizeof reply && reply.id == r->id) {
            *r = reply;
            status = (keel_status)reply.status; /* also KEEL_IN_PROGRESS */
            break;
        }
        if (*passed >= 0)
            close(*passed);
        *passed = -1;
        now = clock_now_ns();
        waits_last(&process_client, &wait, begun, now);
    }
    waits_over(&process_client, &wait);
    return status;
}

keel_status channel_request(void *user, struct control *r, void **memory)
{
    (void)user;
    int passed = -1;
    pthread_mutex_lock(&channel.lock);
    r->id = ++channel.id;
    keel_status status = KEEL_ERR_AGENT_GONE;
    if (put(r, 0))
        status = await_answer(r, &passed);
    pthread_mutex_unlock(&channel.lock);
    if (memory && status == KEEL_OK) {
        *memory = mmap(*memory, layout_memory_bytes(r->bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | (*memory ? MAP_FIXED : 0), passed, 0);
        if (*memory == MAP_FAILED)
            status = KEEL_ERR_NOMEM;
    }
    if (passed >= 0)
        close(passed);
    return status;
}

bool channel_is_gone(void *user)
{
    (void)user;
    struct pollfd pfd = {.fd = channel.fd, .events = 0};
    return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLHUP | POLLERR));
}
