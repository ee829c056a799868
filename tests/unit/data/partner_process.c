#include "tests/unit/data/partner_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const enum partner_use USE[] = {PARTNER_PUT,      PARTNER_PASS,   PARTNER_ADD,
                                       PARTNER_EXCHANGE, PARTNER_SIGNAL, PARTNER_GET};

static int way_of(const struct write *w)
{
    return w->what <= PASS ? PUTS : NAMED;
}

static bool has(unsigned sets, int set)
{
    return sets >> set & 1;
}

static bool goes(const struct process *p, int way)
{
    for (int s = 0; s < p->sim->sets; s++)
        for (int t = 0; t < RANKS; t++)
            if (p->out[way][s][t].first < p->out[way][s][t].end)
                return true;
    return false;
}

static bool is_under_way(const struct process *p)
{
    return goes(p, PUTS) || goes(p, NAMED);
}

static void send(struct process *p, const struct write *w, unsigned sets)
{
    for (int s = 0; s < p->sim->sets; s++) {
        struct queue *q = &p->out[way_of(w)][s][w->target];
        if (!has(sets & p->lives[w->target], s))
            continue;
        assert_true(q->end < QUEUE);
        q->write[q->end++] = *w;
    }
}

static void keep(struct process *p, const struct write *w)
{
    const struct kept_write kept = {.pass = (enum kept_pass)way_of(w),
                                    .rank = w->target,
                                    .segment = w->what,
                                    .place = (uint64_t)w->word,
                                    .once = {.name = w->number, .a = (int64_t)w->value},
                                    .len = sizeof w->value,
                                    .bytes = &w->value};
    assert_true(kept_add(&p->kept, &kept));
    p->last_write = *w;
}

static void send_kept(struct process *p, int way, unsigned sets)
{
    const struct kept_block *at = NULL;
    const struct kept_write *k;
    while ((k = kept_next(&p->kept, (enum kept_pass)way, &at))) {
        struct write w = {(enum what)k->segment, k->rank, (int)k->place, (uint64_t)k->once.a, k->once.name};
        memcpy(&w.value, k->bytes, k->len);
        send(p, &w, sets);
    }
}

/* The agent of a part, or the memory itself. */
static void arrives(struct process *to, int origin, const struct write *w)
{
    if (to->dead)
        return;
    if (way_of(w) == PUTS) {
        to->word[w->word] = w->value;
        return;
    }
    if (w->number <= to->last[origin])
        return;
    to->last[origin] = w->number;
    to->result[origin] = to->word[w->word];
    to->word[w->word] += w->value;
}

void process_delivers(struct process *p, int way, int set, int target)
{
    struct queue *q = &p->out[way][set][target];
    if (q->first < q->end)
        arrives(&p->sim->process[set][target], p->rank, &q->write[q->first++]);
    if (q->first == q->end)
        q->first = q->end = 0;
}

void process_delivers_word(struct process *p, int set)
{
    struct words *q = &p->words[set];
    struct process *to = &p->sim->process[set][p->rank];
    if (q->first < q->end && !to->dead)
        partner_heard(&to->partner, p->set, q->complete[q->first]);
    q->first += q->first < q->end;
    if (q->first == q->end)
        q->first = q->end = 0;
}

/* ---- what the core asks for ---- */

static void sim_say(void *user, int set, unsigned complete)
{
    struct process *p = user;
    struct words *q = &p->words[set];
    assert_true(q->end < QUEUE);
    q->complete[q->end++] = complete;
}

static void sim_take_over(void *user, unsigned sets)
{
    struct process *p = user;
    send_kept(p, PUTS, sets);
    p->owed |= sets;
    if (p->state == MEETS)
        p->taking |= sets;
}

static void sim_leave(void *user)
{
    struct process *p = user;
    p->state = READY;
    p->met = true;
    kept_forget(&p->kept);
    p->interval = (struct partner_interval){.bytes = 0};
}

static const struct partner_ops SIM = {.say = sim_say, .take_over = sim_take_over, .leave = sim_leave};

/* ---- steps ---- */

static void next(struct process *p)
{
    p->met = false;
    p->state = READY;
    if (++p->at == OPS) {
        p->at = 0;
        p->phase++;
    }
}

static void reads(struct process *p, uint64_t value)
{
    p->hash = mixed(p->hash, value);
    next(p);
}

static void get(struct process *p, struct op op)
{
    int set = partner_reads(p->lives[op.target], p->set);
    const struct process *of = &p->sim->process[set][op.target];
    if (of->dead)
        return; /* it will be told */
    partner_used(&p->interval, PARTNER_GET, op.target, 0);
    reads(p, of->word[op.word]);
}

