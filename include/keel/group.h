/* Groups: ordered sets of ranks that go on together whoever of them dies. A member is a place 0..size-1 in a group; it
 * is one life of a rank: a process that takes the place of a dead one (keel_restarted) is no member of the groups of
 * its predecessor, nor of keel_group_world, but of each new group that is created with its rank.
 *
 * Every call
 *  threads   one thread at a time calls on one group.
 *  blocks    no, but where it says so: until all members that live have called. Nobody waits for a dead member, nor for
 *            one
 *            that has called keel_finalize: each is left out once the job's view says so. Keel makes progress inside
 *            its calls only.
 *  errors    KEEL_ERR_ARG: an argument is wrong, or the group was freed (whatever was made since); KEEL_ERR_STATE:
 *            before keel_init, inside a task, or not
 *            a member (any more); nothing was sent. KEEL_ERR_NOMEM of create, split, shrink, agree: some member had no
 *            memory; all that live are told, and
 *            nothing is left. KEEL_ERR_LIMIT: this member had none for the last such call either, and that one is not
 *            over everywhere, or it has none for one more handle; it alone is
 *            told, has begun nothing, and may call again. KEEL_ERR_FENCED, KEEL_ERR_AGENT_GONE as everywhere.
 *            KEEL_ERR_TIMEOUT of create, shrink, agree: the process of a member is stopped (by a signal or a debugger),
 *            and has been for
 *            KEEL_TIMEOUT_MS; its rank is said on standard error. The call is not over: the same one (create: with the
 *            same list and
 *            tag; agree: the value that it began with counts) goes on with it, and returns what the others get; until
 *            it is complete
 *            other ones of these on the group, and keel_group_free, are KEEL_ERR_STATE. Who does not want to wait makes
 *            a group
 *            by a list without the member.
 * source   Liveness-discovery. Differs: the live set comes from the views that all agree on.
 *          docs/protocols/collectives.md */
#ifndef KEEL_GROUP_H
#define KEEL_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_group keel_group;

/* All ranks of the job as it started; the ranks that started on this rank's node. Never freed. NULL before
 * keel_init. */
keel_group *keel_group_world(void);
keel_group *keel_group_node(void);

/* The listed ranks, in that order. Only they call, all with the same list and tag; nobody else is needed. Ranks that
 * are dead, or die during the call, are left out: every caller that lives gets the same group. One that leaves
 * (keel_finalize) right after this, or a shrink, may have got more members than the others, those that had not left
 * yet; all that stay have the same. The tag tells apart groups of the same list that are created at the same time.
 * blocks    until all listed ranks that live have called.
 * errors    KEEL_ERR_ARG: a negative count, a rank out of range or twice, the caller not in the list. KEEL_ERR_STATE:
 *           the
 *           others made the group before this process took its rank over. */
KEEL_MUST_CHECK keel_status keel_group_create(const int *ranks, int n, uint64_t tag, keel_group **group);
/* Collective over parent: the members of equal colour, by key, those of equal keys in parent's order. A negative
 * colour: no group (*group is NULL). Members that die are left out.
 * blocks    until all members that live have called.
 * errors    KEEL_ERR_REVOKED: the parent was revoked. KEEL_ERR_MISMATCH: members make another call on the parent. */
KEEL_MUST_CHECK keel_status keel_group_split(keel_group *parent, int colour, int key, keel_group **group);
/* The ranks of a, then those of b that are not in a; the ranks of a that are not in b. Local: ranks[] must have room
 * for both groups (for a); *n gets their number. They become a group by keel_group_create. */
KEEL_MUST_CHECK keel_status keel_group_union(const keel_group *a, const keel_group *b, int *ranks, int *n);
KEEL_MUST_CHECK keel_status keel_group_difference(const keel_group *a, const keel_group *b, int *ranks, int *n);
/* A group of the members that live: liveness discovery. Collective over all members that live, or non-collective: the
 * listed members call, and nobody else. Both work on a revoked group; the new group is not revoked.
 * blocks    until all members that live, or all of the list that live, have called.
 * errors    KEEL_ERR_MISMATCH: members of keel_group_shrink call keel_group_agree. */
KEEL_MUST_CHECK keel_status keel_group_shrink(keel_group *group, keel_group **survivors);
KEEL_MUST_CHECK keel_status keel_group_shrink_among(keel_group *group, const int *members, int n,
                                                    keel_group **survivors);
/* The value of all members that live, combined: KEEL_GROUP_AND, _OR (bit by bit), _MIN, _MAX. All who return have the
 * same result, also those who die right after it. Works on a revoked group. Agree and shrink are numbered apart from
 * the other calls, so that members that have left a collective at different places can meet: who goes to one of them
 * from a collective in which others may still wait revokes the group first.
 * blocks    until all members that live have called.
 * errors    KEEL_ERR_MISMATCH: members have another op, or call keel_group_shrink. */
typedef enum keel_group_op { KEEL_GROUP_AND, KEEL_GROUP_OR, KEEL_GROUP_MIN, KEEL_GROUP_MAX } keel_group_op;
KEEL_MUST_CHECK keel_status keel_group_agree(keel_group *group, keel_group_op op, uint64_t value, uint64_t *result);
/* Pending and future calls of all members but agree, shrink and free return KEEL_ERR_REVOKED: whoever leaves an
 * algorithm that others are in lets them go, too. One member calls. */
KEEL_MUST_CHECK keel_status keel_group_revoke(keel_group *group);
/* Whether the caller's calls on the group wait for a member whose process is stopped (by a signal or a debugger),
 * without end, also in keel_finalize; or, as at first, for KEEL_TIMEOUT_MS. For programs that have no way to go on
 * without it. That it is waited for is said on standard error each KEEL_TIMEOUT_MS. Local: a member that does not wait
 * revokes the group for all.
 * errors    KEEL_ERR_ARG, KEEL_ERR_STATE. */
__extension__ KEEL_MUST_CHECK keel_status keel_group_patience(keel_group *group, bool waits);
/* The group is not used by this rank any more. Each member calls it, after its last call on the group. Does not block;
 * what the group takes is given back when all members that live have freed it. NULL is allowed.
 * errors    KEEL_ERR_ARG for the world and the node; KEEL_ERR_STATE: a call on the group has not returned, or a request
 *           of it
 *           was not waited for. */
keel_status keel_group_free(keel_group *group);

/* Of a group that was freed, and after keel_finalize: size 0, else -1 or false. */
int keel_group_size(const keel_group *group);                 /* members, the dead ones too */
int keel_group_rank(const keel_group *group);                 /* the caller's place, -1: not a member */
int keel_group_to_world(const keel_group *group, int member); /* the rank, -1: no such member */
int keel_group_from_world(const keel_group *group, int rank); /* the member, -1: the rank is none */
/* The member because of whose stopped process the group was revoked (keel/collective.h), or an agree or shrink of it
 * ended by KEEL_ERR_TIMEOUT and is not complete; -1: none. The others go on in a group that they make by a list
 * without it. */
int keel_group_stopped(const keel_group *group);
/* Does the member live, as far as is known here now? */
__extension__ bool keel_group_alive(const keel_group *group, int member);

#ifdef __cplusplus
}
#endif
#endif
