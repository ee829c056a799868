#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "apps/npb/fft.h"
#include "apps/npb/random.h"

enum { LENGTH = 128, LINES = 5 };

static struct complex_number data[LENGTH * FFT_LINES], out[LENGTH * FFT_LINES], back[LENGTH * FFT_LINES];

static void fill(size_t count)
{
    struct random random = random_at(RANDOM_SEED, 0);
    for (size_t i = 0; i < count; i++) {
        data[i].re = random_next(&random) - 0.5;
        data[i].im = random_next(&random) - 0.5;
    }
}

/* As it is defined, one element of one line. */
static struct complex_number element(size_t n, int sign, struct fft_stride stride, size_t line, size_t k)
{
    struct complex_number sum = {0, 0};
    for (size_t j = 0; j < n; j++) {
        double angle = sign * 2 * M_PI * (double)(j * k % n) / (double)n;
        struct complex_number x = data[j * stride.element + line * stride.line];
        sum.re += x.re * cos(angle) - x.im * sin(angle);
        sum.im += x.re * sin(angle) + x.im * cos(angle);
    }
    return sum;
}

static void expect_near(struct complex_number got, struct complex_number want)
{
    if (hypot(got.re - want.re, got.im - want.im) > 1e-12)
        fail_msg("%.17g%+.17gi is not %.17g%+.17gi", got.re, got.im, want.re, want.im);
}

static void expect_definition(size_t n, enum fft_sign sign, struct fft_stride from, struct fft_stride to)
{
    struct fft fft;
    fft_init(n, &fft);
    fill(n * LINES);
    memset(out, 0, sizeof out);
    fft_lines(&fft, sign, data, from, out, to, LINES);
    for (size_t line = 0; line < LINES; line++)
        for (size_t k = 0; k < n; k++)
            expect_near(out[k * to.element + line * to.line], element(n, sign, from, line, k));
}

static void test_fft_of_each_length_is_what_is_defined(void **state)
{
    (void)state;
    for (size_t n = 1; n <= LENGTH; n *= 2) {
        struct fft_stride rows = {1, n}, columns = {LINES, 1};
        expect_definition(n, FFT_FORWARD, rows, rows);
        expect_definition(n, FFT_BACKWARD, columns, columns);
        expect_definition(n, FFT_FORWARD, columns, rows);
    }
}

static void test_fft_there_and_back_in_place_is_n_times_the_lines(void **state)
{
    (void)state;
    struct fft fft;
    struct fft_stride stride = {FFT_LINES, 1};
    fft_init(LENGTH, &fft);
    fill(LENGTH * FFT_LINES);
    memcpy(back, data, sizeof back);
    fft_lines(&fft, FFT_FORWARD, back, stride, back, stride, FFT_LINES);
    fft_lines(&fft, FFT_BACKWARD, back, stride, back, stride, FFT_LINES);
    for (size_t i = 0; i < LENGTH * FFT_LINES; i++)
        expect_near((struct complex_number){back[i].re / LENGTH, back[i].im / LENGTH}, data[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fft_of_each_length_is_what_is_defined),
        cmocka_unit_test(test_fft_there_and_back_in_place_is_n_times_the_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
