/* Connections of this rank to agents: made when first needed, made again when they break. The own agent's is shared
 * memory and always there. */
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/net/hello.h"
#include "runtime/client/client.h"
#include "runtime/client/stream/connection.h"
#include "runtime/wire/kinds.h"

enum {
    ASK_EVERY_NS = 200000000,
    LOOK_EVERY_NS = 20000000,
    STILL_PART = 4, /* of the time-out, and at least so long: */
    STILL_MIN_NS = 250000000,
    STILL_DOUBTED_NS = 1000000000,
};

void connection_ask_agent(struct client *c, int node, uint64_t now)
{
    struct connection *l = &c->connections.of[node];
    if (node == c->node || now - l->check_at < ASK_EVERY_NS)
        return;
    l->check_at = now;
    struct control r = {.type = CONTROL_CHECK, .node = node};
    (void)c->env.tell(c->env.user, &r); /* asked again, if it was lost */
}

/* An answer is missing, the node lives, and nothing moves on the connection, or it does not come up: somebody sleeps
 * who has something to send, or waits for what has got lost. What is on its way is asked for again over another
 * connection, as when one breaks. A connection that moves, however slowly, stays. Where there is another rail less
 * patience is needed. */
void connection_look(struct client *c, int node, bool goes_elsewhere, uint64_t now)
{
    struct connection *l = &c->connections.of[node];
    struct way_look *look = &l->way.look;
    uint64_t still = c->timeout_ns / STILL_PART > STILL_MIN_NS ? c->timeout_ns / STILL_PART : STILL_MIN_NS;
    if (goes_elsewhere && still > STILL_DOUBTED_NS)
        still = STILL_DOUBTED_NS;
    uint64_t lived = c->progress.lived_ns, stuck = still;
    if (node == c->node || l->way.state == WAY_DOWN || lived - look->at < LOOK_EVERY_NS)
        return;
    if (way_has_other(&l->way, &page_node(c->page, node)->addrs, now)) {
        stuck = WAY_STUCK_NS;
        still = still < WAY_UNANSWERED_NS ? still : WAY_UNANSWERED_NS;
    }
    bool drop =
        l->way.state == WAY_UP ? way_is_still(look, l->way.ep, stuck, still, lived) : lived - look->came_at >= stuck;
    bool idle = l->way.state == WAY_UP && !look->moved.pending;
    look->at = lived;
    if (!drop)
        return;
    log_warn_some("node %d has not answered for %llu ms, and nothing moves on the connection to it: asking again over "
                  "another one",
                  node, (unsigned long long)((idle ? still : stuck) / KEEL_NS_PER_MS));
    connection_drop(c, node);
}

int connection_note_take(struct connection *l)
{
    for (int w = 0; w < NOTES_MAX / 64; w++)
        if (~l->notes[w]) {
            int bit = __builtin_ctzll(~l->notes[w]);
            l->notes[w] |= (uint64_t)1 << bit;
            return w * 64 + bit;
        }
    return -1;
}

void connection_note_free(struct client *c, struct connection *l, int note)
{
    l->notes[note / 64] &= ~((uint64_t)1 << (note % 64));
    c->ops.serve = true;
}

void connection_note_give_up(struct connection *l, int note, int which)
{
    l->given_up[which][note / 64] |= (uint64_t)1 << (note % 64);
}

void connection_notes_taken_up(struct client *c, struct connection *l)
{
    for (int w = 0; w < NOTES_MAX / 64; w++) {
        l->notes[w] &= ~l->given_up[0][w];
        l->given_up[0][w] = l->given_up[1][w];
        l->given_up[1][w] = 0;
    }
    c->ops.serve = true;
}

size_t connection_hello(const struct client *c, const struct way *w, uint64_t to_incarnation, uint8_t *out)
{
    struct hello hello = {.job = c->job,
                          .incarnation = c->incarnation,
                          .node = c->node,
                          .rank = c->rank,
                          .to_node = w->key.node,
                          .to_incarnation = to_incarnation,
                          .attempt = w->attempts};
    hello_sign(&hello, c->secret);
    memcpy(out, &hello, sizeof hello);
    return sizeof hello;
}

