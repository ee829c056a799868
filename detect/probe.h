/* How a helper thread reads the others' heartbeats and sends its datagrams. One table, two implementations:
 *
 *   ofi     libfabric: reads over FI_EP_MSG (reach.c), datagrams over FI_EP_DGRAM (dgram.c). Always there, and the only
 *           one where there are several rails: a read goes over one of them (net/way.h), a datagram over all at once.
 *   verbs   libibverbs: RDMA READ over RC queue pairs, datagrams over one UD queue pair (verbs*.c). Where a device is.
 *
 * The helper asks the first that can and the next if it cannot, so what one does not carry (a peer without a device, a
 * device that has gone, a datagram longer than the device's MTU) goes the other way. The core knows of none of this.
 * What only the kernel of a peer can say, that nobody listens there any more, comes from libfabric's connections in
 * both cases.
 *
 * threads   all calls come from the helper's thread, but opening, set_peers and close, which come while it does not
 *           run.
 * blocking  no call blocks, but verbs_open and verbs_set_peers. Callbacks are made from inside poll only. */
#ifndef KEEL_DETECT_PROBE_H
#define KEEL_DETECT_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#include "runtime/base/job_settings.h"

enum { PROBE_ADDR_MAX = 64, PROBE_DATAGRAM_MAX = 1400, PROBE_FDS_MAX = 5 };

struct probe_addr {
    uint32_t len; /* 0: this node does not have it */
    uint8_t bytes[PROBE_ADDR_MAX];
};

struct verbs_config {
    const char *host; /* numeric address of this node: says which device */
    int self, n;
    uint64_t late_ns; /* a read that takes longer is of no use: time-out and retries are chosen so */
    volatile _Atomic uint64_t *heartbeat; /* the word that others read */
    bool required;                        /* a missing device is an error */
};

struct probe_callbacks {
    void *user;
    void (*heartbeat)(void *user, int node, uint64_t value);    /* a read is complete */
    void (*broken)(void *user, int node);                       /* a read failed: a suspicion */
    void (*datagram)(void *user, const void *data, size_t len); /* unverified bytes */
    /* What sets up a connection is sealed as SEAL_VERBS. Returns the length. */
    size_t (*seal)(void *user, int to, const void *data, size_t len, uint8_t *out);
    /* May node read our heartbeat? Not when it is believed dead. */
    bool (*admit)(void *user, int node);
};

struct probe_table;
struct probe {
    const struct probe_table *table;
};

struct probe_table {
    const char *name;
    void (*watch)(struct probe *p, int node, bool on, uint64_t now);
    /* Post a read of node's heartbeat. False: not this way, now. */
    bool (*read)(struct probe *p, int node, uint64_t now);
    /* False: not this way. True says nothing about arrival. */
    bool (*send)(struct probe *p, int node, const void *data, size_t len);
    void (*fence)(struct probe *p, int node);    /* node is declared dead: nothing for it, nothing from it */
    bool (*poll)(struct probe *p, uint64_t now); /* false: nothing was there */
    bool (*arm)(struct probe *p);                /* about to sleep on its descriptors: true if that is safe */
    int (*wait_fds)(const struct probe *p, int fds[PROBE_FDS_MAX]);
    void (*close)(struct probe *p);
};

/* libibverbs. addr receives what the others need. KEEL_ERR_SYSTEM: cannot be had here (library, device, permission, or
 * left out of this build); why is logged, as an error if required. */
keel_status verbs_open(const struct verbs_config *config, const struct probe_callbacks *callbacks, struct probe **out,
                       struct probe_addr *addr);
/* Once, before the thread runs. addrs[n]; of length 0: that node has no device. */
keel_status verbs_set_peers(struct probe *p, const struct probe_addr *addrs);
/* What came sealed as SEAL_VERBS from node: it sets up a connection. */
void verbs_control(struct probe *p, int node, const void *data, size_t len, uint64_t now);
/* A datagram of len bytes came from node, by the device or the other way. If it came the other way and would have
 * fitted, node may have lost its device: datagrams go the other way until something comes by the device again. */
void verbs_heard(struct probe *p, int node, bool by_device, size_t len);
#endif
