/* A session on a libuv stream: connect or accept, authenticate, exchange frames. Event-loop thread only; nothing
 * blocks. */
#ifndef KEEL_PM_CONN_H
#define KEEL_PM_CONN_H

#include "pm/wire/session.h"

#include <jansson.h>
#include <uv.h>

struct pm_conn;

struct conn_events {
    /* The peer proved that it belongs to the job; frames may be sent. */
    void (*open)(struct pm_conn *c);
    void (*frame)(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len);
    /* Gone, for the reason given; called once, never from inside conn_close. c is freed after it returns. */
    void (*lost)(struct pm_conn *c, const char *why);
};

struct pm_conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_timer_t deadline;      /* for the handshake; then for looks whether the peer's host answers */
    uint64_t under_way_since; /* ms of the loop, when something was first found unacknowledged; 0: nothing */
    uint64_t heard;           /* ms of the loop, when bytes came last */
    struct session session;
    struct conn_events events;
    char peer[80];
    bool open, closing, quiet;
    bool late;   /* the handshake's time is over; what has arrived is still read */
    int handles; /* uv handles still to be closed before the memory goes */
    char why[160];
    void *user;
};

/* Connect to host:port (numeric) from local address `from` (NULL: any), prove within timeout_ms. */
struct pm_conn *conn_connect(uv_loop_t *loop, const char *from, const char *host, int port, uint64_t job_id,
                             const struct session_key *key, uint64_t timeout_ms, const struct conn_events *events,
                             void *user);
/* Take a waiting connection from a TCP listener; the peer has timeout_ms to prove itself. NULL if there is none. Which
 * of several keys it has named is in session.key.id once it is open. */
struct pm_conn *conn_accept(uv_stream_t *listener, uint64_t job_id, const struct session_key *key, uint64_t timeout_ms,
                            const struct conn_events *events, void *user);
/* Take over a connected unix socket of a peer that the kernel vouched for. */
struct pm_conn *conn_adopt(uv_loop_t *loop, int fd, const char *peer, const struct conn_events *events, void *user);

void conn_send(struct pm_conn *c, uint8_t type, const void *body, size_t len);
/* Takes the reference to body. */
void conn_send_json(struct pm_conn *c, uint8_t type, json_t *body);
/* Both come from one address. */
bool conn_same_host(const struct pm_conn *a, const struct pm_conn *b);
/* Bytes accepted by conn_send and not yet by the kernel. */
size_t conn_queued(const struct pm_conn *c);
/* Something that was sent has not been acknowledged by the peer's kernel: its host is cut off, or slow. */
bool conn_unacknowledged(const struct pm_conn *c);
/* All that was sent is with the peer's kernel. */
bool conn_delivered(const struct pm_conn *c);
/* Numeric local address of a TCP connection. */
void conn_local_host(const struct pm_conn *c, char *out, size_t size);
/* Drop the connection without events.lost; what is queued is lost. c must not be used any more. */
void conn_close(struct pm_conn *c);
#endif
