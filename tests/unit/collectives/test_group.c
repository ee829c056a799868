#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <malloc.h>
#include <cmocka.h>

#include "collectives/group.h"
#include "runtime/base/rng.h"
#include "tests/unit/collectives/made.h"

static struct group *listed(int ranks, const int *list, int n)
{
    struct group *g;
    assert_int_equal(made_group(ranks, list, n, 0, &g), GROUP_OK);
    return g;
}

static struct group *world_of(int ranks)
{
    int list[8];
    for (int i = 0; i < ranks; i++)
        list[i] = i;
    return listed(ranks, list, ranks);
}

/* The same ranks in the same order? */
static bool is_same(const struct group *a, const struct group *b)
{
    bool same = group_size(a) == group_size(b);
    for (int i = 0; same && i < group_size(a); i++)
        same = group_rank(a, i) == group_rank(b, i);
    return same;
}

static void assert_ranks(const struct group *g, const int *ranks, int n)
{
    assert_int_equal(group_size(g), n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(group_rank(g, i), ranks[i]);
        assert_int_equal(group_member_of(g, ranks[i]), i);
    }
}

static void test_group_translates_ranks_both_ways(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    for (int round = 0; round < 300; round++) {
        int list[40], n = 0, ranks = 40;
        for (int rank = 0; rank < ranks; rank++) /* some in any order */
            if (rng_below(&r, 2)) {
                int at = (int)rng_below(&r, (uint64_t)n + 1);
                list[n++] = list[at];
                list[at] = rank;
            }
        struct group *g = listed(ranks, list, n);
        assert_ranks(g, list, n);
        for (int rank = -1; rank <= ranks; rank++) {
            bool inside = false;
            for (int i = 0; i < n; i++)
                inside |= list[i] == rank;
            assert_true(inside == (group_member_of(g, rank) >= 0));
        }
        assert_int_equal(group_rank(g, -1), -1);
        assert_int_equal(group_rank(g, n), -1);
        group_unref(g);
    }
}

static void test_group_strides_forwards_and_backwards_need_no_list(void **state)
{
    (void)state;
    static const int up[] = {3, 7, 11, 15}, down[] = {15, 11, 7, 3};
    struct group *a = listed(16, up, 4), *b = listed(16, down, 4);
    assert_ranks(a, up, 4);
    assert_ranks(b, down, 4);
    assert_int_equal(group_member_of(a, 8), -1);
    assert_int_equal(group_member_of(b, 2), -1);
    assert_false(is_same(a, b));
    assert_true(group_id(a) != group_id(b));
    assert_int_equal(group_member_of(b, group_rank(a, 0)), 3);
    assert_int_equal(group_member_of(b, group_rank(a, 3)), 0);
    group_unref(a);
    group_unref(b);
}

static void test_group_bad_lists_are_refused(void **state)
{
    (void)state;
    static const int twice[] = {1, 2, 1}, high[] = {0, 8}, negative[] = {-1, 0}, same[] = {4, 4};
    struct group *g = NULL;
    assert_int_equal(made_group(8, twice, 3, 0, &g), GROUP_BAD);
    assert_int_equal(made_group(8, high, 2, 0, &g), GROUP_BAD);
    assert_int_equal(made_group(8, negative, 2, 0, &g), GROUP_BAD);
    assert_int_equal(made_group(8, same, 2, 0, &g), GROUP_BAD);
    assert_null(g);
    g = world_of(8);
    static const int wrong[] = {1, 8}, negative_member[] = {1, -1};
    struct group *part = group_room(2);
    assert_non_null(part);
    assert_int_equal(group_include_in(part, g, wrong, 2, 0), GROUP_BAD);
    assert_int_equal(group_include_in(part, g, negative_member, 2, 0), GROUP_BAD);
    group_unref(part);
    group_unref(g);
}

