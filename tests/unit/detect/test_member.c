/* Membership cores in one process, joined by a queue that delivers at once unless the test takes a message out. The
 * many-seed runs are in tests/sim; here are the single steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "detect/member_internal.h"

enum { NODES_MAX = 8, QUEUE = 4096 };
static int nodes = 4;
#define MS 1000000ull

struct fake {
    int id;
    struct member *m;
    uint64_t commits, settled, max_value;
    struct view_event last;
    int prepares;
    uint64_t proposal; /* the last one */
    uint64_t value;    /* answer to prepare */
    bool halted, hold; /* hold: do not answer prepare */
    int probes[NODES_MAX], reads[NODES_MAX];
    uint64_t answered[NODES_MAX]; /* to what was asked at */
    int links_changed;
    bool doomed[NODES_MAX];       /* told that it is believed dead */
    struct member_doubt patience; /* with node 3 */
    int cut_off, in_touch, lates;
    int votes[VOTE_KERNEL + 1]; /* of node 3 */
    uint64_t late_told[4];
};
static struct fake fakes[NODES_MAX];
static struct packet {
    int from, to;
    size_t len;
    uint8_t data[MEMBER_DATAGRAM_MAX];
} queue[QUEUE], kept[QUEUE];
static int head, tail, n_kept;
static bool still[NODES_MAX]; /* nobody runs it; what it is sent is kept */
static bool cut[NODES_MAX];
static bool kernel[NODES_MAX]; /* of the host answers, whatever is cut; but not to whom this is not heard: */
static bool deaf[NODES_MAX];
static bool lost[NODES_MAX][NODES_MAX]; /* what the first sends to the second */
static uint64_t seed = 1;
static int dark_ms;
static bool stopped[NODES_MAX];      /* its host says so */
static enum wave_phase lose_answers; /* of this phase */
static int lose_accept_but;          /* only this node gets ACCEPT; 0: all do */
static uint64_t now;

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct fake *f = user;
    struct datagram msg;
    int left[DATAGRAM_LEFT_MAX];
    assert_true(datagram_decode(data, len, nodes, &msg, left));
    if (msg.type == DATAGRAM_VOTE && msg.node == 3)
        f->votes[msg.vote]++;
    if (cut[f->id] || cut[to] || lost[f->id][to] || (msg.type == DATAGRAM_ACK && msg.phase == lose_answers))
        return;
    if (msg.type == DATAGRAM_WAVE && msg.phase == PHASE_ACCEPT && lose_accept_but && to != lose_accept_but)
        return;
    queue[tail % QUEUE].from = f->id;
    queue[tail % QUEUE].to = to;
    queue[tail % QUEUE].len = len;
    memcpy(queue[tail++ % QUEUE].data, data, len);
    assert_true(tail - head < QUEUE);
}
static void on_read(void *user, int node)
{
    ((struct fake *)user)->reads[node]++;
}
static void on_watch(void *user, int node, bool on)
{
    (void)user;
    (void)node;
    (void)on;
}
static void on_probe(void *user, int node)
{
    ((struct fake *)user)->probes[node]++;
}
static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct fake *f = user;
    (void)epoch;
    (void)events;
    (void)n;
    f->prepares++;
    f->proposal = proposal;
    if (!f->hold)
        member_prepared(f->m, proposal, f->value, now);
}
static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct fake *f = user;
    assert_int_equal(epoch, ++f->commits);
    f->last = events[n - 1];
    f->max_value = max_value;
}
static void on_settled(void *user, uint64_t epoch)
{
    struct fake *f = user;
    assert_true(epoch > f->settled);
    for (int i = 0; i < nodes; i++)
        if (member_alive(f->m, i) && !fakes[i].halted)
            assert_true(member_epoch(fakes[i].m) >= epoch);
    f->settled = epoch;
}
static void on_halt(void *user, const char *reason)
{
    (void)reason;
    ((struct fake *)user)->halted = true;
}
static void on_report(void *user, const struct member_report *r)
{
    struct fake *f = user;
    if (r->kind == MEMBER_REPORT_ANSWERED)
        f->answered[r->node] = r->asked_ns;
    f->links_changed += r->kind == MEMBER_REPORT_LINKS;
    if (r->kind == MEMBER_REPORT_PATIENCE && r->node == 3)
        f->patience = r->doubt;
    f->cut_off += r->kind == MEMBER_REPORT_CUT_OFF;
    f->in_touch += r->kind == MEMBER_REPORT_IN_TOUCH;
    if (r->kind == MEMBER_REPORT_LATE)
        f->late_told[f->lates++ % 4] = r->limit_ns;
    if (r->kind == MEMBER_REPORT_VERDICT)
        f->doomed[r->node] = true;
}

