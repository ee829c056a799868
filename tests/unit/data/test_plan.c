#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/client/op/plan.h"
#include "runtime/wire/wire.h"
#include "seed.h"

enum { SELF = 7, SMALL = 8, LARGE = WIRE_BULK_MAX + 1 };

static struct route route_of(enum route_mode mode, int copies, int a, int b, int c)
{
    return (struct route){.tag = route_tag(mode, 3), .copies = copies, .node = {a, b, c}};
}

static struct plan plan_of(enum op_kind kind, uint64_t len, const struct route *route)
{
    struct plan p;
    struct plan_input in = {.kind = kind, .len = len, .redundancy = (unsigned)route->copies - 1, .self = SELF};
    plan_make(&p, &in, route);
    return p;
}

static void assert_legs(const struct plan *p, int legs, int a, int b, int c)
{
    const int node[LEGS_MAX] = {a, b, c};
    assert_int_equal(p->legs, legs);
    for (int i = 0; i < legs; i++) {
        assert_int_equal(p->leg[i].node, node[i]);
        assert_true(p->leg[i].window >= 1);
    }
}

/* ---- put ---- */

static void test_plan_put_one_copy_here_is_plain(void **state)
{
    (void)state;
    struct route r = route_of(ROUTE_DIRECT, 1, SELF, -1, -1);
    struct plan p = plan_of(OP_PUT, LARGE, &r);
    assert_int_equal(p.way, PLAN_PLAIN);
    assert_true(p.here && !p.noted && !p.through);
    assert_legs(&p, 0, 0, 0, 0);
}

static void test_plan_put_one_copy_elsewhere_is_one_remote_write(void **state)
{
    (void)state;
    struct route r = route_of(ROUTE_DIRECT, 1, 2, -1, -1);
    struct plan p = plan_of(OP_PUT, LARGE, &r);
    assert_int_equal(p.way, PLAN_ACCESS);
    assert_true(!p.here && !p.noted && !p.through);
    assert_legs(&p, 1, 2, 0, 0);
    struct stripe_piece piece;
    assert_true(plan_take(&p, LARGE, 0, &piece));
    assert_int_equal(piece.len, LARGE);
}

static struct plan bytewise_plan_of(enum op_kind kind, uint64_t len, const struct route *route)
{
    struct plan p;
    struct plan_input in = {.kind = kind, .len = len, .bytewise = true, .self = SELF};
    plan_make(&p, &in, route);
    return p;
}

/* One message's bytes: an agent stores and loads whole words. */
static void test_plan_small_access_that_would_tear_words_is_a_message(void **state)
{
    (void)state;
    const struct route there = route_of(ROUTE_DIRECT, 1, 2, -1, -1), here = route_of(ROUTE_DIRECT, 1, SELF, -1, -1);
    const enum op_kind kind[] = {OP_PUT, OP_GET};
    for (int k = 0; k < 2; k++) {
        struct plan p = bytewise_plan_of(kind[k], PLAN_WHOLE_MAX, &there);
        assert_int_equal(p.way, PLAN_MESSAGES);
        assert_true(!p.here && !p.noted && !p.through);
        assert_legs(&p, 1, 2, 0, 0);
        struct stripe_piece piece;
        assert_true(plan_take(&p, PLAN_WHOLE_MAX, 0, &piece));
        assert_int_equal(piece.len, PLAN_WHOLE_MAX);
        p = bytewise_plan_of(kind[k], PLAN_WHOLE_MAX + 1, &there);
        assert_int_equal(p.way, PLAN_ACCESS);
        p = bytewise_plan_of(kind[k], 8, &here);
        assert_int_equal(p.way, PLAN_PLAIN);
    }
}

static void test_plan_put_small_to_several_elsewhere_is_a_message_to_each(void **state)
{
    (void)state;
    struct route pair = route_of(ROUTE_DIRECT, 2, 2, 4, -1), triple = route_of(ROUTE_DIRECT, 3, 2, 4, 1);
    struct plan p = plan_of(OP_PUT, WIRE_BULK_MAX, &pair);
    assert_int_equal(p.way, PLAN_MESSAGES);
    assert_true(p.noted && !p.here && !p.through);
    assert_legs(&p, 2, 2, 4, 0);
    p = plan_of(OP_PUT, WIRE_BULK_MAX, &triple);
    assert_int_equal(p.way, PLAN_MESSAGES);
    assert_legs(&p, 3, 2, 4, 1);
}

