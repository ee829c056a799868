/* The probe over libibverbs with a device that fails: what is told, what goes the other way (false of read and send),
 * what is used again, what is said in the log, and that what was made is destroyed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fake_verbs.h"
#include "runtime/base/log.h"

enum { NODES = 3, PEER = 1, OTHER = 2 };

static struct {
    struct probe *probe;
    struct verbs *v;
    volatile _Atomic uint64_t heartbeat;
    uint64_t now;
    int heartbeats, broken, datagrams;
    uint64_t value;
    char log[4096];
} t;

static void on_heartbeat(void *user, int node, uint64_t value)
{
    (void)user;
    assert_int_equal(node, PEER);
    t.heartbeats++;
    t.value = value;
}

static void on_broken(void *user, int node)
{
    (void)user;
    assert_int_equal(node, PEER);
    t.broken++;
}

static void on_datagram(void *user, const void *data, size_t len)
{
    (void)user;
    assert_int_equal(len, 5);
    assert_memory_equal(data, "hello", 5);
    t.datagrams++;
}

static size_t on_seal(void *user, int to, const void *data, size_t len, uint8_t *out)
{
    (void)user;
    (void)to;
    memcpy(out, data, len);
    return len;
}

static bool on_admit(void *user, int node)
{
    (void)user;
    return node != OTHER;
}

static void on_line(void *user, const char *line, size_t len)
{
    (void)user;
    size_t have = strlen(t.log);
    snprintf(t.log + have, sizeof t.log - have, "%.*s", (int)len, line);
}

static int said(const char *what)
{
    int n = 0;
    for (const char *at = t.log; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* ------------------------------------------------------------------------------------------------ what the helper
 * does */

static keel_status open_probe(struct probe_addr *addr)
{
    static const struct probe_callbacks callbacks = {
        .heartbeat = on_heartbeat, .broken = on_broken, .datagram = on_datagram, .seal = on_seal, .admit = on_admit};
    struct verbs_config config = {
        .host = "127.0.0.1", .self = 0, .n = NODES, .late_ns = FAKE_LATE_NS, .heartbeat = &t.heartbeat};
    return verbs_open(&config, &callbacks, &t.probe, addr);
}

static void pass(uint64_t ns)
{
    t.now += ns;
    while (t.probe->table->poll(t.probe, t.now))
        ;
}

static bool can_send(int node)
{
    return t.probe->table->send(t.probe, node, "hello", 5);
}

static bool can_read(void)
{
    return t.probe->table->read(t.probe, PEER, t.now);
}

/* The peer answers what was asked of it, however often. */
static void answer(void)
{
    struct rc_conn *c = &t.v->conns[PEER];
    if (c->state != CONN_ASKED)
        return;
    struct setup setup = {.type = MSG_ANSWER, .qpn = 77, .asked = c->qp->qp_num};
    verbs_control(t.probe, PEER, &setup, sizeof setup, t.now);
}

static void ask_us(int node, uint32_t qpn)
{
    struct setup setup = {.type = MSG_ASK, .qpn = qpn};
    verbs_control(t.probe, node, &setup, sizeof setup, t.now);
}

/* A read ends well, after joining if need be. */
static bool reads(void)
{
    int before = t.heartbeats;
    if (!can_read()) {
        answer();
        if (!fake_posted_reads())
            return false;
    }
    fake_finish_read(IBV_WC_SUCCESS, 42);
    fake_finish_sends();
    pass(1);
    return t.heartbeats == before + 1 && t.value == 42;
}

static int begin(void **state)
{
    (void)state;
    struct probe_addr addrs[NODES];
    memset(&t, 0, sizeof t);
    t.now = 1000;
    log_to(on_line, NULL);
    log_threshold = LOG_INFO;
    fake_begin();
    assert_int_equal(open_probe(&addrs[0]), KEEL_OK);
    addrs[PEER] = addrs[OTHER] = addrs[0];
    assert_int_equal(verbs_set_peers(t.probe, addrs), KEEL_OK);
    t.v = (struct verbs *)t.probe;
    t.probe->table->watch(t.probe, PEER, true, t.now);
    assert_true(reads());
    assert_int_equal(fake_posted_receives(), RECVS);
    return 0;
}