static int set_up(void **state)
{
    (void)state;
    now = 1000 * MS;
    head = tail = 0;
    memset(fakes, 0, sizeof fakes);
    memset(cut, 0, sizeof cut);
    memset(kernel, 0, sizeof kernel);
    memset(deaf, 0, sizeof deaf);
    memset(stopped, 0, sizeof stopped);
    memset(still, 0, sizeof still);
    n_kept = 0;
    memset(lost, 0, sizeof lost);
    lose_answers = PHASE_NONE;
    lose_accept_but = 0;
    for (int i = 0; i < nodes; i++) {
        struct member_params p;
        member_params_default(&p, nodes, i);
        p.seed = seed;
        member_params_silence(&p, dark_ms ? dark_ms : 250, 780);
        struct member_ops ops = {&fakes[i], on_send,    on_read, on_watch,  on_probe, on_prepare,
                                 on_commit, on_settled, on_halt, on_report, NULL};
        fakes[i].id = i;
        fakes[i].value = 100 + (uint64_t)i;
        fakes[i].m = member_create(&p, &ops, now);
        assert_non_null(fakes[i].m);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < nodes; i++)
        member_destroy(fakes[i].m);
    nodes = 4;
    return 0;
}

static void deliver(void)
{
    while (head < tail) {
        int k = head++ % QUEUE;
        if (still[queue[k].to]) {
            assert_true(n_kept < QUEUE);
            kept[n_kept++] = queue[k];
        } else if (!cut[queue[k].to])
            member_receive(fakes[queue[k].to].m, queue[k].from, queue[k].data, queue[k].len, now);
    }
}

/* Time passes; heartbeats are read, except of and by nodes that are cut. */
static void pass(uint64_t ns)
{
    for (uint64_t end = now + ns; now < end; now += MS) {
        for (int i = 0; i < nodes; i++) {
            for (int k = 0; k < nodes; k++)
                if (fakes[i].probes[k] && kernel[k] && !deaf[i]) {
                    fakes[i].probes[k] = 0;
                    (stopped[k] ? member_stopped : member_kernel)(fakes[i].m, k, now);
                }
            for (int k = 0; k < nodes; k++)
                if (fakes[i].reads[k] && !still[i] && !still[k] && !cut[i] && !cut[k] && !lost[i][k] && !lost[k][i]) {
                    fakes[i].reads[k] = 0;
                    member_heartbeat(fakes[i].m, k, now, now);
                }
            if (now >= member_deadline(fakes[i].m) && !still[i])
                member_tick(fakes[i].m, now);
        }
        deliver();
    }
}

static void stop(int node)
{
    still[node] = kernel[node] = stopped[node] = true;
}

/* It reads first what has come meanwhile. */
static void go_on(int node)
{
    still[node] = kernel[node] = stopped[node] = false;
    for (int i = 0; i < n_kept; i++)
        if (kept[i].to == node)
            member_receive(fakes[node].m, kept[i].from, kept[i].data, kept[i].len, now);
}

/* All live, and all links are whole; nobody has ever said anything else. */
static void expect_nothing_said(void)
{
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 0);
        assert_false(fakes[i].halted);
        assert_int_equal(fakes[i].links_changed, 0);
        for (int k = 0; k < nodes; k++)
            assert_false(fakes[i].doomed[k]);
    }
}

static void test_member_submission_reaches_everybody_once(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 5, .d = 1234567890123ull};
    assert_int_equal(member_submit(fakes[2].m, &e, now), 1);
    deliver();
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].settled, 1);
        assert_int_equal(fakes[i].last.a, 5);
        assert_true(fakes[i].last.d == e.d);
        assert_int_equal(fakes[i].max_value, 100 + nodes - 1);
        assert_int_equal(fakes[i].prepares, 1);
    }
    pass(500 * MS);
    assert_int_equal(fakes[0].commits, 1);
}

static void test_member_commit_waits_for_the_slowest_prepare(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST};
    fakes[3].hold = true;
    member_submit(fakes[0].m, &e, now);
    deliver();
    pass(400 * MS);
    assert_int_equal(fakes[0].commits, 0);
    member_prepared(fakes[3].m, fakes[3].proposal, 7777, now);
    deliver();
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].max_value, 7777);
    }
}

/* The runtime of a member answers a prepare only when a node has acknowledged what it was sent, or is believed dead.
 * The node falls silent after the prepare went out, and others than the member find that out. */
