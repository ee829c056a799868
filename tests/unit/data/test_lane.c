/* Names of operations that count once (runtime/client/op/lane.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/client/op/lane.h"
#include "tests/unit/data/seed.h"

enum { BLOCKS = -1 };

static int lane_of(struct lanes *l, struct lane_op *o, int rank, uint64_t *handle)
{
    lanes_take(l, o, rank, handle);
    assert_int_equal(l->lane[o->lane].number, o->number);
    return o->lane;
}

static void test_lane_blocking_calls_have_lane_0_and_number_the_calls(void **state)
{
    (void)state;
    struct lanes l = {0};
    for (uint64_t n = 1; n <= 1000; n++) {
        struct lane_op o;
        assert_int_equal(lane_of(&l, &o, BLOCKS, NULL), 0);
        assert_int_equal(o.number, n);
        assert_false(o.waits);
        assert_null(lanes_end(&l, &o));
        lanes_told_by_call(&l, &o);
    }
}

/* Another process that gets the numbers names what follows alike; what is set apart never goes back. */
static void test_lane_numbers_are_all_that_another_process_needs(void **state)
{
    (void)state;
    struct lanes l = {0}, other = {0};
    struct lane_op a, b, c;
    uint64_t numbers[LANES_MAX], of_a = 0;
    lanes_set_apart(&l);
    lanes_set_apart(&other);
    for (int i = 0; i < 3; i++)
        (void)lanes_draw_apart(&other);
    assert_true(lanes_are_free(&l));
    (void)lane_of(&l, &a, BLOCKS, &of_a);
    (void)lane_of(&l, &b, 1, NULL);
    assert_null(lanes_end(&l, &a));
    assert_null(lanes_end(&l, &b));
    lanes_told_by_fence(&l, -1);
    assert_false(lanes_are_free(&l)); /* the handle was not waited for */
    lanes_told_by_handle(&l, of_a);
    assert_true(lanes_are_free(&l));
    lanes_numbers(&l, numbers);
    lanes_go_on(&other, numbers);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(lane_of(&l, &a, 1, NULL), lane_of(&other, &c, 1, NULL));
        assert_int_equal(a.number, c.number);
        assert_null(lanes_end(&l, &a));
        assert_null(lanes_end(&other, &c));
    }
    assert_int_equal(lanes_draw_apart(&other), 4);
}

/* That it has ended is not told before the wait. */
static void test_lane_is_kept_until_the_handle_was_waited_for(void **state)
{
    (void)state;
    struct lanes l = {0};
    struct lane_op a, b, c;
    uint64_t of_a = 0, of_b = 0;
    assert_int_equal(lane_of(&l, &a, BLOCKS, &of_a), 0);
    assert_null(lanes_end(&l, &a));
    assert_int_equal(lane_of(&l, &b, BLOCKS, &of_b), 1);
    lanes_told_by_handle(&l, of_a);
    assert_int_equal(lane_of(&l, &c, BLOCKS, NULL), 0);
    assert_int_equal(c.number, 2);
    lanes_told_by_handle(&l, of_a); /* once more: it is another one's by now */
    assert_false(c.waits);
    assert_null(lanes_end(&l, &c));
    struct lane_op d;
    lanes_told_by_call(&l, &c);
    lanes_told_by_call(&l, &c);
    assert_int_equal(lane_of(&l, &d, BLOCKS, NULL), 0);
    assert_int_equal(d.number, 3);
}

static void test_lane_aggregate_gives_back_all_of_its_lanes(void **state)
{
    (void)state;
    struct lanes l = {0};
    struct lane_op o[LANES_MAX];
    uint64_t even = 0, odd = 0;
    for (int i = 0; i < LANES_MAX; i++)
        assert_int_equal(lane_of(&l, &o[i], BLOCKS, i % 2 ? &odd : &even), i);
    for (int i = 0; i < LANES_MAX; i++)
        assert_null(lanes_end(&l, &o[i]));
    lanes_told_by_handle(&l, even);
    for (int i = 0; i < LANES_MAX; i += 2)
        assert_int_equal(lane_of(&l, &o[i], 5, NULL), i);
    assert_int_equal(lane_of(&l, &o[1], BLOCKS, NULL), 1); /* all are taken: the oldest */
}

