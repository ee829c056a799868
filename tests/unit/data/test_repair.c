/* Copies are made equal after deaths, and filled: several agents, and views that change when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agents.h"
#include "memory.h"
#include "runtime/agent/dedup.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/segments.h"
#include "runtime/channel/hello.h"
#include "runtime/protocol/task_id.h"
#include "seed.h"

static int setup(void **state)
{
    (void)state;
    world_open(4, 0, VIEW_DEGRADE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return memory_living() == 0 ? 0 : -1;
}

/* Group (slot 0, triple) has its copies on nodes 0, 1, 2; (slot 0, shadow) on 0, 1. The writer is on no node of theirs. */
static struct rank *const writer = &w.rank[3], *const other = &w.rank[1];

static struct view_event death_of(int rank)
{
    return (struct view_event){.type = VIEW_RANK_DEAD, .a = (uint32_t)rank, .b = w.rank[rank].incarnation, .c = 9};
}

static bool was_submitted(uint32_t seg, int slot)
{
    const struct view_group *g = group_at(0, seg, slot);
    for (int i = 0; i < w.submissions; i++)
        if (w.submitted[i].type == VIEW_RESTORED && w.submitted[i].d == g->generation &&
            w.submitted[i].a == (uint32_t)group_of(slot, store_find(&w.node[0].agent.store, seg)->redundancy))
            return true;
    return false;
}

static void announce(struct rank *r, int node, uint32_t seg, uint64_t offset, uint32_t len, uint64_t put, uint8_t level,
                     uint16_t note)
{
    struct wire intent = rank_wire(r, WIRE_INTENT, seg, 0, offset);
    intent.count = len;
    intent.identity = put;
    intent.lane = level;
    intent.note = note;
    rank_send(r, node, intent, NULL);
}

static int add(struct rank *r, int node, uint32_t seg, uint64_t offset, int64_t value, uint64_t number)
{
    struct wire q = rank_wire(r, WIRE_RMW, seg, 0, offset);
    q.a = value;
    q.identity = number;
    q.lane = 5;
    return rank_ask(r, node, q, NULL);
}

/* ---- a writer dies ---- */

static void test_repair_put_of_a_dead_writer_in_one_copy_only_is_spread_or_undone(void **state)
{
    (void)state;
    for (int reached = 0; reached < 3; reached++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        assert_int_equal(rank_put(writer, reached, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
        assert_false(copies_are_equal());
        world_kill_rank(3);
        world_restore();
        assert_true(copies_are_equal());
        assert_int_equal(word_at(0, SEG_TRIPLE, 0, 24),
                         reached == 0 ? 7 : 0); /* the primary's bytes, which readers saw */
        assert_true(is_direct(SEG_TRIPLE, 0));
        assert_null(w.node[0].agent.doubts);
        assert_null(w.node[1].agent.doubts);
    }
}

/* A put of a whole word is under way, in one copy; what a dead writer left reaches into that word. The word stays one put's. */
static void test_repair_patch_leaves_no_word_torn(void **state)
{
    (void)state;
    const int64_t mine = 0x1111111111111111, dead = 0x2222222222222222;
    for (int torn = 0; torn < 2; torn++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        if (torn) { /* the primary's bytes come from the other copy */
            announce(writer, 0, SEG_SHADOW, 1, 57, 1, 0, 1);
            world_pump();
        } else { /* they go there */
            struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 54);
            put.len = 4;
            put.note = 1;
            assert_int_equal(rank_ask(writer, 0, put, &dead), KEEL_OK);
        }
        assert_int_equal(rank_put(other, 1, SEG_SHADOW, 0, 56, mine, 1), KEEL_OK);
        world_kill_rank(3);
        world_restore();
        int64_t primary = word_at(0, SEG_SHADOW, 0, 56), shadow = word_at(1, SEG_SHADOW, 0, 56);
        assert_true(primary == (torn ? mine : 0x2222));
        assert_true(shadow == primary);
    }
}

/* The writer's remote write has taken effect inside the provider, and its announcement is not looked at yet, when a view says that
 * the writer is dead. */
static void announced_and_not_looked_at(bool prepared)
{
    const struct view_event e = death_of(3);
    announce(writer, 0, SEG_SHADOW, 512, 4096, 1, 0, 1);
    memset(bytes_at(0, SEG_SHADOW, 0) + 512, 0xee, 100);
    if (prepared)
        world_prepare(&e, 1);
    else
        w.epoch++;
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_commit(i, &e, 1);
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    world_pump();
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
}

static void test_repair_what_has_arrived_is_handled_before_a_prepare(void **state)
{
    (void)state;
    announced_and_not_looked_at(true);
}

static void test_repair_what_has_arrived_is_handled_before_a_commit_without_prepare(void **state)
{
    (void)state;
    announced_and_not_looked_at(false);
}

/* Messages wait for acknowledgements, however much there is to repair and however slow the other copy is. */
static void test_repair_does_not_fill_the_queue_to_a_copy(void **state)
{
    (void)state;
    enum { WINDOW = 96, PUTS = 100, LEN = 65536 };
    static uint8_t bytes[LEN];
    const struct peer *peer = &w.node[0].agent.peers.peer[1];
    memset(bytes, 0x77, sizeof bytes);
    for (unsigned i = 0; i < PUTS; i++) {
        struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, i % 8 * LEN);
        put.len = LEN;
        put.note = (uint16_t)(1 + i);
        assert_int_equal(rank_ask(writer, 0, put, bytes), KEEL_OK);
    }
    const struct view_event e = death_of(3);
    world_prepare(&e, 1);
    world_pump();
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_commit(i, &e, 1);
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    for (int i = 0; i < 400; i++) {
        w.node[1].still = i % 4 != 0;
        world_turn();
        assert_true(peer->next - 1 - peer->acked <= WINDOW + 4);
    }
    w.node[1].still = false;
    world_pump();
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
}

