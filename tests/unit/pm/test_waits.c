/* Who waits for whom: from the agents' reports to lines. */
#include "pm/wire/waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/wire/wait.h"

enum { NODES = 3, RANKS = 6 };
static const uint64_t S = 1000000000, MS = 1000000;
static const int rank_node[RANKS] = {0, 0, 1, 1, 2, 2};
static const uint64_t AHEAD = 77; /* s; other hosts' clocks are others */

static char told[4096];

static void say(void *user, const char *line)
{
    (void)user;
    strcat(told, line);
    strcat(told, "\n");
}

static struct waits begun(void)
{
    struct waits w;
    told[0] = '\0';
    waits_init(&w, NODES, RANKS, rank_node, say, NULL);
    return w;
}

#define BARRIER(rank, for_rank, since) WAIT(rank, "keel_barrier", "entry", for_rank, -1, since)
#define WAIT(rank, call, whom, for_rank, for_node, since)                                                              \
    "{\"rank\":" #rank ",\"call\":\"" call "\",\"whom\":\"" whom "\",\"for_rank\":" #for_rank                          \
    ",\"for_node\":" #for_node ",\"since_ns\":" #since "000000000}"

/* waits: entries with times in seconds of that host; rest: further members. */
static void report(struct waits *w, int node, uint64_t at_ns, const char *waits, const char *rest)
{
    char text[2048];
    snprintf(text, sizeof text, "{\"now_ns\":%llu,\"waits\":[%s]%s}", (unsigned long long)(at_ns + AHEAD * S), waits,
             rest);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    waits_report(w, node, json, at_ns);
    json_decref(json);
}

static void expect(const char *lines)
{
    assert_string_equal(told, lines);
    told[0] = '\0';
}

static void test_waits_for_a_stopped_rank_told_after_a_second_and_in_growing_gaps(void **state)
{
    (void)state;
    struct waits w = begun();
    report(&w, 0, 101 * S, BARRIER(0, 1, 177) "," BARRIER(1, 2, 177), "");
    report(&w, 1, 101 * S, BARRIER(2, 4, 177) "," BARRIER(3, 5, 177), "");
    report(&w, 2, 101 * S, BARRIER(4, 5, 177), ",\"stopped\":[5]");
    uint64_t at = waits_tick(&w, 101 * S);
    assert_true(at > 101 * S && at <= 101 * S + 400 * MS); /* a debugger's look is not told */
    expect("");
    at = waits_tick(&w, at);
    expect(
        "ranks 0-4 have waited 1 s in keel_barrier for rank 5 (node 2), which is stopped by a signal or a debugger\n");
    waits_tick(&w, at - 1);
    expect("");
    assert_int_equal(at / S, 130);
    at = waits_tick(&w, 130 * S);
    expect(
        "ranks 0-4 have waited 30 s in keel_barrier for rank 5 (node 2), which is stopped by a signal or a debugger\n");
    at = waits_tick(&w, at);
    expect(
        "ranks 0-4 have waited 60 s in keel_barrier for rank 5 (node 2), which is stopped by a signal or a debugger\n");
    assert_int_equal(at / S, 220);
    report(&w, 2, 170 * S, "", "");
    report(&w, 0, 170 * S, "", "");
    report(&w, 1, 170 * S, "", "");
    at = waits_tick(&w, 170 * S);
    expect("");
    assert_int_equal(waits_tick(&w, at), UINT64_MAX);
    expect("the wait for rank 5 (node 2) is over after 70 s\n");
    waits_fini(&w);
}

static void test_waits_of_a_moment_and_for_who_computes_tell_nothing(void **state)
{
    (void)state;
    struct waits w = begun();
    report(&w, 0, 101 * S, BARRIER(0, 5, 177), ",\"stopped\":[5]");
    waits_tick(&w, 101 * S);
    report(&w, 0, 101 * S + 200 * MS, BARRIER(0, 5, 177), "");
    uint64_t now = 101 * S + 200 * MS;
    while ((now = waits_tick(&w, now)) < 159 * S)
        ;
    expect("");
    waits_tick(&w, 160 * S);
    expect("rank 0 has waited 60 s in keel_barrier for rank 5 (node 2), which has not called it\n");
    now = waits_tick(&w, 161 * S);
    assert_true(now / S >= 699 && now / S <= 701);
    waits_fini(&w);
}

