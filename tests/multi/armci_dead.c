/* armci-dead VICTIM: a process dies that holds mutexes. Those who live take them over, also the ones that were kept at
 * the dead one, and go on with ARMCI's memory, mutexes and groups, old ones and new ones, in which the dead one has
 * its place. */
#include <armci.h>
#include <keel/job.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT_WHO me
#include "../lib/expect.h"

enum { ROUNDS = 10, PROCESSES_MAX = 64 };

static int me, n, dead, other;

static void *address(void *base, size_t offset)
{
    return (char *)base + offset;
}

static void count_under(int mutex, int home, void *at)
{
    ARMCI_Lock(mutex, home);
    EXPECT(ARMCI_PutValueLong(ARMCI_GetValueLong(at, home) + 1, at, home) == 0);
    ARMCI_Unlock(mutex, home);
}

static void test_mutexes_of_the_dead(void **base)
{
    for (int round = 0; round < ROUNDS; round++) {
        count_under(0, other, address(base[other], 64));
        count_under(1, dead, address(base[dead], 64));
        ARMCI_Lock(0, dead); /* nobody held it */
        ARMCI_Unlock(0, dead);
    }
    ARMCI_Barrier();
    EXPECT(ARMCI_GetValueLong(address(base[other], 64), other) == ROUNDS * (n - 1));
    EXPECT(ARMCI_GetValueLong(address(base[dead], 64), dead) == ROUNDS * (n - 1));
    ARMCI_Barrier();
    EXPECT(ARMCI_Destroy_mutexes() == 0 && ARMCI_Create_mutexes(me == other ? 2 : 1) == 0);
    ARMCI_Lock(1, dead); /* as many as who has most */
    ARMCI_Unlock(1, dead);
    EXPECT(ARMCI_Destroy_mutexes() == 0);
}

/* A group that was made before has a place for the dead. Sizes differ; the dead one's part is larger than the
 * largest. */
static void test_memory_of_an_old_group(ARMCI_Group *group, const int *process)
{
    void *base[PROCESSES_MAX];
    const size_t last = 128 * ((size_t)n - (dead == n - 1)) - 8;
    const long five = 5;
    const double one = 1, two = 2;
    long old, got;
    EXPECT(ARMCI_Malloc_group(base, 128 * (me + 1), group) == 0);
    EXPECT(ARMCI_PutValueLong(6, address(base[n - 1 - dead], last), dead) == 0);
    for (int m = 0; m < n; m++) {
        EXPECT(ARMCI_Put((void *)&five, base[m], 8, process[m]) == 0);
        EXPECT(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, address(base[m], 8), 1, process[m]) == 0 && old < n - 1);
        EXPECT(ARMCI_Acc(ARMCI_ACC_DBL, (void *)&two, (void *)&one, address(base[m], 16), 8, process[m]) == 0);
    }
    ARMCI_Fence(dead);
    ARMCI_GroupFence(group);
    armci_msg_group_barrier(group);
    EXPECT(ARMCI_GetValueLong(address(base[n - 1 - dead], last), dead) == 6);
    for (int m = 0; m < n; m++) {
        EXPECT(ARMCI_Get(base[m], &got, 8, process[m]) == 0 && got == 5);
        EXPECT(ARMCI_GetValueLong(address(base[m], 8), process[m]) == n - 1);
        EXPECT(ARMCI_GetValueDouble(address(base[m], 16), process[m]) == 2 * (n - 1));
    }
    armci_msg_group_barrier(group);
    EXPECT(ARMCI_Free_group(base[group->rank], group) == 0);
}

static void test_new_memory(void)
{
    void *base[PROCESSES_MAX];
    double sum[2] = {me, 1};
    EXPECT(ARMCI_Malloc(base, me == other ? 0 : 256) == 0 && (n == 2 || !base[other]) && base[dead]);
    EXPECT(ARMCI_PutValueLong(5, base[dead], dead) == 0 && ARMCI_GetValueLong(base[dead], dead) == 5);
    armci_msg_dgop(sum, 2, "+");
    EXPECT(sum[1] == n - 1 && (int)sum[0] == n * (n - 1) / 2 - dead);
    ARMCI_Barrier();
    EXPECT(ARMCI_Free(base[me]) == 0);
    EXPECT(ARMCI_Malloc(base, 0) == 0 && base[dead] && base[me]);
    if (me == other)
        EXPECT(ARMCI_PutValueLong(4, base[dead], dead) == 0);
    ARMCI_Barrier();
    EXPECT(ARMCI_GetValueLong(base[dead], dead) == 4 && ARMCI_Free(base[me]) == 0);
}

