/* Replicas of a rank that may do each other's part (partner.h) leave a meeting together: the sums that they compare say
 * that what each has written is complete, and when a replica has heard that of all it says so. What lies between two
 * meetings is one interval.
 */
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

enum { KEPT_MAX = 16 << 20 };

struct word {
    uint64_t exchange, complete;
};

static struct {
    struct partner partner;
    struct partner_interval interval;
    unsigned said; /* with the sum, */
    unsigned to_say[REPLICAS_MAX];
    bool left;
} us;

/* ---- what the rules ask for ---- */

static void say_later(void *user, int set, unsigned complete)
{
    (void)user;
    us.to_say[set] = complete;
}

static void take_over(void *user, unsigned sets)
{
    (void)user;
    replica_take_over(sets);
    partner_completes(&us.partner, sets);
}

static void leave(void *user)
{
    (void)user;
    us.left = true;
    replica_forget_kept();
    us.interval = (struct partner_interval){.bytes = 0};
}

void replica_partners_begin(void)
{
    static const struct partner_ops ops = {.say = say_later, .take_over = take_over, .leave = leave};
    partner_init(&us.partner, replica.set, replica.sets, &ops, NULL);
}

/* ---- before a meeting ---- */

keel_status replica_before(enum replica_call call, enum partner_use use, int rank, size_t bytes)
{
    if (!replica.partners || !partner_meets(&us.interval, use, rank, bytes, KEPT_MAX))
        return KEEL_OK;
    return replica_meet(call);
}

void replica_used(enum partner_use use, int rank, size_t bytes)
{
    if (!replica.partners)
        return;
    partner_used(&us.interval, use, rank, bytes);
}

static bool rests(void *client)
{
    const struct client *c = client;
    return !c->ops.active;
}

/* Gets, too: what one has still to bring must not be read behind what is written after the meeting. */
keel_status replica_rest(void)
{
    struct client *c = replica.client;
    if (!replica.partners)
        return KEEL_OK;
    client_lock(c);
    if (!rests(c))
        (void)client_wait(c, rests, c, &(struct wait){.call = WAIT_FENCE, .whom = waits_for_any_op});
    keel_status status = c->fatal;
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* ---- at a meeting ---- */

unsigned replica_comes_complete(void)
{
    us.said = us.partner.acts;
    return us.said;
}

void replica_partner_died(int set)
{
    if (us.partner.lives >> set & 1)
        partner_died(&us.partner, set);
}

unsigned replica_acts(void)
{
    return us.partner.acts;
}

/* Who does not answer has no process any more, or has come to its end. */
static void look_for_deaths(void)
{
    replica_look_for_deaths();
    for (int s = 0; s < replica.sets; s++)
        if (replica.gone[s])
            replica_partner_died(s);
}

static void say_it(keel_status *status)
{
    for (int s = 0; s < replica.sets; s++) {
        struct word word = {replica.exchanges, us.to_say[s]};
        us.to_say[s] = 0;
        if (word.complete && !replica.gone[s])
            (void)replica_send(s, REPLICA_COMPLETE, &word, sizeof word, status);
    }
}

/* The sum has said it already. */
static void come(void)
{
    partner_comes(&us.partner, us.partner.acts);
    for (int s = 0; s < replica.sets; s++)
        if (us.to_say[s] == us.said)
            us.to_say[s] = 0;
}

/* Who is at a later exchange has left this one. */
static void hear_word(int set, keel_status *status)
{
    struct word word = {.exchange = 0};
    while (word.exchange < replica.exchanges)
        if (!replica_hear(set, REPLICA_COMPLETE, &word, sizeof word, status))
            return;
    partner_heard(&us.partner, set, word.exchange > replica.exchanges ? us.partner.all : (unsigned)word.complete);
}

/* A set whose replica does not know yet; -1: it has left. */
static int unknowing(void)
{
    for (int s = 0; s < replica.sets && !us.left; s++)
        if (s != replica.set && us.partner.lives >> s & 1 && !(us.partner.know >> s & 1))
            return s;
    return -1;
}

keel_status replica_leave_together(const unsigned *complete, const bool *there)
{
    keel_status status = KEEL_OK;
    int next;
    if (!replica.partners)
        return KEEL_OK;
    us.left = false;
    look_for_deaths();
    come();
    for (int s = 0; s < replica.sets; s++)
        if (s != replica.set && there[s])
            partner_heard(&us.partner, s, complete[s]);
    FAULT_POINT("replica.all_complete");
    say_it(&status);
    while (status == KEEL_OK && (next = unknowing()) >= 0) {
        hear_word(next, &status);
        look_for_deaths();
        say_it(&status);
    }
    FAULT_POINT("replica.leaving");
    return status;
}