static void test_repair_put_that_is_everywhere_stays(void **state)
{
    (void)state;
    for (int node = 0; node < 3; node++)
        assert_int_equal(rank_put(writer, node, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 24), 7);
}

/* However many of the writer's puts complete while one is stuck. */
static void test_repair_put_that_is_stuck_is_not_forgotten_for_later_ones(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK); /* and never arrives at node 0 */
    for (int i = 0; i < 3 * NOTES_MAX; i++)
        for (int node = 0; node < 2; node++) {
            struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 64 + (uint64_t)i * 8);
            const int64_t value = i + 1;
            put.len = sizeof value;
            put.note = (uint16_t)(2 + i % (NOTES_MAX - 1));
            rank_send(writer, node, put, &value);
        }
    world_pump();
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 64), 1);
}

static void test_repair_writer_that_lives_on_is_repaired_after_its_doubt(void **state)
{
    (void)state;
    const struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3, .b = 0};
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_change(&doubt, 1);
    world_restore();
    assert_true(copies_are_equal());
    assert_int_equal(atomic_load(&page_rank(w.node[2].agent.page, 3)->doubted), 1);
}

static void test_repair_writer_that_exits_with_open_puts_is_repaired(void **state)
{
    (void)state;
    const struct view_event done = {.type = VIEW_RANK_DONE, .a = 3, .b = 0, .d = 1};
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_change(&done, 1);
    world_restore();
    assert_true(copies_are_equal());
}

/* It told what it doubts once; after that nothing of the repair comes later than what is written directly. */
static void test_repair_that_is_done_sends_nothing_after_another_view(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_kill_rank(3);
    assert_true(w.submissions > 4 && was_submitted(SEG_SHADOW, 0));
    uint64_t sent[4][4];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            sent[i][k] = w.node[i].agent.peers.peer[k].next;
    const struct view_event elsewhere = {.type = VIEW_RANK_LEFT, .a = 2, .b = 0};
    world_change(&elsewhere, 1);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            assert_int_equal(w.node[i].agent.peers.peer[k].next, sent[i][k]);
    world_restore();
    for (int node = 0; node < 2; node++)
        assert_int_equal(rank_put(other, node, SEG_SHADOW, 0, 24, 8, 1), KEEL_OK);
    world_pump();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 8);
}

