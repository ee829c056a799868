/* The rules in this process. A wrong bit in the program's memory stays there, as one that a processor or a memory has
 * made would. Each is told in the event log. */
#include "runtime/client/inject/inject.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/flip.h"
#include "runtime/client/job/channel.h"
#include "runtime/client/job/process.h"
#include "runtime/client/op/near.h"
#include "runtime/client/segment/segment.h"

const struct api_calls *inject_below;

static struct {
    struct flip flip[FLIP_RULES_MAX];
    int flips;
    int set, rank;       /* of this process, as the program counts */
    struct flip *flying; /* whose bit is to be wrong in what the operation under way sends; NULL: none */
    uint64_t flying_bit;
    const struct inject_operation *under_way; /* that operation, as the program has called it */
    bool ended;
    pid_t pid;
    pthread_mutex_t lock; /* of all of these */
} rules = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t step_now(void)
{
    return atomic_load_explicit(&process_client.step, memory_order_relaxed);
}

/* ---- what is told ---- */

static void tell_flip(const struct flip *f, const struct inject_operation *o, const keel_segment *segment,
                      uint64_t offset, uint64_t bit)
{
    char text[CONTROL_TEXT_MAX];
    int n = snprintf(text, sizeof text, "where=%s set=%d rank=%d step=%" PRIu64 " operation=%" PRIu64 " call=%s",
                     flip_where_name(f->rule.where), rules.set, rules.rank, step_now(), f->operations, o->call);
    if (o->target >= 0)
        n += snprintf(text + n, sizeof text - (size_t)n, " target=%d", o->target);
    if (segment)
        n +=
            snprintf(text + n, sizeof text - (size_t)n, " segment=%" PRIu32 " offset=%" PRIu64, segment->index, offset);
    snprintf(text + n, sizeof text - (size_t)n, " bit=%" PRIu64, bit);
    channel_event("flip", (int64_t)step_now(), text);
}

/* ---- the bits ---- */

/* By the kernel, which says no where the program may not write. */
static bool flip_written(uint8_t *at, unsigned bit)
{
    int fd[2];
    uint8_t value = (uint8_t)(*at ^ 1U << bit);
    if (pipe2(fd, O_CLOEXEC) != 0)
        return false;
    bool done = write(fd[1], &value, 1) == 1 && read(fd[0], at, 1) == 1;
    close(fd[0]);
    close(fd[1]);
    return done;
}

/* How far the byte is from the first of a strided range, by the strides of one side. */
static size_t strided_place(const keel_strided *shape, const size_t *stride, uint64_t number)
{
    uint64_t row = number / shape->count[0];
    size_t at = number % shape->count[0];
    for (int i = 0; i < shape->levels; i++) {
        at += row % shape->count[i + 1] * stride[i];
        row /= shape->count[i + 1];
    }
    return at;
}

static const keel_piece *piece_of(const struct inject_bytes *b, uint64_t *number)
{
    const keel_piece *piece = b->pieces;
    while (*number >= piece->len)
        *number -= piece++->len;
    return piece;
}

/* Where the byte of that number is, of which there are more. */
static uint8_t *byte_at(const struct inject_bytes *b, uint64_t number)
{
    uint8_t *at = (uint8_t *)(uintptr_t)b->at;
    if (b->pieces) {
        const keel_piece *piece = piece_of(b, &number);
        return (uint8_t *)piece->local + number;
    }
    return at + (b->shape ? strided_place(b->shape, b->shape->local_stride, number) : number);
}

/* And where it goes, in the target's part. */
static uint64_t offset_of(const struct inject_operation *o, uint64_t number)
{
    const struct inject_bytes *b = &o->bytes;
    if (b->pieces) {
        const keel_piece *piece = piece_of(b, &number);
        return piece->offset + number;
    }
    return o->offset + (b->shape ? strided_place(b->shape, b->shape->global_stride, number) : number);
}

static void flip_sent(struct flip *f, const struct inject_operation *o)
{
    uint64_t bit;
    if (!flip_hits(f, step_now(), 8 * (uint64_t)o->bytes.len, &bit))
        return;
    if (flip_written(byte_at(&o->bytes, bit / 8), bit % 8))
        tell_flip(f, o, o->segment, o->offset, bit);
    else
        f->flips--; /* constants: another operation gets it */
}

/* Which message takes it is the library's. */
static void flip_flying(struct flip *f, const struct inject_operation *o)
{
    struct flying *next = &process_client.flying;
    if (!flip_hits(f, step_now(), !rules.flying ? 8 * (uint64_t)o->bytes.len : 0, &next->bit))
        return;
    next->len = o->bytes.len;
    next->shaped = o->bytes.shape || o->bytes.pieces;
    rules.flying = f;
    rules.flying_bit = next->bit;
    rules.under_way = o;
}

