#include "tests/unit/topo/testlib.h"

#include "runtime/topo/lines.h"

/* A half plane of three columns and six rows slides: six lines of three, side by side, though the plan goes layer by
 * layer. */
static void test_lines_of_a_plane_are_its_rows(void **state)
{
    (void)state;
    struct job j;
    struct lines l;
    job_open(&j, "6x6", "2D(1,1)", "2D");
    assert_true(lines_init(&l, &j.place));
    assert_int_equal(job_fail_xy(&j, 2, 3), PLACE_MOVED);
    lines_of_plan(&l, &j.plan);
    assert_int_equal(l.count, 18);
    assert_int_equal(l.lines, 6);
    for (int32_t k = 0; k < l.lines; k++) {
        assert_int_equal(l.first[k + 1] - l.first[k], 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(l.move[l.first[k] + i].to, l.move[l.first[k]].to - i);
    }
    int64_t bytes[30];
    for (int s = 0; s < 30; s++)
        bytes[s] = s == 17 ? 100 : 10; /* slot 17 is at 2,3, the one lost; its line is the heaviest */
    struct lines_cost c = lines_cost(&l, bytes);
    assert_int_equal(c.moves, 18);
    assert_int_equal(c.lines, 6);
    assert_int_equal(c.longest, 3);
    assert_true(c.bytes == 17 * 10 + 100);
    assert_true(c.one_by_one == 10 + 10 + 100);
    assert_true(c.pipelined == 100);
    c = lines_cost(&l, NULL);
    assert_true(c.bytes == 18 && c.one_by_one == 3 && c.pipelined == 1);
    lines_fini(&l);
    job_close(&j);
}

/* Two slots change places by a third node, beside a chain into another one: the slot that steps aside is carried
 * twice. */
static void test_lines_of_a_ring_and_a_chain(void **state)
{
    (void)state;
    struct job j;
    struct lines l;
    int32_t lost;
    job_open(&j, "6x6", "2D(1,1)", "0D");
    assert_true(lines_init(&l, &j.place));
    assert_int_equal(place_fail(&j.place, 0, &lost), PLACE_MOVED);
    int32_t to[30], mark[30];
    memcpy(to, j.place.node_of, sizeof to);
    to[6] = 8;
    to[7] = 7;
    to[0] = 1;
    to[1] = 11;
    place_arrange_init(&j.place, mark);
    assert_true(place_arrange(&j.place, NULL, 30, to, mark, &j.plan));
    lines_of_plan(&l, &j.plan);
    assert_int_equal(l.count, 5);
    int64_t bytes[30] = {[0] = 1, [1] = 2, [6] = 30, [7] = 30};
    struct lines_cost c = lines_cost(&l, bytes);
    assert_true(c.bytes == 93);
    assert_true(c.pipelined == 60);
    for (int32_t k = 0; k < l.lines; k++)
        for (int32_t i = l.first[k] + 1; i < l.first[k + 1]; i++)
            assert_int_equal(l.move[i].to, l.move[i - 1].from);
    lines_fini(&l);
    job_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_a_plane_are_its_rows),
        cmocka_unit_test(test_lines_of_a_ring_and_a_chain),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
