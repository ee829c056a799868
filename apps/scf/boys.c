/* The highest order comes from a Taylor series about the nearest point of a table (dF_m/dx = -F_{m+1}), the lower ones
 * by the downward recursion F_m = (2x F_{m+1} + exp(-x)) / (2m + 1), whose terms are positive, so that it loses
 * nothing. With points 1/16 apart the first neglected term is below (1/32)^7 / 7! = 6e-15 of the value. Beyond the
 * table erf(sqrt x) is 1 to the last bit, so F_0 = sqrt(pi / x) / 2 and the upward recursion is stable. */
#include "apps/scf/boys.h"

#include <math.h>
#include <pthread.h>

enum { STEPS_PER_UNIT = 16, X_END = 40, TERMS = 7, POINTS = STEPS_PER_UNIT * X_END + 1, ORDERS = BOYS_M_MAX + TERMS };

static double table[POINTS][ORDERS];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* F_m(x) = exp(-x) sum_i (2x)^i / ((2m+1)(2m+3)...(2m+2i+1)); all terms positive. */
static long double boys_series(int m, long double x)
{
    long double term = 1.0L / (2 * m + 1), sum = term;
    for (int i = 1; term > sum * 1e-20L; i++) {
        term *= 2 * x / (2 * m + 2 * i + 1);
        sum += term;
    }
    return expl(-x) * sum;
}

static void table_fill(void)
{
    for (int p = 0; p < POINTS; p++) {
        long double x = (long double)p / STEPS_PER_UNIT, f = boys_series(ORDERS - 1, x);
        for (int m = ORDERS - 1; m >= 0; m--) {
            table[p][m] = (double)f;
            f = (2 * x * f + expl(-x)) / (2 * m - 1);
        }
    }
}

void boys(int m, double x, double *out)
{
    pthread_once(&table_once, table_fill);
    if (x >= X_END) {
        double e = exp(-x), half = 0.5 / x;
        out[0] = sqrt(M_PI * half * 0.5);
        for (int i = 0; i < m; i++)
            out[i + 1] = ((2 * i + 1) * out[i] - e) * half;
        return;
    }
    int p = (int)(x * STEPS_PER_UNIT + 0.5);
    double d = (double)p / STEPS_PER_UNIT - x;
    const double *row = &table[p][m];
    double sum = row[6];
    sum = row[5] + d * (1.0 / 6) * sum;
    sum = row[4] + d * (1.0 / 5) * sum;
    sum = row[3] + d * (1.0 / 4) * sum;
    sum = row[2] + d * (1.0 / 3) * sum;
    sum = row[1] + d * (1.0 / 2) * sum;
    out[m] = row[0] + d * sum;
    if (m == 0)
        return;
    double e = exp(-x);
    for (int i = m - 1; i >= 0; i--)
        out[i] = (2 * x * out[i + 1] + e) / (2 * i + 1);
}