static void test_member_prepare_waits_for_no_node_that_died_since(void **state)
{
    (void)state;
    enum { DIES = 2 };
    for (int waits = 0; waits < NODES_MAX; waits++) {
        if (waits == DIES)
            continue;
        tear_down(state);
        nodes = NODES_MAX;
        set_up(state);
        pass(500 * MS);
        struct view_event e = {.type = VIEW_EVENT_FIRST};
        fakes[waits].hold = true;
        member_submit(fakes[1].m, &e, now);
        cut[DIES] = true;
        deliver();
        for (int i = 0; i < 3000 && fakes[waits].commits == 0; i++) {
            pass(MS);
            if (fakes[waits].hold && fakes[waits].doomed[DIES]) {
                fakes[waits].hold = false;
                member_prepared(fakes[waits].m, fakes[waits].proposal, 100, now);
            }
        }
        pass(500 * MS);
        for (int i = 0; i < nodes; i++)
            if (i != DIES) {
                assert_int_equal(fakes[i].commits, 2); /* the event, then the death */
                assert_int_equal(fakes[i].last.type, VIEW_NODE_DEAD);
                assert_false(fakes[i].halted);
            }
    }
}

static void test_member_refused_node_is_dead_without_waiting(void **state)
{
    (void)state;
    cut[3] = true;
    member_refused(fakes[1].m, 3, now);
    deliver();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_false(member_alive(fakes[i].m, 3));
        assert_int_equal(fakes[i].last.type, VIEW_NODE_DEAD);
        assert_int_equal(fakes[i].last.b, MEMBER_REFUSED);
        assert_int_equal(fakes[i].last.c, 1);
    }
}

static void test_member_check_says_when_the_node_has_answered(void **state)
{
    (void)state;
    pass(100 * MS);
    uint64_t first = now;
    member_check(fakes[0].m, 1, now);
    pass(10 * MS);
    assert_true(fakes[0].answered[1] >= first);
    cut[1] = true;
    uint64_t second = now;
    member_check(fakes[0].m, 1, now);
    pass(90 * MS);
    assert_true(fakes[0].answered[1] < second); /* what it said before is no answer */
    cut[1] = false;
    pass(300 * MS);
    assert_true(fakes[0].answered[1] >= second); /* asked again until it comes */
    for (int i = 1; i < nodes; i++)
        assert_int_equal(fakes[i].answered[0], 0); /* nobody asked */
}

/* A link between nodes that do not read each other. It works for a moment, is still looked at after that, and breaks
 * again: it was never whole. */
static void test_member_link_that_works_for_a_moment_stays_broken(void **state)
{
    struct member_link known[MEMBER_LINKS_MAX];
    tear_down(state);
    nodes = 8;
    set_up(state);
    pass(500 * MS);
    lost[0][4] = lost[4][0] = true;
    member_check(fakes[0].m, 4, now);
    pass(400 * MS);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(member_links(fakes[0].m, known, MEMBER_LINKS_MAX), 1);
        lost[0][4] = lost[4][0] = false;
        pass(300 * MS);
        lost[0][4] = lost[4][0] = true;
        for (int i = 0; i < 1600; i++) {
            pass(MS);
            assert_int_equal(member_links(fakes[0].m, known, MEMBER_LINKS_MAX), 1);
        }
    }
    lost[0][4] = lost[4][0] = false;
    pass(16 * 780 * MS + 1000 * MS);
    for (int i = 0; i < nodes; i++)
        assert_int_equal(member_links(fakes[i].m, known, MEMBER_LINKS_MAX), 0);
}

static struct member *created_with(const struct member_params *p)
{
    struct member_ops ops = {&fakes[0], on_send,    on_read, on_watch,  on_probe, on_prepare,
                             on_commit, on_settled, on_halt, on_report, NULL};
    return member_create(p, &ops, now);
}

static void test_member_parameters_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int good[] = {0, 1, 2, 3}, unknown[] = {0, 1, 2, 4}, below[] = {0, 1, -1, 3};
    struct member_params p, bad[20];
    member_params_default(&p, 4, 0);
    p.topology = MEMBER_FILE;
    p.edges = good;
    p.edge_count = 2;
    struct member *m = created_with(&p);
    assert_non_null(m);
    member_destroy(m);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        bad[i] = p;
    bad[0].edges = unknown;
    bad[1].edges = below;
    bad[2].edges = NULL;
    bad[3].edge_count = -1;
    bad[4].topology = (enum member_topology)(MEMBER_FILE + 1);
    bad[5].topology = (enum member_topology) - 1;
    bad[6].n = 0;
    bad[7].n = MEMBER_NODES_MAX + 1;
    bad[8].self = 4;
    bad[9].self = -1;
    bad[10].degree = 0;
    bad[11].degree = MEMBER_WATCHES_MAX;
    bad[12].voters = 0;
    bad[13].period_ns = 0;
    bad[14].late_ns = p.period_ns;
    bad[15].stopped_ns = p.late_ns;
    bad[16].answer_ns = p.late_ns - 1;
    bad[17].ping_ns = 0;
    bad[18].rto_ns = 0;
    bad[19].rto_max_ns = p.rto_ns - 1;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(created_with(&bad[i]));
}

