/* The TCP streams below sealed connections, from a stranger who speaks TCP: to a listener (first byte even), and after
 * he was accepted, with and (second bit) without marks on the lengths. */
#include "runtime/base/log.h"
#include "runtime/net/stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tp *tp;
static struct tp_addr addr;
static struct tp_ep *ep;

static int turn(void)
{
    struct tp_event events[8];
    static const uint8_t key[16] = {3};
    int n = tp_poll(tp, events, 8);
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_CONNREQ) {
            if (events[i].len > TP_CONNECT_MAX ||
                (tp->table->accept(tp, events[i].req, NULL, &ep) == KEEL_OK && (events[i].len & 1)))
                tp->table->mark(ep, key, key);
        } else if (events[i].type == TP_RECV) {
            if (events[i].len > TP_FRAME_MAX)
                abort();
            for (size_t k = 0; k < events[i].len; k++)
                (void)*((const volatile uint8_t *)events[i].data + k);
        } else if (events[i].type == TP_CLOSED) {
            tp_ep_destroy(events[i].ep);
            ep = NULL;
        }
    }
    return n;
}

static void settle(void)
{
    for (int i = 0; i < 50 && (turn() > 0 || i < 3); i++)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    log_threshold = -1;
    if (!tp && (tp_stream.open(&(struct tp_config){.host = "127.0.0.1"}, &tp) != KEEL_OK ||
                tp->table->listen(tp, &addr) != KEEL_OK))
        abort();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct linger at_once = {.l_onoff = 1};
    if (fd < 0 || connect(fd, (const struct sockaddr *)addr.bytes, addr.len) != 0) {
        if (errno == EINTR || errno == EADDRNOTAVAIL) { /* the fuzzer's timer; all ports wait for their end */
            close(fd);
            return 0;
        }
        perror("socket, connect");
        abort();
    }
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); /* no port is left in TIME_WAIT */
    bool accepted = data[0] & 1;
    if (accepted) {
        const uint64_t hello[2] = {data[0] >> 1 & 1, 0};
        (void)!send(fd, hello, hello[0] ? sizeof hello : 8, MSG_NOSIGNAL);
        for (int i = 0; i < 1000 && !ep; i++)
            turn();
    }
    size_t first = data[1] < size - 2 ? data[1] : size - 2; /* in two segments */
    (void)!send(fd, data + 2, first, MSG_NOSIGNAL);
    settle();
    (void)!send(fd, data + 2 + first, size - 2 - first, MSG_NOSIGNAL);
    settle();
    close(fd);
    for (int i = 0; i < 1000 && ep; i++)
        turn();
    settle();
    if (ep)
        tp_ep_destroy(ep);
    ep = NULL;
    return 0;
}
