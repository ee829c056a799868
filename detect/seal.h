/* Authenticators of what helper threads send each other: a keyed BLAKE2b hash (libsodium) under a key made from the
 * job's secret, over job, sender, receiver, the sender's incarnation, a number and the bytes. A sender numbers what it
 * sends to a node; a window at the receiver takes each number once, so that what was recorded and is sent again is
 * no sign of life. */
#ifndef KEEL_DETECT_SEAL_H
#define KEEL_DETECT_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEAL_HEADER = 32, SEAL_MAC = 16, SEAL_OVERHEAD = SEAL_HEADER + SEAL_MAC };
enum seal_kind { SEAL_DATAGRAM = 1, SEAL_HELLO, SEAL_PROBE, SEAL_VERBS, SEAL_QUESTION, SEAL_ANSWER };

struct seal {
    uint64_t job_id;
    uint8_t key[32];
    int self;
    uint32_t incarnation;
};

/* False if libsodium cannot be used. */
bool seal_init(struct seal *s, uint64_t job_id, const uint8_t secret[32], int self, uint32_t incarnation);
/* number: 1, 2, ... of ours to that node. out: len + SEAL_OVERHEAD bytes. Returns that length. */
size_t seal_close(const struct seal *s, enum seal_kind kind, int to, uint64_t number, const void *data, size_t len,
                  uint8_t *out);

struct seal_opened {
    enum seal_kind kind;
    int from;
    uint32_t incarnation;
    uint64_t number;
    const uint8_t *content; /* in `in` */
    size_t len;
};
/* False if it is not of this job, or not for us. */
bool seal_open(const struct seal *s, const uint8_t *in, size_t in_len, struct seal_opened *out);

/* The numbers seen of one sender. What is more than 63 behind the newest counts as seen: it was on its way for so long
 * that others have been sent since. All zero at first. */
struct seal_window {
    uint64_t newest;
    uint64_t seen; /* bit k: newest - k */
};
/* False for a number that was there before. */
bool seal_window_take(struct seal_window *w, uint64_t number);
#endif