/* Whom this member doubts already, and who answers by and by. */
static void test_member_check_of_a_suspect_is_answered_too(void **state)
{
    (void)state;
    member_broken(fakes[0].m, 1, now);
    deliver();
    pass(MS);
    uint64_t asked = now;
    member_check(fakes[0].m, 1, now);
    pass(50 * MS);
    assert_true(fakes[0].answered[1] >= asked);
    pass(2000 * MS);
    assert_true(member_alive(fakes[0].m, 1));
}

static void test_member_broken_connection_asks_the_kernel_at_once(void **state)
{
    (void)state;
    member_broken(fakes[0].m, 1, now);
    member_tick(fakes[0].m, now);
    assert_int_equal(fakes[0].probes[1], 1);
    deliver();
    pass(300 * MS);
    assert_true(member_alive(fakes[0].m, 1)); /* it answered pings */
    assert_int_equal(fakes[0].commits, 0);
}

static void test_member_silent_node_is_dead_after_the_limit_not_before(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[2] = true;
    pass(600 * MS);
    assert_int_equal(fakes[0].commits, 0);
    pass(250 * MS);
    for (int i = 0; i < nodes; i++)
        if (i != 2)
            assert_false(member_alive(fakes[i].m, 2));
    assert_int_equal(fakes[0].last.b, MEMBER_SILENT);
    cut[2] = false; /* it comes back, and learns */
    pass(500 * MS);
    assert_true(fakes[2].halted);
}

/* Node 0 dies while it orders an event of node 2; the others find out and go on. */
static void check_event_of_node_2_ordered_without_node_0(uint64_t max_value)
{
    cut[0] = true;
    lose_answers = PHASE_NONE;
    member_refused(fakes[3].m, 0, now);
    deliver();
    pass(200 * MS);
    for (int i = 1; i < nodes; i++) {
        int n;
        uint64_t value;
        const struct view_event *first = member_log(fakes[i].m, 1, &n, &value);
        assert_int_equal(fakes[i].commits, 2);
        assert_int_equal(fakes[i].settled, 2);
        const struct view_event *second = &fakes[i].last;
        assert_int_equal(first->type + second->type, VIEW_NODE_DEAD + VIEW_EVENT_FIRST);
        assert_int_equal(first->type == VIEW_EVENT_FIRST ? first->a : second->a, 42);
        assert_int_equal(value, max_value);
    }
}

static int set_up_patient(void **state)
{
    dark_ms = 780;
    int result = set_up(state);
    dark_ms = 0;
    return result;
}

static void test_member_host_that_does_not_answer_is_dead_sooner(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = true;
    pass(180 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(100 * MS);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].last.b, MEMBER_SILENT);
        assert_false(fakes[i].halted);
    }
}

/* Its witness says that it does not wait for a processor. */
static void test_member_agent_that_was_stopped_lives_until_it_is_waited_for(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = kernel[3] = stopped[3] = true;
    pass(5000 * MS);
    for (int i = 0; i < 3; i++) {
        struct member_doubt doubt;
        assert_int_equal(fakes[i].commits, 0);
        if (i == 0) /* does not watch it */
            continue;
        assert_true(member_doubt(fakes[i].m, 3, &doubt));
        assert_int_equal(doubt.how, MEMBER_IS_STOPPED);
        assert_true(doubt.limit_ns == MEMBER_NEVER);
        assert_false(doubt.waited_for);
        assert_int_equal(fakes[i].patience.how, MEMBER_IS_STOPPED);
    }
    member_waits(fakes[0].m, 3, now + 600 * MS, now); /* that one waits no more in time */
    pass(2000 * MS);
    assert_int_equal(fakes[0].commits, 0);
    member_waits(fakes[0].m, 3, UINT64_MAX, now);
    pass(700 * MS);
    assert_int_equal(fakes[0].commits, 0); /* not long enough: the time before does not count */
    pass(200 * MS);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].commits, 1);
        assert_int_equal(fakes[i].last.b, MEMBER_HUNG);
        assert_false(fakes[i].halted);
    }
}