static void test_waits_for_a_holder_that_waits_for_a_silent_node_name_the_node(void **state)
{
    (void)state;
    struct waits w = begun();
    report(&w, 0, 101 * S, WAIT(0, "keel_mutex_lock", "holder", 2, -1, 177), "");
    report(&w, 1, 101 * S, WAIT(2, "keel_put", "node", 4, 2, 177), ",\"silent\":[{\"node\":2,\"host\":false}]");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("ranks 0 and 2 have waited 1 s in keel_mutex_lock and other calls for node 2, which is silent\n");
    int rank;
    char line[WAITS_LINE];
    assert_true(waits_text(&w, 0, 0, 102 * S, &rank, line));
    assert_int_equal(rank, 0);
    assert_string_equal(
        line, "has waited 2.0 s in keel_mutex_lock for rank 2 (node 1), and that for node 2, which is silent");
    assert_false(waits_text(&w, 0, 1, 102 * S, &rank, line));
    waits_view(&w, (const int[RANKS]){0, 0, 1, 1, 0, 1}, (const bool[NODES]){true, true, false});
    report(&w, 0, 103 * S, "", "");
    report(&w, 1, 103 * S, "", "");
    waits_tick(&w, waits_tick(&w, 103 * S));
    expect("the wait for node 2 is over after 3 s\n");
    waits_fini(&w);
}

static struct waits_doubt doubt(const char *how, const char *why, double limit_ms, bool waited_for)
{
    struct waits_doubt d = {.limit_ms = limit_ms, .waited_for = waited_for};
    snprintf(d.how, sizeof d.how, "%s", how);
    snprintf(d.why, sizeof d.why, "%s", why);
    return d;
}

/* Whichever is known first. */
static void test_waits_for_a_node_are_one_line_with_how_it_is(void **state)
{
    static const char *const line =
        "ranks 0-1 have waited 2 s in keel_barrier for node 2 (c), which is stopped, says its host: waiting 30 s\n";
    const struct waits_doubt stopped = doubt("stopped, says its host", "", 30000, true);
    char *names[NODES] = {"a", "b", "c"};
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct waits w = begun();
        w.names = names;
        w.doubts = true;
        if (first)
            waits_patience(&w, 2, &stopped, 101 * S);
        report(&w, 0, 101 * S, BARRIER(0, 4, 176) "," BARRIER(1, 4, 176), ",\"silent\":[{\"node\":2,\"host\":true}]");
        assert_true(waits_tick(&w, 101 * S) <= 102 * S + 500 * MS);
        if (!first)
            waits_patience(&w, 2, &stopped, 101 * S + 100 * MS);
        uint64_t at = waits_tick(&w, 101 * S + 100 * MS);
        expect("");
        while (!told[0] && at < 103 * S)
            at = waits_tick(&w, at);
        expect(line);
        waits_patience(&w, 2, &stopped, 102 * S); /* another of its readers */
        at = waits_tick(&w, 102 * S);
        expect("");
        assert_true(at > 125 * S);
        waits_answers(&w, 2);
        expect("node 2 (c) answers again\n");
        report(&w, 0, 110 * S, "", "");
        waits_tick(&w, waits_tick(&w, 110 * S));
        expect("");
        waits_fini(&w);
    }
}

static void test_waits_node_that_nobody_waits_for_is_told_alone(void **state)
{
    (void)state;
    struct waits w = begun();
    struct waits_doubt d = doubt("stopped, says its host", "", -1, false);
    waits_patience(&w, 2, &d, 101 * S);
    uint64_t at = waits_tick(&w, 101 * S);
    expect("");
    assert_true(at > 102 * S && at <= 102 * S + 500 * MS);
    assert_int_equal(waits_tick(&w, at), UINT64_MAX);
    expect("node 2 is stopped, says its host: it is given time as long as nothing waits for it\n");
    d = doubt("stopped, says its host", "", 30000, true); /* a view change waits, say */
    waits_patience(&w, 2, &d, 110 * S);
    waits_tick(&w, waits_tick(&w, 110 * S));
    expect("node 2 is stopped, says its host: waiting 30 s\n");
    report(&w, 0, 113 * S, BARRIER(0, 4, 188),
           ",\"silent\":[{\"node\":2,\"host\":true}]"); /* and a rank, a moment later */
    assert_true(waits_tick(&w, waits_tick(&w, 113 * S)) > 140 * S);
    report(&w, 0, 114 * S, "", "");
    waits_tick(&w, waits_tick(&w, 114 * S));
    expect("");
    waits_answers(&w, 2);
    expect("node 2 answers again\n");
    d = doubt("silent, as is its host", "its death would lose data", 800, false);
    waits_patience(&w, 1, &d, 120 * S);
    at = waits_tick(&w, 120 * S);
    assert_int_equal(at, 120 * S + 200 * MS); /* a quarter of what is left */
    waits_answers(&w, 1);                     /* before it was told */
    assert_int_equal(waits_tick(&w, at), UINT64_MAX);
    expect("");
    waits_patience(&w, 1, &d, 120 * S);
    waits_view(&w, rank_node, (const bool[NODES]){true, false, true}); /* its death says it all */
    assert_int_equal(waits_tick(&w, 130 * S), UINT64_MAX);
    expect("");
    waits_patience(&w, NODES, &d, 120 * S);
    waits_patience(&w, -1, &d, 120 * S);
    waits_answers(&w, NODES);
    waits_fini(&w);
}

