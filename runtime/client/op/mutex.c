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
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/op/mutex.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/signal.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"

enum { RANK_BITS = 20, INCARNATION_BITS = 11, LOOK_EVERY_NS = 5000000 };
#define OWNER ((int64_t)0x7fffffff)
#define TAKEN_OVER ((int64_t)1 << 31)
#define ARRIVAL ((int64_t)1 << 32)
#define ARRIVALS (~(ARRIVAL - 1))

/* Held or waited for by a thread of this process. */
struct busy {
    struct busy *next;
    int home, number;
    bool held;
};

struct keel_mutexes {
    struct client *client;
    keel_segment *segment;
    int per_rank;
    pthread_mutex_t lock;
    pthread_cond_t left;
    struct busy *busy;
};

/* ---- words ---- */

static size_t place(const keel_mutexes *m, int number)
{
    return (size_t)number * 8 * (2 + (size_t)m->client->size);
}

static size_t place_of_dead(const keel_mutexes *m, int number)
{
    return place(m, number) + 8;
}

static size_t place_of_wants(const keel_mutexes *m, int number, int rank)
{
    return place(m, number) + 8 * (2 + (size_t)rank);
}

static int64_t owner_of(int rank, uint64_t incarnation)
{
    return (int64_t)(incarnation & ((1u << INCARNATION_BITS) - 1)) << RANK_BITS | (rank + 1);
}

static int rank_of(int64_t word)
{
    return (int)(word & ((1 << RANK_BITS) - 1)) - 1;
}

/* The incarnation of the process that runs the rank; false: none does. */
static bool lives(const struct client *c, int rank, uint64_t *incarnation)
{
    const struct page_rank *r = page_rank(c->page, rank);
    uint64_t where = atomic_load_explicit(&r->where, memory_order_acquire);
    *incarnation = where & 0xffffffff;
    return (int32_t)(where >> 32) >= 0 && !atomic_load_explicit(&r->done, memory_order_acquire);
}

static uint64_t view_of(const struct client *c)
{
    return atomic_load_explicit(&c->page->epoch, memory_order_acquire);
}

/* As far as the view here says. A process that is in no view here yet lives: its rank began again, and a view that says
 * so, or that it is dead, is to come. */
static bool owner_lives(const struct client *c, int64_t word)
{
    uint64_t incarnation;
    int rank = rank_of(word);
    if (rank >= c->size)
        return false;
    bool running = lives(c, rank, &incarnation);
    unsigned ahead = (unsigned)((word & OWNER) >> RANK_BITS) - (unsigned)incarnation;
    ahead &= (1u << INCARNATION_BITS) - 1;
    return ahead ? ahead < 1u << (INCARNATION_BITS - 1) : running;
}

static int64_t myself(const struct client *c)
{
    return owner_of(c->rank, c->incarnation);
}

static bool prepare(const keel_mutexes *m, struct op *op, enum op_kind kind, int home, size_t at, size_t len)
{
    if (near_bad_range(m->client, m->segment, home, at, len))
        return false;
    op_init(m->client, op, kind, m->segment, home, at, len);
    op->patient = true;
    return true;
}

static keel_status load(keel_mutexes *m, int home, size_t at, int64_t *words, size_t n)
{
    struct op op;
    if (!prepare(m, &op, OP_GET, home, at, n * sizeof *words))
        return KEEL_ERR_ARG;
    op.dst = (uint8_t *)words;
    return op_run(&op);
}

static keel_status store(keel_mutexes *m, int home, size_t at, int64_t word)
{
    struct op op;
    if (!prepare(m, &op, OP_PUT, home, at, sizeof word))
        return KEEL_ERR_ARG;
    op.src = (const uint8_t *)&word;
    return op_run(&op);
}

/* *old: what the word was. */
static keel_status change(keel_mutexes *m, int home, int number, keel_rmw_op how, int64_t a, int64_t b, int64_t *old)
{
    struct op op;
    if (!prepare(m, &op, OP_RMW, home, place(m, number), sizeof *old))
        return KEEL_ERR_ARG;
    op.what = (uint32_t)how;
    op.word = sizeof *old;
    op.a = a;
    op.b = b;
    keel_status status = op_run(&op);
    *old = op.result;
    return status;
}