/* The last word of its host is what counts. */
static void test_member_agent_that_was_stopped_and_waits_for_a_processor_now(void **state)
{
    (void)state;
    pass(500 * MS);
    member_waits(fakes[1].m, 3, UINT64_MAX, now);
    cut[3] = kernel[3] = stopped[3] = true;
    pass(200 * MS);
    for (int i = 0; i < 3; i++) {
        stopped[3] = false;
        member_runs(fakes[i].m, 3, now);
    }
    pass(400 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(300 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 1);
}

/* Nodes 1 and 2 want to know whether node 0 reaches node 3. */
static void ask_node_0(void)
{
    for (int i = 1; i < 3; i++) {
        struct datagram ask = {.type = DATAGRAM_VOTE_ASK, .node = 3};
        member_enter(fakes[i].m, now);
        member_post(fakes[i].m, 0, &ask);
        member_leave(fakes[i].m);
    }
    deliver();
}

/* What was sent to it before the other was stopped, and it reads now, is no sign that it reaches the other. */
static void test_member_that_stood_still_says_nothing_old_of_one_that_stands_still(void **state)
{
    for (seed = 1; seed <= 30; seed++) {
        tear_down(state);
        nodes = 5;
        set_up(state);
        pass(500 * MS);
        ask_node_0();
        stop(0);
        pass(400 * MS);
        stop(3);
        pass(3000 * MS);
        go_on(0);
        ask_node_0();
        pass(400 * MS);
        assert_true(fakes[0].votes[VOTE_NONE] > 0 && fakes[0].votes[VOTE_KERNEL] > 0);
        assert_int_equal(fakes[0].votes[VOTE_REACHED], 0);
        go_on(3);
        pass(1000 * MS);
        expect_nothing_said();
    }
    seed = 1;
}

/* That it has no answer to what it asked before it was stopped is no sign that it does not. */
static void test_member_that_stood_still_does_not_miss_answers(void **state)
{
    (void)state;
    pass(500 * MS);
    ask_node_0();
    pass(100 * MS);
    stop(0);
    pass(3000 * MS);
    memset(fakes[0].votes, 0, sizeof fakes[0].votes);
    n_kept = 0; /* all was lost that was sent to it meanwhile */
    go_on(0);
    ask_node_0();
    for (int i = 0; i < 20; i++) {
        pass(10 * MS);
        ask_node_0();
    }
    assert_true(fakes[0].votes[VOTE_REACHED] > 0);
    assert_int_equal(fakes[0].votes[VOTE_UNREACHED] + fakes[0].votes[VOTE_KERNEL], 0);
    expect_nothing_said();
}

/* No link is broken because another was the first to hear it again; still less is it out of reach for as long as it
 * stood still. */
static void test_member_first_heard_by_another_after_it_stood_still_is_not_out_of_reach(void **state)
{
    for (seed = 1; seed <= 30; seed++) {
        tear_down(state);
        nodes = 5;
        set_up(state);
        pass(500 * MS);
        stop(3);
        pass((3000 + 3 * seed) * MS);
        for (int i = 0; i < nodes; i++)
            lost[3][i] = lost[i][3] = i != 1;
        go_on(3);
        pass(40 * MS);
        memset(lost, 0, sizeof lost);
        pass(1000 * MS);
        expect_nothing_said();
    }
    seed = 1;
}

/* Nor is one whose links to most are broken when it goes on: for that, time counts from then. */
static void test_member_out_of_reach_after_it_stood_still_has_its_time(void **state)
{
    tear_down(state);
    nodes = 5;
    set_up(state);
    pass(500 * MS);
    stop(3);
    pass(3000 * MS);
    for (int i = 0; i < nodes; i++)
        lost[3][i] = lost[i][3] = i != 1;
    go_on(3);
    pass(400 * MS);
    for (int i = 0; i < nodes; i++)
        assert_false(fakes[i].doomed[3]);
}

/* Whoever is drawn to vote: it is no majority of all. */
static void test_member_node_that_most_others_reach_lives(void **state)
{
    for (seed = 1; seed <= 30; seed++) {
        tear_down(state);
        nodes = NODES_MAX;
        set_up(state);
        pass(500 * MS);
        for (int k = 3; k <= 6; k++)
            lost[5][k] = lost[k][5] = kernel[5] = k != 5;
        pass(4000 * MS);
        for (int i = 0; i < nodes; i++) {
            assert_int_equal(fakes[i].commits, 0);
            assert_false(fakes[i].halted);
        }
    }
    seed = 1;
}

/* Its agent may only not be given the processor. */
static void test_member_host_that_answers_has_the_longer_limit(void **state)
{
    (void)state;
    pass(500 * MS);
    member_waits(fakes[1].m, 3, UINT64_MAX, now);
    cut[3] = kernel[3] = true;
    pass(650 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(200 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 1);
}

/* One voter whom the host answers is enough. */
static void test_member_host_that_answers_somebody_has_the_longer_limit(void **state)
{
    (void)state;
    for (int hears = 0; hears < 3; hears++) {
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        member_waits(fakes[1].m, 3, UINT64_MAX, now);
        cut[3] = kernel[3] = true;
        for (int i = 0; i < 3; i++)
            deaf[i] = i != hears;
        pass(650 * MS);
        for (int i = 0; i < 3; i++)
            assert_int_equal(fakes[i].commits, 0);
        pass(200 * MS);
        for (int i = 0; i < 3; i++)
            assert_int_equal(fakes[i].commits, 1);
    }
}

/* The agreement waits for it like an operation: nothing else could be ordered. */
static void test_member_stopped_node_that_an_event_waits_for(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    for (int victim = 0; victim < 4; victim += 3) { /* the coordinator, and another one */
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        cut[victim] = kernel[victim] = stopped[victim] = true;
        pass(3000 * MS);
        assert_int_equal(fakes[1].commits, 0);
        member_submit(fakes[1].m, &e, now);
        pass(700 * MS);
        assert_int_equal(fakes[1].commits, 0);
        pass(400 * MS);
        for (int i = 0; i < 4; i++)
            assert_true(i == victim || (fakes[i].commits > 0 && !member_alive(fakes[i].m, victim)));
    }
}

static void expect_silent_death(uint64_t not_before, uint64_t by)
{
    pass(not_before);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 0);
    pass(by - not_before);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].commits, 1);
}

