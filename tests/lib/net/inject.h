/* A fault-injecting interposer over any other transport. Everything that passes goes by a decide function of the
 * test's own, which may let it pass, delay it, hold it until released, or break the connection there. Order within a
 * connection and direction is kept: what follows something delayed waits behind it.
 *
 * The inner tp's behaviour is otherwise unchanged. Time is counted in polls of this tp, so runs repeat exactly over
 * `mem`. */
#ifndef KEEL_TESTS_LIB_NET_INJECT_H
#define KEEL_TESTS_LIB_NET_INJECT_H

#include "runtime/base/rng.h"
#include "runtime/net/transport.h"

/* The posts of our side, and the events of the inner transport. */
enum inject_point {
    INJECT_SEND,
    INJECT_WRITE,
    INJECT_READ,
    INJECT_CONNREQ,
    INJECT_CONNECTED,
    INJECT_CLOSED,
    INJECT_RECV,
    INJECT_DONE,
    INJECT_POINT_COUNT
};

struct inject_at {
    enum inject_point point;
    uint64_t nth;      /* how often this point was passed before, over all connections of the tp */
    struct tp_ep *ep;  /* NULL at INJECT_CONNREQ */
    struct tp_op *op;  /* or NULL */
    const void *bytes; /* header of a message sent, message received, hello; or NULL */
    size_t len;        /* of bytes */
};

enum inject_action {
    INJECT_PASS,
    INJECT_DELAY,        /* until `polls` polls of this tp have gone by */
    INJECT_HOLD,         /* until tp_inject_release: a link that went silent. Everything behind it waits too */
    INJECT_BREAK_BEFORE, /* the connection is dropped and this does not happen (an op still gets its TP_DONE) */
    INJECT_BREAK_AFTER,  /* this happens, then the connection is dropped */
};

struct inject_verdict {
    enum inject_action action;
    uint32_t polls;
};

/* Called inside the tp's functions, on their thread; must not call them. At INJECT_CONNREQ and INJECT_CLOSED a break
 * means pass. */
typedef struct inject_verdict (*inject_decide)(void *arg, const struct inject_at *at);

/* Takes ownership of inner. decide NULL: everything passes. */
keel_status tp_inject_open(struct tp *inner, inject_decide decide, void *arg, struct tp **out);
void tp_inject_set(struct tp *tp, inject_decide decide, void *arg);
/* Hold both directions of an ep from now on; release ends that and every INJECT_HOLD of the ep. */
void tp_inject_hold(struct tp_ep *ep);
void tp_inject_release(struct tp_ep *ep);

/* A ready-made decide: at every point, with the given chances out of a million, delay (1 to max_delay polls) or break.
 */
struct inject_random {
    struct rng rng;
    uint32_t delay_ppm, break_ppm, max_delay;
};
struct inject_verdict inject_random_decide(void *arg, const struct inject_at *at);
#endif
