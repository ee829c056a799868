/* Lists of hosts as MPICH, Open MPI, Slurm, PBS, LSF and Grid Engine write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pm/run/hosts.h"

typedef bool parser(struct host_list *, const char *, char *, size_t);

/* "name:slots" or "name:slots/most" of each, with blanks between; "!" begins what why must have in it. */
static void expect(parser *parse, const char *text, const char *wanted)
{
    struct host_list h = {0};
    char why[256] = "", got[1024] = "";
    bool good = parse(&h, text, why, sizeof why);
    for (int i = 0; i < h.count && good; i++) {
        size_t n = strlen(got);
        int m = snprintf(got + n, sizeof got - n, "%s%s:%d", i ? " " : "", h.names[i], h.slots[i]);
        if (h.most[i])
            snprintf(got + n + m, sizeof got - n - (size_t)m, "/%d", h.most[i]);
    }
    if (wanted[0] == '!') {
        if (good || !strstr(why, wanted + 1))
            fail_msg("%s: %s, \"%s\"", text, good ? got : "refused", why);
    } else if (!good || strcmp(got, wanted) != 0) {
        fail_msg("%s: \"%s\" \"%s\", not \"%s\"", text, got, why, wanted);
    }
    hosts_free(&h);
}

static bool slurm(struct host_list *h, const char *text, char *why, size_t size)
{
    char nodes[128];
    const char *tasks = strchr(text, ' ');
    snprintf(nodes, sizeof nodes, "%.*s", tasks ? (int)(tasks - text) : (int)strlen(text), text);
    return hosts_parse_slurm(h, nodes, tasks ? tasks + 1 : NULL, why, size);
}

static void test_hosts_list_is_read_as_mpich_and_open_mpi_do(void **state)
{
    (void)state;
    expect(hosts_parse_list, "a,b-1.example,10.0.0.7", "a:1 b-1.example:1 10.0.0.7:1");
    expect(hosts_parse_list, "a:2,b", "a:2 b:1");
    expect(hosts_parse_list, "a,a,b,a:3", "a:5 b:1"); /* one node, however often it is named */
    expect(hosts_parse_list, "me@a:4,you@b", "me@a:4 you@b:1");
}

static void test_hosts_ranges_are_expanded_as_slurm_does(void **state)
{
    (void)state;
    expect(hosts_parse_list, "node[1-4,7]", "node1:1 node2:1 node3:1 node4:1 node7:1");
    expect(hosts_parse_list, "n[08-11]:2,x", "n08:2 n09:2 n10:2 n11:2 x:1");
    expect(hosts_parse_list, "r[1-2]n[0-1]-ib.local",
           "r1n0-ib.local:1 r1n1-ib.local:1 r2n0-ib.local:1 r2n1-ib.local:1");
    expect(hosts_parse_list, "me@n[1-2]", "me@n1:1 me@n2:1");
    expect(hosts_parse_list, "[1-2]", "1:1 2:1");
    expect(hosts_parse_list, "n[3]", "n3:1");
}

static void test_hosts_ipv6_addresses_are_no_names_with_slots(void **state)
{
    (void)state;
    expect(hosts_parse_list, "::1", "::1:1");
    expect(hosts_parse_list, "fd00::2,[fd00::3]:4,me@fe80::1%eth0", "fd00::2:1 fd00::3:4 me@fe80::1%eth0:1");
    expect(hosts_parse_list, "[fd00::2", "!] is missing");
    expect(hosts_parse_list, "[fd00::2]4", "!no IPv6 address");
    expect(hosts_parse_list, "[fd00::x]:4", "!no IPv6 address");
    assert_string_equal(host_address("me@fd00::2"), "fd00::2");
    assert_string_equal(host_address("me@a"), "a");
    assert_string_equal(host_address("a"), "a");
}

static void test_hosts_what_is_no_list_is_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "!empty"},          {"a,", "!empty"},
        {",a", "!empty"},        {"a,,b", "!empty"},
        {":2", "!empty"},        {"@a", "!no user's name"},
        {"-x@a", "!no user's"},  {"-oProxyCommand=x", "!no host name"},
        {"a b", "!no host"},     {"a;b", "!no host name"},
        {"$(x)", "!no host"},    {"a:", "!not a number"},
        {"a:0", "!not a"},       {"a:x", "!not a number"},
        {"a:1:2", "!not a"},     {"n[1-", "!] is missing"},
        {"n[2-1]", "!no range"}, {"n[1-2,]x[", "!missing"},
        {"n[]", "!no range"},    {"n[a-b]", "!no range"},
        {"me@", "!empty"},       {"slots=2", "!no host"},
        {"a]", "!no host name"}, {"n[1-99999]", "!more than 4096 hosts: a job has no more nodes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect(hosts_parse_list, bad[i][0], bad[i][1]);
}

static void test_hosts_file_is_read_as_mpich_and_open_mpi_do(void **state)
{
    (void)state;
    expect(hosts_parse_file, "# cluster\n  n1:4 \n\nn2 # spare\r\nn3", "n1:4 n2:1 n3:1");
    expect(hosts_parse_file, "a slots=2\nb slots = 3 max_slots=4\nc cpus=5 max-slots=6\n", "a:2 b:3/4 c:5/6");
    expect(hosts_parse_file, "a:2 user=me binding=cpu\nyou@b\nn[1-2] slots=2\n", "me@a:2 you@b:1 n1:2 n2:2");
    expect(hosts_parse_file, "a\na\nb\n", "a:2 b:1");
    expect(hosts_parse_file, "# nothing\n", "!no host");
    expect(hosts_parse_file, "a\n-x\n", "!line 2: ");
    expect(hosts_parse_file, ":4\n", "!line 1: a host's name is empty");
    expect(hosts_parse_file, "a slot=2\n", "!line 1: slot= is not understood");
    expect(hosts_parse_file, "a b\n", "!line 1: \"b\" is not understood");
    expect(hosts_parse_file, "a slots=\n", "!followed by nothing");
    expect(hosts_parse_file, "a slots=-1\n", "!not a number");
    expect(hosts_parse_file, "a slots=3 max_slots=2\n", "!more than max_slots");
}

