/* Each message: what is encoded is what is decoded, whatever stands in it; and what no message is, is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/wire/acc.h"
#include "runtime/wire/compare.h"
#include "runtime/wire/doubt.h"
#include "runtime/wire/digested.h"
#include "runtime/wire/extension.h"
#include "runtime/wire/forward.h"
#include "runtime/wire/get.h"
#include "runtime/wire/hash.h"
#include "runtime/wire/scrub.h"
#include "runtime/wire/intent.h"
#include "runtime/wire/kinds.h"
#include "runtime/wire/order.h"
#include "runtime/wire/parcel.h"
#include "runtime/wire/patch.h"
#include "runtime/wire/put.h"
#include "runtime/wire/rank_ask.h"
#include "runtime/wire/relayed.h"
#include "runtime/wire/reply.h"
#include "runtime/wire/rmw.h"
#include "runtime/wire/segment_has.h"
#include "runtime/wire/segment_told.h"
#include "runtime/wire/snap.h"
#include "seed.h"

enum { ROUNDS = 200 };

static struct rng rng;

/* Each member of a struct by name: it gets a value, and has it still. */
#define SOME(f) m.f = _Generic(m.f, bool : rng_below(&rng, 2), default : rng_u64(&rng));
#define SAME(f) assert_true(m.f == d.f);

/* type: of the message; members: of struct msg_NAME, as a list that applies its argument; whole: what the random
 * values are to be after all. */
// NOLINTBEGIN(bugprone-macro-parentheses): members and names of types
#define ROUND_TRIP(name, wire_type, path, members, whole)                                                              \
    ROUND_TRIP_OF(name, msg_##name, msg_##name##_decode, wire_type, path, members, whole)
#define ROUND_TRIP_OF(name, of, decode, wire_type, path, members, whole)                                               \
    static void test_messages_##name##_random_comes_back(void **state)                                                 \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        for (int i = 0; i < ROUNDS; i++) {                                                                             \
            struct of m;                                                                                               \
            members(SOME) whole;                                                                                       \
            struct wire w, bytes;                                                                                      \
            msg_##name##_encode(&m, &w);                                                                               \
            memcpy(&bytes, &w, sizeof w);                                                                              \
            assert_int_equal(bytes.type, wire_type);                                                                   \
            assert_true(wire_is_known(&bytes, path));                                                                  \
            struct of d;                                                                                               \
            decode(&bytes, &d);                                                                                        \
            members(SAME)                                                                                              \
        }                                                                                                              \
    }

#define LIFE(F, life) F(life.rank) F(life.incarnation)
#define AT(F, at) F(at.seg) F(at.slot) F(at.offset)
// NOLINTEND(bugprone-macro-parentheses)
#define REQUEST(F)                                                                                                     \
    F(request.seq)                                                                                                     \
    AT(F, request.at)                                                                                                  \
    F(request.len) F(request.packed) F(request.generation) LIFE(F, request.origin) F(request.doubted)
/* Of a task, or not: one of the two has no meaning. */
#define IDENTITY(F)                                                                                                    \
    F(identity.of_task) F(identity.lane) F(identity.number) F(identity.task) F(identity.round) F(identity.step)
#define ONE_IDENTITY                                                                                                   \
    m.identity.task = m.identity.number;                                                                               \
    if (m.identity.of_task)                                                                                            \
        m.identity.lane = 0;                                                                                           \
    else                                                                                                               \
        m.identity.round = m.identity.lane

#define PUT(F) REQUEST(F) F(through) F(note)
#define GET(F) REQUEST(F) F(bytes) F(strong) F(inspects) F(compares)
#define ACC(F) REQUEST(F) IDENTITY(F) F(type) F(scale[0]) F(scale[1])
#define RMW(F) REQUEST(F) IDENTITY(F) F(operation) F(bytes) F(unordered) F(a) F(b)
#define INTENT(F) F(seq) AT(F, at) F(bytes) F(note) F(put) F(generation) F(level)
#define REPLY(F) F(seq) F(len) F(status) F(value) F(shared) F(forgot)
#define FORWARD(F)                                                                                                     \
    AT(F, at)                                                                                                          \
    F(len)                                                                                                             \
    F(packed) F(relay) F(again) F(answer) F(request) F(operation) F(number) F(value) LIFE(F, origin) IDENTITY(F)
