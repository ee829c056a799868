/* One direction of a same-node connection: a single-producer, single-consumer ring of records in shared memory.
 *
 * A record is a header word and its bytes, 8-aligned and contiguous; a pad record skips to the start of the ring. A
 * header word of 0 means "nothing here yet". The producer writes the bytes, puts 0 where the following record will
 * start, and stores the header last: one cache line carries a short message, and a producer that dies half-way leaves
 * nothing visible. The consumer only ever writes `tail`. Neither side waits for the other, so either may be killed or
 * frozen at any instruction.
 *
 * Sleeping. The consumer stores `sleeping` = 1, then looks at the ring once more; the producer stores the header, then
 * looks at `sleeping`. All four accesses are sequentially consistent, so they have one total order, and at least one
 * side sees the other's store: either the consumer finds the record and does not sleep, or the producer finds it asleep
 * and rings the doorbell. `starved` is the same with the roles exchanged, for a producer that waits for room.
 *
 * Trust. The other side is a user's process and may scribble: positions of our own are private, every word read from
 * the ring is read once and checked, and a wrong one makes the call return RING_BROKEN. */
#ifndef KEEL_NET_SHM_RING_H
#define KEEL_NET_SHM_RING_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RING_BYTES = 512 * 1024 };

/* Shared. Zero-filled memory is an empty ring. */
struct ring {
    alignas(64) _Atomic uint64_t tail;     /* bytes consumed since the start; writer: consumer */
    alignas(64) _Atomic uint32_t sleeping; /* set by the consumer, cleared by both */
    _Atomic uint32_t starved;              /* set by the producer, cleared by both */
    alignas(64) uint8_t bytes[RING_BYTES];
};
static_assert(sizeof(struct ring) == 128 + RING_BYTES, "shared between processes");

/* Private to the producer. */
struct ring_tx {
    struct ring *ring;
    uint64_t head;      /* bytes produced since the start */
    uint64_t tail_seen; /* the consumer's tail when we last looked */
};

/* Private to the consumer. */
struct ring_rx {
    struct ring *ring;
    uint64_t tail;
};

enum ring_result { RING_OK, RING_NONE, RING_BROKEN };

/* Append one record gathered from two places. RING_NONE: no room now. *ring_bell: the consumer sleeps, wake it. */
enum ring_result ring_put(struct ring_tx *tx, const void *header, size_t hlen, const void *body, size_t len,
                          bool *ring_bell);
/* Copy the next record to `to`, which has room for `room` bytes. RING_NONE: there is none, or it does not fit
 * (*len tells its size, 0 if there is none). The room it took is given back by ring_publish. */
enum ring_result ring_take(struct ring_rx *rx, void *to, size_t room, size_t *len);
/* Tell the producer how far we are. true: the producer waits for room, ring its bell. */
bool ring_publish(struct ring_rx *rx);
bool ring_has_record(const struct ring_rx *rx);
/* Consumer: about to sleep; false if there is a record already. */
bool ring_sleep(struct ring_rx *rx);
void ring_awake(struct ring_rx *rx);
/* Producer: about to sleep until there is room for a record of len bytes; false if there is room already. */
bool ring_starve(struct ring_tx *tx, size_t len);
void ring_fed(struct ring_tx *tx);
#endif
