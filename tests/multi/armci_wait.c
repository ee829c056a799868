/* armci-wait HOW: process 3 dies, or ends, and the others go into MPI (armci_wait.py). Process 0 says when it comes
 * back. All but `mortal` have called keel_survive.
 *   barrier    a collective of all           create   a communicator of all, as BLACS's grids make
 *   dup        one of a communicator that has the dead process: of the last two
 *   recv       a message from it             wait     the same, not blocking, and MPI_Wait
 *   in         a collective, entered before it dies
 *   compute    nothing of MPI: they compute, for longer than the limit, and get to their end
 *   living     a message from process 1, which computes for longer than the limit: it comes
 *   mortal     it ends by itself, in a program that has not called keel_survive; a collective */
#include <armci.h>
#include <keel/job.h>
#include <mpi.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

enum { LAST = 3 };

static const char *way;

static bool is(const char *name)
{
    return strcmp(way, name) == 0;
}

static void compute(double seconds)
{
    volatile double x = 1;
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    const double end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;
    do {
        for (int i = 0; i < 1000000; i++)
            x = x * 1.0000001 + 1e-9;
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
    } while ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec < end);
}

static void go_into_mpi(int me, MPI_Comm pair, double limit_s)
{
    MPI_Comm made;
    MPI_Request request;
    int x = 0;
    if (is("barrier") || is("mortal") || is("in"))
        (void)MPI_Barrier(MPI_COMM_WORLD);
    if (is("create")) {
        MPI_Group all;
        EXPECT(MPI_Comm_group(MPI_COMM_WORLD, &all) == MPI_SUCCESS);
        (void)MPI_Comm_create(MPI_COMM_WORLD, all, &made);
    }
    if (is("dup") && me == LAST - 1)
        (void)MPI_Comm_dup(pair, &made);
    if (is("recv") && me == 0)
        (void)MPI_Recv(&x, 1, MPI_INT, LAST, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is("wait") && me == 0) {
        EXPECT(MPI_Irecv(&x, 1, MPI_INT, LAST, 7, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
        (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (is("compute"))
        compute(3 * limit_s);
    if (is("living") && me == 1) {
        compute(3 * limit_s);
        EXPECT(MPI_Send(&x, 1, MPI_INT, 0, 7, MPI_COMM_WORLD) == MPI_SUCCESS);
    }
    if (is("living") && me == 0)
        EXPECT(MPI_Recv(&x, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    MPI_Comm pair = MPI_COMM_NULL;
    const char *limit = getenv("KEEL_ARMCI_MPI_WAIT_S");
    EXPECT(argc == 2 && MPI_Init(&argc, &argv) == MPI_SUCCESS);
    way = argv[1];
    if (!is("mortal"))
        keel_survive();
    EXPECT(ARMCI_Init() == 0 && armci_msg_nproc() == LAST + 1);
    const int me = armci_msg_me();
    EXPECT(MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &pair) == MPI_SUCCESS);
    armci_msg_barrier();
    if (is("mortal")) /* all have left ARMCI's: nobody finds there that it has ended */
        (void)MPI_Barrier(MPI_COMM_WORLD);
    if (me == LAST) {
        if (is("in"))
            (void)sleep(2); /* for the others to be in it; if they are not it is only the other case */
        if (is("mortal"))
            _exit(0);
        (void)raise(SIGKILL);
    }
    while (!is("in") && keel_rank_alive(LAST))
        (void)usleep(1000);
    if (!is("in"))
        (void)sleep(2); /* the process that looks knows it, too */
    go_into_mpi(me, pair, limit ? atof(limit) : 0);
    double one = 1;
    armci_msg_dgop(&one, 1, "+");
    EXPECT(one == LAST);
    if (me == 0)
        printf("back\n");
    EXPECT(ARMCI_Finalize() == 0);
    return MPI_Finalize() != MPI_SUCCESS;
}
