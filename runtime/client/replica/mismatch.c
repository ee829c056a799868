/* Replicas of a rank have done different things. Each pair that differs exchanges what it remembers, and finds the
 * first operation that differs. Of three, two that are equal write their bytes over those of the third: what it has
 * put is read where the others have put it, in their set, and written in the third's set before the call returns that
 * found it; bytes that are not sent yet are replaced. Else one line says who, what and when, and the job stops, or goes
 * on as it was told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

enum { TOGETHER = 512, PIECE = 60 * 1024, LINE = 640, WORDS = 160 };

/* What a replica remembers, as the other one gets it. */
struct detail {
    uint64_t exchange;
    struct check_sum now, equal;
    uint64_t marks, stride;
    struct check_mark mark[CHECK_MARKS];
    uint64_t oldest;
};

static struct check_entry their_ring[REPLICA_RING];
static struct check theirs;

/* ---- what both remember ---- */

static bool send_detail(int set, keel_status *status)
{
    const struct check *c = &replica.ops;
    struct detail d = {replica.exchanges, c->now, c->equal, c->marks, c->stride, .oldest = check_oldest(c)};
    struct check_entry some[TOGETHER];
    memcpy(d.mark, c->mark, sizeof d.mark);
    bool good = replica_send(set, REPLICA_DETAIL, &d, sizeof d, status);
    for (uint64_t n = d.oldest; n <= c->now.count && good;) {
        size_t k = 0;
        while (k < TOGETHER && n <= c->now.count)
            some[k++] = *check_find(c, n++);
        good = replica_send(set, REPLICA_ENTRIES, some, sizeof some, status);
    }
    return good;
}

static bool hear_detail(int set, keel_status *status)
{
    struct detail d;
    struct check_entry some[TOGETHER];
    if (!replica_hear(set, REPLICA_DETAIL, &d, sizeof d, status))
        return false;
    check_init(&theirs, their_ring, REPLICA_RING);
    theirs.now = d.now;
    theirs.equal = d.equal;
    theirs.marks = d.marks < CHECK_MARKS ? d.marks : CHECK_MARKS;
    theirs.stride = d.stride;
    memcpy(theirs.mark, d.mark, sizeof theirs.mark);
    for (uint64_t n = d.oldest; n <= d.now.count;) {
        if (!replica_hear(set, REPLICA_ENTRIES, some, sizeof some, status))
            return false;
        for (size_t k = 0; k < TOGETHER && n <= d.now.count; k++, n++)
            their_ring[(n - 1) & (REPLICA_RING - 1)] = some[k];
    }
    return true;
}

/* Each may end when the other has read: it has come here, too, or will. */
static void read_by_both(int set, keel_status *status)
{
    if (replica_has_read(set, status))
        (void)replica_hear(set, REPLICA_READ, &(uint64_t){0}, sizeof(uint64_t), status);
}

/* ---- a line for people ---- */

static const char *ordinal(uint64_t n)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    return n % 100 - n % 10 == 10 || n % 10 > 3 ? ends[0] : ends[n % 10];
}

static const char *word_of_place(const struct check_op *op)
{
    return op->call == CALL_keep ? "range" : op->call == CALL_keep_commit ? "version" : "tag";
}

static void describe(const struct check *c, uint64_t number, char out[WORDS])
{
    const struct check_entry *e = check_find(c, number);
    int n;
    if (!e) {
        snprintf(out, WORDS, "%s", number > c->now.count ? "nothing" : "something that it does not know any more");
        return;
    }
    bool came = e->op.call & REPLICA_CAME;
    n = snprintf(out, WORDS, "%s%s%s", came ? "what " : "", replica_call_name((enum replica_call)e->op.call),
                 came ? " has brought" : "");
    if (e->op.target >= 0)
        n += snprintf(out + n, WORDS - (size_t)n, " %s rank %d", came ? "from" : "to", e->op.target);
    if (e->op.segment)
        n += snprintf(out + n, WORDS - (size_t)n, ", segment %" PRIu64 " at %" PRIu64, e->op.segment, e->op.place);
    else if (e->op.place)
        n += snprintf(out + n, WORDS - (size_t)n, ", %s %" PRIu64, word_of_place(&e->op), e->op.place);
    if (e->op.len)
        snprintf(out + n, WORDS - (size_t)n, ", %" PRIu64 " bytes", e->op.len);
}

