/* Connections of this rank to agents: made when first needed, made again when they break. The own agent's is shared
 * memory and always there. */
#include "runtime/core/client.h"

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

enum { RETRY_FIRST_NS = 1000000, RETRY_MAX_NS = 50000000, ASK_EVERY_NS = 200000000 };

void link_ask_agent(int node, uint64_t now)
{
    struct link *l = &client.link[node];
    if (node == client.node || now - l->check_at < ASK_EVERY_NS)
        return;
    l->check_at = now;
    struct control r = {.type = CONTROL_CHECK, .slot = node};
    control_tell(&r);
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
    struct wire_hello hello = {.job = client.job,
                               .incarnation = client.incarnation,
                               .node = client.node,
                               .rank = client.rank,
                               .to_node = l->node,
                               .to_incarnation = page_node(client.page, l->node)->incarnation,
                               .attempt = ++l->attempts};
    wire_hello_sign(&hello, client.secret);
    const struct tp_addr *addr = &page_node(client.page, l->node)->addr;
    if (client.net->table->connect(client.net, addr, &hello, sizeof hello, l, &l->ep) == KEEL_OK)
        l->state = LINK_CONNECTING;
    else
        retry_later(l, now);
}

struct tp_ep *link_up(int node, uint64_t now)
{
    struct link *l = &client.link[node];
    if (l->state == LINK_UP)
        return l->ep;
    if (l->state == LINK_DOWN && now >= l->retry_at &&
        atomic_load_explicit(&page_node(client.page, node)->alive, memory_order_acquire))
        start(l, now);
    return NULL;
}

void link_drop(int node)
{
    struct link *l = &client.link[node];
    if (l->state != LINK_DOWN && node != client.node)
        tp_disconnect(l->ep); /* TP_CLOSED follows, after the events of what is on its way */
}

void link_event(struct link *l, const struct tp_event *e, uint64_t now)
{
    switch (e->type) {
    case TP_CONNECTED:
        l->state = LINK_UP;
        l->retry_ns = RETRY_FIRST_NS;
        op_links_changed();
        break;
    case TP_CLOSED:
        tp_ep_destroy(e->ep);
        retry_later(l, now);
        log_debug("connection to node %d closed: %s", l->node, keel_status_name(e->status));
        link_ask_agent(l->node, now);
        op_link_lost(l->node);
        break;
    case TP_RECV:
        if (e->len >= sizeof(struct wire))
            op_answered(e->data, (const struct wire *)e->data + 1, e->len - sizeof(struct wire));
        break;
    default:
        break;
    }
}
