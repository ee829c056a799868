#include "detect/helper_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"
#include "runtime/base/prompt.h"
#include "runtime/base/refusal.h"
#include "runtime/net/sealed/sealed.h"

enum { HEARTBEAT_KEY = 1 };
#define STATUS_NS (200 * KEEL_NS_PER_MS)
#define LATE_NS (2 * KEEL_NS_PER_MS) /* who ticks later has lost its processor since it looked */

/* ------------------------------------------------------------------------------------------------ the thread */

void helper_datagram(struct helper *h, const void *data, size_t len, int rail)
{
    struct seal_opened s;
    if (len > DGRAM_MAX || !seal_open(&h->seal, data, len, &s) || (s.kind != SEAL_DATAGRAM && s.kind != SEAL_VERBS) ||
        s.from >= h->config.params.n || !meet_admits(h, s.from, s.incarnation)) {
        if (h->count.dropped++ == 0)
            log_warn("detect: a datagram that does not belong to this job was dropped (more are only counted)");
        return;
    }
    if (rail > 0)
        h->peers[s.from].proved |= 1u << rail;
    if (!seal_window_take(&h->peers[s.from].datagrams, s.number)) {
        /* here before: over another rail; sent again by somebody, or doubled by the network */
        h->count.dropped += h->rails == 1;
        return;
    }
    if (h->verbs)
        verbs_heard(h->verbs, s.from, rail < 0, len);
    if (s.kind == SEAL_DATAGRAM)
        member_receive(h->m, s.from, s.content, s.len, h->now);
    else if (h->verbs && rail < 0)
        verbs_control(h->verbs, s.from, s.content, s.len, h->now);
}

static void look_everywhere(struct helper *h)
{
    h->due.links = h->due.datagrams = h->due.answers = true;
}

static void note_ready(struct helper *h, int fd)
{
    eventfd_t value;
    if (fd == h->wake_fd)
        (void)eventfd_read(h->wake_fd, &value);
    else if (fd == h->ask_fd)
        h->due.answers = true;
    else if (fd == h->tp->table->wait_fd(h->tp))
        h->due.links = true;
    for (int rail = 0; rail < h->rails; rail++)
        h->due.datagrams |= fd == dgram_wait_fd(h->dgram[rail]);
}

static void sleep_until(struct helper *h, uint64_t deadline)
{
    struct epoll_event events[8];
    uint64_t now = clock_now_ns(), wait = deadline > now ? deadline - now : 0;
    if (wait > KEEL_NS_PER_S)
        wait = KEEL_NS_PER_S;
    for (int i = 0; i < h->n_probes; i++)
        if (!h->probes[i]->table->arm(h->probes[i]))
            return;
    int n = kernel_epoll_wait(h->epoll_fd, events, 8, wait);
    for (int i = 0; i < n; i++)
        note_ready(h, events[i].data.fd);
    h->count.wakeups++;
}

static void note_status(struct helper *h)
{
    if (h->now < h->told.status_at + STATUS_NS)
        return;
    h->told.status_at = h->now;
    pthread_mutex_lock(&h->commands.lock);
    member_status(h->m, &h->told.status.member);
    pthread_mutex_unlock(&h->commands.lock);
}

static void look(struct helper *h)
{
    bool more;
    do {
        h->now = clock_now_ns();
        h->heartbeat = member_beat(h->m, ++h->beats);
        prompt_keep();
        more = helper_take_commands(h);
        for (int i = 0; i < h->n_probes; i++)
            more |= h->probes[i]->table->poll(h->probes[i], h->now);
        if (h->due.answers) /* before the knocks: they look at who has not answered */
            more |= h->due.answers = ask_poll(h);
        more |= knock_poll(h);
    } while (more && !h->stop);
    h->now = clock_now_ns();
}

