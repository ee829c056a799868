#include "pm/wire/session.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

/* Wire: length (4 bytes, little endian, of what follows), then the sealed [type body] with its 16-byte tag. */
enum { ID_BYTES = 8, LEN_BYTES = 4, TAG = crypto_aead_chacha20poly1305_ietf_ABYTES, PROOF_TYPE = 0, UNPROVEN_MAX = 64 };

static const uint8_t magic[8] = "KEEL-PM3";

static void put_u64(uint8_t *p, uint64_t v)
{
    put_u32(p, (uint32_t)v);
    put_u32(p + 4, (uint32_t)(v >> 32));
}

void session_init(struct session *s, enum session_role role, uint64_t job_id, const struct session_key *key,
                  const uint8_t *scalar, struct bytes *out)
{
    *s = (struct session){.role = role, .job_id = job_id};
    if (role == SESSION_PLAIN) {
        s->state = SESSION_OPEN;
        return;
    }
    s->key = *key;
    s->key.secret = NULL;
    if (!key->find)
        memcpy(s->secret, key->secret, sizeof s->secret);
    memcpy(s->scalar, scalar, sizeof s->scalar);
    crypto_scalarmult_base(s->point, s->scalar);
    if (role == SESSION_CLIENT) {
        uint8_t id[ID_BYTES];
        put_u64(id, key->id);
        bytes_append(out, magic, sizeof magic);
        bytes_append(out, id, sizeof id);
        bytes_append(out, s->point, sizeof s->point);
    }
}

void session_fini(struct session *s)
{
    bytes_free(&s->in);
    sodium_memzero(s, sizeof *s);
}

void session_feed(struct session *s, const void *data, size_t len)
{
    if (s->in_used) {
        bytes_drop(&s->in, s->in_used);
        s->in_used = 0;
    }
    if (s->state != SESSION_BROKEN)
        bytes_append(&s->in, data, len);
}

static bool broken(struct session *s, const char *why)
{
    s->state = SESSION_BROKEN;
    s->why_broken = why;
    return false;
}

enum { STACK_BELOW = 4096 }; /* where a hash may have left the secret, from registers */

static void derive(uint8_t key[32], const struct session *s, const char *direction, const uint8_t *client_point,
                   const uint8_t *server_point, const uint8_t *shared)
{
    uint8_t job[8], id[ID_BYTES];
    put_u64(job, s->job_id);
    put_u64(id, s->key.id);
    crypto_generichash_state h;
    crypto_generichash_init(&h, s->secret, sizeof s->secret, 32);
    crypto_generichash_update(&h, (const uint8_t *)direction, strlen(direction));
    crypto_generichash_update(&h, job, sizeof job);
    crypto_generichash_update(&h, id, sizeof id);
    crypto_generichash_update(&h, client_point, SESSION_POINT);
    crypto_generichash_update(&h, server_point, SESSION_POINT);
    crypto_generichash_update(&h, shared, SESSION_POINT);
    crypto_generichash_final(&h, key, 32);
    sodium_stackzero(STACK_BELOW);
}

