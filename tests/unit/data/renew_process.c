/* A process of renew_bed.h: the program, and what stands between it and the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/data/renew_bed.h"

static uint64_t mix(uint64_t x, uint64_t by)
{
    x = (x ^ by) * 0x9e3779b97f4a7c15u + 1;
    return x ^ x >> 31;
}

static const struct renew_set *set_of(const struct process *p, int set)
{
    return &p->bed->facts[p->view].set[set];
}

static void enter(struct process *p, enum phase phase)
{
    p->phase = phase;
    p->said = false;
}

static struct process *process_of(struct bed *b, int set, int rank)
{
    return &b->process[replica_native(&b->map, rank, set)];
}

static void send(struct process *p, int set, int kind, uint64_t number, uint64_t value)
{
    const struct word w = {kind, p->life, number, {value}};
    bed_send(p->bed, p->native, replica_native(&p->bed->map, p->rank, set), &w);
}

/* What a host says that has this life; of another one it takes nothing. */
static bool hears(const struct process *p, int set, uint32_t life)
{
    uint32_t of;
    return renew_guest_hears(&p->guest, set, &of) && of == life;
}

void process_takes(struct process *p, int from, const struct word *w)
{
    switch (w->kind) {
    case SUM:
        p->sum[from][w->number % 2] = *w;
        break;
    case ANSWER:
        p->answer[from][w->number % 2] = *w;
        break;
    case WAITS:
        p->waits[from] = w->life;
        break;
    default:
        if (p->phase >= IS_GUEST && p->phase <= READS && hears(p, from, w->life) &&
            renew_guest_told(&p->guest, from, (uint32_t)w->value[0], w->number)) {
            p->reading = 0;
            enter(p, READS);
        }
    }
}

/* ---- replicas ---- */

/* Does it go on without that one? As long as that process lives it may say what others of the rank hear; and the view
 * in which it began may be still to come here. */
static bool is_gone(const struct process *p, int set)
{
    const struct facts *f = &p->bed->facts[p->view];
    int native = replica_native(&p->bed->map, p->rank, set);
    return p->with[set] == ALONE || f->life[native] > p->with[set] ||
           (f->life[native] == p->with[set] && f->dead[native]);
}

static const struct word *came(const struct process *p, const struct word words[2], int set, uint64_t number)
{
    const struct word *w = &words[number % 2];
    return w->kind != KINDS && w->number == number && w->life == p->with[set] ? w : NULL;
}

/* True: all that are there have come to it, and have done the same. */
static bool meets(struct process *p, uint64_t number, uint64_t value)
{
    for (int s = 0; s < p->bed->sets && !p->said; s++)
        if (s != p->set && !is_gone(p, s))
            send(p, s, SUM, number, value);
    p->said = true;
    for (int s = 0; s < p->bed->sets; s++) {
        const struct word *w = came(p, p->sum[s], s, number);
        if (s == p->set || (!w && is_gone(p, s)))
            continue;
        if (!w)
            return false;
        const struct process *other = process_of(p->bed, s, p->rank);
        if (w->value[0] != value && !other->dead && other->life == w->life)
            fail_msg("rank %d: sets %d and %d have parted at step %d", p->rank, p->set, s, (int)p->step);
    }
    return true;
}

/* As answer.c. True: *word is what the one has said that decides; as it comes it is what this one would say, and
 * `decides` whether it can say it yet. */
static bool asks(struct process *p, uint64_t number, bool decides, struct word *word)
{
    const struct word *heard = NULL;
    for (int s = 0; s < p->set; s++) {
        const struct word *w = came(p, p->answer[s], s, number);
        if (!w && !is_gone(p, s))
            return false;
        heard = w ? w : heard;
    }
    if (!heard && !decides)
        return false;
    *word = heard ? *heard : *word;
    word->kind = ANSWER;
    word->life = p->life;
    word->number = number;
    for (int s = p->set + 1; s < p->bed->sets; s++)
        if (!is_gone(p, s))
            bed_send(p->bed, p->native, replica_native(&p->bed->map, p->rank, s), word);
    return true;
}

static bool asks_who_waits(struct process *p)
{
    struct renew_waits mine = renew_answer(p->bed->facts[p->view].set, p->bed->sets, p->waits);
    struct word word;
    for (int s = 0; s < SETS; s++)
        word.value[s] = mine.attempt[s];
    if (!asks(p, 2 * p->step, true, &word))
        return false;
    for (int s = 0; s < SETS; s++)
        p->who_waits.attempt[s] = (uint32_t)word.value[s];
    return true;
}

static uint64_t digest_of(const struct renew_waits *w)
{
    uint64_t x = 0;
    for (int s = 0; s < SETS; s++)
        x = mix(x, w->attempt[s]);
    return x;
}

/* ---- ranks of a set ---- */

/* True: all have said their words. */
static bool gathers(struct process *p, struct gathered *g, const uint64_t *words, int n)
{
    for (int i = 0; i < n && !p->said; i++)
        g->greatest[i] = words[i] > g->greatest[i] ? words[i] : g->greatest[i];
    g->who |= 1U << p->rank;
    p->said = true;
    return g->who == (1U << RANKS) - 1 && !g->broken;
}

/* ---- the program ---- */

static void next_step(struct process *p)
{
    if (p->step < STEPS) {
        p->step++;
        enter(p, COMPUTES);
        return;
    }
    enter(p, DONE);
    bed_submit(p->bed, &(struct view_event){.type = VIEW_RANK_DONE, .a = (uint32_t)p->native, .b = p->life});
}