static void test_repair_is_submitted_when_every_copy_has_acknowledged(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3);
    assert_int_equal(rank_put(writer, 0, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < 4; i++)
        world_settle(i);
    (void)agent_step(&w.node[2].agent);
    w.node[2].still = true; /* it has told its doubts */
    world_pump();
    assert_int_equal(word_at(1, SEG_TRIPLE, 0, 24), 7);
    assert_false(was_submitted(SEG_TRIPLE, 0));
    w.node[2].still = false;
    world_pump();
    assert_true(was_submitted(SEG_TRIPLE, 0));
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 24), 7);
}

static void test_repair_does_not_begin_before_the_view_is_settled(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3);
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        recover_settled(&w.node[i].agent, w.epoch - 1); /* the view before it */
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 0);
    assert_int_equal(w.submissions, 0);
    for (int i = 0; i < 4; i++)
        world_settle(i);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 24), 7);
}

/* A view without deaths that is committed in between does not lose what was cut off for a proposal that came to nothing. */
static void test_repair_doubts_of_a_proposal_that_was_given_up_are_kept(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3), left = {.type = VIEW_RANK_LEFT, .a = 2, .b = 0};
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
    world_prepare(&dead, 1); /* fences, and notes what is in doubt */
    world_pump();
    w.epoch--;
    world_change(&left, 1); /* another proposal takes its place */
    assert_true(is_direct(SEG_SHADOW, 0));
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
}

/* ---- torn copies ---- */

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
    get.count = 8;
    assert_int_equal(rank_ask(other, 0, get, NULL), -1000);
    w.node[1].still = false;
    world_pump();
    assert_int_equal(other->replies, 1);
    assert_int_equal(other->reply.status, KEEL_OK);
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

/* The primary's copy was announced to be torn under an older generation; the writer repeats its put, at the other copy first, and
 * dies in the middle of it. late: the announcement comes when that generation is over. */
static void older_announcement_calls_nothing_torn(bool late)
{
    struct wire old = rank_wire(writer, WIRE_INTENT, SEG_SHADOW, 0, 512);
    uint64_t torn = 0xeeee;
    old.count = 4096;
    old.identity = 1;
    old.note = 2;
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
    struct control_welcome welcome;
    struct agent *a = &w.node[0].agent;
    struct proc *proc = ranks_started(a, 1);
    memset(&page, 0, sizeof page);
    assert_non_null(ranks_conn(a, proc));
    ranks_welcome(a, proc, 0, 0, NULL, &page, &welcome);
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

/* ---- nodes die ---- */

static void test_repair_third_copy_is_filled_with_bytes_and_records(void **state)
{
    (void)state;
    struct wire step = rank_wire(writer, WIRE_RMW, SEG_TRIPLE, 0, 16);
    step.flags = WIRE_F_TASK;
    step.identity = task_id(SEG_TRIPLE, 40);
    step.round = 2;
    step.a = 1;
    for (uint64_t number = 1; number <= 3; number++)
        assert_int_equal(add(writer, 0, SEG_TRIPLE, 8, 100, number), KEEL_OK);
    assert_int_equal(rank_ask(writer, 0, step, NULL), KEEL_OK);
    for (int node = 0; node < 3; node++)
        assert_int_equal(rank_put(other, node, SEG_TRIPLE, 0, SEG_BYTES - 8, 55, 2), KEEL_OK);
    world_kill_node(2);
    assert_int_equal(group_at(0, SEG_TRIPLE, 0)->copy[2].node, 3);
    world_restore();
    assert_true(is_direct(SEG_TRIPLE, 0));
    assert_int_equal(view_whole_copies(group_at(0, SEG_TRIPLE, 0)), 3);
    assert_true(copies_are_equal());
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 300);
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, SEG_BYTES - 8), 55);
    const struct dedup *d = &w.node[3].agent.dedup[group_of(0, 2)];
    int64_t result;
    assert_int_equal(dedup_look(d, 3, 0, 5, 3, &result), DEDUP_SEEN);
    assert_int_equal(result, 200);
    assert_int_equal(dedup_task_look(d, task_id(SEG_TRIPLE, 40), 2, 0), DEDUP_SEEN);
    world_kill_node(0); /* and it can be counted on */
    world_restore();
    world_kill_node(1);
    assert_int_equal(group_at(3, SEG_TRIPLE, 0)->copy[0].node, 3);
    assert_int_equal(add(writer, 3, SEG_TRIPLE, 8, 100, 3), KEEL_OK); /* its answer was lost */
    assert_int_equal(writer->reply.a, 200);
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 300);
}

