/* armci-loss WHERE HOW VICTIM: a program that has not called keel_survive loses a process, and must never come to a
 * result with exit code 0 (armci_loss.py). The process VICTIM is killed (HOW: rank), takes its node along (node), ends
 * with 0 (exit) or with 3 (code), while the others
 *   start    are on their way into MPI_Init          mpi      wait in MPI, where it never comes
 *   init     are on their way into ARMCI_Init        compute  are outside all libraries for a second, and then sum
 *   sum      are in collectives                      final    have left ARMCI, and are in MPI_Finalize
 *   get      get what is the victim's */
#include <armci.h>
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 200, PROCESSES_MAX = 16 };

static const char *where, *way;
static int victim;

/* Before ARMCI_Init. */
static int rank(void)
{
    const char *text = getenv("KEEL_RANK"); /* a spare's process has none yet */
    return text ? atoi(text) : -1;
}

#define EXPECT_WHO rank()
#include "../lib/expect.h"

static void lose(void)
{
    if (strcmp(way, "node") == 0)
        (void)kill(getppid(), SIGKILL); /* the agent */
    if (strcmp(way, "rank") == 0)
        (void)raise(SIGKILL);
    if (strcmp(way, "node") != 0)
        _exit(strcmp(way, "code") == 0 ? 3 : 0);
    while (1)
        (void)pause();
}

/* The victim's end, where the program has come to this place. */
static void at(const char *place, int me)
{
    if (strcmp(where, place) == 0 && me == victim)
        lose();
}

/* As who computes, in no call of a library's, but without taking the processor from who must find out. */
static void compute(void)
{
    for (struct timespec left = {.tv_sec = 1}; nanosleep(&left, &left) != 0;)
        continue;
}

static double step(double **base, int n, int i, int me)
{
    double one = 1, mine = 0;
    if (i == STEPS / 2) {
        at("sum", me);
        at("get", me);
        at("mpi", me);
        at("compute", me);
        if (strcmp(where, "mpi") == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        if (strcmp(where, "compute") == 0)
            compute();
    }
    EXPECT(ARMCI_Get(base[(me + i) % n], &mine, sizeof mine, (me + i) % n) == 0);
    if (strcmp(where, "sum") == 0)
        armci_msg_dgop(&one, 1, "+");
    return mine + one / n;
}

int main(int argc, char **argv)
{
    void *base[PROCESSES_MAX];
    double energy = 0;
    EXPECT(argc == 4);
    where = argv[1];
    way = argv[2];
    victim = atoi(argv[3]);
    at("start", rank());
    EXPECT(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    at("init", rank());
    EXPECT(ARMCI_Init() == 0);
    const int me = armci_msg_me(), n = armci_msg_nproc();
    EXPECT(n <= PROCESSES_MAX && ARMCI_Malloc(base, sizeof energy) == 0);
    *(double *)base[me] = 0;
    armci_msg_barrier();
    for (int i = 0; i < STEPS; i++)
        energy += step((double **)base, n, i, me);
    armci_msg_dgop(&energy, 1, "+");
    EXPECT(ARMCI_Finalize() == 0);
    at("final", me);
    EXPECT(MPI_Finalize() == MPI_SUCCESS);
    if (me == (victim ? 0 : n - 1))
        printf("energy %.3f\n", energy);
    return 0;
}
