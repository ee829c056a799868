/* armci-end [survive]: process 1 dies between ARMCI_Finalize and MPI_Finalize, whose end of MPI's own waits for all. Those who survive end well; without
 * keel_survive the job ends with a line (armci_bad.py). */
#include <armci.h>
#include <keel/job.h>
#include <mpi.h>

#include <signal.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

int main(int argc, char **argv)
{
    EXPECT(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    if (argc > 1)
        keel_survive();
    EXPECT(ARMCI_Init() == 0);
    const int me = armci_msg_me();
    EXPECT(ARMCI_Finalize() == 0);
    if (me == 1)
        (void)raise(SIGKILL);
    return MPI_Finalize() != MPI_SUCCESS;
}
