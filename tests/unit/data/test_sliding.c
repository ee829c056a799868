/* Agents release the ranks that the plan of the view sends elsewhere: when, and what becomes of it by later views. Four
 * nodes in a row, the last one a spare: when node 1 dies, slot 1 begins on node 2, whose slot goes on to node 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agents.h"
#include "runtime/agent/ranks.h"
#include "runtime/view/plan.h"
#include "runtime/wire/marks.h"

enum { RANK = 2, AT = 2, TARGET = 3, DIES = 1 };

static struct intent_page page;

static struct agent *agent(void)
{
    return &w.node[AT].agent;
}

static struct proc *begin(uint32_t incarnation)
{
    struct control_welcome welcome;
    struct proc *proc = ranks_started(agent(), 1 + (int)incarnation);
    memset(&page, 0, sizeof page);
    assert_non_null(ranks_conn(agent(), proc));
    ranks_welcome(agent(), proc, life_of(RANK, incarnation), NULL, &page, &welcome);
    return proc;
}

static int set_up(void **state)
{
    static struct grid_rule rule;
    memset(&rule, 0, sizeof rule);
    assert_null(grid_parse(&rule.grid, "4"));
    assert_null(spare_parse(&rule.layout, "1D(1,1)"));
    assert_null(place_method_parse(&rule.method, "1D", rule.grid.ndims));
    world_open(3, 1, VIEW_SUBSTITUTE);
    for (int node = 0; node < 4; node++)
        assert_true(view_place(&w.node[node].agent.view, &rule));
    *state = begin(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    while (agent()->ranks.procs)
        ranks_free(agent(), agent()->ranks.procs);
    world_close();
    return 0;
}

static void slide(void)
{
    world_kill_node(DIES);
    world_restore();
}

static const struct view_rank *rank_in_view(void)
{
    return &w.node[0].agent.view.rank[RANK];
}

static void test_sliding_rank_goes_when_the_view_is_settled_and_not_before(void **state)
{
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = DIES};
    world_turn();
    assert_null(w.node[AT].released);
    w.node[DIES].still = true;
    world_prepare(&e, 1);
    world_pump();
    world_commit(AT, &e, 1);
    world_turn_of(AT);
    assert_int_equal(agent()->view.rank[DIES].node, AT); /* who was lost has begun, beside who is to go */
    assert_null(w.node[AT].released);
    world_commit(0, &e, 1);
    world_commit(TARGET, &e, 1);
    for (int node = 0; node < 4; node++)
        world_settle(node);
    world_pump();
    world_restore(); /* copies are filled on its target, too */
    assert_ptr_equal(w.node[AT].released, *state);
    assert_int_equal(page.released, RELEASE_ASKED);
}

static void test_sliding_rank_that_has_ended_begins_on_the_target(void **state)
{
    slide();
    page.released = RELEASE_ACCEPTED;
    page.moved = MOVED_COMPLETE;
    ranks_moved(agent(), *state);
    const struct view_event *e = &w.submitted[w.submissions - 1];
    assert_true(e->type == VIEW_RANK_MOVED && e->c == TARGET && view_moved_complete(e->d));
    world_restore();
    assert_true(rank_in_view()->node == TARGET && rank_in_view()->death.times == 0);
    assert_true(life_equal(w.node[TARGET].assigned, life_of(RANK, 1)));
    assert_int_equal(view_slot_node(&w.node[0].agent.view, RANK), TARGET);
    assert_null(ranks_find(agent(), 1));
}

/* The copy that is being filled on the target is to be whole first. */
static void test_sliding_rank_waits_for_its_data(void **state)
{
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = DIES};
    w.node[DIES].still = true;
    world_prepare(&e, 1);
    world_pump();
    for (int node = 0; node < 4; node++)
        if (node != DIES)
            world_commit(node, &e, 1);
    for (unsigned class = 1; class < CLASSES; class ++) {
        struct view_copyset *g = &agent()->view.copyset[copyset_of(RANK, class)];
        int at = view_copy_at(g, TARGET);
        assert_true(at > 0 && !g->copy[at].whole);
        assert_false(view_slot_ready(&agent()->view, RANK));
        world_settle(AT);
        world_turn_of(AT);
        assert_null(w.node[AT].released);
        g->copy[at].whole = true;
    }
    assert_true(view_slot_ready(&agent()->view, RANK));
    world_settle(AT);
    world_turn_of(AT);
    assert_ptr_equal(w.node[AT].released, *state);
}

