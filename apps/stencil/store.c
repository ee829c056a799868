#include "apps/stencil/store.h"

#include "apps/lib/must.h"

enum { DONE_AT = 0, CHANGED_AT = 16, HEARD_AT = 64, FIELD_AT = 4096 };

static size_t field_at(const struct store *s, int64_t sweeps)
{
    return FIELD_AT + (size_t)(sweeps % 2) * s->block_bytes;
}

static size_t halo_at(const struct store *s, int direction, int64_t sweeps)
{
    return FIELD_AT + 2 * s->block_bytes + (size_t)(2 * direction + sweeps % 2) * s->halo_bytes;
}

static size_t heard_at(int direction)
{
    return HEARD_AT + 8 * (size_t)direction;
}

static size_t told_at(const struct store *s, int rank)
{
    return FIELD_AT + 2 * s->block_bytes + 2 * STENCIL_DIRECTIONS * s->halo_bytes + sizeof(int64_t) * (size_t)rank;
}

static int64_t read_word(const struct store *s, int rank, size_t at)
{
    int64_t word;
    must(keel_get(s->segment, rank, at, &word, sizeof word), "reading what a rank has");
    return word;
}

void store_open(struct store *s, const struct field *f, int64_t look, keel_redundancy redundancy)
{
    int rank = keel_rank();
    *s = (struct store){.field = f, .look = look, .block = block_of(f, rank)};
    s->block_bytes = (field_largest_block(f) * sizeof(double) + 63) & ~(size_t)63;
    s->halo_bytes = (field_largest_halo(f) * sizeof(double) + 63) & ~(size_t)63;
    s->row = reserve(s->halo_bytes, 1);
    must(keel_segment_alloc(told_at(s, keel_size()), redundancy, &s->segment), "allocating the field");
    if (!keel_restarted())
        return;
    s->done = read_word(s, rank, DONE_AT);
    for (int d = 0; d < STENCIL_DIRECTIONS; d++)
        if (s->block.neighbour[d] >= 0)
            s->sent[d] = read_word(s, s->block.neighbour[d], heard_at(direction_back(d)));
}

void store_close(struct store *s)
{
    must(keel_segment_free(s->segment), "freeing the field");
    keel_local_free(s->row);
}

void store_load(const struct store *s, double *cells)
{
    must(keel_get(s->segment, keel_rank(), field_at(s, s->done), cells, block_size(&s->block) * sizeof *cells),
         "reading the block");
}

static size_t changed_at(const struct store *s, int64_t sweeps)
{
    return CHANGED_AT + 8 * (size_t)(sweeps / s->look % 2);
}

void store_save(struct store *s, const double *cells, int64_t sweeps, double changed)
{
    int rank = keel_rank();
    if (sweeps % s->look == 0)
        must(keel_put(s->segment, rank, changed_at(s, sweeps), &changed, sizeof changed), "storing what changed");
    must(keel_put(s->segment, rank, field_at(s, sweeps), cells, block_size(&s->block) * sizeof *cells),
         "storing the block");
    must(keel_put(s->segment, rank, DONE_AT, &sweeps, sizeof sweeps), "storing how far it is");
    s->done = sweeps;
}

static void give(struct store *s, const double *cells, int direction)
{
    struct box box = block_given(&s->block, direction);
    size_t n = box_pack(&s->block, &box, cells, s->row);
    int back = direction_back(direction);
    must(keel_put_signal(s->segment, s->block.neighbour[direction], halo_at(s, back, s->done), s->row,
                         n * sizeof *s->row, heard_at(back), 1),
         "giving a halo");
    s->sent[direction] = s->done + 1;
}

static void take(struct store *s, double *cells, int direction)
{
    must(keel_wait_until(s->segment, heard_at(direction), KEEL_GT, s->done, s->block.neighbour[direction], NULL),
         "waiting for a halo");
    struct box box = block_taken(&s->block, direction);
    must(keel_get(s->segment, keel_rank(), halo_at(s, direction, s->done), s->row, box_cells(&box) * sizeof *s->row),
         "taking a halo");
    box_unpack(&s->block, &box, cells, s->row);
}

void store_exchange(struct store *s, double *cells)
{
    for (int d = 0; d < STENCIL_DIRECTIONS; d++)
        if (s->block.neighbour[d] >= 0 && s->sent[d] <= s->done)
            give(s, cells, d);
    for (int d = 0; d < STENCIL_DIRECTIONS; d++)
        if (s->block.neighbour[d] >= 0)
            take(s, cells, d);
}

double store_changed(const struct store *s)
{
    double changed;
    must(keel_get(s->segment, keel_rank(), changed_at(s, s->done), &changed, sizeof changed), "reading what changed");
    return changed;
}

/* Who does it again, in a dead one's place, tells the same. The put sets the word, the signal adds nothing to it and
 * lets go who waits. */
static void tell_all(const struct store *s)
{
    int me = keel_rank();
    for (int rank = 0; rank < keel_size(); rank++)
        if (rank != me)
            must(keel_put_signal(s->segment, rank, told_at(s, me), &s->done, sizeof s->done, told_at(s, me), 0),
                 "telling how far it is");
}

double store_changed_all(const struct store *s)
{
    double sum = 0, changed;
    tell_all(s);
    for (int rank = 0; rank < keel_size(); rank++) {
        if (rank != keel_rank())
            must(keel_wait_until(s->segment, told_at(s, rank), KEEL_GE, s->done, rank, NULL),
                 "waiting for what a rank's sweep changed");
        must(keel_get(s->segment, rank, changed_at(s, s->done), &changed, sizeof changed), "reading what changed");
        sum += changed;
    }
    return sum;
}

const double *store_read(struct store *s, int rank, int64_t sweeps)
{
    static double *cells;
    if (!cells)
        cells = reserve(s->block_bytes, 1);
    struct block b = block_of(s->field, rank);
    if (read_word(s, rank, DONE_AT) != sweeps)
        must(KEEL_ERR_RANK_DEAD, "a rank has died before its last sweep, and nobody took its place");
    must(keel_get(s->segment, rank, field_at(s, sweeps), cells, block_size(&b) * sizeof *cells), "reading a block");
    return cells;
}
