/* Aimed schedules of what counts once: accumulates, atomic operations, tasks. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/client/op/near.h"
#include "aimed.h"
#include "dedup_bytes.h"
#include "memory.h"
#include "runtime/agent/segments.h"
#include "runtime/wire/task_id.h"
#include "runtime/net/shm/shm.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/shaped.h"
#include "runtime/client/op/task.h"
#include "runtime/client/segment/segment.h"
#include "tests/lib/net/mem.h"

static keel_status add_one(struct keel_segment *s, int rank)
{
    const double scale = 1, one = 1;
    return rma_acc(&c, s, rank, 0, KEEL_DOUBLE, &scale, &one, 1);
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
    c.task_run.open = true;
    c.task_run.id = task_id(77, 0);
    c.task_run.round = 1;
    assert_int_equal(add_one(lost, 1), KEEL_OK); /* ignored */
    uint64_t from = w.now;
    assert_int_equal(add_one(later, 1), KEEL_OK);
    assert_true(w.now - from < 1000000000);
}

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
    first.raw.identity = 1;
    assert_int_equal(rank_ask(&w.rank[0], 0, first, NULL), KEEL_OK);
    assert_int_not_equal(w.rank[0].reply.epoch, 0); /* from here on ranks of that node do it themselves */
    pthread_create(&t, NULL, cas_adds, bytes_at(0, SEG_NONE, 0) + 8 * 33);
    while (atomic_load(&cas_done) == 0)
        sched_yield();
    for (int i = 0; i < n; i++) {
        struct wire acc = rank_wire(&w.rank[1], WIRE_ACC, SEG_NONE, 0, 0);
        acc.len = sizeof one;
        acc.raw.count = KEEL_DOUBLE;
        memcpy(&acc.raw.a, &(double){1}, sizeof(double));
        acc.raw.identity = (uint64_t)i + 1;
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

/* an operation of a task fails for want of memory at the n-th allocation, and another one follows. */
static void test_aimed_task_goes_on_after_an_operation_without_memory(void **state)
{
    (void)state;
    int failures = 0;
    client_open();
    c.timeout_ns = 3000000000ull;
    double done = 0;
    c.task_run.open = true;
    c.task_run.id = task_id(77, 0);
    c.task_run.round = 1;
    assert_int_equal(add_one(shadow, 0), KEEL_OK); /* what is made once is made */
    done++;
    for (long n = 1; n < 12; n++) {
        memory_fail_at(n);
        keel_status status = add_one(shadow, 0);
        memory_failed();
        if (w.node[0].fatal || w.node[1].fatal)
            break; /* an agent could not tell the other: it ends, which is another test */
        assert_true(status == KEEL_OK || status == KEEL_ERR_NOMEM);
        failures += status != KEEL_OK;
        done += status == KEEL_OK;
        assert_int_equal(add_one(shadow, 0), KEEL_OK);
        done++;
        double sum;
        memcpy(&sum, bytes_at(0, SEG_SHADOW, 0), sizeof sum);
        assert_true(sum == done);
    }
    assert_true(failures > 0);
}

static keel_status (*request_before)(void *u, struct control *r, void **memory);
static keel_status request_of_a_pool(void *u, struct control *r, void **memory)
{
    return r->type == CONTROL_SEG_CREATE ? KEEL_OK : request_before(u, r, memory);
}

/* A pool that the others had made before this process joined. */
static keel_taskpool *pool_open_with(bool restarted, uint64_t collectives)
{
    keel_taskpool *pool = NULL;
    client_open();
    c.restarted = restarted;
    c.collectives = collectives;
    request_before = c.env.request;
    c.env.request = request_of_a_pool;
    c.resumed = true;
    c.segments.next = SEG_SHADOW;
    c.segments.known = SEG_SHADOW + 1;
    c.segments.instance = 2;
    assert_int_equal(taskpool_create(&c, KEEL_OK, 3, &pool), KEEL_OK);
    return pool;
}

static keel_taskpool *pool_open(void)
{
    return pool_open_with(false, 0);
}

static void pool_close(keel_taskpool *pool)
{
    bool gone;
    c.segments.first->freed = true; /* with the others, who are not here */
    assert_int_equal(taskpool_free(&c, pool, &gone), KEEL_OK);
}

/* What a process that joins finds of the mark that the others leave for the next round: nothing, a word of it, or
 * all. Which round it takes. */
static uint32_t round_with(uint64_t round, uint64_t collective, uint64_t collectives)
{
    enum { MARK_AT = 16, WORDS_AT = 64 };
    const uint64_t mark[2] = {round, collective};
    int64_t task = -1;
    uint64_t claimed;
    const int home = SEG_SHADOW % 4;
    memcpy(bytes_at(home, SEG_SHADOW, home) + MARK_AT, mark, sizeof mark);
    keel_taskpool *pool = pool_open_with(true, collectives);
    assert_int_equal(task_next(&c, pool, &task), KEEL_OK);
    assert_int_equal(task, 0);
    memcpy(&claimed, bytes_at(0, SEG_SHADOW, 0) + WORDS_AT, sizeof claimed);
    assert_int_equal(task_commit(&c, pool, task), KEEL_OK);
    pool_close(pool);
    return (uint32_t)(claimed >> 32);
}

static void test_aimed_task_round_whose_mark_is_half_there_has_not_begun(void **state)
{
    (void)state;
    assert_int_equal(round_with((uint64_t)2 << 32 | 1, 0, 0), 1);
}

static void test_aimed_task_round_has_begun_with_the_collective_of_its_mark(void **state)
{
    (void)state;
    assert_int_equal(round_with((uint64_t)2 << 32 | 1, 1, 1), 2);
}

static void test_aimed_task_round_has_not_begun_before_the_collective_of_its_mark(void **state)
{
    (void)state;
    assert_int_equal(round_with((uint64_t)2 << 32 | 1, 1, 0), 1);
}

/* an accumulate of a task is given up: what of it has taken effect is not known, and the task is run again from its
 * beginning. */
static void test_aimed_task_whose_accumulate_is_given_up_is_run_again(void **state)
{
    (void)state;
    keel_taskpool *pool = pool_open();
    int64_t task = -1, again = -1;
    double sum;
    assert_int_equal(task_next(&c, pool, &task), KEEL_OK);
    assert_int_equal(task, 0);
    assert_int_equal(add_one(triple, 0), KEEL_OK);
    w.node[0].still = true;
    c.timeout_ns = 10000000;
    assert_int_equal(add_one(triple, 0), KEEL_ERR_TIMEOUT);
    c.timeout_ns = 30000000000ull;
    assert_int_equal(add_one(triple, 0), KEEL_ERR_STATE);
    assert_int_equal(task_commit(&c, pool, task), KEEL_ERR_STATE);
    w.node[0].still = false;
    change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 3}, 1);
    restore();
    assert_int_equal(task_next(&c, pool, &again), KEEL_OK);
    assert_int_equal(again, task);
    for (int step = 0; step < 3; step++)
        assert_int_equal(add_one(triple, 0), KEEL_OK);
    assert_int_equal(task_next(&c, pool, &again), KEEL_ERR_STATE); /* it is well, and open */
    assert_int_equal(task_commit(&c, pool, task), KEEL_OK);
    turns(20);
    memcpy(&sum, bytes_at(0, SEG_TRIPLE, 0), sizeof sum);
    assert_true(sum == 3);
    assert_true(copies_are_equal());
    pool_close(pool);
}

