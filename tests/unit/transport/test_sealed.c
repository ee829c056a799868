/* Sealed connections as somebody on the wire meets them. The wire is the in-process transport, whose sends pass through
 * the test's hands. */
#include "runtime/net/sealed/sealed.h"
#include "tests/unit/transport/tp_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/net/sealed/sealed_box.h"
#include "tests/lib/net/mem.h"

static const uint8_t secret[32] = "a secret that all of a job know", other_secret[32] = "another";

/* ---- the wire ---- */

enum { WIRE_KEPT = 64 };
enum mischief { LEAVE, FLIP, DROP, REPEAT, SWAP, REFLECT /* the first one kept goes instead */ };
static struct wire {
    struct frame {
        size_t len;
        uint8_t bytes[TP_FRAME_MAX];
    } kept[WIRE_KEPT], held;
    int count;
    enum mischief mischief; /* once, to the next frame */
    size_t at;              /* FLIP: which byte */
} wire;
static struct tp_table tapped;

static keel_status wire_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                             struct tp_op *op)
{
    struct frame f = {.len = hlen + len};
    memcpy(f.bytes, header, hlen);
    if (len)
        memcpy(f.bytes + hlen, body, len);
    if (wire.count < WIRE_KEPT)
        wire.kept[wire.count++] = f;
    enum mischief mischief = wire.mischief;
    wire.mischief = LEAVE;
    if (mischief == DROP)
        return KEEL_OK;
    if (mischief == FLIP)
        f.bytes[wire.at % f.len] ^= 1;
    if (mischief == REFLECT)
        f = wire.kept[0];
    if (mischief == SWAP) {
        wire.held = f;
        return KEEL_OK;
    }
    if (mischief == REPEAT)
        assert_int_equal(tp_mem.send(ep, f.bytes, f.len, NULL, 0, NULL), KEEL_OK);
    keel_status status = tp_mem.send(ep, f.bytes, f.len, NULL, 0, op);
    if (wire.held.len && status == KEEL_OK)
        status = tp_mem.send(ep, wire.held.bytes, wire.held.len, NULL, 0, NULL);
    wire.held.len = 0;
    return status;
}

static bool wire_saw(const void *what, size_t len)
{
    for (int i = 0; i < wire.count; i++)
        if (memmem(wire.kept[i].bytes, wire.kept[i].len, what, len))
            return true;
    return false;
}

static keel_status open_with(const uint8_t *key, const struct tp_config *config, struct tp **out)
{
    struct tp *inner;
    if (tp_mem.open(config, &inner) != KEEL_OK)
        return KEEL_ERR_NOMEM;
    tapped = tp_mem;
    tapped.send = wire_send;
    inner->table = &tapped;
    return tp_sealed_open(inner, key, out);
}
static keel_status open_sealed(const struct tp_config *config, struct tp **out)
{
    return open_with(secret, config, out);
}
static keel_status open_stranger(const struct tp_config *config, struct tp **out)
{
    return open_with(other_secret, config, out);
}

static struct tp_table table_of(keel_status (*open)(const struct tp_config *config, struct tp **out))
{
    struct tp *tp = NULL;
    if (open(&(struct tp_config){.host = "x"}, &tp) != KEEL_OK || !tp)
        abort();
    struct tp_table table = *tp->table;
    table.open = open;
    tp->table->close(tp);
    return table;
}

enum { MEMORY = 1u << 17, KEY = 7 };
struct pair {
    struct world world;
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
    uint8_t *memory; /* b's */
};
static struct tp_table sealed, stranger;

static int pair_open(void **state)
{
    struct pair *p = calloc(1, sizeof *p);
    memset(&wire, 0, sizeof wire);
    peer_open(&p->world, &p->a, &sealed, "a", true);
    peer_open(&p->world, &p->b, &sealed, "b", true);
    world_connect(&p->world, &p->a, &p->b, &p->a_ep, &p->b_ep);
    p->memory = calloc(1, MEMORY);
    assert_int_equal(sealed.reg(p->b.tp, p->memory, MEMORY, KEY), KEEL_OK);
    *state = p;
    return 0;
}

static int pair_close(void **state)
{
    struct pair *p = *state;
    peer_close(&p->world, &p->a);
    peer_close(&p->world, &p->b);
    free(p->memory);
    free(p);
    return 0;
}

/* ---- what is seen ---- */

static const char pattern[] = "what nobody on the wire may read";

