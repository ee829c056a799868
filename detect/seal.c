#include "detect/seal.h"

#include <sodium.h>
#include <string.h>

/* header: magic u32, kind u16, bits 16 to 23 of from and of to u8 each, job u64, from u16, to u16, incarnation u32,
 * number u64; little endian. Then content, MAC. */
static const uint32_t MAGIC = 0x6c65656b;
static const char PURPOSE[] = "keel membership 2";

enum { STACK_BELOW = 4096 }; /* where a hash may have left the secret, from registers */

bool seal_init(struct seal *s, uint64_t job_id, const uint8_t secret[32], int self, uint32_t incarnation)
{
    *s = (struct seal){.job_id = job_id, .self = self, .incarnation = incarnation};
    bool made = sodium_init() >= 0 &&
                crypto_generichash(s->key, sizeof s->key, (const uint8_t *)PURPOSE, sizeof PURPOSE, secret, 32) == 0;
    sodium_stackzero(STACK_BELOW);
    return made;
}

static void put(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

size_t seal_close(const struct seal *s, enum seal_kind kind, int to, uint64_t number, const void *data, size_t len,
                  uint8_t *out)
{
    put(out, MAGIC, 4);
    put(out + 4, kind, 2);
    put(out + 6, (uint64_t)s->self >> 16, 1);
    put(out + 7, (uint64_t)to >> 16, 1);
    put(out + 8, s->job_id, 8);
    put(out + 16, (uint64_t)s->self, 2);
    put(out + 18, (uint64_t)to, 2);
    put(out + 20, s->incarnation, 4);
    put(out + 24, number, 8);
    if (len)
        memcpy(out + SEAL_HEADER, data, len);
    crypto_generichash(out + SEAL_HEADER + len, SEAL_MAC, out, SEAL_HEADER + len, s->key, sizeof s->key);
    return len + SEAL_OVERHEAD;
}

bool seal_open(const struct seal *s, const uint8_t *in, size_t in_len, struct seal_opened *out)
{
    uint8_t mac[SEAL_MAC];
    if (in_len < SEAL_OVERHEAD || get(in, 4) != MAGIC || get(in + 8, 8) != s->job_id ||
        (get(in + 18, 2) | get(in + 7, 1) << 16) != (uint64_t)s->self)
        return false;
    crypto_generichash(mac, SEAL_MAC, in, in_len - SEAL_MAC, s->key, sizeof s->key);
    if (sodium_memcmp(mac, in + in_len - SEAL_MAC, SEAL_MAC) != 0)
        return false;
    *out = (struct seal_opened){.kind = (enum seal_kind)get(in + 4, 2),
                                .from = (int)(get(in + 16, 2) | get(in + 6, 1) << 16),
                                .incarnation = (uint32_t)get(in + 20, 4),
                                .number = get(in + 24, 8),
                                .content = in + SEAL_HEADER,
                                .len = in_len - SEAL_OVERHEAD};
    return true;
}

bool seal_window_take(struct seal_window *w, uint64_t number)
{
    if (number > w->newest) {
        uint64_t ahead = number - w->newest;
        w->seen = (ahead < 64 ? w->seen << ahead : 0) | 1;
        w->newest = number;
        return true;
    }
    uint64_t behind = w->newest - number;
    if (number == 0 || behind >= 64 || (w->seen >> behind & 1))
        return false;
    w->seen |= (uint64_t)1 << behind;
    return true;
}
