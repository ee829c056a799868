#include "apps/hpccg/solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANE_TAG = 27 };

/* ---- planes of neighbours ---- */

static void send_plane(struct solve *s, int rank, const double *plane, size_t bytes)
{
    const char *at = (const char *)plane;
    for (size_t done = 0; done < bytes; s->sent++) {
        size_t len = bytes - done < KEEL_MESSAGE_MAX ? bytes - done : KEEL_MESSAGE_MAX;
        must(keel_message_send(rank, PLANE_TAG, at + done, len), "sending a plane");
        done += len;
        s->bytes += len;
    }
}

/* Pieces of the planes of both neighbours, in the order in which they come: either may be first. One that is an
 * exchange ahead has not sent yet what belongs to the next: it needs ours first, and waits at the sum. */
static void receive_planes(int below, int above, double *lower, double *upper, size_t bytes)
{
    size_t left_below = below >= 0 ? bytes : 0, left_above = above >= 0 ? bytes : 0;
    static unsigned char piece[KEEL_MESSAGE_MAX];
    while (left_below || left_above) {
        size_t len;
        int from;
        must(keel_message_receive(KEEL_ANY_RANK, PLANE_TAG, piece, sizeof piece, &len, &from), "receiving a plane");
        size_t *left = from == below ? &left_below : &left_above;
        char *plane = (char *)(from == below ? lower : upper);
        if ((from != below && from != above) || len > *left)
            must(KEEL_ERR_MISMATCH, "a plane of the wrong neighbour or length");
        memcpy(plane + bytes - *left, piece, len);
        *left -= len;
    }
}

/* v [problem_reach]: its own points are there. */
static void exchange(const struct problem *p, struct solve *s, double *v)
{
    int below = keel_rank() - 1, above = keel_rank() + 1 < keel_size() ? keel_rank() + 1 : -1;
    size_t bytes = p->plane * sizeof *v;
    if (below >= 0)
        send_plane(s, below, v + p->plane, bytes);
    if (above >= 0)
        send_plane(s, above, v + p->rows, bytes);
    receive_planes(below, above, v, v + p->plane + p->rows, bytes);
}

/* ---- sums and vectors ---- */

/* In the order of ranks, so that the bits depend on their number alone. */
static double sum_all(double mine)
{
    double *all = reserve((size_t)keel_size(), sizeof *all), sum = 0;
    must(keel_group_allgather(keel_group_world(), &mine, all, sizeof mine), "terms of a sum");
    for (int r = 0; r < keel_size(); r++)
        sum += all[r];
    keel_local_free(all);
    return sum;
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum_all(sum);
}

/* out = a + factor * b; out may be either. */
static void add(size_t n, const double *a, double factor, const double *b, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + factor * b[i];
}

static double largest_error(const double *x, size_t n)
{
    double error = 0, *all = reserve((size_t)keel_size(), sizeof *all);
    for (size_t i = 0; i < n; i++)
        error = fabs(x[i] - 1) <= error ? error : fabs(x[i] - 1); /* of no number, too */
    must(keel_group_allgather(keel_group_world(), &error, all, sizeof error), "the largest error");
    for (int r = 0; r < keel_size(); r++)
        error = all[r] <= error ? error : all[r];
    keel_local_free(all);
    return error;
}

void solve(const struct problem *p, int iterations, double tolerance, struct solve *out)
{
    size_t n = p->rows;
    double *x = reserve(n, sizeof *x), *r = reserve(n, sizeof *r), *q = reserve(n, sizeof *q);
    double *reach = reserve(problem_reach(p), sizeof *reach), *direction = reach + p->plane;
    memcpy(r, p->right, n * sizeof *r);
    double rho = dot(r, r, n), length = sqrt(rho), before = rho;
    *out = (struct solve){.residual = 1};
    while (out->iterations < iterations && out->residual > tolerance) {
        add(n, r, out->iterations ? rho / before : 0, direction, direction);
        exchange(p, out, reach);
        problem_multiply(p, reach, q);
        double alpha = rho / dot(direction, q, n);
        add(n, x, alpha, direction, x);
        add(n, r, -alpha, q, r);
        before = rho;
        rho = dot(r, r, n);
        out->residual = sqrt(rho) / length;
        keel_timestep((uint64_t)++out->iterations);
    }
    out->error = largest_error(x, n);
    keel_local_free(x);
    keel_local_free(r);
    keel_local_free(q);
    keel_local_free(reach);
}
