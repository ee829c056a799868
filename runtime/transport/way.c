#include "runtime/transport/way.h"

#include <assert.h>

void way_init(struct way *w, const struct ways *kind, struct way_key key)
{
    *w = (struct way){.key = key, .retry_ns = kind->first_ns};
}

bool way_try(struct way *w, const struct ways *kind, const struct tp_addr *to, void *ep_user, uint64_t now)
{
    if (w->state != WAY_DOWN)
        return true;
    if (now < w->retry_at)
        return false;
    uint8_t hello[TP_HELLO_MAX];
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

void way_connected(struct way *w, const struct ways *kind)
{
    assert(w->state == WAY_CONNECTING);
    w->state = WAY_UP;
    w->retry_ns = kind->first_ns;
}

void way_drop(struct way *w)
{
    if (w->ep)
        tp_ep_destroy(w->ep);
    w->ep = NULL;
    w->state = WAY_DOWN;
}
