/* What becomes of a program when a process dies. One that is not written for it is ended, so that no wrong number goes
 * unnoticed: by Keel, which is told so before anything else (keel_need_all), with one line, whatever its processes are
 * doing. Who comes to the end of a collective, or to an error, before it is ended goes no further. Who ends by itself
 * is no death to Keel: that the others lack it is found here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "armci/armci_int.h"

static uint64_t seen;                           /* the view up to which deaths were looked at */
static bool any, leaving;                       /* any: a process is missing */
static const char *not_done = "ARMCI_Finalize"; /* by who has ended */

/* As soon as the library is there: a process may die before ARMCI_Init, and the others wait for it in MPI_Init. */
__attribute__((constructor)) static void need_all(void)
{
    keel_need_all();
}

static void wait_to_be_ended(unsigned seconds)
{
    while (seconds > 0)
        seconds = sleep(seconds);
}

/* The agents know of the death, and end the job with a line. In this call nobody comes to a result. */
static _Noreturn void be_ended(const keel_failure *f)
{
    enum { QUIET_S = 1, LONG_S = 10 }; /* a node that cannot end its processes is itself at its end */
    char line[200];
    wait_to_be_ended(QUIET_S);
    fprintf(stderr, "rank %d: process %d died on node %d; waiting for the agent of node %d to end the program\n",
            keel_rank(), f->rank, f->node, keel_rank_node(keel_rank()));
    wait_to_be_ended(LONG_S - QUIET_S);
    snprintf(line, sizeof line, "rank %d: process %d died on node %d; the program has not called keel_survive and ends",
             keel_rank(), f->rank, f->node);
    keel_abort(1, line);
}

/* All who meet find the same: the first one says it, at once. */
static _Noreturn void end_by_end(int rank, const char *without)
{
    char line[200];
    for (int r = 0; r < keel_rank(); r++)
        if (keel_rank_alive(r)) {
            wait_to_be_ended(1);
            break;
        }
    snprintf(line, sizeof line,
             "rank %d: process %d ended without %s; the program has not called keel_survive and ends", keel_rank(),
             rank, without);
    keel_abort(1, line);
}

static void is_missing(int rank, const char *without)
{
    if (!keel_survives())
        end_by_end(rank, without);
    any = true;
}

/* ARMCI_Finalize is collective: before it has begun here, no process has left the job by it. */
static void look_for_who_has_ended(void)
{
    for (int r = 0; r < keel_size() && !leaving; r++) {
        keel_verdict verdict = KEEL_ALIVE;
        if (keel_rank_status(r, 0, &verdict) == KEEL_OK && verdict == KEEL_RANK_ENDED)
            is_missing(r, not_done);
    }
}

/* Who has ended after the last ARMCI_Finalize is seen by the first collective. */
void armci_loss_again(void)
{
    leaving = false;
    seen = 0;
    not_done = "the ARMCI_Init of the others";
}

/* All who live meet before the end, which does not look for who has ended any more: some leave before the others. */
void armci_loss_meet(const char *end)
{
    leaving = true;
    int64_t here = 1, *came = calloc((size_t)keel_size(), sizeof *came);
    if (!came)
        armci_end(end, keel_rank(), "out of memory");
    keel_status status = keel_group_allgather(keel_group_world(), &here, came, sizeof here);
    armci_loss_look();
    if (status != KEEL_OK) {
        char line[200];
        snprintf(line, sizeof line, "rank %d: %s: %s", keel_rank(), end, keel_status_text(status));
        keel_abort(1, line);
    }
    for (int r = 0; r < keel_size(); r++)
        if (!came[r])
            is_missing(r, end);
    free(came);
}

void armci_loss_look(void)
{
    if (keel_view_epoch() == seen)
        return;
    size_t n = 0, max = (size_t)keel_node_count() + (size_t)keel_size();
    keel_failure *f = malloc(max * sizeof *f);
    if (!f)
        armci_end("a collective", keel_rank(), "out of memory");
    keel_status status = keel_failures(seen, f, max, &n, &seen);
    if (status != KEEL_OK)
        armci_end("a collective", keel_rank(), keel_status_text(status));
    for (size_t i = 0; i < n; i++) {
        any = any || f[i].rank >= 0;
        if (f[i].rank >= 0 && !keel_survives())
            be_ended(&f[i]);
    }
    free(f);
    look_for_who_has_ended();
}

void armci_loss_lacks(const keel_group *g, const int *ranks, int n)
{
    for (int i = 0; i < n; i++) {
        if (keel_group_from_world(g, ranks[i]) >= 0)
            continue;
        armci_loss_look();
        is_missing(ranks[i], "ARMCI_Finalize");
    }
}

/* MPI's own end waits for all processes, also for those that end or die before it is over: so all meet before, and who
 * does not come is told of. It is left out after a loss, and by programs that go on after losses; the processes end all
 * the same. Where a death ends the program one is told of it while it waits here. */
#pragma weak PMPI_Finalize
ARMCI_EXPORT int MPI_Finalize(void)
{
    const bool in_job = armci_stays(), goes_on = in_job && keel_survives();
    if (in_job && !goes_on && PMPI_Finalize)
        armci_loss_meet("MPI_Finalize");
    armci_waits_fini();
    int code = any || goes_on || !PMPI_Finalize ? 0 : PMPI_Finalize();
    armci_leave();
    return code;
}
