#include "pm/wire/conn.h"

#include "pm/wire/codec.h"
#include "pm/wire/quit.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"

#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
    /* With something under way a connection fails after this long without a word of the peer's kernel: its host has
     * vanished. A peer that is stopped (Ctrl-Z) and whose socket is full is waited for: its kernel says so again and
     * again. TCP_USER_TIMEOUT would make no difference between the two. */
    SILENCE_MS = 20000,
    LOOK_MS = 5000,
    KEEPALIVE_S = 10,
    KEEPALIVE_AGAIN_S = 5, /* who has closed while the way was cut is known soon after */
    KEEPALIVES = 3,        /* without an answer: the connection is lost though nothing is under way */
};

struct write_req {
    uv_write_t req;
    struct bytes data;
};

static void handle_closed(uv_handle_t *handle)
{
    struct pm_conn *c = handle->data;
    if (--c->handles > 0)
        return;
    if (!c->quiet)
        c->events.lost(c, c->why);
    session_fini(&c->session);
    secret_free(c, sizeof *c);
}

static void shut(struct pm_conn *c, const char *why, bool quiet)
{
    if (c->closing) {
        c->quiet |= quiet;
        return;
    }
    c->closing = true;
    c->open = false;
    c->quiet = quiet;
    snprintf(c->why, sizeof c->why, "%s", why);
    uv_close(&c->uv.handle, handle_closed);
    uv_close((uv_handle_t *)&c->deadline, handle_closed);
}

static void read_rest(struct pm_conn *c);

static void write_done(uv_write_t *req, int status)
{
    struct write_req *w = (struct write_req *)req;
    struct pm_conn *c = req->handle->data;
    bytes_free(&w->data);
    free(w);
    if (status >= 0 || status == UV_ECANCELED)
        return;
    read_rest(c);
    shut(c, uv_strerror(status), false);
}

/* Takes the memory of data. */
static void write_out(struct pm_conn *c, struct bytes *data)
{
    if (data->len == 0 || c->closing) {
        bytes_free(data);
        return;
    }
    struct write_req *w = pm_alloc(sizeof *w);
    w->data = *data;
    *data = (struct bytes){0};
    uv_buf_t buf = uv_buf_init((char *)w->data.data, (unsigned)w->data.len);
    int rc = uv_write(&w->req, &c->uv.stream, &buf, 1, write_done);
    if (rc < 0) {
        bytes_free(&w->data);
        free(w);
        shut(c, uv_strerror(rc), false);
    }
}

/* Nothing of what we send has been answered for long, nor have the kernel's questions whether there is room again. */
static bool is_silent(struct pm_conn *c)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    uv_os_fd_t fd;
    int under_way = 0;
    if (uv_fileno(&c->uv.handle, &fd) != 0 || ioctl(fd, SIOCOUTQ, &under_way) < 0 || under_way == 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0) {
        c->under_way_since = 0;
        return false;
    }
    uint64_t now = uv_now(c->uv.handle.loop);
    if (!c->under_way_since)
        c->under_way_since = now;
    return now - c->under_way_since >= SILENCE_MS && info.tcpi_last_ack_recv >= SILENCE_MS &&
           (info.tcpi_retransmits > 1 || info.tcpi_probes > 1);
}

static void look_passed(uv_timer_t *timer)
{
    struct pm_conn *c = timer->data;
    if (is_silent(c))
        shut(c, "its host does not answer", false);
}

/* What the session has got so far. */
static void take(struct pm_conn *c)
{
    while (!c->closing) {
        struct bytes out = {0};
        uint8_t type = 0;
        const uint8_t *body = NULL;
        size_t len = 0;
        bool got = session_next(&c->session, &out, &type, &body, &len);
        write_out(c, &out);
        if (c->session.state == SESSION_OPEN && !c->open && !c->closing) {
            c->open = true;
            uv_timer_start(&c->deadline, look_passed, LOOK_MS, LOOK_MS);
            c->events.open(c);
        }
        if (got && !c->closing)
            c->events.frame(c, type, body, len);
        if (c->session.state == SESSION_BROKEN)
            shut(c, c->session.why_broken, false);
        if (!got)
            return;
    }
}

