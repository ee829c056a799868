/* Aimed schedules, each of which once broke a promise: a client and several agents in one process, driven by hand. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "agents.h"
#include "memory.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/segments.h"
#include "runtime/client/client.h"
#include "runtime/protocol/collective_slot.h"
#include "runtime/protocol/task_id.h"
#include "runtime/transport/shm.h"

/* ---- a client (rank 3 on node 3) ---- */
static struct client c;
static struct tp *shm, *net;
static struct intent_page intents;
static bool tell_fails, map_fails;
static int told;
static uint64_t e_now(void *u)
{
    (void)u;
    return w.now;
}
static void e_sleep(void *u, int ms)
{
    (void)u, (void)ms;
    world_turn();
}
static void e_yield(void *u)
{
    (void)u;
}
static keel_status e_request(void *u, struct control *r, void **memory)
{
    (void)u;
    if (map_fails)
        return KEEL_ERR_NOMEM;
    struct store_copy *copy = store_copy(&w.node[3].agent.store, r->seg, r->slot);
    if (!copy || !copy->base)
        return KEEL_ERR_STATE;
    r->bytes = copy->bytes;
    *memory = copy->base;
    return KEEL_OK;
}
static void e_unmap(void *u, void *m, size_t b)
{
    (void)u, (void)m, (void)b;
}
static bool e_tell(void *u, const struct control *r)
{
    (void)u;
    told += r->type == CONTROL_DOUBT && !tell_fails;
    return !tell_fails;
}
static int gone_in; /* so many looks until the agent is gone, 0: it stays */
static bool e_gone(void *u)
{
    (void)u;
    return gone_in && --gone_in == 0;
}
static void e_copy(void *u, void *d, const void *s, size_t n)
{
    (void)u;
    memcpy(d, s, n);
}
static const struct client_env env = {NULL, e_now, e_sleep, e_yield, e_request, e_unmap, e_tell, e_gone, e_copy, 0, 0};
static struct keel_segment *triple, *shadow;

static void client_open(void)
{
    struct tp_config tp = {.host = "client"};
    tp_mem.open(&tp, &shm);
    tp_mem.open(&tp, &net);
    memset(&intents, 0, sizeof intents);
    struct control_welcome welcome = {.rank = 3, .size = 4, .node = 3, .job = 1, .secret = {4, 2}};
    assert_int_equal(client_init(&c, &env, &welcome, w.node[3].agent.page, &intents, net, shm), KEEL_OK);
    c.ready = true;
    c.timeout_ns = 30000000000ull;
    for (int k = 0; k < 4; k++)
        c.link[k].way.attempts = 1000;
    shadow = segment_attach(&c, SEG_SHADOW, SEG_BYTES, KEEL_REDUNDANCY_SHADOW);
    triple = segment_attach(&c, SEG_TRIPLE, SEG_BYTES, KEEL_REDUNDANCY_TRIPLE);
    tell_fails = false;
    told = 0;
}
/* agents turn, without the world's ranks: the client has the transport of rank 3. */
static void turns(int n)
{
    for (int i = 0; i < n; i++) {
        world_turn();
        pthread_mutex_lock(&c.lock);
        client_progress(&c);
        pthread_mutex_unlock(&c.lock);
    }
}
static void change(const struct view_event *e, int n)
{
    world_change(e, n);
}
static void restore(void)
{
    world_restore();
}

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
    return 0;
}

/* The client's operations end with it. */
static int client_close(void **state)
{
    pthread_mutex_lock(&c.lock);
    c.fatal = KEEL_ERR_FENCED;
    for (struct op *op = c.active, *next; op; op = next) {
        next = op->next;
        op_fail(op, c.fatal);
    }
    for (int i = 0; i < 1000 && c.active; i++)
        client_progress(&c);
    pthread_mutex_unlock(&c.lock);
    client_fini(&c);
    net->table->close(net);
    shm->table->close(shm);
    return teardown(state);
}

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
    tp_disconnect(c.link[1].way.ep); /* killed: the kernel resets its connections, and the view comes a little later */
    turns(30);
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = 1};
    change(&e, 1);
    restore();
    turns(20000); /* 20 s of virtual time */
    print_message("pending %d, active waiting %d\n", (int)h.opaque[0], c.active ? c.active->waiting : -1);
    assert_int_equal(h.opaque[0], 0);
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
    tp_disconnect(c.link[1].way.ep);
    turns(1);
    w.node[1].still = false;
    turns(20000);
    print_message("pending %d, notes %d\n", (int)h.opaque[0], c.active ? c.active->notes : -1);
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
    c.link[0].way.state = WAY_CONNECTING; /* the path from here to node 0 is broken for a while */
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 64, &one, NULL, 8, &h), KEEL_OK);
    turns(5); /* node 1 has answered */
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 64), 2);
    w.node[1].still = true;
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = 1};
    change(&e, 1);
    restore();
    const struct view_group *g = group_at(0, SEG_SHADOW, 0);
    int other = g->copy[1].node;
    assert_int_equal(other, 2);
    w.node[2].still = true;       /* slow */
    c.link[0].way.state = WAY_UP; /* the path works again */
    turns(50);
    print_message("pending %d notes %d word at 0: %ld, at the other: %ld\n", (int)h.opaque[0], c.active->notes,
                  (long)word_at(0, SEG_SHADOW, 0, 64), (long)word_at(other, SEG_SHADOW, 0, 64));
    assert_int_equal(h.opaque[0], 1);
    if (word_at(0, SEG_SHADOW, 0, 64) != word_at(other, SEG_SHADOW, 0, 64))
        assert_true(c.active->notes >= 2);
}

