/* Aimed schedules of allocations, and of agents and ranks that have no memory for something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aimed.h"
#include "memory.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/segments.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/op/mutex.h"
#include "runtime/client/op/mutex_int.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/complete.h"
#include "runtime/wire/system.h"

/* an allocation after one that failed. */
static void test_aimed_allocation_after_a_failed_one(void **state)
{
    (void)state;
    struct proc proc = {.life.rank = 0, .id = 1, .next = w.node[0].agent.ranks.procs};
    struct agent *a = &w.node[0].agent;
    a->ranks.procs = &proc;
    struct control r = {.type = CONTROL_SEG_CREATE, .id = 1, .seg = 4, .bytes = 64, .redundancy = 1, .b = 1};
    memory_fail_at(4); /* the copy, behind the waiter and the segment */
    segments_create(a, &proc, &r);
    assert_true(memory_failed());
    assert_int_equal(w.answer.status, KEEL_ERR_NOMEM);
    r = (struct control){.type = CONTROL_SEG_CREATE, .id = 2, .seg = 4, .bytes = 64, .redundancy = 1, .b = 1};
    segments_create(a, &proc, &r);
    world_pump();
    print_message("status %d, freed %d\n", w.answer.status, (int)w.answer.a);
    a->ranks.procs = proc.next;
    assert_int_equal(w.answer.id, 2);
    if (w.answer.status == KEEL_OK)
        assert_non_null(store_find(&a->store, 4));
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

/* one node has no memory for a segment that the others allocate: it says so to its own rank, and does not end. */
static void test_aimed_node_without_memory_for_a_segment_lets_its_rank_say_so(void **state)
{
    (void)state;
    struct agent *a = &w.node[1].agent;
    struct proc first = {.life.rank = 0, .id = 1}, here = {.life.rank = 1, .id = 2};
    w.node[0].agent.ranks.procs = &first;
    a->ranks.procs = &here;
    struct control r = {.type = CONTROL_SEG_CREATE, .id = 1, .seg = 4, .bytes = 64, .redundancy = 1, .b = 1};
    struct wire tell = {.type = WIRE_SEGMENT, .raw.seg = 4, .raw.a = 64, .raw.b = 1, .raw.identity = 1};
    memory_fail_at(3); /* the copy, behind the segment */
    segments_told(a, 0, &tell);
    assert_true(memory_failed());
    assert_false(w.node[1].fatal);
    for (int node = 0; node < 4; node += 2)
        segments_told(&w.node[node].agent, 0, &tell);
    memory_fail_at(2); /* behind the waiter */
    segments_create(a, &here, &r);
    assert_true(memory_failed());
    assert_int_equal(w.answer.status, KEEL_ERR_NOMEM);
    r = (struct control){.type = CONTROL_SEG_FREE, .seg = 4, .b = 1};
    segments_free(a, &here, &r); /* as all ranks do then */
    world_pump();
    for (int node = 0; node < 4; node++)
        assert_null(store_find(&w.node[node].agent.store, 4));
    w.node[0].agent.ranks.procs = a->ranks.procs = NULL;
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

/* an agent that could not tell something tells nothing that follows it. */
static void test_aimed_agent_without_memory_tells_nothing_more(void **state)
{
    (void)state;
    struct agent *a = &w.node[0].agent;
    struct wire forward = {
        .type = WIRE_FORWARD, .raw.seg = SEG_SHADOW, .raw.offset = 8, .len = 8, .raw.count = WIRE_PUT};
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

/* Of those that the client has ready. */
static void keep_pieces(int n)
{
    struct piece **at = &c.ops.free_pieces;
    for (; *at && n > 0; n--)
        at = &(*at)->next;
    for (struct piece *p; (p = *at) != NULL; free(p))
        *at = p->next;
}

static keel_status (*request_before)(void *u, struct control *r, void **memory);
static struct control last_told, last_created;
static int created;
static uint64_t complete_then; /* when the agent was told */
static int asked_about;        /* what a segment came to was asked about, so often */
static bool shows;             /* the agent says what all know as soon as it is told, and takes what it is told */
static keel_status request_of_one_alone(void *u, struct control *r, void **memory)
{
    if (r->type == CONTROL_SEG_MAP)
        return request_before(u, r, memory);
    asked_about += r->type == CONTROL_SEG_FREE;
    created += r->type == CONTROL_SEG_CREATE;
    if (r->type == CONTROL_SEG_CREATE)
        last_created = *r;
    if (r->type == CONTROL_SEG_CREATE && shows)
        atomic_store(&intents.known, KNOWN_MADE(r->b));
    return KEEL_OK;
}

static bool tell_of_one_alone(void *u, const struct control *r)
{
    (void)u;
    last_told = *r;
    complete_then = atomic_load(&intents.segments);
    if (shows)
        atomic_store(&intents.known, KNOWN_ENDED(r->b));
    return shows;
}

/* The other ranks are dead: it decides alone. */
static void client_open_alone(void)
{
    struct view_event dead[3];
    for (uint32_t r = 0; r < 3; r++)
        dead[r] = (struct view_event){.type = VIEW_RANK_DEAD, .a = r, .c = 9};
    change(dead, 3);
    client_open();
    request_before = c.env.request;
    c.env.request = request_of_one_alone;
    c.env.tell = tell_of_one_alone;
    shows = true;
    asked_about = 0;
}

/* what an implicit operation met is everybody's error, and no reason to stay away; it counts when the agents know,
 * at the latest with the next call. */
static void test_aimed_allocation_tells_all_what_one_met(void **state)
{
    (void)state;
    keel_segment *s;
    client_open_alone();
    uint32_t index = c.segments.next;
    errors_keep(&c.ops.errors, 0, KEEL_ERR_TIMEOUT);
    complete_then = 77;
    assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_ERR_TIMEOUT);
    assert_null(s);
    assert_false(c.segments.unfinished.under_way);
    assert_int_equal(last_told.seg, index);
    assert_int_equal(last_told.a, KEEL_ERR_TIMEOUT);
    assert_int_equal(last_told.b, 1);
    assert_int_equal(complete_then, 0);
    assert_int_equal(atomic_load(&intents.segments), 0);
    assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_OK);
    assert_int_equal(last_created.b, 2);
    assert_int_equal(last_created.a, 1);
    assert_int_equal(s->index, index + 1);
    assert_int_equal(atomic_load(&intents.segments), 2);
    assert_int_equal(segment_free(&c, s), KEEL_OK);
    assert_int_equal(complete_then, 2);
    assert_int_equal(atomic_load(&intents.segments), 2);
    assert_int_equal(collective_barrier(&c), KEEL_OK);
    assert_int_equal(atomic_load(&intents.segments), 3);
    assert_int_equal(asked_about, 0);
}

/* some agent does not know it when the next collective of all live ranks begins: that is asked for, and answered when
 * it does; so is what the agent cannot be told at once. */
static void test_aimed_next_collective_waits_until_a_free_counts(void **state)
{
    (void)state;
    keel_segment *s;
    client_open_alone();
    for (int refuses = 0; refuses < 2; refuses++) {
        uint64_t before = atomic_load(&intents.segments);
        shows = true;
        asked_about = 0;
        assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_OK);
        assert_int_equal(atomic_load(&intents.segments), before + 1);
        shows = !refuses;
        assert_int_equal(segment_free(&c, s), KEEL_OK);
        assert_int_equal(asked_about, refuses);
        assert_int_equal(atomic_load(&intents.segments), before + 1 + refuses);
        if (!refuses)
            atomic_store(&intents.known, KNOWN_MADE(before + 2)); /* not yet, after all */
        assert_int_equal(collective_barrier(&c), KEEL_OK);
        assert_int_equal(asked_about, 1);
        assert_int_equal(atomic_load(&intents.segments), before + 2);
    }
}

