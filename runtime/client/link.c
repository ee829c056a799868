/* Connections of this rank to agents: made when first needed, made again when they break. The own agent's is shared
 * memory and always there. */
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/channel/hello.h"
#include "runtime/client/client.h"

enum { RETRY_FIRST_NS = 1000000, RETRY_MAX_NS = 50000000, ASK_EVERY_NS = 200000000 };

void link_ask_agent(struct client *c, int node, uint64_t now)
{
    struct link *l = &c->link[node];
    if (node == c->node || now - l->check_at < ASK_EVERY_NS)
        return;
    l->check_at = now;
    struct control r = {.type = CONTROL_CHECK, .slot = node};
    (void)c->env.tell(c->env.user, &r); /* asked again, if it was lost */
}

int link_note_take(struct link *l)
{
    for (int w = 0; w < NOTES_MAX / 64; w++)
        if (~l->notes[w]) {
            int bit = __builtin_ctzll(~l->notes[w]);
            l->notes[w] |= (uint64_t)1 << bit;
            return w * 64 + bit;
        }
    return -1;
}

void link_note_free(struct client *c, struct link *l, int note)
{
    l->notes[note / 64] &= ~((uint64_t)1 << (note % 64));
    c->serve = true;
}

static void retry_later(struct link *l, uint64_t now)
{
    l->state = LINK_DOWN;
    l->ep = NULL;
    l->retry_at = now + l->retry_ns;
    l->retry_ns = l->retry_ns * 2 > RETRY_MAX_NS ? RETRY_MAX_NS : l->retry_ns * 2;
}

static void start(struct link *l, uint64_t now)
{
    const struct client *c = l->client;
    const struct page_node *node = page_node(c->page, l->node);
    struct wire_hello hello = {.job = c->job,
                               .incarnation = c->incarnation,
                               .node = c->node,
                               .rank = c->rank,
                               .to_node = l->node,
                               .to_incarnation = node->incarnation,
                               .attempt = ++l->attempts};
    wire_hello_sign(&hello, c->secret);
    if (c->net->table->connect(c->net, &node->addr, &hello, sizeof hello, l, &l->ep) == KEEL_OK)
        l->state = LINK_CONNECTING;
    else
        retry_later(l, now);
}

struct tp_ep *link_up(struct client *c, int node, uint64_t now)
{
    struct link *l = &c->link[node];
    if (l->state == LINK_UP)
        return l->ep;
    if (l->state == LINK_DOWN && now >= l->retry_at &&
        atomic_load_explicit(&page_node(c->page, node)->alive, memory_order_acquire))
        start(l, now);
    if (l->state == LINK_DOWN && l->retry_at < c->retry_at)
        c->retry_at = l->retry_at;
    return NULL;
}

void link_drop(struct client *c, int node)
{
    struct link *l = &c->link[node];
    if (l->state != LINK_DOWN && node != c->node)
        tp_disconnect(l->ep); /* TP_CLOSED follows, after the events of what is on its way */
}

static void take(struct client *c, const struct wire *w, size_t len, uint64_t now)
{
    if (w->type == WIRE_REPLY)
        op_answered(c, w, w + 1, len);
    else
        courier_receive(c, w, w + 1, len, now);
}

void link_event(struct link *l, const struct tp_event *e, uint64_t now)
{
    struct client *c = l->client;
    switch (e->type) {
    case TP_CONNECTED:
        l->state = LINK_UP;
        l->retry_ns = RETRY_FIRST_NS;
        op_link_up(c, l->node);
        courier_link_up(c, l->node, now);
        break;
    case TP_CLOSED:
        tp_ep_destroy(e->ep);
        retry_later(l, now);
        log_debug("connection to node %d closed: %s", l->node, keel_status_name(e->status));
        link_ask_agent(c, l->node, now);
        op_link_lost(c, l->node);
        courier_link_lost(c, l->node);
        break;
    case TP_RECV:
        if (e->len >= sizeof(struct wire))
            take(c, e->data, e->len - sizeof(struct wire), now);
        break;
    default:
        break;
    }
}