static void test_lane_fence_of_a_rank_gives_back_what_goes_to_it(void **state)
{
    (void)state;
    struct lanes l = {0};
    struct lane_op o[100];
    uint64_t handle = 0;
    for (int i = 0; i < 99; i++)
        assert_int_equal(lane_of(&l, &o[i], i % 3, NULL), i);
    assert_int_equal(lane_of(&l, &o[99], BLOCKS, &handle), 99);
    for (int i = 0; i < 100; i++)
        assert_null(lanes_end(&l, &o[i]));
    lanes_told_by_fence(&l, 1);
    for (int i = 1; i < 99; i += 3)
        assert_int_equal(lane_of(&l, &o[i], 7, NULL), i);
    assert_int_equal(lane_of(&l, &o[0], 7, NULL), 100);
    lanes_told_by_fence(&l, -1);
    for (int i = 0; i < 99; i++)
        assert_int_equal(lane_of(&l, &o[i], 7, NULL), i);
    assert_int_equal(lane_of(&l, &o[0], 7, NULL), 100); /* the handle has not been waited for */
}

/* The first operation waits for a node that says nothing: only those that get its lane wait with it. */
static void test_lane_where_all_are_taken_only_its_own_wait_for_the_oldest(void **state)
{
    (void)state;
    struct lanes l = {0};
    enum { N = 5 * LANES_MAX };
    static struct lane_op o[N];
    for (int i = 0; i < N; i++) {
        assert_int_equal(lane_of(&l, &o[i], 0, NULL), i % LANES_MAX);
        assert_int_equal(o[i].number, 1 + i / LANES_MAX);
        assert_int_equal(o[i].waits, i && i % LANES_MAX == 0);
        if (i % LANES_MAX)
            assert_null(lanes_end(&l, &o[i]));
    }
    assert_null(lanes_end(&l, &o[2 * LANES_MAX])); /* it is given up before it has its turn */
    assert_ptr_equal(lanes_end(&l, &o[0]), &o[LANES_MAX]);
    assert_ptr_equal(lanes_end(&l, &o[LANES_MAX]), &o[3 * LANES_MAX]);
    assert_null(lanes_end(&l, &o[4 * LANES_MAX])); /* and the last one */
    assert_null(lanes_end(&l, &o[3 * LANES_MAX]));
    assert_int_equal(lane_of(&l, &o[0], 0, NULL), 0);
    assert_false(o[0].waits);
}

static void test_lane_handles_that_are_forgotten_hold_up_nobody(void **state)
{
    (void)state;
    struct lanes l = {0};
    struct lane_op o, b;
    uint64_t sixth = 0;
    for (int i = 0; i < 10 * LANES_MAX; i++) {
        uint64_t handle = 0;
        assert_int_equal(lane_of(&l, &o, BLOCKS, &handle), i % LANES_MAX);
        assert_false(o.waits);
        assert_null(lanes_end(&l, &o));
        sixth = i == 5 ? handle : sixth;
    }
    lanes_told_by_handle(&l, sixth); /* it has none any more */
    for (int i = 0; i < 10; i++) {   /* the oldest one's; free from then on */
        assert_int_equal(lane_of(&l, &b, BLOCKS, NULL), 0);
        assert_null(lanes_end(&l, &b));
        lanes_told_by_call(&l, &b);
    }
}

/* ---- the same calls, twice ---- */

/* A program makes calls; its operations end in whatever order. What the calls tell it is the same in both runs, which
 * is all that they have in common. */
enum { CALLS = 4000, HANDLES = 12, RANKS = 4, UNDER_WAY = 400 };

enum call_kind { CALL_BLOCKING, CALL_HANDLE, CALL_IMPLICIT, CALL_FENCE, CALL_TEST, CALL_WAIT, CALL_KINDS };

struct a_call {
    enum call_kind kind;
    int handle, rank;
    bool answer; /* of a test */
};

struct under_way {
    struct lane_op name;
    bool used;
    int handle, rank; /* -1: none */
};

struct run {
    struct rng rng; /* of the answers alone */
    struct lanes lanes;
    struct under_way op[UNDER_WAY];
    int many;
    uint64_t handle[HANDLES];
    uint64_t last[LANES_MAX]; /* number that went out in each lane */
    struct lane_op *out[LANES_MAX];
    int most; /* under way at once */
    struct {
        int lane;
        uint64_t number;
    } named[CALLS];
};

