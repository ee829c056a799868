/* Words that ranks wait for. The word is memory like any other; that it has changed is told by an empty parcel, which
 * follows the change and wakes who waits. */
#include <keel/signal.h>

#include "runtime/base/clock.h"
#include "runtime/client/client.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"

enum { LOOK_EVERY_NS = 5000000 };

/* One that is still to be sent tells of this change, too. It waits for the rank to take others, or for this process
 * to look what has come. */
static void tell(struct client *c, int rank)
{
    if (courier_has_unsent(c, rank, PARCEL_SIGNAL))
        client_progress(c);
    else
        (void)coll_note(c, rank, PARCEL_SIGNAL, 0, 0); /* who waits looks by itself, too */
}

void signal_tell(struct client *c, int rank)
{
    client_lock(c);
    if (rank == c->rank)
        c->signals++; /* another thread may wait */
    else
        tell(c, rank);
    pthread_mutex_unlock(&c->lock);
}

keel_status signal_send(struct client *c, keel_segment *s, int rank, size_t word, int64_t add)
{
    keel_status status = rma_add(c, s, rank, word, add);
    if (status == KEEL_OK)
        signal_tell(c, rank);
    return status;
}

static void whom(const struct client *c, const void *from, struct wait_said *out)
{
    (void)c;
    out->whom = WAIT_FOR_WORD;
    out->rank = *(const int *)from;
}

struct waiting {
    struct client *c;
    keel_segment *s;
    size_t word;
    keel_compare how;
    int64_t value, got;
    int from;
    uint64_t seen, look_at; /* signals that had come; when to look in any case */
    bool (*nobody)(const void *arg);
    const void *arg;
};

static bool holds(const struct waiting *w)
{
    switch (w->how) {
    case KEEL_EQ:
        return w->got == w->value;
    case KEEL_NE:
        return w->got != w->value;
    case KEEL_LT:
        return w->got < w->value;
    case KEEL_LE:
        return w->got <= w->value;
    case KEEL_GT:
        return w->got > w->value;
    default:
        return w->got >= w->value;
    }
}

/* By a load, where that is possible. */
static bool look_near(struct waiting *w)
{
    const struct near *n = &w->s->near[w->c->rank];
    if (!near_valid(n, &n->get_tag))
        return false;
    /* others change it by the processor's atomics */
    int64_t got = __atomic_load_n((const int64_t *)(const void *)(near_base(n) + w->word), __ATOMIC_ACQUIRE);
    if (!near_valid(n, &n->get_tag))
        return false;
    w->got = got;
    return true;
}

static bool is_gone(const struct waiting *w)
{
    const struct client *c = w->c;
    if (w->nobody)
        return w->nobody(w->arg);
    return w->from >= 0 ? w->from != c->rank && !c->coll.life[w->from].life : coll_is_alone(c);
}

static bool may_hold(void *arg)
{
    struct waiting *w = arg;
    const struct client *c = w->c;
    return (look_near(w) && holds(w)) || c->signals != w->seen || is_gone(w) || c->coll.broken != KEEL_OK ||
           c->env.now(c->env.user) >= w->look_at;
}

static bool may_wait(const struct waiting *w)
{
    return w->word % sizeof w->value == 0 && !near_bad_range(w->c, w->s, w->c->rank, w->word, sizeof w->value) &&
           (unsigned)w->how <= KEEL_GE && w->from >= KEEL_ANY_RANK && w->from < w->c->size;
}

static keel_status look(struct waiting *w)
{
    struct client *c = w->c;
    client_lock(c);
    w->seen = c->signals;
    pthread_mutex_unlock(&c->lock);
    rma_near_update(c, w->s, c->rank);
    return look_near(w) ? KEEL_OK : rma_get(c, w->s, c->rank, w->word, &w->got, sizeof w->got);
}

static keel_status sleep_until_it_may_hold(struct waiting *w, struct wait *wait, bool *gone)
{
    struct client *c = w->c;
    client_lock(c);
    w->look_at = c->env.now(c->env.user) + LOOK_EVERY_NS;
    bool going = client_wait(c, may_hold, w, wait);
    coll_see_views(c, c->env.now(c->env.user));
    *gone = is_gone(w);
    keel_status status = !going ? c->fatal : c->coll.broken;
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Looks once more after the rank was seen to be gone: what it had added before is there. */
static keel_status await(struct waiting *w, struct wait *wait, int64_t *got)
{
    if (!w->c->ready)
        return KEEL_ERR_STATE;
    if (!may_wait(w))
        return KEEL_ERR_ARG;
    wait->keeps = true;
    keel_status status = KEEL_OK;
    for (bool gone = false, over = false; !over;) {
        status = look(w);
        if (got)
            *got = w->got;
        over = status != KEEL_OK || holds(w) || gone;
        if (over)
            status = status == KEEL_OK && !holds(w) ? KEEL_ERR_RANK_DEAD : status;
        else
            over = (status = sleep_until_it_may_hold(w, wait, &gone)) != KEEL_OK;
    }
    waits_over(w->c, wait);
    return status;
}

keel_status signal_wait(struct client *c, keel_segment *s, size_t word, keel_compare how, int64_t value, int from,
                        int64_t *got)
{
    struct waiting w = {c, s, word, how, value, 0, from, 0, 0, NULL, NULL};
    return await(&w, &(struct wait){.call = WAIT_UNTIL, .whom = whom, .arg = &from}, got);
}

keel_status signal_await(struct client *c, keel_segment *s, size_t word, keel_compare how, int64_t value,
                         struct wait *as, bool (*nobody)(const void *arg), int64_t *got)
{
    struct waiting w = {c, s, word, how, value, 0, c->rank, 0, 0, nobody, as->arg};
    return await(&w, as, got);
}