static void *run(void *arg)
{
    struct helper *h = arg;
    helper_commands_here(h);
    witness_raise_priority(); /* being late looks like being dead */
    look_everywhere(h);
    while (!h->stop && !h->commands.poor) {
        look(h); /* everything that has arrived before the tick: see member_tick */
        if (h->now >= member_deadline(h->m) + LATE_NS) { /* the descriptors were asked that long ago */
            look_everywhere(h);
            look(h);
        }
        if (h->now >= member_deadline(h->m))
            member_tick(h->m, h->now);
        reach_tick(h);
        note_status(h);
        uint64_t core = member_deadline(h->m), rails = reach_deadline(h);
        sleep_until(h, core < rails ? core : rails);
    }
    if (h->commands.poor)
        helper_ops.halt(h, "out of memory");
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ begin and end */

static bool watch_fd(struct helper *h, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* In order of preference. */
static keel_status open_probes(struct helper *h)
{
    if (h->config.probe != PROBE_OFI && probe_verbs_open(h))
        h->probes[h->n_probes++] = h->verbs;
    probe_ofi_init(h);
    h->probes[h->n_probes++] = &h->ofi.probe;
    return h->config.probe == PROBE_VERBS && !h->verbs ? KEEL_ERR_SYSTEM : KEEL_OK;
}

static keel_status open_all(struct helper *h)
{
    const struct member_params *p = &h->config.params;
    struct tp_config tp_config = {.host = h->host, .provider = h->provider, .recv_depth = 1};
    for (int i = 0; i < TP_RAILS_MAX - 1 && h->config.more[i]; i++)
        tp_config.more[i] = h->config.more[i];
    if (!seal_init(&h->seal, h->config.job_id, h->config.secret, p->self, h->config.incarnation))
        return KEEL_ERR_SYSTEM;
    (void)witness_start(&h->seal, h->host, &h->witness); /* before there is anything of ours to inherit */
    keel_status status = tp_net_open(&tp_config, h->config.secure ? h->config.secret : NULL, &h->tp);
    if (status == KEEL_OK)
        status = reach_listen(h);
    if (status == KEEL_OK)
        status = h->tp->table->reg(h->tp, (void *)(uintptr_t)&h->heartbeat, sizeof h->heartbeat, HEARTBEAT_KEY);
    for (int i = 0; status == KEEL_OK && i < tp_config_rails(&tp_config); i++) {
        status = dgram_open(i ? tp_config.more[i - 1] : h->host, &h->dgram[i], &h->dgram_addr[i]);
        h->rails += status == KEEL_OK;
    }
    if (status != KEEL_OK)
        return status;
    reach_init(h);
    return open_probes(h);
}

static bool watch_all(struct helper *h)
{
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = h->epoll_fd >= 0 && h->wake_fd >= 0 && watch_fd(h, h->wake_fd);
    for (int i = 0; i < h->n_probes; i++) {
        int fds[PROBE_FDS_MAX], n = h->probes[i]->table->wait_fds(h->probes[i], fds);
        for (int k = 0; k < n; k++)
            ok = ok && watch_fd(h, fds[k]);
    }
    if (!ok)
        log_error("detect: cannot set up epoll: %m");
    return ok && ask_init(h);
}

keel_status helper_create(const struct helper_config *config, const struct helper_callbacks *callbacks,
                          struct helper **out, struct helper_blob *blob)
{
    struct helper *h = calloc(1, sizeof *h);
    if (!h)
        return KEEL_ERR_NOMEM;
    h->config = *config;
    h->callbacks = *callbacks;
    h->epoll_fd = h->wake_fd = h->ask_fd = -1;
    /* Who submits may lose its processor while it holds the lock: it gets this thread's priority then. */
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&h->commands.lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    snprintf(h->host, sizeof h->host, "%s", config->host);
    snprintf(h->provider, sizeof h->provider, "%s", config->provider);
    h->peers = calloc((size_t)(config->params.n > 0 ? config->params.n : 1), sizeof *h->peers);
    for (int i = 0; h->peers && i < config->params.n; i++)
        h->peers[i].knock_fd = -1;
    keel_status status = h->peers ? open_all(h) : KEEL_ERR_NOMEM;
    if (status == KEEL_OK && !watch_all(h))
        status = refusal_note(errno);
    if (status != KEEL_OK) {
        helper_destroy(h);
        return status;
    }
    struct whereabouts b = {.incarnation = config->incarnation,
                            .addrs = h->addrs,
                            .verbs = h->verbs_addr,
                            .witness_port = h->witness.pid ? h->witness.port : 0,
                            .witness_prompt = h->witness.prompt};
    memcpy(b.dgram, h->dgram_addr, sizeof b.dgram);
    meet_write(&b, blob);
    *out = h;
    return KEEL_OK;
}

static keel_status take_blobs(struct helper *h, const struct helper_blob *blobs, int *bad)
{
    int n = h->config.params.n;
    struct dgram_addr *addrs = calloc((size_t)n, sizeof *addrs);
    struct probe_addr *devices = calloc((size_t)n, sizeof *devices);
    if (!addrs || !devices) {
        free(addrs);
        free(devices);
        return KEEL_ERR_NOMEM;
    }
    const struct member_params *p = &h->config.params;
    bool joins = p->self >= p->n_born;
    keel_status status = KEEL_OK;
    for (int rail = 0; rail < h->rails && status == KEEL_OK; rail++)
        status = dgram_set_peers(h->dgram[rail], addrs, n);
    for (int i = 0; i < n && status == KEEL_OK; i++) {
        struct whereabouts b;
        h->peers[i].node = i;
        if (blobs[i].len == 0 && (joins || i >= p->n_born))
            continue;
        if (!meet_read(&blobs[i], &b) || !meet_is(h, i, &b)) {
            status = KEEL_ERR_ARG;
            *bad = i;
        } else if (!joins && i < p->n_born) { /* who joins has told no device where it is */
            devices[i] = b.verbs;
        }
    }
    if (status == KEEL_OK && h->verbs)
        status = verbs_set_peers(h->verbs, devices);
    free(devices);
    free(addrs);
    return status;
}

keel_status helper_start(struct helper *h, const struct helper_blob *blobs, int *bad)
{
    keel_status status = take_blobs(h, blobs, bad);
    if (status != KEEL_OK)
        return status;
    struct member_ops ops = helper_ops;
    ops.user = h;
    h->now = clock_now_ns();
    h->m = member_create(&h->config.params, &ops, h->now);
    if (!h->m)
        return KEEL_ERR_ARG;
    for (int i = 0; i < h->config.params.n && h->watch.n_first < HELPER_WATCHED_MAX; i++)
        if (h->peers[i].watched)
            h->watch.first[h->watch.n_first++] = i;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    h->started = true;
    int rc = pthread_create(&h->thread, NULL, run, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        h->started = false;
        return refusal_note(rc); /* who is told says it */
    }
    return KEEL_OK;
}

const char *helper_probe(const struct helper *h)
{
    return h->probes[0]->table->name;
}

int helper_watched(const struct helper *h, int out[HELPER_WATCHED_MAX])
{
    memcpy(out, h->watch.first, (size_t)h->watch.n_first * sizeof *out);
    return h->watch.n_first;
}

void helper_destroy(struct helper *h)
{
    if (!h)
        return;
    if (h->started) {
        h->stop = true;
        eventfd_write(h->wake_fd, 1);
        pthread_join(h->thread, NULL);
        h->started = false;
    }
    for (int i = 0; h->peers && i < h->config.params.n; i++)
        knock_end(h, i);
    ask_end(h);
    helper_drop_commands(h);
    meet_end(h);
    witness_end(&h->witness);
    if (h->verbs)
        h->verbs->table->close(h->verbs);
    if (h->tp)
        h->tp->table->close(h->tp);
    for (int i = 0; i < TP_RAILS_MAX; i++)
        dgram_close(h->dgram[i]);
    member_destroy(h->m);
    if (h->epoll_fd >= 0)
        close(h->epoll_fd);
    if (h->wake_fd >= 0)
        close(h->wake_fd);
    pthread_mutex_destroy(&h->commands.lock);
    free(h->peers);
    free(h);
}
