/* The public calls on groups but the collectives that move data, on the process's instance. */
#include "collectives/group.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/progress.h"

_Static_assert((int)KEEL_GROUP_AND == (int)ENGINE_AND && (int)KEEL_GROUP_MAX == (int)ENGINE_MAX,
               "the public numbers are the inner ones");

/* Groups are numbers to the program (living.h). Who cannot have one more has begun nothing. */

static keel_group *world, *node; /* their numbers */

bool public_groups_begin(void)
{
    world = living_take(LIVING_GROUP);
    node = living_take(LIVING_GROUP);
    living_set(world, process_client.coll.world);
    living_set(node, process_client.coll.node);
    return world && node;
}

void public_groups_are(keel_group *of_all, keel_group *on_node)
{
    world = of_all;
    node = on_node;
}

keel_group *public_group_of(const keel_group *handle)
{
    return living_find(handle, LIVING_GROUP);
}

/* What a call has made, or not, gets the number that was taken for it. */
static keel_status give(keel_status status, keel_group *number, keel_group *made, keel_group **group)
{
    living_set(number, made);
    if (!made)
        living_give_back(number);
    *group = made ? number : NULL;
    return status;
}

static keel_status none(keel_status why, keel_group **group)
{
    if (group)
        *group = NULL;
    return why;
}

/* The group that a handle names, and a number for the one that is made of it. NULL: *why says why not. */
static keel_group *begin(keel_group *of, keel_group **made, keel_group **number, keel_status *why)
{
    keel_group *g = public_group_of(of);
    *number = g && made ? living_take(LIVING_GROUP) : NULL;
    *why = !g || !made ? public_wrong() : KEEL_ERR_LIMIT;
    return *number ? g : NULL;
}

KEEL_EXPORT keel_group *keel_group_world(void)
{
    return process_client.ready ? world : NULL;
}

KEEL_EXPORT keel_group *keel_group_node(void)
{
    return process_client.ready ? node : NULL;
}

keel_status call_group_create(const int *ranks, int n, uint64_t tag, keel_group **group)
{
    if (!group)
        return public_wrong();
    keel_group *made = NULL, *number = living_take(LIVING_GROUP);
    if (!number)
        return none(KEEL_ERR_LIMIT, group);
    keel_status status = coll_create(&process_client, ranks, n, tag, &made);
    return give(status, number, made, group);
}

keel_status call_group_split(keel_group *parent, int colour, int key, keel_group **group)
{
    keel_group *number = NULL, *made = NULL;
    keel_status status = KEEL_OK;
    keel_group *g = begin(parent, group, &number, &status);
    if (!g)
        return none(status, group);
    status = coll_split(g, colour, key, &made);
    return give(status, number, made, group);
}

keel_status call_group_shrink(keel_group *group, keel_group **survivors)
{
    keel_group *number = NULL, *made = NULL;
    keel_status status = KEEL_OK;
    keel_group *g = begin(group, survivors, &number, &status);
    if (!g)
        return none(status, survivors);
    status = coll_shrink(g, &made);
    return give(status, number, made, survivors);
}

keel_status call_group_shrink_among(keel_group *group, const int *members, int n, keel_group **survivors)
{
    keel_group *number = NULL, *made = NULL;
    keel_status status = KEEL_OK;
    keel_group *g = begin(group, survivors, &number, &status);
    if (!g)
        return none(status, survivors);
    status = coll_shrink_among(g, members, n, &made);
    return give(status, number, made, survivors);
}

keel_status call_group_revoke(keel_group *group)
{
    keel_group *g = public_group_of(group);
    return g ? coll_revoke(g) : public_wrong();
}

keel_status call_group_patience(keel_group *group, bool waits)
{
    keel_group *g = public_group_of(group);
    if (!g)
        return public_wrong();
    keel_status status = coll_check(g->client, g);
    if (status == KEEL_OK)
        g->patient = waits;
    return status;
}

