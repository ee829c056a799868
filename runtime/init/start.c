/* Start and end of the plane: what it is made of is opened here in order, and closed again. */
#include "runtime/init/plane_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#include "collectives/barrier.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/fault.h"
#include "runtime/recovery/push.h"
#include "runtime/recovery/recover.h"
#include "runtime/transport/shm.h"

enum { SPIN_US_DEFAULT = 50 };

struct blob {
    struct tp_addr addr;
    uint64_t incarnation;
    struct helper_blob helper;
};
static_assert(sizeof(struct blob) <= PLANE_BLOB_MAX, "fits");
static_assert((int)PLANE_MAX_RESTARTS == (int)VIEW_MAX_RESTARTS, "what keelrun says");

static keel_status make_page(struct plane *p)
{
    struct agent *a = &p->agent;
    uint32_t nodes = (uint32_t)a->view.nodes, members = (uint32_t)a->members, ranks = (uint32_t)a->view.ranks;
    size_t bytes = page_bytes(nodes, members, ranks);
    int fd = memfd_create("keel-view", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return KEEL_ERR_SYSTEM;
    a->page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    p->page_fd = open(path, O_RDONLY | O_CLOEXEC);
    close(fd);
    if (a->page == MAP_FAILED || p->page_fd < 0)
        return KEEL_ERR_SYSTEM;
    a->page->magic = PAGE_MAGIC;
    a->page->nodes = nodes;
    a->page->members = members;
    a->page->ranks = ranks;
    a->page->self = (uint32_t)a->self;
    for (int r = 0; r < a->view.ranks; r++) {
        page_rank(a->page, r)->slot = (uint32_t)a->view.rank[r].slot;
        page_rank(a->page, r)->index = (uint32_t)a->view.rank[r].index;
    }
    for (int s = 0; s < a->view.nodes; s++)
        page_slot(a->page, s)->ranks = (uint64_t)a->view.slot_ranks[s];
    recover_show_view(a);
    return KEEL_OK;
}

static keel_status make_agent(struct plane *p, const struct plane_config *config)
{
    struct agent *a = &p->agent;
    enum view_policy policy = config->on_failure == ON_FAILURE_DEGRADE ? VIEW_DEGRADE
                              : config->on_failure == ON_FAILURE_ABORT ? VIEW_ABORT
                                                                       : VIEW_SUBSTITUTE;
    a->owner = p;
    a->self = config->node;
    a->members = config->nodes + config->spares;
    a->job = config->job_id;
    memcpy(a->secret, config->secret, sizeof a->secret);
    fault_init(a->self, -1, 0);
    randombytes_buf(&a->incarnation, sizeof a->incarnation);
    a->waiters_tail = &a->waiters;
    a->stash_tail = &a->stash;
    if (!view_init(&a->view, policy, config->nodes, config->spares, config->ranks, config->rank_node))
        return KEEL_ERR_NOMEM;
    size_t slots = (size_t)config->nodes, members = (size_t)a->members, ranks = (size_t)config->ranks;
    a->slots_before = calloc(slots, sizeof *a->slots_before);
    a->node_incarnation = calloc(members, sizeof *a->node_incarnation);
    a->rank_fence = calloc(ranks, sizeof *a->rank_fence);
    a->node_fence = calloc(members, sizeof *a->node_fence);
    a->node_doomed = calloc(members, sizeof *a->node_doomed);
    a->dedup = calloc(slots, sizeof *a->dedup);
    a->push = calloc(slots, sizeof *a->push);
    p->announced = calloc(STORE_SEGMENTS_MAX, sizeof *p->announced);
    p->rank_joined = calloc(ranks, sizeof *p->rank_joined);
    p->rank_started = calloc(ranks, sizeof *p->rank_started);
    if (!a->slots_before || !a->node_incarnation || !a->rank_fence || !a->node_fence || !a->node_doomed || !a->dedup ||
        !a->push || !p->announced || !p->rank_joined || !p->rank_started)
        return KEEL_ERR_NOMEM;
    for (size_t s = 0; s < slots; s++)
        if (!dedup_init(&a->dedup[s], config->ranks))
            return KEEL_ERR_NOMEM;
    return make_page(p);
}

static keel_status open_transports(struct plane *p)
{
    struct agent *a = &p->agent;
    struct tp_config config = {.host = p->host, .provider = "tcp"};
    keel_status status = tp_ofi.open(&config, &a->net);
    if (status == KEEL_OK)
        status = a->net->table->listen(a->net, &p->addr);
    if (status == KEEL_OK)
        status = tp_shm_open(&a->shm);
    struct peers_ops ops = conns_peers_ops(p);
    if (status == KEEL_OK)
        status = peers_init(&a->peers, a->self, a->members, a->net, a->job, a->incarnation, a->secret, &ops);
    if (status == KEEL_OK)
        status = store_init(&a->store, a->net, a->view.nodes, a->view.slot_ranks);
    if (status == KEEL_OK)
        status = store_define(&a->store, SYSTEM_SEGMENT, SYSTEM_SEGMENT_BYTES, KEEL_REDUNDANCY_SHADOW, 0);
    if (status == KEEL_OK)
        status = push_make_copies(a, SYSTEM_SEGMENT);
    return status;
}

static keel_status watch(struct plane *p, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? KEEL_OK : KEEL_ERR_SYSTEM;
}

_Static_assert((int)PLANE_PROBE_OFI == (int)PROBE_OFI && (int)PLANE_FILE == (int)MEMBER_FILE, "the same order");

static void tell_watched(struct plane *p)
{
    int reads[HELPER_WATCHED_MAX], n = helper_watched(p->helper, reads);
    char list[8 * HELPER_WATCHED_MAX] = "";
    for (int i = 0, at = 0; i < n; i++)
        at += snprintf(list + at, sizeof list - (size_t)at, "%s%d", i ? "," : "", reads[i]);
    node_event(&p->agent, "watch", ",\"probe\":\"%s\",\"reads\":[%s]", helper_probe(p->helper), list);
}

static keel_status make_helper(struct plane *p, struct helper_blob *blob)
{
    struct agent *a = &p->agent;
    struct helper_config config = {
        .job_id = a->job, .host = p->host, .provider = "tcp", .incarnation = (uint32_t)a->incarnation};
    memcpy(config.secret, a->secret, sizeof config.secret);
    member_params_default(&config.params, a->members, a->self);
    config.probe = (enum probe_choice)p->config.probe;
    config.params.topology = (enum member_topology)p->config.topology;
    config.params.edges = p->config.edges;
    config.params.edge_count = p->config.edge_count;
    struct helper_callbacks callbacks = queue_helper_callbacks(p);
    return helper_create(&config, &callbacks, &p->helper, blob);
}

keel_status plane_create(const struct plane_config *config, const struct plane_callbacks *callbacks, struct plane **out,
                         struct plane_blob *blob)
{
    struct plane *p = calloc(1, sizeof *p);
    if (!p || sodium_init() < 0) {
        free(p);
        return KEEL_ERR_NOMEM;
    }
    p->config = *config;
    p->callbacks = *callbacks;
    p->commands_tail = &p->commands;
    p->upcalls_tail = &p->upcalls;
    p->page_fd = -1;
    /* The helper thread takes the lock, too, and must not wait for a data thread that has no processor. */
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&p->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    snprintf(p->host, sizeof p->host, "%s", config->host);
    p->spin_ns = env_number("KEEL_SPIN_US", SPIN_US_DEFAULT) * KEEL_NS_PER_US;
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct blob b = {0};
    keel_status status = p->epoll_fd < 0 || p->command_fd < 0 || p->wake_fd < 0 ? KEEL_ERR_SYSTEM : KEEL_OK;
    if (status == KEEL_OK)
        status = make_agent(p, config);
    if (status == KEEL_OK)
        status = open_transports(p);
    if (status == KEEL_OK)
        status = watch(p, p->command_fd);
    if (status == KEEL_OK)
        status = watch(p, p->agent.shm->table->wait_fd(p->agent.shm));
    if (status == KEEL_OK)
        status = watch(p, p->agent.net->table->wait_fd(p->agent.net));
    struct barrier_ops ops = conns_barrier_ops(p);
    if (status == KEEL_OK && !(p->agent.barrier = barrier_create(p->agent.members, p->agent.self, &ops)))
        status = KEEL_ERR_NOMEM;
    if (status == KEEL_OK)
        status = make_helper(p, &b.helper);
    if (status != KEEL_OK) {
        plane_destroy(p);
        return status;
    }
    b.addr = p->addr;
    b.incarnation = p->agent.incarnation;
    blob->len = sizeof b;
    memcpy(blob->bytes, &b, sizeof b);
    *out = p;
    return KEEL_OK;
}

static void set_first_members(struct plane *p)
{
    struct agent *a = &p->agent;
    uint64_t members[BARRIER_NODES_MAX / 64] = {0};
    for (int m = 0; m < a->members; m++)
        if (view_node_takes_part(&a->view, m))
            members[m / 64] |= (uint64_t)1 << (m % 64);
    a->takes_part = view_node_takes_part(&a->view, a->self);
    barrier_set_members(a->barrier, members, clock_now_ns());
}

keel_status plane_start(struct plane *p, const struct plane_blob *blobs)
{
    struct agent *a = &p->agent;
    struct helper_blob *helpers = calloc((size_t)a->members, sizeof *helpers);
    if (!helpers)
        return KEEL_ERR_NOMEM;
    for (int m = 0; m < a->members; m++) {
        struct blob b;
        memcpy(&b, blobs[m].bytes, sizeof b);
        a->node_incarnation[m] = b.incarnation;
        helpers[m] = b.helper;
        peer_address(&a->peers, m, b.incarnation, &b.addr);
        page_node(a->page, m)->addr = b.addr;
        page_node(a->page, m)->incarnation = b.incarnation;
    }
    set_first_members(p);
    keel_status status = helper_start(p->helper, helpers);
    free(helpers);
    if (status != KEEL_OK)
        return status;
    tell_watched(p);
    if (pthread_create(&p->thread, NULL, plane_thread, p) != 0)
        return KEEL_ERR_SYSTEM;
    p->running = true;
    return KEEL_OK;
}

static void free_agent(struct plane *p)
{
    struct agent *a = &p->agent;
    while (a->conns)
        node_drop_conn(a, a->conns);
    for (struct waiter *w = a->waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    for (struct stashed *s = a->stash, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    if (a->push)
        push_close(a);
    if (a->store.segment)
        store_fini(&a->store);
    if (a->peers.peer)
        peers_fini(&a->peers);
    for (int s = 0; a->dedup && s < a->view.nodes; s++)
        dedup_fini(&a->dedup[s]);
    barrier_destroy(a->barrier);
    if (a->net)
        a->net->table->close(a->net);
    if (a->shm)
        a->shm->table->close(a->shm);
    if (a->page && a->page != MAP_FAILED)
        munmap(a->page, page_bytes(a->page->nodes, a->page->members, a->page->ranks));
    free(a->slots_before);
    free(a->node_incarnation);
    free(a->rank_fence);
    free(a->node_fence);
    free(a->node_doomed);
    free(a->dedup);
    free(a->push);
    view_fini(&a->view);
}

void plane_destroy(struct plane *p)
{
    if (!p)
        return;
    if (p->running) {
        struct command quit = {.type = COMMAND_QUIT};
        queue_command(p, &quit);
        pthread_join(p->thread, NULL);
    }
    helper_destroy(p->helper);
    procs_free(p);
    queue_free(p);
    free_agent(p);
    for (int seg = 0; p->announced && seg < STORE_SEGMENTS_MAX; seg++)
        free(p->announced[seg]);
    free(p->announced);
    free(p->rank_joined);
    free(p->rank_started);
    close(p->page_fd);
    close(p->epoll_fd);
    close(p->command_fd);
    close(p->wake_fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