static void test_hosts_of_batch_systems_are_read(void **state)
{
    (void)state;
    expect(slurm, "n[1-3],m 4(x2),1", "n1:4 n2:4 n3:1 m:1");
    expect(slurm, "n[1-2]", "n1:1 n2:1");
    expect(slurm, "n[1-2] 3(x4)", "n1:3 n2:3"); /* more than there are: of a larger step */
    expect(slurm, "n1 3(y2)", "!3(y2) is not understood");
    expect(slurm, "n1 0", "!not a number");
    expect(hosts_parse_words, "a\na\nb\n", "a:2 b:1"); /* PBS, LSF's file */
    expect(hosts_parse_words, "a a b", "a:2 b:1");     /* LSF's variable */
    expect(hosts_parse_words, " \n", "!no host");
    expect(hosts_parse_sge, "a.example 2 all.q@a UNDEFINED\nb 1 all.q@b 0,1\n", "a.example:2 b:1");
    expect(hosts_parse_sge, "a\n", "!line 1: no number of slots");
}

/* How many ranks each of the hosts gets, as "2 1"; "" if there is no room. */
static void expect_layout(const char *file, int spares, int ranks, const char *wanted)
{
    struct host_list h = {0};
    int rank_node[64], on[8] = {0};
    char why[256], got[128] = "";
    assert_true(hosts_parse_file(&h, file, why, sizeof why));
    int nodes = hosts_layout(&h, h.count - spares, ranks, rank_node);
    for (int r = 0; r < ranks && nodes; r++) {
        assert_in_range(rank_node[r], r ? rank_node[r - 1] : 0, nodes - 1); /* in blocks */
        on[rank_node[r]]++;
    }
    for (int i = 0; i < nodes; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? " " : "", on[i]);
    assert_string_equal(got, wanted);
    hosts_free(&h);
}

static void test_hosts_layout_fills_slots_in_rounds(void **state)
{
    (void)state;
    expect_layout("a:4\nb:4\n", 0, 3, "3");
    expect_layout("a:4\nb:4\n", 0, 5, "4 1");
    expect_layout("a:4\nb:2\n", 0, 8, "6 2"); /* again from the first */
    expect_layout("a:1\nb:1\nc:1\n", 0, 4, "2 1 1");
    expect_layout("a:4\nb:4\nc:4\n", 1, 12, "8 4"); /* c is the spare */
    expect_layout("a slots=2 max_slots=3\nb slots=1\n", 0, 6, "3 3");
    expect_layout("a slots=2 max_slots=3\nb slots=1 max_slots=1\n", 0, 5, "");
}

static void test_hosts_drop_keeps_the_spares(void **state)
{
    (void)state;
    struct host_list h = {0};
    char why[256];
    assert_true(hosts_parse_list(&h, "a:1,b:2,c:3,d:4", why, sizeof why));
    assert_int_equal(hosts_slots(&h, 3), 6);
    hosts_drop(&h, 1, 3);
    assert_int_equal(h.count, 2);
    assert_string_equal(h.names[1], "d");
    assert_int_equal(h.slots[1], 4);
    assert_true(hosts_parse_list(&h, "d:2,b:1", why, sizeof why)); /* known, and forgotten */
    assert_int_equal(h.count, 3);
    assert_int_equal(h.slots[1], 6);
    assert_string_equal(h.names[2], "b");
    hosts_free(&h);
}

/* As many as there may be, with names that differ in their ends only; two with one sum. */
static void test_hosts_thousands_are_each_found_again(void **state)
{
    (void)state;
    enum { HOSTS = 4096, PREFIX = 200 };
    struct host_list h = {0};
    char why[256], list[PREFIX + 16] = "";
    memset(list, 'n', PREFIX);
    snprintf(list + PREFIX, sizeof list - PREFIX, "[0-%d]", HOSTS - 1);
    for (int times = 1; times <= 2; times++) {
        assert_true(hosts_parse_list(&h, list, why, sizeof why));
        assert_int_equal(h.count, HOSTS);
        for (int i = 0; i < HOSTS; i++)
            assert_int_equal(h.slots[i], times);
    }
    hosts_free(&h);
    expect(hosts_parse_list, "Aa,BB,Aa:2", "Aa:3 BB:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_list_is_read_as_mpich_and_open_mpi_do),
        cmocka_unit_test(test_hosts_ranges_are_expanded_as_slurm_does),
        cmocka_unit_test(test_hosts_ipv6_addresses_are_no_names_with_slots),
        cmocka_unit_test(test_hosts_what_is_no_list_is_refused),
        cmocka_unit_test(test_hosts_file_is_read_as_mpich_and_open_mpi_do),
        cmocka_unit_test(test_hosts_of_batch_systems_are_read),
        cmocka_unit_test(test_hosts_layout_fills_slots_in_rounds),
        cmocka_unit_test(test_hosts_drop_keeps_the_spares),
        cmocka_unit_test(test_hosts_thousands_are_each_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