static void test_memory_without_a_member(ARMCI_Group *pair)
{
    void *base[2], *at[2], *from[2];
    long value[3] = {7, 8, 9}, got[3] = {0}, old = 0;
    int stride = 16, count[2] = {8, 2};
    EXPECT(ARMCI_Malloc_group(base, 72, pair) == 0 && base[0] && base[1] && base[0] != base[1]);
    EXPECT(ARMCI_PutValueLong(5, base[0], dead) == 0 && ARMCI_PutValueLong(6, base[1], me) == 0);
    EXPECT(ARMCI_NbPut(value, address(base[0], 8), 16, dead, NULL) == 0);
    ARMCI_Fence(dead);
    EXPECT(ARMCI_Get(base[0], got, 24, dead) == 0 && got[0] == 5 && got[1] == 7 && got[2] == 8);
    EXPECT(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, base[0], 3, dead) == 0 && old == 5 && *(long *)base[1] == 6);
    EXPECT(ARMCI_PutS(value, (int[]){8}, address(base[0], 24), &stride, count, 1, dead) == 0);
    at[0] = address(base[0], 64);
    from[0] = &value[2];
    armci_giov_t v = {.src_ptr_array = from, .dst_ptr_array = at, .ptr_array_len = 1, .bytes = 8};
    EXPECT(ARMCI_PutV(&v, 1, dead) == 0);
    EXPECT(ARMCI_GetValueLong(address(base[0], 40), dead) == 8 && ARMCI_GetValueLong(address(base[0], 64), dead) == 9);
    EXPECT(ARMCI_GetValueLong(base[0], dead) == 8 && ARMCI_GetValueLong(base[1], me) == 6);
    EXPECT(ARMCI_Free_group(base[1], pair) == 0);
    /* Nobody who lives asks for anything: what there is may be the dead one's. */
    EXPECT(ARMCI_Malloc_group(base, 0, pair) == 0 && ARMCI_PutValueLong(4, base[0], dead) == 0);
    EXPECT(ARMCI_GetValueLong(base[0], dead) == 4 && ARMCI_Free_group(base[1], pair) == 0);
}

/* Who was dead before has its number in a new group, and its part of memory that is made in it: another member keeps
 * that. */
static void test_new_groups(void)
{
    ARMCI_Group pair, alone;
    void *base[2];
    int both[2] = {dead, me}, size = 0;
    double one = 1;
    ARMCI_Group_create(2, both, &pair);
    ARMCI_Group_size(&pair, &size);
    EXPECT(size == 2 && pair.rank == 1 && ARMCI_Absolute_id(&pair, 0) == dead && ARMCI_Absolute_id(&pair, 1) == me);
    EXPECT(ARMCI_Absolute_id(&pair, 2) == -1);
    ARMCI_Fence(ARMCI_Absolute_id(&pair, 0));
    ARMCI_GroupFence(&pair);
    armci_msg_group_barrier(&pair);
    armci_msg_group_dgop(&one, 1, "+", &pair);
    EXPECT(one == 1);
    test_memory_without_a_member(&pair);
    ARMCI_Group_free(&pair);
    ARMCI_Group_create(1, &me, &alone);
    EXPECT(alone.size == 1 && ARMCI_Malloc_group(base, 64, &alone) == 0);
    EXPECT(ARMCI_PutValueLong(me, base[0], me) == 0 && *(long *)base[0] == me);
    EXPECT(ARMCI_Free_group(base[0], &alone) == 0);
    ARMCI_Group_free(&alone);
}

/* Nobody has asked before the death: what nodes there are, and who is the first of each, is the same for all. */
static void test_domains(void)
{
    const int count = armci_domain_count(ARMCI_DOMAIN_SMP);
    int living = 0;
    double most = count, masters = 1;
    armci_msg_dgop(&most, 1, "max");
    EXPECT(count == (int)most && count == keel_node_count());
    for (int d = 0; d < count; d++)
        living += armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, d, 0) != dead;
    armci_msg_gop_scope(SCOPE_MASTERS, &masters, 1, "+", ARMCI_DOUBLE);
    if (armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, armci_domain_my_id(ARMCI_DOMAIN_SMP), 0) == me)
        EXPECT((int)masters == living);
    EXPECT(ARMCI_Same_node(me));
}

int main(int argc, char **argv)
{
    void *base[PROCESSES_MAX];
    int process[PROCESSES_MAX];
    ARMCI_Group group;
    EXPECT(argc == 2 && ARMCI_Init() == 0);
    keel_survive();
    me = armci_msg_me();
    n = armci_msg_nproc();
    dead = atoi(argv[1]);
    other = (dead + 1) % n;
    for (int p = 0; p < n; p++)
        process[n - 1 - p] = p;
    EXPECT(ARMCI_Malloc(base, 4096) == 0 && ARMCI_Create_mutexes(2) == 0);
    ARMCI_Group_create(n, process, &group);
    ARMCI_Barrier();
    if (me == dead) {
        ARMCI_Lock(0, other);
        ARMCI_Lock(1, dead);
        (void)raise(SIGKILL);
    }
    test_mutexes_of_the_dead(base);
    test_memory_of_an_old_group(&group, process);
    test_new_memory();
    test_new_groups();
    test_domains();
    EXPECT(ARMCI_Free(base[me]) == 0);
    ARMCI_Group_free(&group);
    EXPECT(ARMCI_Finalize() == 0);
    return 0;
}
