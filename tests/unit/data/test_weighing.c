/* What the speaker says of the program, to the method auto. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agents.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/weighing.h"
#include "runtime/view/plan.h"

#define SECOND_NS UINT64_C(1000000000)

static struct intent_page page;

static struct agent *speaker(void)
{
    return &w.node[0].agent;
}

static const struct weigh_figures *figures(void)
{
    return &plan_auto(&speaker()->view)->weigh.figures;
}

/* Another process is rank 0, and has said nothing yet. */
static void begin(uint32_t incarnation)
{
    struct control_welcome welcome;
    while (speaker()->ranks.procs)
        ranks_free(speaker(), speaker()->ranks.procs);
    struct proc *proc = ranks_started(speaker(), 1 + (int)incarnation);
    memset(&page, 0, sizeof page);
    assert_non_null(ranks_conn(speaker(), proc));
    ranks_welcome(speaker(), proc, life_of(0, incarnation), NULL, &page, &welcome);
}

static int set_up(void **state)
{
    static struct grid_rule rule;
    static const struct grid_choice said = {.grid = "4", .spares = "1D(1,1)", .method = "auto"};
    (void)state;
    assert_null(rule_read(&rule, &said));
    world_open(3, 1, VIEW_SUBSTITUTE);
    for (int node = 0; node < 4; node++)
        assert_true(view_place(&w.node[node].agent.view, &rule));
    begin(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    while (speaker()->ranks.procs)
        ranks_free(speaker(), speaker()->ranks.procs);
    world_close();
    return 0;
}

/* A look; what is said of the program counts. False: nothing was. */
static bool look(void)
{
    int before = w.submissions;
    bool said = false;
    speaker()->now += SECOND_NS;
    weighing_step(speaker());
    for (int i = before; i < w.submissions; i++) {
        const struct view_event *e = &w.submitted[i];
        if (e->type != VIEW_FIGURE)
            continue;
        said |= e->a == FIGURE_PATTERN;
        plan_figure(&speaker()->view, e);
    }
    return said;
}

static void declare(enum note_pattern pattern, uint64_t bytes)
{
    page.pattern_bytes = bytes;
    page.pattern = pattern;
}

static void test_weighing_what_was_declared_holds_until_the_next_process_declares(void **state)
{
    (void)state;
    assert_false(look());
    declare(PATTERN_BESIDE, 800);
    assert_true(look());
    assert_true(figures()->shape == WEIGH_STAR && figures()->declared && figures()->message_bytes == 800);
    begin(1);
    assert_false(look());
    assert_true(figures()->shape == WEIGH_STAR && figures()->declared && figures()->message_bytes == 800);
    declare(PATTERN_AROUND, 8000);
    assert_true(look());
    assert_true(figures()->shape == WEIGH_BOX && figures()->declared && figures()->message_bytes == 8000);
}

static void test_weighing_what_is_withdrawn_holds_no_more(void **state)
{
    (void)state;
    declare(PATTERN_BESIDE, 800);
    assert_true(look());
    declare(PATTERN_WITHDRAWN, 0);
    assert_true(look());
    assert_true(figures()->shape == WEIGH_NOTHING && !figures()->declared);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_weighing_what_was_declared_holds_until_the_next_process_declares),
        TEST(test_weighing_what_is_withdrawn_holds_no_more),
    };
    return cmocka_run_group_tests_name("weighing", tests, NULL, NULL);
}
