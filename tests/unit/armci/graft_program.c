/* A program of ARMCI, to be linked with Debian's libarmci-mpich.a: what test_graft.c looks through, and what
 * tests/multi/graft.py runs.
 *
 * (nothing)  puts a word into the next process and says how many nodes there are
 * child      says what LD_PRELOAD is in a program that it starts
 * pointer    calls, by a pointer, a function that only ARMCI-MPI has */
#include <armci.h>
#include <armcix.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef CALLS_WHAT_KEEL_LACKS
static void lacked(void)
{
    ARMCIX_Progress();
}
#else
static void lacked(void)
{
    void (*volatile call)(void) = ARMCIX_Progress;
    call();
}
#endif

static int put_around(int me, int n)
{
    void *base[64];
    long value = 100 + me, sum = me, got = 0;
    if (n > 64 || ARMCI_Malloc(base, sizeof value) != 0)
        return 1;
    ARMCI_Put(&value, base[(me + 1) % n], sizeof value, (me + 1) % n);
    ARMCI_Barrier();
    int wrong = *(long *)base[me] != 100 + (me + n - 1) % n;
    ARMCI_Barrier();
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &got, base[0], 1, 0);
    armci_msg_lgop(&sum, 1, "+");
    wrong |= sum != (long)n * (n - 1) / 2;
    return ARMCI_Free(base[me]) != 0 || wrong;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    if (ARMCI_Init() != 0)
        return 1;
    int me = armci_msg_me(), wrong = put_around(me, armci_msg_nproc());
    if (me == 0) {
        printf("nodes %d wrong %d\n", armci_domain_count(ARMCI_DOMAIN_SMP), wrong);
        fflush(stdout);
        if (strcmp(mode, "child") == 0)
            wrong |= system("echo \"preloaded: $LD_PRELOAD\"") != 0;
        if (strcmp(mode, "pointer") == 0)
            lacked();
    }
    ARMCI_Finalize();
    MPI_Finalize();
    return wrong;
}