#define RELAYED(F) F(up_to) F(living)
#define SNAP(F) F(slot) F(class) F(placed)
#define IN_SNAP(F) F(snap.slot) F(snap.class) F(snap.placed)
#define SNAP_BEGIN(F) IN_SNAP(F) F(forwards)
#define SNAP_SEEN(F) IN_SNAP(F) F(len)
#define SNAP_BLOCK(F) IN_SNAP(F) F(seg) F(offset) F(len) F(lost)
#define SEGMENT(F) F(seg) F(number) F(bytes_per_rank) F(redundancy) F(uneven) F(asks) F(agreed) F(before)
#define SEGMENT_FREED(F) F(seg) F(number) F(status)
#define SEGMENT_HAS(F) F(seg) F(status)
#define DOUBT(F) AT(F, at) F(bytes) F(torn) F(living) F(level) F(put) LIFE(F, writer) F(generation)
#define DOUBT_END(F) F(slot) F(class) F(generation)
#define OF(F) AT(F, of.at) F(of.class) F(of.generation) F(of.around)
#define FETCH(F) OF(F) F(bytes)
#define PATCH(F) OF(F) F(len) F(answer)
#define COMPARE(F) AT(F, at) F(len) F(round) F(generation)
#define COMPARED(F) F(slot) F(len) F(round)
#define HASH(F) AT(F, at) F(bytes) F(exact) F(question)
#define HASHED(F) F(len) F(question) F(status) F(generation)
#define SCRUB(F) AT(F, at) F(bytes) F(close) F(question)
#define SCRUBBED(F) F(len) F(question) F(status) F(generation) F(stored) F(written) F(noted_ns)
#define RANK_ASK(F) LIFE(F, life) F(asked) F(behind) F(group) F(returned) F(begun)
#define RANK_SAYS(F) LIFE(F, life) F(process) F(ticks) F(asked)
#define ORDER(F) F(class) F(first) F(len)
#define ORDERED(F) F(class) F(upto)
#define PARCEL(F)                                                                                                      \
    LIFE(F, sender)                                                                                                    \
    LIFE(F, receiver) F(received) F(piece) F(kind) F(creating) F(tell) F(hollow) F(hollows) F(total) F(at) F(len)

static int some_note(void)
{
    return (int)rng_below(&rng, UINT16_MAX + 1) - 1;
}

ROUND_TRIP(put, WIRE_PUT, WIRE_FROM_RANK, PUT, m.note = some_note())
ROUND_TRIP(get, WIRE_GET, WIRE_FROM_RANK, GET, )
ROUND_TRIP(acc, WIRE_ACC, WIRE_FROM_RANK, ACC, ONE_IDENTITY)
ROUND_TRIP(rmw, WIRE_RMW, WIRE_FROM_RANK, RMW, ONE_IDENTITY; m.operation &= RMW_32 - 1; m.bytes = m.bytes & 4 ? 4 : 8)
ROUND_TRIP(intent, WIRE_INTENT, WIRE_FROM_RANK, INTENT, m.note = some_note())
ROUND_TRIP(reply, WIRE_REPLY, WIRE_TO_RANK, REPLY, m.forgot = some_note())
ROUND_TRIP(forward, WIRE_FORWARD, WIRE_OF_AGENTS, FORWARD, ONE_IDENTITY)
ROUND_TRIP(relayed, WIRE_RELAYED, WIRE_OF_AGENTS, RELAYED, )
ROUND_TRIP(snap_begin, WIRE_SNAP_BEGIN, WIRE_OF_AGENTS, SNAP_BEGIN, )
ROUND_TRIP_OF(snap_origin, msg_snap_seen, msg_snap_seen_decode, WIRE_SNAP_ORIGIN, WIRE_OF_AGENTS, SNAP_SEEN, )
ROUND_TRIP_OF(snap_tasks, msg_snap_seen, msg_snap_seen_decode, WIRE_SNAP_TASKS, WIRE_OF_AGENTS, SNAP_SEEN, )
ROUND_TRIP(snap_block, WIRE_SNAP_BLOCK, WIRE_OF_AGENTS, SNAP_BLOCK, )
ROUND_TRIP_OF(snap_end, msg_snap, msg_snap_decode, WIRE_SNAP_END, WIRE_OF_AGENTS, SNAP, )
ROUND_TRIP_OF(snap_here, msg_snap, msg_snap_decode, WIRE_SNAP_HERE, WIRE_OF_AGENTS, SNAP, )
ROUND_TRIP(segment, WIRE_SEGMENT, WIRE_OF_AGENTS, SEGMENT, )
ROUND_TRIP(segment_has, WIRE_SEGMENT_HAS, WIRE_OF_AGENTS, SEGMENT_HAS, )
ROUND_TRIP(segment_freed, WIRE_SEGMENT, WIRE_OF_AGENTS, SEGMENT_FREED, )
ROUND_TRIP(doubt, WIRE_DOUBT, WIRE_OF_AGENTS, DOUBT, )
ROUND_TRIP(doubt_end, WIRE_DOUBT, WIRE_OF_AGENTS, DOUBT_END, )
ROUND_TRIP(fetch, WIRE_FETCH, WIRE_OF_AGENTS, FETCH, )
ROUND_TRIP(patch, WIRE_PATCH, WIRE_OF_AGENTS, PATCH, )
ROUND_TRIP(compare, WIRE_COMPARE, WIRE_OF_AGENTS, COMPARE, )
ROUND_TRIP(compared, WIRE_COMPARED, WIRE_OF_AGENTS, COMPARED, )
ROUND_TRIP(hash, WIRE_HASH, WIRE_OF_AGENTS, HASH, )
ROUND_TRIP(hashed, WIRE_HASHED, WIRE_OF_AGENTS, HASHED, )
ROUND_TRIP(scrub, WIRE_SCRUB, WIRE_OF_AGENTS, SCRUB, )
ROUND_TRIP(scrubbed, WIRE_SCRUBBED, WIRE_OF_AGENTS, SCRUBBED, )
ROUND_TRIP(rank_ask, WIRE_RANK_ASK, WIRE_OF_AGENTS, RANK_ASK, )
ROUND_TRIP(rank_says, WIRE_RANK_SAYS, WIRE_OF_AGENTS, RANK_SAYS, )
ROUND_TRIP(order, WIRE_ORDER, WIRE_OF_AGENTS, ORDER, )
ROUND_TRIP(ordered, WIRE_ORDERED, WIRE_OF_AGENTS, ORDERED, )
ROUND_TRIP(parcel, WIRE_PARCEL, WIRE_FROM_RANK, PARCEL, )