/* a note whose clearing was lost makes a whole copy look torn. */
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
        for (int at = 0; at < 2; at++) {
            world_close();
            world_open(4, 0, VIEW_DEGRADE);
            announce(&w.rank[3], 0, SEG_SHADOW, 0, 64, 1, 0, 1);
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
            struct proc proc = {.rank = at};
            struct control r = {.type = CONTROL_SEG_FREE, .seg = SEG_SHADOW, .b = 1};
            segments_free(&w.node[at].agent, &proc, &r);
            world_pump();
            world_restore();
            struct wire add = rank_wire(&w.rank[2], WIRE_RMW, 0, 0, 0); /* the system segment: the same group */
            add.epoch = w.node[0].agent.view.group[group_of(0, 1)].generation;
            add.a = 1;
            add.identity = 1;
            int status = rank_ask(&w.rank[2], 0, add, NULL);
            if (status != KEEL_OK) {
                print_message("freed at node %d after %d turns: %d\n", at, k, status);
                stuck++;
            }
        }
    assert_int_equal(stuck, 0);
}

/* the first forward ever to a middle copy that is cut off but not declared yet. */
static void test_aimed_forward_to_a_cut_off_copy_is_sent_again(void **state)
{
    (void)state;
    struct view_event dead = {.type = VIEW_NODE_DEAD, .a = 1}, left = {.type = VIEW_RANK_LEFT, .a = 2};
    w.node[1].still = true;
    world_prepare(&dead, 1); /* fences node 1 everywhere */
    world_pump();
    struct wire add = rank_wire(&w.rank[3], WIRE_RMW, SEG_TRIPLE, 0, 8);
    add.a = 5;
    add.identity = 1;
    int before = w.rank[3].replies;
    rank_send(&w.rank[3], 0, add, NULL); /* waits: frozen */
    world_pump();
    w.epoch--; /* its coordinator died; another one proposes something else for the slot */
    world_change(&left, 1);
    assert_int_equal(w.rank[3].replies, before);
    world_change(&dead, 1);
    print_message("answered %d, word at 0: %ld, at 2: %ld, whole %d\n", w.rank[3].replies - before,
                  (long)word_at(0, SEG_TRIPLE, 0, 8), (long)word_at(2, SEG_TRIPLE, 0, 8),
                  group_at(0, SEG_TRIPLE, 0)->copy[1].whole);
    if (w.rank[3].replies > before)
        assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 5);
    world_restore();
    assert_true(copies_are_equal());
}

/* an allocation after one that failed. */
static void test_aimed_allocation_after_a_failed_one(void **state)
{
    (void)state;
    struct proc proc = {.rank = 0, .id = 1, .next = w.node[0].agent.procs};
    struct agent *a = &w.node[0].agent;
    a->procs = &proc;
    struct control r = {.type = CONTROL_SEG_CREATE, .id = 1, .seg = 4, .bytes = 64, .redundancy = 1, .b = 1};
    memory_fail_at(4); /* the copy, behind the waiter and the segment */
    segments_create(a, &proc, &r);
    assert_true(memory_failed());
    assert_int_equal(w.answer.status, KEEL_ERR_NOMEM);
    r = (struct control){.type = CONTROL_SEG_CREATE, .id = 2, .seg = 4, .bytes = 64, .redundancy = 1, .b = 1};
    segments_create(a, &proc, &r);
    world_pump();
    print_message("status %d, freed %d\n", w.answer.status, (int)w.answer.a);
    a->procs = proc.next;
    assert_int_equal(w.answer.id, 2);
    if (w.answer.status == KEEL_OK)
        assert_non_null(store_find(&a->store, 4));
}

/* puts that are given up while the agent does not read its socket. */
static void test_aimed_doubt_told_late_counts_for_later_puts(void **state)
{
    (void)state;
    client_open();
    c.timeout_ns = 10000000;
    int64_t v = 1;
    static keel_handle h[3];
    w.node[1].still = true;
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 0, &v, NULL, 8, &h[0]), KEEL_OK);
    turns(20); /* put 0 given up; told, the message lies in the socket */
    assert_int_equal(told, 1);
    tell_fails = true; /* the socket is full */
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 8, &v, NULL, 8, &h[1]), KEEL_OK);
    turns(20);
    assert_int_equal(atomic_load(&intents.doubted), 2);
    /* the agent reads the first message now: it sees 2, and submits both; they are being committed */
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 16, &v, NULL, 8, &h[2]), KEEL_OK);
    turns(20);
    assert_int_equal((int64_t)h[2].opaque[1], KEEL_ERR_TIMEOUT);
    assert(c.given_up);
    int given = 0;
    for (struct given_up *g = c.given_up; g; g = g->next)
        given++;
    print_message("doubted %u, given up %d, the last is number %u\n", atomic_load(&intents.doubted), given,
                  c.given_up->number);
    assert_int_equal(c.given_up->number, 3);
}

/* a put through the primary is given up, its message is still on its way: nobody is told, and it takes effect over what another
 * rank has written since. */
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
    tp_disconnect(c.link[1].way.ep);
    w.node[1].still = false;
    turns(2000);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    int torn = 0;
    for (int node = 0; node < 2; node++)
        for (struct conn *k = w.node[node].agent.conns; k; k = k->next)
            for (int i = 0; i < NOTES_MAX; i++)
                torn += k->rank == 3 && k->note[i].len && k->note[i].torn;
    assert_int_equal(torn, 0);
}

static int torn_notes(int node)
{
    int torn = 0;
    for (struct conn *k = w.node[node].agent.conns; k; k = k->next)
        for (int i = 0; i < NOTES_MAX; i++)
            torn += k->rank == 3 && k->note[i].len && k->note[i].torn;
    return torn;
}

/* a copy has all chunks and its connection breaks, while the other one gets its last: the note is never cleared, and says for
 * ever that the whole copy is torn. */
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
    tp_disconnect(c.link[0].way.ep);
    turns(1);
    c.link[0].way.retry_at = w.now + 100000000;
    w.node[1].still = false;
    turns(20);
    assert_int_equal(torn_notes(0), 1);
    assert_int_equal(h.opaque[0], 1);
    turns(2000);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(torn_notes(0) + torn_notes(1), 0);
}

