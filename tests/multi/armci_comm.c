/* armci-comm part|refused|early: ARMCI for the processes of a communicator.
 *   part      without keelrun: process 0 of MPI's has no part in it, the others are numbered backwards
 *   refused   under keelrun: the same communicator, and none, are no job; a copy of MPI_COMM_WORLD is
 *   early     before MPI runs there is no communicator but MPI_COMM_WORLD */
#include <armci.h>

#include <stdio.h>
#include <string.h>

#define EXPECT_WHO me
#include "../lib/expect.h"

static int me, n;

/* Numbers, sums, puts, and the communicators of the world and of a group are those of comm. */
static void use(MPI_Comm comm)
{
    void *base[64];
    int wanted, size, sum = 1, same, list[2] = {1, 0};
    ARMCI_Group world, two;
    MPI_Comm_rank(comm, &wanted);
    MPI_Comm_size(comm, &size);
    me = armci_msg_me();
    n = armci_msg_nproc();
    EXPECT(me == wanted && n == size && n > 1);
    EXPECT(ARMCI_Init_mpi_comm(comm) == 0 && ARMCI_Init() == 0); /* it is started already */
    armci_msg_igop(&sum, 1, "+");
    EXPECT(sum == n);
    EXPECT(ARMCI_Malloc(base, 8) == 0 && ARMCI_PutValueLong(10 + me, base[(me + 1) % n], (me + 1) % n) == 0);
    ARMCI_Barrier();
    EXPECT(ARMCI_GetValueLong(base[me], me) == 10 + (me + n - 1) % n);
    EXPECT(ARMCI_Free(base[me]) == 0);
    ARMCI_Group_get_world(&world);
    MPI_Comm_compare(world.comm, comm, &same);
    EXPECT(same == MPI_IDENT);
    if (me < 2) {
        ARMCI_Group_create(2, list, &two);
        MPI_Comm_rank(two.comm, &wanted);
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, two.comm);
        EXPECT(wanted == 1 - me && two.rank == wanted && sum == 2 * n);
        ARMCI_Group_free(&two);
    }
    EXPECT(ARMCI_Finalize() == 0);
    if (me == 0)
        puts("right");
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    MPI_Comm part, all;
    int rank;
    if (strcmp(mode, "early") == 0)
        return ARMCI_Init_mpi_comm(MPI_COMM_SELF) == 1 && ARMCI_Init_mpi_comm(MPI_COMM_WORLD) == 0 &&
                       armci_msg_nproc() == 3 && ARMCI_Finalize() == 0
                   ? 0
                   : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank ? 1 : MPI_UNDEFINED, -rank, &part);
    if (strcmp(mode, "part") == 0 && rank) {
        EXPECT(ARMCI_Init_mpi_comm(part) == 0);
        use(part);
    } else if (strcmp(mode, "refused") == 0) {
        EXPECT(ARMCI_Init_mpi_comm(part) == 1 && ARMCI_Init_mpi_comm(MPI_COMM_NULL) == 1 && !ARMCI_Initialized());
        MPI_Comm_dup(MPI_COMM_WORLD, &all);
        EXPECT(ARMCI_Init_mpi_comm(all) == 0);
        use(all);
        MPI_Comm_free(&all);
    }
    if (rank)
        MPI_Comm_free(&part);
    MPI_Finalize();
    return 0;
}
