/* A program of ARMCI alone. In each round every process puts to the next one, adds to all and counts at process 0, and
 * reads after a barrier what came of it. With the same result each time, which process 0 prints. KEEL_TEST_ROUNDS: how
 * many rounds. */
#include <armci.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 64, PROCS_MAX = 64 };

static int me, n;
static uint64_t told;

static void fail(const char *what)
{
    fprintf(stderr, "process %d: %s\n", me, what);
    ARMCI_Error("a wrong number", 3);
}

static void hear(const double *words, int count)
{
    for (int i = 0; i < count; i++)
        told = (told ^ (uint64_t)words[i]) * 0x9e3779b97f4a7c15u;
}

static void one_round(void **base, void **count, int round)
{
    double mine[WORDS], one = 1, scale = round + 1;
    int next = (me + 1) % n;
    long drawn = 0;
    for (int i = 0; i < WORDS; i++)
        mine[i] = round * 1000 + me * 10 + i;
    if (ARMCI_Put(mine, base[next], sizeof mine, next))
        fail("ARMCI_Put");
    ARMCI_AllFence();
    ARMCI_Barrier();
    for (int p = 0; p < n; p++) /* behind what the one before puts */
        if (ARMCI_Acc(ARMCI_ACC_DBL, &scale, &one, (double *)base[p] + WORDS, sizeof one, p))
            fail("ARMCI_Acc");
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &drawn, count[0], 1, 0);
    ARMCI_AllFence();
    ARMCI_Barrier();
    double got[WORDS + 1];
    if (ARMCI_Get(base[next], got, sizeof got, next))
        fail("ARMCI_Get");
    for (int i = 0; i < WORDS; i++)
        if (got[i] != mine[i])
            fail("other words than were put");
    hear(got, WORDS + 1);
    ARMCI_Barrier();
}

int main(int argc, char **argv)
{
    const char *text = getenv("KEEL_TEST_ROUNDS");
    void *base[PROCS_MAX], *count[PROCS_MAX];
    int rounds = text ? atoi(text) : 30;
    (void)argc, (void)argv;
    if (ARMCI_Init())
        return 1;
    me = armci_msg_me();
    n = armci_msg_nproc();
    if (ARMCI_Malloc(base, (WORDS + 1) * sizeof(double)) || ARMCI_Malloc(count, sizeof(long)))
        fail("ARMCI_Malloc");
    for (int i = 0; i <= WORDS; i++)
        ((double *)base[me])[i] = 0;
    *(long *)count[me] = 0;
    ARMCI_Barrier();
    for (int round = 0; round < rounds; round++)
        one_round(base, count, round);
    long drawn = 0;
    if (ARMCI_Get(count[0], &drawn, sizeof drawn, 0) || drawn != (long)rounds * n)
        fail("another count than all have drawn");
    long words[2] = {(long)(told >> 16), 0};
    armci_msg_lgop(words, 1, "+");
    if (me == 0)
        printf("read %016lx\n", (unsigned long)words[0]);
    ARMCI_Barrier();
    ARMCI_Free(count[me]);
    ARMCI_Free(base[me]);
    ARMCI_Finalize();
    return 0;
}
