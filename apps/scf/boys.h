/* The Boys function F_m(x) = integral of t^2m exp(-x t^2) over t in 0..1, to a relative error near 1e-14. */
#ifndef KEEL_SCF_BOYS_H
#define KEEL_SCF_BOYS_H

enum { BOYS_M_MAX = 10 }; /* four d shells need 8, and the kinetic part none */

/* Fill out[0..m] with F_0(x) .. F_m(x); x >= 0, m <= BOYS_M_MAX. Any thread; the first call makes the table. */
void boys(int m, double x, double *out);

#endif
