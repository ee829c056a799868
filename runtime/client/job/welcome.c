#include "runtime/client/job/welcome.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/counters.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/job/channel.h"
#include "runtime/client/job/environment.h"
#include "runtime/client/job/bootstrap.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/handle.h"
#include "runtime/net/sealed/sealed.h"
#include "runtime/net/shm/shm.h"
#include "runtime/net/stream/stream.h"

enum { SPIN_US_DEFAULT = 30, SPIN_LONG_US = 1000 };

static keel_status map_page(int fd, const struct page **page)
{
    const struct page *head = mmap(NULL, sizeof *head, PROT_READ, MAP_SHARED, fd, 0);
    struct stat st;
    if (head == MAP_FAILED)
        return KEEL_ERR_NOMEM;
    bool good = fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof *head && head->magic == PAGE_MAGIC;
    size_t bytes = good ? page_bytes(head->nodes, head->members, head->ranks) : 0;
    munmap((void *)head, sizeof *head);
    void *m = good ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (m == MAP_FAILED)
        return good ? KEEL_ERR_NOMEM : KEEL_ERR_SYSTEM;
    *page = m;
    return KEEL_OK;
}

/* between: between ranks. Sockets of our own have less between a message and the wire than libfabric's; an RDMA
 * device has less than both. */
static keel_status open_transports(const struct control_welcome *w, struct tp **net, struct tp **shm,
                                   struct tp **between)
{
    struct tp_config config = {.host = w->host, .provider = w->provider};
    for (int i = 0; i < TP_RAILS_MAX - 1 && w->more[i][0]; i++)
        config.more[i] = w->more[i];
    keel_status status = tp_net_open(&config, w->secure ? w->secret : NULL, net);
    *between = *net;
    if (status == KEEL_OK && !w->secure && strcmp(w->provider, "tcp") == 0)
        status = tp_stream.open(&config, between);
    if (status == KEEL_OK)
        status = tp_shm_open(shm);
    if (status == KEEL_OK)
        status = environment_open();
    if (status == KEEL_OK)
        status = environment_watch(*net);
    if (status == KEEL_OK)
        status = environment_watch(*shm);
    if (status == KEEL_OK && *between != *net)
        status = environment_watch(*between);
    return status;
}

static void close_transports(struct tp *net, struct tp *shm, struct tp *between)
{
    if (between && between != net)
        between->table->close(between);
    if (net)
        net->table->close(net);
    if (shm)
        shm->table->close(shm);
    environment_close();
}

/* The memory that it shares with the other ranks of the node. Where the agent has none for it they talk through their
 * agent; but what the others put there for a rank that has not mapped it, nobody would ever read. */
static keel_status enter_hall(struct client *c, int fd)
{
    size_t bytes = hall_bytes(c->page, page_rank(c->page, c->rank)->slot);
    struct stat st;
    if (!bytes || c->incarnation > 0 || fstat(fd, &st) != 0 || (size_t)st.st_size != bytes)
        return KEEL_OK;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        log_error("no address space for the %zu bytes that the ranks of a node share: %s", bytes, strerror(errno));
        return KEEL_ERR_NOMEM;
    }
    hall_attach(c, memory);
    return KEEL_OK;
}

/* Is there a processor for each rank of this host? All nodes of a test bed on loopback are one. Who is bound to one
 * processor is not bound alone. */
static bool has_room(const struct client *c, const struct control_welcome *w)
{
    cpu_set_t mine;
    bool bed = strncmp(w->host, "127.", 4) == 0;
    int ranks = 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return false;
    for (int r = 0; r < c->size; r++)
        ranks += bed || page_rank(c->page, r)->slot == page_rank(c->page, c->rank)->slot;
    return ranks <= (CPU_COUNT(&mine) == 1 ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&mine));
}

keel_status welcome_accept(const struct control_welcome *w, const int *fds)
{
    char who[32];
    snprintf(who, sizeof who, "rank %d", w->rank);
    log_init(who);
    if (!bootstrap_is()) /* else it has been */
        fault_init(w->node, w->rank, w->incarnation);
    handle_is_watched = env_is_valgrind();
    const struct page *page = NULL;
    struct tp *net = NULL, *shm = NULL, *between = NULL;
    keel_status status = map_page(fds[0], &page);
    void *intents = status == KEEL_OK
                        ? mmap(NULL, sizeof(struct intent_page), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0)
                        : MAP_FAILED;
    if (status == KEEL_OK && intents == MAP_FAILED)
        status = KEEL_ERR_NOMEM;
    if (status == KEEL_OK)
        status = open_transports(w, &net, &shm, &between);
    if (status == KEEL_OK && !environment_find_range(w))
        status = KEEL_ERR_LIMIT; /* and told */
    if (status == KEEL_OK)
        status = client_init(&process_client, &environment, w, page, intents, net, shm);
    if (status != KEEL_OK) {
        close_transports(net, shm, between);
        return status;
    }
    counters_process(&process_client.intents->counters);
    process_client.connections.bytewise = w->secure || strcmp(w->provider, "verbs") != 0;
    direct_over(&process_client, between);
    process_client.timeout_ns = env_number("KEEL_TIMEOUT_MS", channel_patience_ms(page)) * KEEL_NS_PER_MS;
    process_client.looks.short_ns = env_number("KEEL_SPIN_US", SPIN_US_DEFAULT) * KEEL_NS_PER_US;
    process_client.looks.few = !has_room(&process_client, w);
    if (!getenv("KEEL_SPIN_US") && !process_client.looks.few)
        process_client.looks.long_ns = SPIN_LONG_US * KEEL_NS_PER_US;
    struct tp_ep *own;
    status = tp_shm_attach(shm, fds + 2, client_own_connection(&process_client), &own);
    if (status == KEEL_OK)
        client_attach(&process_client, own);
    if (status == KEEL_OK)
        status = enter_hall(&process_client, fds[2 + TP_SHM_FDS]);
    if (status == KEEL_OK && !public_groups_begin())
        status = KEEL_ERR_NOMEM;
    return status;
}