static void test_group_named_members_keep_the_order_of_their_names(void **state)
{
    (void)state;
    static const int ranks[] = {5, 1, 3, 9}, named[] = {3, 0}, included[] = {9, 5};
    struct group *g = listed(10, ranks, 4), *part = group_room(2);
    assert_non_null(part);
    assert_int_equal(group_include_in(part, g, named, 2, 0), GROUP_OK);
    assert_ranks(part, included, 2);
    group_unref(part);
    group_unref(g);
}

static void test_group_split_by_colour_and_key(void **state)
{
    (void)state;
    static const int colour[] = {0, 1, 0, -1, 1, 0}, key[] = {5, 1, 4, 0, 1, 4};
    static const int zero[] = {2, 5, 0}, one[] = {1, 4};
    struct group *world = world_of(6), *g = NULL;
    g = group_room(group_size(world));
    group_split_in(g, world, colour, key, 0, 7);
    assert_ranks(g, zero, 3);
    uint64_t id = group_id(g);
    group_unref(g);
    g = group_room(group_size(world));
    group_split_in(g, world, colour, key, 1, 7);
    assert_ranks(g, one, 2);
    assert_true(group_id(g) != id);
    group_unref(g);
    group_unref(world);
}

static void test_group_identity_is_that_of_ranks_order_and_number(void **state)
{
    (void)state;
    static const int list[] = {4, 2, 7}, order[] = {2, 4, 7};
    struct group *a, *b, *c, *d;
    assert_int_equal(made_group(8, list, 3, 1, &a), GROUP_OK);
    assert_int_equal(made_group(8, list, 3, 1, &b), GROUP_OK);
    assert_int_equal(made_group(8, list, 3, 2, &c), GROUP_OK);
    assert_int_equal(made_group(8, order, 3, 1, &d), GROUP_OK);
    assert_true(group_id(a) == group_id(b) && is_same(a, b));
    assert_true(group_id(a) != group_id(c) && is_same(a, c));
    assert_true(group_id(a) != group_id(d) && !is_same(a, d));
    group_unref(a);
    group_unref(b);
    group_unref(c);
    group_unref(d);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Ten thousand groups of a job: no two identities are equal, the world's size does not count for a row of it,
 * nothing is left. */
static void test_group_ten_thousand_are_cheap_and_leave_nothing(void **state)
{
    (void)state;
    enum { GROUPS = 10000, RANKS = 65536 };
    static struct group *g[GROUPS];
    static uint64_t ids[GROUPS];
    size_t before = 0;
    for (int round = 0; round < 2; round++) { /* the first leaves what the allocator keeps for the next */
        struct rng r;
        rng_seed(&r, 3);
        size_t empty = mallinfo2().uordblks;
        assert_true(!round || empty <= before);
        before = empty;
        for (int i = 0; i < GROUPS; i++) {
            int list[32], n = 2 + (int)rng_below(&r, 30), stride = 1 + (int)rng_below(&r, 1000);
            int first = (int)rng_below(&r, (uint64_t)(RANKS - stride * n));
            for (int k = 0; k < n; k++)
                list[k] = first + k * stride;
            assert_int_equal(made_group(RANKS, list, n, (uint64_t)i, &g[i]), GROUP_OK);
            ids[i] = group_id(g[i]);
            assert_int_equal(group_member_of(g[i], list[n - 1]), n - 1);
        }
        assert_true(mallinfo2().uordblks - empty < GROUPS * 100);
        qsort(ids, GROUPS, sizeof ids[0], by_value);
        for (int i = 1; i < GROUPS; i++)
            assert_true(ids[i] != ids[i - 1]);
        for (int i = 0; i < GROUPS; i++)
            group_unref(g[i]);
        if (!round)
            before = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks <= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_translates_ranks_both_ways),
        cmocka_unit_test(test_group_strides_forwards_and_backwards_need_no_list),
        cmocka_unit_test(test_group_bad_lists_are_refused),
        cmocka_unit_test(test_group_named_members_keep_the_order_of_their_names),
        cmocka_unit_test(test_group_split_by_colour_and_key),
        cmocka_unit_test(test_group_identity_is_that_of_ranks_order_and_number),
        cmocka_unit_test(test_group_ten_thousand_are_cheap_and_leave_nothing),
    };
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