/* Nobody is there to go to: as if it had not been asked. */
static void test_sliding_rank_whose_target_dies_stays(void **state)
{
    const struct proc *proc = *state;
    slide();
    assert_true(proc->released);
    world_kill_node(TARGET);
    world_restore();
    assert_int_equal(w.node[AT].stays, 1);
    assert_int_equal(page.released, RELEASE_NONE);
    assert_false(proc->released);
    assert_int_equal(rank_in_view()->incarnation, 0);
}

/* It has said that it goes: its process ends, and begins again where it was. No failure. */
static void test_sliding_rank_that_has_accepted_begins_again_where_it_was(void **state)
{
    slide();
    page.released = RELEASE_ACCEPTED;
    world_kill_node(TARGET);
    world_restore();
    assert_int_equal(w.node[AT].stays, 0);
    page.moved = MOVED_COMPLETE;
    ranks_moved(agent(), *state);
    assert_int_equal(w.submitted[w.submissions - 1].c, AT);
    world_restore();
    assert_true(rank_in_view()->node == AT && rank_in_view()->incarnation == 1);
    assert_int_equal(rank_in_view()->death.times, 0);
    assert_int_equal(rank_in_view()->restarts, 0);
}

/* Its owner has ended it before it heard that it stays. */
static void test_sliding_rank_that_was_ended_though_it_stays_begins_again(void **state)
{
    slide();
    world_kill_node(TARGET);
    world_restore();
    assert_int_equal(w.node[AT].stays, 1);
    ranks_moved(agent(), *state);
    const struct view_event *e = &w.submitted[w.submissions - 1];
    assert_true(e->type == VIEW_RANK_MOVED && e->c == AT && !view_moved_complete(e->d));
    world_restore();
    assert_true(rank_in_view()->node == AT && rank_in_view()->incarnation == 1);
    assert_int_equal(rank_in_view()->restarts, 0);
}

/* A process begins on a node that its rank is to leave, after the view was settled: it goes on. */
static void test_sliding_process_that_begins_late_goes_on(void **state)
{
    ranks_free(agent(), *state);
    slide();
    assert_null(w.node[AT].released);
    struct proc *proc = begin(0);
    world_turn_of(AT);
    assert_ptr_equal(w.node[AT].released, proc);
}

/* Behind a collective that none of them has completed: who has would wait for the next process of who goes there. */
static void test_sliding_ranks_of_a_slot_go_at_the_same_collective(void **state)
{
    static struct intent_page other, last;
    static const int rank[] = {RANK, 0, 1};
    struct intent_page *const of[] = {&page, &other, &last};
    struct control_welcome welcome;
    ranks_free(agent(), *state);
    slide();
    for (int i = 0; i < 3; i++) {
        struct view_rank *k = &agent()->view.rank[rank[i]];
        struct proc *proc = ranks_started(agent(), 2 + i);
        memset(of[i], 0, sizeof page);
        k->slot = agent()->view.rank[RANK].slot;
        k->node = AT;
        assert_non_null(ranks_conn(agent(), proc));
        ranks_welcome(agent(), proc, life_of(rank[i], k->incarnation), NULL, of[i], &welcome);
        of[i]->collectives = (uint64_t[]){5, 6, 4}[i];
        if (i > 0) /* the last one begins when the others have been asked */
            world_turn_of(AT);
        agent()->ranks.slides_due = true;
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(of[i]->released, RELEASE_ASKED);
        assert_int_equal(of[i]->leave_at, 7);
        assert_int_equal(of[i]->asked_ns, agent()->now);
    }
}

