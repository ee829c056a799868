/* Which version of its kept memory a process goes on from that takes a rank over, and how kept memory lies in a part.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/client/keep/layout.h"

enum { ROUNDS = 5, BESIDE_MAX = 3 };

/* Where a predecessor may die: before each step of a commit, and behind the last. */
enum step { WORKS, OPENED, COPIED, MARKED, LEFT, STEPS };

struct predecessor {
    struct keep_root root;
    uint64_t whole[2]; /* the version whose bytes are in the side, 0: some of two */
    uint64_t count;    /* collectives that it has left */
    int side;
    bool entered; /* the meeting of the commit in which it died: others may have left it, too */
};

static void commit_until(struct predecessor *p, uint64_t version, enum step last)
{
    const int side = p->side == 0;
    struct keep_side *s = &p->root.side[side];
    if (last >= OPENED) {
        *s = (struct keep_side){.at = p->count + 1};
        p->whole[side] = 0;
    }
    if (last >= COPIED)
        p->whole[side] = version;
    if (last >= MARKED)
        s->version = version;
    p->entered = last >= MARKED;
    if (last < LEFT)
        return;
    p->count++;
    p->side = side;
}

static struct predecessor live_until(uint64_t versions, int beside, enum step last)
{
    struct predecessor p = {.side = -1};
    for (uint64_t v = 1; v <= versions; v++) {
        p.count += (uint64_t)beside;
        commit_until(&p, v, v < versions ? LEFT : last);
    }
    return p;
}

/* n: how many collectives its successor is told that count. */
static void expect_right_choice(const struct predecessor *p, uint64_t n)
{
    const int side = keep_choose(&p->root, n);
    uint64_t newest = 0;
    for (int i = 0; i < 2; i++)
        if (p->root.side[i].version && p->root.side[i].at <= n + 1 && p->root.side[i].version > newest)
            newest = p->root.side[i].version;
    if (side < 0) {
        assert_int_equal(newest, 0);
        return;
    }
    assert_int_equal(p->whole[side], p->root.side[side].version);
    assert_int_equal(p->root.side[side].version, newest);
    assert_true(p->root.side[side].at <= n + 1); /* no collective is left out that the others are still to do */
}

static void every_death_leaves_a_whole_version_that_can_be_gone_on_from(void **state)
{
    (void)state;
    for (int beside = 0; beside <= BESIDE_MAX; beside++)
        for (uint64_t versions = 1; versions <= ROUNDS; versions++)
            for (enum step last = WORKS; last < STEPS; last++) {
                struct predecessor p = live_until(versions, beside, last);
                /* The others are where it was, or have left the collective that it had entered; what counts is what
                 * all of a view had left, or one less. */
                uint64_t low = p.count ? p.count - 1 : 0, high = p.count + p.entered;
                for (uint64_t n = low; n <= high; n++) {
                    expect_right_choice(&p, n);
                    const int side = keep_choose(&p.root, n);
                    assert_true(side >= 0 || versions == 1 || p.root.side[0].at > n + 1);
                }
            }
}

static void a_version_that_all_have_committed_is_not_passed_over(void **state)
{
    (void)state;
    struct predecessor p = live_until(3, 0, MARKED);
    /* the others have left the meeting of the third on its entry: nobody waits there for it */
    assert_int_equal(p.root.side[keep_choose(&p.root, 3)].version, 3);
    assert_int_equal(p.root.side[keep_choose(&p.root, 2)].version, 3);
    /* they have not left the second's: the third is nobody's yet */
    assert_int_equal(p.root.side[keep_choose(&p.root, 1)].version, 2);
    p = live_until(3, 0, COPIED);
    assert_int_equal(p.root.side[keep_choose(&p.root, 2)].version, 2);
}

static void collectives_beside_commits_are_not_left_out(void **state)
{
    (void)state;
    struct predecessor p = live_until(2, 1, MARKED); /* 1: beside, 2: version 1, 3: beside, 4: version 2 */
    assert_int_equal(p.root.side[keep_choose(&p.root, 2)].version, 1);
    assert_int_equal(p.root.side[keep_choose(&p.root, 3)].version, 2);
}

static void sides_and_tables_do_not_overlap(void **state)
{
    (void)state;
    static const size_t rooms[] = {0, 1, 4096, 4097, 1000000};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        size_t r = rooms[i];
        assert_true(keep_table_at(r, 0) >= sizeof(struct keep_root));
        assert_true(keep_bytes_at(r, 0) >= keep_table_at(r, 0) + sizeof(struct keep_table));
        assert_true(keep_table_at(r, 1) >= keep_bytes_at(r, 0) + r);
        assert_true(keep_part_bytes(r) >= keep_bytes_at(r, 1) + r);
    }
    assert_int_equal(keep_part_bytes(SIZE_MAX), 0);
}

static void what_is_no_table_is_found(void **state)
{
    (void)state;
    struct keep_table good = {.ranges = 2,
                              .used = 192,
                              .entry = {{.name = "a", .bytes = 100, .at = 0}, {.name = "b", .bytes = 1, .at = 128}}};
    assert_true(keep_table_is_sound(&good, 200));
    assert_non_null(keep_find(&good, "b"));
    assert_null(keep_find(&good, "c"));
    struct keep_table bad = good;
    bad.ranges = KEEP_RANGES + 1;
    assert_false(keep_table_is_sound(&bad, 200));
    bad = good;
    bad.entry[1].at = 64;
    assert_false(keep_table_is_sound(&bad, 200));
    bad = good;
    bad.entry[1].bytes = UINT64_MAX - 62; /* rounded up it would be 0 */
    assert_false(keep_table_is_sound(&bad, 200));
    bad = good;
    memset(bad.entry[0].name, 'x', sizeof bad.entry[0].name);
    assert_false(keep_table_is_sound(&bad, 200));
    bad = good;
    bad.used = 256;
    assert_false(keep_table_is_sound(&bad, 200));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_death_leaves_a_whole_version_that_can_be_gone_on_from),
        cmocka_unit_test(a_version_that_all_have_committed_is_not_passed_over),
        cmocka_unit_test(collectives_beside_commits_are_not_left_out),
        cmocka_unit_test(sides_and_tables_do_not_overlap),
        cmocka_unit_test(what_is_no_table_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
