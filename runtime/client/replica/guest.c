/* A guest: a process of a set that has begun anew, in keel_keep_restore (renew.h). It says that it waits, reads what a
 * host has into its own parts, and goes on where the hosts stand when all of its set have the same. */
#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/keep/keep.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/replica/takeover.h"

#define BELOW replica.below

enum { CHUNK = 1 << 20 };

static struct {
    struct renew_guest rules;
    struct host_told told[REPLICAS_MAX];
    keel_segment_part *part[REPLICAS_MAX]; /* [told.parts] */
    uint8_t *chunk;
} us;

/* ---- hosts ---- */

static void say_that_it_waits(int set)
{
    const struct guest_waits waits = {replica.guest, replica.structure};
    const struct renew_set is = takeover_set(set);
    struct life host = takeover_life(set, is.attempt); /* of that view, if it is whole */
    if (!renew_guest_says(&us.rules, set, &is))
        return;
    keel_status status = mail_send_replica(replica.client, host, REPLICA_WAITS, &waits, sizeof waits);
    if (status == KEEL_OK || status == KEEL_ERR_RANK_DEAD)
        renew_guest_said(&us.rules, set, is.attempt);
}

static bool hear(struct life host, enum replica_tag tag, void *data, size_t len)
{
    struct wait wait = {.whom = NULL};
    keel_status status;
    do
        status = mail_receive_replica(replica.client, host, tag, tag, data, len, NULL);
    while (nap_for_memory(status, &wait));
    return status == KEEL_OK;
}

static bool hear_parts(int set, struct life host)
{
    uint64_t n = us.told[set].parts;
    free(us.part[set]);
    us.part[set] = calloc(n + 1, sizeof *us.part[set]);
    if (!us.part[set])
        replica_stop("no memory for what a set that begins anew reads");
    for (uint64_t i = 0; i < n; i++)
        if (!hear(host, REPLICA_TOLD_PART, &us.part[set][i], sizeof us.part[set][i]))
            return false;
    return true;
}

static void hear_host(int set)
{
    uint32_t life;
    bool hears = renew_guest_hears(&us.rules, set, &life);
    struct life host = takeover_life(set, life);
    if (!hears || !mail_has_replica(replica.client, host, REPLICA_TOLD, replica.guest) ||
        !hear(host, REPLICA_TOLD, &us.told[set], sizeof us.told[set]) || !hear_parts(set, host))
        return;
    (void)renew_guest_told(&us.rules, set, (uint32_t)us.told[set].attempt, us.told[set].version);
}

/* ---- reading ---- */

static keel_status copy_part(keel_segment *from, int host, keel_segment *to)
{
    int own = replica.client->rank;
    size_t bytes = BELOW->segment_bytes(to, own);
    keel_status status = KEEL_OK;
    for (size_t at = 0; at < bytes && status == KEEL_OK; at += CHUNK) {
        size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
        status = BELOW->get(from, host, at, us.chunk, n);
        FAULT_POINT("replica.reading");
        if (status == KEEL_OK)
            status = BELOW->put(to, own, at, us.chunk, n);
    }
    return status;
}

static keel_status read_part(int set, uint64_t i, keel_segment *to)
{
    int host = replica_native(&replica.client->replicas, replica.rank, set);
    keel_segment *from;
    keel_status status = BELOW->segment_attach(&us.part[set][i], &from);
    if (status != KEEL_OK)
        return status;
    status = BELOW->segment_bytes(from, host) == BELOW->segment_bytes(to, replica.client->rank)
                 ? copy_part(from, host, to)
                 : KEEL_ERR_MISMATCH;
    (void)BELOW->segment_free(from);
    return status;
}

/* All that the host has. It may die meanwhile: what it had stays as it is, or cannot be read. */
static bool read_all(int set)
{
    keel_segment *to;
    uint64_t i = 0;
    keel_status status = KEEL_OK;
    for (; status == KEEL_OK && (to = takeover_segment(i)) && i < us.told[set].parts; i++)
        status = read_part(set, i, to);
    if (status == KEEL_OK)
        status = BELOW->fence_all();
    return status == KEEL_OK && i == us.told[set].parts && !takeover_segment(i);
}

