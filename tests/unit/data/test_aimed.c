/* Aimed schedules, each of which once broke a promise: a client and several agents in one process, driven by hand. */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aimed.h"
#include "runtime/agent/segments.h"
#include "runtime/base/log.h"
#include "runtime/client/op/rma.h"

static uint8_t big[SEG_BYTES];
static int dead_of(int node)
{
    return node;
}

/* a node dies during a large put of which another copy is far ahead: nothing wakes the put when the view comes. */
static void test_aimed_put_waiting_in_line_is_planned_again(void **state)
{
    (void)state;
    (void)dead_of;
    client_open();
    memset(big, 7, sizeof big);
    static keel_handle h, warm;
    assert_int_equal(rma_start(&c, OP_PUT, triple, 3, 0, big, NULL, 64, &warm), KEEL_OK); /* links to 0 and 1 are up */
    turns(20);
    assert_int_equal(warm.opaque[0], 0);
    w.node[1].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, triple, 3, 0, big, NULL, sizeof big, &h), KEEL_OK);
    turns(5);
    tp_disconnect(
        c.connections.of[1].way.ep); /* killed: the kernel resets its connections, and the view comes a little later */
    turns(30);
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = 1};
    change(&e, 1);
    restore();
    turns(20000); /* 20 s of virtual time */
    print_message("pending %d, active waiting %d\n", (int)h.opaque[0], c.ops.active ? c.ops.active->line.waiting : -1);
    assert_int_equal(h.opaque[0], 0);
}

/* More than the intent page has entries, and than may be large, before there is a connection: those that hold an entry
 * do not wait behind those that wait for one. every: one of so many is large. */
static void puts_before_there_is_a_connection(int n, int every)
{
    enum { PUTS = INTENT_MAX + 40 };
    static keel_handle h[PUTS];
    client_open();
    assert_int_not_equal(c.connections.of[0].way.state, WAY_UP);
    for (int i = 0; i < n && i < PUTS; i++) {
        uint64_t len = i % every ? 8 : sizeof big;
        h[i] = (keel_handle){{0}};
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 3, 0, big, NULL, len, &h[i]), KEEL_OK);
    }
    turns(20000);
    for (int i = 0; i < n && i < PUTS; i++)
        assert_int_equal(h[i].opaque[0], 0);
}

static void test_aimed_puts_begun_before_there_is_a_connection_end(void **state)
{
    (void)state;
    puts_before_there_is_a_connection(INTENT_MAX + 40, INT32_MAX);
}

static void test_aimed_large_and_small_puts_begun_before_there_is_a_connection_end(void **state)
{
    (void)state;
    puts_before_there_is_a_connection(INTENT_MAX + 40, 5);
}

static void test_aimed_large_puts_begun_before_there_is_a_connection_end(void **state)
{
    (void)state;
    puts_before_there_is_a_connection(INTENT_MAX + 40, 1);
}

/* one connection breaks during a large put and comes back at once. */
static void test_aimed_put_goes_on_after_a_break(void **state)
{
    (void)state;
    client_open();
    static keel_handle h, warm;
    assert_int_equal(rma_start(&c, OP_PUT, triple, 3, 0, big, NULL, 64, &warm), KEEL_OK);
    turns(20);
    assert_int_equal(rma_start(&c, OP_PUT, triple, 3, 0, big, NULL, sizeof big, &h), KEEL_OK);
    turns(2);
    w.node[1].still = true; /* slow for a moment */
    turns(10);
    tp_disconnect(c.connections.of[1].way.ep);
    turns(1);
    w.node[1].still = false;
    turns(20000);
    print_message("pending %d, notes %d\n", (int)h.opaque[0], c.ops.active ? c.ops.active->held.notes : -1);
    assert_int_equal(h.opaque[0], 0);
}

