/* What a kernel has computed, and whether it is what was published. */
#ifndef KEEL_NPB_OUTCOME_H
#define KEEL_NPB_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct check {
    char name[16];
    double computed, published;
    double tolerance; /* relative to the published value; 0: the same */
};

enum { OUTCOME_CHECKS_MAX = 16 };

struct outcome {
    char size[48];
    int iterations;
    double seconds, mops;                /* mops: millions of the operations that the specification counts, a second */
    uint64_t puts, bytes, sums, gathers; /* of all ranks, in the time that was taken */
    int nchecks;
    struct check checks[OUTCOME_CHECKS_MAX];
};

void outcome_add(struct outcome *out, const char *name, double computed, double published, double tolerance);
/* All checks hold, and there is one. */
bool outcome_verified(const struct outcome *out);
/* The report; computed values with all their digits, so that two runs can be compared to the bit. */
void outcome_print(const struct outcome *out, FILE *to);

#endif
