/* Fault-resilient hypercube barrier.
 *
 * The cube. Node ids are corners of a hypercube of ceil(log2 n) dimensions; corners without a live member are "gone".
 * The k-subcube of a node are the ids that differ from it in the lowest k bits only. In step k a node that knows that
 * its whole k-subcube has entered tells the partner across bit k, and so learns from it about the other half. A gone
 * node's part is played, inside each subcube, by the live member with the least (id xor gone id): the one that would
 * have met it first goes on with the partner that the gone one would have met next. So after ceil(log2 n) steps
 * everybody knows about everybody, with any corners missing.
 *
 *             barrier_enter                     entered >= members, or DONE heard
 *   OUTSIDE ------------------> WAITING ---------------------------------------------+
 *      ^                          |  ^                                               |
 *      |            freeze (view  v  | thaw                                          |
 *      |             change)    WAITING, frozen: learns and tells, completes nothing |
 *      +-----------------------------------------------------------------------------+
 *                                   completed + 1
 *
 *   state    event                                   next     action
 *   OUTSIDE  enter                                   WAITING  tell the partners of step 0 and of every step known
 *   any      ENTERED for this instance               -        add to the set; tell the partners of steps now known
 *   WAITING  the set covers the members, not frozen  OUTSIDE  complete
 *   WAITING  DONE, or ENTERED of a later instance    OUTSIDE  complete; ignored when frozen: who says so may be about
 *            to
 *                                                             be left out of the view, and our count has been told
 *   WAITING  timer, connection up                    WAITING  ENTERED with WANT to whom we wait for
 *   any      WANT for an instance completed here     -        DONE
 *   any      WANT for this instance, we know more    -        ENTERED
 *   any      set_members                             -        start again at step 0 (sets are kept)
 *
 * Safety rests on the sets alone: an id is in a set only because that node entered, or was told so by one that knew. */
#include "tests/sim/barrier.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/base/bitset.h"

#define RESEND_MIN_NS (20ull * 1000 * 1000)
#define RESEND_MAX_NS (640ull * 1000 * 1000)

/* On the wire, little endian: type u8, flags u8, 0 u16, words u32, seq u64, ENTERED: words * u64. */
enum { MSG_ENTERED = 1, MSG_DONE = 2, FLAG_WANT = 1, HEADER = 16 };
enum barrier_state { BARRIER_OUTSIDE, BARRIER_WAITING };

struct barrier {
    struct barrier_ops ops;
    int n, self, dims;
    unsigned words;
    enum barrier_state state;
    bool frozen, busy;
    uint64_t completed;
    uint64_t done_known; /* an instance up to which somebody told us that all is complete */
    int step;            /* next step to tell the partners of */
    int next_asked;      /* whom the timer asks directly: where the search goes on */
    uint64_t resend_at, rto;
    uint64_t *members;
    uint64_t *scratch;
    /* who has entered, for this instance and the next: [seq & 1] */
    struct {
        uint64_t seq;
        uint64_t *entered;
    } know[2];
};

static void set_state(struct barrier *b, enum barrier_state to)
{
    assert(b->state != to); /* the two states alternate */
    b->state = to;
}

struct barrier *barrier_create(int n, int self, const struct barrier_ops *ops)
{
    if (n < 1 || n > BARRIER_NODES_MAX || self < 0 || self >= n)
        return NULL;
    unsigned words = BITSET_WORDS(n);
    struct barrier *b = calloc(1, sizeof *b + 4 * words * 8);
    if (!b)
        return NULL;
    uint64_t *set = (uint64_t *)(b + 1);
    b->members = set;
    b->scratch = set + words;
    b->know[0].entered = set + 2 * words;
    b->know[1].entered = set + 3 * words;
    b->know[1].seq = 1;
    b->know[0].seq = 2;
    b->ops = *ops;
    b->n = n;
    b->self = self;
    b->words = words;
    b->resend_at = UINT64_MAX;
    while (1 << b->dims < n)
        b->dims++;
    return b;
}

void barrier_destroy(struct barrier *b)
{
    free(b);
}

/* ------------------------------------------------------------------------------------------------ the cube */

/* The live member that plays the part of id within its k-subcube: id itself, or the nearest by xor. -1: none. */
static int stand_in(const struct barrier *b, int id, int k)
{
    for (int x = 0; x < 1 << k; x++)
        if ((id ^ x) < b->n && bitset_has(b->members, id ^ x))
            return id ^ x;
    return -1;
}

