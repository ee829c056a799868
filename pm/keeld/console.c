/* The node's console: a unix socket in the abstract namespace for keelctl, open to processes of the same user only. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "runtime/base/log.h"
#include "runtime/base/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    WATCHER_QUEUE_MAX = 8 << 20, /* a keelctl that does not read is let go */
    GUESTS_MAX = 64,             /* connections beside those of the other agents */
    PROOF_MS = 1000,
};

static const char *process_state(const struct process *p)
{
    return p->exited ? (p->signal ? "killed" : "ended") : p->life.rank < 0 ? "standby" : "running";
}

/* A node that waits for its use; after a take-over it is one like the others. */
static bool is_spare(const struct keeld *a)
{
    for (int r = 0; a->view.rank_node && r < a->job.settings.ranks; r++)
        if (a->view.rank_node[r] == a->launch.node)
            return false;
    return a->job.settings.nodes > 0 && a->launch.node >= a->job.settings.nodes;
}

static json_t *detection(const struct keeld *a)
{
    char *text = a->state == KEELD_RUNNING ? plane_detection_json(a->plane) : NULL;
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return json ? json : json_null();
}

static json_t *counted(const struct keeld *a)
{
    char *text = a->state == KEELD_RUNNING ? plane_counters_json(a->plane) : NULL;
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return json ? json : json_object();
}

/* Who is who, and which sets are not whole; of ranks by which number, in which set. */
static void add_replicas(const struct keeld *a, json_t *status)
{
    const struct replica_map *m = &a->job.settings.replicas;
    json_t *rank;
    size_t i;
    if (!replica_map_is_used(m))
        return;
    json_object_set_new(status, "replicas",
                        json_pack("{s:i, s:o, s:o}", "sets", m->replicas, "native",
                                  codec_ints(m->native, replica_map_natives(m)), "lost",
                                  keeld_sets_json(m, a->view.loss)));
    json_array_foreach(json_object_get(status, "ranks"), i, rank) {
        int native = (int)json_integer_value(json_object_get(rank, "rank"));
        struct replica who = replica_of(m, native < 0 ? 0 : native);
        if (native < 0)
            continue;
        json_object_set_new(rank, "as_rank", json_integer(who.rank));
        json_object_set_new(rank, "set", json_integer(who.set));
    }
}

static json_t *status_json(const struct keeld *a)
{
    static const char *const states[] = {"joining", "configured", "running", "out", "ending", "over"};
    json_t *ranks = json_array(), *alive = json_array(), *hosts = json_array();
    for (int i = 0; i < a->process_count; i++) {
        const struct process *p = a->processes[i].p;
        json_array_append_new(ranks, json_pack("{s:i, s:i, s:i, s:s}", "rank", p->life.rank, "pid", (int)p->pid,
                                               "incarnation", (int)p->life.incarnation, "state", process_state(p)));
    }
    for (int i = 0; a->view.alive && i < a->view.born; i++)
        json_array_append_new(alive, json_boolean(a->view.alive[i]));
    for (int i = 0; a->peers && i < a->view.born; i++)
        json_array_append_new(hosts, json_string(a->peers[i].host));
    char job[17];
    snprintf(job, sizeof job, "%016llx", (unsigned long long)a->launch.job_id);
    json_t *status = json_pack(
        "{s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:b, s:b, s:I, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o}",
        "job", job, "node", a->launch.node, "host", a->self_host, "state",
        a->launch.back && a->state < KEELD_RUNNING ? "returning" : states[a->state], "agent_pid", (int)getpid(),
        "stub_pid", (int)a->stub_pid, "launcher_pid", a->job.launcher_pid, "spare", (int)is_spare(a), "keelrun",
        (int)(a->dialogue.conn != NULL), "epoch", (json_int_t)a->view.epoch, "alive", alive, "rank_node",
        a->view.rank_node ? codec_ints(a->view.rank_node, a->job.settings.ranks) : json_array(), "ranks", ranks,
        "nodes", a->job.settings.nodes, "spares", a->job.settings.spares, "size", a->job.settings.ranks, "program",
        codec_text(a->job.argv ? a->job.argv[0] : ""), "detection", detection(a), "waiting", keeld_waits_json(a),
        "hosts", hosts, "counters", counted(a));
    add_replicas(a, status);
    return status;
}

/* ---- guests ---- */

static void guest_remove(struct keeld_guest *g)
{
    struct keeld_guest **at = &g->agent->console.guests;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    g->agent->console.guest_count--;
    free(g);
}