static void test_member_silent_node_that_data_would_be_lost_with_has_four_limits(void **state)
{
    for (int stake = MEMBER_COSTLY; stake <= MEMBER_FATAL; stake++) {
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        for (int i = 0; i < 4; i++)
            member_stake(fakes[i].m, 3, (enum member_stake)stake, now);
        cut[3] = true;
        expect_silent_death(920 * MS, 1100 * MS);
        assert_int_equal(fakes[1].patience.why, stake == MEMBER_FATAL ? MEMBER_WHY_JOB : MEMBER_WHY_DATA);
        assert_int_equal(fakes[1].patience.how, MEMBER_IS_SILENT);
        assert_int_equal(fakes[1].patience.limit_ns, 4 * 250 * MS);
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        for (int i = 0; i < 4; i++) { /* and no more, when there is another copy */
            member_stake(fakes[i].m, 3, (enum member_stake)stake, now);
            member_stake(fakes[i].m, 3, MEMBER_CHEAP, now);
        }
        cut[3] = true;
        expect_silent_death(180 * MS, 280 * MS);
    }
}

/* Two of four are silent: those who hear no more than half may be those who are cut off. */
static void test_member_side_that_may_be_the_smaller_one_waits_two_limits(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[2] = cut[3] = true;
    pass(430 * MS);
    assert_int_equal(fakes[0].commits + fakes[1].commits, 0);
    assert_int_equal(fakes[1].patience.why, MEMBER_WHY_SIDE);
    pass(200 * MS);
    assert_false(member_alive(fakes[0].m, 2));
    assert_false(member_alive(fakes[1].m, 3));
    assert_int_equal(fakes[0].cut_off, 0); /* half with the lowest id */
    pass(3000 * MS);
    for (int i = 2; i < 4; i++) {
        assert_true(fakes[i].cut_off > 0);
        assert_true(fakes[i].halted);
    }
}

/* Who was late itself a moment ago is patient for a while, and less so with the time. */
static void test_member_late_judge_judges_less(void **state)
{
    (void)state;
    for (int passed = 0; passed < 2; passed++) {
        tear_down(state);
        set_up(state);
        pass(500 * MS);
        now += 200 * MS; /* nobody ran: the same for all */
        pass(passed ? 60000 * MS : 200 * MS);
        cut[3] = true;
        if (passed)
            expect_silent_death(180 * MS, 280 * MS);
        else
            expect_silent_death(430 * MS, 800 * MS);
    }
}

/* A quarter of the limit, 63 ms, is what it has room for. What is told is told again when it is twice as much. */
static void test_member_that_is_later_than_its_limit_allows_says_so(void **state)
{
    static const struct {
        uint64_t late;
        int lates;
    } then[] = {{50 * MS, 0}, {80 * MS, 1}, {90 * MS, 1}, {250 * MS, 2}, {260 * MS, 2}};
    (void)state;
    pass(500 * MS);
    for (unsigned i = 0; i < sizeof then / sizeof then[0]; i++) {
        now = member_deadline(fakes[1].m) + then[i].late;
        member_tick(fakes[1].m, now);
        assert_int_equal(fakes[1].lates, then[i].lates);
        pass(300 * MS);
    }
    assert_true(fakes[1].late_told[0] >= 70 * MS && fakes[1].late_told[0] <= 80 * MS);
    assert_true(fakes[1].late_told[1] >= 240 * MS && fakes[1].late_told[1] <= 250 * MS);
    assert_int_equal(fakes[0].lates, 2); /* it stood still as long */
}