static void assert_released(void)
{
    for (int k = 0; k < FAKE_KINDS; k++)
        assert_int_equal(fake_live(k), 0);
}

static int end(void **state)
{
    (void)state;
    t.probe->table->close(t.probe);
    assert_released();
    log_to(NULL, NULL);
    return 0;
}

static void assert_other_way(void)
{
    assert_false(can_read());
    assert_false(can_send(PEER));
    assert_false(can_send(OTHER));
}

static void assert_used(void)
{
    assert_true(reads());
    assert_true(can_send(OTHER));
    fake_finish_sends();
    fake_deliver("hello", 5);
    int before = t.datagrams;
    pass(1);
    assert_int_equal(t.datagrams, before + 1);
    assert_int_equal(fake_posted_receives(), RECVS);
}

/* The device is gone for good: one line, nothing told of any node, nothing kept of it; and it may sleep. */
static void assert_given_up(const char *why)
{
    char line[128];
    snprintf(line, sizeof line, "the RDMA device is given up: %s", why);
    assert_int_equal(said(line), 1);
    assert_int_equal(said("given up"), 1);
    assert_int_equal(t.broken, 0);
    assert_released();
    assert_other_way();
    assert_false(t.probe->table->poll(t.probe, t.now));
    assert_true(t.probe->table->arm(t.probe));
    t.probe->table->watch(t.probe, PEER, false, t.now);
    t.probe->table->watch(t.probe, PEER, true, t.now);
    ask_us(PEER, 5);
    verbs_heard(t.probe, PEER, true, 10);
    pass(100 * (uint64_t)FAKE_LATE_NS);
    assert_other_way();
    assert_released();
}

/* ------------------------------------------------------------------------------------------------ the device */

static void test_verbs_fatal_event_goes_the_other_way_for_good(void **state)
{
    (void)state;
    assert_true(can_read());
    ask_us(PEER, 5);
    fake_event(IBV_EVENT_DEVICE_FATAL, NULL);
    pass(1);
    assert_given_up("local catastrophic error");
}

static void test_verbs_fatal_event_while_the_port_is_down_is_said(void **state)
{
    (void)state;
    fake_port_event(IBV_EVENT_PORT_ERR, FAKE_PORT);
    pass(1);
    fake_event(IBV_EVENT_DEVICE_FATAL, NULL);
    pass(1);
    assert_given_up("local catastrophic error");
}

static void test_verbs_event_before_sleep_is_taken(void **state)
{
    (void)state;
    fake_event(IBV_EVENT_DEVICE_FATAL, NULL);
    (void)t.probe->table->arm(t.probe);
    assert_given_up("local catastrophic error");
}

static void test_verbs_events_unreadable_gives_up(void **state)
{
    (void)state;
    fake_orders.events_fail = true;
    pass(1);
    assert_given_up("its events cannot be read");
}

static void test_verbs_channel_unreadable_gives_up(void **state)
{
    (void)state;
    fake_orders.channel_fails = true;
    pass(1);
    assert_given_up("its completion events cannot be read");
}

static void test_verbs_completions_unreadable_gives_up(void **state)
{
    (void)state;
    fake_orders.completions_fail = true;
    pass(1);
    assert_given_up("its completion queue cannot be read");
}

static void test_verbs_queue_that_cannot_be_armed_gives_up(void **state)
{
    (void)state;
    fake_orders.arming_fails = true;
    assert_true(t.probe->table->arm(t.probe));
    assert_given_up("its completion queue cannot be armed");
}

static void test_verbs_completion_queue_error_is_for_good(void **state)
{
    (void)state;
    fake_event(IBV_EVENT_CQ_ERR, t.v->cq);
    fake_port_event(IBV_EVENT_PORT_ACTIVE, FAKE_PORT);
    pass(1);
    assert_given_up("another event");
}

