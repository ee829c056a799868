/* The helper thread of an agent: carries out what detect/member.h decides. It owns a transport domain of its own
 * (heartbeat reads), a datagram endpoint (pings and agreement) and the node's heartbeat word, and sleeps in epoll.
 *
 * Everything that comes from outside is authenticated with the job's secret; what is not, is dropped and counted.
 * threads   helper_create, _start and _destroy from one thread; the other calls from any thread, also from inside the
 *           callbacks. Callbacks run on the helper thread and must not block: a late callback delays heartbeats. */
#ifndef KEEL_DETECT_HELPER_H
#define KEEL_DETECT_HELPER_H

#include <keel/status.h>

#include "detect/member.h"
#include "detect/probe.h"
#include "runtime/net/transport.h"

/* Nodes that join later: params.n counts their ids, too. The helper of one that joins has an id from params.n_born on;
 * all members must have been told of it (helper_meet) before it is started, and it asks them itself for the rest.
 * Who joined is read over libfabric by all. */
enum { HELPER_BLOB_MAX = 480, HELPER_WATCHED_MAX = 32 };

struct helper_blob {
    uint32_t len;
    uint8_t bytes[HELPER_BLOB_MAX];
};

struct helper_config {
    uint64_t job_id;
    const uint8_t *secret;              /* 32 bytes, the caller's, which outlive the helper */
    const char *host;                   /* numeric address of this node on the job's interface */
    const char *more[TP_RAILS_MAX - 1]; /* and on further rails; the first NULL ends them */
    const char *provider;               /* libfabric provider of the heartbeat connections, "tcp" */
    enum probe_choice probe;            /* how heartbeats are read; PROBE_AUTO: by verbs where there is a device */
    bool secure;                        /* heartbeat connections are sealed; with PROBE_OFI only */
    uint32_t incarnation;               /* of this agent, part of the authenticator; peers refuse another one */
    struct member_params params;        /* n, self, times: member_params_default() */
};

/* As in struct member_ops, same meaning. */
struct helper_callbacks {
    void *user;
    void (*prepare)(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n);
    void (*commit)(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value);
    void (*settled)(void *user, uint64_t epoch);
    void (*halt)(void *user, const char *reason);
    void (*report)(void *user, const struct member_report *report);
};

struct helper;

/* Opens the listener and the datagram endpoint; blob receives what the other nodes need to reach them.
 * errors  KEEL_ERR_ARG, KEEL_ERR_NOMEM, KEEL_ERR_SYSTEM (logged; with PROBE_VERBS also if there is no usable
 *         device). */
keel_status helper_create(const struct helper_config *config, const struct helper_callbacks *callbacks,
                          struct helper **out, struct helper_blob *blob);
/* blobs[n] in node order; of length 0 for who is not known, and no member. Starts the thread. KEEL_ERR_ARG: *bad is
 * the node whose blob is none, or as it was (-1 before the call). */
keel_status helper_start(struct helper *h, const struct helper_blob *blobs, int *bad);
/* "verbs" or "ofi": what it began with. */
const char *helper_probe(const struct helper *h);
/* Whose heartbeats it read at the start; their number. */
int helper_watched(const struct helper *h, int out[HELPER_WATCHED_MAX]);
/* Stops the thread, closes everything. NULL is allowed. Not from a callback. */
void helper_destroy(struct helper *h);

/* Where a node is that may be born. Repeats, and several with one id, do no harm: the view says which. KEEL_ERR_ARG: no
 * blob, no id; KEEL_ERR_NOMEM. */
keel_status helper_meet(struct helper *h, int node, const struct helper_blob *blob);
void helper_submit(struct helper *h, const struct view_event *event);
void helper_prepared(struct helper *h, uint64_t proposal, uint64_t value);
void helper_check(struct helper *h, int node);
void helper_stake(struct helper *h, int node, enum member_stake stake);
void helper_waits(struct helper *h, int node, uint64_t until); /* as member_waits */
void helper_broken(struct helper *h, int node);                /* a connection to node broke elsewhere in the runtime */
void helper_refused(struct helper *h, int node);               /* a connection was refused by node's kernel */
/* What the core knew at most STATUS_NS (helper.c) ago, and the last of what it said about others. */
enum { HELPER_SAID_MAX = 16 };
struct helper_status {
    struct member_status member;
    int n_said;
    struct member_report said[HELPER_SAID_MAX]; /* oldest first */
};
void helper_status(struct helper *h, struct helper_status *out);
/* As member_links, at the last MEMBER_REPORT_LINKS. Any thread. */
int helper_links(struct helper *h, struct member_link out[MEMBER_LINKS_MAX]);
#endif
