/* Who acts for more sets than its own writes there, too, and does there again what is kept when it begins to
 * (partner.h, kept.h). Writes are complete in each set when these calls return. acting_once.c does what counts once.
 *
 * Whoever is told of something must know of all deaths that who tells it knows of: it would read what lies in the part
 * of a dead rank, where nobody writes any more. So before a process signals it puts the epoch by which it knows of the
 * last death into a word of its own at the target, if it has not done so since; and who has waited for a word goes on
 * when its view is as late as all of these words say.
 *
 * All that is nobody's but this wrapper's lies in a segment of its own, with the number 0: what collectives pass on
 * (acting_pass.c), and these words behind it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/replica/acting_int.h"
#include "runtime/client/replica/nap.h"

#define BELOW us.below

enum { WORD = sizeof(uint64_t) };

static struct {
    const struct api_calls *below;
    struct kept kept;
    struct acting_room room;
    uint64_t looked; /* the epoch of the view that was looked at last */
    uint64_t deaths; /* the epoch of the last death; 0: nobody has died */
    unsigned *lives; /* [ranks] sets, as of then */
    uint64_t *told;  /* [sets * ranks] the epoch that is in this rank's word there */
} us;

bool replica_lives(int rank, int set)
{
    return !us.lives || us.lives[rank] >> set & 1;
}

/* ---- who lives ---- */

/* The epoch by which the rank is known not to live there any more; 0: it does. */
static uint64_t death_of(int rank, int set)
{
    const struct page *page = replica.client->page;
    const struct page_rank *k = page_rank(page, replica_native(&replica.client->replicas, rank, set));
    uint64_t epoch = atomic_load_explicit(&page->epoch, memory_order_acquire);
    uint64_t died = atomic_load_explicit(&k->died, memory_order_acquire);
    if (!died && page_set_is_over(page, set, replica.client->incarnation))
        return epoch;
    return died;
}

static void looks(int rank, int set)
{
    uint64_t died = replica_lives(rank, set) ? death_of(rank, set) : 0;
    if (!died)
        return;
    us.lives[rank] &= ~(1U << set);
    us.deaths = died > us.deaths ? died : us.deaths;
}

void replica_look_for_deaths(void)
{
    const struct page *page = replica.client->page;
    uint64_t epoch = us.lives ? atomic_load_explicit(&page->epoch, memory_order_acquire) : us.looked;
    if (epoch == us.looked)
        return;
    for (int r = 0; r < replica.size; r++)
        for (int s = 0; s < replica.sets; s++)
            looks(r, s);
    us.looked = epoch;
    for (int s = 0; s < replica.sets; s++)
        if (s != replica.set && !replica_lives(replica.rank, s))
            replica_partner_died(s);
}

void acting_await_view(struct wait *wait)
{
    nap(wait);
    replica_look_for_deaths();
}

uint64_t acting_deaths(void)
{
    return us.deaths;
}

void acting_learn(uint64_t epoch)
{
    struct wait wait = {0};
    replica_look_for_deaths();
    while (us.looked < epoch)
        acting_await_view(&wait);
    waits_over(replica.client, &wait);
}

/* ---- what cannot be done for others ---- */

static bool is_bound(void)
{
    return atomic_load_explicit(&replica.client->page->bound, memory_order_acquire);
}

/* Agents that have not that view yet execute nothing (agent/recover.h), so what follows meets no set that lacks
 * somebody. */
void replica_binds(void)
{
    static bool told;
    const struct control needs = {.type = CONTROL_NEEDS, .a = NEEDS_SETS};
    const struct client_env *env = &replica.client->env;
    struct wait wait = {.whom = nap_for_own_agent};
    while (replica.partners && !is_bound()) {
        told = told || env->tell(env->user, &needs);
        wait.whom = told ? NULL : nap_for_own_agent;
        acting_await_view(&wait);
    }
    waits_over(replica.client, &wait);
    (void)replica_after(KEEL_OK); /* the own set may be retired by it */
}

static bool is_over(int set)
{
    return page_set_is_over(replica.client->page, set, replica.client->incarnation);
}

/* Does the write go to that set? What has an order has its place in it wherever agents have one, also where nobody is
 * left to look at that part: who lives in that set waits for what is before its own (docs/adr/0197). */