static void goes_out(struct run *r, struct lane_op *o)
{
    assert_null(r->out[o->lane]); /* one at a time */
    assert_true(o->number > r->last[o->lane]);
    r->out[o->lane] = o;
    r->last[o->lane] = o->number;
}

static void end(struct run *r, struct under_way *u)
{
    int lane = u->name.lane;
    bool went = r->out[lane] == &u->name;
    if (went)
        r->out[lane] = NULL;
    struct lane_op *next = lanes_end(&r->lanes, &u->name);
    assert_int_equal(next != NULL, went && r->lanes.lane[lane].first != NULL);
    if (next)
        goes_out(r, next);
    u->used = false;
    r->many--;
}

/* Some operation ends; sometimes one is given up that has not gone out. */
static void answers(struct run *r)
{
    struct under_way *u = &r->op[rng_below(&r->rng, UNDER_WAY)];
    if (u->used && (!u->name.waits || rng_below(&r->rng, 50) == 0))
        end(r, u);
}

static bool any_left(const struct run *r, int handle, int rank, bool implicit)
{
    for (const struct under_way *u = r->op; u < r->op + UNDER_WAY; u++)
        if (u->used && (handle >= 0 ? u->handle == handle : implicit && u->handle < 0 && (rank < 0 || u->rank == rank)))
            return true;
    return false;
}

static struct under_way *begin(struct run *r, int handle, int rank, int call)
{
    while (r->many == UNDER_WAY)
        answers(r);
    struct under_way *u = r->op;
    while (u->used)
        u++;
    *u = (struct under_way){.used = true, .handle = handle, .rank = rank};
    r->many++;
    r->most = r->many > r->most ? r->many : r->most;
    lanes_take(&r->lanes, &u->name, rank, handle >= 0 ? &r->handle[handle] : NULL);
    r->named[call].lane = u->name.lane;
    r->named[call].number = u->name.number;
    if (!u->name.waits)
        goes_out(r, &u->name);
    return u;
}

static void told_by(struct run *r, int handle)
{
    lanes_told_by_handle(&r->lanes, r->handle[handle]);
    r->handle[handle] = 0;
}

static void call_blocking(struct run *r, int call)
{
    struct under_way *u = begin(r, -1, -1, call);
    struct lane_op name = u->name;
    while (u->used)
        answers(r);
    lanes_told_by_call(&r->lanes, &name);
}

/* Where the answer is already known, the program is told this one: a wrapper asks on, or not at all. */
static void call_test(struct run *r, struct a_call *c, bool known)
{
    bool left = any_left(r, c->handle, -1, false);
    if (!known)
        c->answer = !left;
    while (c->answer && any_left(r, c->handle, -1, false))
        answers(r);
    if (c->answer)
        told_by(r, c->handle);
}

static void call_make(struct run *r, struct a_call *c, int call, bool known)
{
    switch (c->kind) {
    case CALL_BLOCKING:
        call_blocking(r, call);
        break;
    case CALL_HANDLE:
        (void)begin(r, c->handle, -1, call);
        break;
    case CALL_IMPLICIT:
        (void)begin(r, -1, c->rank, call);
        break;
    case CALL_FENCE:
        while (any_left(r, -1, c->rank, true))
            answers(r);
        lanes_told_by_fence(&r->lanes, c->rank);
        break;
    case CALL_TEST:
        call_test(r, c, known);
        break;
    default:
        while (any_left(r, c->handle, -1, false))
            answers(r);
        told_by(r, c->handle);
    }
}

static void run(struct run *r, struct a_call *calls, uint64_t seed, bool known)
{
    memset(r, 0, sizeof *r);
    rng_seed(&r->rng, seed);
    unsigned hurry = 1 + (unsigned)rng_below(&r->rng, 40); /* answers between two calls */
    for (int i = 0; i < CALLS; i++) {
        for (uint64_t n = rng_below(&r->rng, hurry); n > 0; n--)
            answers(r);
        call_make(r, &calls[i], i, known);
    }
}