static void frame_nonce(uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES], uint64_t number)
{
    memset(nonce, 0, crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
    put_u64(nonce, number);
}

static void seal(struct session *s, uint8_t type, const void *body, size_t len, struct bytes *out)
{
    assert(len < SESSION_FRAME_MAX);
    bool plain = s->role == SESSION_PLAIN;
    size_t sealed = 1 + len + (plain ? 0 : TAG);
    uint8_t *p = bytes_reserve(out, LEN_BYTES + sealed);
    put_u32(p, (uint32_t)sealed);
    uint8_t *text = p + LEN_BYTES;
    text[0] = type;
    if (len)
        memcpy(text + 1, body, len);
    if (!plain) {
        uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
        frame_nonce(nonce, s->sent++);
        crypto_aead_chacha20poly1305_ietf_encrypt(text, NULL, text, 1 + len, p, LEN_BYTES, NULL, nonce, s->send_key);
    }
    out->len += LEN_BYTES + sealed;
}

void session_seal(struct session *s, uint8_t type, const void *body, size_t len, struct bytes *out)
{
    assert(s->state == SESSION_OPEN);
    seal(s, type, body, len, out);
}

/* The secret that the client has named. */
static bool find_secret(struct session *s, const uint8_t *name)
{
    uint64_t id = get_u32(name) | (uint64_t)get_u32(name + 4) << 32;
    if (!s->key.find)
        return s->key.id == id || broken(s, "it names a secret of another kind");
    const uint8_t *secret = s->key.find(s->key.user, id);
    if (!secret)
        return broken(s, "it names a ticket that is not valid");
    s->key.id = id;
    memcpy(s->secret, secret, sizeof s->secret);
    return true;
}

/* The peer's greeting is in: answer it (server), make the keys, send our proof. */
static bool greet(struct session *s, struct bytes *out)
{
    size_t named = s->role == SESSION_SERVER ? ID_BYTES : 0; /* by the client only */
    size_t compared = s->in.len < sizeof magic ? s->in.len : sizeof magic;
    if (memcmp(s->in.data, magic, compared) != 0)
        return broken(s, "not Keel's protocol");
    if (s->in.len < sizeof magic + named + SESSION_POINT)
        return false;
    if (named && !find_secret(s, s->in.data + sizeof magic))
        return false;
    const uint8_t *theirs = s->in.data + sizeof magic + named;
    uint8_t shared[SESSION_POINT];
    if (crypto_scalarmult(shared, s->scalar, theirs) != 0)
        return broken(s, "not a point to make a key with");
    if (s->role == SESSION_SERVER) {
        bytes_append(out, magic, sizeof magic);
        bytes_append(out, s->point, sizeof s->point);
        derive(s->recv_key, s, "client", theirs, s->point, shared);
        derive(s->send_key, s, "server", theirs, s->point, shared);
    } else {
        derive(s->send_key, s, "client", s->point, theirs, shared);
        derive(s->recv_key, s, "server", s->point, theirs, shared);
    }
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(s->secret, sizeof s->secret);
    sodium_memzero(s->scalar, sizeof s->scalar);
    bytes_drop(&s->in, sizeof magic + named + SESSION_POINT);
    s->state = SESSION_PROVING;
    seal(s, PROOF_TYPE, NULL, 0, out);
    return true;
}

/* One frame from the front of `in`, decrypted in place. */
static bool open_frame(struct session *s, uint8_t *type, const uint8_t **body, size_t *len)
{
    size_t overhead = s->role == SESSION_PLAIN ? 0 : TAG;
    if (s->in.len < LEN_BYTES)
        return false;
    size_t sealed = get_u32(s->in.data);
    size_t limit = s->state == SESSION_OPEN ? SESSION_FRAME_MAX : UNPROVEN_MAX;
    if (sealed < overhead + 1 || sealed > limit + overhead)
        return broken(s, "frame length out of range");
    if (s->in.len < LEN_BYTES + sealed)
        return false;
    uint8_t *text = s->in.data + LEN_BYTES;
    if (overhead) {
        uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
        frame_nonce(nonce, s->received++);
        if (crypto_aead_chacha20poly1305_ietf_decrypt(text, NULL, NULL, text, sealed, s->in.data, LEN_BYTES, nonce,
                                                      s->recv_key) != 0)
            return broken(s, "authentication failed");
    }
    *type = text[0];
    *body = text + 1;
    *len = sealed - overhead - 1;
    s->in_used = LEN_BYTES + sealed;
    return true;
}

bool session_next(struct session *s, struct bytes *out, uint8_t *type, const uint8_t **body, size_t *len)
{
    if (s->in_used) {
        bytes_drop(&s->in, s->in_used);
        s->in_used = 0;
    }
    if (s->state == SESSION_BROKEN)
        return false;
    if (s->state == SESSION_GREETING && (s->in.len == 0 || !greet(s, out)))
        return false;
    if (s->state == SESSION_PROVING) {
        if (!open_frame(s, type, body, len))
            return false;
        if (*type != PROOF_TYPE || *len != 0)
            return broken(s, "authentication failed");
        s->state = SESSION_OPEN;
        bytes_drop(&s->in, s->in_used);
        s->in_used = 0;
    }
    return open_frame(s, type, body, len);
}
