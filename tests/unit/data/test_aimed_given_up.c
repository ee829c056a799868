/* Aimed schedules around what was given up: it may still be on its way, and what the rank writes from then on comes
 * after it, whichever way each of them goes. The client is rank 3 on node 3, which has the second copy of rank 2's
 * part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/agent/ranks.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/shaped.h"
#include "runtime/client/segment/segment.h"

#include "aimed.h"
#include "tests/lib/net/mem.h"

enum write { PUT, PACKED_PUT, ACCUMULATE };

static struct keel_segment *none;
static uint8_t big[400000];

/* Makes the first word of the part 3, if it is 2, and so many zeros follow. */
static void start(enum write how, struct keel_segment *s, int rank, int64_t value, size_t len, keel_handle *h)
{
    static int64_t word;
    keel_piece piece[2] = {{.offset = 0, .local = &word, .len = 8}, {.offset = 64, .local = &word, .len = 8}};
    struct shaped packed = {.kind = OP_PUT, .type = KEEL_INT64, .handle = h};
    *h = (keel_handle){{0}};
    word = how == ACCUMULATE ? value - 2 : value;
    memset(big, 0, sizeof big);
    memcpy(big, &value, sizeof value);
    if (how == PUT)
        assert_int_equal(rma_start(&c, OP_PUT, s, rank, 0, big, NULL, len, h), KEEL_OK);
    else if (how == PACKED_PUT)
        assert_int_equal(shaped_vector(&c, &packed, s, rank, piece, 2), KEEL_OK);
    else
        assert_int_equal(rma_acc_nb(&c, s, rank, 0, KEEL_INT64, NULL, &word, 1, h), KEEL_OK);
}

static bool is_over(const keel_handle *h)
{
    return h->opaque[0] == 0;
}

static void settle(const keel_handle *h)
{
    for (int i = 0; i < 3000 && !is_over(h); i++)
        turns(1);
    assert_true(is_over(h));
}

/* Every copy has this in the first word of the part. */
static void assert_first_is(uint32_t seg, int rank, int64_t value)
{
    const struct view_copyset *g = copyset_at(3, seg, rank);
    for (int i = 0; i < g->copies; i++)
        assert_int_equal(word_at(g->copy[i].node, seg, rank, 0), value);
}

/* The client's process, for its agent. */
static struct proc *client_proc(void)
{
    static struct control_welcome welcome;
    struct proc *proc = ranks_started(&w.node[3].agent, 1);
    assert_non_null(ranks_conn(&w.node[3].agent, proc));
    ranks_welcome(&w.node[3].agent, proc, life_of(3, 0), NULL, &intents, &welcome);
    return proc;
}

/* The agent reads what it was told, and the view that it asks for comes. */
static struct view_event take_up(struct proc *proc)
{
    struct control r = {.type = CONTROL_DOUBT};
    assert_int_equal(w.submissions, 0);
    ranks_control(&w.node[3].agent, proc, &r);
    assert_int_equal(w.submissions, 1);
    struct view_event e = w.submitted[--w.submissions];
    change(&e, 1);
    return e;
}

static void one_after_the_other(void **state, uint32_t seg, int rank, enum write first, enum write then, size_t len)
{
    static keel_handle h, later;
    client_close(state);
    setup(state);
    client_open();
    none = segment_attach(&c, SEG_NONE, SEG_BYTES, KEEL_REDUNDANCY_NONE);
    struct proc *proc = client_proc();
    struct keel_segment *s = seg == SEG_NONE ? none : seg == SEG_SHADOW ? shadow : triple;
    start(PUT, s, rank, 2, 8, &h);
    settle(&h);
    for (int node = 0; node < 4; node++)
        w.node[node].still = true;
    c.timeout_ns = 10000000;
    c.connections.bytewise = true; /* in a message */
    start(first, s, rank, 77, 8, &h);
    turns(20);
    assert_true(is_over(&h));
    assert_int_equal((int64_t)h.opaque[1], KEEL_ERR_TIMEOUT);
    assert_int_equal(told, 1);
    c.connections.bytewise = false;
    c.timeout_ns = 30000000000ull;
    start(then, s, rank, 3, len, &later);
    turns(20);
    for (int node = 0; node < 4; node++)
        w.node[node].still = false;
    turns(50);
    assert_false(is_over(&later)); /* nobody knows whether the first one has come */
    uint64_t generation = copyset_at(3, SEG_SHADOW, 0)->generation;
    bool differs = first != ACCUMULATE && seg != SEG_NONE;
    assert_int_equal(take_up(proc).d, !differs);
    if (!differs) /* nothing is made equal for it */
        assert_int_equal(copyset_at(3, SEG_SHADOW, 0)->generation, generation);
    restore();
    settle(&later);
    assert_int_equal((int64_t)later.opaque[1], KEEL_OK);
    turns(20);
    int64_t word = word_at(copyset_at(3, seg, rank)->copy[0].node, seg, rank, 0);
    assert_true(word == 3 || (then == ACCUMULATE && word == 78));
    assert_first_is(seg, rank, word);
}

