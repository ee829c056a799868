/* The matrices of the programs that multiply: A(i, j) = i + 2 j, B(i, j) = i - j. Their product is known in closed
 * form, and all its values are whole numbers. */
#ifndef KEEL_APPS_GA_PRODUCT_H
#define KEEL_APPS_GA_PRODUCT_H

static inline double a_of(int i, int j)
{
    return i + 2.0 * j;
}

static inline double b_of(int i, int j)
{
    return i - (double)j;
}

static inline double c_of(int n, int i, int j)
{
    double s0 = n, s1 = n * (n - 1.0) / 2, s2 = (n - 1.0) * n * (2 * n - 1.0) / 6;
    return i * s1 - (double)i * j * s0 + 2 * s2 - 2.0 * j * s1;
}

#endif