/* a large put is complete; at that moment a connection breaks, with all that is on its way there. Another rank writes the same
 * bytes, one copy of them is half written, and both die: the other copy is whole, whatever a note of the first one says. */
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
        if (k->rank == 3)
            agent_close_conn(&w.node[lost_at].agent, k);
    struct wire intent = rank_wire(&w.rank[2], WIRE_INTENT, SEG_SHADOW, 0, 0);
    intent.count = sizeof big / 2;
    intent.identity = 1;
    intent.note = 1;
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

/* a proposal that says that the writer gave up a put comes to nothing, and another put of it, that was under way, is complete in the
 * end: nothing of it is in doubt. */
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
    assert_non_null(w.node[0].agent.doubts);
    w.epoch--; /* its coordinator died; another one proposes something else */
    change(&left, 1);
    turns(2000);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(torn_notes(0) + torn_notes(1), 0);
    for (int node = 0; node < 2; node++)
        for (const struct doubt *d = w.node[node].agent.doubts; d; d = d->next)
            assert_false(d->patch.torn);
}

/* the same with a client. */
static void test_aimed_task_goes_on_after_a_lost_part(void **state)
{
    (void)state;
    world_kill_node(1);
    world_restore();
    for (int i = 0; i < 4; i++)
        if (i != 1) {
            assert_int_equal(store_define(&w.node[i].agent.store, 9, 64, 0, 0), KEEL_OK);
            assert_int_equal(segments_make_copies(&w.node[i].agent, store_find(&w.node[i].agent.store, 9)), KEEL_OK);
        }
    client_open();
    c.timeout_ns = 3000000000ull;
    struct keel_segment *lost = segment_attach(&c, SEG_NONE, SEG_BYTES, KEEL_REDUNDANCY_NONE),
                        *later = segment_attach(&c, 9, 64, KEEL_REDUNDANCY_NONE);
    c.in_task = true;
    c.task = task_id(77, 0);
    c.task_round = 1;
    double one = 1;
    assert_int_equal(rma_acc_double(&c, lost, 1, 0, 1, &one, 1), KEEL_OK); /* ignored */
    uint64_t from = w.now;
    assert_int_equal(rma_acc_double(&c, later, 1, 0, 1, &one, 1), KEEL_OK);
    assert_true(w.now - from < 1000000000);
}

/* a local compare-and-swap (public.c: keel_compare_swap on an unreplicated part) against accumulates. The first one goes to the
 * agent, which so learns of them. */
static _Atomic bool stop_cas;
static _Atomic long cas_done;
static void *cas_adds(void *at)
{
    _Atomic int64_t *word = at;
    while (!atomic_load(&stop_cas)) {
        int64_t before = atomic_load(word), after;
        double d;
        memcpy(&d, &before, 8);
        d += 1;
        memcpy(&after, &d, 8);
        cas_done += atomic_compare_exchange_strong(word, &before, after);
    }
    return NULL;
}
static void test_aimed_accumulate_is_atomic_against_local_atomics(void **state)
{
    (void)state;
    pthread_t t;
    const int n = 3000;
    double one[64], sum;
    for (int i = 0; i < 64; i++)
        one[i] = 1;
    struct wire first = rank_wire(&w.rank[0], WIRE_RMW, SEG_NONE, 0, 8 * 64);
    first.identity = 1;
    assert_int_equal(rank_ask(&w.rank[0], 0, first, NULL), KEEL_OK);
    assert_int_not_equal(w.rank[0].reply.epoch, 0); /* from here on ranks of that node do it themselves */
    pthread_create(&t, NULL, cas_adds, bytes_at(0, SEG_NONE, 0) + 8 * 33);
    while (atomic_load(&cas_done) == 0)
        sched_yield();
    for (int i = 0; i < n; i++) {
        struct wire acc = rank_wire(&w.rank[1], WIRE_ACC, SEG_NONE, 0, 0);
        acc.len = sizeof one;
        acc.count = KEEL_DOUBLE;
        acc.f = 1;
        acc.identity = (uint64_t)i + 1;
        rank_send(&w.rank[1], 0, acc, one);
        if (i % 32 == 31)
            world_pump();
    }
    world_pump();
    atomic_store(&stop_cas, true);
    pthread_join(t, NULL);
    memcpy(&sum, bytes_at(0, SEG_NONE, 0) + 8 * 33, 8);
    print_message("compare-and-swaps %ld + accumulates %d, there is %.0f\n", atomic_load(&cas_done), n, sum);
    assert_true((long)sum == atomic_load(&cas_done) + n);
}

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
    c.link[1].way.state = WAY_CONNECTING; /* the path to the second copy is broken */
    for (int i = 0; i < PUTS; i++)
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 0, 8 * (size_t)i, &one, NULL, 8, &h[i]), KEEL_OK);
    turns(100); /* all notes of the first copy are taken, and some puts wait for one */
    c.link[1].way.state = WAY_UP;
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

/* an operation of a task fails for want of memory at the n-th allocation, and another one follows. */
static void test_aimed_task_goes_on_after_an_operation_without_memory(void **state)
{
    (void)state;
    int failures = 0;
    client_open();
    c.timeout_ns = 3000000000ull;
    double one = 1, done = 0;
    c.in_task = true;
    c.task = task_id(77, 0);
    c.task_round = 1;
    assert_int_equal(rma_acc_double(&c, shadow, 0, 0, 1, &one, 1), KEEL_OK); /* what is made once is made */
    done++;
    for (long n = 1; n < 12; n++) {
        memory_fail_at(n);
        keel_status status = rma_acc_double(&c, shadow, 0, 0, 1, &one, 1);
        memory_failed();
        if (w.node[0].fatal || w.node[1].fatal)
            break; /* an agent could not tell the other: it ends, which is another test */
        assert_true(status == KEEL_OK || status == KEEL_ERR_NOMEM);
        failures += status != KEEL_OK;
        done += status == KEEL_OK;
        assert_int_equal(rma_acc_double(&c, shadow, 0, 0, 1, &one, 1), KEEL_OK);
        done++;
        double sum;
        memcpy(&sum, bytes_at(0, SEG_SHADOW, 0), sizeof sum);
        assert_true(sum == done);
    }
    assert_true(failures > 0);
}

