/* Streams between two agents over connections in memory that break whenever the test likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "runtime/agent/peer.h"
#include "seed.h"
#include "tests/lib/net/mem.h"

enum { NODES = 2, MS = 1000000 };

static const uint8_t secret[32] = {7};

/* One agent's end, and what came to it. */
struct end {
    struct tp *net;
    struct peers peers;
    struct tp_addr addr;
    uint64_t received; /* messages; each carries its number in a */
    uint64_t acked;
    int refused, broken, no_memory;
    bool deaf;      /* takes no connection */
    bool unhurried; /* says so of what comes */
    bool then;      /* says so of what comes behind the next one */
};

static struct end end[NODES];
static uint64_t now;

static void on_receive(void *user, int from, const struct wire *w, const void *body)
{
    struct end *e = user;
    assert_int_equal(from, 1 - (e - end));
    assert_int_equal(w->raw.a, ++e->received); /* once, in order */
    assert_true(w->epoch <= e->peers.epoch);
    for (uint32_t i = 0; i < w->len; i++)
        assert_int_equal(((const uint8_t *)body)[i], (uint8_t)(w->raw.a + i));
    if (e->unhurried)
        peer_unhurried(&e->peers, from);
    e->unhurried = e->unhurried || e->then;
}

static void on_acked(void *user, int node, uint64_t seq)
{
    struct end *e = user;
    assert_true(seq > e->acked && seq <= end[node].received); /* processed, not only arrived */
    e->acked = seq;
}

static void on_refused(void *user, int node)
{
    (void)node;
    ((struct end *)user)->refused++;
}

static void on_broken(void *user, int node)
{
    (void)node;
    ((struct end *)user)->broken++;
}

static void on_no_memory(void *user)
{
    ((struct end *)user)->no_memory++;
}

static int setup(void **state)
{
    (void)state;
    struct tp_config config = {.host = "peer-test"};
    memset(end, 0, sizeof end);
    now = MS;
    for (int i = 0; i < NODES; i++) {
        struct peers_ops ops = {&end[i], on_receive, on_acked, on_refused, on_broken, on_no_memory};
        if (tp_mem.open(&config, &end[i].net) != KEEL_OK || tp_mem.listen(end[i].net, &end[i].addr) != KEEL_OK ||
            peers_init(&end[i].peers, i, NODES, end[i].net, 1, 10 + (uint64_t)i, secret, &ops) != KEEL_OK)
            return -1;
    }
    for (int i = 0; i < NODES; i++)
        peer_address(&end[i].peers, 1 - i, 11 - (uint64_t)i, &(struct tp_addrs){.n = 1, .of = {end[1 - i].addr}});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < NODES; i++) {
        peers_fini(&end[i].peers);
        end[i].net->table->close(end[i].net);
    }
    return memory_living() == 0 ? 0 : -1;
}

static void poll(int i)
{
    struct end *e = &end[i];
    struct tp_event batch[16];
    int n = tp_poll(e->net, batch, 16);
    for (int k = 0; k < n; k++) {
        struct peer *peer = &e->peers.peer[1 - i];
        if (batch[k].type != TP_CONNREQ) {
            peer_event(&e->peers, tp_ep_user(batch[k].ep), &batch[k], 0);
            continue;
        }
        struct tp_ep *ep;
        if (e->deaf)
            e->net->table->reject(e->net, batch[k].req);
        else if (e->net->table->accept(e->net, batch[k].req, peer, &ep) == KEEL_OK)
            peer_accepted(&e->peers, 1 - i, ep);
    }
}

static void turn(int i)
{
    poll(i);
    peers_tick(&end[i].peers, now);
}

/* Both go on for a while; broken connections are made again. */
static void pump(void)
{
    for (int i = 0; i < 300; i++) {
        now += MS;
        turn(0);
        turn(1);
    }
}

static uint64_t sent[NODES];

static enum peer_sent send_next(int i, uint32_t len)
{
    uint8_t body[WIRE_BODY_MAX];
    uint64_t number = end[i].peers.peer[1 - i].next;
    for (uint32_t k = 0; k < len; k++)
        body[k] = (uint8_t)(number + k);
    struct wire w = {.type = WIRE_FORWARD, .raw.a = (int64_t)number, .len = len};
    enum peer_sent result = peer_send(&end[i].peers, 1 - i, &w, body, now);
    sent[i] = end[i].peers.peer[1 - i].next - 1;
    return result;
}