static const char *who(char out[WORDS])
{
    uint64_t step = atomic_load_explicit(&replica.client->step, memory_order_relaxed);
    int n = snprintf(out, WORDS, "rank %d", replica.rank);
    if (step)
        snprintf(out + n, WORDS - (size_t)n, " at step %" PRIu64, step);
    return out;
}

static void line(int set, const char *what_follows, char out[LINE])
{
    const struct check *mine = &replica.ops;
    struct check_first f = check_first(mine, &theirs);
    int lower = replica.set < set ? replica.set : set, upper = replica.set < set ? set : replica.set;
    char a[WORDS], b[WORDS], me[WORDS];
    if (f.found == CHECK_WITHIN) {
        snprintf(out, LINE,
                 "%s: one of the operations %" PRIu64 " to %" PRIu64
                 " since the start differs between set %d and set %d%s",
                 who(me), f.number, f.until, lower, upper, what_follows);
        return;
    }
    describe(replica.set == lower ? mine : &theirs, f.number, a);
    describe(replica.set == lower ? &theirs : mine, f.number, b);
    if (strcmp(a, b) == 0)
        snprintf(out, LINE, "%s: the %" PRIu64 "%s operation since the start, %s, differs between set %d and set %d%s",
                 who(me), f.number, ordinal(f.number), a, lower, upper, what_follows);
    else
        snprintf(out, LINE, "%s: the %" PRIu64 "%s operation since the start differs: %s in set %d, %s in set %d%s",
                 who(me), f.number, ordinal(f.number), a, lower, b, upper, what_follows);
}

/* ---- the majority's bytes ---- */

static bool is_put(const struct check_op *op)
{
    return op->call == CALL_put || op->call == CALL_put_nb || op->call == CALL_put_signal;
}

static bool same_but_bytes(const struct check_op *a, const struct check_op *b)
{
    return a->call == b->call && a->target == b->target && a->segment == b->segment && a->place == b->place &&
           a->len == b->len;
}

static bool differs(const struct check_entry *x, const struct check_entry *y)
{
    return !same_but_bytes(&x->op, &y->op) || x->op.bytes != y->op.bytes;
}

/* Both that exchanged what they remember find the same. */
static bool can_be_mended(const struct check *a, const struct check *b, const struct replica_last *last)
{
    uint64_t count = a->now.count;
    if (count != b->now.count || check_oldest(a) != a->equal.count + 1 || check_oldest(b) != b->equal.count + 1)
        return false;
    for (uint64_t n = check_oldest(a); n <= count; n++) {
        const struct check_entry *x = check_find(a, n), *y = check_find(b, n);
        bool unsent = n == count && last->bytes && same_but_bytes(&x->op, &y->op);
        if (differs(x, y) && !unsent && (!is_put(&x->op) || !is_put(&y->op)))
            return false;
    }
    return true;
}

static keel_status give_range(const struct check_op *op, int to, keel_status *status)
{
    static uint8_t piece[PIECE];
    keel_segment *s = replica_segment(op->segment);
    for (uint64_t at = 0; at < op->len && *status == KEEL_OK;) {
        size_t len = op->len - at < PIECE ? (size_t)(op->len - at) : PIECE;
        keel_status got = replica.below->get(s, replica_native_of(op->target), op->place + at, piece, len);
        if (got != KEEL_OK)
            return got;
        if (!replica_send(to, REPLICA_BYTES, piece, len, status))
            return KEEL_ERR_RANK_DEAD;
        at += len;
    }
    return *status;
}