static void read_from(int set)
{
    while (set >= 0) {
        bool all = read_all(set);
        (void)replica_after(KEEL_OK);
        set = renew_guest_read(&us.rules, all);
    }
}

/* For a host that has been told that this process waits: it says so at its next commit. */
static void await_version(void)
{
    int native = replica.client->rank;
    struct wait wait = {.whom = nap_for_process, .arg = &native};
    while (!us.rules.has) {
        for (int s = 0; s < replica.sets && us.rules.from < 0; s++)
            if (s != replica.set) {
                say_that_it_waits(s);
                hear_host(s);
                native = us.rules.said[s] ? takeover_life_now(s).rank : native;
            }
        read_from(us.rules.from);
        if (!us.rules.has)
            nap(&wait);
    }
    waits_over(replica.client, &wait);
}

/* ---- joining ---- */

/* All guests of the set have the same. */
static keel_status agree(void)
{
    const keel_combine greatest = {.type = KEEL_UINT64, .op = KEEL_MAX};
    const uint64_t mine[2] = {us.rules.has, ~us.rules.has};
    uint64_t of_all[2];
    keel_status status = replica_after(BELOW->group_allreduce(replica.group, mine, of_all, 2, &greatest));
    if (status == KEEL_OK && !renew_may_join(of_all[0], of_all[1])) {
        log_error("the processes of set %d have read different versions", replica.set);
        status = KEEL_ERR_MISMATCH;
    }
    return status;
}

static void await_view(void)
{
    struct wait wait = {.whom = NULL};
    struct renew_set own;
    while (own = takeover_set(replica.set), renew_fate(&own, replica.guest) != RENEW_JOINS)
        nap(&wait); /* for good, where the attempt is over */
    waits_over(replica.client, &wait);
}

/* It is where its hosts are; whom they have lost is lost here. The answer what became of the set counts, too. */
static void go_on_with(const struct host_told *t)
{
    struct client *c = replica.client;
    uint64_t output[2] = {t->output[0], t->output[1]};
    for (int s = 0; s < replica.sets; s++) {
        if (s == replica.set)
            continue;
        if (takeover_set(s).whole)
            replica_is_with(s, takeover_life_now(s).incarnation);
        else
            replica_is_without(s);
    }
    check_settle(&replica.ops, &t->sum);
    replica.exchanges = t->exchanges;
    replica.collectives = t->collectives;
    replica_answers_are(t->answers + 1);
    replica_was_told_why(t->told_why);
    client_lock(c);
    lanes_go_on(&c->ops.lanes, t->lanes);
    pthread_mutex_unlock(&c->lock);
    replica.guest = 0;
    takeover_output(output, true);
    replica_world_go_on(&t->world);
    replica_world_met();
}

static void forget(void)
{
    for (int s = 0; s < REPLICAS_MAX; s++)
        free(us.part[s]);
    free(us.chunk);
}

keel_status replica_is_guest(uint64_t *version)
{
    *version = 0;
    us.chunk = malloc(CHUNK);
    if (!us.chunk)
        return KEEL_ERR_NOMEM;
    renew_guest_init(&us.rules, replica.guest);
    FAULT_POINT("replica.guest");
    await_version();
    FAULT_POINT("replica.has_read");
    const struct host_told *t = &us.told[us.rules.host];
    keel_status status = keep_take_over(replica.client, t->version, t->collectives);
    if (status == KEEL_OK)
        status = agree();
    if (status != KEEL_OK)
        return status;
    if (replica.rank == 0)
        takeover_needs(CONTROL_JOINS, replica.set, replica.guest);
    FAULT_POINT("replica.joining");
    await_view();
    FAULT_POINT("replica.joined");
    go_on_with(t);
    forget();
    *version = t->version;
    return KEEL_OK;
}