/* the flag of a dead node's note counts for the copy that took its place. */
static void test_aimed_note_of_a_dead_copy_does_not_count(void **state)
{
    (void)state;
    client_open();
    static keel_handle h, warm;
    int64_t one = 1;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, &warm), KEEL_OK);
    turns(20);
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 1, 0, &one, NULL, 8, &warm), KEEL_OK); /* links to 0, 1, 2 */
    turns(20);
    one = 2;
    c.connections.of[0].way.state = WAY_CONNECTING; /* the path from here to node 0 is broken for a while */
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 64, &one, NULL, 8, &h), KEEL_OK);
    turns(5); /* node 1 has answered */
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 64), 2);
    w.node[1].still = true;
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = 1};
    change(&e, 1);
    restore();
    const struct view_copyset *g = copyset_at(0, SEG_SHADOW, 0);
    int other = g->copy[1].node;
    assert_int_equal(other, 2);
    w.node[2].still = true;                 /* slow */
    c.connections.of[0].way.state = WAY_UP; /* the path works again */
    turns(50);
    print_message("pending %d notes %d word at 0: %ld, at the other: %ld\n", (int)h.opaque[0], c.ops.active->held.notes,
                  (long)word_at(0, SEG_SHADOW, 0, 64), (long)word_at(other, SEG_SHADOW, 0, 64));
    assert_int_equal(h.opaque[0], 1);
    if (word_at(0, SEG_SHADOW, 0, 64) != word_at(other, SEG_SHADOW, 0, 64))
        assert_true(c.ops.active->held.notes >= 2);
}

/* a note whose clearing was lost makes a whole copy look torn. */
static void announce(struct rank *r, int node, uint32_t seg, uint64_t offset, uint32_t len, uint64_t put, uint8_t level,
                     uint16_t note)
{
    struct wire intent = rank_wire(r, WIRE_INTENT, seg, 0, offset);
    intent.raw.count = len;
    intent.raw.identity = put;
    intent.raw.round = level;
    intent.raw.note = note;
    rank_send(r, node, intent, NULL);
}
static void test_aimed_stale_note_does_not_condemn_the_whole_copy(void **state)
{
    (void)state;
    struct rank *r = &w.rank[3];
    int64_t old = 0x1111111111111111, torn = 0x1111111122222222;
    memcpy(bytes_at(0, SEG_SHADOW, 0) + 512, &old, 8);
    memcpy(bytes_at(1, SEG_SHADOW, 0) + 512, &old, 8);
    announce(r, 0, SEG_SHADOW, 0, 4096, 1, 0, 2); /* put 1, complete; its clearing did not go out: the link was down */
    announce(r, 1, SEG_SHADOW, 0, 4096, 2, 0, 1); /* put 2, this chunk first at node 1, half there */
    world_pump();
    memcpy(bytes_at(1, SEG_SHADOW, 0) + 512, &torn, 8);
    world_kill_rank(3);
    world_restore();
    assert_true(copies_are_equal());
    assert_true(word_at(0, SEG_SHADOW, 0, 512) == old);
}

/* a segment is freed while the primary waits for bytes of it. */
static void test_aimed_segment_freed_during_fetch(void **state)
{
    (void)state;
    int stuck = 0;
    for (int k = 0; k < 12; k++)
        for (int at = 0; at < 3; at++) {
            world_close();
            world_open(4, 0, VIEW_DEGRADE);
            announce(&w.rank[3], 0, SEG_TRIPLE, 0, 64, 1, 0, 1);
            world_pump();
            struct view_event e = {.type = VIEW_RANK_DEAD, .a = 3, .c = 9};
            world_prepare(&e, 1);
            world_pump();
            for (int i = 0; i < 4; i++)
                world_commit(i, &e, 1);
            for (int i = 0; i < 4; i++)
                world_settle(i);
            for (int i = 0; i < k; i++)
                world_turn();
            struct proc proc = {.life.rank = at};
            struct control r = {.type = CONTROL_SEG_FREE, .seg = SEG_TRIPLE, .b = 1};
            segments_free(&w.node[at].agent, &proc, &r);
            world_pump();
            world_restore();
            struct wire add = rank_wire(&w.rank[2], WIRE_RMW, 0, 0, 0); /* the system segment: the same copyset */
            add.epoch = w.node[0].agent.view.copyset[copyset_of(0, 2)].generation;
            add.raw.a = 1;
            add.raw.identity = 1;
            int status = rank_ask(&w.rank[2], 0, add, NULL);
            if (status != KEEL_OK) {
                print_message("freed at node %d after %d turns: %d\n", at, k, status);
                stuck++;
            }
        }
    assert_int_equal(stuck, 0);
}

