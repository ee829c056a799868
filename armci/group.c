/* Groups. What a program holds in its ARMCI_Group are the numbers of its members; the Keel group is found by them. The
 * members are those of the list, also one that died before all had made the group: who made the list goes on
 * counting it. The Keel group lacks it. */
#include <stdlib.h>
#include <string.h>

#include "armci/armci_int.h"

struct entry {
    struct entry *next;
    const int *key; /* grp_to_abs, which is the entry's own */
    keel_group *group;
};

static struct entry *entries;
static ARMCI_Group world, current;

/* A communicator of the members, for programs that ask Global Arrays for it: where MPI runs, and a death ends the
 * program, for MPI would wait for the dead. */
#pragma weak PMPI_Initialized
#pragma weak PMPI_Comm_group
#pragma weak PMPI_Group_incl
#pragma weak PMPI_Comm_create_group
#pragma weak PMPI_Group_free
#pragma weak PMPI_Comm_free
static MPI_Comm communicator(const ARMCI_Group *g)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group all, some;
    int runs = 0;
    if (PMPI_Initialized)
        (void)PMPI_Initialized(&runs);
    if (!runs || keel_survives() || PMPI_Comm_group(world.comm, &all) != MPI_SUCCESS)
        return comm;
    if (PMPI_Group_incl(all, g->size, g->grp_to_abs, &some) == MPI_SUCCESS) {
        if (PMPI_Comm_create_group(world.comm, some, 0, &comm) != MPI_SUCCESS)
            comm = MPI_COMM_NULL;
        (void)PMPI_Group_free(&some);
    }
    (void)PMPI_Group_free(&all);
    return comm;
}

static void enter(const ARMCI_Group *g, keel_group *group)
{
    struct entry *e = malloc(sizeof *e);
    if (!e)
        armci_end("ARMCI_Group_create", keel_rank(), "out of memory");
    *e = (struct entry){entries, g->grp_to_abs, group};
    entries = e;
}

static void describe(ARMCI_Group *g, keel_group *group, const int *ranks, int n)
{
    int all = keel_size();
    g->grp_to_abs = malloc((size_t)n * sizeof(int) + 1);
    g->abs_to_grp = malloc((size_t)all * sizeof(int));
    if (!g->grp_to_abs || !g->abs_to_grp)
        armci_end("ARMCI_Group_create", keel_rank(), "out of memory");
    for (int r = 0; r < all; r++)
        g->abs_to_grp[r] = -1;
    for (int m = 0; m < n; m++) {
        g->grp_to_abs[m] = ranks ? ranks[m] : keel_group_to_world(group, m);
        g->abs_to_grp[g->grp_to_abs[m]] = m;
    }
    g->comm = g->noncoll_pgroup_comm = MPI_COMM_NULL;
    g->rank = g->abs_to_grp[keel_rank()];
    g->size = n;
    enter(g, group);
}

/* Who is stopped is waited for: ARMCI's programs know of no call that is to be made again. */
static void wait_for_who_is_stopped(keel_group *g, const char *call)
{
    armci_check(keel_group_patience(g, true), call, keel_rank());
}

keel_group *armci_make_group(const int *ranks, int n, uint64_t tag, const char *call)
{
    keel_group *made;
    keel_status status;
    while ((status = keel_group_create(ranks, n, tag, &made)) == KEEL_ERR_TIMEOUT)
        ;
    armci_check(status, call, keel_rank());
    wait_for_who_is_stopped(made, call);
    return made;
}

void armci_groups_init(MPI_Comm comm)
{
    wait_for_who_is_stopped(keel_group_world(), "ARMCI_Init");
    if (keel_group_node() != keel_group_world())
        wait_for_who_is_stopped(keel_group_node(), "ARMCI_Init");
    if (world.grp_to_abs) /* ARMCI has begun before */
        enter(&world, keel_group_world());
    else
        describe(&world, keel_group_world(), NULL, keel_size());
    world.comm = comm;
    current = world;
}

static void forget(const ARMCI_Group *g)
{
    struct entry **link = &entries;
    while (*link && (*link)->key != g->grp_to_abs)
        link = &(*link)->next;
    struct entry *e = *link;
    if (!e)
        return;
    *link = e->next;
    if (e->group != keel_group_world())
        (void)keel_group_free(e->group);
    free(e);
    free(g->grp_to_abs);
    free(g->abs_to_grp);
}

/* Descriptions stay, so that one from before the end is not taken for one of those that are made after another
 * ARMCI_Init. */
