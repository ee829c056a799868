/* One core of a job with many members, of which none answers any more, or all answer late: how much it says to how
 * many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "detect/member_internal.h"

#define MS 1000000ull
enum { N = 500 };

static struct member *m;
static uint64_t now;
static int suspicions, datagrams, pings_to[N], reports_to[N], halted, reads[N];
static uint64_t last_report; /* its number */

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct datagram msg;
    int left[DATAGRAM_LEFT_MAX];
    (void)user;
    assert_true(datagram_decode(data, len, N, &msg, left));
    datagrams++;
    pings_to[to] += msg.type == DATAGRAM_PING;
    reports_to[to] += msg.type == DATAGRAM_REPORT;
    if (msg.type == DATAGRAM_REPORT)
        last_report = msg.nonce;
}
static void on_read(void *user, int node)
{
    (void)user;
    reads[node]++;
}
static void on_watch(void *user, int node, bool on)
{
    (void)user;
    (void)node;
    (void)on;
}
static void on_probe(void *user, int node)
{
    (void)user;
    (void)node;
}
static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    (void)user;
    (void)epoch;
    (void)proposal;
    (void)events;
    (void)n;
}
static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    (void)max_value;
    on_prepare(user, epoch, 0, events, n);
}
static void on_settled(void *user, uint64_t epoch)
{
    (void)user;
    (void)epoch;
}
static void on_halt(void *user, const char *reason)
{
    (void)user;
    (void)reason;
    halted++;
}
static void on_report(void *user, const struct member_report *r)
{
    (void)user;
    suspicions += r->kind == MEMBER_REPORT_SUSPECT;
}

static void start(uint64_t startup_ns)
{
    struct member_params p;
    const struct member_ops ops = {NULL,      on_send,    on_read, on_watch,  on_probe, on_prepare,
                                   on_commit, on_settled, on_halt, on_report, NULL};
    now = 1000 * MS;
    suspicions = datagrams = halted = 0;
    memset(pings_to, 0, sizeof pings_to);
    memset(reads, 0, sizeof reads);
    memset(reports_to, 0, sizeof reports_to);
    member_params_default(&p, N, 7);
    member_params_silence(&p, 250, 780);
    p.startup_ns = startup_ns;
    m = member_create(&p, &ops, now);
    assert_non_null(m);
}