static void test_plan_put_large_to_several_elsewhere_is_chunks(void **state)
{
    (void)state;
    struct route pair = route_of(ROUTE_DIRECT, 2, 2, 4, -1), triple = route_of(ROUTE_DIRECT, 3, 2, 4, 1);
    struct plan p = plan_of(OP_PUT, LARGE, &pair);
    assert_int_equal(p.way, PLAN_CHUNKS);
    assert_true(p.noted && !p.here && !p.through);
    assert_legs(&p, 2, 2, 4, 0);
    assert_int_equal(p.stripe.copies, 2);
    p = plan_of(OP_PUT, LARGE, &triple);
    assert_int_equal(p.way, PLAN_CHUNKS);
    assert_legs(&p, 3, 2, 4, 1);
    struct stripe_piece first = {0}, next = {0};
    assert_true(plan_take(&p, LARGE, 0, &first) && plan_take(&p, LARGE, 1, &next));
    assert_int_equal(first.offset, 0); /* the first chunk goes to the primary first, the next one to the next copy */
    assert_int_equal(next.offset, first.len);
    assert_true(first.level == 0 && next.level == 0);
}

static void test_plan_put_with_a_copy_here_sends_messages_to_the_others(void **state)
{
    (void)state;
    const uint64_t len[] = {SMALL, LARGE, 1 << 24};
    for (size_t i = 0; i < 3; i++) {
        struct route primary = route_of(ROUTE_DIRECT, 2, SELF, 4, -1), shadow = route_of(ROUTE_DIRECT, 3, 2, SELF, 4);
        struct plan p = plan_of(OP_PUT, len[i], &primary);
        assert_int_equal(p.way, PLAN_MESSAGES);
        assert_true(p.here && p.noted && !p.through);
        assert_legs(&p, 1, 4, 0, 0);
        p = plan_of(OP_PUT, len[i], &shadow);
        assert_int_equal(p.way, PLAN_MESSAGES);
        assert_true(p.here && p.noted);
        assert_legs(&p, 2, 2, 4, 0);
    }
}

static void test_plan_put_while_made_equal_goes_through_the_primary(void **state)
{
    (void)state;
    const enum route_mode mode[] = {ROUTE_THROUGH, ROUTE_FILLING};
    for (int m = 0; m < 2; m++)
        for (int at = 0; at < 3; at++) { /* also if a copy is here */
            struct route r = route_of(mode[m], 3, at == 0 ? SELF : 1, at == 1 ? SELF : 2, at == 2 ? SELF : 3);
            struct plan p = plan_of(OP_PUT, LARGE, &r);
            assert_int_equal(p.way, PLAN_MESSAGES);
            assert_true(p.through && !p.here && !p.noted);
            assert_legs(&p, 1, r.node[0], 0, 0);
        }
}

static void test_plan_put_always_through_goes_through_the_primary(void **state)
{
    (void)state;
    struct route r = route_of(ROUTE_DIRECT, 2, 2, SELF, -1);
    struct plan_input in = {.kind = OP_PUT, .len = SMALL, .redundancy = 1, .always_through = true, .self = SELF};
    struct plan p;
    plan_make(&p, &in, &r);
    assert_true(p.through && !p.here);
    assert_legs(&p, 1, 2, 0, 0);
}

static void test_plan_packed_put_is_a_message_to_each_copy_and_never_cut(void **state)
{
    (void)state;
    const uint64_t len = WIRE_BODY_MAX + 99;
    for (int mode = ROUTE_DIRECT; mode <= ROUTE_FILLING; mode++)
        for (int copies = 1; copies <= 3; copies++)
            for (int here = 0; here <= copies; here++) { /* the place of the copy here; the last: none */
                struct route r = route_of((enum route_mode)mode, copies, here == 0 ? SELF : 1, here == 1 ? SELF : 2,
                                          here == 2 ? SELF : 3);
                struct plan_input in = {.kind = OP_PUT, .offset = 3, .len = len, .packed = true, .self = SELF};
                struct plan p;
                struct stripe_piece piece;
                plan_make(&p, &in, &r);
                bool through = mode != ROUTE_DIRECT;
                assert_int_equal(p.way, PLAN_MESSAGES);
                assert_true(!p.here && p.through == through && p.noted == (copies > 1 && !through));
                assert_legs(&p, through ? 1 : copies, r.node[0], r.node[1], r.node[2]);
                for (int leg = 0; leg < p.legs; leg++) {
                    assert_true(plan_take(&p, len, leg, &piece));
                    assert_int_equal(piece.len, len);
                }
            }
}

