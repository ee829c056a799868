/* Two exchanges. In the first each process says on which machine it is and where a listener of its own is; of each machine the first
 * one's is used: it starts an agent with it, and the others come there, too, before the agent runs if need be. When all of its node have come the
 * agent opens memory and transport and says how it is reached; the second exchange carries that, or what went wrong, and the job starts. */
#include "runtime/client/job/join.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "runtime/base/env.h"
#include "runtime/base/fault.h"
#include "runtime/base/join.h"
#include "runtime/base/limits.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

#ifndef KEEL_LIBEXECDIR
#define KEEL_LIBEXECDIR "/usr/libexec/keel"
#endif

/* First exchange. Of what is for the job as a whole (job, secret, nodes_wanted, degrade, copies_at) rank 0's counts. */
struct card {
    char version[16];
    char machine[96];  /* which has one kernel and one network: unix sockets reach each other */
    char host[64];     /* its name for others, or its address */
    char listener[16]; /* without the zero at its begin */
    uint64_t job;
    uint8_t secret[32];
    int32_t nodes_wanted, degrade;
    int32_t by_interface; /* host is the address of the interface that the user named */
    int32_t watched;      /* by valgrind: one such process decides for all */
    int32_t copies_at;    /* enum copies_at */
    struct rack_names racks;
    char racks_wrong[128]; /* what makes no sense of what the environment says of racks; empty: nothing */
    struct address_range range;
};

/* Second exchange. */
struct report {
    char wrong[256]; /* empty: nothing */
    struct join_ready ready;
};

static int lifeline = -1; /* to the agent; -1: keelrun started us */

bool join_is(void)
{
    return lifeline >= 0;
}

/* ---- the first exchange ---- */

static void read_text(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

/* The kernel gives a free name. */
static int open_listener(char *name, size_t size)
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

static void fill_card(struct card *c, int rank)
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
    join_racks(name, &c->racks, c->racks_wrong, sizeof c->racks_wrong);
    if (rank > 0)
        return;
    const char *range = getenv(ADDRESS_RANGE_ENV);
    if (range && *range && !address_range_parse(range, &c->range))
        log_warn("%s=%s is not %s", ADDRESS_RANGE_ENV, range, ADDRESS_RANGE_FORM);
    struct copy_rule rule = {0};
    (void)join_copies_at(&rule, c->racks_wrong, sizeof c->racks_wrong);
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

/* ---- the agent ---- */

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

/* Of this node, as the others reach it. */
static bool find_address(const struct card *cards, struct join_job *j, int rank, char *wrong, size_t size)
{
    const char *other = NULL;
    for (int r = 0; r < j->ranks && !other; r++)
        if (strcmp(cards[r].machine, cards[rank].machine) != 0)
            other = cards[r].host;
    if (!other)
        snprintf(j->host, sizeof j->host, "127.0.%d.%d", j->node / 250, j->node % 250 + 1);
    else if (cards[rank].by_interface)
        snprintf(j->host, sizeof j->host, "%s", cards[rank].host);
    else if (!address_towards(other, j->host, sizeof j->host)) {
        snprintf(wrong, size, "no way to host %s is found by its name (see KEEL_INTERFACE in keel(7))", other);
        return false;
    }
    return true;
}

/* The program's environment, with what keeps libraries that libfabric loads from catching the signals of a crash. To be freed. */
static char **agent_environment(void)
{
    static char ipath[] = "IPATH_NO_BACKTRACE=1", hfi[] = "HFI_NO_BACKTRACE=1";
    size_t n = 0;
    while (environ[n])
        n++;
    char **all = calloc(n + 3, sizeof *all);
    if (all) {
        memcpy(all, environ, n * sizeof *all);
        all[n] = ipath;
        all[n + 1] = hfi;
    }
    return all;
}

/* Its channel to us; -1: not started. It leaves us at once, so nothing of it is a child of the program. */
static int start_agent(int listener, char *wrong, size_t size)
{
    const char *said = getenv("KEEL_KEELD"), *path = said && *said ? said : KEEL_LIBEXECDIR "/keeld";
    char *argv[] = {"keeld", JOIN_OPTION, NULL}, why[REFUSAL_MAX];
    int channel[2];
    pid_t pid;
    sigset_t set;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0) {
        snprintf(wrong, size, "no descriptors to start an agent: %s", refusal_error(errno, why));
        return -1;
    }
    /* above those that it is to have, so that none is overwritten before it is copied */
    int from[2] = {fcntl(listener, F_DUPFD_CLOEXEC, 10), fcntl(channel[1], F_DUPFD_CLOEXEC, 10)};
    close(channel[1]);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, from[0], JOIN_LISTENER);
    posix_spawn_file_actions_adddup2(&files, from[1], JOIN_CHANNEL);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&how, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&how, &set);
    char **environment = agent_environment();
    int error = environment ? posix_spawn(&pid, path, &files, &how, argv, environment) : ENOMEM;
    free(environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    close(from[0]);
    close(from[1]);
    if (!error) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return channel[0];
    }
    snprintf(wrong, size, "cannot run %s: %s", path, refusal_error(error, why));
    close(channel[0]);
    return -1;
}

