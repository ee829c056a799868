/* Sets of ranges against a plain array of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "detect/idset.h"
#include "runtime/base/rng.h"

enum { IDS = 150 };

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
    assert_int_equal(s->n, ranges);
    assert_int_equal(idset_nth_out(s, out), IDS);
}

static void test_idset_is_what_was_put_in(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    for (int round = 0; round < 60; round++) {
        struct idset s = {0}, copy = {0}, other = {0};
        bool in[IDS] = {false}, in_other[IDS] = {false};
        for (int i = 0; i < 300; i++) {
            int id = (int)rng_below(&r, IDS);
            bool add = rng_below(&r, 60) >= (uint64_t)round;
            assert_true(add ? idset_add(&s, id) : idset_del(&s, id));
            in[id] = add;
            id = (int)rng_below(&r, IDS);
            assert_true(idset_add(&other, id));
            in_other[id] = true;
            if (i % 10 == 0)
                same(&s, in);
        }
        same(&s, in);
        int common = 0;
        for (int id = 0; id < IDS; id++)
            common += in[id] && in_other[id];
        assert_int_equal(idset_common(&s, &other), common);
        assert_int_equal(idset_common(&other, &s), common);
        assert_true(idset_copy(&copy, &s));
        same(&copy, in);
        int ids[IDS], n = 0;
        bool both[IDS];
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
}

/* A rack that goes takes no more room than a node. */
static void test_idset_a_range_is_one_entry(void **state)
{
    (void)state;
    struct idset s = {0};
    for (int i = 0; i < 100000; i += 2)
        assert_true(idset_add(&s, 50000 + (i < 50000 ? i : i - 49999)));
    assert_int_equal(s.n, 1);
    assert_int_equal(s.count, 50000);
    idset_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idset_is_what_was_put_in),
        cmocka_unit_test(test_idset_a_range_is_one_entry),
    };
    return cmocka_run_group_tests_name("idset", tests, NULL, NULL);
}
