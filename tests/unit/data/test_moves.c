/* A rank ends on one node so that it goes on another one: what its agent does, what views come of it, and where in a
 * program it happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agents.h"
#include "runtime/agent/ranks.h"
#include "runtime/client/job/failure.h"
#include "runtime/client/move.h"
#include "runtime/wire/leave.h"

enum { ORDER = 5 };

static struct intent_page page;

/* The process that runs rank 0, on node 0. */
static struct proc *begin(void)
{
    return world_process(&w.node[0].agent, life_of(0, 0), &page);
}

static int set_up(void **state)
{
    world_open(4, 1, VIEW_SUBSTITUTE);
    *state = begin();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct proc *proc = ranks_find(&w.node[0].agent, 1);
    if (proc)
        ranks_free(&w.node[0].agent, proc);
    world_close();
    return 0;
}

static bool release(int to)
{
    return ranks_release(&w.node[0].agent, life_of(0, 0), to, ORDER);
}

static void assert_view(int node, uint32_t incarnation, int deaths)
{
    for (int i = 0; i < 4; i++) {
        const struct view_rank *k = &w.node[i].agent.view.rank[0];
        assert_int_equal(k->state, RANK_RUNNING);
        assert_int_equal(k->node, node);
        assert_int_equal(k->incarnation, incarnation);
        assert_int_equal(k->death.times, deaths);
        assert_int_equal(k->restarts, deaths);
    }
}

static void test_moves_released_rank_begins_on_its_target_and_no_copy_is_made_equal(void **state)
{
    uint64_t before = copyset_at(1, SEG_TRIPLE, 2)->generation;
    assert_true(release(3));
    assert_ptr_equal(w.node[0].released, *state);
    assert_int_equal(page.released, RELEASE_ASKED);
    assert_int_equal(w.submissions, 0); /* its process lives */
    page.moved = MOVED_COMPLETE;
    ranks_moved(&w.node[0].agent, *state);
    assert_int_equal(w.submissions, 1);
    const struct view_event *e = &w.submitted[0];
    assert_true(e->type == VIEW_RANK_MOVED && e->a == 0 && e->b == 0 && e->c == 3);
    assert_true(view_moved_complete(e->d) && view_moved_order(e->d) == ORDER);
    world_restore();
    assert_view(3, 1, 0);
    assert_null(ranks_find(&w.node[0].agent, 1));
    assert_true(life_equal(w.node[3].assigned, life_of(0, 1))); /* beside its own one */
    assert_int_equal(w.node[3].assigns, 1);
    assert_int_equal(w.node[0].assigns + w.node[1].assigns + w.node[2].assigns, 0);
    assert_int_equal(copyset_at(1, SEG_TRIPLE, 2)->generation, before);
    assert_int_equal(w.node[1].failures, 0);
}

/* It was ended wherever it was: what it was storing is made equal. */
static void test_moves_rank_that_did_not_end_by_itself_leaves_doubts(void **state)
{
    assert_true(release(3));
    page.entry[5] = (struct intent){.active = 1, .seg = SEG_SHADOW, .slot = 0, .offset = 100, .len = 1000};
    memset(bytes_at(0, SEG_SHADOW, 0) + 100, 0xee, 500);
    ranks_moved(&w.node[0].agent, *state);
    assert_false(view_moved_complete(w.submitted[0].d));
    world_restore();
    assert_view(3, 1, 0);
    assert_true(copies_are_equal());
}

static void test_moves_rank_with_open_puts_is_not_complete_whatever_it_says(void **state)
{
    assert_true(release(3));
    page.moved = MOVED_COMPLETE;
    page.open = 1;
    ranks_moved(&w.node[0].agent, *state);
    assert_false(view_moved_complete(w.submitted[0].d));
    world_restore();
    assert_view(3, 1, 0);
}

