/* Mutexes, and what task pools (wrap_task.c) share with them. Who gets what is the moment's, and must be the same in
 * all sets; but as a set in which anybody dies is retired as a whole, or a replica does the dead one's part, nothing is
 * ever taken back from the dead. So both are words that ranks add to, in memory of each set's own, and the sums have
 * the same order in all sets (agent/ordering.h):
 *
 *   mutex   drawn    how many have drawn a number: keel_mutex_lock adds one, and has the number that it found
 *           served   whose turn it is: keel_mutex_unlock adds one
 *   pool    drawn    how many tasks have been drawn: keel_task_next adds one, and runs the task that it found
 *           done     how many have been committed; both twice, for rounds that are even and odd
 *
 * Whether a mutex is free when keel_mutex_try looks is decided by the leading replica, which says what it saw served:
 * all swap that for the next number, and find the same. Turns are looked for every millisecond; messages are taken
 * meanwhile, since who sends one may wait for that, and the holder for what the sender does next. */
#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/client/api/living.h"
#include "runtime/client/api/public_int.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/replica/wrap_turn.h"
#include "runtime/client/segment/segment.h"

#define BELOW replica.below

enum { MUTEX_BYTES = 2 * TURNS_WORD, SERVED_AT = TURNS_WORD };

keel_status turns_allocate(bool able, size_t bytes_of_each, keel_segment **out)
{
    size_t *bytes = able ? malloc((size_t)replica.size * sizeof *bytes) : NULL;
    for (int r = 0; bytes && r < replica.size; r++)
        bytes[r] = bytes_of_each;
    keel_status status = replica_after(BELOW->segment_alloc_group(replica.group, bytes, KEEL_REDUNDANCY_NONE, out));
    free(bytes);
    return status == KEEL_OK && out && replica.partners ? replica_owns(*out) : status;
}

keel_status turns_free(keel_segment *segment)
{
    uint64_t number = segment->number;
    keel_status status = replica_after(BELOW->segment_free(segment));
    if (status == KEEL_OK && number)
        replica_disowns(number);
    return status;
}

keel_status turns_meet_apart(enum replica_call call)
{
    return replica_is_apart() ? KEEL_ERR_STATE : replica_meet(call);
}

keel_status turns_meet_alike(enum replica_call call, int64_t number)
{
    const keel_combine least = {.type = KEEL_INT64, .op = KEEL_MIN};
    int64_t mine[2] = {number, ~number}, of_all[2] = {0, 0};
    keel_status status = turns_meet_apart(call);
    if (status == KEEL_OK)
        status = replica_after(BELOW->group_allreduce(replica.group, mine, of_all, 2, &least));
    if (status == KEEL_OK && of_all[0] != ~of_all[1])
        return KEEL_ERR_MISMATCH;
    return status == KEEL_OK && number < 0 ? KEEL_ERR_ARG : status;
}

static keel_status look(keel_segment *segment, int rank, size_t offset, int64_t *value)
{
    return replica_after(BELOW->get(segment, replica_native_of(rank), offset, value, sizeof *value));
}

static void some_holder(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)c;
    (void)arg;
    out->whom = WAIT_FOR_HOLDER;
    out->rank = -1;
}

keel_status turns_wait_for(keel_segment *segment, int rank, size_t offset, int64_t value, enum wait_call call)
{
    struct wait wait = {.call = call, .whom = some_holder};
    int64_t got;
    keel_status status = look(segment, rank, offset, &got);
    while (status == KEEL_OK && got < value) {
        nap(&wait);
        status = look(segment, rank, offset, &got);
    }
    waits_over(replica.client, &wait);
    replica_learn_what_is_known();
    return status;
}

/* ---- mutexes ---- */

struct held {
    struct held *next;
    int rank, number;
};

struct turns {
    keel_segment *segment;
    int per_rank;
    struct held *held;
};

static struct turns *turns_of(const keel_mutexes *number)
{
    return living_find(number, LIVING_MUTEXES);
}

keel_status replica_mutexes_create(int per_rank, keel_mutexes **out)
{
    keel_status status = turns_meet_alike(CALL_mutexes_create, out && per_rank >= 0 ? per_rank : -1);
    replica_bound_by(BOUND_TURNS);
    if (out)
        *out = NULL;
    if (status != KEEL_OK)
        return status;
    keel_mutexes *number = living_take(LIVING_MUTEXES);
    struct turns *t = calloc(1, sizeof *t);
    bool able = number && t;
    status = turns_allocate(able, (size_t)per_rank * MUTEX_BYTES, able ? &t->segment : NULL);
    if (status != KEEL_OK || !t) {
        living_give_back(number);
        free(t);
        return status;
    }
    t->per_rank = per_rank;
    living_set(number, t);
    *out = number;
    return KEEL_OK;
}

