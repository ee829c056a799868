/* armci-bad CASE: what is wrong with a call of ARMCI's ends the job with a line that says so. Two processes. Reaching the end of main is
 * the failure (exit 0; the test wants 1 and the line). */
#include <armci.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *base[64];
static int me, other;
static double value[64];

static void rank_put(void)
{
    (void)ARMCI_Put(value, base[other], 8, 2);
}

static void rank_get(void)
{
    (void)ARMCI_Get(base[other], value, 8, -1);
}

static void rank_rmw(void)
{
    long got;
    (void)ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &got, base[other], 1, 7);
}

static void rank_send(void)
{
    armci_msg_snd(1, value, 8, 2);
}

static void rank_bcast(void)
{
    armci_msg_bcast(value, 8, 2);
}

static void address_put(void)
{
    (void)ARMCI_Put(value, value, 8, other);
}

static void address_end(void)
{
    (void)ARMCI_Get((char *)base[other] + 504, value, 16, other);
}

static void address_rmw(void)
{
    int got;
    (void)ARMCI_Rmw(ARMCI_SWAP, &got, (char *)base[other] + 512, 1, other);
}

static void size_negative(void)
{
    (void)ARMCI_Acc(ARMCI_ACC_DBL, value, value, base[other], -8, other);
}

static void size_malloc(void)
{
    (void)ARMCI_Malloc(base, -1);
}

static void stride_negative(void)
{
    int stride[1] = {-16}, count[2] = {8, 2};
    (void)ARMCI_PutS(value, stride, base[other], stride, count, 1, other);
}

static void stride_far(void)
{
    int stride[2] = {INT_MAX, INT_MAX}, count[3] = {8, INT_MAX, INT_MAX};
    (void)ARMCI_PutS(value, stride, base[other], stride, count, 2, other);
}

static void stride_levels(void)
{
    int stride[1] = {8}, count[2] = {8, 1};
    (void)ARMCI_GetS(base[other], stride, value, stride, count, 99, other);
}

static void type_wrong(void)
{
    (void)ARMCI_Acc(77, value, value, base[other], 8, other);
}

static void type_cut(void)
{
    (void)ARMCI_Acc(ARMCI_ACC_DBL, value, value, base[other], 12, other);
}

static void vector_negative(void)
{
    void *to[1] = {base[other]}, *from[1] = {value};
    armci_giov_t v = {from, to, 8, -1};
    (void)ARMCI_PutV(&v, 1, other);
}

static void vector_outside(void)
{
    void *to[2] = {base[other], (char *)base[other] + 508}, *from[2] = {value, value};
    armci_giov_t v = {from, to, 8, 2};
    (void)ARMCI_PutV(&v, 1, other);
}

static void free_twice(void)
{
    void *mine[64];
    (void)ARMCI_Malloc(mine, 64);
    (void)ARMCI_Free(mine[me]);
    (void)ARMCI_Free(mine[me]);
}

static void free_other(void)
{
    (void)ARMCI_Free((char *)base[me] + 8);
}

static void mutex_number(void)
{
    (void)ARMCI_Create_mutexes(1);
    ARMCI_Lock(1, other);
}

static void mutex_not_held(void)
{
    (void)ARMCI_Create_mutexes(1);
    ARMCI_Unlock(0, other);
}

static void mutex_twice(void)
{
    (void)ARMCI_Create_mutexes(1);
    (void)ARMCI_Create_mutexes(1);
}

static void operation_wrong(void)
{
    armci_msg_dgop(value, 1, "median");
}

static void operation_of_type(void)
{
    armci_msg_dgop(value, 1, "or");
}

static void message_long(void)
{
    if (me == 0)
        armci_msg_snd(3, value, 64, 1);
    else
        armci_msg_rcv(3, value, 63, NULL, 0);
    armci_msg_barrier();
}

static void group_rank(void)
{
    ARMCI_Group g;
    int list[2] = {0, 2};
    ARMCI_Group_create(2, list, &g);
}

static void late_put(void)
{
    (void)ARMCI_Finalize();
    (void)ARMCI_Put(value, base[other], 8, other);
}

static void late_barrier(void)
{
    (void)ARMCI_Finalize();
    armci_msg_barrier();
}

static void late_malloc(void)
{
    (void)ARMCI_Finalize();
    (void)ARMCI_Malloc(base, 8);
}

static void error(void)
{
    ARMCI_Error("the program says so", 3);
}

static const struct {
    const char *name;
    void (*call)(void);
} cases[] = {{"rank-put", rank_put},
             {"rank-get", rank_get},
             {"rank-rmw", rank_rmw},
             {"rank-send", rank_send},
             {"rank-bcast", rank_bcast},
             {"address-put", address_put},
             {"address-end", address_end},
             {"address-rmw", address_rmw},
             {"size-negative", size_negative},
             {"size-malloc", size_malloc},
             {"stride-negative", stride_negative},
             {"stride-far", stride_far},
             {"stride-levels", stride_levels},
             {"type-wrong", type_wrong},
             {"type-cut", type_cut},
             {"vector-negative", vector_negative},
             {"vector-outside", vector_outside},
             {"free-twice", free_twice},
             {"free-other", free_other},
             {"mutex-number", mutex_number},
             {"mutex-not-held", mutex_not_held},
             {"mutex-twice", mutex_twice},
             {"operation-wrong", operation_wrong},
             {"operation-of-type", operation_of_type},
             {"message-long", message_long},
             {"group-rank", group_rank},
             {"late-put", late_put},
             {"late-barrier", late_barrier},
             {"late-malloc", late_malloc},
             {"error", error}};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "early-put") == 0)
        (void)ARMCI_Put(value, value, 8, 0);
    if (strcmp(name, "early-barrier") == 0)
        ARMCI_Barrier();
    if (strcmp(name, "early-reduction") == 0)
        armci_msg_dgop(value, 1, "+");
    if (ARMCI_Init() != 0)
        return 2;
    me = armci_msg_me();
    other = 1 - me;
    if (ARMCI_Malloc(base, 512) != 0)
        return 2;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(name, cases[i].name) == 0)
            cases[i].call();
    fprintf(stderr, "nothing was said\n");
    return 0;
}
