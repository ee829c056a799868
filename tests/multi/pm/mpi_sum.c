/* A plain MPI program: every rank must see the same sum, also as a broadcast from the last rank.
 * "abort": rank 1 aborts.  "crash": it crashes.  "wait": between MPI_Init and the rest they wait for the file
 * $DIR/go. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for_go(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/go", getenv("DIR"));
    while (access(path, F_OK) != 0)
        usleep(20000);
}

int main(int argc, char **argv)
{
    int rank, size, sum, last;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        printf("begin %d\n", rank);
        fflush(stdout);
        wait_for_go();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    last = rank == size - 1 ? sum : -1;
    MPI_Bcast(&last, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    printf("rank %d of %d sum %d\n", rank, size, last);
    if (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (argc > 1 && strcmp(argv[1], "crash") == 0 && rank == 1)
        raise(SIGSEGV);
    MPI_Finalize();
    return sum == size * (size - 1) / 2 && last == sum ? 0 : 1;
}
