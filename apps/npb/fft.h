/* Discrete Fourier transforms of a length that is a power of two, many lines at a time. */
#ifndef KEEL_NPB_FFT_H
#define KEEL_NPB_FFT_H

#include <stddef.h>

struct complex_number {
    double re, im;
};

enum { FFT_LENGTH_MAX = 256, FFT_LINES = 16 };

/* A length and its roots of unity. */
struct fft {
    size_t n;
    struct complex_number roots[FFT_LENGTH_MAX / 2]; /* e^(-2 pi i j / n) */
};

enum fft_sign { FFT_FORWARD = -1, FFT_BACKWARD = 1 }; /* of the exponent; neither divides by n */

/* n is a power of two, at most FFT_LENGTH_MAX. */
void fft_init(size_t n, struct fft *out);

/* Where the k-th element of line j is: k * element + j * line numbers further. */
struct fft_stride {
    size_t element, line;
};

/* Transform `lines` lines (at most FFT_LINES) from src to dst, which may be the same memory with the same strides. One
 * thread at a time. */
void fft_lines(const struct fft *fft, enum fft_sign sign, const struct complex_number *src, struct fft_stride from,
               struct complex_number *dst, struct fft_stride to, size_t lines);

#endif
