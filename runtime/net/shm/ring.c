#include "runtime/net/shm/ring.h"

#include <string.h>

#include "runtime/net/transport.h"

enum { HEADER = sizeof(uint64_t) };

#define KIND_MESSAGE (1ull << 32)
#define KIND_PAD (2ull << 32)
#define LENGTH_MASK 0xffffffffull

static_assert(RING_BYTES >= 3 * TP_BULK_MAX, "room for the largest message and its padding");
static_assert((RING_BYTES & (RING_BYTES - 1)) == 0, "positions are masked");

static size_t record_size(size_t len)
{
    return HEADER + ((len + 7) & ~(size_t)7);
}

static _Atomic uint64_t *header_at(const struct ring *ring, uint64_t position)
{
    return (_Atomic uint64_t *)(uintptr_t)(ring->bytes + (position & (RING_BYTES - 1)));
}

static size_t to_end(uint64_t position)
{
    return RING_BYTES - (size_t)(position & (RING_BYTES - 1));
}

/* Bytes a record of this size takes from the ring, padding and the following header word included. */
static size_t needed(const struct ring_tx *tx, size_t size)
{
    size_t left = to_end(tx->head);
    return (size > left ? left : 0) + size + HEADER;
}

static enum ring_result room_for(struct ring_tx *tx, size_t need)
{
    if (tx->head + need - tx->tail_seen <= RING_BYTES)
        return RING_OK;
    tx->tail_seen = atomic_load_explicit(&tx->ring->tail, memory_order_seq_cst);
    if (tx->head - tx->tail_seen > RING_BYTES) {
        tx->tail_seen = tx->head;
        return RING_BROKEN;
    }
    return tx->head + need - tx->tail_seen <= RING_BYTES ? RING_OK : RING_NONE;
}

enum ring_result ring_put(struct ring_tx *tx, const void *header, size_t hlen, const void *body, size_t len,
                          bool *ring_bell)
{
    struct ring *ring = tx->ring;
    size_t size = record_size(hlen + len), left = to_end(tx->head);
    enum ring_result room = room_for(tx, needed(tx, size));
    if (room != RING_OK)
        return room;
    bool pad = size > left;
    uint64_t first = tx->head, at = pad ? first + left : first;
    uint8_t *bytes = (uint8_t *)header_at(ring, at) + HEADER;
    if (hlen)
        memcpy(bytes, header, hlen);
    if (len)
        memcpy(bytes + hlen, body, len);
    tx->head = at + size;
    atomic_store_explicit(header_at(ring, tx->head), 0, memory_order_relaxed);
    uint64_t word = KIND_MESSAGE | (hlen + len);
    if (pad) {
        atomic_store_explicit(header_at(ring, at), word, memory_order_relaxed);
        word = KIND_PAD;
    }
    atomic_store_explicit(header_at(ring, first), word, memory_order_seq_cst); /* now it is visible */
    *ring_bell = atomic_load_explicit(&ring->sleeping, memory_order_seq_cst) &&
                 atomic_exchange_explicit(&ring->sleeping, 0, memory_order_seq_cst);
    return RING_OK;
}

enum ring_result ring_take(struct ring_rx *rx, void *to, size_t room, size_t *len)
{
    struct ring *ring = rx->ring;
    *len = 0;
    uint64_t word = atomic_load_explicit(header_at(ring, rx->tail), memory_order_acquire);
    if (word == 0)
        return RING_NONE;
    if (word == KIND_PAD) {
        rx->tail += to_end(rx->tail);
        word = atomic_load_explicit(header_at(ring, rx->tail), memory_order_acquire);
    }
    size_t size = (size_t)(word & LENGTH_MASK);
    if ((word & ~LENGTH_MASK) != KIND_MESSAGE || size > TP_BULK_MAX || record_size(size) > to_end(rx->tail))
        return RING_BROKEN;
    *len = size;
    if (size > room)
        return RING_NONE;
    memcpy(to, (uint8_t *)header_at(ring, rx->tail) + HEADER, size);
    rx->tail += record_size(size);
    return RING_OK;
}

bool ring_publish(struct ring_rx *rx)
{
    atomic_store_explicit(&rx->ring->tail, rx->tail, memory_order_seq_cst);
    return atomic_load_explicit(&rx->ring->starved, memory_order_seq_cst) &&
           atomic_exchange_explicit(&rx->ring->starved, 0, memory_order_seq_cst);
}

bool ring_has_record(const struct ring_rx *rx)
{
    return atomic_load_explicit(header_at(rx->ring, rx->tail), memory_order_seq_cst) != 0;
}

bool ring_sleep(struct ring_rx *rx)
{
    atomic_store_explicit(&rx->ring->sleeping, 1, memory_order_seq_cst);
    return !ring_has_record(rx);
}

void ring_awake(struct ring_rx *rx)
{
    atomic_store_explicit(&rx->ring->sleeping, 0, memory_order_relaxed);
}

bool ring_starve(struct ring_tx *tx, size_t len)
{
    atomic_store_explicit(&tx->ring->starved, 1, memory_order_seq_cst);
    return room_for(tx, needed(tx, record_size(len))) == RING_NONE;
}

void ring_fed(struct ring_tx *tx)
{
    atomic_store_explicit(&tx->ring->starved, 0, memory_order_relaxed);
}