static void test_repair_copy_counts_when_all_of_it_is_acknowledged(void **state)
{
    (void)state;
    const struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 2};
    assert_int_equal(add(writer, 0, SEG_TRIPLE, 8, 100, 1), KEEL_OK);
    w.node[2].still = true;
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < 4; i++)
        world_settle(i);
    w.node[3].still = true;
    world_pump();
    assert_false(was_submitted(SEG_TRIPLE, 0));
    assert_true(was_submitted(SEG_SHADOW, 0)); /* its copies run */
    w.node[3].still = false;
    world_pump();
    assert_true(was_submitted(SEG_TRIPLE, 0));
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 100);
}

/* What is executed while a copy is filled is in it, before its block was sent or after. */
static void test_repair_operations_during_the_fill_are_in_the_new_copy(void **state)
{
    (void)state;
    struct rng rng;
    const struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 2};
    seed_rng(&rng);
    w.node[2].still = true;
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < 4; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < 4; i++)
        world_settle(i);
    for (uint64_t number = 1; number <= 300; number++) {
        struct wire q =
            rank_wire(writer, number % 2 ? WIRE_RMW : WIRE_PUT, SEG_TRIPLE, 0, 8 * rng_below(&rng, SEG_BYTES / 8));
        const int64_t value = (int64_t)number;
        q.a = value;
        q.identity = number;
        q.lane = 5;
        q.flags = WIRE_F_THROUGH;
        q.len = q.type == WIRE_PUT ? sizeof value : 0;
        rank_send(writer, 0, q, &value);
        if (rng_below(&rng, 10) == 0)
            world_turn();
    }
    world_pump();
    assert_int_equal(writer->replies, 300);
    world_restore();
    assert_true(is_direct(SEG_TRIPLE, 0));
    assert_true(copies_are_equal());
}

/* The doubts of a writer that dies while a copy is filled. */
static void test_repair_writer_dies_during_the_fill_all_copies_are_made_equal(void **state)
{
    (void)state;
    for (int reached = 0; reached < 2; reached++)
        for (int turns = 0; turns < 12; turns++) {
            const struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 2};
            world_close();
            world_open(4, 0, VIEW_DEGRADE);
            assert_int_equal(rank_put(writer, reached, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
            w.node[2].still = true;
            world_prepare(&dead, 1);
            world_pump();
            for (int i = 0; i < 4; i++)
                world_commit(i, &dead, 1);
            for (int i = 0; i < 4; i++)
                world_settle(i);
            for (int i = 0; i < turns; i++)
                world_turn();
            world_kill_rank(3);
            world_restore();
            assert_true(is_direct(SEG_TRIPLE, 0));
            assert_int_equal(group_at(0, SEG_TRIPLE, 0)->copies, 3);
            assert_true(copies_are_equal());
        }
}

static void test_repair_node_that_is_filled_dies_another_is_filled(void **state)
{
    (void)state;
    for (int turns = 0; turns < 10; turns++) {
        const struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 1};
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        assert_int_equal(add(writer, 0, SEG_SHADOW, 8, 100, 1), KEEL_OK);
        w.node[1].still = true;
        world_prepare(&dead, 1);
        world_pump();
        for (int i = 0; i < 4; i++)
            world_commit(i, &dead, 1);
        for (int i = 0; i < 4; i++)
            world_settle(i);
        for (int i = 0; i < turns; i++)
            world_turn();
        int filled = group_at(0, SEG_SHADOW, 0)->copy[1].node;
        w.submissions = 0;
        world_kill_node(filled);
        world_restore();
        assert_true(is_direct(SEG_SHADOW, 0));
        assert_true(copies_are_equal());
        assert_int_equal(word_at(5 - filled, SEG_SHADOW, 0, 8), 100);
        assert_int_equal(group_at(0, SEG_SHADOW, 0)->lost_at, 0);
    }
}

/* Whichever of the three dies, at whatever step of a series of additions: each counts once in every copy that is left, and
 * its origin gets the value before it. */
