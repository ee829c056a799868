/* Inside the probe over libibverbs: verbs_device.c opens and releases the device and makes queue pairs of it,
 * verbs_watch.c reads over RC queue pairs and joins them, verbs_datagram.c is the UD queue pair, verbs.c is the table
 * and what the device tells. Included where rdma-core's headers are. */
#ifndef KEEL_DETECT_VERBS_INT_H
#define KEEL_DETECT_VERBS_INT_H

#include <infiniband/verbs.h>

#include "detect/probe.h"

enum {
    RECVS = 128,
    SENDS = 32,
    GRH = 40,
    BUFFER = GRH + PROBE_DATAGRAM_MAX,
    CQ_DEPTH = 512,
    RETRIES = 3,
    QKEY = 0x6b65656c,
    TAG_READ = 1,
    TAG_SEND,
    TAG_RECV,
    MSG_ASK = 1,
    MSG_ANSWER
};

/* What is called of the library, by its names without ibv_. */
#define VERBS_FUNCTIONS(X)                                                                                             \
    X(struct ibv_device **, get_device_list, (int *))                                                                  \
    X(void, free_device_list, (struct ibv_device **))                                                                  \
    X(const char *, get_device_name, (struct ibv_device *))                                                            \
    X(struct ibv_context *, open_device, (struct ibv_device *))                                                        \
    X(int, close_device, (struct ibv_context *))                                                                       \
    X(int, query_port, (struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *))                                \
    X(int, query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *))                                           \
    X(struct ibv_pd *, alloc_pd, (struct ibv_context *))                                                               \
    X(int, dealloc_pd, (struct ibv_pd *))                                                                              \
    X(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int))                                                 \
    X(int, dereg_mr, (struct ibv_mr *))                                                                                \
    X(struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *))                                          \
    X(int, destroy_comp_channel, (struct ibv_comp_channel *))                                                          \
    X(struct ibv_cq *, create_cq, (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))                 \
    X(int, destroy_cq, (struct ibv_cq *))                                                                              \
    X(int, get_cq_event, (struct ibv_comp_channel *, struct ibv_cq **, void **))                                       \
    X(void, ack_cq_events, (struct ibv_cq *, unsigned))                                                                \
    X(int, get_async_event, (struct ibv_context *, struct ibv_async_event *))                                          \
    X(void, ack_async_event, (struct ibv_async_event *))                                                               \
    X(const char *, event_type_str, (enum ibv_event_type))                                                             \
    X(struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))                                        \
    X(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))                                                    \
    X(int, destroy_qp, (struct ibv_qp *))                                                                              \
    X(struct ibv_ah *, create_ah, (struct ibv_pd *, struct ibv_ah_attr *))                                             \
    X(int, destroy_ah, (struct ibv_ah *))                                                                              \
    X(const char *, wc_status_str, (enum ibv_wc_status))

extern struct verbs_library {
    void *library;
#define X(type, name, args) type(*name) args; // NOLINT(bugprone-macro-parentheses): a declaration
    VERBS_FUNCTIONS(X)
#undef X
} verbs_ib;

/* What every other node must know of this one; travels in the job's start-up exchange. */
struct address {
    union ibv_gid gid;
    uint64_t heartbeat;
    uint32_t rkey, ud_qpn;
    uint16_t lid;
    uint8_t global; /* the route needs gid */
    uint8_t mtu;    /* enum ibv_mtu */
};
_Static_assert(sizeof(struct address) <= PROBE_ADDR_MAX, "fits");

struct setup { /* ASK: qpn is the reader's. ANSWER: asked repeats it, qpn is the other end */
    uint8_t type, zero[3];
    uint32_t qpn, asked;
};

enum rc_state { CONN_DOWN, CONN_ASKED, CONN_UP };

struct rc_conn {
    bool has_device, watched, avoid, fenced;
    struct address to;
    struct ibv_ah *ah;
    enum rc_state state;
    struct ibv_qp *qp; /* over which we read it */
    bool reading;
    uint64_t since;          /* asked, or the read posted */
    struct ibv_qp *incoming; /* over which it reads us, made for its queue pair incoming_peer */
    uint32_t incoming_peer;
};

struct memory { /* registered; the heartbeat words others read and what reads and datagrams need */
    uint64_t value;
    uint8_t send[SENDS][PROBE_DATAGRAM_MAX];
    uint8_t recv[RECVS][BUFFER];
};

struct verbs {
    struct probe probe;
    struct verbs_config config;
    struct probe_callbacks callbacks;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *ud;
    struct memory *memory;
    struct ibv_mr *mr, *heartbeat_mr;
    uint64_t *values; /* destination of the read of each node */
    struct ibv_mr *values_mr;
    struct rc_conn *conns;
    struct address self;
    uint8_t port, gid_index;
    enum ibv_mtu mtu;
    uint32_t ud_max;
    unsigned sends_free, next_send;
    uint64_t now;       /* of the last poll */
    uint64_t ud_failed; /* when the datagram queue pair did; 0: it works */
    uint32_t ud_round;  /* how often it was made ready again; part of the number of what is posted to it */
    bool port_down;
    bool usable; /* not dead, its port is up, datagrams work */
    bool dead;   /* the device is gone, for good, and released */
};

/* verbs.c */
/* Everything goes the other way from here on; what was under way is not waited for. */
void verbs_stop(struct verbs *v);

/* verbs_device.c */
struct ibv_qp *verbs_make_qp(struct verbs *v, enum ibv_qp_type type);
struct ibv_ah_attr verbs_route(const struct verbs *v, const struct address *to);
bool verbs_join(struct verbs *v, struct ibv_qp *qp, const struct address *to, uint32_t qpn); /* ready to send */
const char *verbs_device_open(struct verbs *v); /* NULL, or what is missing */
/* The datagram queue pair works as if it were new; its number, by which the others know it, is the same. */
bool verbs_renew_datagrams(struct verbs *v);
/* All that is of the device. A device that is taken away waits for this. */
void verbs_release(struct verbs *v);

/* verbs_datagram.c */
bool verbs_post_recv(struct verbs *v, unsigned buffer);
bool verbs_send(struct probe *probe, int node, const void *data, size_t len);
void verbs_send_setup(struct verbs *v, int node, uint8_t type, uint32_t qpn, uint32_t asked);
void verbs_datagram_done(struct verbs *v, const struct ibv_wc *wc);
void verbs_datagrams_failed(struct verbs *v, const char *why);

/* verbs_watch.c */
void verbs_watch(struct probe *probe, int node, bool on, uint64_t now);
bool verbs_read(struct probe *probe, int node, uint64_t now);
void verbs_fence(struct probe *probe, int node);
void verbs_read_done(struct verbs *v, const struct ibv_wc *wc);
void verbs_drop(struct rc_conn *c);
void verbs_drop_incoming(struct rc_conn *c);
#endif