static bool goes(const struct kept_write *w, int set)
{
    return acting_is_ordered(w) ? !is_over(set) : replica_lives(w->rank, set);
}

static bool has_ended(int rank, int set)
{
    const struct page *page = replica.client->page;
    int native = replica_native(&replica.client->replicas, rank, set);
    return atomic_load_explicit(&page_rank(page, native)->done, memory_order_acquire);
}

/* The part of one that has come to its end and whose node has died since is nobody's, either. */
keel_status replica_settled(keel_status status, int rank, int set)
{
    struct wait wait = {0};
    if (!replica.partners)
        return status;
    while ((status == KEEL_ERR_DATA_LOST || status == KEEL_ERR_RANK_DEAD) && replica_lives(rank, set)) {
        if (has_ended(rank, set))
            us.lives[rank] &= ~(1U << set);
        else
            acting_await_view(&wait);
    }
    waits_over(replica.client, &wait);
    return replica_lives(rank, set) ? status : KEEL_OK;
}

/* ---- to one set ---- */

keel_segment *acting_segment(const struct kept_write *w, int set)
{
    struct wait wait = {0};
    keel_segment *s;
    if (set == replica.set)
        return w->segment ? replica_segment(w->segment) : us.room.segment;
    while (!(s = replica_elsewhere(w->segment, set, w->rank)) && goes(w, set)) {
        replica_binds(); /* the set cannot go on without a member */
        acting_await_view(&wait);
    }
    waits_over(replica.client, &wait);
    return s;
}

static keel_status put_in(int set, const struct kept_write *w)
{
    keel_segment *s = acting_segment(w, set);
    int native = replica_native(&replica.client->replicas, w->rank, set);
    return s ? replica_settled(BELOW->put(s, native, w->place, w->bytes, w->len), w->rank, set) : KEEL_OK;
}

static size_t told_at(int rank)
{
    return us.room.told + (size_t)rank * WORD;
}

keel_status acting_tell_deaths(int set, int rank)
{
    uint64_t *told = &us.told[set * replica.size + rank], deaths = us.deaths;
    const struct kept_write w = {.rank = rank, .place = told_at(replica.rank), .bytes = &deaths, .len = WORD};
    if (*told >= deaths)
        return KEEL_OK;
    keel_status status = put_in(set, &w);
    if (status == KEEL_OK)
        *told = deaths;
    return status;
}

static keel_status write_in(unsigned sets, const struct kept_write *w, struct acting_found *found)
{
    keel_status status = KEEL_OK;
    for (int s = 0; s < replica.sets && status == KEEL_OK; s++)
        if (sets >> s & 1 && goes(w, s))
            status = w->pass == KEPT_PUTS ? put_in(s, w) : acting_once_in(s, w, found);
    return status;
}

/* ---- what the rank does ---- */

keel_status acting_writes(const struct kept_write *w, struct acting_found *found)
{
    replica_look_for_deaths();
    if (!kept_add(&us.kept, w))
        return KEEL_ERR_NOMEM;
    FAULT_POINT("replica.kept");
    return write_in(replica_acts(), w, found); /* who dies from here on is done again for */
}

keel_status replica_puts(uint64_t segment, int rank, size_t offset, const void *src, size_t len)
{
    const struct kept_write w = {
        .pass = KEPT_PUTS, .rank = rank, .segment = segment, .place = offset, .len = len, .bytes = src};
    return acting_writes(&w, NULL);
}

int acting_reads(int rank)
{
    replica_look_for_deaths();
    return partner_reads(us.lives[rank], replica.set);
}

keel_status replica_reads(uint64_t segment, int rank, size_t offset, void *dst, size_t len)
{
    for (;;) {
        int set = acting_reads(rank);
        const struct kept_write from = {.rank = rank, .segment = segment};
        keel_segment *s = set < 0 ? NULL : acting_segment(&from, set);
        if (set < 0)
            return replica_after(KEEL_ERR_RANK_DEAD); /* the job ends with its last one */
        if (!s)
            continue;
        int native = replica_native(&replica.client->replicas, rank, set);
        keel_status status = replica_settled(BELOW->get(s, native, offset, dst, len), rank, set);
        if (replica_lives(rank, set))
            return status;
    }
}

