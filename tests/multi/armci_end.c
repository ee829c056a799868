/* armci-end [survive|leave]: process 1 dies between ARMCI_Finalize and MPI_Finalize, whose end of MPI's own waits for all. Those who survive end well; without
 * keel_survive the job ends with a line (armci_bad.py). leave: it ends by itself before, with 0; the others have no sum without it. */
#include <armci.h>
#include <keel/job.h>
#include <mpi.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

int main(int argc, char **argv)
{
    EXPECT(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "survive") == 0)
        keel_survive();
    EXPECT(ARMCI_Init() == 0);
    const int me = armci_msg_me();
    for (int i = 0; strcmp(how, "leave") == 0; i++) {
        double one = 1;
        if (me == 1 && i == 5)
            _exit(0);
        armci_msg_dgop(&one, 1, "+");
        EXPECT(one == armci_msg_nproc());
    }
    EXPECT(ARMCI_Finalize() == 0);
    if (me == 1)
        (void)raise(SIGKILL);
    return MPI_Finalize() != MPI_SUCCESS;
}