static void test_plan_packs_what_loads_and_stores_do_not_reach(void **state)
{
    (void)state;
    struct route here = route_of(ROUTE_DIRECT, 1, SELF, -1, -1), there = route_of(ROUTE_DIRECT, 1, 2, -1, -1);
    struct route both = route_of(ROUTE_DIRECT, 2, SELF, 2, -1), through = route_of(ROUTE_THROUGH, 2, SELF, 2, -1);
    struct route second = route_of(ROUTE_DIRECT, 2, 2, SELF, -1), two = route_of(ROUTE_DIRECT, 2, 2, 3, -1);
    assert_int_equal(plan_packs(OP_PUT, &here, SELF), 0);
    assert_int_equal(plan_packs(OP_GET, &here, SELF), 0);
    assert_int_equal(plan_packs(OP_ACC, &here, SELF), PLAN_PACKED_MAX);
    assert_int_equal(plan_packs(OP_PUT, &there, SELF), PLAN_PACKED_MAX);
    assert_int_equal(plan_packs(OP_GET, &there, SELF), PLAN_PACKED_MAX);
    assert_int_equal(plan_packs(OP_GET, &both, SELF), 0);
    assert_int_equal(plan_packs(OP_GET, &second, SELF), PLAN_PACKED_MAX);
    assert_int_equal(plan_packs(OP_GET, &through, SELF), PLAN_PACKED_MAX);
    assert_int_equal(plan_packs(OP_ACC, &both, SELF), PLAN_PACKED_MAX); /* as under each other route */
    assert_int_equal(plan_packs(OP_PUT, &both, SELF), PLAN_PACKED_MAX);
    assert_int_equal(plan_packs(OP_PUT, &second, SELF), PLAN_PACKED_MAX);
    assert_int_equal(plan_packs(OP_PUT, &two, SELF), PLAN_PACKED_MAX);
    struct plan_input in = {.kind = OP_GET, .len = SMALL, .packed = true, .self = SELF};
    struct plan p;
    plan_make(&p, &in, &here); /* it has become near meanwhile: the agent here answers */
    assert_int_equal(p.way, PLAN_MESSAGES);
    assert_legs(&p, 1, SELF, 0, 0);
}

static void test_plan_of_what_was_lost_asks_an_agent(void **state)
{
    (void)state;
    struct route r = route_of(ROUTE_DIRECT, 1, SELF, -1, -1);
    r.lost = true;
    struct plan p = plan_of(OP_PUT, LARGE, &r);
    assert_int_equal(p.way, PLAN_MESSAGES);
    assert_false(p.here);
    assert_legs(&p, 1, SELF, 0, 0);
    p = plan_of(OP_GET, LARGE, &r);
    assert_int_equal(p.way, PLAN_MESSAGES);
    assert_false(p.here);
    assert_legs(&p, 1, SELF, 0, 0);
}

/* ---- the others ---- */

static void test_plan_get_loads_here_reads_elsewhere(void **state)
{
    (void)state;
    const enum route_mode mode[] = {ROUTE_DIRECT, ROUTE_FILLING};
    for (int m = 0; m < 2; m++) {
        struct route here = route_of(mode[m], 2, SELF, 2, -1), there = route_of(mode[m], 2, 2, SELF, -1);
        struct plan p = plan_of(OP_GET, LARGE, &here);
        assert_int_equal(p.way, PLAN_PLAIN);
        assert_true(p.here);
        assert_legs(&p, 0, 0, 0, 0);
        p = plan_of(OP_GET, LARGE, &there); /* the primary's bytes, though a copy is here */
        assert_int_equal(p.way, PLAN_ACCESS);
        assert_false(p.here);
        assert_legs(&p, 1, 2, 0, 0);
    }
}

/* Node 2 has the primary, and another one the second copy. */
static int read_from(enum route_mode mode, bool lost, int copies, int second, const uint32_t *doubts)
{
    enum { NODES = SELF + 1 };
    struct page *page = calloc(1, page_bytes(1, NODES, 1));
    assert_non_null(page);
    *page = (struct page){.nodes = 1, .members = NODES, .ranks = 1, .self = SELF};
    for (int n = 0; n < NODES; n++)
        page_node(page, n)->doubts = doubts[n];
    struct route r = route_of(mode, copies, 2, second, 4);
    r.lost = lost;
    struct plan p;
    struct plan_input in = {
        .kind = OP_GET, .len = LARGE, .redundancy = 1, .from = page_copy_to_read(page, &r), .self = SELF};
    plan_make(&p, &in, &r);
    free(page);
    assert_true(p.here ? p.way == PLAN_PLAIN && p.legs == 0 : p.legs == 1);
    return p.here ? SELF : p.leg[0].node;
}

