#include "runtime/base/rails.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct subnet {
    int family;
    uint8_t bytes[16];
    int bits;
};

/* "10.1.0.0/16"; all behind the bits is zero, or the user has meant something else. */
static bool subnet_read(const char *text, struct subnet *out)
{
    char host[RAIL_NAME_MAX], *end;
    const char *slash = strchr(text, '/');
    if (!slash || (size_t)(slash - text) >= sizeof host || !isdigit((unsigned char)slash[1]))
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(slash - text), text);
    *out = (struct subnet){.family = strchr(host, ':') ? AF_INET6 : AF_INET};
    int most = out->family == AF_INET6 ? 128 : 32;
    long bits = strtol(slash + 1, &end, 10);
    if (*end || bits < 1 || bits > most || inet_pton(out->family, host, out->bytes) != 1)
        return false;
    out->bits = (int)bits;
    for (int bit = out->bits; bit < most; bit++)
        if (out->bytes[bit / 8] & (0x80 >> bit % 8))
            return false;
    return true;
}

static bool subnet_has(const struct subnet *s, const uint8_t *address)
{
    for (int bit = 0; bit < s->bits; bit++)
        if ((s->bytes[bit / 8] ^ address[bit / 8]) & (0x80 >> bit % 8))
            return false;
    return true;
}

bool rails_name_good(const char *name)
{
    struct subnet subnet;
    if (strchr(name, '/'))
        return strlen(name) < RAIL_NAME_MAX && subnet_read(name, &subnet);
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_.-@", name[i]))
            return false;
    return len > 0 && len < IF_NAMESIZE;
}

bool rails_parse(const char *text, struct rail_list *out, char *why, size_t size)
{
    *out = (struct rail_list){0};
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        char name[RAIL_NAME_MAX];
        if (out->n == RAILS_MAX)
            return snprintf(why, size, "more than %d networks", RAILS_MAX), false;
        snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), at);
        if (len >= sizeof name || !rails_name_good(name))
            return snprintf(why, size, "\"%.*s\" is no interface and no subnet such as 10.1.0.0/16",
                            (int)(len < 60 ? len : 60), at),
                   false;
        for (int i = 0; i < out->n; i++)
            if (strcmp(out->name[i], name) == 0)
                return snprintf(why, size, "%s is there twice", name), false;
        memcpy(out->name[out->n++], name, sizeof name);
        at += len;
        if (!*at)
            return true;
    }
}

/* Its bytes; NULL: it is of another family than the wanted one (AF_UNSPEC: any), or one that leads nowhere. */
static const uint8_t *bytes_of(const struct sockaddr *a, int family)
{
    if (!a || (family != AF_UNSPEC && a->sa_family != family))
        return NULL;
    if (a->sa_family == AF_INET)
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    return a->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(six) ? six->s6_addr : NULL;
}

/* The family, AF_UNSPEC: there is none. */
static int find_one(const struct ifaddrs *all, const char *name, int family, char host[RAIL_HOST_MAX])
{
    struct subnet subnet;
    bool is_subnet = strchr(name, '/') && subnet_read(name, &subnet);
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        const uint8_t *bytes = bytes_of(i->ifa_addr, family);
        if (!bytes || (is_subnet ? i->ifa_addr->sa_family != subnet.family || !subnet_has(&subnet, bytes)
                                 : strcmp(i->ifa_name, name) != 0))
            continue;
        socklen_t len = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if (getnameinfo(i->ifa_addr, len, host, RAIL_HOST_MAX, NULL, 0, NI_NUMERICHOST) == 0)
            return i->ifa_addr->sa_family;
    }
    return AF_UNSPEC;
}

bool rails_find(const struct rail_list *rails, struct rail_hosts *out, char *why, size_t size)
{
    struct ifaddrs *all;
    int family = AF_UNSPEC, found = AF_UNSPEC;
    *out = (struct rail_hosts){0};
    if (getifaddrs(&all) != 0)
        return snprintf(why, size, "the interfaces of this host cannot be read: %s", strerror(errno)), false;
    while (out->n < rails->n && (found = find_one(all, rails->name[out->n], family, out->of[out->n])) != AF_UNSPEC) {
        family = found;
        out->n++;
    }
    freeifaddrs(all);
    if (out->n == rails->n)
        return true;
    const char *missing = rails->name[out->n];
    snprintf(why, size, "this host has no %saddress %s %s (--rails)",
             family == AF_INET6  ? "IPv6 "
             : family == AF_INET ? "IPv4 "
                                 : "",
             strchr(missing, '/') ? "in" : "on an interface", missing);
    return false;
}
