#include "apps/npb/outcome.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

void outcome_add(struct outcome *out, const char *name, double computed, double published, double tolerance)
{
    assert(out->nchecks < OUTCOME_CHECKS_MAX);
    struct check *check = &out->checks[out->nchecks++];
    *check = (struct check){.computed = computed, .published = published, .tolerance = tolerance};
    snprintf(check->name, sizeof check->name, "%s", name);
}

/* Of no number (NaN) it is false. */
static bool check_holds(const struct check *check)
{
    return fabs(check->computed - check->published) <= check->tolerance * fabs(check->published);
}

bool outcome_verified(const struct outcome *out)
{
    for (int i = 0; i < out->nchecks; i++)
        if (!check_holds(&out->checks[i]))
            return false;
    return out->nchecks > 0;
}

void outcome_print(const struct outcome *out, FILE *to)
{
    fprintf(to, "size        %s\niterations  %d\n", out->size, out->iterations);
    fprintf(to, "traffic     %" PRIu64 " puts, %" PRIu64 " bytes; %" PRIu64 " reductions, %" PRIu64 " gathers\n",
            out->puts, out->bytes, out->sums, out->gathers);
    fprintf(to, "time        %.3f s\nspeed       %.2f Mop/s\n", out->seconds, out->mops);
    for (int i = 0; i < out->nchecks; i++) {
        const struct check *check = &out->checks[i];
        fprintf(to, "%-11s %.17g (published %.15g, tolerance %g): %s\n", check->name, check->computed, check->published,
                check->tolerance, check_holds(check) ? "right" : "wrong");
    }
    fprintf(to, "verification %s\n", outcome_verified(out) ? "successful" : "failed");
}