/* ------------------------------------------------------------------------------------------------ its port */

static void test_verbs_port_down_and_up_goes_the_other_way_and_back(void **state)
{
    (void)state;
    assert_true(can_read());
    fake_port_event(IBV_EVENT_PORT_ERR, FAKE_PORT);
    pass(1);
    assert_other_way();
    assert_int_equal(t.broken, 0);
    assert_int_equal(said("the RDMA device is not used: port error"), 1);
    pass(10 * (uint64_t)FAKE_LATE_NS);
    assert_other_way();
    fake_port_event(IBV_EVENT_PORT_ACTIVE, FAKE_PORT);
    pass(1);
    assert_used();
    assert_int_equal(said("the RDMA device is used again: port active"), 1);
    assert_int_equal(t.broken, 0);
}

static void test_verbs_events_of_another_port_change_nothing(void **state)
{
    (void)state;
    fake_port_event(IBV_EVENT_PORT_ERR, FAKE_PORT - 1);
    pass(1);
    assert_used();
    fake_port_event(IBV_EVENT_PORT_ERR, FAKE_PORT);
    fake_port_event(IBV_EVENT_PORT_ACTIVE, FAKE_PORT - 1);
    pass(1);
    assert_other_way();
}

/* ------------------------------------------------------------------------------------------------ reads */

static void read_fails(enum ibv_wc_status status)
{
    assert_true(can_read());
    fake_finish_read(status, 0);
    pass(1);
    assert_int_equal(t.broken, 1);
    assert_false(can_send(PEER)); /* perhaps its device is gone: until something comes by it */
    assert_true(can_send(OTHER));
    assert_false(can_read()); /* asks */
    pass(1);
    assert_int_equal(t.broken, 1);
    assert_true(reads());
    verbs_heard(t.probe, PEER, true, 10);
    assert_true(can_send(PEER));
    assert_int_equal(fake_live(FAKE_QP), 2);
}

static void test_verbs_read_retried_in_vain_is_a_suspicion(void **state)
{
    (void)state;
    read_fails(IBV_WC_RETRY_EXC_ERR);
}

static void test_verbs_read_receiver_not_ready_is_a_suspicion(void **state)
{
    (void)state;
    read_fails(IBV_WC_RNR_RETRY_EXC_ERR);
}

static void test_verbs_read_flushed_is_a_suspicion(void **state)
{
    (void)state;
    read_fails(IBV_WC_WR_FLUSH_ERR);
}

static void test_verbs_read_without_completion_is_given_up(void **state)
{
    (void)state;
    assert_true(can_read());
    pass(FAKE_LATE_NS - 1);
    assert_true(can_read()); /* still under way */
    pass(1);
    assert_false(can_read());
    assert_false(can_send(PEER));
    assert_int_equal(t.broken, 0); /* that it is late the core finds by itself */
    assert_int_equal(fake_live(FAKE_QP), 1);
    assert_true(reads());
}

static void test_verbs_read_of_a_former_queue_pair_is_not_taken(void **state)
{
    (void)state;
    assert_true(can_read());
    fake_finish_read(IBV_WC_WR_FLUSH_ERR, 0);
    t.probe->table->watch(t.probe, PEER, false, t.now);
    t.probe->table->watch(t.probe, PEER, true, t.now);
    answer();
    pass(1);
    assert_int_equal(t.broken, 0);
    assert_int_equal(fake_posted_reads(), 1);
}

static void test_verbs_read_refused_by_the_device_goes_the_other_way(void **state)
{
    (void)state;
    fake_orders.refuse_posts = true;
    assert_false(can_read());
    fake_orders.refuse_posts = false;
    assert_true(reads());
}

/* ------------------------------------------------------------------------------------------------ queue pairs */

