/* Mutexes in replicated memory. At its home a mutex is a word, and for each rank a word that says whether it waits:
 *
 *   word    bit 0-19 owner + 1, 0: free, 20-30 its incarnation modulo 2^11, 31: taken over from a dead owner, which one
 *           holder is
 *           told, 32-63 arrivals
 *   dead    the rank whose process died last while it was the owner: written before the word says so
 *   wants   [ranks] 1 + the incarnation of the process that waits, 0: none does
 *
 *   lock    compare-and-swap of 0 for oneself. Else: say in wants that one waits, add one to the arrivals, and take the
 *           word if nobody owns it;
 *           or sleep until one is the owner, or the owner is dead.
 *   unlock  compare-and-swap of one's own word without arrivals for 0. Else: choose who waits next, and make it the
 *           owner by a
 *           compare-and-swap, which fails if somebody has arrived since the choice; then tell it (a signal, as
 *           keel/signal.h has them).
 *
 * None of these operations has a time-out (nobody can tell by giving up whether he is the owner): the node that is to
 * answer does, or is declared dead.
 *
 * What was only read may be in one copy, and die with it: who reads that it is the owner makes sure by a
 * compare-and-swap.
 *
 * An owner that is dead by the view (it, or a later process of its rank) was fenced before anybody saw that view, so
 * whoever waits may hand over in its place. While the word has an owner nobody but that one (or, for a dead one, the
 * waiters, each by compare-and-swap) changes the owner: so a rank that was chosen is still waiting. Who is told and
 * who is not makes no difference but in time: the word decides. */
#include "runtime/client/op/mutex_int.h"

#include "runtime/base/fault.h"
#include "runtime/client/op/mutex.h"

static keel_status bad_call(const keel_mutexes *m, int home, int number)
{
    if (!m->client->ready)
        return KEEL_ERR_STATE;
    return home < 0 || home >= m->client->size || number < 0 || number >= m->per_rank ? KEEL_ERR_ARG : KEEL_OK;
}

static keel_status say(keel_mutexes *m, int home, int number, int64_t wants)
{
    return mutex_store(m, home, mutex_place_of_wants(m, number, m->client->rank), wants);
}

/* Somebody has it. Afterwards this process has it, or waits no more. */
static keel_status arrive_and_wait(keel_mutexes *m, int home, int number, int64_t *word)
{
    keel_status status = say(m, home, number, (int64_t)m->client->incarnation + 1);
    FAULT_POINT("mutex.waiting");
    if (status == KEEL_OK)
        status = mutex_arrive(m, home, number, word);
    if (status == KEEL_OK)
        status = mutex_wait_for(m, home, number, word);
    keel_status after = say(m, home, number, 0);
    if (status != KEEL_OK) /* whoever has chosen this process before has made it the owner, or chooses again */
        (void)mutex_arrive(m, home, number, word);
    bool given = (*word & OWNER) == mutex_myself(m->client);
    if (given && (status != KEEL_OK || after != KEEL_OK))
        (void)mutex_hand_over(m, home, number, word, true);
    return status != KEEL_OK ? status : after;
}

static keel_status take(keel_mutexes *m, int home, int number, bool waits, int *dead_owner)
{
    int64_t word = 0, who = -1;
    bool done;
    keel_status status = mutex_swap(m, home, number, &word, mutex_myself(m->client), &done);
    done = done ||
           (status == KEEL_OK && (word & OWNER) == mutex_myself(m->client)); /* by a call that ended with an error */
    if (status == KEEL_OK && !done && waits)
        status = arrive_and_wait(m, home, number, &word);
    while (status == KEEL_OK && !done &&
           !waits) { /* free, or a dead one's: whoever waits may be passed by one who tries */
        bool dead = (word & OWNER) && !mutex_owner_lives(m->client, word);
        if ((word & OWNER) && !dead)
            return KEEL_IN_PROGRESS;
        if (dead)
            status = mutex_note_dead(m, home, number, word);
        if (status == KEEL_OK)
            status = mutex_swap(m, home, number, &word,
                                (word & ~OWNER) | (dead ? TAKEN_OVER : 0) | mutex_myself(m->client), &done);
        done = done || (status == KEEL_OK && (word & OWNER) == mutex_myself(m->client));
    }
    if (status == KEEL_OK && (word & TAKEN_OVER))
        status = mutex_load(m, home, mutex_place_of_dead(m, number), &who, 1);
    if (status != KEEL_OK && (word & OWNER) == mutex_myself(m->client)) /* the caller has not got it */
        (void)mutex_hand_over(m, home, number, &word, true);
    *dead_owner = (int)who;
    return status;
}

keel_status mutex_lock(keel_mutexes *m, int home, int number, bool waits, int *dead_owner)
{
    int who = -1;
    if (dead_owner)
        *dead_owner = -1;
    keel_status status = bad_call(m, home, number);
    if (status == KEEL_OK)
        status = mutex_turn_begin(m, home, number, waits);
    if (status != KEEL_OK)
        return status;
    status = take(m, home, number, waits, &who);
    FAULT_POINT("mutex.locked");
    if (status != KEEL_OK) {
        mutex_turn_end(m, home, number);
        return status;
    }
    if (dead_owner)
        *dead_owner = who;
    pthread_mutex_lock(&m->lock);
    mutex_find(m, home, number)->held = true;
    pthread_mutex_unlock(&m->lock);
    return KEEL_OK;
}

keel_status mutex_unlock(keel_mutexes *m, int home, int number)
{
    keel_status status = bad_call(m, home, number);
    if (status != KEEL_OK)
        return status;
    pthread_mutex_lock(&m->lock);
    struct busy *b = mutex_find(m, home, number);
    bool held = b && b->held;
    if (held)
        b->held = false; /* another thread does not unlock it as well */
    pthread_mutex_unlock(&m->lock);
    if (!held)
        return KEEL_ERR_STATE;
    int64_t word = mutex_myself(m->client);
    status = mutex_hand_over(m, home, number, &word, false);
    if (status == KEEL_OK || status == KEEL_ERR_DATA_LOST) {
        mutex_turn_end(m, home, number);
    } else {
        pthread_mutex_lock(&m->lock);
        b->held = true;
        pthread_mutex_unlock(&m->lock);
    }
    return status;
}