static int under_way(void)
{
    int n = 0;
    for (const struct op *op = c.ops.active; op; op = op->next)
        n += op->of_task.is;
    return n;
}

static int most_under_way;

static void sleep_and_count(void *u, int ms)
{
    (void)u, (void)ms;
    most_under_way = under_way() > most_under_way ? under_way() : most_under_way;
    if (w.now > 1000000000ull)
        w.node[0].still = w.node[1].still = false;
    world_turn();
}

/* accumulates of a task that nobody waits for: to two copysets they are under way at once, to one copyset one after the
 * other, and the commit waits for all. */
static void test_aimed_task_accumulates_to_a_group_one_after_the_other(void **state)
{
    (void)state;
    keel_taskpool *pool = pool_open();
    int64_t task = -1;
    double one = 1, sum;
    keel_handle h[4] = {{{0}}};
    c.env.sleep = sleep_and_count;
    most_under_way = 0;
    assert_int_equal(task_next(&c, pool, &task), KEEL_OK);
    w.node[0].still = w.node[1].still = true; /* for a second */
    w.now = 0;
    assert_int_equal(rma_acc_nb(&c, triple, 0, 0, KEEL_DOUBLE, NULL, &one, 1, &h[0]), KEEL_OK);
    assert_int_equal(rma_acc_nb(&c, triple, 1, 0, KEEL_DOUBLE, NULL, &one, 1, &h[1]), KEEL_OK);
    assert_int_equal(under_way(), 2);
    assert_true(w.now < 1000000000ull);
    assert_int_equal(rma_acc_nb(&c, triple, 0, 0, KEEL_DOUBLE, NULL, &one, 1, &h[2]), KEEL_OK);
    assert_true(w.now > 1000000000ull); /* the first one's end was waited for */
    assert_true(under_way() <= 2);
    assert_int_equal(most_under_way, 2);
    assert_int_equal(task_commit(&c, pool, task), KEEL_OK);
    assert_int_equal(under_way(), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rma_wait(&c, &h[i]), KEEL_OK);
    turns(20);
    memcpy(&sum, bytes_at(0, SEG_TRIPLE, 0), sizeof sum);
    assert_true(sum == 2);
    memcpy(&sum, bytes_at(1, SEG_TRIPLE, 1), sizeof sum);
    assert_true(sum == 1);
    assert_true(copies_are_equal());
    pool_close(pool);
}