static keel_status take_range(const struct check_op *op, int from, keel_status *status)
{
    static uint8_t piece[PIECE];
    keel_segment *s = replica_segment(op->segment);
    for (uint64_t at = 0; at < op->len && *status == KEEL_OK;) {
        size_t len = op->len - at < PIECE ? (size_t)(op->len - at) : PIECE;
        if (!replica_hear(from, REPLICA_BYTES, piece, len, status))
            return KEEL_ERR_RANK_DEAD;
        keel_status put = replica.below->put(s, replica_native_of(op->target), op->place + at, piece, len);
        if (put != KEEL_OK)
            return put;
        at += len;
    }
    return *status;
}

static keel_status give_last(const struct replica_last *last, int to, keel_status *status)
{
    for (size_t at = 0; at < last->len; at += PIECE) {
        size_t len = last->len - at < PIECE ? last->len - at : PIECE;
        if (!replica_send(to, REPLICA_BYTES, (const uint8_t *)last->bytes + at, len, status))
            return KEEL_ERR_RANK_DEAD;
    }
    return *status;
}

/* The memory stays until the next time. */
static keel_status take_last(struct replica_last *last, int from, keel_status *status)
{
    static uint8_t *instead;
    uint8_t *memory = realloc(instead, last->len + 1);
    if (!memory)
        return KEEL_ERR_NOMEM;
    instead = memory;
    for (size_t at = 0; at < last->len; at += PIECE)
        if (!replica_hear(from, REPLICA_BYTES, instead + at, last->len - at < PIECE ? last->len - at : PIECE, status))
            return KEEL_ERR_RANK_DEAD;
    last->bytes = instead;
    return *status;
}

/* Of both that differ, in the same order: each range that one of them has put and the other has not. good: those of
 * the majority; other: who is at the other end. */
static keel_status mend(const struct check *good, const struct check *bad, struct replica_last *last, int other,
                        bool gives)
{
    keel_status status = KEEL_OK, met = replica.below->fence_all();
    for (uint64_t n = check_oldest(good); n <= good->now.count && met == KEEL_OK; n++) {
        const struct check_entry *x = check_find(good, n), *y = check_find(bad, n);
        if (!differs(x, y))
            continue;
        if (n == good->now.count && last->bytes && same_but_bytes(&x->op, &y->op)) {
            met = gives ? give_last(last, other, &status) : take_last(last, other, &status);
            continue;
        }
        met = gives ? give_range(&x->op, other, &status) : take_range(&x->op, other, &status);
        bool elsewhere = x->op.target != y->op.target || x->op.segment != y->op.segment || x->op.place != y->op.place ||
                         y->op.len > x->op.len;
        if (met == KEEL_OK && elsewhere)
            met = gives ? give_range(&y->op, other, &status) : take_range(&y->op, other, &status);
    }
    return status != KEEL_OK ? status : met;
}

/* ---- what comes of it ---- */

/* Two replicas that differ, the lower one first. odd: which of them is wrong, as the third says; -1: nobody knows. */
struct dispute {
    int a, b, odd;
    const struct check_sum *sums;
    const bool *there;
};

struct line_said {
    uint64_t exchange;
    char text[LINE];
};

/* All that are there go on from the same sum. */
static void settle(const struct dispute *d)
{
    struct check_sum with = {0, 0};
    for (int s = 0; s < replica.sets; s++)
        if (d->there[s] && d->sums[s].count > with.count)
            with.count = d->sums[s].count;
    check_settle(&replica.ops, &with);
}

/* A process that ends its job ends its set: where nobody can say who is right each that differs does so. */
_Noreturn void replica_stop(const char *text)
{
    fflush(NULL);
    keel_abort(1, text);
}

/* The third replica gets the line from the lower of the two. */
static keel_status pass_line(const struct dispute *d, const char *text)
{
    struct line_said said = {.exchange = replica.exchanges};
    keel_status status = KEEL_OK;
    snprintf(said.text, sizeof said.text, "%s", text);
    for (int s = 0; s < replica.sets && replica.set == d->a; s++)
        if (s != d->a && s != d->b && d->there[s])
            (void)replica_send(s, REPLICA_LINE, &said, sizeof said, &status);
    return status;
}

