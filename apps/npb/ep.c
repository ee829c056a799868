/* EP, embarrassingly parallel: pairs of normal deviates from uniform ones by the polar method, their sums, and how
 * many fall into each square ring. No rank needs another before the end. */
#include "apps/npb/kernel.h"
#include "apps/npb/random.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 1 << 16, RINGS = 10, TERMS = RINGS + 2 };

#define EP_SEED UINT64_C(271828183)

static const struct {
    int log_pairs;
    double sum_x, sum_y;
} classes[CLASSES] = {[CLASS_S] = {24, -3.247834652034740e3, -6.958407078382297e3},
                      [CLASS_W] = {25, -2.863319731645753e3, -6.320053679109499e3},
                      [CLASS_A] = {28, -4.295875165629892e3, -1.580732573678431e4}};

/* Adds what the batch of pairs gives: the number in each ring, and the two sums behind them. */
static void batch(size_t number, double terms[TERMS])
{
    struct random random = random_at(EP_SEED, 2 * (uint64_t)BATCH * number);
    for (int i = 0; i < BATCH; i++) {
        double x = 2 * random_next(&random) - 1;
        double y = 2 * random_next(&random) - 1;
        double t = x * x + y * y;
        if (t > 1)
            continue;
        double scale = sqrt(-2 * log(t) / t);
        x *= scale;
        y *= scale;
        terms[(int)fmax(fabs(x), fabs(y))] += 1;
        terms[RINGS] += x;
        terms[RINGS + 1] += y;
    }
}

static bool fits(const struct npb *npb, struct npb_complaint *why)
{
    int most = 1 << (classes[npb->class].log_pairs - 16);
    return npb->size <= most || npb_complain(why, "class %c of EP has work for at most %d ranks, not %d",
                                             npb_class_names[npb->class], most, npb->size);
}

static void run(struct npb *npb, struct outcome *out)
{
    size_t pairs = (size_t)1 << classes[npb->class].log_pairs;
    struct share mine = share_of(pairs / BATCH, npb->size, npb->rank);
    double terms[TERMS] = {0};
    npb_start(npb);
    for (size_t b = mine.first; b < mine.first + mine.count; b++)
        batch(b, terms);
    npb_sum(npb, terms, TERMS);
    npb_stop(npb, out);

    snprintf(out->size, sizeof out->size, "%zu pairs", pairs);
    out->iterations = 1;
    out->mops = 2e-6 * (double)pairs / out->seconds;
    outcome_add(out, "sum of x", terms[RINGS], classes[npb->class].sum_x, 1e-8);
    outcome_add(out, "sum of y", terms[RINGS + 1], classes[npb->class].sum_y, 1e-8);
}

const struct npb_kernel npb_ep = {"ep", fits, run};