/* the one before fails while the next to the same copyset waits for its turn: that one is not begun, and the task is
 * run again. */
static void test_aimed_task_begins_nothing_behind_what_failed(void **state)
{
    (void)state;
    keel_taskpool *pool = pool_open();
    int64_t task = -1;
    double one = 1;
    keel_handle h[2] = {{{0}}};
    assert_int_equal(task_next(&c, pool, &task), KEEL_OK);
    w.node[0].still = true;
    c.timeout_ns = 10000000;
    assert_int_equal(rma_acc_nb(&c, triple, 0, 0, KEEL_DOUBLE, NULL, &one, 1, &h[0]), KEEL_OK);
    assert_int_equal(rma_acc_nb(&c, triple, 0, 0, KEEL_DOUBLE, NULL, &one, 1, &h[1]), KEEL_ERR_STATE);
    assert_int_equal(under_way(), 0);
    assert_int_equal(rma_wait(&c, &h[0]), KEEL_ERR_TIMEOUT);
    assert_int_equal(add_one(triple, 0), KEEL_ERR_STATE);
    assert_int_equal(task_commit(&c, pool, task), KEEL_ERR_STATE);
    c.timeout_ns = 30000000000ull;
    w.node[0].still = false;
    change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 3}, 1);
    restore();
    assert_int_equal(task_next(&c, pool, &task), KEEL_OK);
    assert_int_equal(rma_acc_nb(&c, triple, 0, 0, KEEL_DOUBLE, NULL, &one, 1, NULL), KEEL_OK);
    assert_int_equal(rma_acc_nb(&c, triple, 0, 0, KEEL_DOUBLE, NULL, &one, 1, NULL), KEEL_OK);
    assert_int_equal(task_commit(&c, pool, task), KEEL_OK);
    double sum;
    turns(20);
    memcpy(&sum, bytes_at(0, SEG_TRIPLE, 0), sizeof sum);
    assert_true(sum == 2);
    pool_close(pool);
}

/* two threads draw at the same time: the second one's task would be the first one's. */
static void test_aimed_one_thread_draws_at_a_time(void **state)
{
    (void)state;
    keel_taskpool *pool = pool_open();
    int64_t task = -1;
    c.task_run.drawing = true;
    assert_int_equal(task_next(&c, pool, &task), KEEL_ERR_STATE);
    c.task_run.drawing = false;
    assert_int_equal(task_next(&c, pool, &task), KEEL_OK);
    assert_int_equal(task_commit(&c, pool, task), KEEL_OK);
    pool_close(pool);
}

