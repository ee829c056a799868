/* What nodes say of a segment, taken together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/agent/said.h"

enum { NODES = 4, NONE = 0, SHADOW = 1 };

static struct view v;
static uint8_t silent[NODES];

/* A rank on each node; shadows are on the next one. */
static int open_view(void **state)
{
    (void)state;
    const int rank_node[NODES] = {0, 1, 2, 3};
    const struct copy_rule copies = {.at = COPIES_AT_NEXT};
    assert_true(view_init(&v, VIEW_DEGRADE, NODES, 0, 0, NODES, rank_node, &copies));
    said_silent(&v, silent);
    return 0;
}

static int close_view(void **state)
{
    (void)state;
    view_fini(&v);
    return 0;
}

static void apply(uint32_t type, uint32_t a)
{
    view_apply(&v, v.epoch + 1, &(struct view_event){.type = type, .a = a, .c = 9}, 1);
    said_silent(&v, silent);
}

static void test_said_by_all_is_the_worst_of_those_that_live(void **state)
{
    (void)state;
    keel_status said[NODES] = {KEEL_ERR_STATE, KEEL_OK, KEEL_IN_PROGRESS, KEEL_OK}; /* the first is our own */
    assert_int_equal(said_together(&v, 0, said, silent, SHADOW, SAID_BY_ALL), KEEL_IN_PROGRESS);
    said[3] = KEEL_ERR_NOMEM;
    assert_int_equal(said_together(&v, 0, said, silent, SHADOW, SAID_BY_ALL), KEEL_ERR_NOMEM);
    apply(VIEW_NODE_DEAD, 3);
    assert_int_equal(said_together(&v, 0, said, silent, SHADOW, SAID_BY_ALL), KEEL_IN_PROGRESS);
    apply(VIEW_NODE_DEAD, 2);
    assert_int_equal(said_together(&v, 0, said, silent, SHADOW, SAID_BY_ALL), KEEL_OK);
}

/* A node that has ranks is waited for by nobody who asks at once: its ranks would say so themselves. */
static void test_said_by_silent_is_that_of_nodes_without_ranks(void **state)
{
    (void)state;
    keel_status said[NODES] = {KEEL_OK, KEEL_ERR_NOMEM, KEEL_IN_PROGRESS, KEEL_IN_PROGRESS};
    assert_int_equal(said_together(&v, 0, said, silent, SHADOW, SAID_BY_SILENT), KEEL_OK);
    apply(VIEW_RANK_DEAD, 2);
    assert_int_equal(said_together(&v, 0, said, silent, SHADOW, SAID_BY_SILENT), KEEL_IN_PROGRESS);
    apply(VIEW_RANK_DEAD, 1);
    assert_int_equal(said_together(&v, 0, said, silent, SHADOW, SAID_BY_SILENT), KEEL_ERR_NOMEM);
    assert_int_equal(said_together(&v, 0, said, silent, NONE, SAID_BY_SILENT), KEEL_ERR_NOMEM);
}

static void test_said_silent_are_those_with_copies_of_the_class(void **state)
{
    (void)state;
    for (int node = 0; node < NODES; node++)
        assert_int_equal(silent[node], 0);
    apply(VIEW_RANK_DEAD, 1);
    assert_int_equal(silent[1], 7);
    assert_int_equal(silent[0] | silent[2] | silent[3], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_said_by_all_is_the_worst_of_those_that_live, open_view, close_view),
        cmocka_unit_test_setup_teardown(test_said_by_silent_is_that_of_nodes_without_ranks, open_view, close_view),
        cmocka_unit_test_setup_teardown(test_said_silent_are_those_with_copies_of_the_class, open_view, close_view),
    };
    return cmocka_run_group_tests_name("said", tests, NULL, NULL);
}