static void test_plan_get_reads_another_copy_only_while_all_are_equal(void **state)
{
    (void)state;
    const uint32_t none[SELF + 1] = {0};
    const uint32_t silent[SELF + 1] = {[2] = PAGE_DOUBT_SUSPECT}, link[SELF + 1] = {[2] = PAGE_DOUBT_LINK};
    const uint32_t both[SELF + 1] = {[2] = PAGE_DOUBT_SUSPECT, [3] = PAGE_DOUBT_AGENT};
    assert_int_equal(read_from(ROUTE_DIRECT, false, 2, 3, none), 2);
    assert_int_equal(read_from(ROUTE_DIRECT, false, 2, 3, silent), 3);
    assert_int_equal(read_from(ROUTE_DIRECT, false, 2, 3, link), 3);
    assert_int_equal(read_from(ROUTE_DIRECT, false, 2, SELF, silent), SELF);
    assert_int_equal(read_from(ROUTE_DIRECT, false, 2, 3, both), 2);
    assert_int_equal(read_from(ROUTE_DIRECT, false, 3, 3, both), 4);
    assert_int_equal(read_from(ROUTE_DIRECT, false, 1, -1, silent), 2);
    assert_int_equal(read_from(ROUTE_DIRECT, true, 2, 3, silent), 2);
    assert_int_equal(read_from(ROUTE_THROUGH, false, 2, 3, silent), 2);
    assert_int_equal(read_from(ROUTE_FILLING, false, 2, 3, silent), 2);
}

static void test_plan_get_is_a_message_while_bytes_may_be_torn(void **state)
{
    (void)state;
    struct route r = route_of(ROUTE_THROUGH, 2, SELF, 2, -1);
    struct plan p = plan_of(OP_GET, LARGE, &r);
    assert_int_equal(p.way, PLAN_MESSAGES);
    assert_false(p.here);
    assert_legs(&p, 1, SELF, 0, 0);
}

static void test_plan_strong_get_is_a_message_to_the_primary_of_several(void **state)
{
    (void)state;
    struct route several = route_of(ROUTE_DIRECT, 2, SELF, 2, -1), one = route_of(ROUTE_DIRECT, 1, SELF, -1, -1);
    struct plan_input in = {.kind = OP_GET, .len = LARGE, .redundancy = 1, .strong = true, .self = SELF};
    struct plan p;
    plan_make(&p, &in, &several);
    assert_int_equal(p.way, PLAN_MESSAGES);
    assert_false(p.here);
    assert_legs(&p, 1, SELF, 0, 0);
    struct route elsewhere = route_of(ROUTE_DIRECT, 2, 3, 2, -1);
    struct stripe_piece piece;
    plan_make(&p, &in, &elsewhere);
    assert_true(plan_take(&p, LARGE, 0, &piece) && piece.len == WIRE_BODY_MAX); /* the copies compare no more at once */
    plan_make(&p, &in, &one);
    assert_int_equal(p.way, PLAN_PLAIN);
    assert_true(p.here);
}

static void test_plan_atomics_are_messages_to_the_primary(void **state)
{
    (void)state;
    const enum op_kind kind[] = {OP_ACC, OP_RMW};
    for (int k = 0; k < 2; k++)
        for (int mode = ROUTE_DIRECT; mode <= ROUTE_FILLING; mode++)
            for (int at = 0; at < 2; at++) {
                struct route r = route_of((enum route_mode)mode, 2, at ? SELF : 2, at ? 2 : SELF, -1);
                struct plan p = plan_of(kind[k], SMALL, &r);
                assert_int_equal(p.way, PLAN_MESSAGES);
                assert_false(p.here);
                assert_legs(&p, 1, r.node[0], 0, 0);
            }
}

/* ---- every byte once ---- */