/* The program was told that it is to go, and ends by that when it is to stay again. */
static void test_moves_rank_that_ends_as_it_was_to_stay_begins_again_there(void **state)
{
    struct client c = {.intents = &page, .told_to_move = true};
    assert_true(move_ends_process(&c));
    assert_int_equal(page.released, RELEASE_ACCEPTED);
    page.moved = MOVED_COMPLETE;
    ranks_moved(&w.node[0].agent, *state);
    world_restore();
    assert_view(0, 1, 0);
    assert_int_equal(w.node[0].assigns, 1);
}

/* Who has accepted by itself goes where it is sent next, and is not asked again. */
static void test_moves_rank_that_ends_as_it_was_to_stay_may_be_sent_on(void **state)
{
    page.released = RELEASE_ACCEPTED;
    assert_true(release(3));
    assert_int_equal(page.released, RELEASE_ACCEPTED);
    page.moved = MOVED_COMPLETE;
    ranks_moved(&w.node[0].agent, *state);
    world_restore();
    assert_view(3, 1, 0);
}

/* Its program has come to its end: nobody asks it to go, takes anything back, or ends it. */
static void test_moves_rank_that_has_left_goes_nowhere(void **state)
{
    struct client c = {.intents = &page};
    struct proc *proc = *state;
    assert_true(release(3));
    assert_false(move_ends_process(&c));
    assert_int_equal(page.released, RELEASE_LEFT);
    assert_false(ranks_overdue(&w.node[0].agent, proc));
    ranks_control(&w.node[0].agent, proc, &(struct control){.type = CONTROL_LEAVING});
    assert_int_equal(w.node[0].stays, 1);
    assert_false(proc->released);
    assert_false(release(3)); /* no view says yet that it has left */
    assert_false(ranks_overdue(&w.node[0].agent, proc));
    assert_int_equal(page.released, RELEASE_LEFT);
}

/* And the other way round: what is ended for it does not leave. */
static void test_moves_rank_that_is_overdue_is_ended_or_has_left(void **state)
{
    struct client c = {.intents = &page};
    assert_false(ranks_overdue(&w.node[0].agent, *state));
    assert_true(release(3));
    assert_true(ranks_overdue(&w.node[0].agent, *state));
    assert_int_equal(page.released, RELEASE_ENDED);
    assert_true(move_ends_process(&c));
    assert_int_equal(page.released, RELEASE_ENDED);
    page.released = RELEASE_ACCEPTED; /* it hangs on its way out */
    assert_true(ranks_overdue(&w.node[0].agent, *state));
    move_is_out(&c);
    assert_int_equal(page.released, RELEASE_ENDED);
}

/* Its program was told, has called keel_finalize, and writes what it has computed. */
static void test_moves_rank_that_is_out_is_not_ended(void **state)
{
    struct client c = {.intents = &page, .told_to_move = true};
    assert_true(release(3));
    assert_true(move_ends_process(&c));
    assert_int_equal(page.released, RELEASE_ACCEPTED);
    move_is_out(&c);
    assert_false(ranks_overdue(&w.node[0].agent, *state));
    assert_int_equal(page.released, RELEASE_OUT);
    assert_true(move_ends_process(&c));
    assert_int_equal(page.released, RELEASE_OUT);
}

static int told_that_it_still_ends(void)
{
    int n = 0;
    for (const char *at = w.node[0].said; (at = strstr(at, "still_ends ")); at++)
        n++;
    return n;
}

/* Said once, of who has called keel_finalize and does not end; not of who computes. */
static void test_moves_rank_that_is_out_and_does_not_end_is_told_of_once(void **state)
{
    struct client c = {.intents = &page, .told_to_move = true};
    struct agent *a = &w.node[0].agent;
    ranks_lingers(a, *state);
    assert_true(release(3));
    ranks_lingers(a, *state);
    assert_true(move_ends_process(&c));
    ranks_lingers(a, *state);
    assert_int_equal(told_that_it_still_ends(), 0);
    move_is_out(&c);
    for (int i = 0; i < 2; i++)
        ranks_lingers(a, *state);
    assert_false(ranks_overdue(a, *state));
    assert_int_equal(told_that_it_still_ends(), 1);
}