/* Nobody can leave a lost node out while one that lives has not answered. */
static void test_waits_for_a_view_name_the_node_that_it_needs(void **state)
{
    struct waits w = begun();
    struct waits_doubt d = doubt("stopped, says its host", "", 30000, true);
    int rank;
    char line[WAITS_LINE];
    (void)state;
    report(&w, 0, 101 * S, WAIT(0, "keel_put", "view", -1, -1, 176) "," BARRIER(1, 0, 176),
           ",\"silent\":[{\"node\":2,\"host\":true}]");
    waits_patience(&w, 2, &d, 101 * S);
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("ranks 0-1 have waited 2 s in keel_put and other calls for the next view, and that for node 2, which is "
           "stopped, says its host: waiting 30 s\n");
    assert_true(waits_text(&w, 0, 0, 102 * S, &rank, line));
    assert_string_equal(line, "has waited 3.0 s in keel_put for the next view, and that for node 2, whose agent does "
                              "not run, though its host "
                              "answers");
    waits_fini(&w);
    w = begun(); /* nobody is silent: copies are made equal, perhaps */
    report(&w, 0, 101 * S, WAIT(0, "keel_put", "view", -1, -1, 177), "");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("rank 0 has waited 5 s in keel_put for what the loss of a node has left to do: a view, or copies that are "
           "made equal\n");
    waits_fini(&w);
}

/* Who waits for a process that has no memory waits for that, too. */
static void test_waits_for_memory_name_the_process_that_has_none(void **state)
{
    struct waits w = begun();
    (void)state;
    report(&w, 0, 101 * S, BARRIER(0, 2, 177), "");
    report(&w, 1, 101 * S, WAIT(2, "keel_barrier", "memory", -1, -1, 177), "");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("ranks 0 and 2 have waited 5 s in keel_barrier for memory, of which there is none for rank 2 (node 1)\n");
    report(&w, 0, 106 * S, "", "");
    report(&w, 1, 106 * S, "", "");
    waits_tick(&w, 106 * S);
    waits_tick(&w, 108 * S);
    expect("the wait for memory of rank 2 (node 1) is over after 6 s\n");
    waits_fini(&w);
}

/* A slot goes behind the last of its ranks: who is there before waits for a neighbour, and no death is to blame. */
static void test_waits_for_a_part_name_the_rank_that_has_not_left(void **state)
{
    struct waits w = begun();
    char line[WAITS_LINE];
    int rank;
    (void)state;
    report(&w, 2, 101 * S, WAIT(4, "keel_address or keel_update_begin", "leaving", 3, -1, 177), "");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("rank 4 has waited 5 s in keel_address or keel_update_begin for rank 3 (node 1), which has not left that "
           "node: the memory of the ranks there follows them when all have\n");
    assert_true(waits_text(&w, 2, 0, 107 * S, &rank, line));
    assert_string_equal(line, "has waited 7.0 s in keel_address or keel_update_begin for rank 3 (node 1), which has "
                              "not left that node: the memory of the ranks there follows them when all have");
    report(&w, 2, 108 * S, "", "");
    waits_tick(&w, 108 * S);
    waits_tick(&w, 110 * S);
    expect("the wait for rank 3 (node 1) is over after 8 s\n");
    report(&w, 2, 110 * S, WAIT(4, "keel_segment_track", "leaving", 3, -1, 186), ",\"stopped\":[3]");
    waits_tick(&w, waits_tick(&w, 110 * S));
    expect("rank 4 has waited 1 s in keel_segment_track for rank 3 (node 1), which is stopped by a signal or a "
           "debugger\n");
    waits_fini(&w);
}

