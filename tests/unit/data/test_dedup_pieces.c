/* What agents remember of operations in pieces (runtime/agent/dedup.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "memory.h"
#include "runtime/agent/dedup.h"
#include "seed.h"

static void record(struct dedup *d, int rank, uint32_t lane, uint64_t number, int64_t result)
{
    assert_true(dedup_reserve(d, life_of(rank, 0), lane));
    dedup_record(d, life_of(rank, 0), lane, number, result);
}

static int setup(void **state)
{
    static struct dedup d;
    *state = &d;
    return dedup_init(&d, 4) ? 0 : -1;
}

static int teardown(void **state)
{
    dedup_fini(*state);
    return memory_living() == 0 ? 0 : -1;
}

static enum dedup_verdict look_piece(const struct dedup *d, uint32_t lane, uint64_t number, uint32_t piece)
{
    int64_t result;
    return dedup_look(d, life_of(1, 0), lane, number, piece, &result);
}

static void test_dedup_pieces_of_an_operation_in_order_early_is_told(void **state)
{
    struct dedup *d = *state;
    record(d, 1, 2, 6, 99); /* of before: a value */
    for (uint32_t piece = 1; piece <= 1000; piece++) {
        assert_int_equal(look_piece(d, 2, 7, piece + 1), DEDUP_EARLY);
        assert_int_equal(look_piece(d, 2, 7, piece + 7), DEDUP_EARLY);
        assert_int_equal(look_piece(d, 2, 7, piece), DEDUP_NEW);
        record(d, 1, 2, 7, piece);
        for (uint32_t known = 1; known <= piece; known += 1 + piece / 10)
            assert_int_equal(look_piece(d, 2, 7, known), DEDUP_SEEN);
    }
    assert_int_equal(look_piece(d, 2, 6, 1), DEDUP_ECHO);
    assert_int_equal(look_piece(d, 2, 8, 2), DEDUP_EARLY);
    assert_int_equal(look_piece(d, 2, 8, 1), DEDUP_NEW);
    assert_int_equal(look_piece(d, 2, 8, 0), DEDUP_NEW);
    assert_int_equal(d->origin[1]->lanes, 4); /* however many they are */
}

/* A rank with up to eight operations, one in a lane at a time, in pieces of which some are on their way together; they
 * come late, come again, and some are given up. Each of those that it has an answer for took effect once, none of the
 * others twice. */
enum { WAYS = 24, OPS_LANES = 8, PIECES = 5 };

struct sent {
    uint32_t lane, piece;
    uint64_t number;
};

struct origin {
    uint64_t number[OPS_LANES];
    uint32_t pieces[OPS_LANES], answered[OPS_LANES]; /* of the operation; pieces 0: an atomic, which has one */
    bool busy[OPS_LANES];
    int executed[OPS_LANES][PIECES + 1];
    struct sent way[WAYS];
    int ways;
};

static uint32_t pieces_of(const struct origin *o, uint32_t lane)
{
    return o->pieces[lane] ? o->pieces[lane] : 1;
}

static void origin_begin(struct origin *o, uint32_t lane, struct rng *rng)
{
    o->number[lane] += 1 + rng_below(rng, 3) / 2; /* one that ended before it was sent */
    o->pieces[lane] = (uint32_t)rng_below(rng, PIECES + 1);
    o->answered[lane] = 0;
    o->busy[lane] = true;
    memset(o->executed[lane], 0, sizeof o->executed[lane]);
}

static void origin_send(struct origin *o, uint32_t lane, struct rng *rng)
{
    uint32_t left = pieces_of(o, lane) - o->answered[lane], at = o->answered[lane] + (uint32_t)rng_below(rng, left);
    if (o->ways < WAYS)
        o->way[o->ways++] = (struct sent){lane, o->pieces[lane] ? at + 1 : 0, o->number[lane]};
}

/* One of what is on its way comes; half of them come again. */
static void origin_arrives(struct origin *o, struct dedup *d, struct rng *rng)
{
    int which = (int)rng_below(rng, (uint64_t)o->ways);
    struct sent m = o->way[which];
    int64_t result;
    enum dedup_verdict verdict = dedup_look(d, life_of(0, 0), m.lane, m.number, m.piece, &result);
    if (rng_below(rng, 2))
        o->way[which] = o->way[--o->ways];
    bool late = m.number != o->number[m.lane] || !o->busy[m.lane];
    int *executed = &o->executed[m.lane][m.piece];
    uint32_t place = m.piece ? m.piece : 1;
    if (m.number != o->number[m.lane]) { /* it was given up, and may come as long as its successor has not come */
        bool passed = d->origin[0] && m.lane < d->origin[0]->lanes && d->origin[0]->lane[m.lane].number > m.number;
        assert_int_equal(verdict == DEDUP_ECHO, passed);
        if (verdict == DEDUP_NEW)
            record(d, 0, m.lane, m.number, m.piece);
        return;
    }
    if (verdict == DEDUP_NEW) {
        assert_int_equal((*executed)++, 0);
        assert_true(place == 1 || o->executed[m.lane][m.piece - 1] == 1);
        record(d, 0, m.lane, m.number, m.piece ? m.piece : (int64_t)m.number * 3);
    } else if (verdict == DEDUP_SEEN) {
        assert_int_equal(*executed, 1);
        assert_true(m.piece || result == (int64_t)m.number * 3);
    } else {
        assert_int_equal(verdict, DEDUP_EARLY);
        assert_true(place > 1 && o->executed[m.lane][m.piece - 1] == 0);
        return;
    }
    if (!late && place == o->answered[m.lane] + 1)
        o->busy[m.lane] = ++o->answered[m.lane] < pieces_of(o, m.lane);
}

static void test_dedup_random_pieces_none_lost_none_twice(void **state)
{
    struct dedup *d = *state;
    struct origin o = {0};
    struct rng rng;
    uint64_t done = 0;
    seed_rng(&rng);
    for (int i = 0; i < 300000; i++) {
        uint32_t lane = (uint32_t)rng_below(&rng, OPS_LANES);
        bool was = o.busy[lane];
        if (!was)
            origin_begin(&o, lane, &rng);
        else if (rng_below(&rng, 200) == 0)
            o.busy[lane] = false; /* given up */
        else if (o.ways && rng_below(&rng, 2))
            origin_arrives(&o, d, &rng);
        else
            origin_send(&o, lane, &rng);
        for (uint32_t l = 0; l < OPS_LANES; l++)
            for (uint32_t p = 1; o.pieces[l] && p <= o.answered[l]; p++)
                assert_int_equal(o.executed[l][p], 1);
        done += was && !o.busy[lane];
    }
    print_message("%llu operations\n", (unsigned long long)done);
    assert_true(done > 1000);
    assert_int_equal(d->origin[0]->lanes, OPS_LANES);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_dedup_pieces_of_an_operation_in_order_early_is_told),
        TEST(test_dedup_random_pieces_none_lost_none_twice),
    };
    return cmocka_run_group_tests_name("dedup_pieces", tests, NULL, NULL);
}