static int set_up(void **state)
{
    (void)state;
    start(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    member_destroy(m);
    return 0;
}

/* Time passes; whom it watches is read if answers is true. */
static void pass(uint64_t ns, bool answers)
{
    for (uint64_t end = now + ns; now < end; now += MS) {
        for (int i = 0; answers && i < N; i++)
            if (reads[i]) {
                reads[i] = 0;
                member_heartbeat(m, i, now, now);
            }
        if (now >= member_deadline(m))
            member_tick(m, now);
    }
}

static void test_doubts_of_a_node_that_hears_nobody_are_few(void **state)
{
    (void)state;
    pass(500 * MS, true);
    assert_int_equal(suspicions, 0);
    datagrams = 0;
    pass(2600 * MS, false);
    assert_true(suspicions >= 2 && suspicions <= DOUBTS + 2);
    assert_true(halted); /* it is cut off */
}

/* Until it is clear that it hears no quorum it asks all, but not all the time. */
static void test_doubts_ask_everybody_a_few_times(void **state)
{
    (void)state;
    pass(500 * MS, true);
    pass(2600 * MS, false);
    int asked = 0, most = 0;
    for (int i = 60; i < N; i++) { /* none of them in doubt */
        asked += pings_to[i] > 0;
        most = pings_to[i] > most ? pings_to[i] : most;
    }
    assert_int_equal(asked, N - 60);
    assert_in_range(most, 1, 12);
}

/* Node says that its link to the next one is broken, or whole. */
static void hear_of_link(int node, bool broken, uint64_t version)
{
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    struct datagram msg = {.type = DATAGRAM_LINK,
                           .src = node,
                           .dst = 7,
                           .root = node,
                           .node = node + 1,
                           .flags = broken ? DATAGRAM_BROKEN : 0,
                           .index = version};
    member_receive(m, node, bytes, datagram_encode(&msg, bytes), now);
}

static bool knows_link(int node)
{
    struct member_link known[MEMBER_LINKS_MAX];
    int n = member_links(m, known, MEMBER_LINKS_MAX);
    for (int i = 0; i < n; i++)
        if (known[i].a == node && known[i].b == node + 1)
            return true;
    return false;
}

/* So many are kept, the first ones; one that is whole again makes room. */
static void test_doubts_links_beyond_the_bound_are_dropped(void **state)
{
    (void)state;
    struct member_link known[MEMBER_LINKS_MAX];
    for (int i = 0; i < MEMBER_LINKS_MAX + 30; i++)
        hear_of_link(20 + 2 * i, true, 1);
    assert_int_equal(member_links(m, known, MEMBER_LINKS_MAX), MEMBER_LINKS_MAX);
    assert_true(knows_link(20) && knows_link(20 + 2 * (MEMBER_LINKS_MAX - 1)));
    assert_false(knows_link(20 + 2 * MEMBER_LINKS_MAX));
    hear_of_link(20, false, 2);
    assert_int_equal(member_links(m, known, MEMBER_LINKS_MAX), MEMBER_LINKS_MAX - 1);
    hear_of_link(20 + 2 * MEMBER_LINKS_MAX, true, 1);
    assert_true(knows_link(20 + 2 * MEMBER_LINKS_MAX));
    hear_of_link(20, true, 1); /* an old word */
    assert_false(knows_link(20));
}

static void hear(int node, struct datagram msg)
{
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    msg.src = node;
    msg.dst = 7;
    member_receive(m, node, bytes, datagram_encode(&msg, bytes), now);
}

/* What keelctl status --detect shows of a doubt and of a broken link. */
static void test_doubts_and_links_are_in_the_status(void **state)
{
    (void)state;
    struct member_status s;
    pass(500 * MS, true);
    member_status(m, &s);
    assert_int_equal(s.n_doubts + s.n_links, 0);
    assert_int_equal(s.n_watches, 2);
    uint64_t begin = now;
    pass(200 * MS, false);
    member_status(m, &s);
    const struct member_doubt_status *d = &s.doubts[s.doubts[0].node == 8 ? 0 : 1];
    assert_true(s.n_doubts >= 2 && d->node == 8);
    assert_string_equal(d->state, "suspect");
    assert_in_range(d->since_ns, begin + 80 * MS, begin + 160 * MS);
    assert_int_equal(d->asked, 3);
    assert_int_equal(d->reached + d->unreached, 0);
    for (int i = 20, said = 0; i < N; i++) { /* only those that it asked count */
        hear(i, (struct datagram){.type = DATAGRAM_VOTE,
                                  .node = 8,
                                  .vote = said == 0   ? VOTE_UNREACHED
                                          : said == 1 ? VOTE_KERNEL
                                                      : VOTE_REACHED});
        member_status(m, &s);
        d = &s.doubts[s.doubts[0].node == 8 ? 0 : 1];
        said = d->reached + d->unreached;
    }
    assert_int_equal(d->reached + d->unreached, 3); /* who answers without reaching its agent does not reach it */
    assert_int_equal(d->unreached, 2);
    hear_of_link(20, true, 1);
    member_status(m, &s);
    assert_true(s.n_links == 1 && s.links[0].a == 20 && s.links[0].b == 21 && s.links[0].since_ns <= now);
    hear_of_link(20, false, 2);
    member_status(m, &s);
    assert_int_equal(s.n_links, 0);
}

static int reports_beside_the_first(void)
{
    int n = 0;
    for (int i = 1; i < N; i++)
        n += reports_to[i];
    return n;
}

static void test_doubts_a_report_that_was_taken_is_not_repeated(void **state)
{
    (void)state;
    const struct view_event e = {.type = VIEW_EVENT_FIRST};
    pass(100 * MS, true);
    member_submit(m, &e, now);
    assert_int_equal(reports_to[0], 1);
    hear(0, (struct datagram){.type = DATAGRAM_PONG, .flags = DATAGRAM_TAKEN, .nonce = last_report});
    pass(140 * MS, true);
    assert_int_equal(reports_to[0], 1);
    for (int i = 0; i < 20; i++) { /* now and then it asks whether that is still so */
        pass(100 * MS, true);
        hear(0, (struct datagram){.type = DATAGRAM_PONG, .flags = DATAGRAM_TAKEN, .nonce = last_report});
    }
    assert_in_range(reports_to[0], 2, 25);
    assert_int_equal(reports_beside_the_first(), 0);
    assert_int_equal(pings_to[0], 0);
    int before = reports_to[0];
    member_submit(m, &e, now); /* that is another thing */
    assert_int_equal(reports_to[0], before + 1);
    hear(0, (struct datagram){.type = DATAGRAM_PONG, .flags = DATAGRAM_TAKEN, .nonce = 1}); /* an old answer */
    pass(50 * MS, true);
    assert_true(reports_to[0] > before + 1);
}

/* Nor one of a death that others have found, while no view comes: as where another node is waited for. */
static void test_doubts_a_report_of_others_that_was_taken_is_not_repeated(void **state)
{
    (void)state;
    const struct death died = {.node = 30, .finder = 20, .evidence = MEMBER_REFUSED};
    uint64_t answered = 0;
    pass(100 * MS, true);
    hear(20, (struct datagram){.type = DATAGRAM_REPORT, .n_deaths = 1, .deaths = {died}});
    for (int i = 0; i < 200; i++) {
        pass(10 * MS, true);
        for (int k = 0; k < 50 && last_report != answered; k++) {
            answered = last_report;
            hear(0, (struct datagram){.type = DATAGRAM_PONG, .flags = DATAGRAM_TAKEN, .nonce = answered});
        }
    }
    assert_in_range(reports_to[0], 1, 25);
    assert_int_equal(reports_beside_the_first(), 0);
}

/* A death that others have found is told again until it is taken, in intervals that grow. */
static void test_doubts_a_report_of_others_is_repeated_in_intervals(void **state)
{
    (void)state;
    const struct death died = {.node = 30, .finder = 20, .evidence = MEMBER_REFUSED};
    pass(100 * MS, true);
    hear(20, (struct datagram){.type = DATAGRAM_REPORT, .n_deaths = 1, .deaths = {died}});
    for (int i = 0; i < 100; i++) {
        pass(10 * MS, true);
        hear(0, (struct datagram){.type = DATAGRAM_PONG});
    }
    assert_in_range(reports_to[0], 4, 30);
    assert_int_equal(reports_beside_the_first(), 0);
}

/* One that says something is slow. */
static void test_doubts_a_slow_coordinator_is_not_looked_at(void **state)
{
    (void)state;
    const struct view_event e = {.type = VIEW_EVENT_FIRST};
    pass(100 * MS, true);
    member_submit(m, &e, now);
    for (int i = 0; i < 7; i++) {
        pass(100 * MS, true);
        hear(0, (struct datagram){.type = DATAGRAM_PONG});
    }
    assert_in_range(reports_to[0], 4, 20);
    assert_int_equal(reports_beside_the_first(), 0);
    assert_int_equal(pings_to[0], 0);
}

/* One that says nothing is, and the next ones are told, one after the other. */
static void test_doubts_a_silent_coordinator_is_looked_at(void **state)
{
    (void)state;
    const struct view_event e = {.type = VIEW_EVENT_FIRST};
    pass(100 * MS, true);
    member_submit(m, &e, now);
    pass(140 * MS, true);
    assert_int_equal(pings_to[0] + reports_beside_the_first(), 0);
    pass(160 * MS, true);
    assert_true(pings_to[0] > 0);
    pass(300 * MS, true);
    assert_true(reports_to[1] > 0);
    pass(2000 * MS, true);
    assert_int_equal(reports_to[20], 0);
}

/* Nodes begin one after the other. The first ones have no time for doubts about the last ones, which need the processor
 * themselves; whoever has to know, for a round, asks. */
static void test_doubts_who_may_only_be_starting_is_not_doubted(void **state)
{
    (void)state;
    member_destroy(m);
    start(3000 * MS);
    pass(3000 * MS, false);
    assert_int_equal(suspicions + datagrams + halted, 0);
    pass(200 * MS, false);
    assert_true(suspicions > 0); /* by now it is late */
}

static void test_doubts_of_the_patient_are_as_quick(void **state)
{
    (void)state;
    struct member_params usual, p;
    member_params_default(&usual, N, 7);
    p = usual;
    member_params_silence(&p, SILENCE_DEFAULT_MS, STOPPED_DEFAULT_MS);
    assert_memory_equal(&p, &usual, sizeof p);
    member_params_silence(&p, 600000, STOPPED_NEVER_MS); /* only the verdicts wait */
    assert_int_equal(p.late_ns, usual.late_ns);
    assert_int_equal(p.answer_ns, usual.answer_ns);
    assert_true(p.stopped_ns == MEMBER_NEVER);
    member_params_late(&p, 8 * LATE_DEFAULT_MS); /* eight times as many nodes on a processor as it carries easily */
    assert_int_equal(p.period_ns, 8 * usual.period_ns);
    assert_int_equal(p.late_ns, 8 * usual.late_ns);
    assert_int_equal(p.ping_ns, 8 * usual.ping_ns);
    assert_int_equal(p.startup_ns, 8 * usual.startup_ns);
    assert_int_equal(p.answer_ns, 8 * usual.answer_ns);
    p = usual;
    member_params_silence(&p, 100, 1000); /* there must be time for a look */
    assert_int_equal(p.late_ns, 60 * MS);
    assert_int_equal(p.period_ns, 24 * MS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_doubts_of_a_node_that_hears_nobody_are_few),
        TEST(test_doubts_ask_everybody_a_few_times),
        TEST(test_doubts_a_report_that_was_taken_is_not_repeated),
        TEST(test_doubts_a_report_of_others_that_was_taken_is_not_repeated),
        TEST(test_doubts_a_report_of_others_is_repeated_in_intervals),
        TEST(test_doubts_a_slow_coordinator_is_not_looked_at),
        TEST(test_doubts_a_silent_coordinator_is_looked_at),
        TEST(test_doubts_who_may_only_be_starting_is_not_doubted),
        TEST(test_doubts_of_the_patient_are_as_quick),
        TEST(test_doubts_links_beyond_the_bound_are_dropped),
        TEST(test_doubts_and_links_are_in_the_status),
    };
    return cmocka_run_group_tests_name("doubts", tests, NULL, NULL);
}