static void test_waits_of_threads_for_their_own_process_name_what_it_waits_for(void **state)
{
    struct waits w = begun();
    (void)state;
    report(&w, 0, 101 * S, WAIT(0, "keel_mutex_lock", "holder", 0, -1, 100), "");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("rank 0 has waited 136 s in keel_mutex_lock for another thread of the same process, which has it\n");
    waits_fini(&w);
    w = begun(); /* the one that has it waits itself */
    report(&w, 0, 101 * S, WAIT(0, "keel_mutex_lock", "holder", 0, -1, 100) "," WAIT(0, "keel_put", "node", 4, 2, 100),
           ",\"silent\":[{\"node\":2,\"host\":false}]");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("rank 0 has waited 78 s in keel_mutex_lock and other calls for node 2, which is silent\n");
    waits_fini(&w);
    w = begun(); /* another rank waits for one of whose threads nothing is known */
    report(&w, 0, 101 * S, WAIT(0, "keel_mutex_lock", "holder", 0, -1, 100) "," BARRIER(1, 0, 100), "");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("rank 1 has waited 136 s in keel_barrier for rank 0 (node 0), which has not called it\n"
           "rank 0 has waited 136 s in keel_mutex_lock for another thread of the same process, which has it\n");
    waits_fini(&w);
}

static void test_waits_over_a_broken_link_name_it_if_both_ends_wait(void **state)
{
    (void)state;
    struct waits w = begun();
    report(&w, 0, 101 * S, BARRIER(0, 4, 177), ",\"links\":[[0,2]]");
    waits_tick(&w, 101 * S);
    waits_tick(&w, 102 * S);
    expect(""); /* rank 4 computes: the link is another matter */
    report(&w, 2, 102 * S, BARRIER(4, 0, 178), ",\"links\":[[0,2]]");
    waits_tick(&w, waits_tick(&w, 102 * S));
    expect("ranks 0 and 4 have waited 2 s in keel_barrier for each other: the link between nodes 0 and 2 is broken\n");
    report(&w, 2, 103 * S, "", "");
    report(&w, 0, 103 * S, WAIT(0, "keel_get", "node", 4, 2, 180), ",\"links\":[[0,2]]");
    waits_tick(&w, 104 * S);
    waits_tick(&w, 106 * S);
    expect("");
    waits_fini(&w);
}

static void test_waits_in_a_ring_are_told_and_in_one_collective_are_none(void **state)
{
    (void)state;
    struct waits w = begun();
    report(&w, 0, 101 * S, WAIT(1, "keel_message_receive", "word", 2, -1, 177), "");
    report(&w, 1, 101 * S, WAIT(2, "keel_barrier", "entry", 4, -1, 177), "");
    report(&w, 2, 101 * S, WAIT(4, "keel_wait_until", "word", 1, -1, 177) "," BARRIER(5, 1, 177), "");
    waits_tick(&w, 101 * S);
    expect("");
    waits_tick(&w, 105 * S);
    expect("ranks 1-2 and 4-5 have waited 5 s in keel_message_receive and other calls for each other: none can go on "
           "before rank 1 does\n");
    waits_fini(&w);
    w = begun();
    report(&w, 0, 101 * S, BARRIER(0, 2, 177), "");
    report(&w, 1, 101 * S, BARRIER(2, 0, 177), "");
    waits_tick(&w, 101 * S);
    waits_tick(&w, 130 * S);
    expect("");
    waits_tick(&w, 165 * S);
    expect("ranks 0 and 2 have waited 65 s in keel_barrier for others\n");
    waits_fini(&w);
}

/* Ranks wait for a node that waits for another copy's, which waits for one more: the end is named. */
static void test_waits_for_an_agent_name_whom_that_one_waits_for(void **state)
{
    (void)state;
    struct waits w = begun();
    report(&w, 0, 101 * S, WAIT(0, "keel_rmw", "node", 2, 1, 177), "");
    report(&w, 1, 101 * S, WAIT(2, "keel_acc", "node", 2, 1, 177),
           ",\"behind\":[2],\"silent\":[{\"node\":2,\"host\":true}]");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("ranks 0 and 2 have waited 1 s in keel_rmw and other calls for node 2, whose agent does not run, though its "
           "host answers\n");
    waits_fini(&w);
    w = begun();
    report(&w, 0, 101 * S, WAIT(0, "keel_rmw", "node", 2, 1, 177), "");
    report(&w, 1, 101 * S, "", ",\"behind\":[2],\"links\":[[1,2]]");
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("rank 0 has waited 1 s in keel_rmw for each other: the link between nodes 1 and 2 is broken\n");
    waits_fini(&w);
    w = begun();
    report(&w, 0, 101 * S, WAIT(0, "keel_rmw", "node", 2, 1, 177), "");
    report(&w, 1, 101 * S, "", ",\"behind\":[2]");
    report(&w, 2, 101 * S, "", ",\"behind\":[1]"); /* what does not end is not gone around for ever */
    waits_tick(&w, 101 * S);
    waits_tick(&w, 106 * S);
    assert_non_null(strstr(told, "rank 0 has waited 6 s in keel_rmw for an answer of node"));
    waits_fini(&w);
}