/* Its own end, and where it was. */
static void test_moves_released_rank_that_dies_has_died(void **state)
{
    assert_true(release(3));
    ranks_exited(&w.node[0].agent, *state, 0, 11);
    assert_int_equal(w.submitted[0].type, VIEW_RANK_DEAD);
    world_restore();
    assert_view(0, 1, 1);
}

static void test_moves_target_that_dies_meanwhile_is_not_waited_for(void **state)
{
    assert_true(release(3));
    world_kill_node(3);
    page.moved = MOVED_COMPLETE;
    ranks_moved(&w.node[0].agent, *state);
    world_restore();
    const struct view_rank *k = &w.node[1].agent.view.rank[0];
    assert_true(k->node == 0 && k->incarnation == 1 && k->death.times == 0);
    assert_int_equal(w.node[0].assigned.rank, 0);
    assert_int_equal(w.node[0].assigns, 1);
}

static void test_moves_only_who_can_move_is_released(void **state)
{
    (void)state;
    struct agent *a = &w.node[0].agent;
    assert_false(ranks_release(a, life_of(0, 1), 3, ORDER)); /* not that life */
    assert_false(ranks_release(a, life_of(1, 0), 3, ORDER)); /* not here */
    assert_false(ranks_release(a, life_of(9, 0), 3, ORDER) || ranks_release(a, life_of(-1, 0), 3, ORDER));
    assert_false(release(0)); /* it is there */
    assert_false(release(5) || release(-1));
    world_kill_node(3);
    assert_false(release(3));
    assert_true(release(2));
    assert_false(release(1)); /* it is on its way */
}

static void test_moves_where_nobody_begins_again_nobody_is_released(void **state)
{
    (void)state;
    struct view_event needs = {.type = VIEW_NEEDS, .a = NEEDS_ALL}, left = {.type = VIEW_RANK_LEFT};
    world_change(&left, 1);
    assert_false(release(3));
    world_change(&needs, 1);
    assert_false(release(3));
    assert_null(w.node[0].released);
}

/* What of it is still on its way never arrives, whether it was complete or not. */
static void test_moves_life_that_has_moved_is_refused(void **state)
{
    assert_true(release(3));
    page.moved = MOVED_COMPLETE;
    ranks_moved(&w.node[0].agent, *state);
    world_restore();
    struct wire w1 = rank_wire(&w.rank[0], WIRE_GET, SEG_SHADOW, 1, 0);
    w1.raw.count = 8;
    assert_int_equal(rank_ask(&w.rank[0], 1, w1, NULL), -1000);
    assert_int_equal(w.node[1].agent.fences.rank[0], 1);
}

/* ---- points of a program ---- */

static int told;

static void e_moves(void *user)
{
    (void)user;
    told++;
}

static uint64_t e_clock;

static uint64_t e_now(void *user)
{
    (void)user;
    return e_clock;
}

static void test_moves_points_count_once_it_was_released(void **state)
{
    (void)state;
    struct client c = {.intents = &page, .env.now = e_now};
    move_point(&c);
    assert_int_equal(page.move_points, 0);
    page.released = RELEASE_ASKED;
    move_point(&c); /* the program goes on */
    assert_int_equal(page.move_points, 1);
    c.env.moves = e_moves;
    c.ready = CLIENT_DIRECT;
    c.resumed = true;
    move_point(&c);
    assert_int_equal(page.move_points, 2);
    assert_int_equal(told, 1);
}

