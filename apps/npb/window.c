#include "apps/npb/window.h"

#include <stdlib.h>

enum { WORD = sizeof(int64_t), LINE = 64 };

/* An allocation or a free that a stopped process keeps waiting goes on when it is called again. */
static keel_status allocate(size_t bytes, keel_redundancy redundancy, keel_segment **out)
{
    keel_status status;
    do
        status = keel_segment_alloc(bytes, redundancy, out);
    while (status == KEEL_ERR_TIMEOUT);
    return status;
}

static keel_status give_back(keel_segment *segment)
{
    keel_status status;
    do
        status = keel_segment_free(segment);
    while (status == KEEL_ERR_TIMEOUT);
    return status;
}

void window_open(struct npb *npb, int lanes, size_t bytes, struct window *out)
{
    size_t base = ((size_t)lanes * WORD + LINE - 1) / LINE * LINE;
    *out = (struct window){.npb = npb, .base = base, .expected = reserve((size_t)lanes, sizeof(int64_t))};
    must(allocate(base + bytes, npb->redundancy, &out->segment), "memory that others put into");
    const unsigned char *part = keel_address(out->segment, npb->rank);
    if (part == NULL)
        must(KEEL_ERR_NOMEM, "the address of this rank's own part");
    out->received = part + base;
}

void window_close(struct window *window)
{
    must(give_back(window->segment), "giving back memory that others put into");
    keel_local_free(window->expected);
}

static void count(struct npb *npb, size_t bytes)
{
    npb->puts++;
    npb->bytes += bytes;
}

void window_put(struct window *window, int rank, int lane, size_t offset, const void *src, size_t bytes)
{
    count(window->npb, bytes);
    must(keel_put_signal(window->segment, rank, window->base + offset, src, bytes, (size_t)lane * WORD, 1), "put");
}

void window_put_pieces(struct window *window, int rank, int lane, size_t offset, const void *src, struct pieces pieces)
{
    keel_strided shape = {.levels = 1,
                          .count = {pieces.bytes, pieces.count},
                          .global_stride = {pieces.there},
                          .local_stride = {pieces.here}};
    count(window->npb, pieces.bytes * pieces.count);
    must(keel_put_strided(window->segment, rank, window->base + offset, src, &shape), "put of pieces");
    must(keel_signal(window->segment, rank, (size_t)lane * WORD, 1), "signal");
}

void window_wait(struct window *window, int lane, int from)
{
    int64_t until = ++window->expected[lane];
    must(keel_wait_until(window->segment, (size_t)lane * WORD, KEEL_GE, until, from, NULL), "waiting for a put");
}

void window_wait_all(struct window *window)
{
    for (int r = 0; r < window->npb->size; r++)
        window_wait(window, r, r);
}
