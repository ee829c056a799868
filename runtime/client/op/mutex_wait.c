/* A mutex is handed over to who is next, and waited for. */
#include "runtime/client/op/mutex_int.h"

#include <stdlib.h>

#include "runtime/base/fault.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/progress.h"
#include "runtime/client/threads.h"

enum { LOOK_EVERY_NS = 5000000 };

/* Who waits, the next after the rank in a circle; -1: nobody. */
static keel_status choose(keel_mutexes *m, int home, int number, int after, int64_t *next)
{
    struct client *c = m->client;
    int64_t *wants = malloc((size_t)c->size * sizeof *wants);
    *next = 0;
    if (!wants)
        return KEEL_ERR_NOMEM;
    keel_status status = mutex_load(m, home, mutex_place_of_wants(m, number, 0), wants, (size_t)c->size);
    for (int i = 1; status == KEEL_OK && i <= c->size && !*next; i++) {
        int r = (after + i) % c->size;
        uint64_t incarnation;
        if (mutex_rank_lives(c, r, &incarnation) && wants[r] == (int64_t)incarnation + 1)
            *next = mutex_owner_of(r, incarnation);
    }
    free(wants);
    return status;
}

static bool told(void *arg)
{
    const struct stream *s = arg;
    return !s->at;
}

static void next_one(const struct client *c, const void *rank, struct wait_said *out)
{
    (void)c;
    out->whom = WAIT_FOR_TAKING;
    out->rank = *(const int *)rank;
}

/* It sleeps until it hears of it; this process may make no further call for long. */
static void tell(struct client *c, int rank)
{
    if (rank == c->rank)
        return;
    signal_tell(c, rank);
    client_lock(c);
    struct wait wait = {.call = WAIT_UNLOCK, .whom = next_one, .arg = &rank};
    (void)client_wait(c, told, &c->coll.stream[rank], &wait);
    pthread_mutex_unlock(&c->lock);
}

keel_status mutex_note_dead(keel_mutexes *m, int home, int number, int64_t word)
{
    return mutex_store(m, home, mutex_place_of_dead(m, number), mutex_rank_of(word));
}

keel_status mutex_hand_over(keel_mutexes *m, int home, int number, int64_t *word, bool untold)
{
    int64_t owner = *word & OWNER, next = 0, over;
    bool dead = owner != mutex_myself(m->client), done = false;
    keel_status status = dead ? mutex_note_dead(m, home, number, owner) : KEEL_OK;
    while (status == KEEL_OK && !done && (*word & OWNER) == owner) {
        status = *word & ARRIVALS ? choose(m, home, number, mutex_rank_of(owner), &next) : KEEL_OK;
        FAULT_POINT("mutex.chosen");
        over = dead ? TAKEN_OVER : untold ? *word & TAKEN_OVER : 0;
        if (status == KEEL_OK)
            status = mutex_swap(m, home, number, word, (next ? *word & ARRIVALS : 0) | over | next, &done);
    }
    FAULT_POINT("mutex.handed_over");
    if (done && next)
        tell(m->client, mutex_rank_of(next));
    return status;
}

static uint64_t view_of(const struct client *c)
{
    return atomic_load_explicit(&c->page->epoch, memory_order_acquire);
}

struct waiting {
    struct client *c;
    uint64_t signals, epoch, look_at;
    int64_t word; /* as it was seen last */
    struct wait wait;
};

static void holder(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct waiting *w = arg;
    (void)c;
    out->whom = WAIT_FOR_HOLDER;
    out->rank = w->word & OWNER ? mutex_rank_of(w->word & OWNER) : -1;
}

static bool may_have_changed(void *arg)
{
    const struct waiting *w = arg;
    const struct client *c = w->c;
    return c->signals != w->signals || view_of(c) != w->epoch || c->coll.broken != KEEL_OK ||
           c->env.now(c->env.user) >= w->look_at;
}

static void remember(struct waiting *w)
{
    client_lock(w->c);
    w->signals = w->c->signals;
    pthread_mutex_unlock(&w->c->lock);
    w->epoch = view_of(w->c);
}

/* Until something has come since remember(); at the latest after a while: a signal whose connection breaks comes when
 * its sender makes its next call. */
static keel_status sleep_until(struct waiting *w, int64_t word)
{
    struct client *c = w->c;
    w->word = word;
    client_lock(c);
    w->look_at = c->env.now(c->env.user) + LOOK_EVERY_NS;
    bool going = client_wait(c, may_have_changed, w, &w->wait);
    coll_see_views(c, c->env.now(c->env.user));
    keel_status status = !going ? c->fatal : c->coll.broken;
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status mutex_wait_for(keel_mutexes *m, int home, int number, int64_t *word)
{
    struct client *c = m->client;
    struct waiting w = {.c = c, .wait = {.call = WAIT_LOCK, .whom = holder, .arg = &w, .keeps = true}};
    keel_status status = KEEL_OK;
    bool sure = true, done;
    while (status == KEEL_OK && !(sure && (*word & OWNER) == mutex_myself(c))) {
        remember(&w);
        if (!(*word & OWNER) || (*word & OWNER) == mutex_myself(c)) {
            status = mutex_swap(m, home, number, word, (*word & ~OWNER) | mutex_myself(c), &done);
            sure = true;
            continue;
        }
        if (!mutex_owner_lives(c, *word)) {
            status = mutex_hand_over(m, home, number, word, false);
            sure = true;
            continue;
        }
        sure = false;
        status = mutex_load(m, home, mutex_place(m, number), word, 1);
        if (status == KEEL_OK && (*word & OWNER) && (*word & OWNER) != mutex_myself(c) && mutex_owner_lives(c, *word))
            status = sleep_until(&w, *word);
        if (status == KEEL_OK)
            status = mutex_load(m, home, mutex_place(m, number), word, 1);
    }
    waits_over(c, &w.wait);
    return status;
}
