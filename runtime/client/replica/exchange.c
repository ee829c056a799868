/* The exchange: each replica of a rank sends the others one number for all that it did, and looks at theirs. Nobody
 * passes it before the others have come there, so sets go in step. Who has died is left out: what it had said counts
 * only if it came. */
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/digest.h"

struct sum_said {
    uint64_t exchange;
    struct check_sum sum;
    uint64_t call;     /* SUM_OF_WHO_WAITS: it has not come to a call at which replicas compare */
    uint64_t wrong;    /* ranges that do not lie where they were put (landed.c) */
    uint64_t complete; /* sets in which all is that it writes (meeting.c) */
};

#define SUM_OF_WHO_WAITS UINT64_MAX

struct replica_self replica = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *replica_call_name(enum replica_call call)
{
    unsigned of = (unsigned)call & ~(unsigned)REPLICA_CAME;
    return of < REPLICA_CALLS ? calls_names[of] : "an unknown call";
}

/* ---- words between replicas ---- */

static bool went(int set, keel_status met, keel_status *status)
{
    if (met == KEEL_ERR_RANK_DEAD)
        replica.gone[set] = true;
    else if (met != KEEL_OK)
        *status = met;
    return met == KEEL_OK;
}

static struct life of_set(int set)
{
    return life_of(replica_native(&replica.client->replicas, replica.rank, set), replica.life[set]);
}

bool replica_send(int set, uint32_t tag, const void *data, size_t len, keel_status *status)
{
    struct wait wait = {.whom = NULL};
    keel_status met;
    do
        met = mail_send_replica(replica.client, of_set(set), tag, data, len);
    while (nap_for_memory(met, &wait));
    return went(set, met, status);
}

static keel_status hear(int set, uint32_t tag, uint32_t unless, void *data, size_t len)
{
    struct wait wait = {.whom = NULL};
    keel_status met;
    do
        met = mail_receive_replica(replica.client, of_set(set), tag, unless, data, len, NULL);
    while (nap_for_memory(met, &wait));
    return met;
}

bool replica_hear(int set, uint32_t tag, void *data, size_t len, keel_status *status)
{
    return went(set, hear(set, tag, tag, data, len), status);
}

/* Whatever it sends before its next exchange. */
static bool hear_before_sum(int set, uint32_t tag, void *data, size_t len, keel_status *status)
{
    keel_status met = hear(set, tag, REPLICA_SUM, data, len);
    return met != KEEL_IN_PROGRESS && went(set, met, status);
}

bool replica_hear_answer(int set, void *data, size_t len)
{
    keel_status status = KEEL_OK;
    return hear_before_sum(set, REPLICA_ANSWER, data, len, &status);
}

bool replica_has_read(int set, keel_status *status)
{
    return replica_send(set, REPLICA_READ, &replica.exchanges, sizeof replica.exchanges, status);
}

void replica_await_reader(int set, keel_status *status)
{
    uint64_t read = 0;
    while (*status == KEEL_OK && !replica.gone[set] && read < replica.exchanges &&
           hear_before_sum(set, REPLICA_READ, &read, sizeof read, status))
        ;
}

/* ---- operations ---- */

static uint64_t number_of(const keel_segment *segment)
{
    return segment ? segment->number : 0;
}

void replica_did(enum replica_call call, int target, const keel_segment *segment, uint64_t place, uint64_t len,
                 uint64_t bytes)
{
    if (replica.check == CHECK_NONE)
        return;
    const struct check_op op = {(uint32_t)call, target, number_of(segment), place, len, bytes};
    pthread_mutex_lock(&replica.lock);
    check_add(&replica.ops, &op);
    pthread_mutex_unlock(&replica.lock);
}

void replica_did_bytes(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                       const void *bytes, size_t len)
{
    if (replica.check != CHECK_NONE)
        replica_did(call, target, segment, place, len, bytes ? digest(bytes, len, 0) : 0);
}

/* ---- the exchange ---- */

static void say(enum replica_call call, size_t wrong, keel_status *status)
{
    const struct sum_said mine = {replica.exchanges, replica.ops.now, (uint64_t)call, wrong, replica_comes_complete()};
    for (int s = 0; s < replica.sets; s++)
        if (s != replica.set && !replica.gone[s] && replica_send(s, REPLICA_SUM, &mine, sizeof mine, status))
            FAULT_POINT("replica.saying");
}

