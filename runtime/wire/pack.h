/* The body of a message with many pieces of one operation (REQUEST_F_PACKED): how many there are and how many bytes
 * they have in all, then of each where it lies from the message's offset on and its length, then, but for a get, the
 * bytes of all, one after the other. Pure. */
#ifndef KEEL_WIRE_PACK_H
#define KEEL_WIRE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/limits.h"

enum {
    PACK_BODY_MAX = WIRE_BULK_MAX, /* bytes of a body, and of the pieces that a get is answered with */
    PACK_RUNS_MAX = 4096,          /* pieces of a message */
};

/* The first is not a piece: at is their number, len their bytes. */
struct pack_run {
    uint32_t at, len;
};

struct pack {
    const uint8_t *table; /* the first piece's */
    const uint8_t *data;  /* of a get: NULL */
    uint32_t runs, bytes;
};

/* Bytes of the body before the data. */
static inline size_t pack_head(size_t runs)
{
    return (runs + 1) * sizeof(struct pack_run);
}

/* What is being written into a body of PACK_BODY_MAX bytes. */
struct pack_writer {
    uint8_t *body;
    size_t runs, bytes;
};

/* The body has room for another piece of len bytes. */
bool pack_has_room(size_t runs, size_t bytes, size_t len);
/* How many there will be. */
void pack_begin(struct pack_writer *w, void *body, size_t runs);
/* The next piece; data: NULL for a get. */
void pack_add(struct pack_writer *w, uint64_t at, const void *data, size_t len);
/* All were added; bytes of the body. */
size_t pack_end(struct pack_writer *w, bool with_data);

/* False: it is no such body. */
bool pack_open(struct pack *p, const void *body, size_t len, bool with_data);
/* Does each piece lie within room bytes, at a multiple of align, and consist of elements of size bytes? */
bool pack_fits(const struct pack *p, uint64_t room, size_t align, size_t size);
struct pack_run pack_run(const struct pack *p, uint32_t i);
/* Bytes from the message's offset to behind the last piece. */
uint64_t pack_reach(const struct pack *p);
/* The data to where the pieces lie, and back. */
void pack_scatter(const struct pack *p, uint8_t *base);
void pack_gather(const struct pack *p, const uint8_t *base, uint8_t *data);
/* A body with the same pieces and what lies there now. */
void pack_again(const struct pack *p, const uint8_t *base, uint8_t *body);
#endif
