/* keel-npb: a kernel of the NAS parallel benchmarks under keelrun. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/npb/kernel.h"
#include "apps/npb/options.h"

enum { EXIT_WRONG_RESULT = 1, EXIT_CANNOT = 2 };

/* Rank 0 says why; nobody leaves before, since the first rank to leave with a code ends the job. */
static int end(int code)
{
    npb_barrier();
    must(keel_finalize(), "end");
    return code;
}

static int run(struct npb *npb, const struct npb_kernel *kernel)
{
    static const char *const redundancies[] = {"no copies", "shadow copies", "triple copies"};
    struct outcome outcome = {0};
    kernel->run(npb, &outcome);
    if (npb->rank == 0) {
        printf("%c%c class %c, %d rank%s, %s\n", toupper(kernel->name[0]), toupper(kernel->name[1]),
               npb_class_names[npb->class], npb->size, npb->size == 1 ? "" : "s", redundancies[npb->redundancy]);
        outcome_print(&outcome, stdout);
        fflush(stdout);
    }
    keel_local_free(npb->terms);
    return end(outcome_verified(&outcome) ? 0 : EXIT_WRONG_RESULT);
}

int main(int argc, char **argv)
{
    struct npb_options options;
    struct npb_complaint why = {0};
    bool good = npb_options_parse(argc, argv, &options, &why);
    keel_need_all(); /* a kernel's ranks all have work that nobody else can do */
    keel_status status = keel_init();
    if (status != KEEL_OK) {
        fprintf(stderr, "keel-npb: %s\n",
                status == KEEL_ERR_NOT_LAUNCHED && !good ? why.text : keel_status_text(status));
        return EXIT_CANNOT;
    }
    must(keel_group_patience(keel_group_world(), true), "waiting for who stands still");
    struct npb npb = {
        .rank = keel_rank(), .size = keel_size(), .class = options.class, .redundancy = options.redundancy};
    if (!good || !options.kernel->fits(&npb, &why)) {
        if (npb.rank == 0)
            fprintf(stderr, "keel-npb: %s\n", why.text);
        return end(EXIT_CANNOT);
    }
    npb.terms = reserve((size_t)npb.size, NPB_SUM_MAX * sizeof(double));
    return run(&npb, options.kernel);
}
