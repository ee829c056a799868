#include "runtime/net/way.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"

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

void way_log(const struct ways *kind, const struct way *w, const struct tp_addr *to, uint64_t for_ns)
{
    char address[64];
    unsigned long long seconds = for_ns / KEEL_NS_PER_S;
    if (!to) {
        log_warn_some("the connection to %s %d is there, after %llu s", kind->whose, number_of(w, kind), seconds);
        return;
    }
    address_text(to, address, sizeof address);
    log_warn_some("no connection to %s %d (%s) for %llu s: %s; %s It is tried again", kind->whose, number_of(w, kind),
                  address, seconds, w->error ? strerror(w->error) : "it ended before it was there",
                  w->error == ECONNREFUSED ? "nobody listens there yet, or a firewall refuses."
                                           : "is there a firewall, or no route?");
}