/* The body stays where it is. */
static void send_kept(uint8_t *body, uint32_t len)
{
    uint64_t number = end[0].peers.peer[1].next;
    for (uint32_t k = 0; k < len; k++)
        body[k] = (uint8_t)(number + k);
    struct wire w = {.type = WIRE_SNAP_BLOCK, .raw.a = (int64_t)number, .len = len};
    assert_int_equal(peer_send_kept(&end[0].peers, 1, &w, body, now), PEER_SENT);
    sent[0] = number;
}

static void assert_all_arrived(void)
{
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(end[1 - i].received, sent[i]);
        assert_int_equal(end[i].acked, sent[i]);
        assert_null(end[i].peers.peer[1 - i].head); /* nothing is kept any more */
        assert_int_equal(peers_deadline(&end[i].peers), UINT64_MAX);
    }
}

static int setup_sent(void **state)
{
    sent[0] = sent[1] = 0;
    return setup(state);
}

/* ---- order ---- */

static void test_peer_small_messages_are_one_of_the_transports(void **state)
{
    (void)state;
    struct tp_event batch[16];
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    for (int k = 0; k < 20; k++)
        assert_int_equal(send_next(0, 8), PEER_SENT);
    peers_tick(&end[0].peers, now);
    assert_int_equal(tp_poll(end[1].net, batch, 16), 1);
    assert_int_equal(batch[0].type, TP_RECV);
    peer_event(&end[1].peers, tp_ep_user(batch[0].ep), &batch[0], 0);
    assert_int_equal(end[1].received, 21);
    pump();
    assert_all_arrived();
}

static void test_peer_messages_arrive_in_order_and_are_acknowledged(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 100; k++) {
        assert_int_equal(send_next(0, k * 100 % WIRE_BODY_MAX), PEER_SENT);
        assert_int_equal(send_next(1, k), PEER_SENT);
    }
    pump();
    assert_all_arrived();
}

static void test_peer_acknowledgement_follows_processing(void **state)
{
    (void)state;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_int_equal(send_next(0, 8), PEER_SENT);
    for (int i = 0; i < 50; i++)
        turn(0); /* the other one does not look */
    assert_int_equal(end[0].acked, 1);
    pump();
    assert_int_equal(end[0].acked, 2);
}

/* Time stands still. */
static void turns(void)
{
    for (int i = 0; i < 50; i++) {
        turn(0);
        turn(1);
    }
}

static void test_peer_unhurried_acknowledgement_waits_for_others(void **state)
{
    (void)state;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    uint64_t acked = end[0].acked;
    end[1].unhurried = true;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    turns();
    assert_int_equal(end[1].received, 2);
    assert_int_equal(end[0].acked, acked);
    assert_true(peers_deadline(&end[1].peers) == now + PEER_ACK_NS);
    now += PEER_ACK_NS; /* after some time it comes by itself, */
    turns();
    assert_int_equal(end[0].acked, ++acked);
    assert_true(peers_deadline(&end[1].peers) == UINT64_MAX);
    for (int i = 0; i < PEER_UNHURRIED_MAX; i++) /* when there are many, */
        assert_int_equal(send_next(0, 8), PEER_SENT);
    turns();
    assert_int_equal(end[0].acked, acked += PEER_UNHURRIED_MAX);
    assert_int_equal(send_next(0, 8), PEER_SENT); /* with one that somebody waits for, */
    turns();
    end[1].unhurried = false;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    turns();
    assert_int_equal(end[0].acked, acked += 2);
    end[1].unhurried = true; /* and when somebody begins to wait */
    assert_int_equal(send_next(0, 8), PEER_SENT);
    turns();
    assert_int_equal(end[0].acked, acked);
    peers_hurry(&end[1].peers);
    turns();
    assert_int_equal(end[0].acked, ++acked);
    end[1].unhurried = false; /* or if it comes behind such a one */
    end[1].then = true;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    turns();
    assert_int_equal(end[0].acked, acked + 2);
}

/* ---- breaks ---- */

static void break_connection(int i)
{
    struct peer *peer = &end[i].peers.peer[1 - i];
    struct tp_ep *ep = peer->out.ep ? peer->out.ep : peer->in;
    if (ep)
        tp_disconnect(ep);
}

static void test_peer_message_on_a_broken_connection_is_sent_again(void **state)
{
    (void)state;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    break_connection(0);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_int_equal(end[0].broken, 1);
    assert_all_arrived();
}

/* Small ones that were put into the stream between two ticks travel in one message of the transport, large ones in one
 * each; what breaks meanwhile goes out again. */