static void test_verbs_queue_pair_not_made_again_goes_the_other_way(void **state)
{
    (void)state;
    assert_true(can_read());
    fake_finish_read(IBV_WC_RETRY_EXC_ERR, 0);
    pass(1);
    fake_orders.no_queue_pairs = true;
    for (int i = 0; i < 100; i++) {
        assert_false(can_read());
        pass(FAKE_LATE_NS);
    }
    assert_in_range(said("no queue pair to read node 1"), 1, LOG_SOME_AT_ONCE);
    assert_int_equal(t.broken, 1);
    fake_orders.no_queue_pairs = false;
    assert_true(reads());
}

static void test_verbs_queue_pair_not_joined_is_made_anew(void **state)
{
    (void)state;
    assert_true(can_read());
    fake_finish_read(IBV_WC_RETRY_EXC_ERR, 0);
    pass(1);
    fake_orders.no_joins = true;
    for (int i = 0; i < 10; i++) {
        assert_false(can_read());
        answer();
        pass(FAKE_LATE_NS);
        fake_finish_sends();
    }
    assert_int_equal(fake_live(FAKE_QP), 1);
    fake_orders.no_joins = false;
    assert_true(reads());
}

static void test_verbs_reader_without_queue_pair_gets_no_answer(void **state)
{
    (void)state;
    fake_orders.no_queue_pairs = true;
    ask_us(PEER, 5);
    assert_int_equal(fake_posted_sends(), 0);
    assert_int_equal(said("no queue pair for node 1"), 1);
    fake_orders.no_queue_pairs = false;
    fake_orders.no_joins = true;
    ask_us(PEER, 5);
    assert_int_equal(fake_posted_sends(), 0);
    assert_int_equal(fake_live(FAKE_QP), 2);
    fake_orders.no_joins = false;
    ask_us(PEER, 5);
    ask_us(PEER, 5); /* its answer was lost */
    assert_int_equal(fake_posted_sends(), 2);
    assert_int_equal(fake_live(FAKE_QP), 3);
    uint32_t number = t.v->conns[PEER].incoming->qp_num;
    ask_us(PEER, 6); /* it made a new one */
    assert_int_not_equal(t.v->conns[PEER].incoming->qp_num, number);
    assert_int_equal(fake_posted_sends(), 3);
    assert_int_equal(fake_live(FAKE_QP), 3);
}

static void test_verbs_dead_node_is_not_read_and_does_not_read(void **state)
{
    (void)state;
    ask_us(PEER, 5);
    ask_us(OTHER, 5); /* believed dead */
    assert_int_equal(fake_live(FAKE_QP), 3);
    t.probe->table->fence(t.probe, PEER);
    assert_int_equal(fake_live(FAKE_QP), 1);
    ask_us(PEER, 6);
    assert_false(can_read());
    assert_false(can_send(PEER));
    assert_int_equal(fake_live(FAKE_QP), 1);
}

/* ------------------------------------------------------------------------------------------------ datagrams */

static void test_verbs_datagrams_flushed_go_the_other_way_and_come_back(void **state)
{
    (void)state;
    assert_true(can_send(OTHER));
    fake_break(t.v->ud, IBV_WC_LOC_QP_OP_ERR);
    pass(1);
    assert_other_way();
    assert_int_equal(said("the RDMA device is not used: its datagrams: failed"), 1);
    assert_int_equal(t.broken, 0);
    pass(FAKE_LATE_NS - 1);
    assert_other_way();
    uint32_t number = t.v->ud->qp_num;
    pass(1);
    assert_used();
    assert_int_equal(t.v->ud->qp_num, number); /* the others know it by this */
    assert_int_equal(said("used again"), 1);
}

static void test_verbs_receives_flushed_come_back(void **state)
{
    (void)state;
    fake_break(t.v->ud, IBV_WC_WR_FLUSH_ERR);
    pass(1);
    assert_other_way();
    pass(FAKE_LATE_NS);
    assert_used();
}