/* the copy on this node cannot be mapped. */
static void test_aimed_copy_that_cannot_be_mapped_is_told(void **state)
{
    (void)state;
    client_open();
    struct keel_segment *none = segment_attach(&c, SEG_NONE, SEG_BYTES, KEEL_REDUNDANCY_NONE);
    int64_t one = 1;
    map_fails = true;
    uint64_t from = w.now;
    assert_int_equal(rma_put(&c, none, 3, 0, &one, 8), KEEL_ERR_NOMEM);
    assert_int_equal(rma_get(&c, none, 3, 0, &one, 8), KEEL_ERR_NOMEM);
    assert_true(w.now - from < 1000000000);
    map_fails = false;
    assert_int_equal(rma_put(&c, none, 3, 0, &one, 8), KEEL_OK);
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

/* a put and an addition on their way through a chain, of which the end has both, when the middle dies. */
static void test_aimed_chain_that_is_mended_repeats_all_or_nothing(void **state)
{
    (void)state;
    struct wire put = rank_wire(&w.rank[3], WIRE_PUT, SEG_TRIPLE, 0, 8), add = put;
    int64_t hundred = 100;
    put.flags = WIRE_F_THROUGH;
    put.len = sizeof hundred;
    add.type = WIRE_RMW;
    add.flags = 0;
    add.len = 0;
    add.a = 5;
    add.identity = 1;
    rank_send(&w.rank[3], 0, put, &hundred);
    rank_send(&w.rank[3], 0, add, NULL);
    for (int i = 0; i < 100 && word_at(2, SEG_TRIPLE, 0, 8) != 105; i++)
        world_turn();
    w.node[1].still = true;
    world_pump();
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 105);
    world_kill_node(1);
    assert_int_equal(word_at(0, SEG_TRIPLE, 0, 8), 105);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 105);
    world_restore();
    assert_true(copies_are_equal());
}

/* bytes of a repair that was given up come late. */
static void test_aimed_bytes_of_an_older_repair_change_nothing(void **state)
{
    (void)state;
    struct wire patch = {.type = WIRE_PATCH, .slot = 0, .seg = SEG_SHADOW, .offset = 8, .len = 8, .step = 1};
    int64_t old = 77;
    struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3};
    patch.identity = group_at(0, SEG_SHADOW, 0)->generation;
    world_change(&doubt, 1);
    agent_tell(&w.node[0].agent, 1, &patch, &old);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 0);
    world_restore();
}

/* one node has no memory for a segment that the others allocate: it says so to its own rank, and does not end. */
static void test_aimed_node_without_memory_for_a_segment_lets_its_rank_say_so(void **state)
{
    (void)state;
    struct agent *a = &w.node[1].agent;
    struct proc first = {.rank = 0, .id = 1}, here = {.rank = 1, .id = 2};
    w.node[0].agent.procs = &first;
    a->procs = &here;
    struct control r = {.type = CONTROL_SEG_CREATE, .id = 1, .seg = 4, .bytes = 64, .redundancy = 1, .b = 1};
    struct wire tell = {.type = WIRE_SEGMENT, .seg = 4, .a = 64, .b = 1, .identity = 1};
    memory_fail_at(3); /* the copy, behind the segment */
    segments_told(a, &tell);
    assert_true(memory_failed());
    assert_false(w.node[1].fatal);
    for (int node = 0; node < 4; node += 2)
        segments_told(&w.node[node].agent, &tell);
    memory_fail_at(2); /* behind the waiter */
    segments_create(a, &here, &r);
    assert_true(memory_failed());
    assert_int_equal(w.answer.status, KEEL_ERR_NOMEM);
    r = (struct control){.type = CONTROL_SEG_FREE, .seg = 4, .b = 1};
    segments_free(a, &here, &r); /* as all ranks do then */
    world_pump();
    for (int node = 0; node < 4; node++)
        assert_null(store_find(&w.node[node].agent.store, 4));
    w.node[0].agent.procs = a->procs = NULL;
}

/* the same, and the rank that would have said so dies: the node cannot keep its promise. */
static void test_aimed_node_without_memory_ends_if_nobody_says_so(void **state)
{
    (void)state;
    struct wire tell = {.type = WIRE_SEGMENT, .seg = 4, .a = 64, .b = 1, .identity = 1};
    memory_fail_at(3);
    segments_told(&w.node[1].agent, &tell);
    assert_true(memory_failed());
    assert_false(w.node[1].fatal);
    struct view_event dead = {.type = VIEW_RANK_DEAD, .a = 1, .c = 9};
    world_prepare(&dead, 1);
    world_pump();
    for (int node = 0; node < 4; node++) {
        memory_fail_at(node == 1 ? 1 : 0);
        world_commit(node, &dead, 1);
        memory_failed();
    }
    assert_true(w.node[1].fatal);
    w.node[1].still = true;
    world_kill_node(1);
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
    put.flags = WIRE_F_THROUGH;
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

/* what is announced may be half received when the group changes: it must not go on under the next generation. */
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

/* what is remembered of a pool's tasks goes when the pool is freed. */
static void test_aimed_freed_pool_leaves_no_records(void **state)
{
    (void)state;
    struct wire add = rank_wire(&w.rank[3], WIRE_RMW, SEG_SHADOW, 0, 8);
    size_t before[2];
    for (int node = 0; node < 2; node++)
        before[node] = dedup_bytes(&w.node[node].agent.dedup[group_of(0, 1)]);
    add.flags = WIRE_F_TASK;
    add.a = 1;
    add.identity = task_id(SEG_TRIPLE, 0); /* as if that segment were the pool */
    add.round = 1;
    assert_int_equal(rank_ask(&w.rank[3], 0, add, NULL), KEEL_OK);
    assert_true(dedup_bytes(&w.node[1].agent.dedup[group_of(0, 1)]) > before[1]);
    struct proc proc = {.rank = 0};
    struct control r = {.type = CONTROL_SEG_FREE, .seg = SEG_TRIPLE, .b = 1};
    segments_free(&w.node[0].agent, &proc, &r);
    world_pump();
    for (int node = 0; node < 2; node++)
        assert_int_equal(dedup_bytes(&w.node[node].agent.dedup[group_of(0, 1)]), before[node]);
}

/* a question of an older generation gets no answer: it would say of copies that are none any more that they agree. */
static void test_aimed_question_of_an_older_generation_is_not_answered(void **state)
{
    (void)state;
    struct wire ask = {.type = WIRE_COMPARE, .slot = 0, .seg = SEG_SHADOW, .offset = 8, .len = 8, .a = 1};
    struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3};
    int64_t zero = 0;
    ask.identity = group_at(0, SEG_SHADOW, 0)->generation;
    world_change(&doubt, 1);
    uint64_t before = agent_position(&w.node[1].agent, 0);
    agent_tell(&w.node[0].agent, 1, &ask, &zero);
    world_pump();
    assert_int_equal(agent_position(&w.node[1].agent, 0), before);
    world_restore();
}

