#include "runtime/net/sock.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/log.h"

enum {
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    /* Also ends a connection whose peer is alive but reads nothing for so long: above every pause the detector
       forgives. */
    USER_TIMEOUT_MS = 30 * 1000,
};

static bool paces(int fd)
{
    char control[16] = ""; /* of the kernel, TCP_CA_NAME_MAX */
    socklen_t len = sizeof(control);
    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &len) == 0 && strncmp(control, "bbr", 3) == 0;
}

/* One that paces holds back what follows a segment until a timer has fired: longer than the message takes. */
static void set_unpaced(int fd)
{
    static const char *const instead[] = {"cubic", "reno"}; /* everybody may have the last one */
    if (!paces(fd))
        return;
    for (size_t i = 0; i < sizeof(instead) / sizeof(instead[0]); i++)
        if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, instead[i], (socklen_t)strlen(instead[i])) == 0)
            return;
    log_debug("transport: a connection stays with bbr: %m");
}

void sock_set_options(int fd)
{
    set_unpaced(fd);
    const int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S;
    const unsigned timeout = USER_TIMEOUT_MS;
    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)) ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval)) ||
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout)))
        log_debug("transport: cannot set the keepalive of a connection: %m");
}
