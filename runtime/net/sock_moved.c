/* By the kernel's header: that of the C library has older fields only, and the two do not go together in one file. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "runtime/net/sock.h"
#include "runtime/net/transport.h"

bool sock_moved(int fd, struct tp_moved *moved)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
        len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return false;
    *moved = (struct tp_moved){.received = info.tcpi_bytes_received,
                               .taken = info.tcpi_bytes_acked,
                               .pending = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0};
    return true;
}