/* Is every member of our k-subcube in the set? */
static bool knows_subcube(const struct barrier *b, const uint64_t *entered, int k)
{
    int lo = b->self >> k << k, hi = lo + (1 << k);
    if (hi > b->n)
        hi = b->n;
    for (int i = bitset_next(b->members, b->words, lo); i >= 0 && i < hi; i = bitset_next(b->members, b->words, i + 1))
        if (!bitset_has(entered, i))
            return false;
    return true;
}

static uint64_t *entered_of(struct barrier *b, uint64_t seq)
{
    return b->know[seq & 1].seq == seq ? b->know[seq & 1].entered : NULL;
}

/* The set for seq, an empty one if nothing was known yet. Never goes back to an earlier instance. */
static uint64_t *entered_make(struct barrier *b, uint64_t seq)
{
    if (b->know[seq & 1].seq < seq) {
        b->know[seq & 1].seq = seq;
        memset(b->know[seq & 1].entered, 0, b->words * 8);
    }
    return entered_of(b, seq);
}

/* ------------------------------------------------------------------------------------------------ sending */

static void put64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void send(struct barrier *b, int to, int type, int flags, uint64_t seq, const uint64_t *set)
{
    uint8_t bytes[BARRIER_MESSAGE_MAX] = {(uint8_t)type, (uint8_t)flags};
    size_t len = HEADER;
    put64(bytes + 8, seq);
    if (set) {
        bytes[4] = (uint8_t)b->words;
        for (unsigned i = 0; i < b->words; i++, len += 8)
            put64(bytes + len, set[i]);
    }
    if (to != b->self)
        b->ops.send(b->ops.user, to, bytes, len);
}

/* The partners of step k: for every corner of our k-subcube whose part we play, the one that plays the part of the
 * corner across bit k. The same pairs come out on both sides. */
static void tell_partners(struct barrier *b, int k, int flags)
{
    uint64_t seq = b->completed + 1, *entered = entered_of(b, seq);
    int lo = b->self >> k << k;
    memset(b->scratch, 0, b->words * 8);
    for (int corner = lo; corner < lo + (1 << k); corner++) {
        bool ours = corner == b->self;
        if (!ours && !(corner < b->n && bitset_has(b->members, corner)))
            ours = stand_in(b, corner, k) == b->self;
        if (!ours)
            continue;
        int partner = stand_in(b, corner ^ 1 << k, k);
        if (partner < 0 || bitset_has(b->scratch, partner))
            continue;
        bitset_add(b->scratch, partner);
        send(b, partner, MSG_ENTERED, flags, seq, entered);
    }
}

static bool can_complete(struct barrier *b)
{
    uint64_t seq = b->completed + 1, *entered = entered_of(b, seq);
    if (b->state != BARRIER_WAITING || b->frozen || !bitset_has(b->members, b->self))
        return false;
    return b->done_known >= seq || bitset_covers(entered, b->members, b->words);
}

/* Do what the sets allow: tell partners, complete. The callback may enter the next instance. */
static void progress(struct barrier *b)
{
    if (b->busy)
        return;
    b->busy = true;
    do {
        uint64_t *entered = entered_of(b, b->completed + 1);
        while (b->state == BARRIER_WAITING && b->step < b->dims && knows_subcube(b, entered, b->step))
            tell_partners(b, b->step++, 0);
        if (!can_complete(b))
            break;
        set_state(b, BARRIER_OUTSIDE);
        b->resend_at = UINT64_MAX;
        b->completed++;
        b->ops.complete(b->ops.user, b->completed);
    } while (b->state == BARRIER_WAITING);
    b->busy = false;
}

/* ------------------------------------------------------------------------------------------------ events */

void barrier_enter(struct barrier *b, uint64_t now)
{
    assert(b->state == BARRIER_OUTSIDE);
    set_state(b, BARRIER_WAITING);
    bitset_add(entered_make(b, b->completed + 1), b->self);
    b->step = 0;
    b->rto = RESEND_MIN_NS;
    b->resend_at = now + b->rto;
    progress(b);
}

void barrier_set_members(struct barrier *b, const uint64_t *members, uint64_t now)
{
    memcpy(b->members, members, b->words * 8);
    b->step = 0;
    if (b->state == BARRIER_WAITING) {
        b->rto = RESEND_MIN_NS;
        b->resend_at = now + b->rto;
    }
    progress(b);
}

