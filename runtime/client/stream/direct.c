#include "runtime/client/stream/direct.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/net/hello.h"
#include "runtime/client/client.h"
#include "runtime/client/stream/connection.h"
#include "runtime/wire/parcel.h"

enum { LOOK_EVERY_NS = 25000000 };
#define FIRST_NS KEEL_NS_PER_MS
#define MAX_NS KEEL_NS_PER_S

struct direct {
    struct connection link; /* first: what its endpoints know */
    struct tp_addrs addrs;  /* where it listens */
    bool known;             /* that is */
    bool told;              /* where we do, it was */
    bool up;
    uint64_t heard; /* the newest of its attempts */
};

/* In hellos, where agents have their node: no agent takes what was meant for a rank, nor the other way round. */
static int place_of(int rank)
{
    return -1 - rank;
}

static size_t make_hello(void *user, const struct way *w, uint8_t *out)
{
    const struct client *c = user;
    return connection_hello(c, w, c->coll.life[-1 - w->key.node].life - 1, out);
}

bool direct_init(struct client *c)
{
    c->direct = (struct directs){.tp = c->connections.net,
                                 .ways = {.tp = c->connections.net,
                                          .first_ns = FIRST_NS,
                                          .max_ns = MAX_NS,
                                          .hello = make_hello,
                                          .user = c,
                                          .tell = way_log,
                                          .counts = client_counts(c),
                                          .whose = "rank",
                                          .number = place_of}};
    c->direct.of = calloc((size_t)c->size, sizeof(struct direct *));
    return c->direct.of != NULL;
}

void direct_over(struct client *c, struct tp *tp)
{
    c->direct.tp = c->direct.ways.tp = tp;
}

void direct_free(struct client *c)
{
    for (int r = 0; c->direct.of && r < c->size; r++)
        free(c->direct.of[r]);
    free(c->direct.of);
    c->direct.of = NULL;
}

static bool listens(struct client *c)
{
    if (!c->direct.asked)
        c->direct.listens = addrs_listen(c->direct.tp, &c->direct.here) == KEEL_OK;
    c->direct.asked = true;
    return c->direct.listens;
}

/* NULL: it is reached through its agent. */
static struct direct *get(struct client *c, int rank)
{
    struct direct *d = c->direct.of[rank];
    if (d || c->direct.n == DIRECT_MAX || !listens(c) || !(d = calloc(1, sizeof *d)))
        return d;
    d->link = (struct connection){.client = c, .node = -1, .rank = rank};
    way_init(&d->link.way, &c->direct.ways, way_direct(place_of(rank)));
    c->direct.of[rank] = d;
    c->direct.n++;
    return d;
}

static bool is_ours_to_make(const struct client *c, int rank)
{
    return c->rank > rank;
}

static void try(struct client *c, struct direct *d, uint64_t now)
{
    bool was_down = d->link.way.state == WAY_DOWN;
    if (was_down && d->known && c->coll.life[d->link.rank].life && is_ours_to_make(c, d->link.rank) &&
        !way_try(&d->link.way, &c->direct.ways, &d->addrs, &d->link, now)) {
        c->direct.down = true;
        coll_wake_at(c, d->link.way.retry_at);
    }
}

void direct_want(struct client *c, int rank, uint64_t now)
{
    struct direct *d = c->coll.life[rank].life ? get(c, rank) : NULL;
    if (!d)
        return;
    if (!d->told) {
        struct parcel_tag tag = {.kind = PARCEL_WHERE};
        d->told = true; /* what follows comes here again */
        d->told =
            courier_offer(c, rank, &tag, &c->direct.here.of, c->direct.here.n * sizeof c->direct.here.of[0], NULL, 0);
    }
    try(c, d, now);
}

void direct_told(struct client *c, int from, const void *data, size_t len, uint64_t now)
{
    struct tp_addrs addrs;
    struct direct *d = addrs_read(data, len, &addrs) ? get(c, from) : NULL;
    if (!d)
        return;
    d->addrs = addrs;
    d->known = true;
    direct_want(c, from, now);
}

static void set_up(struct direct *d, bool up)
{
    d->link.client->direct.ups += up - d->up;
    d->up = up;
}

/* A connection that nobody wants any more; its TP_CLOSED comes when another may have taken its place. */
static void let_go(struct direct *d)
{
    set_up(d, false);
    if (d->link.way.ep)
        tp_disconnect(d->link.way.ep);
}

