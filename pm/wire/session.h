/* One connection between keelrun and an agent: framing, mutual authentication, encryption. Pure: bytes in, frames and
 * bytes out.
 *
 *      client                                  server
 *      magic id point_c       ------->
 *                             <-------         magic point_s          (only after a correct magic)
 *      frame 0: PROOF         ------->
 *                             <-------         frame 0: PROOF
 *      frames                 <------>
 *
 * The points are fresh X25519 public keys. id is the name of a secret that both know, and no secret. Both directions
 * have keys of their own, made from that secret, its name, the job's id, both points and what only these two can
 * make of them (BLAKE2b, keyed): who knows the secret and only listens reads nothing. A frame is ChaCha20-Poly1305
 * with the frame's number as nonce, its length is authenticated too. A recorded session, a reflected frame, a frame
 * left out or another job's frame therefore does not open. Before the peer's proof nothing but a short frame is
 * accepted. In SESSION_PLAIN the kernel has vouched for the peer (SO_PEERCRED): frames only. */
#ifndef KEEL_PM_SESSION_H
#define KEEL_PM_SESSION_H

#include "pm/wire/bytes.h"

#include <stdbool.h>

enum {
    SESSION_SECRET = 32,
    SESSION_POINT = 32,
    SESSION_FRAME_MAX = 16 * 1024 * 1024, /* body of one frame */
};

enum { SESSION_OF_JOB = 0 }; /* the name of the job's secret; others are tickets' */

/* What the other end may prove to know. */
struct session_key {
    uint64_t id;
    const uint8_t *secret; /* SESSION_SECRET bytes */
    /* Instead of these, of a server that knows several: the secret of that name, NULL: there is none. */
    const uint8_t *(*find)(void *user, uint64_t id);
    void *user;
};

enum session_role { SESSION_CLIENT, SESSION_SERVER, SESSION_PLAIN };
enum session_state { SESSION_GREETING, SESSION_PROVING, SESSION_OPEN, SESSION_BROKEN };

struct session {
    enum session_role role;
    enum session_state state;
    uint64_t job_id;
    struct session_key key; /* of a server that knows several: with the id that the client has named */
    uint8_t secret[SESSION_SECRET];
    uint8_t scalar[SESSION_POINT], point[SESSION_POINT];
    uint8_t send_key[32], recv_key[32];
    uint64_t sent, received; /* frames: the next AEAD nonce in each direction */
    struct bytes in;
    size_t in_used;         /* bytes of `in` already given out as the last frame */
    const char *why_broken; /* static text once state is SESSION_BROKEN */
};

/* key's secret and scalar (SESSION_POINT fresh random bytes) are copied; both unused for SESSION_PLAIN. out receives
 * what is to be sent now. */
void session_init(struct session *s, enum session_role role, uint64_t job_id, const struct session_key *key,
                  const uint8_t *scalar, struct bytes *out);
void session_fini(struct session *s);
void session_feed(struct session *s, const void *data, size_t len);
/* The next whole frame: true with type, body, len (valid until the next call on s). False: none yet, or state is
 * SESSION_BROKEN and the connection is to be dropped. out receives handshake bytes to be sent. */
bool session_next(struct session *s, struct bytes *out, uint8_t *type, const uint8_t **body, size_t *len);
/* Append the sealed frame to out. Only in SESSION_OPEN. */
void session_seal(struct session *s, uint8_t type, const void *body, size_t len, struct bytes *out);
#endif
