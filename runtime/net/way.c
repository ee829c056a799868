#include "runtime/net/way.h"

#include <assert.h>

enum { AGAIN_S = 30 };

void way_init(struct way *w, const struct ways *kind, struct way_key key)
{
    *w = (struct way){.key = key, .retry_ns = kind->first_ns};
}

/* Whoever waits for it waits without a word otherwise. */
static void tell_failing(struct way *w, const struct ways *kind, const struct tp_addr *to, uint64_t now)
{
    if (!kind->tell || !w->down_since || now - w->down_since < WAY_PATIENCE_NS ||
        (w->told_at && now - w->told_at < w->tell_ns))
        return;
    w->tell_ns = w->told_at ? 2 * w->tell_ns : AGAIN_S * KEEL_NS_PER_S;
    w->told_at = now;
    kind->tell(kind, w, to, now - w->down_since);
}

bool way_try(struct way *w, const struct ways *kind, const struct tp_addr *to, void *ep_user, uint64_t now)
{
    if (w->state != WAY_DOWN)
        return true;
    if (now < w->retry_at)
        return false;
    uint8_t hello[TP_HELLO_MAX];
    tell_failing(w, kind, to, now);
    if (!w->down_since)
        w->down_since = now;
    w->attempts++;
    size_t len = kind->hello(kind->user, w, hello);
    assert(len <= sizeof hello);
    w->retry_at = now + w->retry_ns;
    w->retry_ns = w->retry_ns * 2 > kind->max_ns ? kind->max_ns : w->retry_ns * 2;
    if (kind->tp->table->connect(kind->tp, to, hello, len, ep_user, &w->ep) != KEEL_OK) {
        w->ep = NULL;
        return false;
    }
    w->state = WAY_CONNECTING;
    return true;
}

void way_connected(struct way *w, const struct ways *kind, uint64_t now)
{
    assert(w->state == WAY_CONNECTING);
    if (kind->counts)
        counter_add(kind->counts, COUNTER_connections, 1);
    if (w->told_at)
        kind->tell(kind, w, NULL, now - w->down_since);
    w->down_since = w->told_at = 0;
    w->error = 0;
    w->state = WAY_UP;
    w->retry_ns = kind->first_ns;
}

void way_drop(struct way *w)
{
    if (w->ep && w->state == WAY_CONNECTING)
        w->error = w->ep->error;
    if (w->ep)
        tp_ep_destroy(w->ep);
    w->ep = NULL;
    w->state = WAY_DOWN;
}
