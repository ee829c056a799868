/* Small dense matrices of doubles, row by row. LAPACK does what is hard. */
#ifndef KEEL_SCF_MATRIX_H
#define KEEL_SCF_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

/* One thread for each process: a rank is one core's share of the machine. Called once at the start. */
void matrix_use_one_thread(void);

/* Zeroed memory for rows x columns doubles; the program ends if there is none. free() it. */
double *matrix_new(int rows, int columns);
/* c (n x m) = a (n x k) b (k x m) */
void matrix_multiply(int n, int k, int m, const double *a, const double *b, double *c);
/* out (m x m) = x^T a x, a (n x n), x (n x m) */
void matrix_transform(int n, int m, const double *a, const double *x, double *out);
/* sum_ij a_ij b_ij */
double matrix_dot(size_t count, const double *a, const double *b);
double matrix_largest(size_t count, const double *a);

/* Eigenvalues (rising) and eigenvectors (in the columns of vectors) of the symmetric a. False if LAPACK does not
 * converge. */
bool matrix_eigen(int n, const double *a, double *values, double *vectors);
/* Solve a x = b for a general a (n x n), which is overwritten; b becomes x. False if a is singular to working
 * precision. */
bool matrix_solve(int n, double *a, double *b);
/* Canonical orthogonalisation: columns of x (n x *m) with x^T s x = 1. Combinations with an overlap eigenvalue below
 * smallest are dropped. x has room for n x n. */
bool matrix_orthogonaliser(int n, const double *s, double smallest, double *x, int *m);

#endif
