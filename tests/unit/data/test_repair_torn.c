/* Copies that may be torn get whole bytes of another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "repair_steps.h"
#include "runtime/agent/ranks.h"

static void torn_primary_is_fetched(int rank)
{
    enum { LEN = 30000 };
    const struct view_event dead = death_of(rank);
    announce(writer, 0, SEG_SHADOW, 512, LEN, 1, 0, 1);
    world_pump();
    memset(bytes_at(0, SEG_SHADOW, 0) + 512, 0xee, LEN / 2); /* half of the remote write */
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < 4; i++)
        world_settle(i);
    w.node[1].still = true; /* where the whole bytes are */
    struct wire get = rank_wire(other, WIRE_GET, SEG_SHADOW, 0, 512);
    get.raw.count = 8;
    assert_int_equal(rank_ask(other, 0, get, NULL), -1000);
    w.now += KEEL_NS_PER_S;
    world_turn();
    assert_true(w.node[0].checked[1] > 0); /* so that it is known for whom it waits */
    assert_int_equal(w.node[0].checked[2] + w.node[0].checked[3], 0);
    w.node[1].still = false;
    world_pump();
    assert_int_equal(other->replies, 1);
    assert_int_equal(other->reply.raw.status, KEEL_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(other->body[i], 0);
    world_restore();
    for (int i = 0; i < LEN; i++)
        assert_int_equal(bytes_at(0, SEG_SHADOW, 0)[512 + i], 0);
    assert_true(copies_are_equal());
}

static void test_repair_torn_primary_is_fetched_before_anybody_reads_it(void **state)
{
    (void)state;
    torn_primary_is_fetched(3);
}

/* What its writer, who lives, has left there may not be repeated before it dies, too. */
static void test_repair_primary_torn_by_who_lives_is_fetched_before_anybody_reads_it(void **state)
{
    (void)state;
    torn_primary_is_fetched(2);
}

/* The primary's copy was announced to be torn under an older generation; the writer repeats its put, at the other copy
 * first, and dies in the middle of it. late: the announcement comes when that generation is over. */
static void older_announcement_calls_nothing_torn(bool late)
{
    struct wire old = rank_wire(writer, WIRE_INTENT, SEG_SHADOW, 0, 512);
    uint64_t torn = 0xeeee;
    old.raw.count = 4096;
    old.raw.identity = 1;
    old.raw.note = 2;
    if (!late) {
        rank_send(writer, 0, old, NULL);
        world_pump();
    }
    world_kill_rank(1);
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    for (int node = 0; node < 2; node++)
        if (!writer->ep[node])
            rank_connect(writer, node);
    if (late)
        rank_send(writer, 0, old, NULL);
    announce(writer, 1, SEG_SHADOW, 512, 4096, 1, 0, 1);
    world_pump();
    memcpy(bytes_at(1, SEG_SHADOW, 0) + 512, &torn, 4);
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 512), 0);
}

static void test_repair_what_was_made_equal_is_not_called_torn_any_more(void **state)
{
    (void)state;
    older_announcement_calls_nothing_torn(false);
}

static void test_repair_announcement_of_an_older_generation_calls_nothing_torn(void **state)
{
    (void)state;
    older_announcement_calls_nothing_torn(true);
}

static void test_repair_torn_shadow_gets_the_primarys_bytes(void **state)
{
    (void)state;
    announce(writer, 1, SEG_SHADOW, 512, 30000, 1, 0, 1);
    world_pump();
    memset(bytes_at(1, SEG_SHADOW, 0) + 512, 0xee, 20000);
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(bytes_at(1, SEG_SHADOW, 0)[512], 0);
}

