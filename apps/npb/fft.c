/* Stockham's form of the fast transform: each pass writes its results where the next one reads them in order, so no
 * bit-reversal is needed. Lines lie side by side, element by element: the innermost loop runs over neighbours in
 * memory. */
#include "apps/npb/fft.h"

#include <assert.h>
#include <math.h>

void fft_init(size_t n, struct fft *out)
{
    assert(n > 0 && n <= FFT_LENGTH_MAX && (n & (n - 1)) == 0);
    out->n = n;
    for (size_t j = 0; j < n / 2; j++) {
        double angle = -2 * M_PI * (double)j / (double)n;
        out->roots[j] = (struct complex_number){cos(angle), sin(angle)};
    }
}

/* Sums go to y0 and differences, turned by w, to y1; each of count neighbours. */
static void butterfly(const struct complex_number *restrict x0, const struct complex_number *restrict x1,
                      struct complex_number w, struct complex_number *restrict y0, struct complex_number *restrict y1,
                      size_t count)
{
    for (size_t t = 0; t < count; t++) {
        double re = x0[t].re - x1[t].re, im = x0[t].im - x1[t].im;
        y0[t].re = x0[t].re + x1[t].re;
        y0[t].im = x0[t].im + x1[t].im;
        y1[t].re = w.re * re - w.im * im;
        y1[t].im = w.re * im + w.im * re;
    }
}

/* Before a pass there are `parts` interleaved transforms of length 2 * half left to do for each line. */
static void pass(const struct fft *fft, enum fft_sign sign, const struct complex_number *x, struct complex_number *y,
                 size_t half, size_t parts, size_t lines)
{
    size_t run = parts * lines;
    for (size_t j = 0; j < half; j++) {
        struct complex_number w = fft->roots[j * parts];
        if (sign == FFT_BACKWARD)
            w.im = -w.im;
        butterfly(x + j * run, x + (j + half) * run, w, y + 2 * j * run, y + (2 * j + 1) * run, run);
    }
}

void fft_lines(const struct fft *fft, enum fft_sign sign, const struct complex_number *src, struct fft_stride from,
               struct complex_number *dst, struct fft_stride to, size_t lines)
{
    static struct complex_number rooms[2][FFT_LENGTH_MAX * FFT_LINES];
    struct complex_number *x = rooms[0], *y = rooms[1];
    assert(lines <= FFT_LINES);
    for (size_t k = 0; k < fft->n; k++)
        for (size_t j = 0; j < lines; j++)
            x[k * lines + j] = src[k * from.element + j * from.line];
    for (size_t half = fft->n / 2, parts = 1; half > 0; half /= 2, parts *= 2) {
        pass(fft, sign, x, y, half, parts, lines);
        struct complex_number *read = x;
        x = y;
        y = read;
    }
    for (size_t k = 0; k < fft->n; k++)
        for (size_t j = 0; j < lines; j++)
            dst[k * to.element + j * to.line] = x[k * lines + j];
}
