/* FT: a heat equation in a periodic box, solved in the space of frequencies. Ranks have slabs of planes z. After the
 * transforms in x and y each puts to each the rows y that it is to have with all z; after the one in z, the other
 * way round. */
#include "apps/npb/fft.h"
#include "apps/npb/kernel.h"
#include "apps/npb/random.h"
#include "apps/npb/window.h"

#include <math.h>
#include <stdio.h>

enum { STEPS = 6, SAMPLES = 1024 };
#define DIFFUSION 1e-6

typedef struct complex_number number;

static const struct {
    size_t nx, ny, nz;
} classes[CLASSES] = {[CLASS_S] = {64, 64, 64}, [CLASS_W] = {128, 128, 32}, [CLASS_A] = {256, 256, 128}};

/* Checksums after each step. */
static const number published[CLASSES][STEPS] = {[CLASS_S] = {{554.6087004964, 484.5363331978},
                                                              {554.6385409189, 486.5304269511},
                                                              {554.6148406171, 488.3910722336},
                                                              {554.5423607415, 490.1273169046},
                                                              {554.4255039624, 491.7475857993},
                                                              {554.2683411902, 493.2597244941}},
                                                 [CLASS_W] = {{567.3612178944, 529.3246849175},
                                                              {563.1436885271, 528.2149986629},
                                                              {559.4024089970, 527.0996558037},
                                                              {556.0698047020, 526.0027904925},
                                                              {553.0898991250, 524.9400845633},
                                                              {550.4159734538, 523.9212247086}},
                                                 [CLASS_A] = {{504.6735008193, 511.4047905510},
                                                              {505.9412319734, 509.8809666433},
                                                              {506.9376896287, 509.8144042213},
                                                              {507.7892868474, 510.1336130759},
                                                              {508.5233095391, 510.4914655194},
                                                              {509.1487099959, 510.7917842803}}};

struct ft {
    struct npb *npb;
    size_t nx, ny, nz;
    struct share planes, rows; /* z with all y; y with all z */
    struct fft x, y, z;
    number *spectrum, *work;          /* [nz][rows][nx]; that, or [planes][ny][nx] */
    double *damp_x, *damp_y, *damp_z; /* what a step leaves of each frequency */
    struct window window;             /* one of the two shapes; lane r brings what rank r has */
};

static void reset(struct ft *ft)
{
    struct random random = random_at(RANDOM_SEED, 2 * ft->planes.first * ft->ny * ft->nx);
    for (size_t i = 0; i < ft->planes.count * ft->ny * ft->nx; i++) {
        ft->work[i].re = random_next(&random);
        ft->work[i].im = random_next(&random);
    }
}

/* In place, all rows of a plane. */
static void transform_x(const struct ft *ft, enum fft_sign sign, number *plane)
{
    struct fft_stride stride = {1, ft->nx};
    for (size_t y = 0; y < ft->ny; y += FFT_LINES) {
        size_t lines = ft->ny - y < FFT_LINES ? ft->ny - y : FFT_LINES;
        fft_lines(&ft->x, sign, plane + y * ft->nx, stride, plane + y * ft->nx, stride, lines);
    }
}

/* Along the slow one of two directions, in which neighbours are `width` numbers apart. */
static void transform_slow(const struct fft *fft, enum fft_sign sign, const number *src, number *dst, size_t width)
{
    struct fft_stride stride = {width, 1};
    for (size_t i = 0; i < width; i += FFT_LINES) {
        size_t lines = width - i < FFT_LINES ? width - i : FFT_LINES;
        fft_lines(fft, sign, src + i, stride, dst + i, stride, lines);
    }
}

/* work, planes of this rank, to the windows as rows of their ranks. */
static void planes_to_rows(struct ft *ft)
{
    for (int i = 0; i < ft->npb->size; i++) { /* each begins with another one */
        int to = (ft->npb->rank + i) % ft->npb->size;
        struct share rows = share_of(ft->ny, ft->npb->size, to);
        size_t piece = rows.count * ft->nx * sizeof(number);
        struct pieces pieces = {piece, ft->planes.count, ft->ny * ft->nx * sizeof(number), piece};
        window_put_pieces(&ft->window, to, ft->npb->rank, ft->planes.first * piece, ft->work + rows.first * ft->nx,
                          pieces);
    }
    window_wait_all(&ft->window);
}

/* work, rows of this rank, to the windows as planes of their ranks. */
static void rows_to_planes(struct ft *ft)
{
    size_t row = ft->nx * sizeof(number), piece = ft->rows.count * row;
    for (int i = 0; i < ft->npb->size; i++) {
        int to = (ft->npb->rank + i) % ft->npb->size;
        struct share planes = share_of(ft->nz, ft->npb->size, to);
        struct pieces pieces = {piece, planes.count, piece, ft->ny * row};
        window_put_pieces(&ft->window, to, ft->npb->rank, ft->rows.first * row,
                          ft->work + planes.first * ft->rows.count * ft->nx, pieces);
    }
    window_wait_all(&ft->window);
}

static void to_frequencies(struct ft *ft)
{
    for (size_t z = 0; z < ft->planes.count; z++) {
        number *plane = ft->work + z * ft->ny * ft->nx;
        transform_x(ft, FFT_FORWARD, plane);
        transform_slow(&ft->y, FFT_FORWARD, plane, plane, ft->nx);
    }
    planes_to_rows(ft);
    transform_slow(&ft->z, FFT_FORWARD, ft->window.received, ft->spectrum, ft->rows.count * ft->nx);
}