/* Only this process can go on with what is open; and a program that chooses is not surprised. */
static void test_moves_points_are_passed_by_while_something_is_open(void **state)
{
    (void)state;
    struct letter_in *letter = (struct letter_in *)&told;
    struct client c = {.intents = &page, .env.now = e_now, .env.moves = e_moves};
    told = 0;
    page.released = RELEASE_ASKED;
    move_point(&c); /* not resumed */
    c.ready = CLIENT_DIRECT;
    c.resumed = true;
    c.task_run.open = true;
    move_point(&c);
    c.task_run.open = false;
    c.coll.split = true;
    move_point(&c);
    c.coll.split = false;
    c.mutexes_taken = 1;
    move_point(&c);
    c.mutexes_taken = 0;
    c.mail.head = letter;
    move_point(&c);
    c.mail.head = NULL;
    c.ops.errors.of_any = KEEL_ERR_TIMEOUT;
    move_point(&c);
    c.ops.errors.of_any = KEEL_OK;
    c.chooses_to_move = true;
    move_point(&c);
    c.chooses_to_move = false;
    assert_int_equal(told, 0);
    move_point(&c);
    assert_int_equal(told, 1);
}

/* The others of its slot go there, too, and their parts behind the last of them. */
static void test_moves_points_before_the_common_collective_are_passed_by(void **state)
{
    (void)state;
    struct client c = {.intents = &page, .env = {.now = e_now, .moves = e_moves}};
    c.ready = CLIENT_DIRECT;
    c.resumed = true;
    told = 0;
    e_clock = 5000000000;
    page.released = RELEASE_ASKED;
    page.leave_at = 3;
    page.asked_ns = e_clock;
    page.collectives = 2;
    e_clock += LEAVE_TOGETHER_NS - 1;
    move_point(&c);
    assert_true(told == 0 && page.move_points == 0 && !move_is_due(&c));
    page.collectives = 3;
    move_point(&c);
    assert_true(told == 1 && page.move_points == 1 && move_is_due(&c));
    page.collectives = 2;
    e_clock++; /* no collective comes */
    move_point(&c);
    assert_int_equal(told, 2);
}

/* Whoever has completed it has looked, and gone on. */
static void test_moves_common_collective_is_one_that_nobody_has_completed(void **state)
{
    (void)state;
    uint64_t at = 0;
    for (int i = 0; i < 3; i++)
        at = leave_at(at, (uint64_t[]){6, 7, 5}[i]);
    assert_int_equal(at, 8);
    assert_int_equal(leave_at(9, 7), 9); /* one was asked before */
}

static void test_moves_nobody_goes_whose_release_was_taken_back(void **state)
{
    (void)state;
    struct client c = {.intents = &page};
    assert_false(move_go(&c));
    assert_int_equal(page.released, RELEASE_NONE);
    page.released = RELEASE_ACCEPTED; /* another thread has */
    assert_false(move_go(&c));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_moves_released_rank_begins_on_its_target_and_no_copy_is_made_equal),
        TEST(test_moves_rank_that_did_not_end_by_itself_leaves_doubts),
        TEST(test_moves_rank_with_open_puts_is_not_complete_whatever_it_says),
        TEST(test_moves_rank_that_ends_as_it_was_to_stay_begins_again_there),
        TEST(test_moves_rank_that_ends_as_it_was_to_stay_may_be_sent_on),
        TEST(test_moves_rank_that_has_left_goes_nowhere),
        TEST(test_moves_rank_that_is_overdue_is_ended_or_has_left),
        TEST(test_moves_rank_that_is_out_is_not_ended),
        TEST(test_moves_rank_that_is_out_and_does_not_end_is_told_of_once),
        TEST(test_moves_released_rank_that_dies_has_died),
        TEST(test_moves_target_that_dies_meanwhile_is_not_waited_for),
        TEST(test_moves_only_who_can_move_is_released),
        TEST(test_moves_where_nobody_begins_again_nobody_is_released),
        TEST(test_moves_life_that_has_moved_is_refused),
        TEST(test_moves_points_count_once_it_was_released),
        TEST(test_moves_points_are_passed_by_while_something_is_open),
        TEST(test_moves_points_before_the_common_collective_are_passed_by),
        TEST(test_moves_common_collective_is_one_that_nobody_has_completed),
        TEST(test_moves_nobody_goes_whose_release_was_taken_back),
    };
    return cmocka_run_group_tests_name("moves", tests, NULL, NULL);
}