/* Of who waits: has it only not come as far? What is too long ago to be known is taken for that. */
static bool is_behind(const struct sum_said *theirs)
{
    const struct check_entry *e = check_find(&replica.ops, theirs->sum.count);
    if (theirs->call != SUM_OF_WHO_WAITS || theirs->sum.count > replica.ops.now.count)
        return false;
    return !e || e->after == theirs->sum.after;
}

/* What is older is of an exchange that went on without it. */
static bool hear_sum(int set, struct sum_said *theirs, keel_status *status)
{
    do {
        if (!replica_hear(set, REPLICA_SUM, theirs, sizeof *theirs, status))
            return false;
    } while (theirs->exchange < replica.exchanges || is_behind(theirs));
    return true;
}

struct heard {
    struct check_sum sums[REPLICAS_MAX];
    size_t wrong[REPLICAS_MAX];
    unsigned complete[REPLICAS_MAX];
    bool there[REPLICAS_MAX], any; /* any: something lies wrong in a set */
};

static void hear_from(int set, struct heard *h, keel_status *status)
{
    struct sum_said theirs;
    if (replica.gone[set] || !hear_sum(set, &theirs, status))
        return;
    h->there[set] = true;
    h->sums[set] = theirs.sum;
    h->wrong[set] = theirs.wrong;
    h->complete[set] = (unsigned)theirs.complete;
    h->any = h->any || theirs.wrong;
}

static void hear_all(struct heard *h, keel_status *status)
{
    h->there[replica.set] = true;
    h->sums[replica.set] = replica.ops.now;
    h->any = h->wrong[replica.set];
    for (int s = 0; s < replica.sets && *status == KEEL_OK; s++)
        if (s != replica.set)
            hear_from(s, h, status);
}

/* Whose sums a replica has. */
struct there_said {
    uint64_t exchange;
    uint64_t sets; /* a bit each */
};

static bool said_of(int set, const bool *there, struct there_said *said, keel_status *status)
{
    uint64_t mine = 0;
    for (int s = 0; s < replica.sets; s++)
        mine |= (uint64_t)there[s] << s;
    do {
        if (!replica_hear(set, REPLICA_THERE, said, sizeof *said, status))
            return false;
    } while (said->exchange < replica.exchanges && (mine & ~said->sets) == 0);
    return true;
}

/* Who dies while it says its sum may have told one of the others only. Where these three differ all must know it, as
 * they wait for each other to mend it, or one would vote with who does that. So who compares without somebody for the
 * first time says so; and those that have three sums that differ say that, too, and leave out whose sum another one has
 * not got. The dead do not come back, so it counts at each exchange from then on, until another life of the rank is
 * whole. */
static bool without[REPLICAS_MAX];

static keel_status agree_who_is_there(bool differ, bool *there)
{
    struct there_said mine = {replica.exchanges, 0}, said;
    keel_status status = KEEL_OK;
    bool all = true, news = false;
    for (int s = 0; s < replica.sets; s++) {
        news = news || (!there[s] && !without[s]);
        without[s] = !there[s];
        all = all && there[s];
        mine.sets |= (uint64_t)there[s] << s;
    }
    bool asks = all && differ && replica.sets == REPLICAS_MAX;
    for (int s = 0; s < replica.sets && (news || asks); s++)
        if (s != replica.set && there[s] && !replica.gone[s])
            (void)replica_send(s, REPLICA_THERE, &mine, sizeof mine, &status);
    for (int s = 0; s < replica.sets && asks && status == KEEL_OK; s++)
        if (s != replica.set && there[s] && !replica.gone[s] && said_of(s, there, &said, &status))
            for (int t = 0; t < replica.sets; t++)
                there[t] = there[t] && (t == replica.set || said.sets >> t & 1);
    return status;
}

/* The lock is held. *equal: all have done the same, and know it. */
static keel_status meet(enum replica_call call, struct replica_last *last, struct heard *h, bool *equal)
{
    *h = (struct heard){.any = false};
    keel_status status = KEEL_OK, inspected = replica_inspect(&h->wrong[replica.set]);
    bool votes = replica.check == CHECK_ALL && replica_has_put();
    replica.exchanges++;
    FAULT_POINT("replica.meeting");
    say(call, h->wrong[replica.set], &status);
    FAULT_POINT("replica.said");
    hear_all(h, &status);
    if (status == KEEL_OK)
        status = agree_who_is_there(check_compare(h->sums, h->there).verdict != CHECK_EQUAL, h->there);
    if (status != KEEL_OK)
        return status;
    struct check_outcome o = check_compare(h->sums, h->there);
    *equal = o.verdict == CHECK_EQUAL;
    if (*equal)
        check_was_equal(&replica.ops);
    else
        status = replica_differ(&o, h->sums, h->there, last);
    if (*equal && votes)
        status = replica_inspect_all_sets(h->wrong, h->there, &h->any);
    if (h->any && status == KEEL_OK)
        status = replica_mend_memory(h->wrong, h->there);
    replica_inspected();
    return status == KEEL_OK ? inspected : status;
}

