#include "runtime/world/stream.h"

#include <string.h>

static uint32_t rotated(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static void quarter(uint32_t *x, int a, int b, int c, int d)
{
    x[a] += x[b];
    x[d] = rotated(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotated(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotated(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotated(x[b] ^ x[c], 7);
}

static void block_make(const uint32_t in[16], uint32_t out[16])
{
    memcpy(out, in, 16 * sizeof *out);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 4; i++)
            quarter(out, i, 4 + i, 8 + i, 12 + i);
        for (int i = 0; i < 4; i++)
            quarter(out, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
    }
    for (int i = 0; i < 16; i++)
        out[i] += in[i];
}

void stream_fill(const uint8_t key[STREAM_KEY], uint32_t stream, uint64_t block, void *out, size_t len)
{
    uint32_t in[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, made[16];
    uint8_t *to = out;
    memcpy(in + 4, key, STREAM_KEY);
    in[15] = stream;
    for (; len; block++) {
        size_t part = len < STREAM_BLOCK ? len : STREAM_BLOCK;
        in[12] = (uint32_t)block;
        in[13] = (uint32_t)(block >> 32);
        block_make(in, made);
        memcpy(to, made, part);
        to += part;
        len -= part;
    }
}