/* what is remembered of a pool's tasks goes when the pool is freed. */
static void test_aimed_freed_pool_leaves_no_records(void **state)
{
    (void)state;
    struct wire add = rank_wire(&w.rank[3], WIRE_RMW, SEG_SHADOW, 0, 8);
    size_t before[2];
    for (int node = 0; node < 2; node++)
        before[node] = dedup_bytes(&w.node[node].agent.dedup[copyset_of(0, 1)]);
    add.flags = IDENTITY_F_TASK;
    add.raw.a = 1;
    add.raw.identity = task_id(SEG_TRIPLE, 0); /* as if that segment were the pool */
    add.raw.round = 1;
    assert_int_equal(rank_ask(&w.rank[3], 0, add, NULL), KEEL_OK);
    assert_true(dedup_bytes(&w.node[1].agent.dedup[copyset_of(0, 1)]) > before[1]);
    struct proc proc = {.life.rank = 0};
    struct control r = {.type = CONTROL_SEG_FREE, .seg = SEG_TRIPLE, .b = 1};
    segments_free(&w.node[0].agent, &proc, &r);
    world_pump();
    for (int node = 0; node < 2; node++)
        assert_int_equal(dedup_bytes(&w.node[node].agent.dedup[copyset_of(0, 1)]), before[node]);
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
    add.raw.a = 5;
    add.raw.identity = 1;
    int before = w.rank[3].replies;
    rank_send(&w.rank[3], 0, add, NULL); /* waits: frozen */
    world_pump();
    w.epoch--; /* its coordinator died; another one proposes something else for the slot */
    world_change(&left, 1);
    assert_int_equal(w.rank[3].replies, before);
    world_change(&dead, 1);
    print_message("answered %d, word at 0: %ld, at 2: %ld, whole %d\n", w.rank[3].replies - before,
                  (long)word_at(0, SEG_TRIPLE, 0, 8), (long)word_at(2, SEG_TRIPLE, 0, 8),
                  copyset_at(0, SEG_TRIPLE, 0)->copy[1].whole);
    if (w.rank[3].replies > before)
        assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 5);
    world_restore();
    assert_true(copies_are_equal());
}

/* a put and an addition on their way through a chain, of which the end has both, when the middle dies. */
static void test_aimed_chain_that_is_mended_repeats_all_or_nothing(void **state)
{
    (void)state;
    struct wire put = rank_wire(&w.rank[3], WIRE_PUT, SEG_TRIPLE, 0, 8), add = put;
    int64_t hundred = 100;
    put.flags = PUT_F_THROUGH;
    put.len = sizeof hundred;
    add.type = WIRE_RMW;
    add.flags = 0;
    add.len = 0;
    add.raw.a = 5;
    add.raw.identity = 1;
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
        if (k->life.rank == 3)
            tp_disconnect(k->ep);
    w.node[3].still = false;
    turns(5000); /* 5 s of virtual time */
    assert_int_equal(word_at(3, SEG_SHADOW, 2, 0), 1);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
}

/* Once the agent has told that ranks of its node may add themselves, an accumulate with a handle is complete when it
 * returns. */
static void test_aimed_accumulate_with_a_handle_on_the_own_node_needs_no_agent(void **state)
{
    (void)state;
    client_open();
    static keel_handle h;
    int64_t one = 1, value;
    struct keel_segment *none = segment_attach(&c, SEG_NONE, SEG_BYTES / 4, KEEL_REDUNDANCY_NONE);
    assert_int_equal(rma_acc_nb(&c, none, 3, 0, KEEL_INT64, NULL, &one, 1, &h), KEEL_OK);
    assert_int_equal(h.opaque[0], 1);
    turns(50);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal(word_at(3, SEG_NONE, 3, 0), 1);
    w.node[3].still = true;
    int64_t three = 3;
    assert_int_equal(rma_acc_nb(&c, none, 3, 0, KEEL_INT64, &three, &one, 1, &h), KEEL_OK);
    assert_int_equal(h.opaque[0], 0);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(rma_acc_nb(&c, none, 3, 0, KEEL_INT64, NULL, &one, 1, NULL), KEEL_OK);
    memcpy(&value, bytes_at(3, SEG_NONE, 3), sizeof value);
    assert_int_equal(value, 5);
}