void armci_groups_fini(void)
{
    while (entries) {
        struct entry *e = entries;
        entries = e->next;
        if (e->group != keel_group_world())
            (void)keel_group_free(e->group);
        free(e);
    }
}

/* NULL: there is none of these members here. */
static keel_group *found(const ARMCI_Group *g)
{
    const struct entry *e = entries;
    while (e && e->key != g->grp_to_abs)
        e = e->next;
    return e ? e->group : NULL;
}

keel_group *armci_group(const ARMCI_Group *group, const char *call)
{
    armci_running(call);
    keel_group *g = found(group ? group : &current);
    if (!g)
        armci_end(call, keel_rank(), "the group does not exist, or was freed, or this process is no member");
    return g;
}

static void check_lives(const ARMCI_Group *group, const char *call)
{
    armci_running(call);
    if (group->grp_to_abs) /* else of a process that is no member */
        (void)armci_group(group, call);
}

/* Those who are no members call, too, in some programs: they get a group without a place. */
static void create(const char *call, int n, const int *pid_list, ARMCI_Group *group, const ARMCI_Group *parent)
{
    const ARMCI_Group *in = parent ? parent : &current;
    bool member = false;
    armci_running(call);
    if (in->grp_to_abs) /* else no process is a member */
        (void)armci_group(in, call);
    if (n < 0 || (n && !pid_list) || !group)
        armci_end(call, keel_rank(), "a negative size, or no list, or no place for the group");
    int *ranks = malloc((size_t)n * sizeof *ranks + 1);
    if (!ranks)
        armci_end(call, keel_rank(), "out of memory");
    for (int i = 0; i < n; i++) {
        if (!in->grp_to_abs || pid_list[i] < 0 || pid_list[i] >= in->size)
            armci_end(call, pid_list[i], "no member of the parent group");
        ranks[i] = in->grp_to_abs[pid_list[i]];
        member = member || ranks[i] == keel_rank();
    }
    *group = (ARMCI_Group){.comm = MPI_COMM_NULL, .noncoll_pgroup_comm = MPI_COMM_NULL, .rank = -1};
    if (member) {
        keel_group *made = armci_make_group(ranks, n, 0, call);
        armci_loss_lacks(made, ranks, n); /* MPI would wait for it */
        describe(group, made, ranks, n);
        group->comm = communicator(group);
    }
    free(ranks);
}

ARMCI_EXPORT void ARMCI_Group_create_child(int n, int *pid_list, ARMCI_Group *group, ARMCI_Group *parent)
{
    create("ARMCI_Group_create_child", n, pid_list, group, parent);
}

ARMCI_EXPORT void ARMCI_Group_create(int n, int *pid_list, ARMCI_Group *group)
{
    create("ARMCI_Group_create", n, pid_list, group, &current);
}

ARMCI_EXPORT void ARMCI_Group_free(ARMCI_Group *group)
{
    armci_running("ARMCI_Group_free");
    if (!group)
        armci_end("ARMCI_Group_free", keel_rank(), "no group");
    if (!group->grp_to_abs || group->grp_to_abs == world.grp_to_abs)
        return; /* of a process that is no member, or of all */
    (void)armci_group(group, "ARMCI_Group_free");
    if (group->comm != MPI_COMM_NULL && PMPI_Comm_free)
        (void)PMPI_Comm_free(&group->comm);
    forget(group);
}

ARMCI_EXPORT int ARMCI_Group_rank(ARMCI_Group *group, int *rank)
{
    check_lives(group, "ARMCI_Group_rank");
    *rank = group->rank;
    return group->rank < 0;
}

ARMCI_EXPORT void ARMCI_Group_size(ARMCI_Group *group, int *size)
{
    check_lives(group, "ARMCI_Group_size");
    *size = group->size;
}

ARMCI_EXPORT void ARMCI_Group_set_default(ARMCI_Group *group)
{
    check_lives(group, "ARMCI_Group_set_default");
    current = *group;
}

ARMCI_EXPORT void ARMCI_Group_get_default(ARMCI_Group *group)
{
    armci_running("ARMCI_Group_get_default");
    *group = current;
}

ARMCI_EXPORT void ARMCI_Group_get_world(ARMCI_Group *group)
{
    armci_running("ARMCI_Group_get_world");
    *group = world;
}

ARMCI_EXPORT int ARMCI_Absolute_id(ARMCI_Group *group, int group_rank)
{
    check_lives(group, "ARMCI_Absolute_id");
    return group->grp_to_abs && group_rank >= 0 && group_rank < group->size ? group->grp_to_abs[group_rank] : -1;
}