static void computes(struct process *p)
{
    const struct process *left = process_of(p->bed, p->set, (p->rank + RANKS - 1) % RANKS);
    if (left->dead || left->life != p->life || left->phase < COMPUTES)
        return; /* it waits for a set that is broken, or for who has not heard that the set is whole */
    p->word[0] = mix(p->word[0], left->word[1 + (p->step - 1) % 2]);
    p->word[1 + p->step % 2] = mix(p->word[0], p->step);
    enter(p, MEETS);
}

static void hosts(struct process *p)
{
    const struct facts *f = &p->bed->facts[p->view];
    bool tells;
    enum renew_fate fate = renew_host_looks(&p->host, f->set, p->bed->sets, p->set, &tells);
    if (tells) {
        p->bed->told_again += p->set > 0;
        send(p, p->host.guest, TOLD, p->step, p->host.attempt);
    }
    struct word word = {.value = {fate}};
    if (!asks(p, 2 * p->step + 1, fate != RENEW_WAITS, &word))
        return;
    fate = (enum renew_fate)word.value[0];
    p->with[p->host.guest] = fate == RENEW_JOINS ? p->host.attempt : ALONE;
    next_step(p);
}

static void gathers_answers(struct process *p)
{
    struct gathered *g = &p->bed->step[p->set][p->step];
    uint64_t words[2 * REPLICAS_MAX];
    renew_words(&p->who_waits, words);
    if (!gathers(p, g, words, 2 * REPLICAS_MAX))
        return;
    uint32_t attempt;
    int guest = renew_agreed(g->greatest, &attempt);
    if (guest < 0) {
        next_step(p);
        return;
    }
    renew_host_init(&p->host, guest, attempt);
    enter(p, HOSTS);
}

/* ---- a guest ---- */

static void tells_hosts(struct process *p)
{
    for (int s = 0; s < p->bed->sets; s++)
        if (s != p->set && renew_guest_says(&p->guest, s, set_of(p, s))) {
            renew_guest_said(&p->guest, s, set_of(p, s)->attempt);
            send(p, s, WAITS, 0, 0);
        }
}

static void reads(struct process *p)
{
    const struct process *host = process_of(p->bed, p->guest.from, p->rank);
    if (rng_below(&p->bed->rng, 4))
        return;
    bool fails = host->dead || host->phase < COMPUTES;
    if (!fails) {
        p->word[p->reading] = host->word[p->reading];
        p->reading++;
    }
    if (!fails && p->reading < WORDS)
        return;
    p->reading = 0;
    int from = renew_guest_read(&p->guest, !fails);
    enter(p, from >= 0 ? READS : p->guest.has ? HAS_READ : IS_GUEST);
}

static void has_read(struct process *p)
{
    struct gathered *g = &p->bed->guests[p->set][p->life];
    if (!gathers(p, g, (const uint64_t[]){p->guest.has, ~p->guest.has}, 2))
        return;
    if (!renew_may_join(g->greatest[0], g->greatest[1]))
        fail_msg("guests of set %d have different versions", p->set);
    if (p->rank == 0)
        bed_submit(p->bed, &(struct view_event){.type = VIEW_SET_JOINS, .a = (uint32_t)p->set, .b = p->life});
    enter(p, AWAITS);
}

static void awaits(struct process *p)
{
    if (renew_fate(set_of(p, p->set), p->life) != RENEW_JOINS)
        return;
    for (int s = 0; s < p->bed->sets; s++)
        p->with[s] = set_of(p, s)->whole ? set_of(p, s)->attempt : ALONE;
    p->bed->joined++;
    p->step = p->guest.has;
    assert_int_equal(p->guest.version[p->guest.host], p->guest.has);
    next_step(p);
}

/* ---- its life ---- */

void process_begin(struct process *p, struct bed *b, int native, uint32_t life, bool guest)
{
    struct replica me = replica_of(&b->map, native);
    *p = (struct process){.bed = b, .native = native, .rank = me.rank, .set = me.set, .life = life};
    p->phase = guest ? BEGINS : COMPUTES;
    p->hangs = rng_below(&b->rng, 20) == 0;
    p->step = 1;
    p->view = b->views - 1;
    for (int s = 0; s < SETS; s++)
        p->sum[s][0].kind = p->sum[s][1].kind = p->answer[s][0].kind = p->answer[s][1].kind = KINDS;
    p->word[0] = (uint64_t)me.rank + 7;
    renew_guest_init(&p->guest, life);
}

void process_step(struct process *p)
{
    switch (p->phase) {
    case BEGINS:
        if (!p->hangs)
            enter(p, IS_GUEST);
        break;
    case IS_GUEST:
        tells_hosts(p);
        break;
    case READS:
        reads(p);
        break;
    case HAS_READ:
        has_read(p);
        break;
    case AWAITS:
        awaits(p);
        break;
    case COMPUTES:
        computes(p);
        break;
    case MEETS:
        if (meets(p, 2 * p->step, p->word[0]))
            enter(p, ASKS);
        break;
    case ASKS:
        if (asks_who_waits(p))
            enter(p, MEETS_ALL);
        break;
    case MEETS_ALL:
        if (meets(p, 2 * p->step + 1, digest_of(&p->who_waits)))
            enter(p, GATHERS);
        break;
    case GATHERS:
        gathers_answers(p);
        break;
    case HOSTS:
        hosts(p);
        break;
    case DONE:
        break;
    }
}

uint64_t bed_expected(int rank)
{
    uint64_t word[RANKS][WORDS] = {{0}};
    for (int r = 0; r < RANKS; r++)
        word[r][0] = (uint64_t)r + 7;
    for (uint64_t step = 1; step <= STEPS; step++)
        for (int r = 0; r < RANKS; r++) {
            word[r][0] = mix(word[r][0], word[(r + RANKS - 1) % RANKS][1 + (step - 1) % 2]);
            word[r][1 + step % 2] = mix(word[r][0], step);
        }
    return word[rank][0];
}
