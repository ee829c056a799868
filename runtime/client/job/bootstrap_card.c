/* What a process says of itself in the first exchange, and how others reach it. */
#include "runtime/client/job/bootstrap_int.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <sodium.h>

#include "runtime/base/env.h"
#include "runtime/base/log.h"

static void read_text(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

int bootstrap_open_listener(char *name, size_t size)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t len = sizeof a;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a.sun_family) == 0 && listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0 && len > offsetof(struct sockaddr_un, sun_path) + 1) {
        snprintf(name, size, "%.*s", (int)(len - offsetof(struct sockaddr_un, sun_path) - 1), a.sun_path + 1);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The first address of a network interface. */
static bool address_on(const char *interface, char *out, size_t size)
{
    struct ifaddrs *all;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        int family = i->ifa_addr && strcmp(i->ifa_name, interface) == 0 ? i->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        found = (family == AF_INET || family == AF_INET6) &&
                getnameinfo(i->ifa_addr, len, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0;
    }
    freeifaddrs(all);
    if (!found)
        log_warn("KEEL_INTERFACE: no address on an interface %s here", interface);
    return found;
}

void bootstrap_card_fill(struct bootstrap_card *c, int rank)
{
    char boot[64];
    struct stat network = {0};
    const char *said = getenv("KEEL_ON_FAILURE"), *interface = getenv("KEEL_INTERFACE");
    snprintf(c->version, sizeof c->version, "%s", KEEL_VERSION);
    read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    (void)stat("/proc/self/ns/net", &network);
    snprintf(c->machine, sizeof c->machine, "%s/%llu", boot, (unsigned long long)network.st_ino);
    c->by_interface = interface && *interface && address_on(interface, c->host, sizeof c->host);
    if (!c->by_interface)
        gethostname(c->host, sizeof c->host - 1);
    c->watched = env_is_valgrind();
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    bootstrap_racks(name, &c->racks, c->racks_wrong, sizeof c->racks_wrong);
    if (rank > 0)
        return;
    const char *range = getenv(ADDRESS_RANGE_ENV);
    if (range && *range && !address_range_parse(range, &c->range))
        log_warn("%s=%s is not %s", ADDRESS_RANGE_ENV, range, ADDRESS_RANGE_FORM);
    const char *rails = getenv(RAILS_ENV);
    if (rails && *rails)
        (void)rails_parse(rails, &c->rails, c->rails_wrong, sizeof c->rails_wrong);
    struct copy_rule rule = {0};
    (void)bootstrap_copies_at(&rule, c->racks_wrong, sizeof c->racks_wrong);
    c->copies_at = (int32_t)rule.at;
    randombytes_buf(&c->job, sizeof c->job);
    randombytes_buf(c->secret, sizeof c->secret);
    uint64_t wanted = env_number("KEEL_NODES", 0);
    c->nodes_wanted = wanted < INT32_MAX ? (int32_t)wanted : INT32_MAX;
    c->degrade = said && strcmp(said, "degrade") == 0;
    if (said && *said && !c->degrade)
        log_warn(
            "KEEL_ON_FAILURE=%s has no effect without keelrun: nobody is started again, and only degrade can be chosen",
            said);
}

/* The address that packets to that host leave from. */
static bool address_towards(const char *host, char *out, size_t size)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM}, *found = NULL;
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    if (getaddrinfo(host, "9", &hints, &found) != 0)
        return false;
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
                getnameinfo((struct sockaddr *)&a, len, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return good && strncmp(out, "127.", 4) != 0 && strcmp(out, "::1") != 0; /* nobody else reaches us there */
}

bool bootstrap_find_address(const struct bootstrap_card *cards, struct bootstrap_job *j, int rank, char *wrong,
                            size_t size)
{
    const char *other = NULL;
    for (int r = 0; r < j->ranks && !other; r++)
        if (strcmp(cards[r].machine, cards[rank].machine) != 0)
            other = cards[r].host;
    if (!other) {
        j->rails.n = 0; /* all are on this host */
        snprintf(j->host, sizeof j->host, "127.0.%d.%d", j->node / 250, j->node % 250 + 1);
    } else if (cards[rank].by_interface)
        snprintf(j->host, sizeof j->host, "%s", cards[rank].host);
    else if (!address_towards(other, j->host, sizeof j->host)) {
        snprintf(wrong, size, "no way to host %s is found by its name (see KEEL_INTERFACE in keel(7))", other);
        return false;
    }
    return true;
}
