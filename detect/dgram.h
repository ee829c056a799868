/* Unreliable datagrams between helper threads: libfabric FI_EP_DGRAM, provider "udp" (docs/adr/0032). One endpoint per
 * node, bound to the node's address on the job's interface. What it carries is not trusted: see detect/seal.h.
 * threads   one at a time.   blocking   no call blocks. */
#ifndef KEEL_DETECT_DGRAM_H
#define KEEL_DETECT_DGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

enum { DGRAM_MAX = 1400 };

struct dgram;
struct dgram_addr {
    uint32_t len;
    uint8_t bytes[28]; /* struct sockaddr_in or _in6 */
};

keel_status dgram_open(const char *host, struct dgram **out, struct dgram_addr *addr);
void dgram_close(struct dgram *d); /* NULL is allowed */
/* Peers 0..n-1, once. One of length 0 is not known yet: what is sent there is lost. */
keel_status dgram_set_peers(struct dgram *d, const struct dgram_addr *addrs, int n);
/* Another address than before, or the first one. False: it cannot be used. */
bool dgram_set_peer(struct dgram *d, int peer, const struct dgram_addr *addr);
/* May be lost without a word. */
void dgram_send(struct dgram *d, int peer, const void *data, size_t len);
/* Next datagram received, or NULL. Valid until the next call of dgram_recv. */
const void *dgram_recv(struct dgram *d, size_t *len);
int dgram_wait_fd(const struct dgram *d);
bool dgram_arm(struct dgram *d); /* about to sleep on wait_fd: true if that is safe */
#endif