/* a message that is given up is not looked at until its rank has begun another write, which goes another way. */
static void test_aimed_write_given_up_comes_before_later_ones(void **state)
{
    static const struct {
        uint32_t seg;
        int rank;
    } part[] = {{SEG_NONE, 0}, {SEG_SHADOW, 0}, {SEG_SHADOW, 2}, {SEG_TRIPLE, 0}, {SEG_TRIPLE, 2}};
    client_open();
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        for (enum write first = PUT; first <= ACCUMULATE; first++) {
            one_after_the_other(state, part[i].seg, part[i].rank, first, PUT, 8);
            one_after_the_other(state, part[i].seg, part[i].rank, first, PUT, sizeof big);
            one_after_the_other(state, part[i].seg, part[i].rank, first, PACKED_PUT, 8);
            one_after_the_other(state, part[i].seg, part[i].rank, first, ACCUMULATE, 8);
        }
}

/* the agent here does not look at an accumulate to an unreplicated part: what is stored there by the fast path would
 * come first. */
static void test_aimed_accumulate_given_up_here_comes_before_plain_stores(void **state)
{
    (void)state;
    static keel_handle h;
    int64_t two = 2;
    client_open();
    none = segment_attach(&c, SEG_NONE, SEG_BYTES, KEEL_REDUNDANCY_NONE);
    const struct near *n = &none->near[3];
    assert_int_equal(rma_put(&c, none, 3, 0, &two, sizeof two), KEEL_OK);
    assert_true(near_valid(n, &n->put_tag));
    start(PACKED_PUT, shadow, 2, 2, 8, &h); /* the agent here is connected */
    settle(&h);
    w.node[3].still = true;
    c.timeout_ns = 10000000;
    start(ACCUMULATE, none, 3, 77, 8, &h);
    turns(20);
    assert_int_equal((int64_t)h.opaque[1], KEEL_ERR_TIMEOUT);
    assert_int_equal(told, 1);
    assert_false(near_valid(n, &n->put_tag));
    rma_near_update(&c, none, 3);
    assert_false(near_valid(n, &n->put_tag));
    w.node[3].still = false;
    change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 3}, 1);
    restore();
    assert_int_equal(rma_put(&c, none, 3, 0, &two, sizeof two), KEEL_OK);
    assert_true(near_valid(n, &n->put_tag));
    turns(20);
    assert_int_equal(word_at(3, SEG_NONE, 3, 0), 2);
}

static struct {
    struct wire w;
    uint8_t body[64];
    size_t len;
    struct tp_ep *ep;
} kept;

/* In a queue of the process, as what does not fit into a ring. */
static keel_status keep_back(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                             struct tp_op *op)
{
    (void)op;
    assert_true(hlen == sizeof kept.w && len <= sizeof kept.body);
    memcpy(&kept.w, header, hlen);
    if (len)
        memcpy(kept.body, body, len);
    kept.len = len;
    kept.ep = ep;
    return KEEL_OK;
}

/* What comes to the own agent when the view that took up its end is there is not executed, whatever route it was
 * meant for. */
