/* Questions to the witnesses of other nodes (witness.h), and what their answers, or their silence, mean.
 *
 * A witness that has real-time priority answers whatever its machine is busy with. So where the kernel of a host
 * answers, and neither the agent nor such a witness does, they do not wait for a processor: somebody stopped both. Only
 * a witness that has answered before is taken at its silence: something on the way may keep its datagrams back. It
 * listens on the first rail alone: what a kernel says over another one is not held against it. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "detect/helper_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

#define FRESH_NS (100 * KEEL_NS_PER_MS) /* an answer to an older question tells what was */
/* without an answer to several questions; longer than the 50 ms of each second for which a kernel holds all real-time
 * threads back when they take too much */
#define SILENT_NS (60 * KEEL_NS_PER_MS)
#define PAUSE_NS (200 * KEEL_NS_PER_MS)  /* nobody asked for so long: what was asked before is forgotten */
#define LEARN_NS (1000 * KEEL_NS_PER_MS) /* between questions to one that has not answered yet */

bool ask_init(struct helper *h)
{
    struct sockaddr_storage at;
    h->ask_fd = -1;
    memset(&at, 0, sizeof at);
    memcpy(&at, h->addrs.of[0].bytes, h->addrs.of[0].len <= sizeof at ? h->addrs.of[0].len : sizeof at);
    if (at.ss_family != AF_INET && at.ss_family != AF_INET6)
        return true;                           /* an address of another network */
    ((struct sockaddr_in *)&at)->sin_port = 0; /* at the same place in both families */
    int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, h->addrs.of[0].len) != 0 ||
        epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        log_error("detect: no socket for questions: %m");
        if (fd >= 0)
            close(fd);
        return false;
    }
    h->ask_fd = fd;
    return true;
}

void ask_start(struct helper *h, int node)
{
    struct reach *p = &h->peers[node];
    struct sockaddr_storage to;
    uint8_t bytes[SEAL_OVERHEAD];
    if (h->ask_fd < 0 || !p->witness.port)
        return;
    memset(&to, 0, sizeof to);
    memcpy(&to, p->addrs.of[0].bytes, p->addrs.of[0].len <= sizeof to ? p->addrs.of[0].len : sizeof to);
    if (to.ss_family != AF_INET && to.ss_family != AF_INET6)
        return;
    ((struct sockaddr_in *)&to)->sin_port = htons(p->witness.port);
    uint64_t number = h->now / 1000; /* says when it was asked */
    if (number * 1000 > p->witness.asked * 1000 + PAUSE_NS || !p->witness.waits_since)
        p->witness.waits_since = h->now;
    p->witness.asked = number > p->witness.asked ? number : p->witness.asked + 1;
    size_t len = seal_close(&h->seal, SEAL_QUESTION, node, p->witness.asked, NULL, 0, bytes);
    (void)sendto(h->ask_fd, bytes, len, 0, (struct sockaddr *)&to, p->addrs.of[0].len);
}

void ask_learn(struct helper *h, int node)
{
    struct reach *p = &h->peers[node];
    if (!p->witness.heard && h->now >= p->witness.asked * 1000 + LEARN_NS)
        ask_start(h, node);
}

bool ask_silent(const struct helper *h, int node)
{
    const struct reach *p = &h->peers[node];
    return p->witness.prompt && p->witness.heard && p->witness.waits_since &&
           h->now >= p->witness.waits_since + SILENT_NS;
}

static void take(struct helper *h, const uint8_t *data, size_t len)
{
    struct seal_opened s;
    if (!seal_open(&h->seal, data, len, &s) || s.kind != SEAL_ANSWER || s.len != 1 || s.from >= h->config.params.n ||
        s.incarnation != h->peers[s.from].incarnation || s.number > h->peers[s.from].witness.asked ||
        s.number <= h->peers[s.from].witness.answered) {
        h->count.dropped++;
        return;
    }
    struct reach *p = &h->peers[s.from];
    p->witness.answered = s.number;
    p->witness.waits_since = 0;
    p->witness.heard = true;
    if (h->now > s.number * 1000 + FRESH_NS)
        return;
    if (s.content[0] == WITNESS_STOPPED)
        member_stopped(h->m, s.from, h->now);
    else
        member_runs(h->m, s.from, h->now);
}

bool ask_poll(struct helper *h)
{
    uint8_t bytes[SEAL_OVERHEAD + 16];
    bool any = false;
    ssize_t n;
    while (h->ask_fd >= 0 && (n = recv(h->ask_fd, bytes, sizeof bytes, 0)) > 0) {
        take(h, bytes, (size_t)n);
        any = true;
    }
    return any;
}

void ask_end(struct helper *h)
{
    if (h->ask_fd >= 0)
        close(h->ask_fd);
    h->ask_fd = -1;
}