/* who has no memory to begin the call begins it with what was put by, and nothing fails for it. */
static void test_aimed_allocation_without_memory_for_its_call(void **state)
{
    (void)state;
    keel_segment *s;
    client_open_alone();
    for (int n = 1, failed = 1; failed; n++) {
        assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_OK);
        memory_fail_at(n);
        keel_status status = segment_free(&c, s);
        failed = memory_failed();
        assert_int_equal(status, KEEL_OK);
    }
}

/* some agent has not said that it has the segment when the ranks have agreed on it: the allocation asks, and is
 * answered when all have. */
static void test_aimed_allocation_waits_until_all_agents_have_it(void **state)
{
    (void)state;
    keel_segment *s;
    client_open_alone();
    shows = false;
    created = 0;
    assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_OK);
    assert_int_equal(created, 2);
    assert_int_equal(last_created.a, 0);
    assert_int_equal(last_created.b, 1);
    assert_int_equal(last_created.seg, s->index);
    assert_int_equal(atomic_load(&intents.segments), 1);
}

/* who leaves leaves nothing that does not count. */
static void test_aimed_who_leaves_waits_until_a_free_counts(void **state)
{
    (void)state;
    keel_segment *s;
    client_open_alone();
    assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_OK);
    assert_int_equal(segment_free(&c, s), KEEL_OK);
    atomic_store(&intents.known, KNOWN_MADE(2)); /* not all know it yet */
    assert_int_equal(client_leave(&c), KEEL_OK);
    assert_int_equal(asked_about, 1);
    assert_int_equal(atomic_load(&intents.segments), 2);
}

