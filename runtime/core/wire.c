#include "runtime/core/wire.h"

#include <sodium.h>
#include <string.h>

static void mac_of(const struct wire_hello *hello, const uint8_t secret[32], uint8_t mac[32])
{
    crypto_generichash(mac, 32, (const uint8_t *)hello, offsetof(struct wire_hello, mac), secret, 32);
}

void wire_hello_sign(struct wire_hello *hello, const uint8_t secret[32])
{
    hello->magic = WIRE_HELLO_MAGIC;
    hello->pad = 0;
    randombytes_buf(&hello->nonce, sizeof hello->nonce);
    mac_of(hello, secret, hello->mac);
}

bool wire_hello_valid(const void *data, size_t len, const uint8_t secret[32], uint64_t job, int self)
{
    struct wire_hello hello;
    if (len < sizeof hello)
        return false;
    memcpy(&hello, data, sizeof hello);
    uint8_t mac[32];
    mac_of(&hello, secret, mac);
    return hello.magic == WIRE_HELLO_MAGIC && hello.job == job && hello.to_node == self &&
           sodium_memcmp(mac, hello.mac, sizeof mac) == 0;
}
