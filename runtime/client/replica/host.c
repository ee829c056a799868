/* A host: a process of a whole set, at the end of keel_keep_commit (renew.h). It tells its guest what that takes over,
 * and stands still until the guest's set has joined, or is lost. And what the program does by which that cannot be. */
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/replica/takeover.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/digest.h"

static struct {
    enum replica_bound bound;
    bool keeps;                             /* the agents know that the program keeps memory */
    struct guest_waits waits[REPLICAS_MAX]; /* what this rank's guests have said last */
    uint64_t told;                          /* reasons: bit set */
    struct renew_late late[REPLICAS_MAX];
} us;

#define LATE_NS UINT64_C(20000000000)

/* ---- what sets that begin anew cannot take over ---- */

static const char *const why[BOUNDS] = {
    [BOUND_LATE] = "it has begun, and its processes have not come to keel_keep_restore for 20 s",
    [BOUND_FILES] = "the program has written files",
    [BOUND_WORLD] = "each set has files of its own",
    [BOUND_TURNS] = "the program has mutexes or task pools",
    [BOUND_MESSAGES] = "the program has sent messages",
    [BOUND_CHECK] = "with --check all each set writes to all others",
    [BOUND_STRUCTURE] = "a process that begins has other segments and groups at keel_keep_restore than the others then",
};

void replica_bound_by(enum replica_bound what)
{
    bool news = !us.bound && us.keeps;
    us.bound = us.bound ? us.bound : what;
    if (news)
        takeover_needs(CONTROL_NEEDS, NEEDS_ITS, 0);
}

static bool may_renew(void)
{
    return replica.check != CHECK_NONE && !replica.partners;
}

static void look_at_world(void)
{
    struct world_place place;
    if (!replica_world_place(&place) || !place.shared)
        replica_bound_by(BOUND_WORLD);
    else if (place.written)
        replica_bound_by(BOUND_FILES);
}

void replica_keeps(void)
{
    if (replica.check == CHECK_ALL)
        replica_bound_by(BOUND_CHECK);
    look_at_world();
    if (!may_renew() || us.bound)
        return;
    us.keeps = true;
    takeover_needs(CONTROL_NEEDS, NEEDS_KEPT, 0);
}

void replica_makes(enum replica_call call, uint64_t what)
{
    const uint64_t made[] = {(uint64_t)call, what};
    replica.structure = digest(made, sizeof made, replica.structure);
}

/* ---- who waits ---- */

static void hear_waits(int set, uint32_t attempt)
{
    struct life guest = takeover_life(set, attempt);
    struct guest_waits heard;
    if (mail_has_replica(replica.client, guest, REPLICA_WAITS, 0) &&
        mail_receive_replica(replica.client, guest, REPLICA_WAITS, REPLICA_WAITS, &heard, sizeof heard, NULL) ==
            KEEL_OK)
        us.waits[set] = heard;
}

/* Operations are under way, or their handles still have lanes: a guest could not name its own as the others do. */
static bool is_at_rest(void)
{
    struct client *c = replica.client;
    client_lock(c);
    bool rests = !c->ops.active && lanes_are_free(&c->ops.lanes);
    pthread_mutex_unlock(&c->lock);
    return rests;
}

/* As this replica has it; [REPLICAS_MAX]: why a set that is lost stays so, if one is. */
static struct replica_answer who_waits(void)
{
    struct renew_set sets[REPLICAS_MAX];
    uint32_t waits[REPLICAS_MAX] = {0};
    struct replica_answer a = {{0}};
    bool any = false, late = false;
    uint64_t now = replica.client->env.now(replica.client->env.user);
    look_at_world();
    for (int s = 0; s < replica.sets; s++) {
        sets[s] = takeover_set(s);
        any = any || !sets[s].whole;
        if (!sets[s].coming)
            continue;
        hear_waits(s, sets[s].attempt);
        waits[s] = (uint32_t)us.waits[s].attempt;
        late = renew_is_late(&us.late[s], &sets[s], waits[s], now, LATE_NS) || late;
        if (waits[s] == sets[s].attempt && us.waits[s].structure != replica.structure)
            replica_bound_by(BOUND_STRUCTURE);
    }
    struct renew_waits w = renew_answer(sets, replica.sets, waits);
    for (int s = 0; s < replica.sets && !us.bound && is_at_rest(); s++)
        a.value[s] = w.attempt[s];
    a.value[REPLICAS_MAX] = !any ? BOUND_NOT : us.bound ? us.bound : late ? BOUND_LATE : BOUND_NOT;
    return a;
}

