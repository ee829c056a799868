#include "tests/unit/data/partner_program.h"

#include "runtime/base/rng.h"

uint64_t mixed(uint64_t a, uint64_t b)
{
    struct rng r;
    rng_seed(&r, a * 0x9e3779b97f4a7c15u ^ b);
    return rng_u64(&r);
}

/* What a rank may do with a word of a part in a phase: nobody else looks at what one may write, and what many may add
 * to nobody reads. */
static enum what allowed(uint64_t program, int phase, int rank, int target, int word, uint64_t draw)
{
    uint64_t m = mixed(program, (uint64_t)((phase * RANKS + target) * SHARED + word));
    bool owns = (int)(m / 8 % RANKS) == rank;
    switch (m % 5) {
    case 0:
        return owns ? (const enum what[]){PUT, GET, ADD}[draw % 3] : NOTHING;
    case 1:
        return ADD;
    case 2:
        return owns ? EXCHANGE : NOTHING;
    case 3:
        return target == rank ? (draw % 2 ? STORE : LOAD) : NOTHING;
    default:
        return GET;
    }
}

static struct op drawn(uint64_t program, int phase, int rank, int at)
{
    uint64_t d = mixed(program + 1, (uint64_t)((phase * RANKS + rank) * STEPS + at));
    struct op op = {GET, (int)(d % RANKS), (int)(d / 8 % SHARED), false};
    if (d / 64 % 5 == 0 && phase > 0)
        op.word = BOXES + (phase + 1) % 2; /* the box of the phase before */
    else
        op.what = allowed(program, phase, rank, op.target, op.word, d / 1024);
    return op;
}

static struct op round_of(const struct passing *p, int phase, int round, int at)
{
    struct passing_round r = passing_round(p, round);
    int word = PASSING + (int)(r.word / p->room), place;
    if (at == RANKS - 1)
        return (struct op){SIGNAL, r.to, word, true};
    if (at == RANKS)
        return (struct op){WAIT, p->rank, word, false};
    if (at >= r.blocks)
        return (struct op){NOTHING, 0, 0, false};
    place = (int)(passing_place(p, (uint64_t)phase + 1, passing_origin(p, at)) / p->room);
    return (struct op){PASS, r.to, PASSING + place, true};
}

/* A collective is made of puts and signals, behind one meeting: the program does nothing in between. What each has to
 * say goes to all. */
static struct op collective(int phase, int rank, int at)
{
    struct passing p = {rank, RANKS, sizeof(uint64_t)};
    int in_rounds = at - 2, loads = in_rounds - ROUNDS * (RANKS + 1), of = at == 1 ? rank : loads;
    int place = PASSING + (int)(passing_place(&p, (uint64_t)phase + 1, of < 0 ? 0 : of) / p.room);
    if (at == 0)
        return (struct op){MEET, rank, 0, false};
    if (at == 1)
        return (struct op){STORE, rank, place, false};
    if (loads >= 0)
        return (struct op){LOAD, rank, place, false};
    return round_of(&p, phase, in_rounds / (RANKS + 1), in_rounds % (RANKS + 1));
}

/* Draws, a put into the box of a neighbour, which reads it and writes over it itself, and a collective. */
struct op op_at(uint64_t program, int phase, int rank, int at)
{
    int box = BOXES + phase % 2;
    const struct op mail[MAIL] = {{PUT, (rank + 1) % RANKS, box, false},
                                  {SIGNAL, (rank + 1) % RANKS, MAILS + rank, false},
                                  {WAIT, rank, MAILS + (rank + RANKS - 1) % RANKS, false},
                                  {LOAD, rank, box, false},
                                  {STORE, rank, box, false}};
    if (phase == PHASES)
        return (struct op){END, rank, 0, false};
    if (at < STEPS)
        return drawn(program, phase, rank, at);
    return at < STEPS + MAIL ? mail[at - STEPS] : collective(phase, rank, at - STEPS - MAIL);
}
