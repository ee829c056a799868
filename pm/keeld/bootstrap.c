/* An agent that keelrun did not start (keeld --join): one of the node's processes did, and tells by packets what
 * keelrun would tell the others; runtime/base/bootstrap.h. The processes are there already. They come to the listener,
 * each with its end of a lifeline.
 *
 *   JOINING --the job, and all of the node's processes--> CONFIGURED --packets of all nodes--> RUNNING ...
 *
 * Until RUNNING the end of the channel, or of one of the processes, is our end. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "pm/wire/layout.h"
#include "runtime/base/bootstrap.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A process of the node that has come, before the start. */
struct joined {
    struct process *p;
    int keel_fd;
};

static struct {
    uv_poll_t listener, channel;
    bool described, told;
    struct joined *joined; /* [here] by seat */
    int here, come;        /* processes of the node; those that have come */
    json_t *blobs, *peers; /* of the nodes that have been heard */
    int say_fd;            /* the standard error that we were started with */
} join = {.say_fd = -1};

static void tell(struct keeld *a, bool failed, const char *text)
{
    struct bootstrap_ready ready = {.failed = failed};
    if (join.told || a->state >= KEELD_RUNNING)
        return;
    join.told = true;
    snprintf(ready.text, sizeof ready.text, "%s", text);
    if (send(BOOTSTRAP_CHANNEL, &ready, sizeof ready, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_warn("the process that started this agent does not hear it: %s", strerror(errno));
}

void keeld_join_failed(struct keeld *a, const char *why)
{
    tell(a, true, why);
}

void keeld_join_ready(struct keeld *a, json_t *ready)
{
    char *text = json_dumps(ready, JSON_COMPACT);
    tell(a, !text || strlen(text) >= BOOTSTRAP_TEXT, text ? text : "out of memory");
    free(text);
    json_decref(ready);
}

void keeld_join_say(const struct keeld *a, const char *line)
{
    struct pollfd out = {.fd = join.say_fd, .events = POLLOUT};
    /* who has stopped reading it would stop us */
    if (a->launch.join && poll(&out, 1, 0) == 1)
        (void)dprintf(join.say_fd, "keel: %s\n", line);
}

/* ---- the job ---- */

static bool describe(struct keeld *a, const struct bootstrap_job *j, const int32_t *numbers)
{
    const int32_t *rank_node = numbers, *domain = numbers + j->ranks;
    struct job_settings *s = &a->job.settings;
    if (strncmp(j->version, KEEL_VERSION, sizeof j->version) != 0 || j->nodes < 1 || j->nodes > LIMIT_NODES ||
        j->node < 0 || j->node >= j->nodes || j->copies_at < COPIES_AT_HALF || j->copies_at > COPIES_AT_NEXT)
        return false;
    *s = (struct job_settings){.nodes = j->nodes,
                               .ranks = j->ranks,
                               .rank_node = pm_alloc((size_t)j->ranks * sizeof(int)),
                               .on_failure = VIEW_DEGRADE,
                               .degrade_asked = j->degrade != 0,
                               .silence_ms = SILENCE_DEFAULT_MS,
                               .stopped_ms = STOPPED_DEFAULT_MS,
                               .late_ms = LATE_DEFAULT_MS,
                               .copies = {(enum copies_at)j->copies_at, j->levels, j->hosts_told != 0,
                                          pm_alloc((size_t)(j->levels * j->nodes + 1) * sizeof(int))},
                               .range = j->range,
                               .rails = j->rails};
    for (int i = 0; i < j->levels * j->nodes; i++)
        s->copies.domain[i] = domain[i];
    for (int r = 0; r < j->ranks; r++) {
        s->rank_node[r] = rank_node[r];
        join.here += rank_node[r] == j->node;
    }
    a->launch.job_id = j->job;
    a->launch.node = j->node;
    a->job.standbys = join.here; /* what descriptors are counted for */
    memcpy(a->job.secret, j->secret, SESSION_SECRET);
    snprintf(a->self_host, sizeof a->self_host, "%.63s", j->host);
    a->job.argv = pm_alloc(2 * sizeof *a->job.argv + sizeof j->program);
    a->job.argv[0] = memcpy(a->job.argv + 2, j->program, sizeof j->program);
    join.joined = pm_alloc((size_t)join.here * sizeof *join.joined);
    join.blobs = json_array();
    join.peers = json_array();
    return true;
}

static void configure_when_all_are_here(struct keeld *a)
{
    if (join.described && join.come == join.here && a->state == KEELD_JOINING)
        keeld_configure(a);
}

static void listener_ready(uv_poll_t *watch, int status, int events);

static void take_job(struct keeld *a, const uint8_t *packet, size_t len)
{
    struct bootstrap_job j;
    char who[32];
    memcpy(&j, packet, len < sizeof j ? len : sizeof j);
    bool counts = len >= sizeof j && j.ranks >= 1 && j.ranks <= LIMIT_RANKS && j.nodes >= 1 && j.nodes <= LIMIT_NODES &&
                  j.levels >= 0 && j.levels <= DOMAIN_LEVELS_MAX;
    if (!counts || len != sizeof j + (size_t)(j.ranks + j.levels * j.nodes) * sizeof(int32_t) ||
        !describe(a, &j, (const int32_t *)(packet + sizeof j))) {
        keeld_fail(a, 1, "keeld is not of the version of the library that started it");
        return;
    }
    join.described = true;
    sodium_memzero(&j, sizeof j);
    snprintf(who, sizeof who, "keeld node %d", a->launch.node);
    log_init(who);
    keeld_console_open(a);
    /* only now is it known how many come */
    uv_poll_start(&join.listener, UV_READABLE, listener_ready);
}

static void take_node(struct keeld *a, const uint8_t *packet, size_t len)
{
    const struct bootstrap_ready *ready = (const struct bootstrap_ready *)packet;
    json_t *m = len == sizeof *ready && !ready->failed
                    ? codec_object((const uint8_t *)ready->text, strnlen(ready->text, sizeof ready->text))
                    : NULL;
    if (!m) {
        keeld_fail(a, 1, "what a node says of itself does not make sense");
        return;
    }
    json_array_append(join.blobs, json_object_get(m, "blob"));
    json_array_append(join.peers, m);
    json_decref(m);
    if (json_array_size(join.peers) == (size_t)a->job.settings.nodes)
        keeld_start(a, join.blobs, join.peers);
}

static void channel_ready(uv_poll_t *watch, int status, int events)
{
    struct keeld *a = watch->data;
    (void)events;
    ssize_t len = status == 0 ? recv(BOOTSTRAP_CHANNEL, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT) : 0;
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    uint8_t *packet = len > 0 ? pm_alloc((size_t)len) : NULL;
    if (len > 0 && recv(BOOTSTRAP_CHANNEL, packet, (size_t)len, MSG_DONTWAIT) == len && a->state < KEELD_RUNNING) {
        if (!join.described)
            take_job(a, packet, (size_t)len);
        else if (a->state == KEELD_CONFIGURED)
            take_node(a, packet, (size_t)len);
        sodium_memzero(packet, (size_t)len);
    } else if (len <= 0) {
        uv_poll_stop(watch);
        join.told = true;
        if (a->state < KEELD_RUNNING)
            keeld_fail(a, 1, "the job did not start");
    }
    free(packet);
}

/* ---- the processes ---- */

/* One packet with one descriptor. It is sent right after the connection is made, by a process of our user; if that is
 * stopped meanwhile we are, too: nothing can be done without it. */
static bool hear(int fd, struct bootstrap_rank *hello, int *lifeline)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {hello, sizeof *hello};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    *lifeline = -1;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(lifeline, CMSG_DATA(h), sizeof(int));
    return n == sizeof *hello && *lifeline >= 0;
}

static bool is_awaited(const struct keeld *a, int rank)
{
    if (rank < 0 || rank >= a->job.settings.ranks || a->job.settings.rank_node[rank] != a->launch.node)
        return false;
    for (int i = 0; i < join.come; i++)
        if (join.joined[i].p->life.rank == rank)
            return false;
    return true;
}

static void take_process(struct keeld *a, int fd)
{
    struct bootstrap_rank hello;
    struct ucred cred;
    socklen_t len = sizeof cred;
    int lifeline = -1;
    struct process *p = NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid() &&
        hear(fd, &hello, &lifeline) && is_awaited(a, hello.rank))
        p = keeld_ranks_adopt(a, hello.rank, cred.pid, lifeline);
    if (p) {
        join.joined[join.come++] = (struct joined){p, fd};
        return;
    }
    if (lifeline >= 0)
        close(lifeline);
    close(fd); /* a stranger, or one that has ended: who waits for it will see */
}