static void test_peer_messages_of_all_sizes_travel_together(void **state)
{
    (void)state;
    static const uint32_t len[] = {0,    3,    8,    100,  8 * 1024, 8 * 1024 + 1, 7, 16 * 1024 - 1, 0,
                                   4000, 4001, 4002, 4003, 5};
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    for (int run = 0; run < 20; run++) {
        for (size_t k = 0; k < sizeof len / sizeof len[0]; k++)
            assert_int_equal(send_next(0, len[k]), PEER_SENT);
        peers_tick(&end[0].peers, now);
        if (run % 3 == 1)
            poll(1);
        if (run % 3)
            break_connection(0);
        pump();
    }
    assert_all_arrived();
}

/* The acknowledgement is lost with the connection: the message comes twice, and counts once. */
static void test_peer_message_whose_acknowledgement_was_lost_counts_once(void **state)
{
    (void)state;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_int_equal(send_next(0, 8), PEER_SENT);
    peers_tick(&end[0].peers, now);
    poll(1);
    assert_int_equal(end[1].received, 2);
    break_connection(0);
    peers_tick(&end[1].peers, now);
    pump();
    assert_all_arrived();
}

static void test_peer_that_does_not_accept_yet_gets_all_later(void **state)
{
    (void)state;
    end[1].deaf = true;
    for (int k = 0; k < 10; k++)
        assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_int_equal(end[1].received, 0);
    assert_true(peers_deadline(&end[0].peers) < UINT64_MAX); /* it tries again by itself */
    assert_int_equal(end[0].refused, 0);                     /* somebody listens there */
    end[1].deaf = false;
    pump();
    assert_all_arrived();
}

static void test_peer_that_nobody_listens_for_is_told_as_refused(void **state)
{
    (void)state;
    struct tp_addrs nowhere = {.n = 1, .of = {{.len = sizeof(uint64_t), .bytes = {0xff, 0xff, 0xff}}}};
    peer_address(&end[0].peers, 1, 11, &nowhere);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_true(end[0].refused >= 1);
    assert_int_equal(end[0].broken, 0);
}

static void test_peer_random_breaks_lose_and_repeat_nothing(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int step = 0; step < 60000; step++) {
        int i = (int)rng_below(&rng, NODES);
        now += rng_below(&rng, MS);
        switch (rng_below(&rng, 40)) {
        case 0:
            break_connection(i);
            break;
        case 1:
            peers_epoch(&end[i].peers, end[i].peers.epoch + 1);
            break;
        case 2:
            end[i].deaf = !end[i].deaf;
            break;
        case 3:
        case 4:
        case 5:
            assert_int_equal(send_next(i, (uint32_t)rng_below(&rng, 200)), PEER_SENT);
            break;
        default:
            if (rng_below(&rng, 2))
                poll(i);
            else
                peers_tick(&end[i].peers, now);
        }
    }
    uint64_t epoch = end[0].peers.epoch + end[1].peers.epoch;
    for (int i = 0; i < NODES; i++) {
        end[i].deaf = false;
        peers_epoch(&end[i].peers, epoch);
    }
    pump();
    assert_true(sent[0] > 100 && sent[1] > 100);
    assert_all_arrived();
}

/* ---- rails ---- */

/* Agent 0's transport when the cable of its first rail is cut: what is sent there is taken and gets nowhere. */
static bool is_cut, is_lost;
static struct tp_table cut;

static bool over_first(const struct tp_ep *ep)
{
    return end[0].peers.peer[1].out.ep == ep && end[0].peers.peer[1].out.key.rail == 0;
}

static keel_status cut_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                            struct tp_op *op)
{
    if (is_cut && over_first(ep)) {
        is_lost = true;
        return KEEL_OK;
    }
    return tp_mem.send(ep, header, hlen, body, len, op);
}

static bool cut_moved(const struct tp_ep *ep, struct tp_moved *moved)
{
    *moved = (struct tp_moved){.pending = is_cut && over_first(ep)};
    return true;
}

static void open_rails(int rails)
{
    struct tp_config config = {.host = "peer-test", .more = {"second"}};
    for (int i = 0; i < NODES; i++) {
        struct tp_addrs addrs;
        end[i].net->table->close(end[i].net);
        assert_int_equal(tp_mem.open(&config, &end[i].net), KEEL_OK);
        assert_int_equal(addrs_listen(end[i].net, &addrs), KEEL_OK);
        addrs.n = (uint32_t)rails;
        end[i].peers.ways.tp = end[i].net;
        peer_address(&end[1 - i].peers, i, 10 + (uint64_t)i, &addrs);
    }
    is_cut = is_lost = false;
    cut = tp_mem;
    cut.send = cut_send;
    cut.moved = cut_moved;
    end[0].net->table = &cut;
}