/* A rank of node 0, whose agent is told what became of segment 4. */
static struct proc freer = {.life.rank = 0, .id = 1};
static struct intent_page freers;
static void one_frees(keel_status agreed, uint64_t number)
{
    struct control r = {.type = CONTROL_SEG_FREE, .id = 9, .seg = 4, .a = agreed, .b = (int64_t)number};
    freers = (struct intent_page){0};
    freer = (struct proc){.life.rank = 0, .id = 1, .intents = &freers};
    w.node[0].agent.ranks.procs = &freer;
    w.answer.id = 0;
    ranks_control(&w.node[0].agent, &freer, &r);
}

static void four_are_told_of_it(void)
{
    struct wire tell = {.type = WIRE_SEGMENT, .raw.seg = 4, .raw.a = 64, .raw.b = 1, .raw.identity = 1};
    for (int node = 0; node < 4; node++)
        segments_told(&w.node[node].agent, 0, &tell);
}

/* an agent answers who tells it what a segment came to when all others know it. */
static void test_aimed_end_of_a_segment_is_known_to_all_before_it_counts(void **state)
{
    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        four_are_told_of_it();
        w.node[2].still = true;
        one_frees(refused ? KEEL_ERR_NOMEM : KEEL_OK, 2);
        for (int i = 0; i < 50; i++)
            world_turn();
        assert_int_equal(w.answer.id, 0);
        assert_int_equal(atomic_load(&freers.known), 0);
        assert_int_equal(complete_segments(ranks_complete(&w.node[0].agent)), 0);
        struct control next = {
            .type = CONTROL_SEG_CREATE, .id = 10, .seg = 5, .bytes = 64, .redundancy = 1, .a = 1, .b = 3};
        ranks_control(&w.node[0].agent, &freer, &next);
        assert_int_equal(w.answer.id, 0);
        w.node[2].still = false;
        world_turn();
        for (int i = 0; i < 50 && !w.answer.id; i++)
            world_turn();
        assert_int_equal(w.answer.id, 9 + (w.answer.type == CONTROL_SEG_CREATE));
        world_pump();
        assert_int_equal(w.answer.id, 10);
        assert_int_equal(complete_segments(ranks_complete(&w.node[0].agent)), 2); /* though the rank has not looked */
        assert_int_equal(atomic_load(&freers.known), KNOWN_MADE(3));
        next = (struct control){.type = CONTROL_SEG_FREE, .seg = 5, .b = 3}; /* nobody wants an answer */
        w.answer.id = 0;
        ranks_control(&w.node[0].agent, &freer, &next);
        assert_int_equal(atomic_load(&freers.known), KNOWN_MADE(3));
        world_pump();
        assert_int_equal(w.answer.id, 0);
        assert_int_equal(atomic_load(&freers.known), KNOWN_ENDED(3));
        for (int node = 0; node < 4; node++) {
            assert_null(store_find(&w.node[node].agent.store, 4));
            w.node[node].agent.store.limit = 4; /* it never was */
        }
        w.node[0].agent.segments.freed.by_us = 0;
        w.node[0].agent.ranks.procs = NULL;
    }
}

/* an agent answers a rank that allocates when its own copies are made, or all have the segment, as the rank wants;
 * and shows when all have. */