/* an agent that could not tell something answers nobody. */
static void test_aimed_agent_without_memory_answers_nobody(void **state)
{
    (void)state;
    assert_non_null(w.rank[2].ep[0]);
    agent_break(&w.node[0].agent, "out of memory, says the test");
    world_pump();
    assert_null(w.rank[2].ep[0]);
    assert_int_equal(rank_put(&w.rank[2], 0, SEG_SHADOW, 0, 8, 1, 1), -1000);
    w.node[0].still = true;
}

/* The last copy has what it is to answer for the primary, and the connection that the answer leaves by breaks. */
static void test_aimed_answer_of_the_last_copy_is_lost(void **state)
{
    (void)state;
    client_open();
    static keel_handle h;
    int64_t one = 1;
    for (int i = 0; i < 2; i++) { /* links to nodes 2 and 3 */
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 2 + i, 64, &one, NULL, 8, &h), KEEL_OK);
        turns(50);
        assert_int_equal(h.opaque[0], 0);
    }
    w.node[3].still = true;
    assert_int_equal(rma_acc_nb(&c, shadow, 2, 0, KEEL_INT64, NULL, &one, 1, &h), KEEL_OK);
    turns(5); /* node 2 has passed it on */
    assert_int_equal(word_at(2, SEG_SHADOW, 2, 0), 1);
    for (struct conn *k = w.node[3].agent.conns; k; k = k->next)
        if (k->rank == 3)
            tp_disconnect(k->ep);
    w.node[3].still = false;
    turns(5000); /* 5 s of virtual time */
    assert_int_equal(word_at(3, SEG_SHADOW, 2, 0), 1);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
}

/* The same, and the provider still uses the request's memory when the connection is there again: asked again afterwards. */
static struct tp_op *kept;
static keel_status send_that_keeps(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                                   struct tp_op *op)
{
    if (op)
        kept = op;
    return tp_mem.send(ep, header, hlen, body, len, NULL);
}

static void test_aimed_answer_is_lost_of_a_request_still_in_use(void **state)
{
    (void)state;
    enum { WORDS = 1500 };
    static int64_t ones[WORDS];
    static keel_handle h;
    struct tp_table table = tp_mem;
    table.send = send_that_keeps;
    for (int i = 0; i < WORDS; i++)
        ones[i] = 1;
    client_open();
    for (int i = 0; i < 2; i++) { /* links to nodes 2 and 3 */
        assert_int_equal(rma_start(&c, OP_PUT, shadow, 2 + i, 65536, ones, NULL, 8, &h), KEEL_OK);
        turns(50);
        assert_int_equal(h.opaque[0], 0);
    }
    w.node[3].still = true;
    net->table = &table;
    assert_int_equal(rma_acc_nb(&c, shadow, 2, 0, KEEL_INT64, NULL, ones, WORDS, &h), KEEL_OK);
    net->table = &tp_mem;
    assert_non_null(kept);
    turns(5);
    for (struct conn *k = w.node[3].agent.conns; k; k = k->next)
        if (k->rank == 3)
            tp_disconnect(k->ep);
    w.node[3].still = false;
    turns(500);
    assert_int_not_equal(h.opaque[0], 0);
    op_access_done(kept->user, KEEL_OK);
    turns(5000);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(word_at(2, SEG_SHADOW, 2, 0), 1);
    assert_int_equal(word_at(3, SEG_SHADOW, 2, 8 * (uint64_t)(WORDS - 1)), 1);
}

/* A task is run again by a rank that has another way to the primary: its accumulates must be cut into the same steps. */
static void test_aimed_task_run_again_beside_the_primary_counts_once(void **state)
{
    (void)state;
    enum { WORDS = 8192 }; /* one message between nodes, four within one */
    static int64_t ones[WORDS];
    for (int i = 0; i < WORDS; i++)
        ones[i] = 1;
    client_open();
    c.in_task = true;
    c.task = task_id(77, 0);
    c.task_round = 1;
    assert_int_equal(rma_acc(&c, shadow, 2, 0, KEEL_INT64, NULL, ones, WORDS), KEEL_OK);
    world_kill_node(2);
    world_restore();
    assert_int_equal(group_at(3, SEG_SHADOW, 2)->copy[0].node, 3);
    c.task_groups = 0; /* another rank takes it over, and runs it from the beginning */
    assert_int_equal(rma_acc(&c, shadow, 2, 0, KEEL_INT64, NULL, ones, WORDS), KEEL_OK);
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(word_at(3, SEG_SHADOW, 2, 8 * (uint64_t)i), 1);
}

/* One request of a rank waits for a view that is being prepared, and the rank is in that view's successor, as dead. */
static void test_aimed_what_the_dead_have_asked_for_is_not_executed(void **state)
{
    (void)state;
    const struct view_event first = {.type = VIEW_RANK_LEFT, .a = 1}, dead = {.type = VIEW_RANK_DEAD, .a = 2, .c = 9};
    struct wire add = rank_wire(&w.rank[2], WIRE_RMW, SEG_NONE, 0, 8);
    add.a = 5;
    add.identity = 1;
    world_prepare(&first, 1);
    rank_send(&w.rank[2], 0, add, NULL);
    world_pump();
    assert_non_null(w.node[0].agent.stash);
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    world_pump();
    assert_int_equal(word_at(0, SEG_NONE, 0, 8), 0);
    assert_null(w.node[0].agent.stash);
    world_restore();
}