/* What shares a type is told apart. */
static void test_messages_of_one_type_are_told_apart(void **state)
{
    (void)state;
    struct wire made;
    msg_segment_encode(&(struct msg_segment){.seg = 3, .number = 1, .bytes_per_rank = 8}, &made);
    struct wire freed;
    msg_segment_freed_encode(&(struct msg_segment_freed){.seg = 3, .number = 2}, &freed);
    struct wire doubt;
    msg_doubt_encode(&(struct msg_doubt){.bytes = 1, .level = 2}, &doubt);
    struct wire end;
    msg_doubt_end_encode(&(struct msg_doubt_end){.class = 1}, &end);
    assert_true(!msg_segment_is_freed(&made) && msg_segment_is_freed(&freed));
    assert_true(!msg_doubt_is_end(&doubt) && msg_doubt_is_end(&end));
}

static void test_messages_parcel_comes_back_without_its_body(void **state)
{
    (void)state;
    struct msg_parcel p = {.sender = life_of(3, 0), .receiver = life_of(5, 2), .piece = 9, .len = 100, .tell = true};
    struct wire back;
    msg_parcel_back_encode(&p, &back);
    assert_int_equal(back.type, WIRE_PARCEL_BACK);
    assert_int_equal(back.len, 0);
    struct msg_parcel d;
    msg_parcel_decode(&back, &d);
    assert_true(life_equal(d.sender, p.sender) && life_equal(d.receiver, p.receiver) && d.piece == 9 && d.tell);
}

/* Down the chain: only who passes on asks for word. */
static void test_messages_chain_asks_for_word_and_no_more(void **state)
{
    (void)state;
    struct wire f, same;
    struct msg_forward asks;
    msg_forward_encode(&(struct msg_forward){.again = true}, &f);
    same = f;
    assert_false(chain_asks_for_word(&f));
    chain_ask_for_word(&f, true);
    msg_forward_decode(&f, &asks);
    assert_true(chain_asks_for_word(&f) && asks.relay && asks.again);
    chain_ask_for_word(&f, false);
    assert_memory_equal(&f, &same, sizeof f);
    struct wire compare;
    msg_compare_encode(&(struct msg_compare){.len = 8}, &compare);
    chain_ask_for_word(&compare, true);
    assert_false(chain_asks_for_word(&compare)); /* it is answered by each copy itself */
}

static void test_messages_unknown_type_is_refused(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        struct wire w = {.type = (uint8_t)type};
        bool known =
            wire_is_known(&w, WIRE_FROM_RANK) || wire_is_known(&w, WIRE_TO_RANK) || wire_is_known(&w, WIRE_OF_AGENTS);
        assert_int_equal(known, type >= WIRE_PUT && type <= WIRE_PARCEL_BACK);
        assert_true(!known || wire_kinds[type].name);
    }
}