/* puts that are given up while the agent does not read its socket. */
static void test_aimed_doubt_told_late_counts_for_later_puts(void **state)
{
    (void)state;
    client_open();
    int64_t v = 1;
    static keel_handle h[3];
    w.node[1].still = true;
    for (unsigned i = 0; i < 3; i++) {
        c.timeout_ns = (i + 1) * 20000000;
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 8 * i, &v, NULL, 8, &h[i]), KEEL_OK);
    }
    while (h[0].opaque[0])
        turns(1); /* put 0 given up; told, the message lies in the socket */
    assert_int_equal(told, 1);
    tell_fails = true; /* the socket is full */
    while (h[1].opaque[0])
        turns(1);
    assert_int_equal(atomic_load(&intents.doubted), 2);
    /* the agent reads the first message now: it sees 2, and submits both; they are being committed */
    while (h[2].opaque[0])
        turns(1);
    assert_int_equal((int64_t)h[2].opaque[1], KEEL_ERR_TIMEOUT);
    assert_true(c.doubts.given_up[0].any);
    assert_int_equal(c.doubts.behind, 3);
}

/* Operations in the rank's page that are not over, as others see it, and notes that it has at agents. */
static int held(void)
{
    int n = (int)atomic_load(&intents.open);
    for (int m = 0; m < (int)c.page->members; m++)
        for (int i = 0; i < NOTES_MAX / 64; i++)
            n += __builtin_popcountll(c.connections.of[m].notes[i]);
    return n;
}

/* a rank that goes on giving up gets back what the first ones hold as soon as these are taken up, and the others'
 * then. */
static void test_aimed_given_up_again_and_again_gives_back_in_turn(void **state)
{
    (void)state;
    client_open();
    int64_t v = 1;
    static keel_handle h[3];
    w.node[1].still = true;
    for (unsigned i = 0; i < 3; i++) {
        c.timeout_ns = (i + 1) * 20000000;
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 8 * i, &v, NULL, 8, &h[i]), KEEL_OK);
    }
    tell_fails = true; /* no view takes up any of them by itself */
    while (h[2].opaque[0])
        turns(1);
    assert_int_equal(held(), 6);
    static const struct {
        unsigned doubted;
        int held;
    } after[] = {{1, 4}, {2, 4}, {3, 0}};
    for (unsigned i = 0; i < 3; i++) {
        atomic_store(&page_rank(c.page, c.rank)->doubted, after[i].doubted);
        pthread_mutex_lock(&c.lock);
        doubt_taken_up(&c);
        pthread_mutex_unlock(&c.lock);
        assert_int_equal(held(), after[i].held);
    }
    assert_false(c.doubts.given_up[0].any);
}

static char logged[4096];

static void keep_line(void *user, const char *line, size_t len)
{
    size_t at = strlen(logged);
    (void)user;
    if (at + len < sizeof logged)
        memcpy(logged + at, line, len);
}

