/* Hashes of bytes (XXH3, 64 bits: docs/adr/0180-wrong-bits.md), and what an inspection of a copy is answered with
 * (get.h). Pure. */
#ifndef KEEL_WIRE_DIGEST_H
#define KEEL_WIRE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/pack.h"

enum { DIGEST_BYTES = sizeof(uint64_t), DIGEST_SAME = 0 };

/* seed: the hash of what comes before, 0 for the first. */
uint64_t digest(const void *bytes, size_t len, uint64_t seed);
/* Where two ranges differ first, counted from 1, or DIGEST_SAME. */
uint64_t digest_difference(const void *a, const void *b, size_t len);
/* DIGEST_BYTES for each piece, one after the other: the hash of what lies there; or, if the request brings bytes, where
 * they differ first from what lies there. */
void digest_pieces(const struct pack *p, const uint8_t *base, uint8_t *answer);
#endif