static keel_status meet_once(enum replica_call call, struct replica_last *last, bool *equal)
{
    struct heard h;
    keel_status rested = replica_rest();
    pthread_mutex_lock(&replica.lock);
    keel_status status = meet(call, last, &h, equal);
    if (status == KEEL_OK && *equal)
        status = replica_leave_together(h.complete, h.there);
    pthread_mutex_unlock(&replica.lock);
    return status == KEEL_OK ? rested : status;
}

/* Those that differed have come to an end by that, or all have the majority's bytes now; one of them may have taken
 * part in the middle of a wait. So it is the next meeting that partners leave together. */
static keel_status meet_now(enum replica_call call, struct replica_last *last)
{
    bool equal = true;
    if (replica.check == CHECK_NONE)
        return KEEL_OK;
    (void)replica_after(KEEL_OK); /* the own set may be retired */
    keel_status status = meet_once(call, last, &equal);
    while (status == KEEL_OK && !equal && replica.partners && replica.on_mismatch == MISMATCH_STOP)
        status = meet_once(call, last, &equal);
    replica_world_met();
    return replica_after(status);
}

/* Of the next exchange. */
static bool has_come(int set, enum replica_tag tag)
{
    return mail_has_replica(replica.client, of_set(set), tag, replica.exchanges + 1);
}

/* A call lasts, and this replica may be the only one that makes it, or wait for what only others have made. Those that
 * compare already are told how far it is. If that differs from what they did they say so, by their details, and it
 * takes part. */
static struct check_sum told[REPLICAS_MAX];

void replica_lasts(void)
{
    struct replica_last none = {NULL, 0};
    struct heard h;
    keel_status status = KEEL_OK;
    replica_look_for_deaths(); /* others of a set may wait for what a dead one has to do there */
    if (replica.check == CHECK_NONE || pthread_mutex_trylock(&replica.lock) != 0)
        return; /* it compares itself */
    const struct sum_said mine = {replica.exchanges + 1, replica.ops.now, SUM_OF_WHO_WAITS, 0, 0};
    bool differs = false, equal;
    for (int s = 0; s < replica.sets; s++) {
        if (s == replica.set || replica.gone[s] || !has_come(s, REPLICA_SUM))
            continue;
        differs = differs || has_come(s, REPLICA_DETAIL) || has_come(s, REPLICA_THERE);
        if (told[s].count != mine.sum.count && replica_send(s, REPLICA_SUM, &mine, sizeof mine, &status))
            told[s] = mine.sum;
    }
    if (differs)
        (void)meet(CALL_fence, &none, &h, &equal);
    pthread_mutex_unlock(&replica.lock);
}

void replica_is_with(int set, uint32_t life)
{
    replica.gone[set] = without[set] = false;
    replica.life[set] = life;
    told[set] = (struct check_sum){0};
}

void replica_is_without(int set)
{
    replica.gone[set] = without[set] = true;
}

/* That it is this call is compared, too: a replica that is elsewhere has not done anything else yet. */
keel_status replica_meet(enum replica_call call)
{
    struct replica_last none = {NULL, 0};
    replica_did(call, -1, NULL, 0, 0, 0);
    return meet_now(call, &none);
}

keel_status replica_meet_before(enum replica_call call, int target, const keel_segment *segment, uint64_t place,
                                const void **bytes, size_t len)
{
    struct replica_last last = {*bytes, len};
    replica_did_bytes(call, target, segment, place, *bytes, len);
    if (replica.sets < REPLICAS_MAX)
        return KEEL_OK;
    keel_status status = meet_now(call, &last);
    *bytes = last.bytes;
    return status;
}

/* Three replicas remember no more operations than they can write over, and nobody more than it looks at at once. */
keel_status replica_room(enum replica_call call)
{
    bool full = replica.sets == REPLICAS_MAX && replica.ops.now.count - replica.ops.equal.count >= REPLICA_RING - 1;
    return full || replica_inspects_soon() ? replica_meet(call) : KEEL_OK;
}