static void listener_ready(uv_poll_t *watch, int status, int events)
{
    struct keeld *a = watch->data;
    (void)status;
    (void)events;
    int fd = a->state == KEELD_JOINING ? accept4(BOOTSTRAP_LISTENER, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (fd >= 0)
        take_process(a, fd);
    if (join.come < join.here)
        return;
    uv_poll_stop(watch);
    close(BOOTSTRAP_LISTENER);
    configure_when_all_are_here(a);
}

void keeld_join_run(struct keeld *a)
{
    keeld_kind_is_keels(a);
    join.say_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    keeld_log_capture(a);
    for (int i = 0; i < join.here && a->state == KEELD_RUNNING; i++) {
        struct process *p = join.joined[i].p;
        keel_status status = plane_process_started(a->plane, p->seat, p->life, (int)p->pid, join.joined[i].keel_fd);
        char text[REFUSAL_MAX];
        if (status != KEEL_OK)
            keeld_fail(a, 1, refusal_text(status, text));
    }
    json_decref(join.blobs);
    json_decref(join.peers);
    free(join.joined);
    join.joined = NULL;
}

void keeld_join_begin(struct keeld *a)
{
    fcntl(BOOTSTRAP_LISTENER, F_SETFD, FD_CLOEXEC);
    fcntl(BOOTSTRAP_CHANNEL, F_SETFD, FD_CLOEXEC);
    uv_poll_init(&a->loop, &join.listener, BOOTSTRAP_LISTENER); /* makes it non-blocking */
    uv_poll_init(&a->loop, &join.channel, BOOTSTRAP_CHANNEL);
    join.listener.data = join.channel.data = a;
    uv_poll_start(&join.channel, UV_READABLE, channel_ready);
}

/* What ends a job is told once: by the node that alone knows of it, else by the first one that lives. */
void keeld_join_over(const struct keeld *a)
{
    bool first = true;
    for (int i = 0; i < a->launch.node && a->view.alive; i++)
        first = first && !a->view.alive[i];
    if (a->end.why && *a->end.why && (a->end.own_why || first))
        keeld_join_say(a, a->end.why);
}