/* an agent that could not tell something tells nothing that follows it. */
static void test_aimed_agent_without_memory_tells_nothing_more(void **state)
{
    (void)state;
    struct agent *a = &w.node[0].agent;
    struct wire forward = {.type = WIRE_FORWARD, .seg = SEG_SHADOW, .offset = 8, .len = 8, .count = WIRE_PUT};
    int64_t value = 7;
    uint64_t before = agent_position(a, 1);
    memory_fail_at(1);
    assert_int_equal(agent_tell(a, 1, &forward, &value), 0);
    assert_true(memory_failed());
    assert_true(w.node[0].fatal);
    assert_int_equal(agent_tell(a, 1, &forward, &value), 0);
    assert_int_equal(agent_position(a, 1), before);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 0);
    w.node[0].still = true;
}

/* a task is open: drawing from any pool would end what protects its accumulates. */
static void test_aimed_no_task_is_drawn_inside_a_task(void **state)
{
    (void)state;
    int64_t task;
    client_open();
    c.resumed = true;
    c.in_task = true;
    assert_int_equal(task_next(&c, (keel_taskpool *)&task, &task), KEEL_ERR_STATE);
    assert_true(c.in_task);
}

static int64_t contributed(uint64_t instance)
{
    int64_t value;
    memcpy(&value,
           bytes_at(3, SYSTEM_SEGMENT, 3) + (instance & 1) * sizeof(struct collective_slot) +
               offsetof(struct collective_slot, data),
           sizeof value);
    return value;
}

/* a rank that began again does not change what its predecessor had contributed: some may have read it. */
static void test_aimed_contribution_of_a_dead_process_stays(void **state)
{
    (void)state;
    int64_t first = 111, second = 222;
    client_open();
    assert_int_equal(collective_contribute(&c, 1, &first, sizeof first), KEEL_OK);
    c.restarted = true;
    assert_int_equal(collective_contribute(&c, 1, &second, sizeof second), KEEL_OK);
    assert_int_equal(contributed(1), first);
    c.instance++; /* the others went on, and so does it */
    assert_int_equal(collective_contribute(&c, 1, &second, sizeof second), KEEL_OK);
    assert_int_equal(contributed(2), second);
}

/* nobody else could tell the others that a rank has no memory to take part. */
static void test_aimed_contribution_waits_for_memory(void **state)
{
    (void)state;
    int64_t value = 111, got;
    client_open();
    assert_int_equal(rma_get_strong(&c, shadow, 3, 0, &got, sizeof got), KEEL_OK); /* the link is there */
    free(c.free_pieces);
    c.free_pieces = NULL;
    memory_fail_at(1);
    assert_int_equal(collective_contribute(&c, 1, &value, sizeof value), KEEL_OK);
    assert_true(memory_failed());
    assert_int_equal(contributed(1), value);
}

/* what an implicit operation met is everybody's error, and no reason to stay away. */
static void test_aimed_allocation_tells_all_what_one_met(void **state)
{
    (void)state;
    keel_segment *s;
    client_open();
    op_keep_error(&c, 0, KEEL_ERR_TIMEOUT);
    gone_in = 50; /* the others never come */
    assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_ERR_AGENT_GONE);
    gone_in = 0;
    int32_t made;
    memcpy(&made,
           bytes_at(3, SYSTEM_SEGMENT, 3) + sizeof(struct collective_slot) + offsetof(struct collective_slot, data) +
               16,
           sizeof made);
    assert_int_equal(made, KEEL_ERR_TIMEOUT);
}

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

/* To the own agent there is a ring (transport/shm.c), whose limit is its own. */
static keel_status ring_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                             struct tp_op *op)
{
    if (ep == c.link[3].way.ep && hlen + len > TP_SHM_MAX)
        return KEEL_ERR_ARG;
    return tp_mem.send(ep, header, hlen, body, len, op);
}

/* The primary of a large accumulate dies, and the rank's own node comes to take its place: with the next copy, or after further
 * deaths with one that was filled meanwhile. What was cut for a node elsewhere goes there as it is, to be recognised. */
static void large_accumulate_goes_on_at_the_own_node(int slot, int deaths)
{
    enum { WORDS = 8192 };
    static int64_t ones[WORDS];
    static keel_handle h;
    struct tp_table table = tp_mem;
    for (int i = 0; i < WORDS; i++)
        ones[i] = 1;
    table.send = ring_send;
    client_open();
    net->table = &table;
    for (int i = 0; i < 2; i++) { /* links to the primary and to node 3 */
        assert_int_equal(rma_start(&c, OP_PUT, shadow, i ? 3 : slot, WORDS * 8, ones, NULL, 8, &h), KEEL_OK);
        turns(50);
        assert_int_equal(h.opaque[0], 0);
    }
    w.node[slot].still = true;
    assert_int_equal(rma_acc_nb(&c, shadow, slot, 0, KEEL_INT64, NULL, ones, WORDS, &h), KEEL_OK);
    turns(5);
    for (int i = 0; i < deaths; i++) {
        int primary = group_at(3, SEG_SHADOW, slot)->copy[0].node;
        world_kill_node(primary);
        if (c.link[primary].way.ep)
            tp_disconnect(c.link[primary].way.ep);
        world_restore();
    }
    assert_int_equal(group_at(3, SEG_SHADOW, slot)->copy[0].node, 3);
    turns(5000); /* 5 s of virtual time */
    net->table = &tp_mem;
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(word_at(3, SEG_SHADOW, slot, 8 * (uint64_t)i), 1);
}

static void test_aimed_large_accumulate_goes_on_at_the_own_node(void **state)
{
    (void)state;
    large_accumulate_goes_on_at_the_own_node(2, 1);
}

static void test_aimed_large_accumulate_goes_on_at_the_own_node_that_had_no_copy(void **state)
{
    (void)state;
    large_accumulate_goes_on_at_the_own_node(1, 3);
}