/* The same for who only counts: no put nor get has mapped the part. */
static void test_aimed_counter_on_the_own_node_needs_its_agent_once(void **state)
{
    (void)state;
    client_open();
    int64_t old = -1;
    struct keel_segment *none = segment_attach(&c, SEG_NONE, SEG_BYTES / 4, KEEL_REDUNDANCY_NONE);
    assert_int_equal(rma_fetch_add(&c, none, 3, 8, 5, &old), KEEL_OK);
    assert_int_equal(old, 0);
    assert_true(none->near[3].add_tag != 0);
    w.node[3].still = true;
    assert_int_equal(rma_fetch_add(&c, none, 3, 8, 6, &old), KEEL_OK);
    assert_int_equal(old, 5);
    assert_int_equal(word_at(3, SEG_NONE, 3, 8), 11);
}

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
        if (k->life.rank == 3)
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

/* A task is run again by a rank that has another way to the primary: its accumulates must be cut into the same
 * steps. */
static void test_aimed_task_run_again_beside_the_primary_counts_once(void **state)
{
    (void)state;
    enum { WORDS = 8192 }; /* one message between nodes, four within one */
    static int64_t ones[WORDS];
    for (int i = 0; i < WORDS; i++)
        ones[i] = 1;
    client_open();
    c.task_run.open = true;
    c.task_run.id = task_id(77, 0);
    c.task_run.round = 1;
    assert_int_equal(rma_acc(&c, shadow, 2, 0, KEEL_INT64, NULL, ones, WORDS), KEEL_OK);
    world_kill_node(2);
    world_restore();
    assert_int_equal(copyset_at(3, SEG_SHADOW, 2)->copy[0].node, 3);
    c.task_run.copysets = 0; /* another rank takes it over, and runs it from the beginning */
    assert_int_equal(rma_acc(&c, shadow, 2, 0, KEEL_INT64, NULL, ones, WORDS), KEEL_OK);
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(word_at(3, SEG_SHADOW, 2, 8 * (uint64_t)i), 1);
}

/* A task is run again by a process whose data lie elsewhere: pieces that follow each other in the one's memory are
 * apart in the other's. */
static void run_pieces(void **state, bool strided, bool apart_first)
{
    enum { PIECES = 10, WORDS = 20 * 1024 / 8, GAP = 8 };
    static int64_t ones[PIECES * (WORDS + GAP)];
    struct shaped how = {.kind = OP_ACC, .type = KEEL_INT64, .blocks = true};
    for (int i = 0; i < PIECES * (WORDS + GAP); i++)
        ones[i] = 1;
    client_close(state);
    setup(state);
    client_open();
    c.task_run.open = true;
    c.task_run.id = task_id(77, 0);
    c.task_run.round = 1;
    for (int run = 0; run < 2; run++) {
        size_t between = 8 * (size_t)(WORDS + ((run == 0) == apart_first ? GAP : 0));
        keel_piece piece[PIECES];
        keel_strided shape = {
            .levels = 1, .count = {8 * WORDS, PIECES}, .global_stride = {8 * WORDS}, .local_stride = {between}};
        for (size_t i = 0; i < PIECES; i++)
            piece[i] = (keel_piece){i * 8 * WORDS, (char *)ones + i * between, 8 * WORDS};
        c.task_run.copysets = 0; /* from the beginning */
        assert_int_equal(strided ? shaped_strided(&c, &how, shadow, 0, 0, ones, &shape)
                                 : shaped_vector(&c, &how, shadow, 0, piece, PIECES),
                         KEEL_OK);
    }
    for (int i = 0; i < PIECES * WORDS; i++)
        assert_int_equal(word_at(0, SEG_SHADOW, 0, 8 * (uint64_t)i), 1);
}

static void test_aimed_task_whose_data_lie_elsewhere_counts_once(void **state)
{
    client_open();
    for (int how = 0; how < 4; how++)
        run_pieces(state, how & 1, how & 2);
}