/* The writer died while it wrote a chunk to the second copy, or to the third: the one before it has it whole. */
static void test_repair_copy_torn_last_gets_whole_bytes_of_one_before(void **state)
{
    (void)state;
    for (int i = 0; i < 18; i++) { /* which is first, which is torn, which of the others' nodes dies with the writer */
        int first = i % 3, torn = 1 + i / 3 % 2, dead = i / 6;
        struct view_event e[] = {{.type = VIEW_RANK_DEAD, .a = 3, .c = 9}, {.type = VIEW_NODE_DEAD}};
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        for (int level = 0; level <= torn; level++) {
            int node = (first + level) % 3;
            announce(writer, node, SEG_TRIPLE, 512, 30000, 77, (uint8_t)level, 1);
            memset(bytes_at(node, SEG_TRIPLE, 0) + 512, 0xee, level == torn ? 10000 : 30000);
        }
        world_pump();
        e[1].a = (uint32_t)((first + torn + dead) % 3);
        w.node[e[1].a].still = dead > 0;
        world_change(e, dead > 0 ? 2 : 1);
        world_restore();
        assert_true(copies_are_equal());
        const uint8_t *bytes = bytes_at((int)(e[1].a + 1) % 3, SEG_TRIPLE, 0) + 512;
        for (int at = 1; at < 30000; at++)
            assert_int_equal(bytes[at], bytes[0]);
    }
}

static void test_repair_announced_range_larger_than_the_window_is_repaired(void **state)
{
    (void)state;
    enum { LEN = SEG_BYTES - 512 };
    for (unsigned note = 1; note <= NOTES_MAX; note++)
        announce(writer, 0, SEG_SHADOW, 512, LEN, note, 0, (uint16_t)note);
    world_pump();
    memset(bytes_at(0, SEG_SHADOW, 0) + 512, 0xee, LEN);
    world_kill_rank(3);
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
    assert_int_equal(bytes_at(0, SEG_SHADOW, 0)[600], 0);
}

/* The copy on the writer's own node is written by plain stores: its page of intents says where. */
static void test_repair_intents_of_a_dead_rank_of_this_node_are_doubts(void **state)
{
    (void)state;
    static struct intent_page page;
    struct agent *a = &w.node[0].agent;
    struct proc *proc = world_process(a, life_of(0, 0), &page);
    page.entry[5] = (struct intent){.active = 1, .seg = SEG_SHADOW, .slot = 0, .offset = 100, .len = 1000};
    page.entry[6] = (struct intent){.active = 1, .seg = SEG_SHADOW, .slot = 60000, .offset = 100, .len = 1000};
    page.entry[7] = (struct intent){.active = 1, .seg = SEG_SHADOW, .slot = 0, .offset = UINT64_MAX, .len = UINT64_MAX};
    page.entry[8] = (struct intent){.active = 1, .seg = 99, .slot = 0, .offset = 0, .len = 8};
    page.entry[9] = (struct intent){.active = 0, .seg = SEG_SHADOW, .slot = 0, .offset = 5000, .len = 8};
    memset(bytes_at(0, SEG_SHADOW, 0) + 100, 0xee, 500); /* the stores that were made */
    memset(bytes_at(0, SEG_SHADOW, 0) + 5000, 0x11, 8);  /* complete: the other copy has it, too */
    memset(bytes_at(1, SEG_SHADOW, 0) + 5000, 0x11, 8);
    ranks_exited(a, proc, 0, 9);
    assert_int_equal(w.submissions, 1);
    assert_int_equal(w.submitted[0].type, VIEW_RANK_DEAD);
    world_restore(); /* commits it, and what follows */
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
    assert_int_equal(bytes_at(0, SEG_SHADOW, 0)[100], 0);
    assert_int_equal(bytes_at(0, SEG_SHADOW, 0)[5000], 0x11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_repair_torn_primary_is_fetched_before_anybody_reads_it),
        TEST(test_repair_primary_torn_by_who_lives_is_fetched_before_anybody_reads_it),
        TEST(test_repair_what_was_made_equal_is_not_called_torn_any_more),
        TEST(test_repair_announcement_of_an_older_generation_calls_nothing_torn),
        TEST(test_repair_torn_shadow_gets_the_primarys_bytes),
        TEST(test_repair_copy_torn_last_gets_whole_bytes_of_one_before),
        TEST(test_repair_announced_range_larger_than_the_window_is_repaired),
        TEST(test_repair_intents_of_a_dead_rank_of_this_node_are_doubts),
    };
    return cmocka_run_group_tests_name("repair_torn", tests, NULL, NULL);
}
