#include "runtime/net/hello.h"

#include <sodium.h>
#include <string.h>

enum { STACK_BELOW = 4096 }; /* where a hash may have left the secret, from registers */

static void mac_of(const struct wire_hello *hello, const uint8_t secret[32], uint8_t mac[32])
{
    crypto_generichash(mac, 32, (const uint8_t *)hello, offsetof(struct wire_hello, mac), secret, 32);
    sodium_stackzero(STACK_BELOW);
}

void wire_hello_sign(struct wire_hello *hello, const uint8_t secret[32])
{
    hello->magic = WIRE_HELLO_MAGIC;
    hello->pad = 0;
    mac_of(hello, secret, hello->mac);
}

bool wire_hello_open(const void *data, size_t len, const uint8_t secret[32], uint64_t job, int self,
                     uint64_t incarnation, struct wire_hello *out)
{
    if (len < sizeof *out)
        return false;
    memcpy(out, data, sizeof *out);
    uint8_t mac[32];
    mac_of(out, secret, mac);
    return out->magic == WIRE_HELLO_MAGIC && out->job == job && out->to_node == self &&
           out->to_incarnation == incarnation && sodium_memcmp(mac, out->mac, sizeof mac) == 0;
}

bool wire_hello_is_new(const struct wire_hello *hello, uint64_t *last)
{
    if (hello->attempt <= *last)
        return false;
    *last = hello->attempt;
    return true;
}