static void test_repair_copy_dies_amid_additions_each_counts_once_everywhere(void **state)
{
    (void)state;
    for (int victim = 0; victim < 3; victim++)
        for (int turns = 0; turns < 10; turns++) {
            enum { ADDS = 6 };
            world_close();
            world_open(4, 0, VIEW_DEGRADE);
            for (int lane = 0; lane < ADDS; lane++) {
                struct wire q = rank_wire(writer, WIRE_RMW, SEG_TRIPLE, 0, 8);
                q.a = 1;
                q.identity = 1;
                q.lane = (uint16_t)lane;
                rank_send(writer, 0, q, NULL);
            }
            for (int i = 0; i < turns; i++)
                world_turn();
            world_kill_node(victim);
            int primary = group_at(3, SEG_TRIPLE, 0)->copy[0].node, sum = 0;
            for (int lane = 0; lane < ADDS; lane++) { /* who got no answer asks again */
                struct wire q = rank_wire(writer, WIRE_RMW, SEG_TRIPLE, 0, 8);
                q.epoch = group_at(primary, SEG_TRIPLE, 0)->generation;
                q.a = 1;
                q.identity = 1;
                q.lane = (uint16_t)lane;
                assert_int_equal(rank_ask(writer, primary, q, NULL), KEEL_OK);
                sum += (int)writer->reply.a;
            }
            assert_int_equal(sum, ADDS * (ADDS - 1) / 2); /* 0, 1, 2, ...: each once */
            world_restore();
            assert_true(is_direct(SEG_TRIPLE, 0));
            assert_true(copies_are_equal());
            assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), ADDS);
        }
}

static void test_repair_two_of_three_die_together_the_last_one_fills_others(void **state)
{
    (void)state;
    const struct view_event dead[2] = {{.type = VIEW_NODE_DEAD, .a = 0}, {.type = VIEW_NODE_DEAD, .a = 1}};
    assert_int_equal(add(writer, 0, SEG_TRIPLE, 8, 100, 1), KEEL_OK);
    w.node[0].still = w.node[1].still = true;
    world_change(dead, 2);
    world_restore();
    assert_int_equal(group_at(2, SEG_TRIPLE, 0)->copy[0].node, 2);
    assert_int_equal(group_at(2, SEG_TRIPLE, 0)->lost_at, 0);
    assert_true(copies_are_equal());
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 100);
    assert_true(group_at(2, SEG_SHADOW, 0)->lost_at != 0);
    assert_non_null(strstr(w.node[2].said, "redundancy_reduced")); /* two nodes are no three copies */
    assert_null(strstr(w.node[2].said, "redundancy_restored"));
}

static void test_repair_restored_group_goes_home_with_all_that_was_executed(void **state)
{
    (void)state;
    world_close();
    world_open(3, 1, VIEW_SUBSTITUTE);
    struct rank *r = &w.rank[2];
    assert_int_equal(add(r, 0, SEG_SHADOW, 8, 100, 1), KEEL_OK);
    world_kill_node(0); /* its rank moves to node 3, where the new copy is; node 1 has asked for the handover */
    assert_int_equal(add(r, 1, SEG_SHADOW, 8, 100, 2), -1000); /* and executes nothing any more */
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 100);
    world_restore();
    assert_int_equal(group_at(1, SEG_SHADOW, 0)->copy[0].node, 3);
    assert_int_equal(r->reply.status, WIRE_RETRY); /* it was kept until the view said who is the primary */
    assert_int_equal(add(r, 3, SEG_SHADOW, 8, 100, 2), KEEL_OK);
    assert_int_equal(r->reply.a, 100);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 200);
    assert_true(copies_are_equal());
}

/* ---- telling ---- */

static void test_repair_events_say_restored_once_all_copies_are_there(void **state)
{
    (void)state;
    world_kill_node(3);
    assert_null(strstr(w.node[0].said, "redundancy_restored"));
    world_restore();
    assert_non_null(strstr(w.node[0].said, "redundancy_restored"));
    assert_null(strstr(w.node[0].said, "redundancy_reduced"));
}

/* ---- out of memory ---- */