void replica_tells_why(uint64_t bound)
{
    if (bound <= BOUND_NOT || bound >= BOUNDS || us.told >> bound & 1)
        return;
    us.told |= UINT64_C(1) << bound;
    if (replica.rank == 0)
        log_warn("a set that is lost does not begin anew: %s", why[bound]);
}

void replica_was_told_why(uint64_t told)
{
    us.told = told;
}

_Static_assert((int)REPLICAS_MAX < (int)ANSWER_VALUES, "and one more");

void replica_ask_who_waits(struct renew_waits *out, uint64_t *why_not)
{
    struct replica_answer a;
    *out = (struct renew_waits){{0}};
    *why_not = BOUND_NOT;
    if (!may_renew() || replica.guest)
        return;
    if (replica_decides(&a))
        a = replica_tell(who_waits());
    for (int s = 0; s < replica.sets; s++)
        out->attempt[s] = (uint32_t)a.value[s];
    *why_not = (uint64_t)a.value[REPLICAS_MAX];
    replica_did_bytes(CALL_keep_commit, -1, NULL, 0, a.value, sizeof a.value);
}

/* ---- it stands still ---- */

static bool send(struct life guest, enum replica_tag tag, const void *data, size_t len)
{
    struct wait wait = {.whom = NULL};
    keel_status status;
    do
        status = mail_send_replica(replica.client, guest, tag, data, len);
    while (nap_for_memory(status, &wait));
    return status == KEEL_OK;
}

/* One that does not take it is lost, which the view says. */
static void tell(struct life guest, uint64_t version)
{
    struct host_told told = {.attempt = guest.incarnation,
                             .version = version,
                             .exchanges = replica.exchanges,
                             .answers = replica_answers(),
                             .told_why = us.told,
                             .collectives = replica.collectives,
                             .sum = replica.ops.now};
    keel_segment_part part;
    const struct keel_segment *segment;
    while (takeover_segment(told.parts))
        told.parts++;
    lanes_numbers(&replica.client->ops.lanes, told.lanes);
    (void)replica_world_place(&told.world);
    takeover_output(told.output, false);
    bool takes = send(guest, REPLICA_TOLD, &told, sizeof told);
    for (uint64_t i = 0; takes && (segment = takeover_segment(i)); i++) {
        (void)replica.below->segment_describe(segment, replica.client->rank, &part);
        takes = send(guest, REPLICA_TOLD_PART, &part, sizeof part);
        FAULT_POINT("replica.telling");
    }
}

/* Of the host that decides. */
static enum renew_fate stands_still(int set, uint32_t attempt, uint64_t version)
{
    struct renew_set sets[REPLICAS_MAX];
    struct renew_host rules;
    struct life guest = takeover_life(set, attempt);
    struct wait wait = {.whom = nap_for_process, .arg = &guest.rank};
    enum renew_fate fate;
    bool tells;
    renew_host_init(&rules, set, attempt);
    for (;;) {
        for (int s = 0; s < replica.sets; s++)
            sets[s] = takeover_set(s);
        fate = renew_host_looks(&rules, sets, replica.sets, replica.set, &tells);
        if (fate != RENEW_WAITS)
            break;
        if (tells)
            tell(guest, version);
        nap(&wait);
    }
    waits_over(replica.client, &wait);
    return fate;
}

void replica_hosts(const uint64_t *words, uint64_t version)
{
    struct replica_answer a;
    uint32_t attempt;
    int set = renew_agreed(words, &attempt);
    if (set < 0)
        return;
    FAULT_POINT("replica.hosting");
    if (replica_decides(&a)) {
        enum renew_fate fate = stands_still(set, attempt, version);
        FAULT_POINT("replica.fate_known");
        a = replica_tell((struct replica_answer){{fate}});
    }
    if (a.value[0] == RENEW_JOINS) {
        replica_is_with(set, attempt);
        check_was_equal(&replica.ops);
    }
    replica_world_met();
    FAULT_POINT("replica.hosted");
}