keel_status replica_mutexes_free(keel_mutexes *mutexes)
{
    struct turns *t = turns_of(mutexes);
    keel_status status = turns_meet_apart(CALL_mutexes_free);
    if (status != KEEL_OK || !mutexes)
        return status;
    if (!t)
        return public_wrong();
    if (t->held)
        return KEEL_ERR_STATE;
    status = turns_free(t->segment);
    if (status == KEEL_OK) {
        living_give_back(mutexes);
        free(t);
    }
    return status;
}

static size_t place(int number)
{
    return (size_t)number * MUTEX_BYTES;
}

static keel_status bad_mutex(const struct turns *t, int rank, int number)
{
    if (!t)
        return public_wrong();
    return rank < 0 || rank >= replica.size || number < 0 || number >= t->per_rank ? KEEL_ERR_ARG : KEEL_OK;
}

/* Its turn comes when that many were served. */
static keel_status await_turn(struct turns *t, int rank, int number, int64_t mine, struct held *h)
{
    keel_status status = turns_wait_for(t->segment, rank, place(number) + SERVED_AT, mine, WAIT_LOCK);
    if (status != KEEL_OK) {
        free(h);
        return status;
    }
    *h = (struct held){t->held, rank, number};
    t->held = h;
    return KEEL_OK;
}

keel_status replica_mutex_lock(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    struct turns *t = turns_of(mutexes);
    keel_status status = bad_mutex(t, rank, number);
    int64_t mine;
    if (dead)
        *dead = -1; /* nobody of the set has died */
    if (status != KEEL_OK)
        return status;
    struct held *h = malloc(sizeof *h);
    if (!h)
        return KEEL_ERR_NOMEM;
    status = replica_before(CALL_mutex_lock, PARTNER_EXCHANGE, rank, TURNS_WORD);
    if (status == KEEL_OK)
        status = replica_add(t->segment, rank, place(number), 1, &mine);
    FAULT_POINT("replica.lock_drawn");
    if (status == KEEL_OK)
        return await_turn(t, rank, number, mine, h);
    free(h);
    return status;
}

keel_status replica_mutex_try(keel_mutexes *mutexes, int rank, int number, int *dead)
{
    struct turns *t = turns_of(mutexes);
    struct replica_answer a;
    int64_t served = 0, drawn;
    keel_status status = bad_mutex(t, rank, number);
    if (dead)
        *dead = -1;
    if (status != KEEL_OK)
        return status;
    if (replica_decides(&a)) {
        status = look(t->segment, rank, place(number) + SERVED_AT, &served);
        a = replica_tell((struct replica_answer){{status, served}});
    }
    struct held *h = malloc(sizeof *h);
    status = h ? (keel_status)a.value[0] : KEEL_ERR_NOMEM;
    if (status == KEEL_OK)
        status = replica_before(CALL_mutex_try, PARTNER_EXCHANGE, rank, TURNS_WORD);
    replica_used(PARTNER_EXCHANGE, rank, TURNS_WORD);
    if (status == KEEL_OK)
        status = replica_after(BELOW->compare_swap(t->segment, replica_native_of(rank), place(number), a.value[1],
                                                   a.value[1] + 1, &drawn));
    if (status == KEEL_OK && drawn == a.value[1])
        return await_turn(t, rank, number, drawn, h);
    free(h);
    return status == KEEL_OK ? KEEL_IN_PROGRESS : status;
}

keel_status replica_mutex_unlock(keel_mutexes *mutexes, int rank, int number)
{
    struct turns *t = turns_of(mutexes);
    int64_t before;
    replica_did(CALL_mutex_unlock, rank, NULL, (uint64_t)number, 0, 0);
    keel_status status = replica_meet(CALL_mutex_unlock);
    if (status == KEEL_OK)
        status = bad_mutex(t, rank, number);
    if (status != KEEL_OK)
        return status;
    struct held **link = &t->held;
    while (*link && ((*link)->rank != rank || (*link)->number != number))
        link = &(*link)->next;
    struct held *h = *link;
    if (!h)
        return KEEL_ERR_STATE;
    status = replica_add(t->segment, rank, place(number) + SERVED_AT, 1, &before);
    if (status == KEEL_OK) {
        *link = h->next;
        free(h);
    }
    return status;
}