/* what timed out says which operation it was, and whose answer is missing; or to whom there was no way. */
static void test_aimed_operation_without_answer_says_whose(void **state)
{
    (void)state;
    client_open();
    static keel_handle h;
    int64_t one = 1;
    memset(logged, 0, sizeof logged);
    log_to(keep_line, NULL);
    for (int met = 0; met < 2; met++) {
        c.timeout_ns = 10000000;
        w.node[1].still = true; /* of the two that have copies of the part of rank 0 */
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, &h), KEEL_OK);
        turns(20);
        assert_int_equal(rma_test(&c, &h), KEEL_ERR_TIMEOUT);
        w.node[1].still = false;
        c.timeout_ns = 30000000000ull;
        change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 3}, 1);
        restore();
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, &h), KEEL_OK);
        turns(50);
        assert_int_equal(rma_test(&c, &h), KEEL_OK);
    }
    log_to(NULL, NULL);
    const char *text = "a put of 8 bytes with rank 0 took longer than the 10 ms of KEEL_TIMEOUT_MS: it ";
    const char *first = strstr(logged, text), *second = first ? strstr(first + 1, text) : NULL;
    assert_non_null(second);
    assert_memory_equal(first + strlen(text), "had no connection to node 1", 27);
    assert_memory_equal(second + strlen(text), "has no answer of node 1", 23);
}

/* a put through the primary is given up, its message is still on its way: nobody is told, and it takes effect over what
 * another rank has written since. */
static void test_aimed_given_up_put_through_the_primary_is_in_doubt(void **state)
{
    (void)state;
    client_open();
    static keel_handle warm, h;
    int64_t one = 1;
    world_kill_rank(2); /* the copies are being made equal: puts go through the primary */
    assert_false(is_direct(SEG_SHADOW, 0));
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 64, &one, NULL, 8, &warm), KEEL_OK);
    turns(20);
    assert_int_equal(warm.opaque[0], 0);
    c.timeout_ns = 10000000;
    w.node[0].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, &h), KEEL_OK);
    turns(20);
    assert_int_equal((int64_t)h.opaque[1], KEEL_ERR_TIMEOUT);
    assert_int_equal(told, 1);
    w.node[0].still = false;
}

/* who exits says whether anything of its is on its way. */
static void test_aimed_put_through_the_primary_is_open(void **state)
{
    (void)state;
    client_open();
    static keel_handle h;
    int64_t one = 1;
    world_kill_rank(2);
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, &h), KEEL_OK);
    assert_int_equal(atomic_load(&intents.open), 1);
    turns(20);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal(atomic_load(&intents.open), 0);
}

/* after a break the notes of the chunks are never cleared. */
static void test_aimed_notes_of_chunks_are_cleared_after_a_break(void **state)
{
    (void)state;
    client_open();
    static keel_handle h;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, 64, &h), KEEL_OK);
    turns(20);
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    w.node[1].still = true;
    turns(1); /* announced; whole at node 0, on its way to node 1 */
    tp_disconnect(c.connections.of[1].way.ep);
    w.node[1].still = false;
    turns(2000);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    int torn = 0;
    for (int node = 0; node < 2; node++)
        for (struct conn *k = w.node[node].agent.conns; k; k = k->next)
            for (int i = 0; i < NOTES_MAX; i++)
                torn += k->life.rank == 3 && k->note[i].len && k->note[i].torn;
    assert_int_equal(torn, 0);
}

static int torn_notes(int node)
{
    int torn = 0;
    for (struct conn *k = w.node[node].agent.conns; k; k = k->next)
        for (int i = 0; i < NOTES_MAX; i++)
            torn += k->life.rank == 3 && k->note[i].len && k->note[i].torn;
    return torn;
}

/* a copy has all chunks and its connection breaks, while the other one gets its last: the note is never cleared, and
 * says for ever that the whole copy is torn. */
static void test_aimed_put_is_complete_when_its_notes_are_cleared(void **state)
{
    (void)state;
    client_open();
    static keel_handle h;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, 64, &h), KEEL_OK);
    turns(20);
    w.node[0].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    turns(5); /* the second chunk is whole at node 1 */
    w.node[1].still = true;
    w.node[0].still = false;
    turns(5); /* both are at node 0 */
    tp_disconnect(c.connections.of[0].way.ep);
    turns(1);
    c.connections.of[0].way.retry_at = w.now + 100000000;
    w.node[1].still = false;
    turns(20);
    assert_int_equal(torn_notes(0), 1);
    assert_int_equal(h.opaque[0], 1);
    turns(2000);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(torn_notes(0) + torn_notes(1), 0);
}