/* What was flushed is seen after the queue pair works again only. */
static void test_verbs_late_completions_of_failed_datagrams_change_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < SENDS; i++)
        assert_true(can_send(OTHER));
    assert_false(can_send(OTHER));
    fake_event(IBV_EVENT_QP_FATAL, t.v->ud);
    pass(1);
    assert_other_way();
    fake_break(t.v->ud, IBV_WC_WR_FLUSH_ERR);
    pass(FAKE_LATE_NS);
    assert_used();
    int n = 0;
    while (can_send(OTHER))
        n++;
    assert_int_equal(n, SENDS);
}

static void test_verbs_failure_of_a_read_queue_pair_does_not_stop_the_device(void **state)
{
    (void)state;
    fake_event(IBV_EVENT_QP_FATAL, t.v->conns[PEER].qp);
    pass(1);
    assert_used();
}

static void test_verbs_datagrams_that_fail_while_the_port_is_down_come_back_with_it(void **state)
{
    (void)state;
    fake_port_event(IBV_EVENT_PORT_ERR, FAKE_PORT);
    fake_break(t.v->ud, IBV_WC_LOC_QP_OP_ERR);
    pass(10 * (uint64_t)FAKE_LATE_NS);
    assert_other_way();
    pass(10 * (uint64_t)FAKE_LATE_NS);
    assert_other_way();
    fake_port_event(IBV_EVENT_PORT_ACTIVE, FAKE_PORT);
    pass(1);
    assert_used();
}

static void test_verbs_port_active_does_not_make_failed_datagrams_used(void **state)
{
    (void)state;
    fake_break(t.v->ud, IBV_WC_LOC_QP_OP_ERR);
    pass(1);
    fake_port_event(IBV_EVENT_PORT_ERR, FAKE_PORT);
    fake_port_event(IBV_EVENT_PORT_ACTIVE, FAKE_PORT);
    pass(1);
    assert_other_way();
    pass(FAKE_LATE_NS);
    assert_used();
}

static void test_verbs_datagrams_that_cannot_be_made_ready_again_give_up(void **state)
{
    (void)state;
    fake_break(t.v->ud, IBV_WC_LOC_QP_OP_ERR);
    pass(1);
    fake_orders.refuse_receives = true;
    pass(FAKE_LATE_NS);
    assert_given_up("its datagram queue pair cannot be made ready again");
}

static void test_verbs_receive_buffer_refused_is_a_failure_of_datagrams(void **state)
{
    (void)state;
    fake_orders.refuse_receives = true;
    fake_deliver("hello", 5);
    pass(1);
    assert_int_equal(t.datagrams, 1);
    assert_other_way();
    fake_orders.refuse_receives = false;
    pass(FAKE_LATE_NS);
    assert_used();
}

static void test_verbs_send_refused_goes_the_other_way_and_no_buffer_is_used_twice(void **state)
{
    (void)state;
    fake_orders.refuse_posts = true;
    assert_false(can_send(OTHER));
    fake_orders.refuse_posts = false;
    int n = 0;
    for (int i = 0; i < SENDS / 2; i++)
        n += can_send(OTHER);
    fake_orders.refuse_posts = true;
    assert_false(can_send(OTHER));
    fake_orders.refuse_posts = false;
    while (can_send(OTHER))
        n++;
    assert_int_equal(n, SENDS);
    assert_true(fake_sends_differ());
    fake_finish_sends();
    pass(1);
    assert_used();
}

/* ------------------------------------------------------------------------------------------------ beginning */

/* Each call that can fail fails once, until there is none left: what was made is destroyed. */
static void test_verbs_open_with_any_call_failing_leaves_nothing(void **state)
{
    (void)state;
    struct probe_addr addr;
    int fail_at = 0, all;
    memset(&t, 0, sizeof t);
    log_threshold = LOG_WARN;
    do {
        fake_begin();
        fake_orders.fail_at = ++fail_at;
        keel_status status = open_probe(&addr);
        all = fake_calls();
        assert_int_equal(status, fail_at > all ? KEEL_OK : KEEL_ERR_SYSTEM);
        assert_int_equal(addr.len > 0, status == KEEL_OK);
        if (status == KEEL_OK)
            t.probe->table->close(t.probe);
        assert_released();
    } while (fail_at <= all);
    assert_true(fail_at > RECVS);
}