static void test_aimed_made_segment_is_known_when_all_have_it(void **state)
{
    (void)state;
    struct agent *a = &w.node[0].agent;
    freers = (struct intent_page){0};
    freer = (struct proc){.life.rank = 0, .id = 1, .intents = &freers};
    a->ranks.procs = &freer;
    w.node[2].still = true;
    w.answer.id = 0;
    for (int here = 1; here >= 0; here--) {
        struct control r = {
            .type = CONTROL_SEG_CREATE, .id = 8, .seg = 4, .bytes = 64, .redundancy = 1, .a = here, .b = 2};
        w.answer.id = 0;
        ranks_control(a, &freer, &r);
        for (int i = 0; i < 50; i++)
            world_turn();
        assert_int_equal(w.answer.id, here ? 8 : 0);
        assert_int_equal(atomic_load(&freers.known), 0);
    }
    w.node[2].still = false;
    world_pump();
    assert_int_equal(w.answer.id, 8);
    assert_int_equal(w.answer.status, KEEL_OK);
    assert_int_equal(atomic_load(&freers.known), KNOWN_MADE(2));
    assert_null(a->segments.waits);
    a->ranks.procs = NULL;
}

/* who waits for all to know what became of a segment goes meanwhile. */
static void test_aimed_who_waits_for_all_to_know_may_die(void **state)
{
    (void)state;
    four_are_told_of_it();
    w.node[2].still = true;
    one_frees(KEEL_OK, 2);
    assert_int_equal(w.node[0].agent.segments.freeing, 1);
    segments_proc_gone(&w.node[0].agent, &freer);
    assert_int_equal(w.node[0].agent.segments.freeing, 0);
    w.node[0].agent.ranks.procs = NULL;
    w.node[2].still = false;
    world_pump();
    assert_int_equal(w.answer.id, 0);
}

/* who joins takes part in an allocation that counts nowhere yet, though its agent has heard that it came to nothing. */
static void test_aimed_refused_allocation_that_does_not_count_is_not_known_to_who_joins(void **state)
{
    (void)state;
    four_are_told_of_it();
    assert_int_equal(segments_complete(&w.node[3].agent, 0), 4);
    assert_int_equal(segments_complete(&w.node[3].agent, 1), 5);
    one_frees(KEEL_ERR_NOMEM, 1);
    world_pump();
    assert_int_equal(segments_complete(&w.node[3].agent, 0), 4);
    assert_int_equal(segments_complete(&w.node[3].agent, 1), 5);
    w.node[0].agent.ranks.procs = NULL;
}

static int refusals; /* the agent has no memory so often */
static keel_status request_of_one_again(void *u, struct control *r, void **memory)
{
    if (r->type == CONTROL_SEG_MAP)
        return request_before(u, r, memory);
    return r->type == CONTROL_SEG_CREATE && refusals-- > 0 ? KEEL_ERR_NOMEM : KEEL_OK;
}

/* a process that takes a dead one's place has no memory for what the others have: it waits for some. */
static void test_aimed_allocation_done_again_waits_for_memory(void **state)
{
    (void)state;
    keel_segment *s;
    keel_mutexes *m;
    client_open();
    request_before = c.env.request;
    c.env.request = request_of_one_again;
    c.restarted = true;
    c.segments.instance = 1;
    c.segments.known = c.segments.next + 1;
    for (int n = 1; n <= 12; n++) {
        refusals = n % 3;
        memory_fail_at(n);
        assert_int_equal(segment_alloc(&c, 64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_OK);
        memory_failed();
        c.segments.next--;
        memory_fail_at(n);
        assert_int_equal(mutexes_create(&c, KEEL_OK, 1, &m), KEEL_OK);
        memory_failed();
        mutexes_detach(m);
        c.segments.next--;
    }
}

/* a put to two copies gets no memory for what goes to the second one: the first one may have it already. */
static void test_aimed_put_without_memory_for_the_second_copy_waits(void **state)
{
    (void)state;
    int64_t value = 111, got;
    client_open();
    assert_int_equal(rma_get(&c, shadow, 0, 0, &got, sizeof got), KEEL_OK);
    assert_int_equal(rma_put(&c, shadow, 0, 0, &got, sizeof got), KEEL_OK); /* the links are there */
    for (int n = 1; n <= 6; n++) {                                          /* some of these are the transport's */
        keep_pieces(1);
        value++;
        memory_fail_at(n);
        assert_int_equal(rma_put(&c, shadow, 0, 0, &value, sizeof value), KEEL_OK);
        (void)memory_failed();
        turns(20);
        assert_int_equal(word_at(0, SEG_SHADOW, 0, 0), value);
        assert_true(copies_are_equal());
    }
    keep_pieces(0);
    memory_fail_at(1);
    value++;
    assert_int_equal(rma_put(&c, shadow, 0, 0, &value, sizeof value), KEEL_ERR_NOMEM);
    turns(20);
    assert_int_equal(told, 0); /* nothing was done */
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 0), value - 1);
}