/* It has said that it is late at times: its heartbeat's word has it. */
static void test_member_that_says_that_it_is_late_has_more_time(void **state)
{
    (void)state;
    pass(500 * MS);
    member_heartbeat(fakes[1].m, 3, now | 10ull << MEMBER_BEAT_BITS, now); /* 100 ms */
    member_heartbeat(fakes[2].m, 3, now | 10ull << MEMBER_BEAT_BITS, now);
    cut[3] = true;
    expect_silent_death(430 * MS, 560 * MS);
}

/* A vote from before its voter fell silent is none. */
static void test_member_host_that_falls_silent_after_its_agent(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = kernel[3] = stopped[3] = true;
    pass(2000 * MS);
    kernel[3] = false;
    expect_silent_death(200 * MS, 400 * MS);
    assert_int_equal(fakes[0].last.b, MEMBER_SILENT);
}

static void test_member_coordinator_dies_before_anybody_accepted(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[1].hold = true;
    member_submit(fakes[2].m, &e, now);
    deliver(); /* node 1 has not prepared: nothing is accepted, and nothing binds the next one */
    fakes[1].hold = false;
    check_event_of_node_2_ordered_without_node_0(103);
}

/* The runtime is slow and answers the first proposal when a second one is there: that is no answer to the second. */
static void test_member_late_answer_to_a_superseded_proposal_is_ignored(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[2].hold = true;
    member_submit(fakes[2].m, &e, now);
    deliver();
    uint64_t first = fakes[2].proposal;
    cut[0] = true;
    member_refused(fakes[3].m, 0, now);
    deliver();
    assert_int_not_equal(fakes[2].proposal, first);
    member_prepared(fakes[2].m, first, 1, now);
    deliver();
    assert_int_equal(fakes[1].commits, 0);
    fakes[2].hold = false;
    member_prepared(fakes[2].m, fakes[2].proposal, 7777, now);
    deliver();
    pass(200 * MS);
    for (int i = 1; i < nodes; i++)
        assert_int_equal(fakes[i].commits, 2);
}

static void test_member_coordinator_dies_all_accepted_next_one_keeps_its_value(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[0].value = 1000;
    lose_answers = PHASE_ACCEPT;
    member_submit(fakes[2].m, &e, now);
    deliver(); /* all have accepted and node 0 does not know: it might have decided */
    for (int i = 0; i < nodes; i++)
        assert_int_equal(fakes[i].commits, 0);
    check_event_of_node_2_ordered_without_node_0(1000);
}

/* Accepted by one only, which then lives on: its value must survive, because nobody knows that it was the only one. */
static void test_member_coordinator_dies_one_accepted_next_one_keeps_its_value(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = 42};
    fakes[0].value = 1000;
    lose_accept_but = 3;
    member_submit(fakes[2].m, &e, now);
    deliver();
    lose_accept_but = 0;
    check_event_of_node_2_ordered_without_node_0(1000);
}

static void test_member_blind_owner_suspects_nobody(void **state)
{
    (void)state;
    pass(500 * MS);
    now += 5000 * MS; /* nobody ran */
    for (int i = 0; i < nodes; i++)
        member_tick(fakes[i].m, now);
    deliver();
    pass(500 * MS);
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 0);
        assert_false(fakes[i].halted);
    }
}

static void test_member_cut_off_alone_ends_itself(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[1] = true;
    pass(3000 * MS);
    assert_true(fakes[1].halted);
    assert_false(fakes[0].halted);
}

/* Three of four stood still for more than the limit: the fourth decides nothing, and waits for them. */
static void test_member_majority_stands_still_and_returns_nobody_ends(void **state)
{
    (void)state;
    pass(500 * MS);
    for (int i = 0; i < 3; i++)
        cut[i] = true;
    for (uint64_t end = now + 1100 * MS; now < end; now += MS)
        if (now >= member_deadline(fakes[3].m))
            member_tick(fakes[3].m, now);
    for (int i = 0; i < 3; i++)
        cut[i] = false;
    pass(1500 * MS);
    for (int i = 0; i < nodes; i++) {
        assert_false(fakes[i].halted);
        assert_int_equal(fakes[i].commits, 0);
    }
}