static void read_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct pm_conn *c = stream->data;
    if (n > 0)
        session_feed(&c->session, buf->base, (size_t)n);
    free(buf->base);
    c->heard = uv_now(stream->loop);
    if (n < 0)
        shut(c, n == UV_EOF ? "closed by peer" : uv_strerror((int)n), false);
    else
        take(c);
}

/* Who does not take what we send any more may have said something before it ended. */
static void read_rest(struct pm_conn *c)
{
    uint8_t data[4096];
    uv_os_fd_t fd;
    ssize_t n;
    while (!c->closing && uv_fileno(&c->uv.handle, &fd) == 0 && (n = recv(fd, data, sizeof data, MSG_DONTWAIT)) > 0) {
        session_feed(&c->session, data, (size_t)n);
        take(c);
    }
}

static void read_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(pm_alloc(suggested), (unsigned)suggested);
}

/* The loop looks at its timers before it reads: if it was we who had no time, what came meanwhile is read first. */
static void deadline_passed(uv_timer_t *timer)
{
    struct pm_conn *c = timer->data;
    if (c->late) {
        shut(c, "no proof of membership in time", false);
        return;
    }
    c->late = true;
    uv_timer_start(timer, deadline_passed, 1, 0);
}

static struct pm_conn *conn_new(uv_loop_t *loop, const struct conn_events *events, void *user)
{
    struct pm_conn *c = secret_alloc(sizeof *c); /* the session's keys are in it */
    if (!c)
        pm_quit(1, "out of memory");
    c->events = *events;
    c->user = user;
    c->handles = 2;
    uv_timer_init(loop, &c->deadline);
    c->deadline.data = c;
    return c;
}

static void start_session(struct pm_conn *c, enum session_role role, uint64_t job_id, const struct session_key *key)
{
    struct bytes out = {0};
    uint8_t scalar[SESSION_POINT];
    randombytes_buf(scalar, sizeof scalar);
    session_init(&c->session, role, job_id, key, scalar, &out);
    sodium_memzero(scalar, sizeof scalar);
    c->open = role == SESSION_PLAIN;
    uv_read_start(&c->uv.stream, read_alloc, read_ready);
    write_out(c, &out);
}

static void tune(struct pm_conn *c)
{
    uv_tcp_nodelay(&c->uv.tcp, 1);
    uv_tcp_keepalive(&c->uv.tcp, 1, KEEPALIVE_S);
    uv_os_fd_t fd;
    int again = KEEPALIVE_AGAIN_S, count = KEEPALIVES;
    if (uv_fileno(&c->uv.handle, &fd) != 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof again);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

struct connecting {
    uv_connect_t req;
    uint64_t job_id, key_id;
    uint8_t secret[SESSION_SECRET];
};

static void connected(uv_connect_t *req, int status)
{
    struct connecting *k = (struct connecting *)req;
    struct pm_conn *c = req->handle->data;
    if (status < 0) {
        shut(c, uv_strerror(status), false);
    } else if (!c->closing) {
        tune(c);
        start_session(c, SESSION_CLIENT, k->job_id, &(struct session_key){.id = k->key_id, .secret = k->secret});
    }
    sodium_memzero(k, sizeof *k);
    free(k);
}

struct pm_conn *conn_connect(uv_loop_t *loop, const char *from, const char *host, int port, uint64_t job_id,
                             const struct session_key *key, uint64_t timeout_ms, const struct conn_events *events,
                             void *user)
{
    struct pm_conn *c = conn_new(loop, events, user);
    uv_tcp_init(loop, &c->uv.tcp);
    c->uv.tcp.data = c;
    snprintf(c->peer, sizeof c->peer, "%s:%d", host, port);
    uv_timer_start(&c->deadline, deadline_passed, timeout_ms, 0);
    struct sockaddr_storage to, local;
    int rc = UV_EINVAL;
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)&to) == 0 ||
        uv_ip6_addr(host, port, (struct sockaddr_in6 *)&to) == 0)
        rc = 0;
    if (rc == 0 && from && from[0]) {
        if (uv_ip4_addr(from, 0, (struct sockaddr_in *)&local) != 0)
            rc = uv_ip6_addr(from, 0, (struct sockaddr_in6 *)&local);
        if (rc == 0)
            rc = uv_tcp_bind(&c->uv.tcp, (struct sockaddr *)&local, 0);
    }
    struct connecting *k = pm_alloc(sizeof *k);
    k->job_id = job_id;
    k->key_id = key->id;
    memcpy(k->secret, key->secret, sizeof k->secret);
    if (rc == 0)
        rc = uv_tcp_connect(&k->req, &c->uv.tcp, (struct sockaddr *)&to, connected);
    if (rc < 0) {
        sodium_memzero(k, sizeof *k);
        free(k);
        shut(c, uv_strerror(rc), false);
    }
    return c;
}