static bool describe(int channel, const struct join_job *j, const int *rank_node, const int *domain)
{
    size_t numbers = (size_t)j->ranks * sizeof(int32_t), domains = (size_t)(j->levels * j->nodes) * sizeof(int32_t);
    struct iovec parts[] = {{(void *)j, sizeof *j}, {(void *)rank_node, numbers}, {(void *)domain, domains}};
    int room = (int)(sizeof *j + numbers + domains) * 2 + 4096;
    (void)setsockopt(channel, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 3};
    return sendmsg(channel, &msg, MSG_NOSIGNAL) == (ssize_t)(sizeof *j + numbers + domains);
}

/* ---- a rank comes to its agent ---- */

static int connect_to(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred cred;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                (size_t)snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s", name)),
              cred_len = sizeof cred;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    /* whoever listens there is to be our user: names are free for all to take */
    if (fd >= 0 && (connect(fd, (struct sockaddr *)&a, len) != 0 ||
                    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0 || cred.uid != geteuid())) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool come(int fd, int rank, int lifeline_end)
{
    struct join_rank hello = {.rank = rank};
    struct iovec iov = {&hello, sizeof hello};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &lifeline_end, sizeof(int));
    return sendmsg(fd, &msg, MSG_NOSIGNAL) == sizeof hello;
}

/* Our connection to the agent, -1: there is none. */
static int come_to(const char *listener, int rank)
{
    int pair[2], fd = connect_to(listener);
    if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    bool good = come(fd, rank, pair[1]);
    close(pair[1]);
    lifeline = pair[0];
    if (good)
        return fd;
    close(fd);
    close(lifeline);
    lifeline = -1;
    return -1;
}

static void say_end(int code)
{
    int32_t word = code;
    (void)send(lifeline, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void exiting(int code, void *pid)
{
    if (lifeline < 0 || (pid_t)(intptr_t)pid != getpid())
        return; /* a child that was forked: not the rank's end */
    say_end(code & 255);
    if ((code & 255) == 0)
        pmi_exchange_close();
}

/* Libraries that libfabric loads (libinfinipath, libpsm2) catch the signals of a crash when the program is loaded, write a file and exit
 * with 1: a death would look like an end that the program has chosen. keelrun's ranks have a variable for it in their environment. */
static void forget_handlers_of_libraries(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction now;
        Dl_info where;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN &&
            dladdr((void *)(uintptr_t)now.sa_handler, &where) && where.dli_fname && // NOLINT(performance-no-int-to-ptr)
            (strstr(where.dli_fname, "/libinfinipath.") || strstr(where.dli_fname, "/libpsm")))
            signal(numbers[i], SIG_DFL);
    }
}

bool join_hold(void)
{
    struct pollfd gone = {.fd = lifeline};
    struct sigaction usr1;
    /* Nothing is ever written to us there: what the kernel has to say of it is that the agent has gone. */
    if (fcntl(lifeline, F_SETOWN, getpid()) != 0 || fcntl(lifeline, F_SETSIG, SIGKILL) != 0 ||
        fcntl(lifeline, F_SETFL, O_ASYNC) != 0 || poll(&gone, 1, 0) != 0)
        return false;
    forget_handlers_of_libraries();
    /* Hydra's way to say that another process has failed, which we know */
    if (sigaction(SIGUSR1, NULL, &usr1) == 0 && usr1.sa_handler == SIG_DFL)
        signal(SIGUSR1, SIG_IGN);
    return on_exit(exiting, (void *)(intptr_t)getpid()) == 0; // NOLINT(performance-no-int-to-ptr)
}

