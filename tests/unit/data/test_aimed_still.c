/* A process that stands still in the middle of its plain stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aimed.h"
#include "runtime/agent/ranks.h"
#include "runtime/client/op/rma.h"
#include "tests/lib/net/mem.h"

enum {
    STILL_OFFSET = 96 * 1024 + 4,
    STILL_LEN = 200 * 1024,
    STILL_WORD = STILL_OFFSET + 100 * 1024 + 4,
    STILL_SUM = 128 * 1024
};
enum still_end { GOES_ON, DIES, ITS_NODE_DIES, THIRD_DIES_FIRST, THIRD_DIES_THEN_IT };
static const int64_t still_old = 0x1111111111111111, still_torn = 0x1111111177777777;

/* Rank 0 stores to the copy on its own node, the others have nothing of it yet. Its agent knows that from the page
 * of intents. */
static struct proc *stand_still(struct intent_page *page)
{
    static struct control_welcome welcome;
    struct proc *proc = ranks_started(&w.node[0].agent, 1);
    memset(page, 0, sizeof *page);
    assert_non_null(ranks_conn(&w.node[0].agent, proc));
    ranks_welcome(&w.node[0].agent, proc, life_of(0, 0), NULL, page, &welcome);
    for (int node = 0; node < 3; node++)
        memcpy(bytes_at(node, SEG_TRIPLE, 0) + STILL_WORD, &still_old, 8);
    memcpy(bytes_at(0, SEG_TRIPLE, 0) + STILL_WORD, &still_torn, 8);
    page->entry[3] =
        (struct intent){.active = 1, .seg = SEG_TRIPLE, .slot = 0, .offset = STILL_OFFSET, .len = STILL_LEN};
    return proc;
}

/* What others add within the range meanwhile, which is wider than what is torn: one to each word, so that no later one
 * brings back what is lost. */
static void add_while_filled(int *sum)
{
    struct wire add = rank_wire(&w.rank[3], WIRE_RMW, SEG_TRIPLE, 0, STILL_SUM + 8 * (uint64_t)*sum);
    add.raw.a = 1;
    add.raw.identity = (uint64_t)++ * sum;
    rank_send(&w.rank[3], 0, add, NULL);
}

static bool all_are_added(int node, int sum)
{
    for (int i = 0; i < sum; i++)
        if (word_at(node, SEG_TRIPLE, 0, STILL_SUM + 8 * (uint64_t)i) != 1)
            return false;
    return true;
}

static void stands_still(int copy, enum still_end end, int spares)
{
    static struct intent_page page;
    struct view_event dead = {.type = VIEW_NODE_DEAD, .a = (uint32_t)copy};
    int sum = 0, third = copy == 1 ? 2 : 1;
    struct proc *proc = stand_still(&page);
    w.node[copy].still = true;
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_commit(i, &dead, 1);
    add_while_filled(&sum); /* before all have the view, */
    world_turn();
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    add_while_filled(&sum); /* before the repair begins, and while it goes on: between any two steps of two agents */
    for (int i = 0; i < 12; i++)
        for (int node = 0; node < w.nodes + w.spares; node++) {
            world_turn_of(node);
            add_while_filled(&sum);
        }
    world_pump();
    world_restore();
    assert_true(all_are_added(0, sum));
    assert_true(word_at(0, SEG_TRIPLE, 0, STILL_WORD) == still_torn); /* the process may go on with its stores */
    if (end == THIRD_DIES_FIRST || end == THIRD_DIES_THEN_IT) {
        world_kill_node(third);
        world_restore();
    }
    if (end == GOES_ON) {
        int64_t value = 0x7777777777777777;
        for (int i = 0; i < w.nodes + w.spares; i++)
            if (view_copy_at(copyset_at(0, SEG_TRIPLE, 0), i) >= 0)
                memcpy(bytes_at(i, SEG_TRIPLE, 0) + STILL_WORD, &value, 8);
        atomic_store(&page.entry[3].active, 0);
    } else if (end == DIES || end == THIRD_DIES_THEN_IT) {
        ranks_exited(&w.node[0].agent, proc, 0, 9);
    } else {
        world_kill_node(0);
    }
    world_restore();
    int at =
        end == GOES_ON || end == DIES || end == THIRD_DIES_THEN_IT ? 0 : copyset_at(3, SEG_TRIPLE, 0)->copy[0].node;
    if (!copies_are_equal())
        fail_msg("copy %d, %d, %d spares: copies differ", copy, end, spares);
    int64_t word = word_at(at, SEG_TRIPLE, 0, STILL_WORD);
    if (word != still_old && (end != GOES_ON || word != 0x7777777777777777))
        fail_msg("copy %d, %d, %d spares: the word is %llx", copy, end, spares, (unsigned long long)word);
    assert_true(all_are_added(at, sum));
}

/* its node has the primary; another copy dies, and what takes its place is filled meanwhile: with whole words. */
static void test_aimed_process_standing_still_tears_no_copy_that_is_filled(void **state)
{
    for (int copy = 1; copy < 3; copy++)
        for (enum still_end end = GOES_ON; end <= THIRD_DIES_THEN_IT; end++)
            for (int spares = 0; spares < 2; spares++) {
                teardown(state);
                world_open(4, spares, spares ? VIEW_SUBSTITUTE : VIEW_DEGRADE);
                stands_still(copy, end, spares);
            }
}

/* The route changes when the others' bytes are on their way, before the copy here has any. */
static keel_status send_and_change(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                                   struct tp_op *op)
{
    static const struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 1};
    if (!w.node[1].still) {
        w.node[1].still = true;
        world_prepare(&dead, 1);
    }
    return tp_mem.send(ep, header, hlen, body, len, op);
}

/* who does not know yet that the route is gone stores nothing: others may be filled from that copy by now. */
static void test_aimed_route_that_is_gone_is_not_stored_under(void **state)
{
    (void)state;
    static keel_handle h;
    static const struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 1};
    struct tp_table table = tp_mem;
    int64_t one = 1, two = 2;
    table.send = send_and_change;
    client_open();
    assert_int_equal(rma_start(&c, OP_PUT, triple, 3, 64, &one, NULL, 8, &h), KEEL_OK);
    turns(20);
    assert_int_equal(h.opaque[0], 0);
    net->table = &table;
    assert_int_equal(rma_start(&c, OP_PUT, triple, 3, 64, &two, NULL, 8, &h), KEEL_OK);
    net->table = &tp_mem;
    assert_true(w.node[1].still);
    assert_int_equal(word_at(3, SEG_TRIPLE, 3, 64), 1);
    world_pump();
    for (int i = 0; i < w.nodes; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < w.nodes; i++)
        world_settle(i);
    turns(100);
    restore();
    turns(100);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(word_at(3, SEG_TRIPLE, 3, 64), 2);
    assert_true(copies_are_equal());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_process_standing_still_tears_no_copy_that_is_filled, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_aimed_route_that_is_gone_is_not_stored_under, setup, client_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