static void test_peer_goes_on_over_another_rail(void **state)
{
    (void)state;
    open_rails(2);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_all_arrived();
    assert_int_equal(end[0].peers.peer[1].out.key.rail, 0);
    is_cut = true;
    uint64_t since = now;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    assert_int_equal(send_next(0, 100), PEER_SENT);
    for (int i = 0; end[1].received < 3 && i < 1000; i++) {
        now += MS;
        assert_true(end[1].received == 1 || end[0].peers.peer[1].out.key.rail == 1);
        turn(0);
        turn(1);
    }
    assert_true(is_lost);
    assert_in_range(now - since, WAY_STUCK_NS, WAY_STUCK_NS + 60 * MS);
    pump();
    assert_all_arrived();
    assert_int_equal(end[0].peers.peer[1].out.key.rail, 1);
    assert_int_equal(end[0].broken, 0); /* nobody is suspected */
    assert_int_equal(end[0].refused, 0);
}

static void test_peer_of_one_rail_waits_as_ever(void **state)
{
    (void)state;
    open_rails(1);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    is_cut = true;
    assert_int_equal(send_next(0, 8), PEER_SENT);
    turn(0);
    assert_int_equal(peers_deadline(&end[0].peers), UINT64_MAX); /* no timer for what cannot be mended */
    for (int i = 0; i < 10; i++)
        pump();
    assert_int_equal(end[1].received, 1);
    assert_int_equal(end[0].peers.peer[1].out.attempts, 1);
}

/* ---- epochs ---- */

static void test_peer_message_of_a_later_view_waits_for_it(void **state)
{
    (void)state;
    assert_int_equal(send_next(0, 8), PEER_SENT); /* of view 0 */
    peers_epoch(&end[0].peers, 1);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    peers_epoch(&end[0].peers, 2);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_int_equal(end[1].received, 1);
    assert_int_equal(end[0].acked, 1);
    peers_epoch(&end[1].peers, 1);
    assert_int_equal(end[1].received, 2);
    pump();
    assert_int_equal(end[0].acked, 2);
    break_connection(0); /* what waits, waits on; its repetition is dropped */
    pump();
    peers_epoch(&end[1].peers, 3);
    pump();
    assert_all_arrived();
}

static void test_peer_message_of_an_earlier_view_is_processed(void **state)
{
    (void)state;
    peers_epoch(&end[1].peers, 5);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    pump();
    assert_all_arrived();
}

/* ---- death ---- */

static void test_peer_killed_gets_and_gives_nothing_any_more(void **state)
{
    (void)state;
    send_next(0, 8);
    send_next(1, 8);
    pump();
    send_next(0, 8);
    send_next(1, 8);
    peers_epoch(&end[1].peers, 1);
    send_next(1, 8);
    turn(0);
    turn(1);
    turn(0); /* one is held */
    uint64_t received = end[0].received;
    size_t before = memory_living();
    peer_kill(&end[0].peers, 1);
    assert_true(memory_living() < before);
    assert_null(end[0].peers.peer[1].head);
    assert_null(end[0].peers.peer[1].held);
    assert_int_equal(send_next(0, 8), PEER_IS_DEAD);
    peer_kill(&end[0].peers, 1); /* twice */
    for (int i = 0; i < 20; i++) {
        now += MS;
        turn(0);
        poll(1);
    }
    peers_epoch(&end[0].peers, 9);
    assert_int_equal(end[0].received, received);
    assert_int_equal(peers_deadline(&end[0].peers), UINT64_MAX); /* it is not looked for any more */
}

/* ---- out of memory ---- */

static void test_peer_without_memory_for_a_message_nothing_is_in_the_stream(void **state)
{
    (void)state;
    send_next(0, 8);
    pump();
    memory_fail_at(1);
    assert_int_equal(send_next(0, 8), PEER_NO_MEMORY);
    assert_true(memory_failed());
    assert_int_equal(sent[0], 1);
    send_next(0, 8);
    pump();
    assert_int_equal(sent[0], 2);
    assert_all_arrived();
}

static void test_peer_without_memory_in_the_transport_the_message_goes_out_again(void **state)
{
    (void)state;
    send_next(0, 8);
    pump();
    memory_fail_at(2);
    assert_int_equal(send_next(0, 8), PEER_SENT);
    peers_tick(&end[0].peers, now);
    assert_true(memory_failed());
    send_next(0, 8);
    send_next(0, 8);
    pump();
    assert_all_arrived();
}