/* ---- a large put that is cut off ---- */

/* The first so many remote writes are whole, those after them change half a word and never end. */
enum { HALVES_MAX = 64 };
static struct {
    int whole, kept;
    uint32_t seg;
    struct tp_op *op[HALVES_MAX];
} halves;

static keel_status write_half(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                              struct tp_op *op)
{
    int node = 0;
    if (halves.whole-- > 0)
        return tp_mem.write(ep, src, len, key, offset, op);
    while (c.link[node].way.ep != ep)
        node++;
    memcpy(bytes_at(node, halves.seg, 0) + offset, src, 4);
    assert_true(halves.kept < HALVES_MAX);
    halves.op[halves.kept++] = op;
    return KEEL_OK;
}

enum cut_end { WRITER_ALONE, TOGETHER, WRITER_FIRST, NODE_FIRST };

static void cut_deaths(int node, enum cut_end end, bool with_its_node)
{
    struct view_event writer = {.type = VIEW_RANK_DEAD, .a = 3, .c = 9},
                      copy = {.type = VIEW_NODE_DEAD, .a = (uint32_t)node};
    if (with_its_node)
        writer = (struct view_event){.type = VIEW_NODE_DEAD, .a = 3};
    struct view_event both[] = {writer, copy};
    bool one_by_one = end == WRITER_FIRST || end == NODE_FIRST;
    w.node[3].still = with_its_node && end != NODE_FIRST;
    w.node[node < 0 ? 3 : node].still |= node >= 0 && end != WRITER_FIRST;
    if (end == WRITER_ALONE || end == TOGETHER)
        change(both, end == TOGETHER ? 2 : 1);
    else
        change(end == WRITER_FIRST ? &writer : &copy, 1);
    restore();
    w.node[3].still = with_its_node;
    w.node[node < 0 ? 3 : node].still |= node >= 0;
    if (one_by_one)
        change(end == WRITER_FIRST ? &copy : &writer, 1);
    restore();
}

/* The put to slot 0, whose copies are on nodes 0 and 1, and 2 with three, is cut off behind so many writes; its writer dies, and
 * the node of one copy, in this order. False: it was complete before. */
