/* abort RANK[,RANK...] CODE [early|stubborn]: the named ranks call keel_abort while the others compute, wait in a
 * barrier and accumulate. early: before keel_init. stubborn: who computes does not mind a SIGTERM. If nobody ends the
 * job the others do after a while (WORK_S seconds, from the environment), by themselves. */
#include <keel/keel.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORK_SECONDS = 60, BEFORE_US = 30000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void expect_ok(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "abort: rank %d: %s: %s\n", keel_rank(), what, keel_status_text(status));
    fflush(NULL);
    _exit(4);
}

static int is_named(const char *list, int rank)
{
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (atoi(at) == rank)
            return 1;
    return 0;
}

static _Noreturn void give_up(int rank, int code)
{
    char message[64];
    snprintf(message, sizeof message, "abort: rank %d gives up", rank);
    keel_abort(code, message);
}

/* Never calls Keel. */
static void compute(double until)
{
    volatile double x = 1;
    while (now() < until)
        x = x * 1.000001;
}

static void accumulate(keel_segment *segment, double until)
{
    const double one = 1;
    while (now() < until)
        for (int r = 0; r < keel_size(); r++)
            expect_ok(keel_acc_double(segment, r, 0, 1.0, &one, 1), "acc");
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: abort RANK[,RANK...] CODE [early|stubborn]\n");
        return 2;
    }
    const char *how = argc > 3 ? argv[3] : "";
    int code = atoi(argv[2]), early = strcmp(how, "early") == 0, stubborn = strcmp(how, "stubborn") == 0;
    if (stubborn)
        signal(SIGTERM, SIG_IGN);
    const char *rank_text = getenv("KEEL_RANK");
    if (early && rank_text && is_named(argv[1], atoi(rank_text)))
        give_up(atoi(rank_text), code);
    keel_segment *segment;
    uint64_t done = 0;
    expect_ok(keel_init(), "init");
    expect_ok(keel_segment_alloc(sizeof(double), KEEL_REDUNDANCY_SHADOW, &segment), "alloc");
    if (keel_restarted())
        expect_ok(keel_resume(&done), "resume");
    if (done == 0)
        expect_ok(keel_barrier(), "barrier");
    const char *work_s = getenv("WORK_S");
    double until = now() + (work_s ? atoi(work_s) : WORK_SECONDS);
    if (!early && is_named(argv[1], keel_rank())) {
        usleep(BEFORE_US);
        give_up(keel_rank(), code);
    }
    if (keel_rank() % 3 == 0)
        compute(until);
    else if (keel_rank() % 3 == 1)
        accumulate(segment, until);
    expect_ok(keel_barrier(), "last barrier");
    printf("abort: rank %d was not ended\n", keel_rank());
    fflush(stdout);
    expect_ok(keel_finalize(), "finalize");
    return 0;
}