/* an accumulate in many messages, for one of which an agent has no memory, while others are executed: it has not
 * failed. */
static void test_aimed_accumulate_of_which_an_agent_refuses_a_piece_goes_on(void **state)
{
    (void)state;
    enum { N = 65536 };
    static double one[N];
    static keel_handle h;
    for (int i = 0; i < N; i++)
        one[i] = 1;
    client_open();
    assert_int_equal(rma_acc(&c, shadow, 0, 0, KEEL_DOUBLE, NULL, one, N), KEEL_OK); /* the links are there */
    w.node[0].still = true;
    assert_int_equal(rma_acc_nb(&c, shadow, 0, 0, KEEL_DOUBLE, NULL, one, N, &h), KEEL_OK);
    turns(5);
    const struct piece *first = c.ops.active ? c.ops.active->out.pieces : NULL;
    assert_non_null(first);
    assert_non_null(first->sibling);
    struct wire refusal = {.type = WIRE_REPLY, .seq = first->sibling->seq, .raw.status = KEEL_ERR_NOMEM};
    pthread_mutex_lock(&c.lock);
    op_answered(&c, &refusal, NULL, 0, w.now);
    pthread_mutex_unlock(&c.lock);
    assert_int_not_equal(h.opaque[0], 0);
    w.node[0].still = false;
    for (int i = 0; i < 1000 && h.opaque[0]; i++)
        turns(1);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    turns(20);
    const double *sum = (const double *)(const void *)bytes_at(0, SEG_SHADOW, 0);
    for (int i = 0; i < N; i++)
        assert_true(sum[i] == 2);
}

/* what a put held that was given up comes back, whether there was memory then or not. */
static void test_aimed_put_given_up_without_memory_gives_all_back(void **state)
{
    (void)state;
    int64_t value = 111;
    static keel_handle h;
    client_open();
    for (int node = 0; node < 2; node++)
        w.node[node].still = true;
    c.timeout_ns = 10000000;
    turns(20);
    assert_int_equal(rma_start(&c, OP_PUT, shadow, 2, 0, &value, NULL, sizeof value, &h), KEEL_OK);
    w.node[2].still = true;
    while (h.opaque[0]) {
        memory_fail_at(1);
        turns(1);
        memory_failed();
    }
    assert_int_equal(told, 1);
    assert_int_equal(atomic_load(&intents.open), 1);
    for (int node = 0; node < 4; node++)
        w.node[node].still = false;
    change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 3}, 1);
    restore();
    turns(50);
    assert_int_equal(atomic_load(&intents.open), 0);
    for (int node = 0; node < 4; node++)
        assert_int_equal(c.connections.of[node].notes[0] | c.connections.of[node].notes[1], 0);
    for (int i = 0; i < INTENT_MAX; i++)
        assert_int_equal(atomic_load(&intents.entry[i].active), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_agent_without_memory_tells_nothing_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_allocation_without_memory_for_its_call, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_end_of_a_segment_is_known_to_all_before_it_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_who_waits_for_all_to_know_may_die, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_refused_allocation_that_does_not_count_is_not_known_to_who_joins,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_allocation_tells_all_what_one_met, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_next_collective_waits_until_a_free_counts, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_who_leaves_waits_until_a_free_counts, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_allocation_waits_until_all_agents_have_it, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_made_segment_is_known_when_all_have_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_allocation_done_again_waits_for_memory, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_without_memory_for_the_second_copy_waits, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_put_given_up_without_memory_gives_all_back, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_accumulate_of_which_an_agent_refuses_a_piece_goes_on, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_allocation_after_a_failed_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_copy_that_cannot_be_mapped_is_told, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_node_without_memory_for_a_segment_lets_its_rank_say_so, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_aimed_agent_without_memory_answers_nobody, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
