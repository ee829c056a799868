/* Two engines of the same members, whose calls come in one order: who is in another call than the others is found,
 * and nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine.h"
#include "runtime/base/rng.h"
#include "tests/unit/collectives/made.h"

enum { MEMBERS = 5, CALLS = 12, QUEUE = 20000, RUNS = 400 };
#define MS 1000000ull

struct member;
struct side { /* of the pair */
    struct member *of;
    int which;
    struct engine *e;
};

struct member {
    int id;
    struct side side[2];
    bool other[CALLS]; /* the program: which of the two */
    int at;            /* calls that are over */
    bool waits;
    enum engine_status ended[CALLS];
    uint64_t in, out;
};

struct letter {
    struct side *to;
    int from;
    size_t len;
    uint8_t *data;
};

static struct member members[MEMBERS];
static struct letter queue[QUEUE];
static int n_members, queued, misfits;
static uint64_t now;
static struct rng rng;

static bool on_send(void *user, int to, uint64_t seq, const void *head, size_t head_len, const void *data, size_t len)
{
    struct side *s = user;
    (void)seq;
    assert_true(queued < QUEUE);
    struct letter *l = &queue[queued++];
    *l = (struct letter){&members[to].side[s->which], s->of->id, head_len + len, malloc(head_len + len)};
    assert_non_null(l->data);
    memcpy(l->data, head, head_len);
    if (len)
        memcpy(l->data + head_len, data, len);
    return true;
}

static void on_done(void *user, uint64_t seq, const struct engine_result *r)
{
    struct side *s = user;
    (void)seq;
    assert_true(s->of->waits && s->of->other[s->of->at] == s->which);
    s->of->ended[s->of->at++] = r->status;
    s->of->waits = false;
}

static void on_misfit(void *user, int member)
{
    struct side *s = user;
    misfits++;
    assert_true(member >= 0 && member < n_members && member != s->of->id);
    assert_true(members[member].other[members[member].at] == s->which);
    assert_true(s->of->other[s->of->at] != s->which);
}

static void go_on(struct member *m)
{
    struct engine_call call = {.kind = ENGINE_BARRIER};
    uint64_t seq;
    if (m->waits || m->at == CALLS)
        return;
    if (m->other[m->at])
        call = (struct engine_call){.kind = ENGINE_DECIDE, .agree = ENGINE_MAX, .arguments = 1};
    else if (m->at % 3 == 1)
        call = (struct engine_call){.kind = ENGINE_MOVE,
                                    .move = SCHEDULE_BCAST,
                                    .root = m->at % n_members,
                                    .out = &m->out,
                                    .len = sizeof m->out};
    m->waits = true;
    int before = m->at;
    enum engine_status status = engine_start(m->side[m->other[before]].e, &call, now, &seq);
    if (status == ENGINE_OK)
        return;
    assert_int_equal(status, ENGINE_REVOKED);
    m->ended[m->at++] = status;
    m->waits = false;
}

/* One of the oldest letters of a connection, or time passes. */
static void step(void)
{
    if (queued && rng_below(&rng, 8)) {
        int i = (int)rng_below(&rng, (uint64_t)queued);
        for (int k = 0; k < i; k++)
            if (queue[k].to == queue[i].to && queue[k].from == queue[i].from)
                i = k;
        struct letter l = queue[i];
        memmove(&queue[i], &queue[i + 1], (size_t)(--queued - i) * sizeof l);
        engine_receive(l.to->e, l.from, l.data, l.len, now);
        free(l.data);
        return;
    }
    struct member *m = &members[rng_below(&rng, (uint64_t)n_members)];
    now += 7 * MS;
    for (int k = 0; k < 2; k++)
        engine_tick(m->side[k].e, now);
    if (rng_below(&rng, 2))
        go_on(m);
}

static bool all_are_through(void)
{
    for (int i = 0; i < n_members; i++)
        if (members[i].at < CALLS)
            return false;
    return true;
}

/* at: where the program of one member differs; CALLS: nowhere. */
static void run(uint64_t seed, int at)
{
    bool program[CALLS];
    rng_seed(&rng, seed);
    n_members = 2 + (int)rng_below(&rng, MEMBERS - 1);
    queued = misfits = 0;
    now = 1000 * MS;
    uint64_t bits[1] = {(1ull << n_members) - 1};
    struct roster *roster = made_roster(n_members, bits, 1);
    assert_non_null(roster);
    for (int c = 0; c < CALLS; c++)
        program[c] = rng_below(&rng, 2);
    int odd = (int)rng_below(&rng, (uint64_t)n_members);
    for (int i = 0; i < n_members; i++) {
        members[i] = (struct member){.id = i};
        memcpy(members[i].other, program, sizeof program);
        if (i == odd && at < CALLS)
            members[i].other[at] = !program[at];
        for (int k = 0; k < 2; k++) {
            struct side *s = &members[i].side[k];
            struct engine_ops ops = {s, on_send, on_done, NULL, NULL, NULL, on_misfit};
            *s = (struct side){&members[i], k, made_engine(7 + (uint64_t)k, i, roster, NULL, &ops)};
            assert_non_null(s->e);
            assert_true(engine_join(s->e, 0));
        }
        engine_pair(members[i].side[0].e, members[i].side[1].e);
    }
    long steps = 0;
    while (!all_are_through()) {
        step();
        if (++steps > 2000000)
            fail_msg("seed %llu, call %d differs: it does not end", (unsigned long long)seed, at);
    }
    for (int i = 0; i < n_members; i++)
        for (int c = 0; c < CALLS; c++)
            if (members[i].ended[c] != (c < at ? ENGINE_OK : ENGINE_REVOKED))
                fail_msg("seed %llu, call %d differs: call %d of member %d ends with %d", (unsigned long long)seed, at,
                         c, i, (int)members[i].ended[c]);
    assert_true(at < CALLS ? misfits > 0 : misfits == 0);
    for (int k = 0; k < queued; k++)
        free(queue[k].data);
    for (int i = 0; i < n_members; i++)
        for (int k = 0; k < 2; k++)
            engine_destroy(members[i].side[k].e);
    roster_unref(roster);
}

static void test_pair_of_the_same_programs_is_left_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        run(seed, CALLS);
}

static void test_pair_finds_who_is_in_another_call(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        run(seed, (int)(seed % CALLS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_of_the_same_programs_is_left_alone),
        cmocka_unit_test(test_pair_finds_who_is_in_another_call),
    };
    return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