/* ---- takeover ---- */

void replica_take_over(unsigned sets)
{
    FAULT_POINT("replica.taking_over");
    for (int pass = KEPT_PUTS; pass < KEPT_PASSES; pass++) {
        const struct kept_block *at = NULL;
        const struct kept_write *w;
        while ((w = kept_next(&us.kept, (enum kept_pass)pass, &at)))
            if (write_in(sets, w, NULL) != KEEL_OK)
                replica_stop("what the rank has written cannot be done again for the dead");
        FAULT_POINT("replica.took_over");
    }
}

void replica_forget_kept(void)
{
    kept_forget(&us.kept);
}

/* ---- waits ---- */

/* Until this process knows of all deaths that those knew of who have told it something. */
static void learn_deaths(void)
{
    for (int r = 0; r < replica.size; r++)
        acting_learn(__atomic_load_n((const uint64_t *)(const void *)(us.room.part + told_at(r)), __ATOMIC_ACQUIRE));
}

/* Whoever changes it in this set now: of the rank, the replica that acts there. */
static void who_changes(const struct client *c, const void *rank, struct wait_said *out)
{
    int q = *(const int *)rank, set = q < 0 ? -1 : partner_actor(us.lives[q], replica.set);
    out->whom = WAIT_FOR_WORD;
    out->rank = set < 0 ? -1 : replica_native(&c->replicas, q, set);
}

/* Who has come to its end in some set has told all that it had to tell in each (replica_leaves). */
static bool has_left(int rank)
{
    bool any = false;
    for (int s = 0; s < replica.sets; s++)
        any = any || (replica_lives(rank, s) && has_ended(rank, s));
    return any;
}

static bool nobody_changes(const void *rank)
{
    int q = *(const int *)rank;
    bool any = false;
    for (int r = 0; r < replica.size && q < 0; r++)
        any = any || (r != replica.rank && !has_left(r));
    return q < 0 ? !any : q != replica.rank && has_left(q);
}

keel_status acting_waits(enum wait_call call, keel_segment *segment, size_t word, keel_compare how, int64_t value,
                         int from, int64_t *got)
{
    bool (*nobody)(const void *) = call == WAIT_UNTIL ? nobody_changes : NULL; /* collectives go on without them */
    struct wait wait = {.call = call, .whom = who_changes, .arg = &from};
    keel_status status = replica_after(signal_await(replica.client, segment, word, how, value, &wait, nobody, got));
    if (us.deaths || status == KEEL_OK)
        learn_deaths();
    return status;
}

keel_status replica_waits(keel_segment *segment, size_t word, keel_compare how, int64_t value, int from, int64_t *got)
{
    return acting_waits(WAIT_UNTIL, segment, word, how, value, from, got);
}

/* ---- the start ---- */

keel_status replica_acting_begin(void)
{
    if (!replica.partners)
        return KEEL_OK;
    us.below = replica.below;
    size_t n = (size_t)replica.size;
    us.room.told = acting_pass_begin(&us.room);
    us.told = calloc(n * (size_t)replica.sets, sizeof *us.told);
    size_t *bytes = calloc(n, sizeof *bytes);
    unsigned *lives = calloc(n, sizeof *lives);
    if (!us.told || !bytes || !lives) {
        free(bytes);
        free(lives);
        return KEEL_ERR_NOMEM;
    }
    for (size_t r = 0; r < n; r++) {
        bytes[r] = us.room.told + n * WORD;
        lives[r] = (1U << replica.sets) - 1;
    }
    keel_status status = BELOW->segment_alloc_group(replica.group, bytes, KEEL_REDUNDANCY_NONE, &us.room.segment);
    free(bytes);
    if (status == KEEL_OK && !(us.room.part = BELOW->address(us.room.segment, replica_native_of(replica.rank))))
        status = KEEL_ERR_NOMEM; /* or the agent is gone, which ends this process */
    if (status == KEEL_OK)
        status = replica_describes(us.room.segment, 0);
    us.lives = lives;
    replica.below = replica_acting_calls(us.below);
    replica_look_for_deaths();
    return status;
}
