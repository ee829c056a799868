/* Groups of the same members made again and again, with waiting for each other in between, so that some are at the next
 * one while others are at the last. Each creation ends in MPI, which makes the communicator: who has got on there
 * answers nobody in Keel. */
#include <armci.h>

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_WHO me
#include "../lib/expect.h"

enum { TIMES = 30, PROCESSES_MAX = 64, BYTES = 5000 };

static int me, n, all[PROCESSES_MAX];

static void with_memory(ARMCI_Group *g)
{
    void *base[PROCESSES_MAX];
    char out = (char)(me + 1), in = 0;
    int next = (me + 1) % n, before = (me + n - 1) % n;
    EXPECT(ARMCI_Malloc_group(base, BYTES, g) == 0);
    EXPECT(ARMCI_Put(&out, (char *)base[next] + BYTES - 1, 1, next) == 0);
    armci_msg_group_barrier(g);
    EXPECT(ARMCI_Get((char *)base[me] + BYTES - 1, &in, 1, me) == 0 && in == before + 1);
    EXPECT(ARMCI_Free_group(base[me], g) == 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    EXPECT(ARMCI_Init() == 0);
    me = armci_msg_me();
    n = armci_msg_nproc();
    EXPECT(n <= PROCESSES_MAX);
    for (int p = 0; p < n; p++)
        all[p] = p;
    for (int i = 0; i < 2 * TIMES; i++) {
        ARMCI_Group group;
        int rank = -1;
        ARMCI_Group_create(n, all, &group);
        EXPECT(ARMCI_Group_rank(&group, &rank) == 0 && rank == me);
        if (i < TIMES)
            armci_msg_group_barrier(&group);
        else
            with_memory(&group);
        ARMCI_Group_free(&group);
    }
    ARMCI_Finalize();
    MPI_Finalize();
    return 0;
}
