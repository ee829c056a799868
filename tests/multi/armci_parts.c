/* armci-parts [beyond] VICTIM...: processes die, then memory is made for all, and on a new group of all. Each dead
 * one's part is its own, and has room for more than those who live have asked for. beyond: a put that is longer than
 * that ends the job (armci_bad.py), and writes to nobody's part. */
#include <armci.h>
#include <keel/job.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_WHO me
#include "../lib/expect.h"

enum { PROCESSES_MAX = 64, ASKED = 100 * 1024, ROOM = 2 * ASKED + 64 * 1024 };

static int me, n, beyond;
static bool dead[PROCESSES_MAX];
static char bytes[ROOM + 1], got[ROOM];

static int length(int proc)
{
    return dead[proc] ? ROOM : ASKED;
}

static void test(void **base, ARMCI_Group *group)
{
    int writer = 0;
    while (dead[writer])
        writer++;
    for (int p = n - 1; me == writer && p >= 0; p--) { /* the last first: what is too long would lie over it */
        memset(bytes, p + 1, sizeof bytes);
        EXPECT(ARMCI_Put(bytes, base[p], length(p) + (beyond && dead[p]), p) == 0);
    }
    ARMCI_Barrier();
    for (int p = 0; p < n; p++) {
        memset(bytes, p + 1, sizeof bytes);
        EXPECT(ARMCI_Get(base[p], got, length(p), p) == 0 && memcmp(got, bytes, (size_t)length(p)) == 0);
    }
    ARMCI_Barrier();
    EXPECT((group ? ARMCI_Free_group(base[me], group) : ARMCI_Free(base[me])) == 0);
}

int main(int argc, char **argv)
{
    void *base[PROCESSES_MAX];
    int all[PROCESSES_MAX];
    long lives;
    ARMCI_Group group;
    EXPECT(ARMCI_Init() == 0);
    keel_survive();
    me = armci_msg_me();
    n = armci_msg_nproc();
    beyond = argc > 1 && strcmp(argv[1], "beyond") == 0;
    for (int i = 1 + beyond; i < argc; i++)
        dead[atoi(argv[i])] = true;
    for (int p = 0; p < n; p++)
        all[p] = p;
    ARMCI_Barrier(); /* all go on after losses */
    if (dead[me])
        (void)raise(SIGKILL);
    do {
        lives = 1;
        armci_msg_lgop(&lives, 1, "+");
    } while (lives > n - (argc - 1 - beyond));
    ARMCI_Group_create(n, all, &group);
    EXPECT(ARMCI_Malloc_group(base, ASKED, &group) == 0);
    test(base, &group);
    EXPECT(ARMCI_Malloc(base, ASKED) == 0);
    test(base, NULL);
    ARMCI_Group_free(&group);
    EXPECT(ARMCI_Finalize() == 0);
    return 0;
}