/* a large put is complete; at that moment a connection breaks, with all that is on its way there. Another rank writes
 * the same bytes, one copy of them is half written, and both die: the other copy is whole, whatever a note of the
 * first one says. */
static void complete_then_torn(int lost_at, int torn_at)
{
    client_open();
    static keel_handle h;
    int64_t new = 0x7777777777777777, half = 0x7777777722222222;
    memset(big, 0x77, sizeof big);
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, 64, &h), KEEL_OK);
    turns(20);
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    for (int i = 0; i < 2000 && h.opaque[0]; i++)
        turns(1);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    for (struct conn *k = w.node[lost_at].agent.conns; k; k = k->next)
        if (k->life.rank == 3)
            agent_close_conn(&w.node[lost_at].agent, k);
    struct wire intent = rank_wire(&w.rank[2], WIRE_INTENT, SEG_SHADOW, 0, 0);
    intent.raw.count = sizeof big / 2;
    intent.raw.identity = 1;
    intent.raw.note = 1;
    rank_send(&w.rank[2], torn_at, intent, NULL);
    world_pump();
    memcpy(bytes_at(torn_at, SEG_SHADOW, 0) + 512, &half, 8);
    struct view_event dead[] = {{.type = VIEW_RANK_DEAD, .a = 3, .c = 9}, {.type = VIEW_RANK_DEAD, .a = 2, .c = 9}};
    change(dead, 2);
    restore();
    assert_true(copies_are_equal());
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 512), new);
}

static void test_aimed_complete_put_leaves_no_note(void **state)
{
    for (int i = 0; i < 4; i++) {
        if (i > 0) {
            client_close(state);
            setup(state);
        }
        complete_then_torn(i / 2, i % 2);
    }
}

/* a proposal that says that the writer gave up a put comes to nothing, and another put of it, that was under way, is
 * complete in the end: nothing of it is in doubt. */
static void test_aimed_complete_put_leaves_no_doubt(void **state)
{
    (void)state;
    client_open();
    static keel_handle h;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, 64, &h), KEEL_OK);
    turns(20);
    w.node[1].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    turns(3);
    assert_true(torn_notes(0) > 0);
    struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3}, left = {.type = VIEW_RANK_LEFT, .a = 1};
    w.node[1].still = false;
    world_prepare(&doubt, 1);
    assert_non_null(w.node[0].agent.repairs.doubts);
    w.epoch--; /* its coordinator died; another one proposes something else */
    change(&left, 1);
    turns(2000);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(torn_notes(0) + torn_notes(1), 0);
    for (int node = 0; node < 2; node++)
        for (const struct doubt *d = w.node[node].agent.repairs.doubts; d; d = d->next)
            assert_false(d->patch.torn);
}

/* a local compare-and-swap (public_rma.c: keel_compare_swap on an unreplicated part) against accumulates. The first one
 * goes to the agent, which so learns of them. */

/* the path to one copy is down; who has a note at the other copy waits behind who has none. */
static void test_aimed_who_has_begun_goes_before_who_waits(void **state)
{
    (void)state;
    enum { PUTS = NOTES_MAX + 20 };
    static keel_handle warm, h[PUTS];
    client_open();
    int64_t one = 1;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, &warm), KEEL_OK); /* links to 0 and 1 are up */
    turns(20);
    c.connections.of[1].way.state = WAY_CONNECTING; /* the path to the second copy is broken */
    for (int i = 0; i < PUTS; i++)
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 8 * (size_t)i, &one, NULL, 8, &h[i]), KEEL_OK);
    turns(100); /* all notes of the first copy are taken, and some puts wait for one */
    c.connections.of[1].way.state = WAY_UP;
    turns(500);
    for (int i = 0; i < PUTS; i++)
        assert_int_equal(h[i].opaque[0], 0);
}

