/* Groups, and requests. Members are places in a group, which are the same in each set; only lists of ranks are
 * translated. */
#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"
#include "runtime/wire/digest.h"

#include <stdlib.h>

#define BELOW replica.below
#define AFTER(call) (status != KEEL_OK ? status : replica_after(call))

/* ---- requests: whether one is complete is the moment's ---- */

keel_status replica_request_wait(keel_request *request, keel_covered **covered)
{
    return replica_has_come(replica_after(BELOW->request_wait(request, covered)), request);
}

keel_status replica_request_test(keel_request *request, keel_covered **covered)
{
    struct replica_answer a;
    if (covered)
        *covered = NULL;
    if (replica_decides(&a)) {
        keel_status status = replica_after(BELOW->request_test(request, covered));
        a = replica_tell((struct replica_answer){{status}});
    } else if (a.value[0] == KEEL_OK) {
        return replica_request_wait(request, covered);
    }
    return replica_has_come((keel_status)a.value[0], request);
}

/* ---- groups ---- */

keel_status replica_group_create(const int *ranks, int n, uint64_t tag, keel_group **group)
{
    if (!ranks || n < 1 || n > replica.size)
        return BELOW->group_create(ranks, n < 1 || n > replica.size ? 0 : n, tag, group); /* which refuses it */
    if (replica_is_in_task())
        return KEEL_ERR_STATE;
    int *natives = malloc((size_t)n * sizeof *natives);
    if (!natives)
        return KEEL_ERR_NOMEM;
    for (int i = 0; i < n; i++)
        natives[i] = replica_native_of(ranks[i]);
    replica_did_bytes(CALL_group_create, -1, NULL, tag, ranks, (size_t)n * sizeof *ranks);
    keel_status status = replica_meet(CALL_group_create);
    if (status == KEEL_OK)
        status = replica_after(BELOW->group_create(natives, n, tag, group));
    replica_makes(CALL_group_create, digest(ranks, (size_t)n * sizeof *ranks, tag));
    free(natives);
    return status;
}

keel_status replica_group_split(keel_group *parent, int colour, int key, keel_group **group)
{
    const int how[] = {colour, key};
    keel_status status = replica_contribute_kept(CALL_group_split, -1, how, sizeof how);
    replica_makes(CALL_group_split, digest(how, sizeof how, 0));
    return AFTER(BELOW->group_split(parent, colour, key, group));
}

static void to_ranks(int *natives, int n)
{
    for (int i = 0; i < n; i++)
        natives[i] = replica_of(&replica.client->replicas, natives[i]).rank;
}

keel_status replica_group_union(const keel_group *a, const keel_group *b, int *ranks, int *n)
{
    keel_status status = BELOW->group_union(a, b, ranks, n);
    if (status == KEEL_OK)
        to_ranks(ranks, *n);
    return status;
}

keel_status replica_group_difference(const keel_group *a, const keel_group *b, int *ranks, int *n)
{
    keel_status status = BELOW->group_difference(a, b, ranks, n);
    if (status == KEEL_OK)
        to_ranks(ranks, *n);
    return status;
}

keel_status replica_group_shrink(keel_group *group, keel_group **survivors)
{
    keel_status status = replica_is_in_task() ? KEEL_ERR_STATE : replica_meet(CALL_group_shrink);
    replica_makes(CALL_group_shrink, 0);
    return AFTER(BELOW->group_shrink(group, survivors));
}

keel_status replica_group_shrink_among(keel_group *group, const int *members, int n, keel_group **survivors)
{
    keel_status status =
        replica_contribute_kept(CALL_group_shrink_among, -1, members, n > 0 ? (size_t)n * sizeof *members : 0);
    replica_makes(CALL_group_shrink_among, (uint64_t)n);
    return AFTER(BELOW->group_shrink_among(group, members, n, survivors));
}

keel_status replica_group_agree(keel_group *group, keel_group_op op, uint64_t value, uint64_t *result)
{
    const uint64_t how[] = {op, value};
    keel_status status = replica_contribute_kept(CALL_group_agree, -1, how, sizeof how);
    return AFTER(BELOW->group_agree(group, op, value, result));
}

/* Members hear of it at other moments in each set. */
keel_status replica_group_revoke(keel_group *group)
{
    (void)group;
    return replica_refuses(CALL_group_revoke);
}

keel_status replica_group_free(keel_group *group)
{
    bool lasts = group && (group == replica.group || group == replica.on_node);
    if (lasts)
        return KEEL_ERR_ARG;
    replica_makes(CALL_group_free, 0);
    return replica_after(BELOW->group_free(group));
}

int replica_group_to_world(const keel_group *group, int member)
{
    int native = BELOW->group_to_world(group, member);
    return native < 0 ? native : replica_of(&replica.client->replicas, native).rank;
}

int replica_group_from_world(const keel_group *group, int rank)
{
    return BELOW->group_from_world(group, replica_native_of(rank));
}

int replica_group_stopped(const keel_group *group)
{
    struct replica_answer a;
    if (replica_decides(&a))
        a = replica_tell((struct replica_answer){{BELOW->group_stopped(group)}});
    return (int)a.value[0];
}

/* The set is whole, or retired. */
bool replica_group_alive(const keel_group *group, int member)
{
    return member >= 0 && member < BELOW->group_size(group);
}
