/* What the TCP sockets of the transports have in common. */
#ifndef KEEL_NET_SOCK_H
#define KEEL_NET_SOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tp_moved;

/* Keepalive, a bound for what is not acknowledged, and no congestion control that paces (docs/adr/0020). Accepted
 * sockets inherit them from their listener. */
void sock_set_options(int fd);
/* False: the kernel does not say. */
bool sock_moved(int fd, struct tp_moved *moved);
#endif
