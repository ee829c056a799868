#include "runtime/net/way.h"

#include <assert.h>

enum { AGAIN_S = 30 };

/* ---- which way ---- */

bool way_rests(const struct way_past *past, int rail, uint64_t now)
{
    uint32_t times = past->rail[rail].times;
    uint64_t rest = WAY_REST_MAX_NS;
    if (!past->rail[rail].failed_at)
        return false;
    if (times <= 4)
        rest = times > 1 ? WAY_REST_NS << (times - 1) : WAY_REST_NS;
    return now - past->rail[rail].failed_at < rest;
}

struct way_key way_pick(int node, const struct tp_addrs *to, const struct way_past *past, uint64_t now)
{
    struct way_key oldest = {.node = node, .rail = to->of[0].rail, .via = WAY_DIRECT};
    for (uint32_t i = 0; i < to->n; i++) {
        int rail = to->of[i].rail;
        if (!way_rests(past, rail, now))
            return (struct way_key){.node = node, .rail = rail, .via = WAY_DIRECT};
        if (past->rail[rail].failed_at < past->rail[oldest.rail].failed_at)
            oldest.rail = rail;
    }
    return oldest;
}

/* ---- one way ---- */

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

bool way_try(struct way *w, const struct ways *kind, const struct tp_addrs *all, void *ep_user, uint64_t now)
{
    if (w->state != WAY_DOWN)
        return true;
    struct way_key key = way_pick(w->key.node, all, &w->past, now);
    const struct tp_addr *on = addrs_on(all, key.rail),
                         *to = on ? on : &all->of[0]; /* of who is not known: no address */
    bool other =
        key.rail != w->key.rail && way_rests(&w->past, w->key.rail, now) && !way_rests(&w->past, key.rail, now);
    if (now < w->retry_at && !other)
        return false;
    uint8_t hello[TP_HELLO_MAX];
    w->key = key;
    w->begun_at = now;
    tell_failing(w, kind, to, now);
    if (!w->down_since)
        w->down_since = now;
    w->attempts++;
    size_t len = kind->hello(kind->user, w, hello);
    assert(len <= sizeof hello);
    if (!other) {
        w->retry_at = now + w->retry_ns;
        w->retry_ns = w->retry_ns * 2 > kind->max_ns ? kind->max_ns : w->retry_ns * 2;
    }
    if (kind->tp->table->connect(kind->tp, to, hello, len, ep_user, &w->ep) != KEEL_OK) {
        w->ep = NULL;
        way_failed(w, now);
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
    w->past.rail[w->key.rail].failed_at = 0;
    w->past.rail[w->key.rail].stood = true;
    w->broke = false;
    w->look = (struct way_look){.at = now, .came_at = now, .went_at = now};
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

void way_anew(struct way *w, const struct ways *kind)
{
    uint64_t attempts = w->attempts; /* no two have the same number */
    way_init(w, kind, w->key);
    w->attempts = attempts;
}

void way_failed(struct way *w, uint64_t now)
{
    if (w->state == WAY_UP && now - w->begun_at >= WAY_REST_MAX_NS)
        w->past.rail[w->key.rail].times = 0;
    w->past.rail[w->key.rail].failed_at = now ? now : 1;
    w->past.rail[w->key.rail].times++;
    w->broke |= w->state == WAY_UP;
    way_drop(w);
}

bool way_refusal_counts(const struct way *w)
{
    return w->key.rail == 0 || w->past.rail[w->key.rail].stood;
}

bool way_has_broken(struct way *w, const struct tp_addrs *to, uint64_t now)
{
    bool is = w->broke && !way_has_other(w, to, now);
    w->broke &= !is;
    return is;
}

/* ---- a connection that stands and does not carry ---- */

bool way_is_still(struct way_look *l, const struct tp_ep *ep, uint64_t stuck, uint64_t still, uint64_t now)
{
    struct tp_moved moved;
    bool anew = now - l->at >= stuck; /* nobody was waiting */
    if (!tp_moved(ep, &moved))
        return false;
    if (moved.received != l->moved.received || anew)
        l->came_at = now;
    if (!moved.pending || moved.taken != l->moved.taken || anew)
        l->went_at = now;
    l->moved = moved;
    l->at = now;
    if (moved.pending)
        return now - l->came_at >= stuck && now - l->went_at >= stuck;
    return now - l->came_at >= still;
}

bool way_has_other(const struct way *w, const struct tp_addrs *to, uint64_t now)
{
    for (uint32_t i = 0; i < to->n; i++)
        if (to->of[i].rail != w->key.rail && !way_rests(&w->past, to->of[i].rail, now))
            return true;
    return false;
}

bool way_is_stuck(struct way *w, const struct tp_addrs *to, bool waits, uint64_t now)
{
    if (to->n < 2 || w->state == WAY_DOWN || !way_has_other(w, to, now))
        return false;
    if (w->state == WAY_CONNECTING)
        return now - w->begun_at >= WAY_STUCK_NS;
    return waits && way_is_still(&w->look, w->ep, WAY_STUCK_NS, WAY_UNANSWERED_NS, now);
}