/* Who was released by somebody who asked is not the plan's. */
static void test_sliding_release_that_somebody_asked_for_is_not_taken_back(void **state)
{
    (void)state;
    assert_true(ranks_release(agent(), life_of(RANK, 0), TARGET, 0));
    world_kill_node(TARGET);
    world_restore();
    assert_int_equal(w.node[AT].stays, 0);
    assert_int_equal(page.released, RELEASE_ASKED);
}

static uint8_t *part(int node, uint32_t seg)
{
    const struct store_copy *copy = store_copy(&w.node[node].agent.store, seg, RANK);
    return copy ? copy->base : NULL;
}

static void leave(struct proc *proc)
{
    page.released = RELEASE_ACCEPTED;
    page.moved = MOVED_COMPLETE;
    ranks_moved(agent(), proc);
}

/* What its process had stored plainly is there, too: nobody else would bring it to the other copies. */
static void test_sliding_data_are_where_the_rank_begins(void **state)
{
    slide();
    for (uint32_t seg = SEG_SHADOW; seg <= SEG_NONE; seg++) {
        const struct store_copy *copy = store_copy(&agent()->store, seg, RANK);
        copy->base[1000] = 7;
        if (seg != SEG_NONE) /* nothing tells of stores to what has no second copy */
            (void)holders_add(&holders_of(copy->base, copy->bytes)[0], 0);
    }
    assert_null(part(TARGET, SEG_NONE));
    leave(*state);
    world_restore();
    for (uint32_t seg = SEG_SHADOW; seg <= SEG_NONE; seg++) {
        const struct view_copyset *g = copyset_at(AT, seg, RANK);
        assert_true(is_direct(seg, RANK));
        assert_int_equal(g->copy[0].node, TARGET);
        assert_non_null(part(TARGET, seg));
        assert_int_equal(part(TARGET, seg)[1000], 7);
    }
    assert_null(part(AT, SEG_NONE));
    assert_true(copies_are_equal());
}

/* Who is in the old view still may be reading it. */
static void test_sliding_memory_that_was_left_is_there_until_the_view_is_settled(void **state)
{
    slide();
    uint8_t *left = part(AT, SEG_NONE);
    left[1000] = 7;
    leave(*state);
    bool handed_over = false;
    while (w.submissions && !handed_over) {
        struct view_event e = w.submitted[0];
        memmove(&w.submitted[0], &w.submitted[1], sizeof e * (size_t)--w.submissions);
        handed_over = e.type == VIEW_RESTORED && (int)e.a == copyset_of(RANK, 0) &&
                      view_slot_node(&agent()->view, RANK) == TARGET;
        if (!handed_over) {
            world_change(&e, 1);
            continue;
        }
        world_prepare(&e, 1);
        world_pump();
        for (int node = 0; node < 4; node++)
            if (node != DIES)
                world_commit(node, &e, 1);
    }
    assert_true(handed_over);
    world_pump();
    assert_null(part(AT, SEG_NONE));
    assert_int_equal(left[1000], 7);
    for (int node = 0; node < 4; node++)
        if (node != DIES)
            world_settle(node);
    world_pump();
    assert_int_equal(left[1000], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sliding_rank_goes_when_the_view_is_settled_and_not_before),
        TEST(test_sliding_rank_that_has_ended_begins_on_the_target),
        TEST(test_sliding_rank_waits_for_its_data),
        TEST(test_sliding_rank_whose_target_dies_stays),
        TEST(test_sliding_rank_that_has_accepted_begins_again_where_it_was),
        TEST(test_sliding_rank_that_was_ended_though_it_stays_begins_again),
        TEST(test_sliding_process_that_begins_late_goes_on),
        TEST(test_sliding_ranks_of_a_slot_go_at_the_same_collective),
        TEST(test_sliding_release_that_somebody_asked_for_is_not_taken_back),
        TEST(test_sliding_data_are_where_the_rank_begins),
        TEST(test_sliding_memory_that_was_left_is_there_until_the_view_is_settled),
    };
    return cmocka_run_group_tests_name("sliding", tests, NULL, NULL);
}