static void name_peer(struct pm_conn *c)
{
    struct sockaddr_storage a;
    int len = sizeof a;
    char host[64] = "?";
    if (uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&a, &len) == 0)
        uv_ip_name((struct sockaddr *)&a, host, sizeof host);
    snprintf(c->peer, sizeof c->peer, "%s:%d", host, ntohs(((struct sockaddr_in *)&a)->sin_port));
}

struct pm_conn *conn_accept(uv_stream_t *listener, uint64_t job_id, const struct session_key *key, uint64_t timeout_ms,
                            const struct conn_events *events, void *user)
{
    struct pm_conn *c = conn_new(listener->loop, events, user);
    uv_tcp_init(listener->loop, &c->uv.tcp);
    c->uv.tcp.data = c;
    if (uv_accept(listener, &c->uv.stream) < 0) {
        shut(c, "", true);
        return NULL;
    }
    name_peer(c);
    tune(c);
    uv_timer_start(&c->deadline, deadline_passed, timeout_ms, 0);
    start_session(c, SESSION_SERVER, job_id, key);
    return c;
}

struct pm_conn *conn_adopt(uv_loop_t *loop, int fd, const char *peer, const struct conn_events *events, void *user)
{
    struct pm_conn *c = conn_new(loop, events, user);
    uv_pipe_init(loop, &c->uv.pipe, 0);
    c->uv.pipe.data = c;
    snprintf(c->peer, sizeof c->peer, "%s", peer);
    int rc = uv_pipe_open(&c->uv.pipe, fd);
    if (rc < 0)
        shut(c, uv_strerror(rc), false);
    else
        start_session(c, SESSION_PLAIN, 0, NULL);
    return c;
}

void conn_send(struct pm_conn *c, uint8_t type, const void *body, size_t len)
{
    if (!c->open || c->closing)
        return;
    struct bytes out = {0};
    session_seal(&c->session, type, body, len, &out);
    write_out(c, &out);
}

void conn_send_json(struct pm_conn *c, uint8_t type, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    if (text)
        conn_send(c, type, text, strlen(text));
    else
        log_error("a message could not be written as JSON");
    codec_free(text);
    json_decref(body);
}

bool conn_same_host(const struct pm_conn *a, const struct pm_conn *b)
{
    size_t n = (size_t)(strrchr(a->peer, ':') - a->peer), m = (size_t)(strrchr(b->peer, ':') - b->peer);
    return n == m && memcmp(a->peer, b->peer, n) == 0;
}

size_t conn_queued(const struct pm_conn *c)
{
    return c->closing ? 0 : uv_stream_get_write_queue_size(&c->uv.stream);
}

bool conn_unacknowledged(const struct pm_conn *c)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    uv_os_fd_t fd;
    return uv_fileno(&c->uv.handle, &fd) == 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_unacked > 0;
}

bool conn_delivered(const struct pm_conn *c)
{
    uv_os_fd_t fd;
    int under_way = 0;
    return conn_queued(c) == 0 && uv_fileno(&c->uv.handle, &fd) == 0 && ioctl(fd, SIOCOUTQ, &under_way) == 0 &&
           under_way == 0;
}

void conn_local_host(const struct pm_conn *c, char *out, size_t size)
{
    struct sockaddr_storage a;
    int len = sizeof a;
    snprintf(out, size, "?");
    if (uv_tcp_getsockname(&c->uv.tcp, (struct sockaddr *)&a, &len) == 0)
        uv_ip_name((struct sockaddr *)&a, out, size);
}

void conn_close(struct pm_conn *c)
{
    if (c)
        shut(c, "", true);
}