/* Take from random legs until nothing is left; a leg's pieces complete in the order in which they were taken. */
static void cover(struct plan *p, uint64_t len, struct rng *rng)
{
    static uint8_t got[LEGS_MAX][(1 << 21) + 1];
    bool flying[LEGS_MAX] = {0};
    struct stripe_piece piece[LEGS_MAX];
    uint64_t most = WIRE_BULK_MAX; /* the ring to an agent on this node takes less */
    for (int i = 0; i < p->legs; i++)
        most = p->leg[i].node == SELF ? WIRE_BODY_MAX : most;
    memset(got, 0, sizeof got);
    for (int idle = 0; idle < 1000; idle++) {
        int i = (int)rng_below(rng, (uint64_t)p->legs);
        if (flying[i]) {
            flying[i] = false;
            p->leg[i].done += piece[i].len;
            if (p->way == PLAN_CHUNKS)
                stripe_done(&p->stripe, i, piece[i].level);
            idle = 0;
        } else if (plan_take(p, len, i, &piece[i])) {
            assert_true(piece[i].len > 0 && piece[i].offset + piece[i].len <= len);
            assert_true(p->way != PLAN_MESSAGES || piece[i].len <= most);
            for (uint64_t k = 0; k < piece[i].len; k++)
                assert_int_equal(got[i][piece[i].offset + k]++, 0);
            p->leg[i].posted += piece[i].len;
            flying[i] = true;
            idle = 0;
        }
    }
    for (int i = 0; i < p->legs; i++) {
        assert_int_equal(p->leg[i].done, len);
        assert_null(memchr(got[i], 0, len));
    }
}

static void test_plan_random_routes_reach_every_copy_with_every_byte_once(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 150; run++) {
        int nodes[8] = {SELF, 0, 1, 2, 3, 4, 5, 6};
        for (int i = 0; i < 8; i++) {
            int k = (int)rng_below(&rng, 8), node = nodes[i];
            nodes[i] = nodes[k];
            nodes[k] = node;
        }
        int copies = 1 + (int)rng_below(&rng, LEGS_MAX);
        struct route r = route_of((enum route_mode)(1 + rng_below(&rng, 3)), copies, nodes[0],
                                  copies > 1 ? nodes[1] : -1, copies > 2 ? nodes[2] : -1);
        enum op_kind kind = rng_below(&rng, 3) ? OP_PUT : OP_GET;
        uint64_t len = 1 + rng_below(&rng, rng_below(&rng, 2) ? 2 * WIRE_BULK_MAX : 1 << 21);
        struct plan p = plan_of(kind, len, &r);
        int direct = p.here;
        for (int i = 0; i < p.legs; i++) {
            bool known = false;
            for (int k = 0; k < copies; k++)
                known = known || r.node[k] == p.leg[i].node;
            assert_true(known);
            assert_true(!p.here || p.leg[i].node != SELF); /* once to each */
            for (int k = 0; k < i; k++)
                assert_int_not_equal(p.leg[i].node, p.leg[k].node);
            direct++;
        }
        if (kind == OP_PUT && !p.through)
            assert_int_equal(direct, copies);
        else
            assert_int_equal(direct, 1);
        if (p.legs)
            cover(&p, len, &rng);
    }
}

static void test_plan_nothing_is_taken_of_an_empty_put(void **state)
{
    (void)state;
    struct stripe_piece piece;
    struct route r = route_of(ROUTE_DIRECT, 2, 2, 3, -1);
    struct plan p = plan_of(OP_PUT, 0, &r);
    assert_false(plan_take(&p, 0, 0, &piece));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_put_one_copy_here_is_plain),
        cmocka_unit_test(test_plan_put_one_copy_elsewhere_is_one_remote_write),
        cmocka_unit_test(test_plan_small_access_that_would_tear_words_is_a_message),
        cmocka_unit_test(test_plan_put_small_to_several_elsewhere_is_a_message_to_each),
        cmocka_unit_test(test_plan_put_large_to_several_elsewhere_is_chunks),
        cmocka_unit_test(test_plan_put_with_a_copy_here_sends_messages_to_the_others),
        cmocka_unit_test(test_plan_put_while_made_equal_goes_through_the_primary),
        cmocka_unit_test(test_plan_put_always_through_goes_through_the_primary),
        cmocka_unit_test(test_plan_packed_put_is_a_message_to_each_copy_and_never_cut),
        cmocka_unit_test(test_plan_packs_what_loads_and_stores_do_not_reach),
        cmocka_unit_test(test_plan_of_what_was_lost_asks_an_agent),
        cmocka_unit_test(test_plan_get_loads_here_reads_elsewhere),
        cmocka_unit_test(test_plan_get_reads_another_copy_only_while_all_are_equal),
        cmocka_unit_test(test_plan_get_is_a_message_while_bytes_may_be_torn),
        cmocka_unit_test(test_plan_strong_get_is_a_message_to_the_primary_of_several),
        cmocka_unit_test(test_plan_atomics_are_messages_to_the_primary),
        cmocka_unit_test(test_plan_random_routes_reach_every_copy_with_every_byte_once),
        cmocka_unit_test(test_plan_nothing_is_taken_of_an_empty_put),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