/* No message took it, as the bytes were stored by the rank itself: they are wrong where they are now. */
static bool flip_near(const struct inject_operation *o)
{
    struct near *n =
        o->segment ? &o->segment->near[replica_native(&process_client.replicas, o->target, rules.set)] : NULL;
    if (!n || !(near_valid(n, &n->put_tag) || near_valid(n, &n->add_tag)))
        return false;
    __atomic_fetch_xor(near_base(n) + offset_of(o, rules.flying_bit / 8), (uint8_t)(1U << rules.flying_bit % 8),
                       __ATOMIC_RELAXED);
    return true;
}

/* The parts of the program's segments that are this rank's, one after the other. */
static uint64_t bytes_at_rest(const keel_segment *s)
{
    return s->what || s->freed || s->retired || s->attached ? 0 : s->part_bytes[process_client.rank];
}

static void flip_resting(struct flip *f, const struct inject_operation *o)
{
    uint64_t bytes = 0, bit;
    keel_segment *s;
    keel_status status;
    for (s = process_client.segments.first; s; s = s->next)
        bytes += bytes_at_rest(s);
    if (!flip_hits(f, step_now(), 8 * bytes, &bit))
        return;
    uint64_t at = bit / 8;
    for (s = process_client.segments.first; at >= bytes_at_rest(s); s = s->next)
        at -= bytes_at_rest(s);
    uint8_t *base = segment_map(s, (int)page_rank(process_client.page, process_client.rank)->slot, &status);
    if (!base) { /* it is being filled, or is gone: another operation's turn */
        f->flips--;
        return;
    }
    __atomic_fetch_xor(base + s->part_at[process_client.rank] + at, (uint8_t)(1U << bit % 8), __ATOMIC_RELAXED);
    const struct inject_operation during = {.call = o->call, .target = -1};
    tell_flip(f, &during, s, at, bit % 8);
}

void inject_before(const struct inject_operation *o)
{
    static void (*const flip_of[])(struct flip *, const struct inject_operation *) = {
        [FLIP_SEND] = flip_sent, [FLIP_FLIGHT] = flip_flying, [FLIP_REST] = flip_resting};
    pthread_mutex_lock(&rules.lock);
    rules.flying = NULL;
    for (int i = 0; i < rules.flips; i++)
        flip_of[rules.flip[i].rule.where](&rules.flip[i], o);
    pthread_mutex_unlock(&rules.lock);
}

/* Told at once: if replicas differ in what comes of it this process may not come back. */
void inject_has_flown(void)
{
    pthread_mutex_lock(&rules.lock);
    if (rules.flying)
        tell_flip(rules.flying, rules.under_way, NULL, 0, rules.flying_bit);
    rules.flying = NULL;
    pthread_mutex_unlock(&rules.lock);
}

void inject_after(const struct inject_operation *o, keel_status status)
{
    struct flip *f = rules.flying;
    if (__builtin_expect(f == NULL, 1))
        return;
    pthread_mutex_lock(&rules.lock);
    bool taken = process_client.flying.len == 0;
    process_client.flying.len = 0;
    if (status == KEEL_OK && (taken || flip_near(o)))
        tell_flip(f, o, o->segment, o->offset, rules.flying_bit);
    else
        f->flips--; /* nothing was sent */
    rules.flying = NULL;
    pthread_mutex_unlock(&rules.lock);
}

/* The piece with the byte, and its number there. */

/* ---- the beginning and the end ---- */

/* The same line from each replica of the rank, without a time: whatever they write is compared. */
void inject_end(void)
{
    char text[FLIP_TEXT_MAX];
    if (rules.ended || getpid() != rules.pid)
        return;
    rules.ended = true;
    for (int i = 0; i < rules.flips; i++) {
        const struct flip *f = &rules.flip[i];
        if (f->had_bits || rules.rank != (f->rule.rank == FLIP_ANY ? 0 : f->rule.rank))
            continue;
        fprintf(stderr,
                "keel: --inject %s: rank %d was at step %" PRIu64 " when it ended, and none of its operations %s\n",
                flip_rule_text(&f->rule, text), rules.rank, step_now(),
                f->was_there ? "at these steps had bits that could be hit there" : "was at one of these steps");
    }
}

/* A rule of another set is there to tell of its end, and flips nothing. */
static void take_rule(const struct flip_rule *rule, int number)
{
    struct flip *f = &rules.flip[rules.flips];
    if (!flip_init(f, rule, number, rules.set, rules.rank))
        f->rule.rate = 0;
    if (rule->rank == FLIP_ANY || rule->rank == rules.rank)
        rules.flips++;
}

void inject_begin(void)
{
    static struct api_calls table;
    const struct flip_rules *said = &process_client.page->inject;
    struct replica me = replica_of(&process_client.replicas, process_client.rank);
    if (!said->n)
        return;
    rules.rank = me.rank;
    rules.set = me.set;
    rules.pid = getpid();
    for (int i = 0; i < said->n && i < FLIP_RULES_MAX; i++)
        take_rule(&said->rule[i], i);
    if (!rules.flips || atexit(inject_end) != 0)
        return;
    inject_below = calls_now();
    table = *inject_below;
    inject_fill_in(&table);
    (void)calls_wrap(&table);
}