/* this process did not run for longer than its operations may take. */
static void test_aimed_time_that_was_not_lived_does_not_count(void **state)
{
    (void)state;
    static keel_handle h;
    client_open();
    int64_t one = 1;
    w.node[1].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, &h), KEEL_OK);
    turns(5);
    w.now += 2 * c.timeout_ns;
    turns(2);
    w.node[1].still = false;
    turns(50);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
}

/* puts without a handle to two ranks; one of them fails, and a fence of the other. */
static void test_aimed_fence_of_a_rank_tells_of_its_own_errors(void **state)
{
    (void)state;
    client_open();
    c.timeout_ns = 10000000;
    int64_t one = 1;
    w.node[0].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, NULL), KEEL_OK); /* at nodes 0 and 1 */
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 1, 0, &one, NULL, 8, NULL), KEEL_OK); /* at nodes 1 and 2 */
    turns(30);
    assert_int_equal(rma_fence(&c, 1), KEEL_OK);
    assert_int_equal(rma_fence(&c, 0), KEEL_ERR_TIMEOUT);
    assert_int_equal(rma_fence(&c, 0), KEEL_OK);
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, NULL), KEEL_OK);
    turns(30);
    assert_int_equal(rma_fence(&c, -1), KEEL_ERR_TIMEOUT);
    assert_int_equal(rma_fence(&c, 0), KEEL_OK);
    w.node[0].still = false;
    turns(50);
}

/* an operation that gets no answer has the agent look whether that node lives; other nodes are not asked about. */
static void test_aimed_operation_without_answer_asks_whether_the_node_lives(void **state)
{
    (void)state;
    client_open();
    memset(asked, 0, sizeof asked);
    int64_t one = 1;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 1, 0, &one, NULL, 8, NULL), KEEL_OK); /* at nodes 1 and 2 */
    turns(200);
    assert_int_equal(asked[1] + asked[2], 0); /* they have answered */
    w.node[0].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &one, NULL, 8, NULL), KEEL_OK); /* at nodes 0 and 1 */
    turns(40);
    assert_int_equal(asked[0], 0); /* it may be busy */
    turns(160);
    assert_true(asked[0] >= 1);
    assert_int_equal(asked[2], 0);
    w.node[0].still = false;
    turns(50);
    assert_int_equal(rma_fence(&c, 0), KEEL_OK);
}

/* bytes of a repair that was given up come late. */
static void test_aimed_bytes_of_an_older_repair_change_nothing(void **state)
{
    (void)state;
    struct wire patch = {
        .type = WIRE_PATCH, .raw.slot = 0, .raw.seg = SEG_SHADOW, .raw.offset = 8, .len = 8, .raw.step = 1};
    int64_t old = 77;
    struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3};
    patch.raw.identity = copyset_at(0, SEG_SHADOW, 0)->generation;
    world_change(&doubt, 1);
    agent_tell(&w.node[0].agent, 1, &patch, &old);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 0);
    world_restore();
}

/* A node is frozen, declared dead, and wakes before the client's node has committed that, after another has. */
static void test_aimed_read_from_a_node_that_wakes_is_not_believed(void **state)
{
    (void)state;
    static keel_handle warm, h;
    client_open();
    int64_t got = 0, one = 1;
    struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 0};
    assert_int_equal(rma_start(&c, OP_GET, shadow, 0, 64, NULL, &got, 8, &warm),
                     KEEL_OK); /* the link to node 0 is up */
    turns(20);
    w.node[0].still = true;
    world_prepare(&dead, 1);
    world_pump();
    world_commit(1, &dead, 1);
    world_commit(2, &dead, 1);
    struct wire put = rank_wire(&w.rank[1], WIRE_PUT, SEG_SHADOW, 0, 64);
    put.flags = PUT_F_THROUGH;
    put.len = sizeof one;
    assert_int_equal(rank_ask(&w.rank[1], 1, put, &one), KEEL_OK);
    w.node[0].still = false;
    assert_int_equal(rma_start(&c, OP_GET, shadow, 0, 64, NULL, &got, 8, &h), KEEL_OK);
    turns(50);
    assert_true(h.opaque[0] != 0 || got == 1); /* not yet, or the new value */
    w.node[0].still = true;
    world_commit(3, &dead, 1);
    for (int node = 1; node < 4; node++)
        world_settle(node);
    turns(50);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal(got, 1);
    restore();
}

