/* Sets against a plain array of flags: as ranges, and as bits when there are many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "detect/idset.h"
#include "runtime/base/rng.h"

enum { IDS_MAX = 1500 };
static int ids_of_round; /* from which it draws: few lie close together, many become bits */
#define IDS ids_of_round

static void same(const struct idset *s, const bool *in)
{
    int count = 0, out = 0, ranges = 0;
    for (int id = 0; id < IDS; id++) {
        assert_int_equal(idset_has(s, id), in[id]);
        assert_int_equal(idset_below(s, id), count);
        ranges += in[id] && (id == 0 || !in[id - 1]);
        if (!in[id])
            assert_int_equal(idset_nth_out(s, out++), id);
        count += in[id];
        int next = id, next_out = id;
        while (next < IDS && !in[next])
            next++;
        while (next_out < IDS && in[next_out])
            next_out++;
        assert_int_equal(idset_next(s, id), next < IDS ? next : -1);
        assert_int_equal(idset_next_out(s, id), next_out);
    }
    assert_int_equal(s->count, count);
    assert_int_equal(s->n, s->b ? 0 : ranges);
    assert_int_equal(idset_nth_out(s, out), IDS);
}

static void test_idset_is_what_was_put_in(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    bool was_bits = false, was_ranges = false;
    for (int round = 0; round < 60; round++) {
        struct idset s = {0}, copy = {0}, other = {0};
        bool in[IDS_MAX] = {false}, in_other[IDS_MAX] = {false};
        IDS = round % 3 == 0 ? IDS_MAX : 150;
        for (int i = 0; i < 2 * IDS; i++) {
            int id = (int)rng_below(&r, (uint64_t)IDS);
            bool add = rng_below(&r, 60) >= (uint64_t)round;
            assert_true(add ? idset_add(&s, id) : idset_del(&s, id));
            in[id] = add;
            id = (int)rng_below(&r, (uint64_t)IDS);
            if (i < 40 || round % 2) {
                assert_true(idset_add(&other, id));
                in_other[id] = true;
            }
            if (i % 50 == 0)
                same(&s, in);
            was_bits |= s.b && !other.b;
            was_ranges |= !s.b && other.b;
        }
        same(&s, in);
        int common = 0;
        for (int id = 0; id < IDS; id++)
            common += in[id] && in_other[id];
        assert_int_equal(idset_common(&s, &other), common);
        assert_int_equal(idset_common(&other, &s), common);
        assert_true(idset_copy(&copy, &s));
        same(&copy, in);
        int ids[IDS_MAX], n = 0;
        bool both[IDS_MAX] = {false};
        for (int id = 0; id < IDS; id++) {
            both[id] = in[id] || in_other[id];
            if (in_other[id])
                ids[n++] = id;
        }
        assert_true(idset_union(&copy, &s, ids, n));
        same(&copy, both);
        assert_true(idset_union(&copy, &s, ids, 0));
        same(&copy, in);
        idset_clear(&copy);
        assert_int_equal(idset_below(&copy, IDS), 0);
        idset_free(&s);
        idset_free(&copy);
        idset_free(&other);
    }
    assert_true(was_bits && was_ranges);
}

/* A tenth of all nodes at random takes less than a byte for each member. */
static void test_idset_of_many_takes_little_room(void **state)
{
    (void)state;
    struct idset s = {0};
    struct rng r;
    rng_seed(&r, 11);
    while (s.count < 10000)
        assert_true(idset_add(&s, (int)rng_below(&r, 100000)));
    assert_non_null(s.b);
    assert_null(s.r);
    assert_true((size_t)s.n_blocks * sizeof *s.b < 100000 / 6);
    idset_free(&s);
}

/* A rack that goes takes no more room than a node. */
static void test_idset_a_range_is_one_entry(void **state)
{
    (void)state;
    struct idset s = {0};
    for (int i = 0; i < 25000; i++)
        assert_true(idset_add(&s, 50000 + i) && idset_add(&s, 49999 - i));
    assert_int_equal(s.n, 1);
    assert_int_equal(s.count, 50000);
    for (int i = 0; i < 128; i += 2)
        assert_true(idset_add(&s, i));
    assert_int_equal(s.n, 65); /* far from each other: ranges */
    idset_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idset_is_what_was_put_in),
        cmocka_unit_test(test_idset_of_many_takes_little_room),
        cmocka_unit_test(test_idset_a_range_is_one_entry),
    };
    return cmocka_run_group_tests_name("idset", tests, NULL, NULL);
}
