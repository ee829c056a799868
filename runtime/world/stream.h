/* Random bytes by ChaCha20 (RFC 8439): the same ones for the same key, stream and place. Pure. */
#ifndef KEEL_WORLD_STREAM_H
#define KEEL_WORLD_STREAM_H

#include <stddef.h>
#include <stdint.h>

enum { STREAM_KEY = 32, STREAM_BLOCK = 64 };

/* The bytes of the blocks from `block` on. */
void stream_fill(const uint8_t key[STREAM_KEY], uint32_t stream, uint64_t block, void *out, size_t len);
#endif
