/* What ranks send to a rank whose process is not there yet, at the agent of its node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agents.h"
#include "memory.h"
#include "runtime/agent/ranks.h"
#include "runtime/wire/parcel.h"

static struct intent_page intents;

static int set_up(void **state)
{
    (void)state;
    world_open(3, 0, VIEW_SUBSTITUTE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        for (struct proc *p = w.node[i].agent.ranks.procs; p; p = p->next)
            p->conn->ep = NULL; /* another one's, which closes it */
    world_close();
    return 0;
}

static void send_parcel(int from, int to, uint32_t incarnation, int node, char text)
{
    struct wire p = rank_wire(&w.rank[from], WIRE_PARCEL, 0, 0, 0);
    p.raw.a = parcel_to(life_of(to, incarnation));
    p.len = 1;
    rank_send(&w.rank[from], node, p, &text);
}

/* The process of the rank, which gets its messages where the rank of this test has its connection. */
static void begin(int rank, uint32_t incarnation)
{
    static struct control_welcome welcome;
    struct agent *a = &w.node[rank].agent;
    struct proc *proc = ranks_started(a, 10 + (int)incarnation);
    struct tp_ep *ep = a->ranks.conn[rank]->ep;
    assert_non_null(ranks_conn(a, proc));
    ranks_welcome(a, proc, life_of(rank, incarnation), ep, &intents, &welcome);
}

static void expect_parcel(int rank, int replies, int from, char text)
{
    const struct rank *r = &w.rank[rank];
    assert_int_equal(r->replies, replies);
    assert_int_equal(r->reply.type, WIRE_PARCEL);
    assert_int_equal(r->reply.raw.rank, from);
    assert_int_equal(r->body[0], text);
}

static void expect_back(int from, int replies)
{
    assert_int_equal(w.rank[from].replies, replies);
    assert_int_equal(w.rank[from].reply.type, WIRE_PARCEL_BACK);
}

/* Who has sent may make no further call: nobody would send it again. */
static void test_parcels_for_a_process_that_has_not_begun_wait_for_it(void **state)
{
    (void)state;
    send_parcel(0, 1, 0, 1, 'a');
    send_parcel(2, 1, 0, 1, 'b');
    world_pump();
    send_parcel(0, 1, 0, 1, 'c');
    world_pump();
    assert_int_equal(w.rank[0].replies, 0);
    assert_int_equal(w.rank[2].replies, 0);
    assert_int_equal(w.rank[1].replies, 0);
    begin(1, 0);
    world_pump();
    expect_parcel(1, 3, 0, 'c'); /* in the order in which they came */
    send_parcel(2, 1, 0, 1, 'd');
    world_pump();
    expect_parcel(1, 4, 2, 'd');
}

static void test_parcels_for_the_next_process_wait_for_it_and_for_the_view(void **state)
{
    (void)state;
    struct view_event dead = {.type = VIEW_RANK_DEAD, .a = 1, .c = 9};
    begin(1, 0);
    send_parcel(0, 1, 1, 1, 'a'); /* by a view that its agent has before this one */
    world_pump();
    assert_int_equal(w.rank[0].replies, 0);
    w.node[1].agent.ranks.procs->exited = true;
    w.node[1].agent.ranks.procs->conn->ep = NULL;
    world_change(&dead, 1);
    assert_int_equal(w.node[1].agent.view.rank[1].incarnation, 1);
    w.rank[1].incarnation = 1;
    rank_connect(&w.rank[1], 1);
    send_parcel(0, 1, 1, 1, 'b');
    send_parcel(2, 1, 0, 1, 'x'); /* for the one that died */
    world_pump();
    assert_int_equal(w.rank[0].replies, 0);
    expect_back(2, 1);
    begin(1, 1);
    world_pump();
    expect_parcel(1, 2, 0, 'b');
}

/* It would be refused: the receiver knows of no such life. */
static void test_parcels_of_the_next_process_wait_for_the_view(void **state)
{
    (void)state;
    struct view_event dead = {.type = VIEW_RANK_DEAD, .c = 9};
    begin(1, 0);
    w.rank[0].incarnation = 1;
    rank_connect(&w.rank[0], 1);
    send_parcel(0, 1, 0, 1, 'a');
    world_pump();
    assert_int_equal(w.rank[0].replies, 0);
    assert_int_equal(w.rank[1].replies, 0);
    world_change(&dead, 1);
    expect_parcel(1, 1, 0, 'a');
    assert_int_equal(w.rank[1].reply.raw.incarnation, 1);
}

static void test_parcels_for_who_does_not_come_are_dropped(void **state)
{
    (void)state;
    struct view_event done = {.type = VIEW_RANK_DONE, .a = 1};
    size_t before = memory_living();
    send_parcel(0, 1, 0, 1, 'a');
    world_pump();
    assert_true(memory_living() > before);
    world_change(&done, 1);
    assert_int_equal(w.rank[0].replies, 0);
    send_parcel(0, 1, 0, 1, 'b');
    send_parcel(0, 1, 1, 1, 'c'); /* none comes after one that ended by itself */
    send_parcel(0, 2, 0, 1, 'd'); /* that one is another node's */
    world_pump();
    expect_back(0, 3);
    assert_true(!w.node[1].agent.parcels.first);
}

static void test_parcels_without_memory_go_back(void **state)
{
    (void)state;
    send_parcel(0, 1, 0, 1, 'a');
    world_turn(); /* what the connections need themselves */
    send_parcel(0, 1, 0, 1, 'b');
    memory_fail_large(1, sizeof(struct stashed));
    world_pump();
    assert_true(memory_failed());
    expect_back(0, 1);
    begin(1, 0);
    world_pump();
    expect_parcel(1, 1, 0, 'a');
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_parcels_for_a_process_that_has_not_begun_wait_for_it),
        TEST(test_parcels_for_the_next_process_wait_for_it_and_for_the_view),
        TEST(test_parcels_of_the_next_process_wait_for_the_view),
        TEST(test_parcels_for_who_does_not_come_are_dropped),
        TEST(test_parcels_without_memory_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