/* what is announced may be half received when the copyset changes: it must not go on under the next generation. */
static void test_aimed_announced_write_does_not_outlive_the_group(void **state)
{
    (void)state;
    struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 0};
    announce(&w.rank[2], 0, SEG_SHADOW, 0, 4096, 1, 0, 1);
    world_pump();
    world_change(&doubt, 1);
    assert_null(w.rank[2].ep[0]);
    assert_non_null(w.rank[2].ep[1]); /* nothing was announced there */
    assert_non_null(w.rank[1].ep[0]);
    world_restore();
}

/* a question of an older generation gets no answer: it would say of copies that are none any more that they agree. */
static void test_aimed_question_of_an_older_generation_is_not_answered(void **state)
{
    (void)state;
    struct wire ask = {
        .type = WIRE_COMPARE, .raw.slot = 0, .raw.seg = SEG_SHADOW, .raw.offset = 8, .len = 8, .raw.a = 1};
    struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3};
    int64_t zero = 0;
    ask.raw.identity = copyset_at(0, SEG_SHADOW, 0)->generation;
    world_change(&doubt, 1);
    uint64_t before = agent_position(&w.node[1].agent, 0);
    agent_tell(&w.node[0].agent, 1, &ask, &zero);
    world_pump();
    assert_int_equal(agent_position(&w.node[1].agent, 0), before);
    world_restore();
}

/* The same, and the provider still uses the request's memory when the connection is there again: asked again
 * afterwards. */

/* who leaves completes what has handles, too. */
static void test_aimed_who_leaves_completes_its_puts(void **state)
{
    (void)state;
    static keel_handle h;
    int64_t one = 1;
    client_open();
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 64, &one, NULL, 8, &h), KEEL_OK);
    assert_int_not_equal(h.opaque[0], 0);
    (void)client_leave(&c);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_true(copies_are_equal());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* the first: such lines are not said more than a few times in a while */
        cmocka_unit_test_setup_teardown(test_aimed_operation_without_answer_says_whose, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_waiting_in_line_is_planned_again, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_puts_begun_before_there_is_a_connection_end, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_and_small_puts_begun_before_there_is_a_connection_end, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_puts_begun_before_there_is_a_connection_end, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_goes_on_after_a_break, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_who_leaves_completes_its_puts, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_note_of_a_dead_copy_does_not_count, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_stale_note_does_not_condemn_the_whole_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_segment_freed_during_fetch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_doubt_told_late_counts_for_later_puts, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_given_up_again_and_again_gives_back_in_turn, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_given_up_put_through_the_primary_is_in_doubt, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_through_the_primary_is_open, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_notes_of_chunks_are_cleared_after_a_break, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_is_complete_when_its_notes_are_cleared, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_complete_put_leaves_no_note, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_complete_put_leaves_no_doubt, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_who_has_begun_goes_before_who_waits, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_time_that_was_not_lived_does_not_count, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_fence_of_a_rank_tells_of_its_own_errors, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_operation_without_answer_asks_whether_the_node_lives, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_bytes_of_an_older_repair_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_read_from_a_node_that_wakes_is_not_believed, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_announced_write_does_not_outlive_the_group, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_question_of_an_older_generation_is_not_answered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
