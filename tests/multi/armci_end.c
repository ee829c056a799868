/* armci-end [survive|leave|group|before|between|exit|bcast]: process 1 dies between ARMCI_Finalize and MPI_Finalize,
 * whose end of MPI's own waits for all. Those who survive end well; without keel_survive the job ends with a line
 * (armci_bad.py). leave: it ends by itself long before, with 0; the others have no sum without it; group: they make a
 * group with it. before: just before ARMCI_Finalize; between, exit: between the two, by _exit and exit. bcast: it dies
 * before it has sent what the others wait for: they are told whom they wait for. */
#include <armci.h>
#include <keel/job.h>
#include <mpi.h>

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

int main(int argc, char **argv)
{
    EXPECT(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    const char *how = argc > 1 ? argv[1] : "";
    const bool bcast = strcmp(how, "bcast") == 0;
    if (bcast || strcmp(how, "survive") == 0)
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
    if (bcast) {
        if (me == 1)
            (void)raise(SIGKILL);
        char text[8] = "";
        armci_msg_bcast(text, sizeof text, 1);
        return 0; /* job ended: not come to */
    }
    if (me == 1 && (strcmp(how, "before") == 0 || strcmp(how, "group") == 0))
        _exit(0);
    if (strcmp(how, "group") == 0) {
        int all[] = {0, 1, 2};
        ARMCI_Group group;
        ARMCI_Group_create(3, all, &group);
        return 0; /* not come to */
    }
    EXPECT(ARMCI_Finalize() == 0);
    if (me == 1 && strcmp(how, "between") == 0)
        _exit(0);
    if (me == 1 && strcmp(how, "exit") == 0)
        return 0;
    if (me == 1)
        (void)raise(SIGKILL);
    return MPI_Finalize() != MPI_SUCCESS;
}