/* Node 1 has died, and node 2 stands still: the view without node 1 needs its answer. */
static void test_waits_for_a_view_name_who_does_not_answer_it(void **state)
{
    (void)state;
    static const char *const silent = ",\"view\":true,\"dying\":[1],\"silent\":[{\"node\":2,\"host\":true}]";
    struct waits w = begun();
    report(&w, 0, 101 * S, WAIT(0, "keel_get", "node", 2, 1, 177) "," WAIT(1, "keel_acc", "node", 0, 0, 177), silent);
    waits_tick(&w, waits_tick(&w, 101 * S));
    expect("ranks 0-1 have waited 1 s in keel_get and other calls for the next view, and that for node 2, whose agent "
           "does "
           "not run, though its host answers\n");
    waits_fini(&w);
    w = begun();
    report(&w, 0, 101 * S,
           WAIT(0, "keel_message_receive", "word", 2, -1, 177) "," WAIT(1, "keel_get", "view", -1, -1, 177),
           ",\"view\":true,\"dying\":[1]");
    waits_tick(&w, 101 * S);
    waits_tick(&w, 106 * S);
    expect(
        "ranks 0-1 have waited 6 s in keel_message_receive and other calls for what the loss of a node has left to do: "
        "a view, or copies that are made equal\n");
    waits_fini(&w);
}

static void test_waits_bad_reports_are_left_out(void **state)
{
    (void)state;
    struct waits w = begun();
    report(&w, 0, 101 * S,
           BARRIER(6, 1, 177) "," BARRIER(-1, 1, 177) "," BARRIER(1, 77, 177) ",7,{\"rank\":0}," WAIT(
               0, "x", "what", 1, -1, 177) "," WAIT(0, "keel_put", "node", 1, 9, 177),
           ",\"stopped\":[9,-1,\"a\"],\"silent\":[{\"node\":9}],\"links\":[[0],7],\"behind\":[9,-1],\"dying\":7,"
           "\"view\":3");
    assert_int_equal(w.node[0].entries, 1); /* for whom is not known */
    assert_int_equal(w.node[0].entry[0].for_rank, -1);
    waits_tick(&w, 102 * S);
    waits_report(&w, 0, NULL, 102 * S);
    waits_report(&w, 9, NULL, 102 * S);
    waits_fini(&w);
    expect("");
}

static void test_waits_names_of_calls_are_told_whole(void **state)
{
    (void)state;
    for (uint32_t call = 0; call < WAIT_CALLS; call++)
        assert_true(strlen(wait_call_name(call)) < WAITS_CALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_a_stopped_rank_told_after_a_second_and_in_growing_gaps),
        cmocka_unit_test(test_waits_of_a_moment_and_for_who_computes_tell_nothing),
        cmocka_unit_test(test_waits_for_a_holder_that_waits_for_a_silent_node_name_the_node),
        cmocka_unit_test(test_waits_for_a_node_are_one_line_with_how_it_is),
        cmocka_unit_test(test_waits_node_that_nobody_waits_for_is_told_alone),
        cmocka_unit_test(test_waits_for_a_view_name_the_node_that_it_needs),
        cmocka_unit_test(test_waits_for_a_part_name_the_rank_that_has_not_left),
        cmocka_unit_test(test_waits_of_threads_for_their_own_process_name_what_it_waits_for),
        cmocka_unit_test(test_waits_over_a_broken_link_name_it_if_both_ends_wait),
        cmocka_unit_test(test_waits_in_a_ring_are_told_and_in_one_collective_are_none),
        cmocka_unit_test(test_waits_for_an_agent_name_whom_that_one_waits_for),
        cmocka_unit_test(test_waits_for_memory_name_the_process_that_has_none),
        cmocka_unit_test(test_waits_for_a_view_name_who_does_not_answer_it),
        cmocka_unit_test(test_waits_bad_reports_are_left_out),
        cmocka_unit_test(test_waits_names_of_calls_are_told_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