static void test_messages_each_flag_that_a_type_has_not_is_refused(void **state)
{
    (void)state;
    for (unsigned type = 0; type < WIRE_TYPES; type++)
        for (unsigned bit = 1; bit < 256; bit *= 2) {
            struct wire w = {.type = (uint8_t)type, .flags = (uint8_t)bit};
            bool known = wire_is_known(&w, (enum wire_path)(WIRE_FROM_RANK | WIRE_TO_RANK | WIRE_OF_AGENTS));
            assert_int_equal(known, (wire_kinds[type].flags & bit) != 0);
        }
}

/* A rank cannot say what only agents say, nor an agent in the stream what only ranks say. */
static void test_messages_the_wrong_way_is_refused(void **state)
{
    (void)state;
    const uint8_t of_ranks[] = {WIRE_PUT, WIRE_GET, WIRE_ACC, WIRE_RMW, WIRE_INTENT};
    for (unsigned i = 0; i < sizeof of_ranks; i++) {
        struct wire w = {.type = of_ranks[i]};
        assert_true(wire_is_known(&w, WIRE_FROM_RANK));
        assert_false(wire_is_known(&w, WIRE_OF_AGENTS) || wire_is_known(&w, WIRE_TO_RANK));
    }
    for (unsigned type = WIRE_PEER_ACK; type <= WIRE_ORDERED; type++) {
        struct wire w = {.type = (uint8_t)type};
        assert_true(wire_is_known(&w, WIRE_OF_AGENTS));
        assert_false(wire_is_known(&w, WIRE_FROM_RANK) || wire_is_known(&w, WIRE_TO_RANK));
    }
    assert_false(wire_is_known(&(struct wire){.type = WIRE_REPLY}, WIRE_FROM_RANK));
}

static void test_messages_cut_short_is_refused(void **state)
{
    (void)state;
    struct wire w = {.type = WIRE_PUT, .len = 40};
    for (size_t len = 0; len < sizeof w + 40; len++)
        assert_int_equal(wire_bytes(&w, len), 0);
    assert_int_equal(wire_bytes(&w, sizeof w + 40), sizeof w + 40);
    assert_int_equal(wire_bytes(&w, sizeof w + 99), sizeof w + 40);
    w.len = UINT32_MAX;
    assert_int_equal(wire_bytes(&w, sizeof w + 40), 0);
}

/* ---- extensions ---- */

static size_t some_extension(struct msg_extension *m, uint8_t *bytes)
{
    *m = (struct msg_extension){.has_envelope = rng_below(&rng, 2), .has_digests = rng_below(&rng, 2)};
    if (m->has_envelope) {
        m->from = (int32_t)rng_below(&rng, INT32_MAX);
        m->to = (int32_t)rng_below(&rng, INT32_MAX);
    }
    for (int i = 0; m->has_digests && i < 2; i++)
        m->digest[i] = rng_u64(&rng);
    return msg_extension_encode(m, bytes);
}

static void test_messages_extension_random_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t bytes[EXTENSION_MAX];
        struct msg_extension m, d;
        size_t len = some_extension(&m, bytes);
        assert_int_equal(len,
                         m.has_envelope || m.has_digests ? 8 + (m.has_envelope ? 8 : 0) + (m.has_digests ? 16 : 0) : 0);
        assert_true(msg_extension_decode(bytes, len, &d));
        assert_true(d.has_envelope == m.has_envelope && d.from == m.from && d.to == m.to);
        assert_true(d.has_digests == m.has_digests && d.digest[0] == m.digest[0] && d.digest[1] == m.digest[1]);
        for (size_t cut = 1; cut < len; cut++)
            assert_false(msg_extension_decode(bytes, cut, &d));
        assert_true(!len || !msg_extension_decode(bytes, len + 8, &d));
    }
}

static void test_messages_extension_that_nobody_knows_is_refused(void **state)
{
    (void)state;
    struct msg_extension m = {.has_envelope = true, .from = 1, .to = 2, .has_digests = true}, d;
    uint8_t bytes[EXTENSION_MAX], bad[EXTENSION_MAX];
    size_t len = msg_extension_encode(&m, bytes);
    for (unsigned bit = 2; bit < 64; bit++) { /* an unknown part, or what is to be zero */
        memcpy(bad, bytes, len);
        bad[bit / 8] |= (uint8_t)(1 << bit % 8);
        assert_false(msg_extension_decode(bad, len, &d));
    }
    m = (struct msg_extension){.has_envelope = true, .from = -1};
    len = msg_extension_encode(&m, bytes);
    assert_false(msg_extension_decode(bytes, len, &d));
    memset(bytes, 0, sizeof bytes);
    assert_false(msg_extension_decode(bytes, 8, &d)); /* it says nothing */
}

