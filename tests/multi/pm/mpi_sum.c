/* A plain MPI program: every rank must see the same sum, also as a broadcast from the last rank. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum, last;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    last = rank == size - 1 ? sum : -1;
    MPI_Bcast(&last, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    printf("rank %d of %d sum %d\n", rank, size, last);
    if (argc > 1 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Finalize();
    return sum == size * (size - 1) / 2 && last == sum ? 0 : 1;
}