static void test_peer_without_memory_for_an_acknowledgement_it_is_sent_later(void **state)
{
    (void)state;
    send_next(0, 8);
    pump();
    send_next(0, 8);
    peers_tick(&end[0].peers, now);
    poll(1);
    memory_fail_at(1);
    peers_tick(&end[1].peers, now);
    assert_true(memory_failed());
    pump();
    assert_all_arrived();
}

static void test_peer_without_memory_to_hold_a_message_its_owner_is_told(void **state)
{
    (void)state;
    send_next(0, 8);
    pump();
    peers_epoch(&end[0].peers, 1);
    send_next(0, 8);
    peers_tick(&end[0].peers, now);
    memory_fail_at(1);
    poll(1);
    assert_true(memory_failed());
    assert_int_equal(end[1].no_memory, 1);
    assert_int_equal(end[1].received, 1);
}

static void test_peer_init_without_memory_fails(void **state)
{
    (void)state;
    struct peers p;
    memory_fail_at(1);
    assert_int_equal(peers_init(&p, 0, 2, end[0].net, 1, 1, secret, &end[0].peers.ops), KEEL_ERR_NOMEM);
    assert_true(memory_failed());
    peers_fini(&p);
}

/* ---- bytes that are not copied ---- */

enum { KEPT = 4, KEPT_BYTES = 64 * 1024 };

static void test_peer_kept_bytes_are_sent_again_from_where_they_are(void **state)
{
    (void)state;
    static uint8_t body[KEPT][KEPT_BYTES];
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < KEPT; i++) {
            send_kept(body[i], (uint32_t)(i % 2 ? KEPT_BYTES : 100)); /* small ones travel together */
            assert_int_equal(send_next(0, 50), PEER_SENT);
        }
        for (int i = 0; i < round; i++) {
            turn(0);
            turn(1);
        }
        if (end[0].peers.peer[1].out.ep)
            tp_disconnect(end[0].peers.peer[1].out.ep);
        pump();
        assert_all_arrived(); /* and on_receive has seen the bytes */
    }
}

static void test_peer_uses_no_bytes_that_were_let_go(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        uint8_t *body = malloc((size_t)KEPT * KEPT_BYTES), *other = malloc(KEPT_BYTES);
        assert_non_null(body);
        assert_non_null(other);
        for (int i = 0; i < KEPT; i++) {
            send_kept(body + (size_t)i * KEPT_BYTES, KEPT_BYTES);
            assert_int_equal(send_next(0, 50), PEER_SENT);
        }
        send_kept(other, KEPT_BYTES);
        for (int i = 0; i < round; i++)
            turn(i % 2);
        peers_let_go(&end[0].peers, body, (size_t)KEPT * KEPT_BYTES);
        memset(body, 0xee, (size_t)KEPT * KEPT_BYTES);
        free(body); /* a sanitizer sees who reads it; on_receive sees that nobody gets 0xee */
        pump();
        assert_all_arrived();
        free(other);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_sent, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_peer_messages_of_all_sizes_travel_together),
        TEST(test_peer_small_messages_are_one_of_the_transports),
        TEST(test_peer_kept_bytes_are_sent_again_from_where_they_are),
        TEST(test_peer_uses_no_bytes_that_were_let_go),
        TEST(test_peer_messages_arrive_in_order_and_are_acknowledged),
        TEST(test_peer_acknowledgement_follows_processing),
        TEST(test_peer_unhurried_acknowledgement_waits_for_others),
        TEST(test_peer_message_on_a_broken_connection_is_sent_again),
        TEST(test_peer_message_whose_acknowledgement_was_lost_counts_once),
        TEST(test_peer_that_does_not_accept_yet_gets_all_later),
        TEST(test_peer_that_nobody_listens_for_is_told_as_refused),
        TEST(test_peer_random_breaks_lose_and_repeat_nothing),
        TEST(test_peer_goes_on_over_another_rail),
        TEST(test_peer_of_one_rail_waits_as_ever),
        TEST(test_peer_message_of_a_later_view_waits_for_it),
        TEST(test_peer_message_of_an_earlier_view_is_processed),
        TEST(test_peer_killed_gets_and_gives_nothing_any_more),
        TEST(test_peer_without_memory_for_a_message_nothing_is_in_the_stream),
        TEST(test_peer_without_memory_in_the_transport_the_message_goes_out_again),
        TEST(test_peer_without_memory_for_an_acknowledgement_it_is_sent_later),
        TEST(test_peer_without_memory_to_hold_a_message_its_owner_is_told),
        TEST(test_peer_init_without_memory_fails),
    };
    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
