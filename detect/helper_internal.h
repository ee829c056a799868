/* helper.c: the thread. commands.c: what other threads ask of it. reach.c: heartbeat connections and probes. meet.c:
 * who may join. Everything here belongs to the helper thread, but what `lock` guards. */
#ifndef KEEL_DETECT_HELPER_INTERNAL_H
#define KEEL_DETECT_HELPER_INTERNAL_H

#include <stdatomic.h>

#include "detect/commands.h"
#include "detect/dgram.h"
#include "detect/helper.h"
#include "detect/probe.h"
#include "detect/seal.h"
#include "detect/witness.h"
#include "runtime/net/way.h"

/* What a blob holds. */
struct whereabouts {
    uint32_t incarnation;
    struct tp_addrs addrs;
    struct dgram_addr dgram[TP_RAILS_MAX]; /* on the rails of addrs */
    struct probe_addr verbs;
    uint16_t witness_port;
    bool witness_prompt;
};

struct candidate {
    struct candidate *next;
    int node;
    struct whereabouts where;
};

/* Our side of the connections with one other node. */
struct reach {
    int node;
    bool known; /* who and where it is */
    uint32_t incarnation;
    struct tp_addrs addrs;
    bool watched;
    unsigned proved; /* bits: rails over which it has sent us something that was its own */
    struct way way;  /* over which we read its heartbeat */
    struct tp_op op;
    bool reading;
    uint64_t read_at;       /* when that was begun */
    uint64_t value;         /* the read's destination */
    struct tp_ep *incoming; /* over which it reads ours */
    struct tp_ep *probe;
    int probe_rail, knock_rail; /* of the last one: the next goes over the next rail */
    uint64_t probe_until;
    int knock_fd; /* -1: none */
    int knock_error;
    uint64_t knock_until;
    struct {
        uint16_t port;            /* 0: it has none */
        bool prompt;              /* answers on a busy machine, too */
        bool heard;               /* has answered before */
        uint64_t asked, answered; /* numbers: the time in microseconds */
        uint64_t waits_since;     /* the first question that is not answered; 0: none */
    } witness;
    /* numbers of seal.h: ours, and those of theirs that were here */
    uint64_t datagrams_sent, hellos_sent;
    struct seal_window datagrams, hellos;
};

/* May have something: their descriptors said so, or were not asked. The rest is looked at each time. */
struct helper_due {
    bool links, datagrams, answers;
};

/* Whom we watch. */
struct helper_watch {
    int reads[HELPER_WATCHED_MAX], n_reads; /* with several rails, as far as there is room */
    int first[HELPER_WATCHED_MAX], n_first; /* at the start; fixed before the thread runs */
};

struct helper_counters {
    _Atomic uint64_t wakeups, sent; /* datagrams */
    _Atomic uint64_t dropped;       /* not ours: bad authenticator, wrong job or incarnation */
    _Atomic uint64_t reads;
    _Atomic uint64_t verbs_reads, verbs_sent; /* of these over libibverbs, and datagrams sent so */
};

struct helper {
    struct helper_config config;
    char host[64], provider[32];
    struct helper_callbacks callbacks;
    struct seal seal;
    struct member *m;
    struct probe *verbs;     /* or NULL */
    struct probe *probes[2]; /* the first that can is used */
    int n_probes;
    struct ofi {
        struct probe probe;
        struct helper *h;
        bool links_armed, datagrams_armed; /* looked at and nothing done with them since: their descriptors wake us */
    } ofi;
    struct tp *tp;
    struct ways ways;
    int rails;
    struct dgram *dgram[TP_RAILS_MAX];
    struct tp_addrs addrs;
    struct dgram_addr dgram_addr[TP_RAILS_MAX];
    struct probe_addr verbs_addr;
    struct reach *peers;
    struct candidate *candidates;        /* who may be born */
    volatile _Atomic uint64_t heartbeat; /* read by the others; written by the thread */
    uint64_t beats;
    int epoll_fd, wake_fd;
    struct helper_due due;
    int n_knocks;
    bool told_full; /* that there was no descriptor for one */
    bool probing;   /* some peer may have a probe */
    struct helper_watch watch;
    int ask_fd;
    struct witness witness; /* ours */
    pthread_t thread;
    bool started;
    atomic_bool stop;
    uint64_t now;

    struct helper_commands commands;
    struct helper_told told;

    struct helper_counters count;
};

/* helper.c: bytes from anywhere, not yet trusted. rail -1: by the device */
void helper_datagram(struct helper *h, const void *data, size_t len, int rail);

/* helper_ops.c: what the core wants done; user is the helper, to be filled in */
extern const struct member_ops helper_ops;

/* knock.c: is there a kernel? */
void knock_start(struct helper *h, int node);
bool knock_poll(struct helper *h); /* false: nothing was there */
void knock_end(struct helper *h, int node);

/* ask.c: does the agent of a host that answers run? */
bool ask_init(struct helper *h); /* when h->addrs and h->epoll_fd are there */
void ask_end(struct helper *h);
void ask_start(struct helper *h, int node);
void ask_learn(struct helper *h, int node);        /* that it answers at all; asks now and then until it did */
bool ask_silent(const struct helper *h, int node); /* it would answer if it ran, and does not */
bool ask_poll(struct helper *h);                   /* false: nothing was there */

/* meet.c */
void meet_write(const struct whereabouts *w, struct helper_blob *blob);
bool meet_read(const struct helper_blob *blob, struct whereabouts *w); /* false: it is none */
bool meet_is(struct helper *h, int node, const struct whereabouts *w); /* false: its address cannot be used */
void meet_take(struct helper *h, struct candidate *c);                 /* from now on it is ours */
bool meet_admits(struct helper *h, int node, uint32_t incarnation);    /* may it be the node that says so? */
void meet_born(struct helper *h, int node, uint32_t incarnation);
void meet_end(struct helper *h);

/* commands.c */
/* By h's thread, at its beginning: what it asks of itself from now on makes no way round. */
void helper_commands_here(struct helper *h);
bool helper_take_commands(struct helper *h); /* false: nothing was there */
void helper_drop_commands(struct helper *h); /* at the end: nobody takes them any more */

/* probe_verbs.c: verbs*.c */
bool probe_verbs_open(struct helper *h); /* false: cannot be had here */

/* probe_ofi.c: reads over reach.c, datagrams over dgram.c */
void probe_ofi_init(struct helper *h);

/* reach.c */
/* The address of the rail behind *last, which then is that rail. */
const struct tp_addr *reach_next_rail(const struct reach *p, int *last);
/* Does a refusal over the rail tell that the node's process is gone? */
bool reach_trusts(const struct reach *p, int rail);
void reach_init(struct helper *h);           /* when h->tp is there */
void reach_keep(struct helper *h, int node); /* whoever reads: a process that ends breaks its connections at once */
keel_status reach_listen(struct helper *h);  /* h->addrs are where */
bool reach_read(struct helper *h, int node);
void reach_watch(struct helper *h, int node, bool on);
void reach_probe(struct helper *h, int node);
void reach_fence(struct helper *h, int node); /* declared dead: drop what it has, refuse it */
bool reach_poll(struct helper *h);            /* false: nothing was there */
void reach_tick(struct helper *h);
/* When that is needed next; UINT64_MAX: not for this. */
uint64_t reach_deadline(const struct helper *h);
#endif