static void test_sealed_wire_shows_neither_messages_nor_writes_nor_reads(void **state)
{
    struct pair *p = *state;
    struct tp_op write = {0}, read = {0};
    uint8_t back[sizeof pattern];
    assert_int_equal(tp_send(p->a_ep, "head", 4, pattern, sizeof pattern, NULL), KEEL_OK);
    record_free(world_await(&p->world, &p->b, TP_RECV, p->b_ep));
    assert_int_equal(tp_write(p->a_ep, pattern, sizeof pattern, KEY, 100, &write), KEEL_OK);
    assert_int_equal(world_await_status(&p->world, &p->a, TP_DONE, p->a_ep), KEEL_OK);
    assert_memory_equal(p->memory + 100, pattern, sizeof pattern);
    assert_int_equal(tp_read(p->a_ep, back, sizeof back, KEY, 100, &read), KEEL_OK);
    assert_int_equal(world_await_status(&p->world, &p->a, TP_DONE, p->a_ep), KEEL_OK);
    assert_memory_equal(back, pattern, sizeof pattern);
    assert_true(wire.count >= 6);
    for (size_t at = 0; at + 8 <= sizeof pattern; at++)
        assert_false(wire_saw(pattern + at, 8));
    assert_false(wire_saw(secret, 8));
}

static void test_sealed_same_bytes_twice_look_different(void **state)
{
    struct pair *p = *state;
    wire.count = 0;
    for (int i = 0; i < 2; i++)
        assert_int_equal(tp_send(p->a_ep, pattern, sizeof pattern, NULL, 0, NULL), KEEL_OK);
    assert_int_equal(wire.count, 2);
    assert_int_equal(wire.kept[0].len, wire.kept[1].len);
    assert_memory_not_equal(wire.kept[0].bytes, wire.kept[1].bytes, 16);
}

/* ---- what is changed ---- */

static void expect_end(struct pair *p)
{
    assert_int_not_equal(world_await_status(&p->world, &p->b, TP_CLOSED, p->b_ep), KEEL_OK);
    assert_int_not_equal(world_await_status(&p->world, &p->a, TP_CLOSED, p->a_ep), KEEL_OK);
}

static void test_sealed_flipped_byte_anywhere_ends_the_connection_and_changes_nothing(void **state)
{
    struct pair *p = *state;
    size_t len = 1;
    for (size_t at = 0; at < len; at++) {
        struct tp_op op = {0};
        wire.count = 0;
        wire.mischief = FLIP;
        wire.at = at;
        assert_int_equal(tp_write(p->a_ep, pattern, sizeof pattern, KEY, 0, &op), KEEL_OK);
        len = wire.kept[0].len;
        assert_int_equal(world_await_status(&p->world, &p->a, TP_DONE, p->a_ep), KEEL_ERR_LINK);
        expect_end(p);
        assert_int_equal(p->memory[0], 0);
        tp_ep_destroy(p->a_ep);
        tp_ep_destroy(p->b_ep);
        world_connect(&p->world, &p->a, &p->b, &p->a_ep, &p->b_ep);
    }
    assert_true(len > sizeof pattern);
}

static void expect_mischief_found(struct pair *p, enum mischief mischief, int arrive)
{
    wire.mischief = mischief;
    for (uint64_t i = 0; i < 3; i++)
        (void)tp_send(p->a_ep, &i, sizeof i, NULL, 0, NULL);
    expect_end(p);
    for (uint64_t i = 0; i < (uint64_t)arrive; i++) {
        struct peer_record *r = world_await(&p->world, &p->b, TP_RECV, p->b_ep);
        assert_memory_equal(r->event.data, &i, sizeof i);
        record_free(r);
    }
    world_expect_none(&p->world, &p->b, TP_RECV, 1);
}

static void test_sealed_dropped_frame_ends_the_connection(void **state)
{
    expect_mischief_found(*state, DROP, 0);
}

static void test_sealed_repeated_frame_is_delivered_once_and_ends_the_connection(void **state)
{
    expect_mischief_found(*state, REPEAT, 1);
}

static void test_sealed_frames_in_another_order_end_the_connection(void **state)
{
    expect_mischief_found(*state, SWAP, 0);
}

static void test_sealed_reflected_frame_ends_the_connection(void **state)
{
    struct pair *p = *state;
    wire.count = 0;
    assert_int_equal(tp_send(p->a_ep, "x", 1, NULL, 0, NULL), KEEL_OK);
    record_free(world_await(&p->world, &p->b, TP_RECV, p->b_ep));
    wire.mischief = REFLECT;
    assert_int_equal(tp_send(p->b_ep, "y", 1, NULL, 0, NULL), KEEL_OK);
    expect_end(p);
    world_expect_none(&p->world, &p->a, TP_RECV, 1);
}

