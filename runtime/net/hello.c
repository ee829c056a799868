#include "runtime/net/hello.h"

#include <sodium.h>
#include <string.h>

enum { STACK_BELOW = 4096 }; /* where a hash may have left the secret, from registers */

static void mac_of(const struct hello *hello, const uint8_t secret[32], uint8_t mac[32])
{
    crypto_generichash(mac, 32, (const uint8_t *)hello, offsetof(struct hello, mac), secret, 32);
    sodium_stackzero(STACK_BELOW);
}

void hello_sign(struct hello *hello, const uint8_t secret[32])
{
    hello->magic = HELLO_MAGIC;
    hello->pad = 0;
    mac_of(hello, secret, hello->mac);
}

bool hello_open(const void *data, size_t len, const uint8_t secret[32], uint64_t job, int self, uint64_t incarnation,
                struct hello *out)
{
    if (len < sizeof *out)
        return false;
    memcpy(out, data, sizeof *out);
    uint8_t mac[32];
    mac_of(out, secret, mac);
    return out->magic == HELLO_MAGIC && out->job == job && out->to_node == self && out->to_incarnation == incarnation &&
           sodium_memcmp(mac, out->mac, sizeof mac) == 0;
}

bool hello_is_new(const struct hello *hello, uint64_t *last)
{
    if (hello->attempt <= *last)
        return false;
    *last = hello->attempt;
    return true;
}