static bool cut_off(uint32_t seg, int whole, int node, enum cut_end end, bool with_its_node)
{
    static keel_handle h;
    struct tp_table table = tp_mem;
    table.write = write_half;
    client_open();
    struct keel_segment *s = seg == SEG_TRIPLE ? triple : shadow;
    memset(big, 0x11, sizeof big);
    assert_int_equal(rma_start(&c, OP_PUT, s, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    for (int i = 0; i < 2000 && h.opaque[0]; i++)
        turns(1);
    assert_int_equal(h.opaque[0], 0);
    memset(&halves, 0, sizeof halves);
    halves.whole = whole;
    halves.seg = seg;
    net->table = &table;
    memset(big, 0x77, sizeof big);
    assert_int_equal(rma_start(&c, OP_PUT, s, 0, 0, big, NULL, sizeof big, &h), KEEL_OK);
    turns(100);
    net->table = &tp_mem;
    bool cut = halves.kept > 0;
    cut_deaths(node, end, with_its_node);
    if (!copies_are_equal())
        fail_msg("%d writes, node %d, %d, %d: copies differ", whole, node, end, with_its_node);
    int at = group_at(node == 1 ? 2 : 1, seg, 0)->copy[0].node;
    for (uint64_t i = 0; i < sizeof big; i += 8) {
        int64_t word = word_at(at, seg, 0, i);
        if (word != 0x1111111111111111 && word != 0x7777777777777777)
            fail_msg("%d writes, node %d, %d, %d: the word at %llu is %llx", whole, node, end, with_its_node,
                     (unsigned long long)i, (unsigned long long)word);
    }
    pthread_mutex_lock(&c.lock);
    c.fatal = KEEL_ERR_FENCED;
    for (int i = 0; i < halves.kept; i++)
        op_access_done(halves.op[i]->user, KEEL_ERR_LINK);
    pthread_mutex_unlock(&c.lock);
    return cut;
}

static void cut_everywhere(void **state, uint32_t seg, int node, enum cut_end end, int spares)
{
    for (int its_node = 0; its_node < 2; its_node++) {
        int whole = 0;
        bool cut;
        do {
            c.link ? client_close(state) : teardown(state);
            world_open(4, spares, spares ? VIEW_SUBSTITUTE : VIEW_DEGRADE);
            cut = cut_off(seg, whole, node, end, its_node);
            whole++;
        } while (cut);
        assert_int_equal(whole - 1, seg == SEG_TRIPLE ? 9 : 4); /* so many writes there are */
    }
}

/* a large put is cut off between any two of its writes, and in each of them: what is there of it are whole words. */
static void test_aimed_large_put_cut_off_leaves_whole_words(void **state)
{
    cut_everywhere(state, SEG_SHADOW, -1, WRITER_ALONE, 0);
    cut_everywhere(state, SEG_TRIPLE, -1, WRITER_ALONE, 0);
}

/* the same, and the node of a copy dies with the writer: of three copies one is whole among those left. */
static void test_aimed_large_put_cut_off_together_with_a_copy(void **state)
{
    for (int node = 0; node < 3; node++)
        cut_everywhere(state, SEG_TRIPLE, node, TOGETHER, 0);
}

static void test_aimed_large_put_cut_off_before_a_copy_dies(void **state)
{
    for (int node = 0; node < 3; node++)
        cut_everywhere(state, SEG_TRIPLE, node, WRITER_FIRST, 0);
}

/* a copy dies, the others are made equal and a new one filled, and the writer has not come to repeat anything when it dies. */
static void test_aimed_large_put_cut_off_after_a_copy_died(void **state)
{
    for (int node = 0; node < 3; node++)
        for (int spares = 0; spares < 2; spares++)
            cut_everywhere(state, SEG_TRIPLE, node, NODE_FIRST, spares);
}

/* ---- a process that stands still in the middle of its stores ---- */

enum {
    STILL_OFFSET = 96 * 1024 + 4,
    STILL_LEN = 200 * 1024,
    STILL_WORD = STILL_OFFSET + 100 * 1024 + 4,
    STILL_SUM = 128 * 1024
};
enum still_end { GOES_ON, DIES, ITS_NODE_DIES, THIRD_DIES_FIRST, THIRD_DIES_THEN_IT };
static const int64_t still_old = 0x1111111111111111, still_torn = 0x1111111177777777;

/* Rank 0 stores to the copy on its own node, the others have nothing of it yet. Its agent knows that from the page of intents. */
static struct proc *stand_still(struct intent_page *page)
{
    static struct control_welcome welcome;
    struct proc *proc = ranks_started(&w.node[0].agent, 1);
    memset(page, 0, sizeof *page);
    assert_non_null(ranks_conn(&w.node[0].agent, proc));
    ranks_welcome(&w.node[0].agent, proc, 0, 0, NULL, page, &welcome);
    for (int node = 0; node < 3; node++)
        memcpy(bytes_at(node, SEG_TRIPLE, 0) + STILL_WORD, &still_old, 8);
    memcpy(bytes_at(0, SEG_TRIPLE, 0) + STILL_WORD, &still_torn, 8);
    page->entry[3] =
        (struct intent){.active = 1, .seg = SEG_TRIPLE, .slot = 0, .offset = STILL_OFFSET, .len = STILL_LEN};
    return proc;
}

/* What others add within the range meanwhile, which is wider than what is torn. */
static void add_while_filled(int *sum)
{
    struct wire add = rank_wire(&w.rank[3], WIRE_RMW, SEG_TRIPLE, 0, STILL_SUM);
    add.a = 1;
    add.identity = (uint64_t)++ * sum;
    rank_send(&w.rank[3], 0, add, NULL);
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
    add_while_filled(&sum); /* before the repair begins, and while it goes on */
    for (int i = 0; i < 12; i++) {
        world_turn();
        add_while_filled(&sum);
    }
    world_pump();
    world_restore();
    assert_int_equal(word_at(0, SEG_TRIPLE, 0, STILL_SUM), sum);
    assert_true(word_at(0, SEG_TRIPLE, 0, STILL_WORD) == still_torn); /* the process may go on with its stores */
    if (end == THIRD_DIES_FIRST || end == THIRD_DIES_THEN_IT) {
        world_kill_node(third);
        world_restore();
    }
    if (end == GOES_ON) {
        int64_t value = 0x7777777777777777;
        for (int i = 0; i < w.nodes + w.spares; i++)
            if (view_copy_at(group_at(0, SEG_TRIPLE, 0), i) >= 0)
                memcpy(bytes_at(i, SEG_TRIPLE, 0) + STILL_WORD, &value, 8);
        atomic_store(&page.entry[3].active, 0);
    } else if (end == DIES || end == THIRD_DIES_THEN_IT) {
        ranks_exited(&w.node[0].agent, proc, 0, 9);
    } else {
        world_kill_node(0);
    }
    world_restore();
    int at = end == GOES_ON || end == DIES || end == THIRD_DIES_THEN_IT ? 0 : group_at(3, SEG_TRIPLE, 0)->copy[0].node;
    if (!copies_are_equal())
        fail_msg("copy %d, %d, %d spares: copies differ", copy, end, spares);
    int64_t word = word_at(at, SEG_TRIPLE, 0, STILL_WORD);
    if (word != still_old && (end != GOES_ON || word != 0x7777777777777777))
        fail_msg("copy %d, %d, %d spares: the word is %llx", copy, end, spares, (unsigned long long)word);
    assert_int_equal(word_at(at, SEG_TRIPLE, 0, STILL_SUM), sum);
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
        cmocka_unit_test_setup_teardown(test_aimed_put_waiting_in_line_is_planned_again, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_goes_on_after_a_break, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_answer_of_the_last_copy_is_lost, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_answer_is_lost_of_a_request_still_in_use, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_accumulate_goes_on_at_the_own_node, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_what_the_dead_have_asked_for_is_not_executed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_agent_without_memory_tells_nothing_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_no_task_is_drawn_inside_a_task, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_who_leaves_completes_its_puts, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_contribution_of_a_dead_process_stays, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_contribution_waits_for_memory, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_allocation_tells_all_what_one_met, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_accumulate_goes_on_at_the_own_node_that_had_no_copy, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_run_again_beside_the_primary_counts_once, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_note_of_a_dead_copy_does_not_count, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_stale_note_does_not_condemn_the_whole_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_segment_freed_during_fetch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_forward_to_a_cut_off_copy_is_sent_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_allocation_after_a_failed_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_doubt_told_late_counts_for_later_puts, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_given_up_put_through_the_primary_is_in_doubt, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_through_the_primary_is_open, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_notes_of_chunks_are_cleared_after_a_break, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_is_complete_when_its_notes_are_cleared, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_complete_put_leaves_no_note, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_complete_put_leaves_no_doubt, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_goes_on_after_a_lost_part, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_accumulate_is_atomic_against_local_atomics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_who_has_begun_goes_before_who_waits, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_time_that_was_not_lived_does_not_count, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_goes_on_after_an_operation_without_memory, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_copy_that_cannot_be_mapped_is_told, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_fence_of_a_rank_tells_of_its_own_errors, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_chain_that_is_mended_repeats_all_or_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_bytes_of_an_older_repair_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_node_without_memory_for_a_segment_lets_its_rank_say_so, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_aimed_node_without_memory_ends_if_nobody_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_read_from_a_node_that_wakes_is_not_believed, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_announced_write_does_not_outlive_the_group, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_freed_pool_leaves_no_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_question_of_an_older_generation_is_not_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_leaves_whole_words, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_together_with_a_copy, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_before_a_copy_dies, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_put_cut_off_after_a_copy_died, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_process_standing_still_tears_no_copy_that_is_filled, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_aimed_route_that_is_gone_is_not_stored_under, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_agent_without_memory_answers_nobody, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