/* A second connection has other keys: what was recorded of the first means nothing there. */
static void test_sealed_recorded_frame_does_not_open_on_another_connection(void **state)
{
    struct pair *p = *state;
    struct tp_ep *a2, *b2;
    wire.count = 0;
    assert_int_equal(tp_send(p->a_ep, pattern, sizeof pattern, NULL, 0, NULL), KEEL_OK);
    struct frame first = wire.kept[0];
    world_connect(&p->world, &p->a, &p->b, &a2, &b2);
    wire.count = 0;
    assert_int_equal(tp_send(a2, pattern, sizeof pattern, NULL, 0, NULL), KEEL_OK);
    assert_int_equal(wire.kept[0].len, first.len);
    assert_memory_not_equal(wire.kept[0].bytes, first.bytes, 16);
}

/* ---- who may connect ---- */

static void test_sealed_connector_without_the_secret_shows_no_hello_and_cannot_be_accepted(void **state)
{
    struct pair *p = *state;
    struct peer s;
    struct tp_ep *ep, *accepted = NULL;
    peer_open(&p->world, &s, &stranger, "s", false);
    assert_int_equal(stranger.connect(s.tp, &p->b.addr, "hi", 2, NULL, &ep), KEEL_OK);
    struct peer_record *request = world_await(&p->world, &p->b, TP_CONNREQ, NULL);
    assert_int_equal(request->event.len, 0);
    assert_int_equal(sealed.accept(p->b.tp, request->event.req, NULL, &accepted), KEEL_ERR_AUTH);
    record_free(request);
    assert_int_equal(world_await_status(&p->world, &s, TP_CLOSED, ep), KEEL_ERR_AUTH);
    peer_close(&p->world, &s);
}

static void test_sealed_connector_meets_a_listener_without_the_secret_and_leaves(void **state)
{
    struct pair *p = *state;
    struct tp_ep *ep, *inner_ep;
    struct tp *inner; /* speaks, but cannot answer the greeting */
    struct tp_addr addr;
    struct tp_event event;
    assert_int_equal(tp_mem.open(&(struct tp_config){.host = "l"}, &inner), KEEL_OK);
    assert_int_equal(tp_mem.listen(inner, &addr), KEEL_OK);
    assert_int_equal(sealed.connect(p->a.tp, &addr, "hi", 2, NULL, &ep), KEEL_OK);
    while (tp_poll(inner, &event, 1) != 1 || event.type != TP_CONNREQ)
        ;
    uint8_t greeting[BOX_GREETING], scalar[BOX_POINT] = {1}, answer[BOX_ANSWER];
    memcpy(greeting, event.data, sizeof greeting);
    assert_int_equal(tp_mem.accept(inner, event.req, NULL, &inner_ep), KEEL_OK);
    struct box box;
    assert_true(box_answer(&box, other_secret, scalar, greeting, answer));
    assert_int_equal(tp_send(inner_ep, answer, sizeof answer, NULL, 0, NULL), KEEL_OK);
    assert_int_equal(world_await_status(&p->world, &p->a, TP_CLOSED, ep), KEEL_ERR_LINK);
    world_expect_none(&p->world, &p->a, TP_CONNECTED, 1);
    tp_mem.close(inner);
}

static void test_sealed_greeting_with_another_hello_is_refused(void **state)
{
    (void)state;
    struct box box;
    uint8_t scalar[BOX_POINT] = {1}, bytes[BOX_GREETING + 5];
    memset(bytes + BOX_GREETING, 'h', 5);
    box_greet(&box, secret, scalar, "hhhhh", 5, bytes);
    assert_true(box_is_greeting(secret, bytes, sizeof bytes));
    assert_false(box_is_greeting(other_secret, bytes, sizeof bytes));
    assert_false(box_is_greeting(secret, bytes, sizeof bytes - 1));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 0x80;
        assert_false(box_is_greeting(secret, bytes, sizeof bytes));
        bytes[i] ^= 0x80;
    }
}

int main(void)
{
    sealed = table_of(open_sealed);
    stranger = table_of(open_stranger);
#define with_pair(f) cmocka_unit_test_setup_teardown(f, pair_open, pair_close)
    const struct CMUnitTest tests[] = {
        with_pair(test_sealed_wire_shows_neither_messages_nor_writes_nor_reads),
        with_pair(test_sealed_same_bytes_twice_look_different),
        with_pair(test_sealed_flipped_byte_anywhere_ends_the_connection_and_changes_nothing),
        with_pair(test_sealed_dropped_frame_ends_the_connection),
        with_pair(test_sealed_repeated_frame_is_delivered_once_and_ends_the_connection),
        with_pair(test_sealed_frames_in_another_order_end_the_connection),
        with_pair(test_sealed_reflected_frame_ends_the_connection),
        with_pair(test_sealed_recorded_frame_does_not_open_on_another_connection),
        with_pair(test_sealed_connector_without_the_secret_shows_no_hello_and_cannot_be_accepted),
        with_pair(test_sealed_connector_meets_a_listener_without_the_secret_and_leaves),
        cmocka_unit_test(test_sealed_greeting_with_another_hello_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
