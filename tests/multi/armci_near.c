/* armci-near HOW: the processes of the first node store plainly through each other's pointers, all meet, and the node
 * dies. With copies everything is there.
 *   others    each into the part of the other one, and every second word of the pages in its own
 *   nothing   the second process has no memory of its own
 *   group     memory of a group of these two and the third
 *   memget    memory that the first one has made alone (ARMCI_Memget)
 *   dead      the second process has died before the others meet */
#include <armci.h>
#include <keel/job.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT_WHO me
#include "../lib/expect.h"

enum { WORDS = 20003, ROUNDS = 3, PROCESSES_MAX = 64 };
static int me, n;
static long *base[PROCESSES_MAX];
static armci_meminfo_t alone;

/* Of the word of the process's part, when all have met so often. */
static long value(int proc, int i, int round)
{
    return (long)round << 40 | (long)proc << 32 | i;
}

static void store(int proc, int from, int step, int round)
{
    for (int i = from; i < WORDS; i += step)
        base[proc][i] = value(proc, i, round);
}

static void make(const char *how, ARMCI_Group *group)
{
    int some[] = {0, 1, 2};
    void *ptr[PROCESSES_MAX] = {NULL};
    armci_size_t bytes = sizeof(long) * WORDS;
    if (strcmp(how, "memget") == 0) {
        if (me == 0)
            ARMCI_Memget((size_t)bytes, &alone, 0);
        armci_msg_brdcst(&alone, sizeof alone, 0);
        base[0] = me < 2 ? ARMCI_Memat(&alone, 0) : NULL;
        return;
    }
    if (strcmp(how, "group") == 0) {
        ARMCI_Group_create(3, some, group);
        if (me < 3)
            EXPECT(ARMCI_Malloc_group(ptr, bytes, group) == 0);
    } else
        EXPECT(ARMCI_Malloc(ptr, me == 1 && strcmp(how, "nothing") == 0 ? 0 : bytes) == 0);
    for (int p = 0; p < n; p++)
        base[p] = ptr[p];
}

static void meet(const char *how, ARMCI_Group *group)
{
    if (strcmp(how, "group") != 0)
        ARMCI_Barrier();
    else if (me < 3)
        armci_msg_group_barrier(group);
}

/* What it had stored counts as stored by those who meet after its death. */
static void die_before_the_others_meet(void)
{
    if (me == 1) {
        store(0, 0, 2, ROUNDS);
        store(1, 0, 1, ROUNDS);
        (void)raise(SIGKILL);
    }
    if (me == 0)
        store(0, 1, 2, ROUNDS);
    while (keel_rank_alive(1))
        (void)usleep(1000);
}

static void look(const char *how, int proc, int round)
{
    static long got[WORDS];
    void *from = base[proc];
    if (strcmp(how, "memget") == 0)
        from = ARMCI_Memat(&alone, 0);
    EXPECT(ARMCI_Get(from, got, (int)sizeof got, proc) == 0);
    for (int i = 0; i < WORDS; i++)
        EXPECT(got[i] == value(proc, i, round));
}

int main(int argc, char **argv)
{
    ARMCI_Group group;
    EXPECT(argc == 2);
    keel_survive();
    EXPECT(ARMCI_Init() == 0);
    me = armci_msg_me();
    n = armci_msg_nproc();
    const char *how = argv[1];
    bool both = strcmp(how, "others") == 0 || strcmp(how, "group") == 0;
    make(how, &group);
    for (int round = 1; round <= ROUNDS; round++) {
        meet(how, &group);
        if (me == 1 && strcmp(how, "dead") != 0)
            store(0, 0, both ? 2 : 1, round);
        if (me == 0 && both) {
            store(1, 0, 1, round);
            store(0, 1, 2, round);
        }
        meet(how, &group);
    }
    bool dies = strcmp(how, "dead") == 0;
    if (dies)
        die_before_the_others_meet();
    ARMCI_Barrier();
    if (me < 2) {
        (void)kill(getppid(), SIGKILL);
        (void)raise(SIGKILL);
    }
    while (keel_rank_alive(0) || keel_rank_alive(1))
        (void)usleep(1000);
    if (me == 2)
        for (int p = 0; p < (both || dies ? 2 : 1); p++)
            look(how, p, ROUNDS);
    ARMCI_Barrier();
    ARMCI_Finalize();
    return 0;
}