void barrier_join(struct barrier *b, uint64_t completed)
{
    assert(b->state == BARRIER_OUTSIDE);
    if (completed > b->completed)
        b->completed = completed;
}

void barrier_freeze(struct barrier *b)
{
    b->frozen = true;
}

void barrier_thaw(struct barrier *b, uint64_t now)
{
    b->frozen = false;
    if (b->state == BARRIER_WAITING)
        b->resend_at = now + b->rto;
    progress(b);
}

static bool decode_set(const struct barrier *b, const uint8_t *p, size_t len, uint64_t *set)
{
    if (len != HEADER + b->words * 8)
        return false;
    for (unsigned i = 0; i < b->words; i++)
        set[i] = get64(p + HEADER + i * 8);
    return b->n % 64 == 0 || !(set[b->words - 1] >> (b->n % 64));
}

static void learn_done(struct barrier *b, uint64_t seq)
{
    if (b->state == BARRIER_WAITING && !b->frozen && seq > b->completed && seq > b->done_known)
        b->done_known = seq;
}

static void receive_entered(struct barrier *b, int from, bool want, uint64_t seq, uint64_t *theirs)
{
    if (seq <= b->completed) {
        if (want)
            send(b, from, MSG_DONE, 0, b->completed, NULL);
        return;
    }
    if (b->state == BARRIER_WAITING && seq > b->completed + 2) { /* we are long behind: all before it is complete */
        learn_done(b, seq - 1);
        return;
    }
    uint64_t *entered = entered_make(b, seq);
    if (!entered)
        return;
    for (unsigned i = 0; i < b->words; i++)
        entered[i] |= theirs[i];
    if (want && !bitset_covers(theirs, entered, b->words))
        send(b, from, MSG_ENTERED, 0, seq, entered);
    /* Who is in a later instance has completed the earlier ones, and ours could not without us. */
    learn_done(b, seq - 1);
}

void barrier_receive(struct barrier *b, int from, const void *data, size_t len, uint64_t now)
{
    (void)now;
    const uint8_t *p = data;
    if (len < HEADER || from < 0 || from >= b->n)
        return;
    uint64_t seq = get64(p + 8);
    if (p[0] == MSG_DONE && len == HEADER) {
        learn_done(b, seq);
    } else if (p[0] == MSG_ENTERED && seq > 0 && decode_set(b, p, len, b->scratch)) {
        receive_entered(b, from, p[1] & FLAG_WANT, seq, b->scratch);
    }
    progress(b);
}

void barrier_connected(struct barrier *b, int node, uint64_t now)
{
    (void)now;
    if (b->state == BARRIER_WAITING)
        send(b, node, MSG_ENTERED, FLAG_WANT, b->completed + 1, entered_of(b, b->completed + 1));
}

void barrier_tick(struct barrier *b, uint64_t now)
{
    if (b->state != BARRIER_WAITING || now < b->resend_at)
        return;
    b->rto = 2 * b->rto < RESEND_MAX_NS ? 2 * b->rto : RESEND_MAX_NS;
    b->resend_at = now + b->rto;
    uint64_t seq = b->completed + 1, *entered = entered_of(b, seq);
    int k = 0;
    while (k < b->dims && knows_subcube(b, entered, k + 1))
        k++;
    if (k < b->dims && knows_subcube(b, entered, k))
        tell_partners(b, k, FLAG_WANT); /* whom we wait for in the hypercube */
    /* Whatever the cube says, because views may differ for a moment and a link may be down: one that is missing, and
     * one that is not and may know more than we do. */
    bool asked_missing = false, asked_other = false;
    for (int i = 0; i < b->n && !(asked_missing && asked_other); i++) {
        b->next_asked = (b->next_asked + 1) % b->n;
        int id = b->next_asked;
        if (id == b->self || !bitset_has(b->members, id))
            continue;
        bool *asked = bitset_has(entered, id) ? &asked_other : &asked_missing;
        if (!*asked)
            send(b, id, MSG_ENTERED, FLAG_WANT, seq, entered);
        *asked = true;
    }
}

/* ------------------------------------------------------------------------------------------------ queries */

uint64_t barrier_deadline(const struct barrier *b)
{
    return b->state == BARRIER_WAITING ? b->resend_at : UINT64_MAX;
}

uint64_t barrier_waiting(const struct barrier *b)
{
    return b->state == BARRIER_WAITING ? b->completed + 1 : 0;
}

uint64_t barrier_completed(const struct barrier *b)
{
    return b->completed;
}