keel_status call_group_free(keel_group *group)
{
    keel_group *g = public_group_of(group);
    if (!g)
        return group || !process_client.ready ? public_wrong() : KEEL_OK;
    keel_status status = coll_group_free(g);
    if (status == KEEL_OK)
        living_give_back(group);
    return status;
}

bool public_group_is(const keel_group *g)
{
    return g && !g->freed;
}

/* There is one, and this process is in the job. */
static bool is_here(const keel_group *g)
{
    return public_group_is(g) && g->client->ready;
}

bool public_group_root_is_me(const keel_group *g, int root)
{
    return public_group_is(g) && group_member_of(g->ranks, g->client->rank) == root;
}

int call_group_size(const keel_group *group)
{
    group = public_group_of(group);
    return is_here(group) ? group_size(group->ranks) : 0;
}

int call_group_rank(const keel_group *group)
{
    group = public_group_of(group);
    return is_here(group) && group->engine ? group_member_of(group->ranks, group->client->rank) : -1;
}

int call_group_to_world(const keel_group *group, int member)
{
    group = public_group_of(group);
    return is_here(group) ? group_rank(group->ranks, member) : -1;
}

int call_group_from_world(const keel_group *group, int rank)
{
    group = public_group_of(group);
    return is_here(group) ? group_member_of(group->ranks, rank) : -1;
}

int call_group_stopped(const keel_group *group)
{
    group = public_group_of(group);
    if (!is_here(group) || !group->engine)
        return -1;
    int blamed = engine_blamed(group->engine);
    return blamed < 0 && group->unfinished ? group->unfinished->blamed : blamed;
}

bool call_group_alive(const keel_group *group, int member)
{
    group = public_group_of(group);
    if (!is_here(group) || group_rank(group->ranks, member) < 0)
        return false;
    client_lock(group->client);
    coll_see_views(group->client, group->client->env.now(group->client->env.user));
    bool lives = coll_member_lives(group, member);
    pthread_mutex_unlock(&group->client->lock);
    return lives;
}

/* The ranks of a that are in b (or are not), appended. */
static void pick(const struct group *a, const struct group *b, bool in, int *ranks, int *n)
{
    for (int m = 0; m < group_size(a); m++)
        if ((group_member_of(b, group_rank(a, m)) >= 0) == in)
            ranks[(*n)++] = group_rank(a, m);
}

keel_status call_group_union(const keel_group *a, const keel_group *b, int *ranks, int *n)
{
    a = public_group_of(a);
    b = public_group_of(b);
    if (!is_here(a) || !is_here(b) || !ranks || !n)
        return public_wrong();
    *n = 0;
    for (int m = 0; m < group_size(a->ranks); m++)
        ranks[(*n)++] = group_rank(a->ranks, m);
    pick(b->ranks, a->ranks, false, ranks, n);
    return KEEL_OK;
}

keel_status call_group_difference(const keel_group *a, const keel_group *b, int *ranks, int *n)
{
    a = public_group_of(a);
    b = public_group_of(b);
    if (!is_here(a) || !is_here(b) || !ranks || !n)
        return public_wrong();
    *n = 0;
    pick(a->ranks, b->ranks, false, ranks, n);
    return KEEL_OK;
}

keel_status call_group_fence(const keel_group *group)
{
    const keel_group *g = public_group_of(group);
    keel_status first = is_here(g) ? KEEL_OK : public_wrong();
    for (int m = 0; first != KEEL_ERR_ARG && is_here(g) && m < group_size(g->ranks); m++) {
        keel_status status = rma_fence(g->client, group_rank(g->ranks, m));
        first = first == KEEL_OK ? status : first;
    }
    return first;
}

keel_status call_group_agree(keel_group *group, keel_group_op op, uint64_t value, uint64_t *result)
{
    group = public_group_of(group);
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = (enum engine_agree)op, .value = value};
    if (!result || !group || (unsigned)op > KEEL_GROUP_MAX)
        return public_wrong();
    return coll_run(group, &call, result);
}
