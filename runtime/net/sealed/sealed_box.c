#include "runtime/net/sealed/sealed_box.h"

#include <sodium.h>
#include <string.h>

static const uint8_t magic[8] = "KEELSEAL";

enum { STACK_BELOW = 4096 }; /* where a hash may have left the secret, from registers */

static void mac_of(const uint8_t secret[BOX_SECRET], const uint8_t *point, const void *hello, size_t len,
                   uint8_t mac[BOX_MAC])
{
    crypto_generichash_state h;
    crypto_generichash_init(&h, secret, BOX_SECRET, BOX_MAC);
    crypto_generichash_update(&h, magic, sizeof magic);
    crypto_generichash_update(&h, point, BOX_POINT);
    crypto_generichash_update(&h, hello, len);
    crypto_generichash_final(&h, mac, BOX_MAC);
    sodium_stackzero(STACK_BELOW);
}

static void derive(uint8_t *key, size_t size, const uint8_t secret[BOX_SECRET], const char *direction,
                   const uint8_t *connector, const uint8_t *acceptor, const uint8_t *mac, const uint8_t *shared)
{
    crypto_generichash_state h;
    crypto_generichash_init(&h, secret, BOX_SECRET, size);
    crypto_generichash_update(&h, magic, sizeof magic);
    crypto_generichash_update(&h, (const uint8_t *)direction, strlen(direction));
    crypto_generichash_update(&h, connector, BOX_POINT);
    crypto_generichash_update(&h, acceptor, BOX_POINT);
    crypto_generichash_update(&h, mac, BOX_MAC);
    crypto_generichash_update(&h, shared, BOX_POINT);
    crypto_generichash_final(&h, key, size);
    sodium_stackzero(STACK_BELOW);
}

static bool make_keys(struct box *b, const uint8_t secret[BOX_SECRET], const uint8_t *theirs, bool connector)
{
    uint8_t shared[BOX_POINT];
    if (crypto_scalarmult(shared, b->scalar, theirs) != 0)
        return false;
    const uint8_t *from = connector ? b->point : theirs, *to = connector ? theirs : b->point;
    derive(connector ? b->send_key : b->recv_key, 32, secret, "there", from, to, b->mac, shared);
    derive(connector ? b->recv_key : b->send_key, 32, secret, "back", from, to, b->mac, shared);
    derive(connector ? b->send_mark : b->recv_mark, 16, secret, "lengths there", from, to, b->mac, shared);
    derive(connector ? b->recv_mark : b->send_mark, 16, secret, "lengths back", from, to, b->mac, shared);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(b->scalar, sizeof b->scalar);
    return true;
}

static void begin(struct box *b, const uint8_t scalar[BOX_POINT])
{
    *b = (struct box){0};
    memcpy(b->scalar, scalar, sizeof b->scalar);
    crypto_scalarmult_base(b->point, b->scalar);
}

void box_greet(struct box *b, const uint8_t secret[BOX_SECRET], const uint8_t scalar[BOX_POINT], const void *hello,
               size_t len, uint8_t *out)
{
    begin(b, scalar);
    mac_of(secret, b->point, hello, len, b->mac);
    memcpy(out, magic, sizeof magic);
    memcpy(out + sizeof magic, b->point, BOX_POINT);
    memcpy(out + sizeof magic + BOX_POINT, b->mac, BOX_MAC);
}

bool box_is_greeting(const uint8_t secret[BOX_SECRET], const void *data, size_t len)
{
    const uint8_t *greeting = data;
    uint8_t mac[BOX_MAC];
    if (len < BOX_GREETING || memcmp(greeting, magic, sizeof magic) != 0)
        return false;
    mac_of(secret, greeting + sizeof magic, greeting + BOX_GREETING, len - BOX_GREETING, mac);
    return sodium_memcmp(mac, greeting + sizeof magic + BOX_POINT, BOX_MAC) == 0;
}

bool box_answer(struct box *b, const uint8_t secret[BOX_SECRET], const uint8_t scalar[BOX_POINT],
                const uint8_t greeting[BOX_GREETING], uint8_t out[BOX_ANSWER])
{
    begin(b, scalar);
    memcpy(b->mac, greeting + sizeof magic + BOX_POINT, BOX_MAC);
    if (!make_keys(b, secret, greeting + sizeof magic, false))
        return false;
    memcpy(out, b->point, BOX_POINT);
    box_seal(b, out + BOX_POINT, 0);
    return true;
}

bool box_take_answer(struct box *b, const uint8_t secret[BOX_SECRET], const void *data, size_t len)
{
    uint8_t proof[BOX_TAG];
    size_t left = sizeof proof;
    if (len != BOX_ANSWER || !make_keys(b, secret, data, true))
        return false;
    memcpy(proof, (const uint8_t *)data + BOX_POINT, sizeof proof);
    return box_open(b, proof, &left);
}

static void nonce_of(uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES], uint64_t number)
{
    memset(nonce, 0, crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
    for (int i = 0; i < 8; i++)
        nonce[i] = (uint8_t)(number >> (8 * i));
}

void box_seal(struct box *b, uint8_t *frame, size_t len)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    nonce_of(nonce, b->sent++);
    crypto_aead_chacha20poly1305_ietf_encrypt(frame, NULL, frame, len, NULL, 0, NULL, nonce, b->send_key);
}

bool box_open(struct box *b, uint8_t *frame, size_t *len)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    if (*len < BOX_TAG)
        return false;
    nonce_of(nonce, b->received++);
    if (crypto_aead_chacha20poly1305_ietf_decrypt(frame, NULL, NULL, frame, *len, NULL, 0, nonce, b->recv_key) != 0)
        return false;
    *len -= BOX_TAG;
    return true;
}