/* *word: what it is then. */
static keel_status arrive(keel_mutexes *m, int home, int number, int64_t *word)
{
    keel_status status = change(m, home, number, KEEL_RMW_ADD, ARRIVAL, 0, word);
    if (status == KEEL_OK)
        *word += ARRIVAL;
    return status;
}

/* *word: what it was seen to be, and then what it is. *done: it was so, and is `to` now. */
static keel_status swap(keel_mutexes *m, int home, int number, int64_t *word, int64_t to, bool *done)
{
    int64_t old = *word;
    keel_status status = change(m, home, number, KEEL_RMW_COMPARE_SWAP, *word, to, &old);
    *done = status == KEEL_OK && old == *word;
    *word = *done ? to : old;
    return status;
}

/* ---- handing over ---- */

/* Who waits, the next after the rank in a circle; -1: nobody. */
static keel_status choose(keel_mutexes *m, int home, int number, int after, int64_t *next)
{
    struct client *c = m->client;
    int64_t *wants = malloc((size_t)c->size * sizeof *wants);
    *next = 0;
    if (!wants)
        return KEEL_ERR_NOMEM;
    keel_status status = load(m, home, place_of_wants(m, number, 0), wants, (size_t)c->size);
    for (int i = 1; status == KEEL_OK && i <= c->size && !*next; i++) {
        int r = (after + i) % c->size;
        uint64_t incarnation;
        if (lives(c, r, &incarnation) && wants[r] == (int64_t)incarnation + 1)
            *next = owner_of(r, incarnation);
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

static keel_status note_dead(keel_mutexes *m, int home, int number, int64_t word)
{
    return store(m, home, place_of_dead(m, number), rank_of(word));
}

/* From the owner in *word, this process or a dead one, to who is next. *word: what it is then; if somebody else was
 * faster, what that one made of it. untold: if this process took it over from a dead one it has not told its caller. */
static keel_status hand_over(keel_mutexes *m, int home, int number, int64_t *word, bool untold)
{
    int64_t owner = *word & OWNER, next = 0, over;
    bool dead = owner != myself(m->client), done = false;
    keel_status status = dead ? note_dead(m, home, number, owner) : KEEL_OK;
    while (status == KEEL_OK && !done && (*word & OWNER) == owner) {
        status = *word & ARRIVALS ? choose(m, home, number, rank_of(owner), &next) : KEEL_OK;
        FAULT_POINT("mutex.chosen");
        over = dead ? TAKEN_OVER : untold ? *word & TAKEN_OVER : 0;
        if (status == KEEL_OK)
            status = swap(m, home, number, word, (next ? *word & ARRIVALS : 0) | over | next, &done);
    }
    FAULT_POINT("mutex.handed_over");
    if (done && next)
        tell(m->client, rank_of(next));
    return status;
}

/* ---- waiting ---- */

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
    out->rank = w->word & OWNER ? rank_of(w->word & OWNER) : -1;
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

/* Until this process is the owner. *word: as it was seen last. */
static keel_status wait_for(keel_mutexes *m, int home, int number, int64_t *word)
{
    struct client *c = m->client;
    struct waiting w = {.c = c, .wait = {.call = WAIT_LOCK, .whom = holder, .arg = &w, .keeps = true}};
    keel_status status = KEEL_OK;
    bool sure = true, done;
    while (status == KEEL_OK && !(sure && (*word & OWNER) == myself(c))) {
        remember(&w);
        if (!(*word & OWNER) || (*word & OWNER) == myself(c)) {
            status = swap(m, home, number, word, (*word & ~OWNER) | myself(c), &done);
            sure = true;
            continue;
        }
        if (!owner_lives(c, *word)) {
            status = hand_over(m, home, number, word, false);
            sure = true;
            continue;
        }
        sure = false;
        status = load(m, home, place(m, number), word, 1);
        if (status == KEEL_OK && (*word & OWNER) && (*word & OWNER) != myself(c) && owner_lives(c, *word))
            status = sleep_until(&w, *word);
        if (status == KEEL_OK)
            status = load(m, home, place(m, number), word, 1);
    }
    waits_over(c, &w.wait);
    return status;
}

/* ---- the threads of this process take turns ---- */

static struct busy *find(const keel_mutexes *m, int home, int number)
{
    struct busy *b = m->busy;
    while (b && (b->home != home || b->number != number))
        b = b->next;
    return b;
}

static void own_thread(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    out->whom = WAIT_FOR_HOLDER;
    out->rank = c->rank;
}

static keel_status turn_begin(keel_mutexes *m, int home, int number, bool waits)
{
    struct busy *b = malloc(sizeof *b);
    if (!b)
        return KEEL_ERR_NOMEM;
    struct wait wait = {.call = WAIT_LOCK, .whom = own_thread};
    pthread_mutex_lock(&m->lock);
    if (waits && find(m, home, number))
        waits_begin(m->client, &wait, m->client->env.now(m->client->env.user));
    while (waits && find(m, home, number))
        pthread_cond_wait(&m->left, &m->lock);
    waits_over(m->client, &wait);
    bool mine = !find(m, home, number);
    if (mine) {
        *b = (struct busy){m->busy, home, number, false};
        m->busy = b;
    } else {
        free(b);
    }
    pthread_mutex_unlock(&m->lock);
    return mine ? KEEL_OK : KEEL_IN_PROGRESS;
}

static void turn_end(keel_mutexes *m, int home, int number)
{
    pthread_mutex_lock(&m->lock);
    struct busy **link = &m->busy;
    while ((*link)->home != home || (*link)->number != number)
        link = &(*link)->next;
    struct busy *b = *link;
    *link = b->next;
    pthread_cond_broadcast(&m->left);
    pthread_mutex_unlock(&m->lock);
    free(b);
}

/* ---- calls ---- */

static keel_status bad_call(const keel_mutexes *m, int home, int number)
{
    if (!m->client->ready)
        return KEEL_ERR_STATE;
    return home < 0 || home >= m->client->size || number < 0 || number >= m->per_rank ? KEEL_ERR_ARG : KEEL_OK;
}

static keel_status say(keel_mutexes *m, int home, int number, int64_t wants)
{
    return store(m, home, place_of_wants(m, number, m->client->rank), wants);
}

/* Somebody has it. Afterwards this process has it, or waits no more. */
static keel_status arrive_and_wait(keel_mutexes *m, int home, int number, int64_t *word)
{
    keel_status status = say(m, home, number, (int64_t)m->client->incarnation + 1);
    FAULT_POINT("mutex.waiting");
    if (status == KEEL_OK)
        status = arrive(m, home, number, word);
    if (status == KEEL_OK)
        status = wait_for(m, home, number, word);
    keel_status after = say(m, home, number, 0);
    if (status != KEEL_OK) /* whoever has chosen this process before has made it the owner, or chooses again */
        (void)arrive(m, home, number, word);
    bool given = (*word & OWNER) == myself(m->client);
    if (given && (status != KEEL_OK || after != KEEL_OK))
        (void)hand_over(m, home, number, word, true);
    return status != KEEL_OK ? status : after;
}

static keel_status take(keel_mutexes *m, int home, int number, bool waits, int *dead_owner)
{
    int64_t word = 0, who = -1;
    bool done;
    keel_status status = swap(m, home, number, &word, myself(m->client), &done);
    done = done || (status == KEEL_OK && (word & OWNER) == myself(m->client)); /* by a call that ended with an error */
    if (status == KEEL_OK && !done && waits)
        status = arrive_and_wait(m, home, number, &word);
    while (status == KEEL_OK && !done &&
           !waits) { /* free, or a dead one's: whoever waits may be passed by one who tries */
        bool dead = (word & OWNER) && !owner_lives(m->client, word);
        if ((word & OWNER) && !dead)
            return KEEL_IN_PROGRESS;
        if (dead)
            status = note_dead(m, home, number, word);
        if (status == KEEL_OK)
            status = swap(m, home, number, &word, (word & ~OWNER) | (dead ? TAKEN_OVER : 0) | myself(m->client), &done);
        done = done || (status == KEEL_OK && (word & OWNER) == myself(m->client));
    }
    if (status == KEEL_OK && (word & TAKEN_OVER))
        status = load(m, home, place_of_dead(m, number), &who, 1);
    if (status != KEEL_OK && (word & OWNER) == myself(m->client)) /* the caller has not got it */
        (void)hand_over(m, home, number, &word, true);
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
        status = turn_begin(m, home, number, waits);
    if (status != KEEL_OK)
        return status;
    status = take(m, home, number, waits, &who);
    FAULT_POINT("mutex.locked");
    if (status != KEEL_OK) {
        turn_end(m, home, number);
        return status;
    }
    if (dead_owner)
        *dead_owner = who;
    pthread_mutex_lock(&m->lock);
    find(m, home, number)->held = true;
    pthread_mutex_unlock(&m->lock);
    return KEEL_OK;
}

size_t mutexes_bytes(const struct client *c, int per_rank)
{
    return per_rank < 0 ? 0 : (size_t)per_rank * 8 * (2 + (size_t)c->size);
}

static void attach(keel_mutexes *m, struct client *c, keel_segment *segment, int per_rank)
{
    *m = (keel_mutexes){.client = c, .segment = segment, .per_rank = per_rank};
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->left, NULL);
}

keel_mutexes *mutexes_attach(struct client *c, keel_segment *segment, int per_rank)
{
    keel_mutexes *m = malloc(sizeof *m);
    if (m)
        attach(m, c, segment, per_rank);
    return m;
}

void mutexes_detach(keel_mutexes *m)
{
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->left);
    free(m);
}

