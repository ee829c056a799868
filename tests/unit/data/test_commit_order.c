/* In which order an agent does what a commit asks of it (runtime/agent/recover_commit.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/agent/recover_int.h"

static int place(const char *name)
{
    int found = -1;
    for (int i = 0; i < commit_steps_n; i++)
        if (strcmp(commit_steps[i].name, name) == 0) {
            assert_int_equal(found, -1); /* once */
            found = i;
        }
    if (found < 0)
        print_error("no step is called %s\n", name);
    assert_true(found >= 0);
    return found;
}

static void test_commit_steps_stand_in_the_order_that_the_protocol_needs(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } order[] = {
        {"hand_in", "fence"},
        {"fence", "apply"},
        {"fence", "date_doubts"},
        {"keep_old", "apply"},
        {"apply", "date_doubts"},
        {"date_doubts", "repairs"},
        {"apply", "segments"},
        {"segments", "show"},
        {"segments", "take_held"},
        {"apply", "drop_old_writes"},
        {"drop_old_writes", "thaw"},
        {"apply", "date_streams"},
        {"date_streams", "meet"},
        {"date_streams", "forwards"},
        {"bear", "meet"},
        {"meet", "forwards"},
        {"meet", "thaw"},
        {"forwards", "thaw"},
        {"forwards", "take_held"},
        {"strong_gets", "thaw"},
        {"repairs", "thaw"},
        {"repairs", "take_held"},
        {"joins", "show"},
        {"show", "thaw"},
        {"show", "let_enter"},
        {"show", "processes"},
        {"show", "wake"},
        {"thaw", "take_held"},
        {"take_held", "answer_segments"},
        {"let_enter", "say_changes"},
        {"apply", "stakes"},
        {"segments", "stakes"},
        {"say_changes", "say_copysets"},
        {"say_copysets", "say_redundancy"},
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (place(order[i].before) >= place(order[i].after))
            print_error("%s comes after %s\n", order[i].before, order[i].after);
        assert_true(place(order[i].before) < place(order[i].after));
    }
}

/* Each step names a reason, and no step is left out of the order above by having another name. */
static void test_commit_steps_have_a_function_and_a_reason(void **state)
{
    (void)state;
    for (int i = 0; i < commit_steps_n; i++) {
        assert_non_null(commit_steps[i].run);
        assert_true(strlen(commit_steps[i].why) > 0);
        assert_int_equal(place(commit_steps[i].name), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commit_steps_stand_in_the_order_that_the_protocol_needs),
        cmocka_unit_test(test_commit_steps_have_a_function_and_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
