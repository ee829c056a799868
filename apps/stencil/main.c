/* keel-stencil: Jacobi sweeps over a field under keelrun. A rank stores its block after each sweep, so that a process
 * that takes a dead one's place goes on from the last; the bits of the result are those of a run in which nothing
 * dies. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/lib/must.h"
#include "apps/stencil/options.h"
#include "apps/stencil/picture.h"
#include "apps/stencil/store.h"

enum { EXIT_CANNOT = 2, SHOW_WIDTH = 64 };

struct run {
    const struct stencil_options *options;
    struct field field;
    struct store store;
    double *cells, *next; /* the block after store.done sweeps, and room for the next */
    double change;        /* root of the mean square of what the sweep before the last look changed */
    bool settled;
};

/* Has this collective, the n-th of the program, been completed by all that lived then? */
static bool was_done(int64_t n)
{
    return keel_collective_count() >= (uint64_t)n;
}

/* All look whether the field has settled, by what each rank has stored, in the order of the ranks: a collective would
 * leave out who has just died, and its place would not hear what came out. */
static void look(struct run *r, double changed)
{
    double cells = 1, sum = keel_size() > 1 ? store_changed_all(&r->store) : changed;
    for (int d = 0; d < STENCIL_DIMS; d++)
        cells *= r->field.cells[d];
    r->change = sqrt(sum / cells);
    r->settled = r->change <= r->options->tolerance;
}