void join_release(void)
{
    if (lifeline < 0)
        return;
    (void)fcntl(lifeline, F_SETFL, 0);
    say_end(0);
    pmi_exchange_close();
}

/* ---- the whole ---- */

/* What rank 0's card asks of the job, and where everybody is. */
static bool place(const struct card *cards, const struct keel_exchange *e, struct join_job *j, int *rank_node,
                  char *wrong, size_t size)
{
    for (int r = 0; r < e->size; r++)
        if (memcmp(cards[r].version, cards[0].version, sizeof cards[r].version) != 0) {
            snprintf(wrong, size, "rank %d runs version %.15s, rank 0 %.15s", r, cards[r].version, cards[0].version);
            return false;
        }
    j->nodes = join_place(cards[0].machine, (int)sizeof *cards, e->size, cards[0].nodes_wanted, rank_node);
    if (j->nodes < 0) {
        snprintf(wrong, size, "KEEL_NODES is for jobs on one host");
        return false;
    }
    if (j->nodes > LIMIT_NODES || e->size > LIMIT_RANKS) {
        snprintf(wrong, size, "%d ranks on %d nodes: a job has %d nodes and %d ranks at most", e->size, j->nodes,
                 LIMIT_NODES, LIMIT_RANKS);
        return false;
    }
    memcpy(j->version, cards[0].version, sizeof j->version);
    j->job = cards[0].job;
    memcpy(j->secret, cards[0].secret, sizeof j->secret);
    j->degrade = cards[0].degrade;
    j->range = cards[0].range;
    for (int r = 0; r < e->size && !j->range.bytes; r++)
        if (cards[r].watched)
            j->range = address_range_small();
    j->ranks = e->size;
    j->node = rank_node[e->rank];
    return true;
}

/* Hosts are kernels: containers of one have their own networks, and fail together. domain is to be freed. */
static bool place_copies(const struct card *cards, const struct keel_exchange *e, struct join_job *j,
                         const int *rank_node, int **domain, char *wrong, size_t size)
{
    size_t nodes = (size_t)j->nodes;
    struct copy_rule rule = {0};
    const char **host = calloc(nodes, sizeof *host);
    struct rack_names *racks = calloc(nodes, sizeof *racks);
    char(*kernel)[sizeof cards->machine] = calloc(nodes, sizeof *kernel);
    bool good = true, known = cards[0].copies_at != COPIES_AT_NEXT, memory = host && racks && kernel;
    *domain = calloc(nodes * DOMAIN_LEVELS_MAX, sizeof **domain);
    memory = memory && *domain;
    for (int r = e->size - 1; r >= 0 && memory; r--) { /* the first rank of each node counts */
        int node = rank_node[r];
        memcpy(kernel[node], cards[r].machine, sizeof *kernel);
        kernel[node][strcspn(kernel[node], "/")] = '\0';
        host[node] = kernel[node];
        racks[node] = cards[r].racks;
        if (cards[r].racks_wrong[0]) {
            snprintf(wrong, size, "rank %d: %s", r, cards[r].racks_wrong);
            good = false;
        }
    }
    if (!memory)
        snprintf(wrong, size, "no memory for %zu nodes", nodes);
    else if (good && known)
        good = racks_number(&rule, *domain, host, racks[0].levels ? racks : NULL, j->nodes, wrong, size);
    j->copies_at = cards[0].copies_at;
    j->levels = rule.levels;
    j->hosts_told = rule.hosts_told;
    free(host);
    free(racks);
    free(kernel);
    return memory && good;
}

static void program_name(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = '\0';
}