static void test_verbs_peer_without_a_path_goes_the_other_way(void **state)
{
    (void)state;
    struct probe_addr addrs[NODES];
    memset(&t, 0, sizeof t);
    fake_begin();
    assert_int_equal(open_probe(&addrs[0]), KEEL_OK);
    addrs[PEER] = addrs[0];
    addrs[OTHER].len = 0; /* has no device */
    fake_orders.fail_at = fake_calls() + 1;
    assert_int_equal(verbs_set_peers(t.probe, addrs), KEEL_OK);
    t.probe->table->watch(t.probe, PEER, true, t.now);
    assert_other_way();
    t.probe->table->close(t.probe);
    assert_released();
}

#define WITH_DEVICE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(test_verbs_fatal_event_goes_the_other_way_for_good),
        WITH_DEVICE(test_verbs_fatal_event_while_the_port_is_down_is_said),
        WITH_DEVICE(test_verbs_event_before_sleep_is_taken),
        WITH_DEVICE(test_verbs_events_unreadable_gives_up),
        WITH_DEVICE(test_verbs_channel_unreadable_gives_up),
        WITH_DEVICE(test_verbs_completions_unreadable_gives_up),
        WITH_DEVICE(test_verbs_queue_that_cannot_be_armed_gives_up),
        WITH_DEVICE(test_verbs_completion_queue_error_is_for_good),
        WITH_DEVICE(test_verbs_port_down_and_up_goes_the_other_way_and_back),
        WITH_DEVICE(test_verbs_events_of_another_port_change_nothing),
        WITH_DEVICE(test_verbs_read_retried_in_vain_is_a_suspicion),
        WITH_DEVICE(test_verbs_read_receiver_not_ready_is_a_suspicion),
        WITH_DEVICE(test_verbs_read_flushed_is_a_suspicion),
        WITH_DEVICE(test_verbs_read_without_completion_is_given_up),
        WITH_DEVICE(test_verbs_read_of_a_former_queue_pair_is_not_taken),
        WITH_DEVICE(test_verbs_read_refused_by_the_device_goes_the_other_way),
        WITH_DEVICE(test_verbs_queue_pair_not_made_again_goes_the_other_way),
        WITH_DEVICE(test_verbs_queue_pair_not_joined_is_made_anew),
        WITH_DEVICE(test_verbs_reader_without_queue_pair_gets_no_answer),
        WITH_DEVICE(test_verbs_dead_node_is_not_read_and_does_not_read),
        WITH_DEVICE(test_verbs_datagrams_flushed_go_the_other_way_and_come_back),
        WITH_DEVICE(test_verbs_receives_flushed_come_back),
        WITH_DEVICE(test_verbs_late_completions_of_failed_datagrams_change_nothing),
        WITH_DEVICE(test_verbs_failure_of_a_read_queue_pair_does_not_stop_the_device),
        WITH_DEVICE(test_verbs_datagrams_that_fail_while_the_port_is_down_come_back_with_it),
        WITH_DEVICE(test_verbs_port_active_does_not_make_failed_datagrams_used),
        WITH_DEVICE(test_verbs_datagrams_that_cannot_be_made_ready_again_give_up),
        WITH_DEVICE(test_verbs_receive_buffer_refused_is_a_failure_of_datagrams),
        WITH_DEVICE(test_verbs_send_refused_goes_the_other_way_and_no_buffer_is_used_twice),
        cmocka_unit_test(test_verbs_open_with_any_call_failing_leaves_nothing),
        cmocka_unit_test(test_verbs_peer_without_a_path_goes_the_other_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