static size_t make_hello(void *user, const struct way *w, uint8_t *out)
{
    const struct client *c = user;
    return connection_hello(c, w, page_node(c->page, w->key.node)->incarnation, out);
}

/* Of a node that is believed dead, or does not answer our agent either, keelrun tells. */
static void tell_way(const struct ways *kind, const struct way *w, const struct tp_addr *to, uint64_t for_ns)
{
    const struct client *c = kind->user;
    uint32_t doubts = atomic_load_explicit(&page_node(c->page, w->key.node)->doubts, memory_order_relaxed);
    if (!to || !(doubts & (PAGE_DOUBT_SUSPECT | PAGE_DOUBT_AGENT | PAGE_DOUBT_DEAD)))
        way_log(kind, w, to, for_ns);
}

void connection_init(struct client *c)
{
    c->connections.ways = (struct ways){.tp = c->connections.net,
                                        .first_ns = KEEL_NS_PER_MS,
                                        .max_ns = 50 * KEEL_NS_PER_MS,
                                        .hello = make_hello,
                                        .user = c,
                                        .tell = tell_way,
                                        .counts = client_counts(c),
                                        .whose = "node"};
    for (int m = 0; m < (int)c->page->members; m++) {
        c->connections.of[m] = (struct connection){.client = c, .node = m, .rank = -1};
        way_init(&c->connections.of[m].way, &c->connections.ways, way_direct(m));
    }
}

struct tp_ep *connection_up(struct client *c, int node, uint64_t now)
{
    struct connection *l = &c->connections.of[node];
    struct way_look *look = &l->way.look;
    const struct page_node *n = page_node(c->page, node);
    if (l->way.state == WAY_UP)
        return l->way.ep;
    if (l->way.state == WAY_DOWN && atomic_load_explicit(&n->alive, memory_order_acquire))
        look->came_at =
            way_try(&l->way, &c->connections.ways, &n->addrs, l, now) ? c->progress.lived_ns : look->came_at;
    if (l->way.state == WAY_DOWN && l->way.retry_at < c->progress.retry_at)
        c->progress.retry_at = l->way.retry_at;
    return NULL;
}

void connection_drop(struct client *c, int node)
{
    struct connection *l = &c->connections.of[node];
    if (l->way.state != WAY_DOWN && node != c->node)
        tp_disconnect(l->way.ep); /* TP_CLOSED follows, after the events of what is on its way */
}

static void take(struct client *c, const struct wire *w, size_t len, uint64_t now)
{
    if (w->type == WIRE_REPLY)
        op_answered(c, w, w + 1, len, now);
    else
        courier_receive(c, w, w + 1, len, now);
}

void connection_event(struct connection *l, const struct tp_event *e, uint64_t now)
{
    struct client *c = l->client;
    if (l->rank >= 0) {
        direct_event(l, e, now);
        return;
    }
    switch (e->type) {
    case TP_CONNECTED:
        way_connected(&l->way, &c->connections.ways, now);
        l->way.look.at = l->way.look.came_at = l->way.look.went_at = c->progress.lived_ns;
        op_connection_up(c, l->node);
        courier_connection_up(c, l->node, now);
        break;
    case TP_CLOSED:
        way_failed(&l->way, now);
        log_debug("connection to node %d closed: %s", l->node, keel_status_name(e->status));
        connection_ask_agent(c, l->node, now);
        op_connection_lost(c, l->node);
        courier_connection_lost(c, l->node);
        break;
    case TP_RECV:
        if (wire_bytes(e->data, e->len) && wire_is_known(e->data, WIRE_TO_RANK))
            take(c, e->data, e->len - sizeof(struct wire), now);
        break;
    default:
        break;
    }
}