static void comes_late(void **state, uint32_t seg)
{
    static keel_handle h;
    static struct tp_table table;
    client_close(state);
    setup(state);
    client_open();
    none = segment_attach(&c, SEG_NONE, SEG_BYTES, KEEL_REDUNDANCY_NONE);
    struct proc *proc = client_proc();
    struct keel_segment *s = seg == SEG_NONE ? none : shadow;
    c.connections.bytewise = true;
    start(PUT, s, 3, 2, 8, &h);
    settle(&h);
    start(PACKED_PUT, shadow, 2, 2, 8, &h); /* the agent here is connected */
    settle(&h);
    c.timeout_ns = 10000000;
    table = tp_mem;
    table.send = keep_back;
    net->table = &table;
    start(ACCUMULATE, s, 3, 77, 8, &h);
    turns(20);
    assert_int_equal((int64_t)h.opaque[1], KEEL_ERR_TIMEOUT);
    net->table = &tp_mem;
    c.timeout_ns = 30000000000ull;
    assert_int_equal(take_up(proc).d, 1);
    start(PUT, s, 3, 3, 8, &h);
    settle(&h);
    assert_int_equal((int64_t)h.opaque[1], KEEL_OK);
    assert_int_equal(tp_mem.send(kept.ep, &kept.w, sizeof kept.w, kept.body, kept.len, NULL), KEEL_OK);
    turns(20);
    assert_first_is(seg, 3, 3);
}

static void test_aimed_what_was_given_up_comes_to_the_own_agent_in_vain(void **state)
{
    client_open();
    comes_late(state, SEG_NONE);
    comes_late(state, SEG_SHADOW);
}

/* What the rank has not given up, and sent before, is sent again and counts once. */
static void test_aimed_what_was_not_given_up_goes_on(void **state)
{
    (void)state;
    static keel_handle lost, stays;
    client_open();
    struct proc *proc = client_proc();
    start(PUT, shadow, 0, 2, 8, &stays);
    settle(&stays);
    start(PUT, shadow, 2, 2, 8, &stays);
    settle(&stays);
    for (int node = 0; node < 4; node++)
        w.node[node].still = true;
    c.timeout_ns = 10000000;
    start(ACCUMULATE, shadow, 0, 77, 8, &lost);
    c.timeout_ns = 30000000000ull;
    start(ACCUMULATE, shadow, 2, 7, 8, &stays);
    turns(20);
    assert_true(is_over(&lost) && !is_over(&stays));
    for (int node = 0; node < 4; node++)
        w.node[node].still = false;
    assert_int_equal(take_up(proc).d, 1);
    settle(&stays);
    assert_int_equal((int64_t)stays.opaque[1], KEEL_OK);
    assert_first_is(SEG_SHADOW, 2, 7);
}

/* To another node: it will be refused there, as if it had been lost with the connection. */
static keel_status send_in_vain(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                                struct tp_op *op)
{
    struct wire in_vain;
    assert_int_equal(hlen, sizeof in_vain);
    memcpy(&in_vain, header, sizeof in_vain);
    in_vain.epoch = 0;
    in_vain.raw.note = 0;
    return tp_mem.send(ep, &in_vain, sizeof in_vain, body, len, op);
}

/* What a process has stored by plain stores stays in the copy here when the call that brings it to the others is
 * given up. */
static void test_aimed_update_given_up_keeps_what_was_stored(void **state)
{
    (void)state;
    client_open();
    struct proc *proc = client_proc();
    memset(big, 0x11, sizeof big);
    assert_int_equal(rma_put(&c, shadow, 3, 0, big, sizeof big), KEEL_OK);
    uint8_t *mine = bytes_at(3, SEG_SHADOW, 3);
    memset(mine, 0x77, sizeof big);
    struct tp_table table = tp_mem;
    table.send = send_in_vain;
    net->table = &table;
    change(&(struct view_event){.type = VIEW_RANK_DOUBT, .a = 2}, 1); /* there is an older generation */
    restore();
    w.node[0].still = true;
    c.timeout_ns = 10000000;
    assert_int_equal(rma_put(&c, shadow, 3, 0, mine, sizeof big), KEEL_ERR_TIMEOUT);
    assert_int_equal(told, 1);
    net->table = &tp_mem;
    c.timeout_ns = 30000000000ull;
    w.node[0].still = false;
    assert_int_equal(take_up(proc).d, 0);
    restore();
    turns(50);
    memset(big, 0x77, sizeof big);
    assert_memory_equal(mine, big, sizeof big);
    assert_int_equal(rma_put(&c, shadow, 3, 0, mine, sizeof big), KEEL_OK);
    turns(20);
    assert_memory_equal(mine, big, sizeof big);
    assert_true(copies_are_equal());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_write_given_up_comes_before_later_ones, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_accumulate_given_up_here_comes_before_plain_stores, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_what_was_given_up_comes_to_the_own_agent_in_vain, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_what_was_not_given_up_goes_on, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_update_given_up_keeps_what_was_stored, setup, client_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
