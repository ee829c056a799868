/* What the TCP sockets of the transports have in common. */
#ifndef KEEL_TRANSPORT_SOCK_H
#define KEEL_TRANSPORT_SOCK_H

/* Keepalive, a bound for what is not acknowledged, and no congestion control that paces (docs/adr/0115). Accepted sockets inherit them from
 * their listener. */
void sock_set_options(int fd);
#endif