static void test_repair_without_memory_for_a_doubt_the_agent_ends(void **state)
{
    (void)state;
    memory_fail_at(1);
    repair_add_doubt(&w.node[0].agent, 3, 0, &(struct patch){.seg = SEG_SHADOW, .len = 8});
    assert_true(memory_failed());
    assert_true(w.node[0].fatal);
    assert_int_equal(atomic_load(&w.node[0].agent.page->fenced), 1); /* its ranks know */
}

static void test_repair_agent_init_without_memory_leaves_nothing(void **state)
{
    (void)state;
    static struct agent a;
    struct agent *like = &w.node[0].agent;
    const int rank_node[] = {0, 1, 2, 3};
    struct agent_config config = {.ops = like->ops,
                                  .self = 0,
                                  .nodes = 4,
                                  .ranks = 4,
                                  .rank_node = rank_node,
                                  .shm = like->shm,
                                  .net = like->shm, /* nothing is registered there */
                                  .page = calloc(1, page_bytes(4, 4, 4)),
                                  .now = w.now};
    size_t before = memory_living();
    bool reached = true;
    long n = 1;
    for (; reached; n++) {
        memory_fail_at(n);
        keel_status status = agent_init(&a, &config);
        reached = memory_failed();
        assert_int_equal(status, reached ? KEEL_ERR_NOMEM : KEEL_OK);
        agent_fini(&a);
        assert_int_equal(memory_living(), before);
    }
    assert_true(n > 30);
    free(config.page);
}

/* Whatever allocation fails while copies are made equal and filled: it comes to a good end, or the agent ends. */
static void test_repair_without_memory_ends_well_or_the_agent_ends(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3);
    bool reached = true;
    int fatal = 0;
    long n = 1;
    for (; reached && n < 400; n++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        struct agent *a = &w.node[0].agent;
        assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
        world_prepare(&dead, 1);
        world_pump();
        for (int i = 0; i < 4; i++)
            world_commit(i, &dead, 1);
        for (int i = 1; i < 4; i++)
            world_settle(i);
        for (int i = 0; i < 5; i++)
            world_turn();
        memory_fail_at(n);
        world_settle(0);
        (void)agent_step(a);
        reached = memory_failed();
        fatal += w.node[0].fatal;
        if (w.node[0].fatal)
            continue;
        world_pump();
        world_restore();
        assert_true(is_direct(SEG_SHADOW, 0));
        assert_true(copies_are_equal());
    }
    assert_true(fatal > 0 && n > 3);
}

/* Who has no memory for the copies that a dead node leaves keeps those that it has. */
static void test_repair_node_without_memory_declines_a_copy(void **state)
{
    (void)state;
    for (int full = 1; full < 4; full++) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        for (int node = 0; node < 3; node++) /* of each slot's part */
            for (int slot = 0; slot < 3; slot++)
                if (view_copy_at(group_at(node, SEG_SHADOW, slot), node) >= 0)
                    memset(bytes_at(node, SEG_SHADOW, slot), 'a' + slot, 64);
        w.node[1].full = full & 1;
        w.node[2].full = full & 2;
        world_kill_node(0);
        world_restore();
        for (int node = 1; node < 3; node++)
            assert_false(w.node[node].fatal);
        for (int slot = 0; slot < 3; slot++) {
            const struct view_group *g = group_at(1, SEG_SHADOW, slot);
            assert_true(is_direct(SEG_SHADOW, slot));
            assert_int_equal(g->lost_at, 0);
            assert_int_equal(bytes_at(g->copy[0].node, SEG_SHADOW, slot)[63], 'a' + slot);
            for (int i = 0; i < g->copies; i++)
                assert_true(g->copy[i].whole);
        }
        assert_true(copies_are_equal());
        assert_non_null(strstr(w.node[1].said, "redundancy_reduced"));
        assert_null(strstr(w.node[1].said, "redundancy_restored"));
    }
}

/* A writer connects again, and the agent hears of that before it looks at what came over the old connection: a write there may
 * have taken effect already. */