static void to_space(struct ft *ft)
{
    transform_slow(&ft->z, FFT_BACKWARD, ft->spectrum, ft->work, ft->rows.count * ft->nx);
    rows_to_planes(ft);
    for (size_t z = 0; z < ft->planes.count; z++) {
        size_t at = z * ft->ny * ft->nx;
        transform_slow(&ft->y, FFT_BACKWARD, (const number *)ft->window.received + at, ft->work + at, ft->nx);
        transform_x(ft, FFT_BACKWARD, ft->work + at);
    }
}

/* One step of time. */
static void evolve(struct ft *ft)
{
    number *at = ft->spectrum;
    for (size_t z = 0; z < ft->nz; z++)
        for (size_t y = ft->rows.first; y < ft->rows.first + ft->rows.count; y++) {
            double damp = ft->damp_z[z] * ft->damp_y[y];
            for (size_t x = 0; x < ft->nx; x++, at++) {
                at->re *= damp * ft->damp_x[x];
                at->im *= damp * ft->damp_x[x];
            }
        }
}

/* Over 1024 places that are spread over the box. All ranks have read their windows when it returns. */
static number checksum(struct ft *ft)
{
    double sums[2] = {0}, volume = (double)(ft->nx * ft->ny * ft->nz);
    for (size_t j = 1; j <= SAMPLES; j++) {
        size_t x = j % ft->nx, y = 3 * j % ft->ny,
               z = 5 * j % ft->nz - ft->planes.first; /* wraps if it is before them */
        if (z >= ft->planes.count)
            continue;
        const number *at = &ft->work[(z * ft->ny + y) * ft->nx + x];
        sums[0] += at->re;
        sums[1] += at->im;
    }
    npb_sum(ft->npb, sums, 2);
    return (number){sums[0] / volume, sums[1] / volume};
}

/* Frequencies of the upper half are negative. */
static double *damping(size_t n)
{
    double *out = reserve(n, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        double k = i < n / 2 ? (double)i : (double)i - (double)n;
        out[i] = exp(-4 * DIFFUSION * M_PI * M_PI * k * k);
    }
    return out;
}

static void prepare(struct npb *npb, struct ft *ft)
{
    size_t nx = classes[npb->class].nx, ny = classes[npb->class].ny, nz = classes[npb->class].nz;
    struct share most_planes = share_of(nz, npb->size, 0), most_rows = share_of(ny, npb->size, 0);
    size_t planes = most_planes.count * ny * nx, rows = nz * most_rows.count * nx, room = planes > rows ? planes : rows;
    *ft = (struct ft){.npb = npb,
                      .nx = nx,
                      .ny = ny,
                      .nz = nz,
                      .planes = share_of(nz, npb->size, npb->rank),
                      .rows = share_of(ny, npb->size, npb->rank),
                      .spectrum = reserve(rows, sizeof(number)),
                      .work = reserve(room, sizeof(number)),
                      .damp_x = damping(nx),
                      .damp_y = damping(ny),
                      .damp_z = damping(nz)};
    fft_init(nx, &ft->x);
    fft_init(ny, &ft->y);
    fft_init(nz, &ft->z);
    window_open(npb, npb->size, room * sizeof(number), &ft->window);
}

static void discard(struct ft *ft)
{
    window_close(&ft->window);
    keel_local_free(ft->spectrum);
    keel_local_free(ft->work);
    keel_local_free(ft->damp_x);
    keel_local_free(ft->damp_y);
    keel_local_free(ft->damp_z);
}

static bool fits(const struct npb *npb, struct npb_complaint *why)
{
    size_t most = classes[npb->class].nz < classes[npb->class].ny ? classes[npb->class].nz : classes[npb->class].ny;
    return (size_t)npb->size <= most || npb_complain(why, "class %c of FT has planes for at most %zu ranks, not %d",
                                                     npb_class_names[npb->class], most, npb->size);
}

static double operations(double volume)
{
    return volume * (14.8157 + 7.19641 * log(volume) + (5.23518 + 7.21113 * log(volume)) * STEPS);
}

static void run(struct npb *npb, struct outcome *out)
{
    struct ft *ft = reserve(1, sizeof *ft);
    number sums[STEPS];
    prepare(npb, ft);
    npb_start(npb);
    reset(ft);
    to_frequencies(ft);
    npb_barrier(); /* all have read what came: the next exchange may overwrite it */
    for (int step = 0; step < STEPS; step++) {
        keel_timestep((uint64_t)step + 1);
        evolve(ft);
        to_space(ft);
        sums[step] = checksum(ft);
    }
    npb_stop(npb, out);
    double volume = (double)(ft->nx * ft->ny * ft->nz);
    snprintf(out->size, sizeof out->size, "%zu x %zu x %zu", ft->nx, ft->ny, ft->nz);
    discard(ft);
    keel_local_free(ft);

    out->iterations = STEPS;
    out->mops = 1e-6 * operations(volume) / out->seconds;
    for (int step = 0; step < STEPS; step++) {
        char name[2][8];
        snprintf(name[0], sizeof name[0], "re %d", step + 1);
        snprintf(name[1], sizeof name[1], "im %d", step + 1);
        outcome_add(out, name[0], sums[step].re, published[npb->class][step].re, 1e-12);
        outcome_add(out, name[1], sums[step].im, published[npb->class][step].im, 1e-12);
    }
}

const struct npb_kernel npb_ft = {"ft", fits, run};