static void test_lane_same_calls_same_names_however_answers_come(void **state)
{
    (void)state;
    static struct run first, second;
    static struct a_call calls[CALLS];
    struct rng rng;
    seed_rng(&rng);
    int most = 0, queued = 0;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < CALLS; i++) {
            enum call_kind kind = (enum call_kind)rng_below(&rng, CALL_KINDS);
            bool told = kind != CALL_HANDLE && kind != CALL_IMPLICIT;
            if (round % 2 && told && rng_below(&rng, 400)) /* rarely: more is under way than there are lanes */
                kind = CALL_HANDLE + rng_below(&rng, 2);
            calls[i] = (struct a_call){kind, (int)rng_below(&rng, HANDLES), (int)rng_below(&rng, RANKS + 1), false};
            calls[i].rank -= kind == CALL_FENCE; /* all of them */
        }
        run(&first, calls, rng_u64(&rng), false);
        run(&second, calls, rng_u64(&rng), true);
        for (int i = 0; i < CALLS; i++) {
            assert_int_equal(first.named[i].lane, second.named[i].lane);
            assert_int_equal(first.named[i].number, second.named[i].number);
        }
        most = first.most > most ? first.most : most;
        queued += first.most > LANES_MAX;
    }
    print_message("at most %d under way, more than lanes in %d of 40 rounds\n", most, queued);
    assert_true(queued > 0);
}

/* Agents keep a record up to the highest lane. */
static void test_lane_few_under_way_few_lanes(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int few = 1; few <= 16; few++) {
        struct lanes l = {0};
        struct lane_op o[16];
        uint64_t handle[16] = {0};
        bool open[16] = {false};
        for (int i = 0; i < 5000; i++) {
            int which = (int)rng_below(&rng, (uint64_t)few);
            if (open[which]) {
                assert_null(lanes_end(&l, &o[which]));
                lanes_told_by_handle(&l, handle[which]);
            } else {
                handle[which] = 0;
                lanes_take(&l, &o[which], BLOCKS, &handle[which]);
                assert_true(o[which].lane < few);
                assert_false(o[which].waits);
            }
            open[which] = !open[which];
        }
    }
}

/* However many are set apart, and of whatever time: the names of the others are the same. */
static void test_lane_set_apart_leaves_the_names_of_others_alone(void **state)
{
    (void)state;
    struct lanes with = {0}, without = {0};
    struct lane_op held, a[2 * LANES_MAX], b[2 * LANES_MAX], o[3];
    lanes_set_apart(&with);
    lanes_set_apart(&without);
    lanes_take_apart(&with, &held);
    assert_int_equal(held.lane, 0);
    for (int i = 0; i < 2 * LANES_MAX; i++) {
        int rank = i % 3 ? BLOCKS : 5;
        assert_int_equal(lane_of(&with, &a[i], rank, NULL), lane_of(&without, &b[i], rank, NULL));
        assert_int_not_equal(a[i].lane, 0);
        assert_int_equal(a[i].number, b[i].number);
        lanes_take_apart(&with, &o[0]);
        assert_true(o[0].waits);
        assert_null(lanes_end(&with, &o[0])); /* it is given up */
        lanes_told_by_call(&with, &o[0]);
        if (i == LANES_MAX)
            lanes_told_by_fence(&with, -1), lanes_told_by_fence(&without, -1);
    }
    lanes_take_apart(&with, &o[1]);
    lanes_take_apart(&with, &o[2]);
    assert_ptr_equal(lanes_end(&with, &held), &o[1]);
    assert_false(o[1].waits);
    lanes_told_by_call(&with, &held);
    assert_ptr_equal(lanes_end(&with, &o[1]), &o[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lane_set_apart_leaves_the_names_of_others_alone),
        cmocka_unit_test(test_lane_blocking_calls_have_lane_0_and_number_the_calls),
        cmocka_unit_test(test_lane_numbers_are_all_that_another_process_needs),
        cmocka_unit_test(test_lane_is_kept_until_the_handle_was_waited_for),
        cmocka_unit_test(test_lane_aggregate_gives_back_all_of_its_lanes),
        cmocka_unit_test(test_lane_fence_of_a_rank_gives_back_what_goes_to_it),
        cmocka_unit_test(test_lane_where_all_are_taken_only_its_own_wait_for_the_oldest),
        cmocka_unit_test(test_lane_handles_that_are_forgotten_hold_up_nobody),
        cmocka_unit_test(test_lane_same_calls_same_names_however_answers_come),
        cmocka_unit_test(test_lane_few_under_way_few_lanes),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
