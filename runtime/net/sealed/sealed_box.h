/* What a sealed connection (sealed.h) is made of: the greeting in the connect data, keys, sealed frames. Pure: bytes
 * in, bytes out.
 *
 *   connect data   magic 8, the connector's point 32, mac 32, the caller's hello
 *   first message  the acceptor's point 32, a sealed empty frame: it knows the secret and has this connection's keys
 *   all others     sealed frames: ChaCha20-Poly1305, the frame's number in its direction as nonce
 *
 * The points are fresh X25519 public keys. mac is BLAKE2b keyed with the job's secret over magic, point and hello. The
 * keys, one for each direction, are BLAKE2b keyed with the secret over both points, the mac, and what only the holders
 * of the points can make of them. So who listened cannot read it even if he learns the secret later, and no frame of
 * another connection, another direction or another place in the stream opens. */
#ifndef KEEL_NET_SEALED_SEALED_BOX_H
#define KEEL_NET_SEALED_SEALED_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOX_SECRET = 32,
    BOX_POINT = 32,
    BOX_MAC = 32,
    BOX_GREETING = 8 + BOX_POINT + BOX_MAC, /* before the caller's hello */
    BOX_TAG = 16,
    BOX_ANSWER = BOX_POINT + BOX_TAG, /* the acceptor's first message */
};

struct box {
    uint8_t scalar[BOX_POINT], point[BOX_POINT]; /* ours */
    uint8_t mac[BOX_MAC];                        /* of the greeting */
    uint8_t send_key[32], recv_key[32];
    uint8_t send_mark[16], recv_mark[16]; /* for what frames the frames (struct tp_table: mark) */
    uint64_t sent, received;              /* frames */
};

/* The connector's: out has room for BOX_GREETING. scalar: 32 fresh random bytes. */
void box_greet(struct box *b, const uint8_t secret[BOX_SECRET], const uint8_t scalar[BOX_POINT], const void *hello,
               size_t len, uint8_t *out);
/* The acceptor's: whoever made it knows the secret. */
bool box_is_greeting(const uint8_t secret[BOX_SECRET], const void *data, size_t len);
/* The acceptor's keys, and its first message. False if the greeting's point is none. */
bool box_answer(struct box *b, const uint8_t secret[BOX_SECRET], const uint8_t scalar[BOX_POINT],
                const uint8_t greeting[BOX_GREETING], uint8_t out[BOX_ANSWER]);
/* The connector's keys. False if that is not the answer of one who knows the secret to this greeting. */
bool box_take_answer(struct box *b, const uint8_t secret[BOX_SECRET], const void *data, size_t len);

/* In place: len bytes become len + BOX_TAG. */
void box_seal(struct box *b, uint8_t *frame, size_t len);
/* In place: *len becomes shorter by BOX_TAG. False if it is not the peer's next frame. */
bool box_open(struct box *b, uint8_t *frame, size_t *len);
#endif