static void resend(void *user, const uint8_t *frame, size_t len)
{
    conn_send(user, MSG_OUTPUT, frame, len);
}

static void guest_open(struct pm_conn *c)
{
    struct keeld_guest *g = c->user;
    g->known = true;
    if (c->session.key.id != SESSION_OF_JOB)
        keeld_adding_opened(g->agent, g);
}

static void move_rank(struct keeld *a, const json_t *m)
{
    long long rank, node;
    if (m && codec_int(m, "rank", 0, a->job.settings.ranks - 1, &rank) &&
        codec_int(m, "node", 0, settings_ids(&a->job.settings) - 1, &node))
        plane_move_rank(a->plane, (int)rank, (int)node);
}

static void rebalance(struct keeld *a, struct keeld_guest *g, const json_t *m)
{
    long long seconds = 0;
    if (!m || !codec_int(m, "seconds", 0, UINT32_MAX, &seconds))
        return;
    g->rebalance = ++a->console.rebalances;
    plane_rebalance(a->plane, g->rebalance, (uint32_t)seconds);
}

static void guest_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    struct keeld_guest *g = c->user;
    struct keeld *a = g->agent;
    if (g->added) {
        keeld_adding_frame(a, type, body, len);
        return;
    }
    json_t *m = codec_object(body, len);
    if (type == MSG_ASK_STATUS) {
        conn_send_json(c, MSG_STATUS, status_json(a));
    } else if (type == MSG_ATTACH) {
        g->attached = true;
        backlog_each(&a->output.backlog, resend, c);
    } else if (type == MSG_VERIFY && a->state == KEELD_RUNNING) {
        g->verify = ++a->console.verifies;
        plane_verify(a->plane, g->verify);
    } else if (type == MSG_REBALANCE && a->state == KEELD_RUNNING) {
        rebalance(a, g, m);
    } else if (type == MSG_MOVE && a->state == KEELD_RUNNING) {
        move_rank(a, m);
    } else if (type == MSG_ADD && m && g->local) {
        keeld_adding_ask(a, g, m);
    } else if (type == MSG_MEET && m) {
        keeld_config_meet_of(a, c, m);
    } else if (type == MSG_STOP && m) {
        keeld_stop(a, m);
    } else if (type == MSG_PMI_FENCE && m) {
        keeld_pmi_report(a, g, m);
    }
    json_decref(m);
}

static void guest_lost(struct pm_conn *c, const char *why)
{
    struct keeld_guest *g = c->user;
    if (!g->known)
        log_warn_some("dropped a connection from %s: %s", c->peer, why);
    keeld_adding_lost(g->agent, g, why);
    guest_remove(g);
}

void keeld_console_drop(struct keeld_guest *g)
{
    conn_close(g->conn);
    guest_remove(g);
}

static const struct conn_events guest_events = {guest_open, guest_frame, guest_lost};

static struct keeld_guest *guest_add(struct keeld *a)
{
    struct keeld_guest *g = pm_alloc(sizeof *g);
    *g = (struct keeld_guest){.agent = a, .next = a->console.guests, .node = -1};
    a->console.guests = g;
    a->console.guest_count++;
    return g;
}

/* Of those that have said nothing, the oldest of the address that has most. Those that belong to the job speak at
 * once. */
static struct keeld_guest *surplus_guest(const struct keeld_console *c)
{
    struct keeld_guest *worst = NULL;
    int most = 0;
    for (struct keeld_guest *g = c->guests; g; g = g->next) { /* newest first */
        int here = 0;
        for (struct keeld_guest *h = c->guests; h && !g->known; h = h->next)
            here += !h->known && conn_same_host(g->conn, h->conn);
        if (here > 0 && here >= most) {
            most = here;
            worst = g;
        }
    }
    return worst;
}

static void guests_limit(struct keeld *a)
{
    struct keeld_guest *worst =
        a->console.guest_count > GUESTS_MAX + a->job.settings.nodes ? surplus_guest(&a->console) : NULL;
    if (worst) {
        conn_close(worst->conn);
        guest_remove(worst);
    }
}

static void console_ready(uv_poll_t *handle, int status, int events)
{
    struct keeld *a = handle->data;
    struct ucred peer;
    socklen_t len = sizeof peer;
    char name[48];
    (void)status;
    (void)events;
    int fd = accept4(a->console.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && reserve_give(errno))
        fd = accept4(a->console.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || (peer.uid != geteuid() && peer.uid != 0)) {
        log_info("console: refused process %d of user %d", (int)peer.pid, (int)peer.uid);
        close(fd);
        return;
    }
    snprintf(name, sizeof name, "process %d", (int)peer.pid);
    struct keeld_guest *g = guest_add(a);
    g->known = g->local = true; /* by the kernel's word */
    g->conn = conn_adopt(&a->loop, fd, name, &guest_events, g);
    guests_limit(a);
}