static void writes(struct process *p, struct op op)
{
    uint64_t drawn = mixed(p->hash, (uint64_t)p->at);
    uint64_t value = op.what == SIGNAL ? 1 : op.what == PASS ? p->word[op.word] : drawn;
    struct write w = {op.what, op.target, op.word, value, op.what <= PASS ? 0 : ++p->number};
    unsigned to = p->partner.acts & p->lives[op.target];
    keep(p, &w);
    partner_used(&p->interval, op.in_collective ? PARTNER_PASS : USE[op.what], op.target, sizeof value);
    if (op.what == EXCHANGE && !to)
        to = 1U << partner_reads(p->lives[op.target], p->set);
    p->asked = to;
    send(p, &w, to);
    if (op.what == EXCHANGE)
        p->state = ASKS;
    else
        next(p);
}

/* An answer is there, or is asked for in another set. */
static void ask(struct process *p, struct op op)
{
    for (int s = 0; s < p->sim->sets; s++) {
        const struct process *of = &p->sim->process[s][op.target];
        if (!has(p->asked, s) || of->dead)
            continue;
        assert_true(of->last[p->rank] <= p->number);
        if (of->last[p->rank] == p->number) {
            reads(p, of->result[p->rank]);
            return;
        }
    }
    if (p->asked & p->lives[op.target])
        return;
    p->asked = 1U << partner_reads(p->lives[op.target], p->set);
    send(p, &p->last_write, p->asked);
}

static void fences(struct process *p)
{
    p->state = FENCES;
    p->fenced = p->partner.acts;
}

static void meets(struct process *p)
{
    unsigned sets = p->taking;
    if (is_under_way(p))
        return;
    p->taking = 0;
    if (p->state == FENCES) {
        p->state = MEETS;
        partner_comes(&p->partner, p->fenced);
    } else if (sets) {
        partner_completes(&p->partner, sets);
    }
}

static void uses(struct process *p, struct op op)
{
    size_t bytes = op.what < GET ? sizeof(uint64_t) : 0;
    if (!op.in_collective && !p->met && partner_meets(&p->interval, USE[op.what], op.target, bytes, LIMIT))
        fences(p);
    else if (op.what == GET)
        get(p, op);
    else if (op.what != SIGNAL || !is_under_way(p)) /* the data of a collective are there before its signal */
        writes(p, op);
}

static void does(struct process *p, struct op op)
{
    if (op.what <= GET) {
        uses(p, op);
    } else if (op.what == LOAD) {
        reads(p, p->word[op.word]);
    } else if ((op.what == MEET || op.what == END) && !p->met) {
        fences(p);
    } else if (op.what == END) {
        p->state = DONE;
    } else if (op.what != WAIT || p->word[op.word] > (uint64_t)p->phase) {
        if (op.what == STORE)
            p->word[op.word] = mixed(p->hash, 1);
        next(p);
    }
}

void process_step(struct process *p)
{
    struct op op = op_at(p->sim->program, p->phase, p->rank, p->at);
    if (p->owed) {
        if (goes(p, PUTS))
            return;
        send_kept(p, NAMED, p->owed);
        p->owed = 0;
    } else if (p->state == FENCES || p->state == MEETS) {
        meets(p);
    } else if (p->state == ASKS) {
        ask(p, op);
    } else if (p->state == READY) {
        does(p, op);
    }
}

/* ---- deaths ---- */

static size_t cut(struct sim *s, size_t first, size_t end)
{
    return first + rng_below(&s->rng, (end - first) + 1);
}

void process_dies(struct process *p)
{
    struct sim *s = p->sim;
    p->dead = true;
    for (int to = 0; to < s->sets; to++)
        p->words[to].end = cut(s, p->words[to].first, p->words[to].end);
    for (int i = 0; i < WAYS * SETS * RANKS; i++) {
        struct queue *q = &p->out[i / RANKS / SETS][i / RANKS % SETS][i % RANKS];
        q->end = cut(s, q->first, q->end);
    }
}

void process_is_told(struct process *p, struct process *dead)
{
    bool words = false;
    for (int s = 0; s < p->sim->sets; s++)
        words = words || dead->words[s].first < dead->words[s].end;
    if (!dead->dead || !has(p->lives[dead->rank], dead->set) || words || is_under_way(dead))
        return;
    p->lives[dead->rank] &= ~(1U << dead->set);
    if (p->rank == dead->rank)
        partner_died(&p->partner, dead->set);
}

/* ---- the beginning ---- */

void sim_fini(struct sim *s)
{
    for (int set = 0; set < s->sets; set++)
        for (int r = 0; r < RANKS; r++)
            kept_forget(&s->process[set][r].kept);
}

void sim_init(struct sim *s, uint64_t program, uint64_t seed, int sets)
{
    memset(s, 0, sizeof *s);
    rng_seed(&s->rng, seed);
    s->program = program;
    s->sets = sets;
    for (int set = 0; set < sets; set++)
        for (int r = 0; r < RANKS; r++) {
            struct process *p = &s->process[set][r];
            p->sim = s;
            p->rank = r;
            p->set = set;
            p->hash = (uint64_t)r;
            for (int t = 0; t < RANKS; t++)
                p->lives[t] = (1U << sets) - 1;
            partner_init(&p->partner, set, sets, &SIM, p);
        }
}
