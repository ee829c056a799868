/* Start and end of the plane: what it is made of is opened here in order, and closed again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/fault.h"
#include "runtime/base/refusal.h"
#include "runtime/agent/health.h"
#include "runtime/plane/blob.h"
#include "runtime/plane/plane_int.h"
#include "runtime/topo/rule.h"

enum { SPIN_US_DEFAULT = 50 };

static_assert((int)PLANE_MAX_RESTARTS == (int)VIEW_MAX_RESTARTS, "what keelrun says");

/* The longest that a verdict waits: four limits for what a silent node holds, and one each for who was late
 * (detect/patience.c). */
static uint32_t patience_ms(const struct job_settings *s)
{
    enum { LIMITS = 6 };
    int64_t silent = (int64_t)LIMITS * s->silence_ms, most = silent > s->stopped_ms ? silent : s->stopped_ms;
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

static keel_status make_page(struct plane *p)
{
    const struct plane_config *config = &p->config;
    p->page_size = page_bytes((uint32_t)config->settings->nodes, (uint32_t)settings_ids(config->settings),
                              (uint32_t)config->settings->ranks);
    int fd = memfd_create("keel-view", MFD_CLOEXEC);
    if (fd < 0)
        return refusal_note(errno);
    void *page = ftruncate(fd, (off_t)p->page_size) == 0
                     ? mmap(NULL, p->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    p->page_fd = page == MAP_FAILED ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    keel_status status = page == MAP_FAILED || p->page_fd < 0 ? refusal_note(errno) : KEEL_OK;
    close(fd);
    if (status != KEEL_OK)
        return status;
    p->page = page;
    p->page->patience_ms = patience_ms(p->config.settings);
    return KEEL_OK;
}

/* NULL where there is no grid. Not KEEL_OK: keelrun makes no such one. */
static keel_status read_grid(const struct job_settings *s, struct grid_rule *rule, const struct grid_rule **out,
                             char why[PLANE_WHY_MAX])
{
    *out = settings_on_grid(s) ? rule : NULL;
    const char *wrong = *out ? rule_read(rule, &s->grid) : NULL;
    if (*out && !wrong && rule->grid.nodes != s->nodes + s->spares + rule->ndead)
        wrong = "it has not as many places as there are nodes";
    if (wrong)
        snprintf(why, PLANE_WHY_MAX, "grid %s: %s", s->grid.grid, wrong);
    return wrong ? KEEL_ERR_ARG : KEEL_OK;
}

static keel_status make_agent(struct plane *p, const struct grid_rule *grid)
{
    const struct plane_config *config = &p->config;
    struct agent_config c = {.ops = asked_ops(p),
                             .self = config->node,
                             .nodes = config->settings->nodes,
                             .spares = config->settings->spares,
                             .room = config->settings->room,
                             .ranks = config->settings->ranks,
                             .rank_node = config->settings->rank_node,
                             .policy = config->settings->on_failure,
                             .copies = config->settings->copies,
                             .replicas = &config->settings->replicas,
                             .check = config->settings->check,
                             .on_mismatch = config->settings->on_mismatch,
                             .set_copies = config->settings->set_copies,
                             .on_death = config->settings->on_death,
                             .inject = &config->settings->inject,
                             .scrub_rate = (uint64_t)config->settings->scrub_mb * 1000000,
                             .grid = grid,
                             .job = config->job_id,
                             .secret = config->secret,
                             .incarnation = p->incarnation,
                             .net = p->net,
                             .shm = p->shm,
                             .page = p->page,
                             .now = clock_now_ns()};
    fault_init(config->node, -1, 0);
    return agent_init(&p->agent, &c);
}

static keel_status watch(struct plane *p, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? KEEL_OK : refusal_note(errno);
}

static void tell_watched(struct plane *p)
{
    int reads[HELPER_WATCHED_MAX], n = helper_watched(p->helper, reads);
    char members[512];
    struct json_writer w = json_into(members, sizeof members);
    json_go_on(&w);
    json_put_all(&w, J_ALL(J_TEXT("probe", helper_probe(p->helper)), J_TEXT("provider", p->provider)));
    json_open(&w, "reads", '[');
    for (int i = 0; i < n; i++)
        json_put(&w, J_INT(NULL, reads[i]));
    json_close(&w, ']');
    if (json_is_whole(&w))
        queue_event(p, "watch", members);
}

static keel_status make_helper(struct plane *p, struct helper_blob *blob)
{
    const struct plane_config *c = &p->config;
    const struct job_settings *s = c->settings;
    struct helper_config config = {.job_id = c->job_id,
                                   .host = p->hosts.of[0],
                                   .provider = "tcp",
                                   .incarnation = (uint32_t)p->incarnation,
                                   .secret = c->secret};
    for (int i = 1; i < p->hosts.n; i++)
        config.more[i - 1] = p->hosts.of[i];
    member_params_default(&config.params, settings_ids(s), c->node);
    config.params.n_born = s->nodes + s->spares;
    config.params.incarnation = (uint32_t)p->incarnation;
    config.params.was = c->was;
    config.params.place = c->place;
    config.params.sponsor = c->sponsor;
    config.secure = s->secure;
    config.probe =
        s->secure || p->hosts.n > 1 ? PROBE_OFI : s->probe; /* a device's reads carry no tag; it is one rail */
    config.params.topology = s->topology;
    if (s->silence_ms) {
        member_params_late(&config.params, s->late_ms);
        member_params_silence(&config.params, s->silence_ms, s->stopped_ms);
    }
    config.params.edges = s->edges;
    config.params.edge_count = s->edge_count;
    struct helper_callbacks callbacks = queue_helper_callbacks(p);
    return helper_create(&config, &callbacks, &p->helper, blob);
}

static void keep_hosts(struct plane *p)
{
    const struct plane_config *c = &p->config;
    for (const char *host = c->host; host; host = p->hosts.n < RAILS_MAX ? c->more[p->hosts.n - 1] : NULL) {
        snprintf(p->hosts.of[p->hosts.n], sizeof p->hosts.of[0], "%s", host);
        p->hosts.n++;
    }
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
    p->hall_fd = -1;
    /* The helper thread takes the lock, too, and must not wait for a data thread that has no processor. */
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&p->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    keep_hosts(p);
    p->spin_ns = env_number("KEEL_SPIN_US", SPIN_US_DEFAULT) * KEEL_NS_PER_US;
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    randombytes_buf(&p->incarnation, sizeof p->incarnation);
    struct blob b = {0};
    keel_status status = p->epoll_fd < 0 || p->command_fd < 0 || p->wake_fd < 0 ? refusal_note(errno) : KEEL_OK;
    if (status == KEEL_OK)
        status = networks_open(p, &b);
    if (status == KEEL_OK)
        status = make_page(p);
    if (status == KEEL_OK)
        status = watch(p, p->command_fd);
    if (status == KEEL_OK)
        status = watch(p, p->shm->table->wait_fd(p->shm));
    if (status == KEEL_OK)
        status = make_helper(p, &b.helper);
    if (status != KEEL_OK) {
        plane_destroy(p);
        return status;
    }
    b.incarnation = p->incarnation;
    blob_write(&b, blob);
    *out = p;
    return KEEL_OK;
}

static keel_status fail(char why[PLANE_WHY_MAX], keel_status status, const char *what)
{
    char text[REFUSAL_MAX];
    if (!why[0])
        snprintf(why, PLANE_WHY_MAX, "%s: %s", what, refusal_text(status, text));
    return status;
}

static keel_status introduce(struct plane *p, const struct plane_blob *blobs, int members, char why[PLANE_WHY_MAX])
{
    struct helper_blob *helpers = calloc((size_t)members, sizeof *helpers);
    bool device = p->config.settings->provider == PROVIDER_AUTO && strcmp(p->provider, "verbs") == 0;
    int bad = -1;
    if (!helpers)
        return fail(why, KEEL_ERR_NOMEM, "the nodes' addresses");
    for (int m = 0; m < members && bad < 0; m++) {
        struct blob b;
        if (!blobs[m].len)
            continue; /* nobody is known: a helper's of no length */
        if (!blob_read(&blobs[m], &b))
            bad = m;
        helpers[m] = b.helper;
        struct tp_addrs addrs = device ? addrs_one(&b.device_addr) : b.addrs;
        if (bad < 0)
            agent_address(&p->agent, m, &addrs, b.incarnation);
    }
    keel_status status = bad < 0 ? helper_start(p->helper, helpers, &bad) : KEEL_ERR_ARG;
    free(helpers);
    if (status == KEEL_OK)
        health_stakes(&p->agent);
    if (status != KEEL_OK && bad >= 0)
        snprintf(why, PLANE_WHY_MAX, "what node %d says of itself is not what this agent reads: another version of it?",
                 bad);
    return status == KEEL_OK ? KEEL_OK : fail(why, status, "the detector cannot start");
}

keel_status plane_start(struct plane *p, const struct plane_blob *blobs, char why[PLANE_WHY_MAX])
{
    int members = settings_ids(p->config.settings);
    struct grid_rule rule;
    const struct grid_rule *grid;
    why[0] = 0;
    networks_choose(p, blobs, members);
    keel_status status = read_grid(p->config.settings, &rule, &grid, why);
    if (status != KEEL_OK)
        return status;
    status = make_agent(p, grid);
    p->agent_made = true;
    if (status != KEEL_OK)
        return fail(why, status, "the state of this node's memory");
    if (watch(p, p->net->table->wait_fd(p->net)) != KEEL_OK)
        return fail(why, KEEL_ERR_SYSTEM, "to wait for the data network");
    status = introduce(p, blobs, members, why);
    if (status != KEEL_OK)
        return status;
    tell_watched(p);
    int rc = pthread_create(&p->thread, NULL, plane_thread, p);
    if (rc != 0)
        return fail(why, refusal_note(rc), "the thread of this node's memory cannot start");
    p->running = true;
    return KEEL_OK;
}

int plane_place(const struct plane *p, int node)
{
    return atomic_load_explicit(&page_node(p->agent.page, node)->place, memory_order_relaxed);
}

keel_status plane_meet(struct plane *p, int node, const struct plane_blob *blob)
{
    struct blob b;
    bool device = strcmp(p->provider, "verbs") == 0 && p->config.settings->provider == PROVIDER_AUTO;
    if (!blob_read(blob, &b) || (device && !b.device_addr.len))
        return KEEL_ERR_ARG;
    struct command c = {.type = COMMAND_MEET,
                        .node = node,
                        .value = b.incarnation,
                        .addrs = device ? addrs_one(&b.device_addr) : b.addrs};
    queue_command(p, &c); /* before the helper can tell of a view that names it */
    return helper_meet(p->helper, node, &b.helper);
}

bool plane_is_node(const struct plane *p, int node, const struct plane_blob *blob)
{
    struct blob b;
    /* written before the view was told, and not again */
    return blob_read(blob, &b) && page_node(p->agent.page, node)->incarnation == b.incarnation;
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
    counts_free(p);
    free(p->waits);
    free(p->waits_acked);
    queue_free(p);
    if (p->agent_made)
        agent_fini(&p->agent);
    if (p->device_net)
        p->device_net->table->close(p->device_net);
    if (p->net)
        p->net->table->close(p->net);
    if (p->shm)
        p->shm->table->close(p->shm);
    if (p->page)
        munmap(p->page, p->page_size);
    close(p->page_fd);
    if (p->hall_fd >= 0)
        close(p->hall_fd);
    close(p->epoll_fd);
    close(p->command_fd);
    close(p->wake_fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
