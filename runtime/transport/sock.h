/* What the TCP sockets of the transports have in common. */
#ifndef KEEL_TRANSPORT_SOCK_H
#define KEEL_TRANSPORT_SOCK_H

/* Keepalive, and a bound for what is not acknowledged. Accepted sockets inherit it from their listener. */
void sock_set_liveness(int fd);
#endif