/* Elements that lie across pieces without a gap are whole ones, inside a task, too. */
static void test_aimed_task_adds_elements_that_lie_across_pieces(void **state)
{
    (void)state;
    struct shaped how = {.kind = OP_ACC, .type = KEEL_INT64, .blocks = true};
    keel_strided shape = {.levels = 1, .count = {4, 4}, .global_stride = {4}, .local_stride = {4}};
    int64_t two[2] = {5, 6};
    client_open();
    c.task_run.open = true;
    c.task_run.id = task_id(77, 0);
    c.task_run.round = 1;
    assert_int_equal(shaped_strided(&c, &how, shadow, 0, 0, two, &shape), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 0), 5);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 6);
}

/* One request of a rank waits for a view that is being prepared, and the rank is in that view's successor, as dead. */
static void test_aimed_what_the_dead_have_asked_for_is_not_executed(void **state)
{
    (void)state;
    const struct view_event first = {.type = VIEW_RANK_LEFT, .a = 1}, dead = {.type = VIEW_RANK_DEAD, .a = 2, .c = 9};
    struct wire add = rank_wire(&w.rank[2], WIRE_RMW, SEG_NONE, 0, 8);
    add.raw.a = 5;
    add.raw.identity = 1;
    world_prepare(&first, 1);
    rank_send(&w.rank[2], 0, add, NULL);
    world_pump();
    assert_non_null(w.node[0].agent.stash.first);
    world_prepare(&dead, 1);
    world_pump();
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_commit(i, &dead, 1);
    for (int i = 0; i < w.nodes + w.spares; i++)
        world_settle(i);
    world_pump();
    assert_int_equal(word_at(0, SEG_NONE, 0, 8), 0);
    assert_null(w.node[0].agent.stash.first);
    world_restore();
}

/* a task is open: drawing from any pool would end what protects its accumulates. */
static void test_aimed_no_task_is_drawn_inside_a_task(void **state)
{
    (void)state;
    int64_t task;
    client_open();
    c.resumed = true;
    c.task_run.open = true;
    assert_int_equal(task_next(&c, (keel_taskpool *)&task, &task), KEEL_ERR_STATE);
    assert_true(c.task_run.open);
}

/* To the own agent there is a ring (net/shm/shm.c), whose limit is its own. */
static keel_status ring_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                             struct tp_op *op)
{
    if (ep == c.connections.of[3].way.ep && hlen + len > TP_SHM_MAX)
        return KEEL_ERR_ARG;
    return tp_mem.send(ep, header, hlen, body, len, op);
}

/* The primary of a large accumulate dies, and the rank's own node comes to take its place: with the next copy, or after
 * further deaths with one that was filled meanwhile. What was cut for a node elsewhere goes there as it is, to be
 * recognised. */
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
        int primary = copyset_at(3, SEG_SHADOW, slot)->copy[0].node;
        world_kill_node(primary);
        if (c.connections.of[primary].way.ep)
            tp_disconnect(c.connections.of[primary].way.ep);
        world_restore();
    }
    assert_int_equal(copyset_at(3, SEG_SHADOW, slot)->copy[0].node, 3);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_accumulate_with_a_handle_on_the_own_node_needs_no_agent, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_counter_on_the_own_node_needs_its_agent_once, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_answer_of_the_last_copy_is_lost, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_answer_is_lost_of_a_request_still_in_use, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_accumulate_goes_on_at_the_own_node, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_what_the_dead_have_asked_for_is_not_executed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_no_task_is_drawn_inside_a_task, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_large_accumulate_goes_on_at_the_own_node_that_had_no_copy, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_run_again_beside_the_primary_counts_once, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_forward_to_a_cut_off_copy_is_sent_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_task_whose_data_lie_elsewhere_counts_once, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_adds_elements_that_lie_across_pieces, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_goes_on_after_a_lost_part, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_accumulate_is_atomic_against_local_atomics, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_task_goes_on_after_an_operation_without_memory, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_round_whose_mark_is_half_there_has_not_begun, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_round_has_begun_with_the_collective_of_its_mark, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_round_has_not_begun_before_the_collective_of_its_mark, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_whose_accumulate_is_given_up_is_run_again, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_accumulates_to_a_group_one_after_the_other, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_task_begins_nothing_behind_what_failed, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_one_thread_draws_at_a_time, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_chain_that_is_mended_repeats_all_or_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aimed_freed_pool_leaves_no_records, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