/* But for what counts once nobody takes a message with an extension. */
static void test_messages_with_an_extension_is_refused(void **state)
{
    (void)state;
    for (unsigned type = WIRE_PUT; type < WIRE_TYPES; type++) {
        const enum wire_path all = (enum wire_path)(WIRE_FROM_RANK | WIRE_TO_RANK | WIRE_OF_AGENTS);
        struct wire w = {.type = (uint8_t)type};
        assert_true(wire_is_known(&w, all));
        w.extension = 8;
        assert_int_equal(wire_is_known(&w, all), type == WIRE_ACC || type == WIRE_RMW);
    }
}

/* ---- digests ---- */

static struct digested some_digested(uint8_t *body, size_t len, size_t *head)
{
    struct digested m = {.wire = {.type = WIRE_ACC, .len = (uint32_t)len, .seq = rng_u64(&rng), .raw.a = 3}};
    for (size_t i = 0; i < len; i++)
        body[i] = (uint8_t)rng_below(&rng, 256);
    *head = digested_make(&m, body);
    return m;
}

/* Each bit of it, in turn. */
static void test_messages_digested_with_a_wrong_bit_is_found(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 24; len += 8) {
        _Alignas(8) uint8_t whole[sizeof(struct digested) + 24], body[24];
        size_t head;
        const struct digested m = some_digested(body, len, &head);
        struct wire plain;
        const void *at;
        memcpy(whole, &m, head);
        memcpy(whole + head, body, len);
        const struct wire *w = (const struct wire *)whole;
        assert_int_equal(wire_bytes(w, head + len), head + len);
        assert_int_equal(digested_open(w, &plain, &at), DIGESTED_RIGHT);
        assert_true(plain.len == len && !plain.extension && plain.seq == m.wire.seq && plain.raw.a == 3);
        assert_memory_equal(at, body, len);
        for (size_t bit = 0; bit < 8 * (head + len); bit++) {
            whole[bit / 8] ^= (uint8_t)(1 << bit % 8);
            bool cut = wire_bytes(w, head + len) != head + len;
            bool in_digest = bit >= 8 * (head - 8) && bit < 8 * head; /* the body's own is as good as the body */
            assert_true(cut || digested_open(w, &plain, &at) ==
                                   (bit >= 8 * head || in_digest ? DIGESTED_BODY_WRONG : DIGESTED_WRONG));
            whole[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

#define TRIP(name) cmocka_unit_test(test_messages_##name##_random_comes_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRIP(put),
        TRIP(get),
        TRIP(acc),
        TRIP(rmw),
        TRIP(intent),
        TRIP(reply),
        TRIP(forward),
        TRIP(relayed),
        TRIP(snap_begin),
        TRIP(snap_origin),
        TRIP(snap_tasks),
        TRIP(snap_block),
        TRIP(snap_end),
        TRIP(snap_here),
        TRIP(segment),
        TRIP(segment_freed),
        TRIP(segment_has),
        TRIP(doubt),
        TRIP(doubt_end),
        TRIP(fetch),
        TRIP(patch),
        TRIP(compare),
        TRIP(compared),
        TRIP(hash),
        TRIP(hashed),
        TRIP(scrub),
        TRIP(scrubbed),
        TRIP(rank_ask),
        TRIP(rank_says),
        TRIP(order),
        TRIP(ordered),
        TRIP(parcel),
        cmocka_unit_test(test_messages_of_one_type_are_told_apart),
        cmocka_unit_test(test_messages_parcel_comes_back_without_its_body),
        cmocka_unit_test(test_messages_chain_asks_for_word_and_no_more),
        cmocka_unit_test(test_messages_unknown_type_is_refused),
        cmocka_unit_test(test_messages_each_flag_that_a_type_has_not_is_refused),
        cmocka_unit_test(test_messages_the_wrong_way_is_refused),
        cmocka_unit_test(test_messages_cut_short_is_refused),
        cmocka_unit_test(test_messages_extension_random_comes_back),
        cmocka_unit_test(test_messages_extension_that_nobody_knows_is_refused),
        cmocka_unit_test(test_messages_with_an_extension_is_refused),
        cmocka_unit_test(test_messages_digested_with_a_wrong_bit_is_found),
    };
    seed_rng(&rng);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
