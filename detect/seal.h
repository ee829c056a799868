/* Authenticators of what helper threads send each other: a keyed BLAKE2b hash (libsodium) under a key made from the job's
 * secret, over job, sender, receiver, the sender's incarnation and the bytes. Replays from the same job are possible
 * and harmless: the membership protocol takes duplicates. */
#ifndef KEEL_DETECT_SEAL_H
#define KEEL_DETECT_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEAL_HEADER = 24, SEAL_MAC = 16, SEAL_OVERHEAD = SEAL_HEADER + SEAL_MAC };
enum seal_kind { SEAL_DATAGRAM = 1, SEAL_HELLO, SEAL_PROBE };

struct seal {
    uint64_t job_id;
    uint8_t key[32];
    int self;
    uint32_t incarnation;
};

/* False if libsodium cannot be used. */
bool seal_init(struct seal *s, uint64_t job_id, const uint8_t secret[32], int self, uint32_t incarnation);
/* out: len + SEAL_OVERHEAD bytes. Returns that length. */
size_t seal_close(const struct seal *s, enum seal_kind kind, int to, const void *data, size_t len, uint8_t *out);
/* False if it is not ours. The content is in + SEAL_HEADER, of *len bytes. */
bool seal_open(const struct seal *s, const uint8_t *in, size_t in_len, enum seal_kind *kind, int *from,
               uint32_t *incarnation, size_t *len);
#endif