static void test_repair_what_came_before_a_new_connection_is_handled(void **state)
{
    (void)state;
    struct rank *r = &w.rank[3];
    struct wire_hello hello = {.job = 1,
                               .node = 3,
                               .rank = 3,
                               .to_node = 0,
                               .to_incarnation = w.node[0].agent.incarnation,
                               .attempt = ++r->attempt};
    const uint8_t secret[32] = {4, 2};
    struct tp_ep *again;
    wire_hello_sign(&hello, secret);
    assert_int_equal(tp_mem.connect(r->net, &w.node[0].addr, &hello, sizeof hello, NULL, &again), KEEL_OK);
    announce(r, 0, SEG_SHADOW, 0, 4096, 7, 0, 5);
    world_pump();
    const struct conn *c = w.node[0].agent.conns;
    while (c && c->rank != 3)
        c = c->next;
    assert_true(c && c->attempt == hello.attempt && c->note[4].put == 7);
    tp_ep_destroy(again);
}

/* The kernel gives memory before it has it: what is not there in the middle of the filling is declined like a whole copy. */
static void test_repair_memory_that_ends_in_the_middle_declines_the_copy(void **state)
{
    (void)state;
    for (int nth = 1; nth < 20; nth += 3) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        for (int node = 0; node < 3; node++)
            for (int slot = 0; slot < 3; slot++)
                if (view_copy_at(group_at(node, SEG_SHADOW, slot), node) >= 0)
                    memset(bytes_at(node, SEG_SHADOW, slot), 'a' + slot, SEG_BYTES);
        w.node[1].refused_block = w.node[2].refused_block = nth;
        world_kill_node(0);
        world_restore();
        for (int slot = 0; slot < 3; slot++) {
            const struct view_group *g = group_at(1, SEG_SHADOW, slot);
            assert_true(is_direct(SEG_SHADOW, slot));
            assert_int_equal(g->lost_at, 0);
            for (int i = 0; i < g->copies; i++)
                for (size_t k = 0; k < SEG_BYTES; k++)
                    assert_int_equal(bytes_at(g->copy[i].node, SEG_SHADOW, slot)[k], 'a' + slot);
        }
        assert_true(copies_are_equal());
        assert_false(w.node[1].fatal || w.node[2].fatal);
        assert_non_null(strstr(w.node[1].said, "redundancy_reduced"));
        assert_null(strstr(w.node[1].said, "redundancy_restored"));
    }
}

/* What says that a copy counts may overtake what says that its node has no memory for it. */
static void test_repair_copy_without_memory_does_not_count(void **state)
{
    (void)state;
    world_close();
    world_open(4, 0, VIEW_DEGRADE);
    for (int node = 0; node < 4; node++)
        for (int slot = 0; slot < 4; slot++)
            if (view_copy_at(group_at(node, SEG_SHADOW, slot), node) >= 0)
                memset(bytes_at(node, SEG_SHADOW, slot), 'a' + slot, 64);
    w.node[2].full = true;
    world_kill_node(0);
    int declined = -1;
    for (int i = 0; i < w.submissions; i++)
        declined = w.submitted[i].type == VIEW_DECLINED ? i : declined;
    assert_true(declined >= 0 && w.submitted[declined].a == 2);
    struct view_event late = w.submitted[declined];
    memmove(&w.submitted[declined], &w.submitted[declined + 1], sizeof late * (size_t)(--w.submissions - declined));
    world_restore();
    for (int slot = 0; slot < 4; slot++)
        for (int i = 0; i < group_at(1, SEG_SHADOW, slot)->copies; i++) {
            const struct view_copy *c = &group_at(1, SEG_SHADOW, slot)->copy[i];
            const struct store_copy *here = store_copy(&w.node[c->node].agent.store, SEG_SHADOW, slot);
            assert_true(!c->whole || (here && here->base && here->base[63] == 'a' + slot));
        }
    world_change(&late, 1);
    world_restore();
    for (int node = 1; node < 4; node++)
        assert_false(w.node[node].fatal);
    assert_true(copies_are_equal());
    for (int slot = 0; slot < 4; slot++)
        assert_true(is_direct(SEG_SHADOW, slot));
}

