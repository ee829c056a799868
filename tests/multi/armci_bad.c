/* armci-bad CASE: what is wrong with a call of ARMCI's ends the job, of two processes, with a line that says so
 * (armci_calls.c has every call). Reaching the end of main is the failure (exit 0; the test wants 1 and the line). */
#include <armci.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *base[64];
static int me, other;
static double value[64];

/* What the rank does whose call is right: the other's ends it, at whatever moment. */
static void be_ended(void)
{
    while (1)
        (void)pause();
}

static void rank_put(void)
{
    (void)ARMCI_Put(value, base[other], 8, 2);
}

static void free_twice(void)
{
    void *mine[64];
    (void)ARMCI_Malloc(mine, 64);
    (void)ARMCI_Free(mine[me]);
    (void)ARMCI_Free(mine[me]);
}

static void mutex_not_held(void)
{
    (void)ARMCI_Create_mutexes(1);
    ARMCI_Unlock(0, other);
}

static void message_long(void)
{
    if (me == 0) {
        armci_msg_snd(3, value, 64, 1);
        be_ended();
    }
    armci_msg_rcv(3, value, 63, NULL, 0);
}

static void message_of_anybody_long(void)
{
    if (me == 0) {
        armci_msg_snd(3, value, 64, 1);
        be_ended();
    }
    (void)armci_msg_rcvany(3, value, 63, NULL);
}

static void late_malloc(void)
{
    (void)ARMCI_Finalize();
    (void)ARMCI_Malloc(base, 8);
}

/* A copy knows nothing of its end. */
static ARMCI_Group gone_group(void)
{
    ARMCI_Group group;
    int both[2] = {0, 1};
    ARMCI_Group_create(2, both, &group);
    ARMCI_Group copy = group;
    ARMCI_Group_free(&group);
    return copy;
}

static void group_gone_size(void)
{
    ARMCI_Group gone = gone_group();
    int size;
    ARMCI_Group_size(&gone, &size);
}

static void group_gone_rank(void)
{
    ARMCI_Group gone = gone_group();
    int rank;
    (void)ARMCI_Group_rank(&gone, &rank);
}

static void group_gone_uses(void)
{
    ARMCI_Group gone = gone_group();
    (void)ARMCI_Uses_shm_grp(&gone);
}

static void error(void)
{
    ARMCI_Error("the program says so", 3);
}

static void abort_all(void)
{
    armci_msg_abort(4);
}

static const struct {
    const char *name;
    void (*call)(void);
} cases[] = {{"rank-put", rank_put},
             {"free-twice", free_twice},
             {"mutex-not-held", mutex_not_held},
             {"group-gone-size", group_gone_size},
             {"group-gone-rank", group_gone_rank},
             {"group-gone-uses", group_gone_uses},
             {"message-long", message_long},
             {"message-of-anybody-long", message_of_anybody_long},
             {"late-malloc", late_malloc},
             {"error", error},
             {"abort", abort_all}};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
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