/* The job's secret, or the ticket of one that we add. */
static const uint8_t *find_key(void *user, uint64_t id)
{
    const struct keeld *a = user;
    return id == SESSION_OF_JOB ? a->job.secret : keeld_adding_key(a, id);
}

static void peer_waiting(uv_stream_t *listener, int status)
{
    struct keeld *a = listener->data;
    if (status != 0)
        return;
    const struct session_key key = {.find = find_key, .user = a};
    struct keeld_guest *g = guest_add(a);
    g->conn = conn_accept(listener, a->launch.job_id, &key, PROOF_MS, &guest_events, g);
    if (!g->conn)
        guest_remove(g);
    guests_limit(a);
}

bool keeld_console_listen(struct keeld *a)
{
    struct sockaddr_storage address;
    int len = sizeof address;
    if (uv_ip4_addr(a->self_host, 0, (struct sockaddr_in *)&address) != 0 &&
        uv_ip6_addr(a->self_host, 0, (struct sockaddr_in6 *)&address) != 0)
        return false;
    uv_tcp_init(&a->loop, &a->console.listener);
    a->console.listener.data = a;
    int rc = uv_tcp_bind(&a->console.listener, (struct sockaddr *)&address, 0);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&a->console.listener, 128, peer_waiting);
    if (rc == 0)
        rc = uv_tcp_getsockname(&a->console.listener, (struct sockaddr *)&address, &len);
    if (rc != 0) {
        log_error("cannot listen on %s: %s", a->self_host, uv_strerror(rc));
        return false;
    }
    a->console.port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    return true;
}

/* Anybody may take a name in the abstract namespace, and does not guess a random one. keelctl looks for what begins
 * so. */
static int bind_console(const struct keeld *a, int fd, bool taken)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t number = 0;
    char more[24] = "";
    if (taken) {
        randombytes_buf(&number, sizeof number);
        snprintf(more, sizeof more, ".%016llx", (unsigned long long)number);
    }
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, CONSOLE_PREFIX "%016llx/%d%s",
                     (unsigned long long)a->launch.job_id, a->launch.node, more);
    return bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

void keeld_console_open(struct keeld *a)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = fd < 0 ? -1 : bind_console(a, fd, false);
    if (fd >= 0 && rc < 0 && errno == EADDRINUSE)
        rc = bind_console(a, fd, true);
    if (rc < 0 || listen(fd, 16) < 0) {
        log_warn("no console socket: keelctl will not find this node: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return;
    }
    a->console.fd = fd;
    a->console.watch = keeld_watch(a, fd, console_ready);
    uv_unref((uv_handle_t *)a->console.watch);
}

void keeld_console_output(struct keeld *a, const void *frame, size_t len)
{
    for (struct keeld_guest *g = a->console.guests, *next; g; g = next) {
        next = g->next;
        if (!g->attached)
            continue;
        conn_send(g->conn, MSG_OUTPUT, frame, len);
        if (conn_queued(g->conn) > WATCHER_QUEUE_MAX) {
            conn_close(g->conn);
            guest_remove(g);
        }
    }
}

void keeld_console_verified(struct keeld *a, uint64_t id, const char *json)
{
    for (struct keeld_guest *g = a->console.guests; g; g = g->next)
        if (g->verify == id)
            conn_send(g->conn, MSG_VERIFIED, json, strlen(json));
}

void keeld_console_rebalanced(struct keeld *a, uint64_t id, const char *json)
{
    for (struct keeld_guest *g = a->console.guests; g; g = g->next)
        if (g->rebalance == id)
            conn_send(g->conn, MSG_REBALANCED, json, strlen(json));
}

void keeld_console_over(struct keeld *a)
{
    for (struct keeld_guest *g = a->console.guests; g; g = g->next)
        if (g->attached)
            conn_send_json(g->conn, MSG_OVER,
                           json_pack("{s:i, s:o}", "code", a->end.code, "why", codec_text(a->end.why)));
}

void keeld_console_close(struct keeld *a)
{
    keeld_unwatch(a->console.watch);
    a->console.watch = NULL;
    if (a->console.fd >= 0)
        close(a->console.fd);
    a->console.fd = -1;
}