keel_status mutexes_create(struct client *c, keel_status able, int per_rank, keel_mutexes **out)
{
    if (out)
        *out = NULL;
    if (!c->ready)
        return KEEL_ERR_STATE;
    keel_mutexes *m = segment_zeroed(c, 1, sizeof *m);
    keel_segment *segment;
    able = !out || per_rank < 0 ? KEEL_ERR_ARG : m ? able : KEEL_ERR_NOMEM;
    keel_status status = segment_alloc_for(c, able, SEGMENT_OF_MUTEXES, mutexes_bytes(c, per_rank), &segment);
    if (status != KEEL_OK || !m || !out) {
        free(m);
        return status;
    }
    attach(m, c, segment, per_rank);
    *out = m;
    return KEEL_OK;
}

keel_status mutexes_free(struct client *c, keel_mutexes *m, bool *gone)
{
    *gone = false;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (!m)
        return KEEL_OK;
    pthread_mutex_lock(&m->lock);
    bool busy = m->busy;
    pthread_mutex_unlock(&m->lock);
    if (busy || c->coll.split)
        return KEEL_ERR_STATE;
    if (c->segments.unfinished.under_way && c->segments.unfinished.segment != m->segment)
        return KEEL_ERR_STATE;
    keel_status status = segment_free(c, m->segment);
    if (c->segments.unfinished.under_way || status == KEEL_ERR_MISMATCH) /* it ended by its time-out; it is not freed */
        return status;
    mutexes_detach(m);
    *gone = true;
    return status;
}

keel_status mutex_unlock(keel_mutexes *m, int home, int number)
{
    keel_status status = bad_call(m, home, number);
    if (status != KEEL_OK)
        return status;
    pthread_mutex_lock(&m->lock);
    struct busy *b = find(m, home, number);
    bool held = b && b->held;
    if (held)
        b->held = false; /* another thread does not unlock it as well */
    pthread_mutex_unlock(&m->lock);
    if (!held)
        return KEEL_ERR_STATE;
    int64_t word = myself(m->client);
    status = hand_over(m, home, number, &word, false);
    if (status == KEEL_OK || status == KEEL_ERR_DATA_LOST) {
        turn_end(m, home, number);
    } else {
        pthread_mutex_lock(&m->lock);
        b->held = true;
        pthread_mutex_unlock(&m->lock);
    }
    return status;
}