/* For so long no process listens on any other node. */
static void refuse_all_but(int node, uint64_t ns)
{
    for (uint64_t end = now + ns; now < end; now += MS) {
        for (int i = 0; i < nodes; i++)
            if (i != node && now / MS % 50 == 0)
                member_refused(fakes[node].m, i, now);
        if (now >= member_deadline(fakes[node].m))
            member_tick(fakes[node].m, now);
    }
}

static void test_member_all_others_die_at_once_goes_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    refuse_all_but(3, 100 * MS);
    assert_true(fakes[3].commits > 0);
    assert_false(fakes[3].halted);
}

/* They may have left it out and come to the end of the job: their kernels refuse it as if they had died. */
static void test_member_cut_off_others_end_goes_not_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    cut[3] = true;
    pass(1500 * MS);
    assert_true(fakes[0].commits > 0);
    assert_false(fakes[3].halted);
    refuse_all_but(3, 2000 * MS);
    assert_int_equal(fakes[3].commits, 0);
    assert_true(fakes[3].halted);
}

static void test_member_frozen_others_end_goes_not_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    now += 5000 * MS;
    for (int k = 0; k < nodes; k++) /* a read that was answered before */
        if (fakes[3].reads[k])
            member_heartbeat(fakes[3].m, k, 1, now);
    refuse_all_but(3, 2000 * MS);
    assert_int_equal(fakes[3].commits, 0);
    assert_true(fakes[3].halted);
}

static void test_member_long_back_from_a_freeze_goes_on_alone(void **state)
{
    (void)state;
    pass(500 * MS);
    now += 5000 * MS;
    pass(1000 * MS);
    refuse_all_but(3, 100 * MS);
    assert_true(fakes[3].commits > 0);
    assert_false(fakes[3].halted);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_member_submission_reaches_everybody_once),
        TEST(test_member_commit_waits_for_the_slowest_prepare),
        TEST(test_member_prepare_waits_for_no_node_that_died_since),
        TEST(test_member_refused_node_is_dead_without_waiting),
        TEST(test_member_check_says_when_the_node_has_answered),
        TEST(test_member_link_that_works_for_a_moment_stays_broken),
        TEST(test_member_parameters_out_of_range_are_refused),
        TEST(test_member_check_of_a_suspect_is_answered_too),
        TEST(test_member_broken_connection_asks_the_kernel_at_once),
        cmocka_unit_test_setup_teardown(test_member_silent_node_is_dead_after_the_limit_not_before, set_up_patient,
                                        tear_down),
        TEST(test_member_host_that_does_not_answer_is_dead_sooner),
        TEST(test_member_stopped_node_that_an_event_waits_for),
        TEST(test_member_silent_node_that_data_would_be_lost_with_has_four_limits),
        TEST(test_member_side_that_may_be_the_smaller_one_waits_two_limits),
        TEST(test_member_late_judge_judges_less),
        TEST(test_member_that_is_later_than_its_limit_allows_says_so),
        TEST(test_member_that_says_that_it_is_late_has_more_time),
        TEST(test_member_host_that_falls_silent_after_its_agent),
        TEST(test_member_agent_that_was_stopped_lives_until_it_is_waited_for),
        TEST(test_member_that_stood_still_says_nothing_old_of_one_that_stands_still),
        TEST(test_member_that_stood_still_does_not_miss_answers),
        TEST(test_member_first_heard_by_another_after_it_stood_still_is_not_out_of_reach),
        TEST(test_member_out_of_reach_after_it_stood_still_has_its_time),
        TEST(test_member_node_that_most_others_reach_lives),
        TEST(test_member_agent_that_was_stopped_and_waits_for_a_processor_now),
        TEST(test_member_host_that_answers_has_the_longer_limit),
        TEST(test_member_host_that_answers_somebody_has_the_longer_limit),
        TEST(test_member_coordinator_dies_before_anybody_accepted),
        TEST(test_member_late_answer_to_a_superseded_proposal_is_ignored),
        TEST(test_member_coordinator_dies_all_accepted_next_one_keeps_its_value),
        TEST(test_member_coordinator_dies_one_accepted_next_one_keeps_its_value),
        TEST(test_member_blind_owner_suspects_nobody),
        TEST(test_member_cut_off_alone_ends_itself),
        TEST(test_member_majority_stands_still_and_returns_nobody_ends),
        TEST(test_member_all_others_die_at_once_goes_on_alone),
        TEST(test_member_cut_off_others_end_goes_not_on_alone),
        TEST(test_member_frozen_others_end_goes_not_on_alone),
        TEST(test_member_long_back_from_a_freeze_goes_on_alone),
    };
    return cmocka_run_group_tests_name("member", tests, NULL, NULL);
}
