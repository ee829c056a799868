/* How a batch system says that nodes are joined: what Slurm 22.05 has printed, and what is no such thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/run/topology.h"

/* As printed by scontrol show topology, with topology/tree. */
static const char tree[] = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4]\n"
                           "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[5-7]\n"
                           "SwitchName=leaf3 Level=0 LinkSpeed=1 Nodes=n[8-10]\n"
                           "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-10] Switches=leaf[1-3]\n";

static void test_topology_leaf_switches_are_a_grid(void **state)
{
    (void)state;
    static const char *const name[] = {"n1", "n2", "n3", "n8", "n10", "n9"};
    const struct topology_hosts hosts = {name, 6};
    int size[2], place_of[6];
    char why[200] = "";
    assert_int_equal(topology_of_switches(&hosts, tree, size, place_of, why, sizeof why), TOPOLOGY_FOUND);
    assert_int_equal(size[0], 2); /* leaf2 has none of them */
    assert_int_equal(size[1], 3);
    static const int expected[] = {0, 2, 4, 1, 5, 3}; /* n10 stands behind n9, as the switch has them */
    for (int i = 0; i < 6; i++)
        assert_int_equal(place_of[i], expected[i]);
}

static void test_topology_smaller_switch_leaves_places_without_a_host(void **state)
{
    (void)state;
    static const char *const name[] = {"n1", "n2", "n3", "n4", "n5"};
    const struct topology_hosts hosts = {name, 5};
    int size[2], place_of[5];
    char why[200] = "";
    assert_int_equal(topology_of_switches(&hosts, tree, size, place_of, why, sizeof why), TOPOLOGY_FOUND);
    assert_int_equal(size[0] * size[1], 8);
    assert_int_equal(place_of[3], 6);
    assert_int_equal(place_of[4], 1);
}

static void test_topology_that_does_not_fit_says_why(void **state)
{
    (void)state;
    static const char *const name[] = {"n1", "other"};
    const struct topology_hosts hosts = {name, 2};
    static const struct {
        const char *text, *why;
    } bad[] = {
        {tree, "host other of the job is on no leaf switch"},
        {"SwitchName=a Level=0 Nodes=n1,other\nSwitchName=b Level=0 Nodes=n1\n", "n1 is on two leaf switches"},
        {"SwitchName=a Level=0 Nodes=n[1-\n", "the nodes of switch a cannot be read"},
        {"SwitchName=a Level=0 Nodes=\n", "the nodes of switch a cannot be read"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int size[2], place_of[2];
        char why[200] = "";
        assert_int_equal(topology_of_switches(&hosts, bad[i].text, size, place_of, why, sizeof why), TOPOLOGY_BAD);
        assert_string_equal(why, bad[i].why);
    }
}

static void test_topology_of_no_switches_is_silent(void **state)
{
    (void)state;
    static const char *const name[] = {"n1"}, *const texts[] = {"",
                                                                "\n\n",
                                                                "scontrol: error: No topology information available\n",
                                                                "SwitchName=top Level=1 Nodes=n1\n",
                                                                "XSwitchName=a Level=0 Nodes=n1\n",
                                                                "SwitchName=a Nodes=n1\n"};
    const struct topology_hosts hosts = {name, 1};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int size[2], place_of[1];
        char why[200] = "";
        assert_int_equal(topology_of_switches(&hosts, texts[i], size, place_of, why, sizeof why), TOPOLOGY_SILENT);
    }
}

static void test_topology_coordinates_end_the_names_of_a_torus(void **state)
{
    (void)state;
    static const char *const name[] = {"tux000", "tux100", "tux01A"}, *const same[] = {"a000", "b000"},
                             *const none[] = {"tux000", "tux0-1"}, *const few[] = {"000"};
    int size[3], place_of[3];
    char why[200] = "";
    assert_int_equal(topology_of_names(&(struct topology_hosts){name, 3}, size, place_of, why, sizeof why),
                     TOPOLOGY_FOUND);
    assert_int_equal(size[0], 2);
    assert_int_equal(size[1], 2);
    assert_int_equal(size[2], 11);
    assert_int_equal(place_of[1], 1);
    assert_int_equal(place_of[2], 2 * (1 + 2 * 10));
    assert_int_equal(topology_of_names(&(struct topology_hosts){same, 2}, size, place_of, why, sizeof why),
                     TOPOLOGY_BAD);
    assert_string_equal(why, "hosts a000 and b000 have the same coordinates");
    assert_int_equal(topology_of_names(&(struct topology_hosts){none, 2}, size, place_of, why, sizeof why),
                     TOPOLOGY_BAD);
    assert_string_equal(why, "host tux0-1 does not end with three coordinates");
    assert_int_equal(topology_of_names(&(struct topology_hosts){few, 1}, size, place_of, why, sizeof why),
                     TOPOLOGY_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topology_leaf_switches_are_a_grid),
        cmocka_unit_test(test_topology_smaller_switch_leaves_places_without_a_host),
        cmocka_unit_test(test_topology_that_does_not_fit_says_why),
        cmocka_unit_test(test_topology_of_no_switches_is_silent),
        cmocka_unit_test(test_topology_coordinates_end_the_names_of_a_torus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