void direct_asked(struct client *c, const struct tp_event *e, uint64_t now)
{
    struct hello h;
    bool ours = hello_open(e->data, e->len, c->secret, c->job, place_of(c->rank), c->incarnation, &h) &&
                h.rank > c->rank && h.rank < c->size;
    if (ours)
        coll_see_views(c, now);
    struct direct *d = ours && c->coll.life[h.rank].life == h.incarnation + 1 ? get(c, h.rank) : NULL;
    if (!d || !hello_is_new(&h, &d->heard)) {
        c->direct.tp->table->reject(
            c->direct.tp, e->req); /* from the dead, or from a view that is still to come here: it tries again */
        if (!ours)
            log_warn_some("a connection without this job's authenticator was refused");
        return;
    }
    FAULT_POINT("direct.asked");
    bool was = d->up;
    let_go(d);
    if (was)
        courier_direct_lost(c, h.rank);
    d->link.way.state = WAY_CONNECTING;
    if (c->direct.tp->table->accept(c->direct.tp, e->req, &d->link, &d->link.way.ep) != KEEL_OK) {
        d->link.way.ep = NULL;
        d->link.way.state = WAY_DOWN;
    }
}

static void closed(struct client *c, struct direct *d, keel_status why, uint64_t now)
{
    bool was = d->up;
    set_up(d, false);
    way_failed(&d->link.way, now);
    log_debug("connection to rank %d closed: %s", d->link.rank, keel_status_name(why));
    if (why == KEEL_ERR_NODE_DEAD)
        d->known = false; /* nobody listens there any more */
    if (was)
        courier_direct_lost(c, d->link.rank);
    try(c, d, now);
}

static void take(struct client *c, const struct direct *d, const struct tp_event *e, uint64_t now)
{
    struct wire w;
    struct msg_parcel p;
    if (e->len < sizeof w)
        return;
    memcpy(&w, e->data, sizeof w);
    msg_parcel_decode(&w, &p);
    if (p.sender.rank != d->link.rank || (w.type != WIRE_PARCEL && w.type != WIRE_PARCEL_BACK)) {
        log_error("rank %d sends what no rank sends", d->link.rank);
        return;
    }
    courier_receive(c, &w, (const uint8_t *)e->data + sizeof w, e->len - sizeof w, now);
}

void direct_event(struct connection *l, const struct tp_event *e, uint64_t now)
{
    struct direct *d = (struct direct *)l;
    struct client *c = l->client;
    if (e->ep != l->way.ep) { /* let go */
        if (e->type == TP_CLOSED)
            tp_ep_destroy(e->ep);
        return;
    }
    switch (e->type) {
    case TP_CONNECTED:
        way_connected(&l->way, &c->direct.ways, now);
        FAULT_POINT("direct.connected");
        set_up(d, c->coll.life[l->rank].life != 0);
        if (d->up)
            courier_direct_up(c, l->rank, now);
        break;
    case TP_CLOSED:
        closed(c, d, e->status, now);
        break;
    case TP_RECV:
        take(c, d, e, now);
        break;
    default:
        break;
    }
}

struct tp_ep *direct_up(const struct client *c, int rank)
{
    const struct direct *d = c->direct.of[rank];
    return d && d->up ? d->link.way.ep : NULL;
}

void direct_reset(struct client *c, int rank)
{
    struct direct *d = c->direct.of[rank];
    if (!d)
        return;
    let_go(d);
    way_anew(&d->link.way, &c->direct.ways);
    d->known = d->told = false;
    d->heard = 0;
}

/* With several rails: does one that is to carry something carry nothing? The stream goes on through the agents, and the
 * next attempt over another rail. False: there is nothing to look at. */
static bool look(struct client *c, struct direct *d, uint64_t now)
{
    const struct stream *s = &c->coll.stream[d->link.rank];
    bool waits = d->up && s->direct && s->head;
    if (!waits && d->link.way.state != WAY_CONNECTING)
        return false;
    if (way_is_stuck(&d->link.way, &d->addrs, waits, now)) {
        bool was = d->up;
        log_info("nothing moves on the connection to rank %d: it is given up", d->link.rank);
        let_go(d);
        if (was)
            courier_direct_lost(c, d->link.rank);
    }
    return true;
}

uint64_t direct_tick(struct client *c, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (int r = 0; c->direct.here.n > 1 && r < c->size; r++)
        if (c->direct.of[r] && look(c, c->direct.of[r], now))
            next = now + LOOK_EVERY_NS;
    bool down = c->direct.down;
    c->direct.down = false;
    for (int r = 0; down && r < c->size; r++) {
        struct direct *d = c->direct.of[r];
        if (!d)
            continue;
        try(c, d, now);
        if (c->direct.down && d->link.way.retry_at > now && d->link.way.retry_at < next)
            next = d->link.way.retry_at;
    }
    return next;
}
