#include "runtime/transport/sock.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "runtime/base/log.h"

enum {
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    /* Also ends a connection whose peer is alive but reads nothing for so long: above every pause the detector
       forgives. */
    USER_TIMEOUT_MS = 30 * 1000,
};

void sock_set_liveness(int fd)
{
    const int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S;
    const unsigned timeout = USER_TIMEOUT_MS;
    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval)) ||
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout)))
        log_debug("transport: cannot set the keepalive of a connection: %m");
}