/* What nobody can mend: all know it, and stop or go on. */
static keel_status tell_or_stop(const struct dispute *d, const char *text)
{
    if (replica.on_mismatch == MISMATCH_STOP)
        replica_stop(text);
    replica_tell_people(d->a, text);
    settle(d);
    return KEEL_OK;
}

/* One of the two has ended before they knew where they differ. The other one is right if the third says so, which waits
 * for a line. */
static keel_status left_alone(const struct dispute *d, keel_status status)
{
    char text[LINE];
    if (status != KEEL_OK)
        return status;
    snprintf(text, sizeof text,
             "rank %d: set %d and set %d differ since operation %" PRIu64
             ", and one has ended before it was found where",
             replica.rank, d->a, d->b, replica.ops.equal.count + 1);
    status = pass_line(d, text);
    if (status != KEEL_OK)
        return status;
    if ((d->odd < 0 || d->odd == replica.set) && replica.on_mismatch == MISMATCH_STOP)
        replica_stop(text);
    check_was_equal(&replica.ops);
    return KEEL_OK;
}

static keel_status mend_or_end(const struct dispute *d, int other, struct replica_last *last)
{
    bool good = d->odd != replica.set;
    const struct check *right = good ? &replica.ops : &theirs, *wrong = good ? &theirs : &replica.ops;
    bool mends = can_be_mended(right, wrong, last);
    char text[LINE], follows[64];
    snprintf(follows, sizeof follows, mends ? ": set %d has got the bytes of the others" : ": set %d ends", d->odd);
    line(other, follows, text);
    if (replica.set == d->a)
        replica_tell_differing(&replica.ops, &theirs, d->a, d->b);
    keel_status status = pass_line(d, text);
    if (!mends && !good)
        replica_stop(text);
    if (status == KEEL_OK && mends)
        status = mend(right, wrong, last, other, good);
    if (status == KEEL_ERR_RANK_DEAD && !good) { /* who has the bytes died before all of them had come */
        snprintf(follows, sizeof follows, ": set %d has not got all bytes of the others, and ends", d->odd);
        line(other, follows, text);
    }
    if (status != KEEL_OK && (status != KEEL_ERR_RANK_DEAD || !good))
        replica_stop(text);
    replica_tell_people(d->a, text);
    check_settle(&replica.ops, &d->sums[good ? replica.set : other]);
    return KEEL_OK;
}

static keel_status differs_from(const struct dispute *d, struct replica_last *last)
{
    int other = replica.set == d->a ? d->b : d->a;
    keel_status status = KEEL_OK;
    char text[LINE];
    if (!send_detail(other, &status) || !hear_detail(other, &status))
        return left_alone(d, status);
    read_by_both(other, &status);
    FAULT_POINT("replica.details_known");
    if (d->odd >= 0)
        return mend_or_end(d, other, last);
    line(other, "", text);
    if (replica.set == d->a)
        replica_tell_differing(&replica.ops, &theirs, d->a, d->b);
    status = pass_line(d, text);
    return status != KEEL_OK ? status : tell_or_stop(d, text);
}

/* The third one: equal to one of the two, or different from both. */
static keel_status looks_on(const struct dispute *d)
{
    keel_status status = KEEL_OK;
    struct line_said said;
    do {
        if (!replica_hear(d->a, REPLICA_LINE, &said, sizeof said, &status)) {
            snprintf(said.text, sizeof said.text, "rank %d: set %d and set %d differ", replica.rank, d->a, d->b);
            break;
        }
    } while (said.exchange < replica.exchanges);
    if (status != KEEL_OK)
        return status;
    if (d->odd < 0)
        return tell_or_stop(d, said.text);
    replica_tell_people(d->a, said.text);
    check_was_equal(&replica.ops);
    return KEEL_OK;
}

keel_status replica_differ(const struct check_outcome *o, const struct check_sum *sums, const bool *there,
                           struct replica_last *last)
{
    struct dispute d = {o->a, o->b, -1, sums, there};
    if (o->verdict == CHECK_ONE_DIFFERS && replica.on_mismatch == MISMATCH_STOP)
        d.odd = o->odd;
    return replica.set == d.a || replica.set == d.b ? differs_from(&d, last) : looks_on(&d);
}