/* What a process finds out for itself; what is wrong with the cards all find. */
static void attend(const struct keel_exchange *e, const struct card *cards, int own_listener, struct join_job *j,
                   const int *rank_node, const int *domain, struct report *report, int *channel, int *control)
{
    int first = 0;
    while (rank_node[first] != j->node)
        first++;
    if (first == e->rank) {
        program_name(j->program, sizeof j->program);
        if (!find_address(cards, j, e->rank, report->wrong, sizeof report->wrong))
            return;
        *channel = start_agent(own_listener, report->wrong, sizeof report->wrong);
        if (*channel < 0)
            return;
    }
    FAULT_POINT("join.coming");
    *control = come_to(cards[first].listener, e->rank);
    if (*control < 0)
        snprintf(report->wrong, sizeof report->wrong, "rank %d cannot reach the agent that rank %d starts", e->rank,
                 first);
    else if (first == e->rank && (!describe(*channel, j, rank_node, domain) ||
                                  recv(*channel, &report->ready, sizeof report->ready, 0) != sizeof report->ready))
        snprintf(report->wrong, sizeof report->wrong, "the agent of node %d has ended", j->node);
    else if (report->ready.failed)
        snprintf(report->wrong, sizeof report->wrong, "%.250s", report->ready.text);
}

/* Everything between the two exchanges: fills the report, and what came of it. What is wrong is told now: when the others know, the
 * launcher may end us for one of them. */
static void begin(const struct keel_exchange *e, const struct card *cards, int own_listener, int *rank_node,
                  struct report *report, int *channel, int *control)
{
    struct join_job j = {0};
    int *domain = NULL;
    bool placed = place(cards, e, &j, rank_node, report->wrong, sizeof report->wrong) &&
                  place_copies(cards, e, &j, rank_node, &domain, report->wrong, sizeof report->wrong);
    if (placed) {
        fault_init(j.node, e->rank, 0);
        FAULT_POINT("join.placed");
        attend(e, cards, own_listener, &j, rank_node, domain, report, channel, control);
    }
    free(domain);
    if (report->wrong[0] && (placed || e->rank == 0))
        fprintf(stderr, "keel_init: %s\n", report->wrong);
    sodium_memzero(j.secret, sizeof j.secret);
    FAULT_POINT("join.reporting");
}

/* With the packets of all nodes the agent starts. */
static bool start(const struct report *reports, const int *rank_node, int ranks, int channel)
{
    int next = 0;
    for (int r = 0; r < ranks; r++)
        if (rank_node[r] == next) {
            next++;
            if (send(channel, &reports[r].ready, sizeof reports[r].ready, MSG_NOSIGNAL) != sizeof reports[r].ready)
                return false;
        }
    return true;
}

static keel_status exchange_reports(const struct keel_exchange *e, const struct report *mine, const int *rank_node,
                                    int channel)
{
    struct report *reports = calloc((size_t)e->size, sizeof *reports);
    keel_status status = reports && e->gather(e->user, mine, sizeof *mine, reports) == 0 ? KEEL_OK : KEEL_ERR_SYSTEM;
    for (int r = 0; r < e->size && status == KEEL_OK; r++)
        if (reports[r].wrong[0])
            status = KEEL_ERR_NOT_LAUNCHED;
    if (status == KEEL_OK && channel >= 0 && !start(reports, rank_node, e->size, channel))
        status = KEEL_ERR_AGENT_GONE;
    free(reports);
    return status;
}

keel_status join_job(const struct keel_exchange *e, int *control_fd)
{
    struct card card = {0}, *cards = calloc((size_t)e->size, sizeof *cards);
    struct report report = {0};
    int *rank_node = calloc((size_t)e->size, sizeof *rank_node);
    int listener = open_listener(card.listener, sizeof card.listener), channel = -1, control = -1;
    keel_status status = KEEL_ERR_SYSTEM;
    fill_card(&card, e->rank);
    struct join_coming *coming = join_coming_begin(e);
    bool come = cards && rank_node && e->gather(e->user, &card, sizeof card, cards) == 0;
    join_coming_end(coming, come);
    if (come) {
        begin(e, cards, listener, rank_node, &report, &channel, &control);
        status = exchange_reports(e, &report, rank_node, channel);
    }
    /* the agent has its own descriptors of both; without a start the end of the channel is its end */
    if (channel >= 0)
        close(channel);
    if (listener >= 0)
        close(listener);
    sodium_memzero(&card, sizeof card);
    if (cards)
        sodium_memzero(cards, (size_t)e->size * sizeof *cards);
    free(cards);
    free(rank_node);
    if (status != KEEL_OK && control >= 0) {
        close(control);
        control = -1;
    }
    *control_fd = control;
    return status;
}
