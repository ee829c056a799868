/* locks: ARMCI's mutexes when who holds one dies. Process 1 takes mutex 0 of process 0, tells the others, and dies with
 * it when each has heard it; they take it one after the other, and add one each to a counter that only the mutex
 * protects. Exit 0 if nobody was lost or let in beside another. */
#include <armci.h>
#include <keel/keel.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

enum { TURNS = 20 };

int main(void)
{
    void *base[64];
    char word = 1;
    EXPECT(ARMCI_Init() == 0);
    keel_survive();
    int me = armci_msg_me(), n = armci_msg_nproc(), length;
    EXPECT(n > 2 && n <= 64 && ARMCI_Malloc(base, sizeof(long)) == 0 && ARMCI_Create_mutexes(1) == 0);
    armci_msg_barrier();
    if (me == 1) {
        ARMCI_Lock(0, 0);
        for (int p = 0; p < n; p++)
            if (p != me)
                armci_msg_snd(1, &word, 1, p);
        for (int p = 0; p < n; p++)
            if (p != me)
                armci_msg_rcv(2, &word, 1, &length, p);
        (void)raise(SIGKILL);
    }
    armci_msg_rcv(1, &word, 1, &length, 1);
    armci_msg_snd(2, &word, 1, 1);
    for (int i = 0; i < TURNS; i++) {
        long count;
        ARMCI_Lock(0, 0);
        EXPECT(ARMCI_Get(base[0], &count, sizeof count, 0) == 0);
        count++;
        EXPECT(ARMCI_Put(&count, base[0], sizeof count, 0) == 0);
        ARMCI_Unlock(0, 0);
    }
    ARMCI_Barrier();
    long count;
    EXPECT(ARMCI_Get(base[0], &count, sizeof count, 0) == 0 && count == (long)TURNS * (n - 1));
    printf("process %d: right\n", me);
    EXPECT(ARMCI_Destroy_mutexes() == 0 && ARMCI_Free(base[me]) == 0);
    return ARMCI_Finalize();
}