/* A segment that is allocated when a copy was filled, but is not yet called whole: without memory for it there is no segment. */
static void test_repair_filled_copy_counts_for_new_segments(void **state)
{
    (void)state;
    world_kill_node(0);
    assert_true(w.submissions > 0); /* filled, and nobody has committed that */
    int node = -1;
    for (int slot = 0; slot < w.nodes; slot++)
        for (int i = 0; i < group_at(1, SEG_SHADOW, slot)->copies; i++)
            if (!group_at(1, SEG_SHADOW, slot)->copy[i].whole)
                node = group_at(1, SEG_SHADOW, slot)->copy[i].node;
    assert_true(node > 0);
    struct agent *a = &w.node[node].agent;
    assert_int_equal(store_define(&a->store, 9, 64, 1, 0), KEEL_OK);
    struct store_segment *s = store_find(&a->store, 9);
    for (int slot = 0; slot < w.nodes; slot++) { /* there is memory for those that are called whole */
        int at = view_copy_at(group_at(1, SEG_SHADOW, slot), node);
        if (at >= 0 && group_at(1, SEG_SHADOW, slot)->copy[at].whole)
            assert_int_equal(store_make(&a->store, s, slot, group_at(1, SEG_SHADOW, slot)->generation), KEEL_OK);
    }
    w.node[node].full = true;
    assert_int_equal(segments_make_copies(a, s), KEEL_ERR_NOMEM);
    assert_false(a->declined);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_repair_put_of_a_dead_writer_in_one_copy_only_is_spread_or_undone),
        TEST(test_repair_patch_leaves_no_word_torn),
        TEST(test_repair_what_has_arrived_is_handled_before_a_prepare),
        TEST(test_repair_what_has_arrived_is_handled_before_a_commit_without_prepare),
        TEST(test_repair_does_not_fill_the_queue_to_a_copy),
        TEST(test_repair_put_that_is_everywhere_stays),
        TEST(test_repair_put_that_is_stuck_is_not_forgotten_for_later_ones),
        TEST(test_repair_writer_that_lives_on_is_repaired_after_its_doubt),
        TEST(test_repair_writer_that_exits_with_open_puts_is_repaired),
        TEST(test_repair_that_is_done_sends_nothing_after_another_view),
        TEST(test_repair_is_submitted_when_every_copy_has_acknowledged),
        TEST(test_repair_does_not_begin_before_the_view_is_settled),
        TEST(test_repair_doubts_of_a_proposal_that_was_given_up_are_kept),
        TEST(test_repair_torn_primary_is_fetched_before_anybody_reads_it),
        TEST(test_repair_primary_torn_by_who_lives_is_fetched_before_anybody_reads_it),
        TEST(test_repair_what_was_made_equal_is_not_called_torn_any_more),
        TEST(test_repair_announcement_of_an_older_generation_calls_nothing_torn),
        TEST(test_repair_torn_shadow_gets_the_primarys_bytes),
        TEST(test_repair_copy_torn_last_gets_whole_bytes_of_one_before),
        TEST(test_repair_announced_range_larger_than_the_window_is_repaired),
        TEST(test_repair_intents_of_a_dead_rank_of_this_node_are_doubts),
        TEST(test_repair_third_copy_is_filled_with_bytes_and_records),
        TEST(test_repair_copy_counts_when_all_of_it_is_acknowledged),
        TEST(test_repair_operations_during_the_fill_are_in_the_new_copy),
        TEST(test_repair_writer_dies_during_the_fill_all_copies_are_made_equal),
        TEST(test_repair_node_that_is_filled_dies_another_is_filled),
        TEST(test_repair_copy_dies_amid_additions_each_counts_once_everywhere),
        TEST(test_repair_two_of_three_die_together_the_last_one_fills_others),
        TEST(test_repair_restored_group_goes_home_with_all_that_was_executed),
        TEST(test_repair_events_say_restored_once_all_copies_are_there),
        TEST(test_repair_without_memory_for_a_doubt_the_agent_ends),
        TEST(test_repair_agent_init_without_memory_leaves_nothing),
        TEST(test_repair_without_memory_ends_well_or_the_agent_ends),
        cmocka_unit_test_setup_teardown(test_repair_node_without_memory_declines_a_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_repair_memory_that_ends_in_the_middle_declines_the_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_repair_copy_without_memory_does_not_count, setup, teardown),
        TEST(test_repair_filled_copy_counts_for_new_segments),
        TEST(test_repair_what_came_before_a_new_connection_is_handled),
    };
    return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
