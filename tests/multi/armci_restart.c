/* armci-restart [plain]: ARMCI_Init and ARMCI_Finalize, several times over in one process, with MPI beside it or
 * (plain) without. Each time everything is there, and nothing of the time before: memory, groups, mutexes, notes. After
 * MPI_Finalize it is over. */
#include <armci.h>

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

enum { TIMES = 4, PROCESSES_MAX = 64, BYTES = 3000 };

static void in_memory(int time, int me, int n)
{
    void *base[PROCESSES_MAX];
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    char out = (char)(10 * time + me), in = 0;
    EXPECT(ARMCI_Malloc(base, BYTES) == 0);
    EXPECT(*((char *)base[me] + 7) == 0);
    armci_msg_barrier();
    EXPECT(ARMCI_Put(&out, (char *)base[next] + 7, 1, next) == 0);
    armci_msg_barrier();
    EXPECT(ARMCI_Get((char *)base[me] + 7, &in, 1, me) == 0 && in == 10 * time + before);
    if (time % 2)
        EXPECT(ARMCI_Free(base[me]) == 0); /* else the end does */
}

static void with_others(int me, int n)
{
    int all[PROCESSES_MAX], value = 0, rank = -1;
    ARMCI_Group group, world;
    for (int p = 0; p < n; p++)
        all[p] = p;
    ARMCI_Group_create(n, all, &group);
    EXPECT(ARMCI_Group_rank(&group, &rank) == 0 && rank == me);
    armci_msg_group_barrier(&group);
    ARMCI_Group_get_world(&world);
    EXPECT(ARMCI_Absolute_id(&world, n - 1) == n - 1);
    if (n > 1) {
        EXPECT(armci_notify((me + 1) % n) == 1);
        EXPECT(armci_notify_wait((me + n - 1) % n, &value) >= 1 && value == 1);
    }
    EXPECT(ARMCI_Create_mutexes(2) == 0); /* the end destroys them */
    ARMCI_Lock(1, 0);
    ARMCI_Unlock(1, 0);
    double one = 1;
    armci_msg_dgop(&one, 1, "+");
    EXPECT(one == n);
}

int main(int argc, char **argv)
{
    const bool plain = argc > 1 && strcmp(argv[1], "plain") == 0;
    if (!plain)
        EXPECT(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    for (int time = 1; time <= TIMES; time++) {
        EXPECT(!ARMCI_Initialized() && ARMCI_Init() == 0 && ARMCI_Init() == 0);
        in_memory(time, armci_msg_me(), armci_msg_nproc());
        with_others(armci_msg_me(), armci_msg_nproc());
        EXPECT(ARMCI_Finalize() == 0 && ARMCI_Finalize() == 0);
    }
    if (plain)
        return 0;
    EXPECT(MPI_Finalize() == MPI_SUCCESS);
    EXPECT(ARMCI_Init() != 0); /* with a line */
    return 0;
}