static void pause_for(int ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void work(struct run *r)
{
    const struct stencil_options *o = r->options;
    struct store *s = &r->store;
    double changed = s->done > 0 ? store_changed(s) : 0;
    for (;;) {
        if (s->done > 0 && s->done % o->look == 0)
            look(r, changed);
        if (r->settled || s->done == o->sweeps)
            return;
        if (o->pause_ms > 0)
            pause_for(o->pause_ms);
        keel_timestep((uint64_t)s->done);
        (void)keel_move(); /* what it has is in the segment: this process may end here */
        store_exchange(s, r->cells);
        changed = sweep(o->stencil, &s->block, r->cells, r->next);
        store_save(s, r->next, s->done + 1, changed);
        double *old = r->cells;
        r->cells = r->next;
        r->next = old;
    }
}

static void begin(struct run *r)
{
    struct store *s = &r->store;
    store_open(s, &r->field, r->options->look, r->options->redundancy);
    must(keel_resume(NULL), "taking part");
    size_t bytes = block_size(&s->block) * sizeof *r->cells;
    r->cells = reserve(bytes, 1);
    r->next = reserve(bytes, 1);
    sweep_begin(&r->field, &s->block, r->cells);
    memcpy(r->next, r->cells, bytes);
    if (s->done > 0)
        store_load(s, r->cells);
    must(keel_event(keel_restarted() ? "stencil_back" : "stencil_begun", s->done, NULL), "event");
}

/* A number for a cell's place and bits (the finisher of SplitMix64, twice). */
static uint64_t mix(uint64_t at, double value)
{
    uint64_t h;
    memcpy(&h, &value, sizeof h);
    for (int i = 0; i < 2; i++) {
        h += 0x9e3779b97f4a7c15 * (at + 1);
        h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
        h = (h ^ h >> 27) * 0x94d049bb133111eb;
        h ^= h >> 31;
    }
    return h;
}

/* The layer that pictures show, and a number that any other bit in any cell changes, whoever has it. */
static uint64_t gather(struct run *r, double *layer)
{
    uint64_t sum = 0;
    const int *cells = r->field.cells;
    for (int rank = 0; rank < keel_size(); rank++) {
        struct block b = block_of(&r->field, rank);
        const double *its = store_read(&r->store, rank, r->store.done);
        for (int i = 0; i < b.cells[0]; i++) {
            for (int j = 0; j < b.cells[1]; j++) {
                const double *row = its + block_index(&b, i + 1, j + 1, 1);
                uint64_t line = (uint64_t)(b.first[0] + i) * (uint64_t)cells[1] + (uint64_t)(b.first[1] + j);
                for (int k = 0; k < b.cells[2]; k++)
                    sum += mix(line * (uint64_t)cells[2] + (uint64_t)(b.first[2] + k), row[k]);
                int k = cells[2] / 2 - b.first[2];
                if (k >= 0 && k < b.cells[2])
                    layer[line] = row[k];
            }
        }
    }
    return sum;
}

/* Rank 0 tells what came out. False: the picture cannot be written. */
static bool tell(struct run *r, double seconds)
{
    const struct stencil_options *o = r->options;
    const int *cells = r->field.cells, *ranks = r->field.ranks;
    double *layer = reserve((size_t)cells[0] * (size_t)cells[1], sizeof *layer);
    uint64_t sum = gather(r, layer);
    printf("%s: %dx%dx%d cells on %dx%dx%d ranks, %lld sweeps%s, %.1f million cells a second\n",
           stencil_name(o->stencil), cells[0], cells[1], cells[2], ranks[0], ranks[1], ranks[2],
           (long long)r->store.done, r->settled ? ", settled" : "",
           1e-6 * cells[0] * cells[1] * cells[2] * (double)r->store.done / seconds);
    printf("field %016llx\n", (unsigned long long)sum);
    if (o->show)
        picture_show(stdout, layer, cells[0], cells[1], SHOW_WIDTH);
    fflush(stdout);
    bool good = !o->png || picture_png(o->png, layer, cells[0], cells[1]);
    if (!good)
        fprintf(stderr, "keel-stencil: %s: %s\n", o->png, errno ? strerror(errno) : "cannot be written");
    keel_local_free(layer);
    return good;
}

/* A process that takes the place of one that has died behind the last barrier: all is told, and the field freed. */
static int leave(void)
{
    must(keel_resume(NULL), "taking part");
    must(keel_finalize(), "end");
    return 0;
}

static int run(const struct stencil_options *options, const struct field *field)
{
    if (was_done(2))
        return leave();
    struct run r = {.options = options, .field = *field};
    double begun = now();
    begin(&r);
    work(&r);
    if (!was_done(1))
        must(keel_barrier(), "waiting for all blocks");
    bool good = keel_rank() != 0 || tell(&r, now() - begun);
    if (!was_done(2))
        must(keel_barrier(), "waiting for rank 0");
    store_close(&r.store);
    keel_local_free(r.cells);
    keel_local_free(r.next);
    must(keel_finalize(), "end");
    return good ? 0 : 1;
}

/* Rank 0 says why; nobody leaves before, since the first rank to leave with a code ends the job. */
static int cannot(const char *why)
{
    if (keel_rank() == 0)
        fprintf(stderr, "keel-stencil: %s\n", why);
    must(keel_resume(NULL), "taking part");
    must(keel_barrier(), "waiting for all");
    must(keel_finalize(), "end");
    return EXIT_CANNOT;
}

int main(int argc, char **argv)
{
    struct stencil_options options;
    char why[200];
    bool good = stencil_options_parse(argc, argv, &options, why);
    keel_status status = keel_init();
    if (status != KEEL_OK) {
        fprintf(stderr, "keel-stencil: %s\n",
                status == KEEL_ERR_NOT_LAUNCHED && !good ? why : keel_status_text(status));
        return EXIT_CANNOT;
    }
    if (!good)
        return cannot(why);
    struct field field = {.dims = stencil_dims(options.stencil),
                          .periodic = options.periodic,
                          .corners = stencil_has_corners(options.stencil)};
    memcpy(field.cells, options.cells, sizeof field.cells);
    keel_grid grid;
    int64_t extent[STENCIL_DIMS];
    field_extent(&field, extent);
    if (keel_grid_make(field.dims, extent, &grid) != KEEL_OK || !field_arrange(&field, &grid))
        return cannot("the field cannot be cut into a block for each rank: more cells, or fewer ranks");
    static const keel_pattern_kind patterns[] = {[STENCIL_5P] = KEEL_PATTERN_5P,
                                                 [STENCIL_9P] = KEEL_PATTERN_9P,
                                                 [STENCIL_7P] = KEEL_PATTERN_7P,
                                                 [STENCIL_27P] = KEEL_PATTERN_27P};
    must(keel_pattern(patterns[options.stencil], field_largest_halo(&field) * sizeof(double)), "declaring a pattern");
    return run(&options, &field);
}
