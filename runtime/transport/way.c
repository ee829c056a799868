#include "runtime/transport/way.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"

enum { AGAIN_S = 30 };

void way_init(struct way *w, const struct ways *kind, struct way_key key)
{
    *w = (struct way){.key = key, .retry_ns = kind->first_ns};
}

static void address_text(const struct tp_addr *to, char *out, size_t size)
{
    struct sockaddr_in6 a = {0};
    char host[INET6_ADDRSTRLEN] = "";
    memcpy(&a, to->bytes, to->len < sizeof a ? to->len : sizeof a);
    bool six = a.sin6_family == AF_INET6;
    if (six || a.sin6_family == AF_INET)
        inet_ntop(a.sin6_family, six ? (void *)&a.sin6_addr : (void *)&((struct sockaddr_in *)&a)->sin_addr, host,
                  sizeof host);
    snprintf(out, size, six ? "[%s]:%d" : "%s:%d", *host ? host : "?", ntohs(a.sin6_port));
}

static int number_of(const struct way *w, const struct ways *kind)
{
    return kind->number ? kind->number(w->key.node) : w->key.node;
}

/* Whoever waits for it waits without a word otherwise. */
static void tell_failing(struct way *w, const struct ways *kind, const struct tp_addr *to, uint64_t now)
{
    char address[64];
    if (!w->down_since || now - w->down_since < WAY_PATIENCE_NS || (w->told_at && now - w->told_at < w->tell_ns))
        return;
    w->tell_ns = w->told_at ? 2 * w->tell_ns : AGAIN_S * KEEL_NS_PER_S;
    w->told_at = now;
    address_text(to, address, sizeof address);
    log_warn_some("no connection to %s %d (%s) for %llu s: %s; is there a firewall, or no route? It is tried again",
                  kind->whose, number_of(w, kind), address, (unsigned long long)((now - w->down_since) / KEEL_NS_PER_S),
                  w->error ? strerror(w->error) : "it ended before it was there");
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
    if (w->told_at)
        log_warn_some("the connection to %s %d is there, after %llu s", kind->whose, number_of(w, kind),
                      (unsigned long long)((now - w->down_since) / KEEL_NS_PER_S));
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
