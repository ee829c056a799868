/* The settings of a job on their way from keelrun to an agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/wire/codec.h"
#include "pm/wire/settings.h"

static int rank_node[] = {0, 0, 1, 2}, edges[] = {0, 1, 1, 2, 2, 3, 3, 0},
           domain[] = {0, 1, 0, 1, 4096, 0, 0, 0, 3, 4096}, dead[] = {5, 2}, plans[] = {0, 1, 0, 4},
           native[] = {0, 3, 2, 1}, place[] = {0, 3, 2, 1};

static const struct job_settings all = {
    .nodes = 3,
    .spares = 1,
    .room = 1,
    .ranks = 4,
    .rank_node = rank_node,
    .on_failure = VIEW_DEGRADE,
    .degrade_asked = true,
    .secure = true,
    .provider = PROVIDER_VERBS,
    .probe = PROBE_OFI,
    .topology = MEMBER_FILE,
    .edges = edges,
    .edge_count = 4,
    .copies = {COPIES_AT_NEXT, 2, true, domain},
    .grid = {"3tx2", "2D(1,1)", "hybrid(all)", 7, dead, 2, plans, 4},
    .silence_ms = 900,
    .stopped_ms = 300,
    .late_ms = 160,
    .scrub_mb = 17,
    .range = {0x400000000, 0x800000000},
    .rails = {2, {"eth0", "10.1.0.0/16"}},
    .replicas = {2, 2, native, place},
    .check = CHECK_HASH,
    .on_mismatch = MISMATCH_REPORT,
    .on_death = DEATH_PARTNER,
    .inject = {2, {{0.5, FLIP_REST, 1, 0, 3, 9, 4, 7}, {1, FLIP_SEND, FLIP_ANY, FLIP_ANY, 0, FLIP_NO_END, 1, 1}}}};

static void test_settings_arrive_as_they_were(void **state)
{
    (void)state;
    struct job_settings got;
    json_t *object = settings_encode(&all);
    assert_true(settings_decode(&got, object));
    assert_memory_equal(got.rank_node, rank_node, sizeof rank_node);
    assert_memory_equal(got.edges, edges, sizeof edges);
    assert_int_equal(got.nodes, 3);
    assert_int_equal(got.spares, 1);
    assert_int_equal(got.room, 1);
    assert_int_equal(got.ranks, 4);
    assert_int_equal(got.on_failure, VIEW_DEGRADE);
    assert_true(got.degrade_asked);
    assert_true(got.secure);
    assert_int_equal(got.provider, PROVIDER_VERBS);
    assert_int_equal(got.probe, PROBE_OFI);
    assert_int_equal(got.topology, MEMBER_FILE);
    assert_int_equal(got.edge_count, 4);
    assert_int_equal(got.copies.at, COPIES_AT_NEXT);
    assert_int_equal(got.copies.levels, 2);
    assert_true(got.copies.hosts_told);
    assert_memory_equal(got.copies.domain, domain, sizeof domain);
    assert_true(settings_on_grid(&got));
    assert_string_equal(got.grid.grid, "3tx2");
    assert_string_equal(got.grid.spares, "2D(1,1)");
    assert_string_equal(got.grid.method, "hybrid(all)");
    assert_int_equal(got.grid.moves, 7);
    assert_int_equal(got.grid.ndead, 2);
    assert_memory_equal(got.grid.dead, dead, sizeof dead);
    assert_int_equal(got.grid.nplans, 4);
    assert_memory_equal(got.grid.plans, plans, sizeof plans);
    assert_int_equal(got.silence_ms, 900);
    assert_int_equal(got.stopped_ms, 300);
    assert_int_equal(got.late_ms, 160);
    assert_int_equal(got.scrub_mb, 17);
    assert_int_equal(got.range.base, 0x400000000);
    assert_int_equal(got.range.bytes, 0x800000000);
    assert_int_equal(got.rails.n, 2);
    assert_string_equal(got.rails.name[1], "10.1.0.0/16");
    assert_int_equal(got.replicas.ranks, 2);
    assert_int_equal(got.replicas.replicas, 2);
    assert_memory_equal(got.replicas.native, native, sizeof native);
    assert_memory_equal(got.replicas.place, place, sizeof place);
    assert_int_equal(got.check, CHECK_HASH);
    assert_int_equal(got.on_mismatch, MISMATCH_REPORT);
    assert_int_equal(got.on_death, DEATH_PARTNER);
    assert_int_equal(got.inject.n, 2);
    assert_int_equal(got.inject.rule[0].where, FLIP_REST);
    assert_int_equal(got.inject.rule[1].count, 1);
    /* and what is written of them is the same again: no member is left out above */
    json_t *again = settings_encode(&got);
    assert_true(json_equal(object, again));
    json_decref(again);
    settings_free(&got);
    json_decref(object);
}

static bool is_taken(const json_t *object)
{
    struct job_settings got;
    bool taken = settings_decode(&got, object);
    settings_free(&got);
    return taken;
}

static void test_settings_lack_nothing(void **state)
{
    (void)state;
    json_t *object = settings_encode(&all), *value;
    const char *key;
    json_object_foreach(object, key, value) {
        json_t *less = json_copy(object);
        json_object_del(less, key);
        assert_false(is_taken(less));
        json_object_set_new(less, key, json_string("no"));
        assert_false(is_taken(less));
        json_decref(less);
    }
// NOLINTNEXTLINE(bugprone-macro-parentheses): a term of a sum
#define ONE(...) +1
    assert_int_equal(json_object_size(object), 13 JOB_SETTINGS_LIST(ONE, ONE, ONE));
    json_decref(object);
    assert_false(is_taken(NULL));
}

static void test_settings_are_in_range(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int value;
    } bad[] = {{"nodes", 0},   {"nodes", 1 << 30}, {"spares", -1},     {"ranks", 0},        {"room", -1},
               {"room", 4097}, {"room", 4093},     {"ranks", 1 << 30}, {"on_failure", 3},   {"on_failure", -1},
               {"probe", 3},   {"topology", 5},    {"silence", 199},   {"silence", 600001}, {"stopped", -1},
               {"late", 0},    {"provider", 3},    {"copies_at", 2},   {"copies_at", -1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *object = settings_encode(&all);
        json_object_set_new(object, bad[i].key, json_integer(bad[i].value));
        assert_false(is_taken(object));
        json_decref(object);
    }
}

static void test_settings_name_each_native_rank_once(void **state)
{
    (void)state;
    static const struct {
        int sets, native[4];
    } bad[] = {{2, {0, 1, 1, 3}}, {2, {0, 1, 2, 4}}, {3, {0, 1, 2, 3}}, {1, {0, 1, 2, 3}}, {4, {0, 1, 2, 3}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *object = settings_encode(&all);
        json_object_set_new(object, "replicas",
                            json_pack("{s:i, s:o}", "sets", bad[i].sets, "native", codec_ints(bad[i].native, 4)));
        assert_false(is_taken(object));
        json_decref(object);
    }
    struct job_settings none = all, got;
    none.replicas = (struct replica_map){0};
    json_t *object = settings_encode(&none);
    assert_true(settings_decode(&got, object));
    assert_false(replica_map_is_used(&got.replicas));
    settings_free(&got);
    json_decref(object);
}

/* The one member that differs from all others arrives, and its first value that is none does not. */
#define ARRIVES(member, key, value, beyond)                                                                            \
    {                                                                                                                  \
        struct job_settings s = all, got;                                                                              \
        s.member = (value);                                                                                            \
        json_t *object = settings_encode(&s);                                                                          \
        assert_true(settings_decode(&got, object));                                                                    \
        assert_true(got.member == s.member);                                                                           \
        settings_free(&got);                                                                                           \
        json_object_set_new(object, key, beyond);                                                                      \
        assert_false(is_taken(object));                                                                                \
        json_decref(object);                                                                                           \
    }
#define NUMBER_ARRIVES(member, key, low, high)                                                                         \
    ARRIVES(member, key, low, json_integer((low)-1)) ARRIVES(member, key, high, json_integer((high) + 1))
#define FLAG_ARRIVES(member, key) ARRIVES(member, key, false, json_integer(0)) ARRIVES(member, key, true, json_null())
#define CHOICE_ARRIVES(member, key, last)                                                                              \
    ARRIVES(member, key, 0, json_integer(-1)) ARRIVES(member, key, last, json_integer((last) + 1))

/* NOLINTNEXTLINE(readability-function-size): the list makes it as long as it is */
static void test_settings_each_of_the_list_arrives_alone(void **state)
{
    (void)state;
    JOB_SETTINGS_LIST(NUMBER_ARRIVES, FLAG_ARRIVES, CHOICE_ARRIVES)
}

static void test_settings_name_nodes_that_there_are(void **state)
{
    (void)state;
    json_t *object = settings_encode(&all);
    json_t *list = json_object_get(object, "rank_node");
    json_array_set_new(list, 3, json_integer(3)); /* a spare holds no rank at the start */
    assert_false(is_taken(object));
    json_array_set_new(list, 3, json_integer(2));
    assert_true(is_taken(object));
    json_array_append_new(list, json_integer(0)); /* more than there are ranks */
    assert_false(is_taken(object));
    json_array_remove(list, 4);
    list = json_object_get(object, "edges");
    json_array_append_new(list, json_integer(0)); /* half an edge */
    assert_false(is_taken(object));
    json_array_append_new(list, json_integer(4));
    assert_false(is_taken(object));
    json_array_set_new(list, 9, json_integer(3));
    assert_true(is_taken(object));
    list = json_object_get(object, "domains");
    json_array_append_new(list, json_integer(0)); /* of some nodes only */
    assert_false(is_taken(object));
    json_array_remove(list, 8);
    json_array_set_new(list, 7, json_integer(-1));
    assert_false(is_taken(object));
    json_decref(object);
}

static void test_settings_of_no_grid_arrive(void **state)
{
    (void)state;
    struct job_settings none = all, got;
    none.grid = (struct grid_choice){0};
    json_t *object = settings_encode(&none);
    assert_true(settings_decode(&got, object));
    assert_false(settings_on_grid(&got));
    settings_free(&got);
    json_decref(object);
}

static void test_settings_of_a_grid_are_whole_and_in_range(void **state)
{
    (void)state;
    char longer[GRID_TEXT_MAX + 1];
    memset(longer, '1', sizeof longer);
    longer[GRID_TEXT_MAX] = '\0';
    static const char *const texts[] = {"nodes", "spares", "method"};
    json_t *object = settings_encode(&all), *grid = json_object_get(object, "grid"), *value, *list;
    const char *key;
    json_t *was = json_copy(grid);
    json_object_foreach(was, key, value) {
        json_object_del(grid, key);
        assert_false(is_taken(object));
        json_object_set_new(grid, key, json_true());
        assert_false(is_taken(object));
        json_object_set(grid, key, value);
        assert_true(is_taken(object));
    }
    for (int i = 0; i < 3; i++) {
        value = json_incref(json_object_get(grid, texts[i]));
        json_object_set_new(grid, texts[i], json_string(longer));
        assert_false(is_taken(object));
        json_object_set_new(grid, texts[i], json_string(longer + 1));
        assert_true(is_taken(object));
        json_object_set_new(grid, texts[i], json_string(""));
        assert_false(is_taken(object));
        json_object_set_new(grid, texts[i], value);
    }
    json_object_set_new(grid, "moves", json_integer(-1));
    assert_false(is_taken(object));
    json_object_set_new(grid, "moves", json_integer(0));
    list = json_object_get(grid, "dead");
    json_array_append_new(list, json_integer(4096));
    assert_false(is_taken(object));
    json_array_set_new(list, 2, json_integer(4095));
    assert_true(is_taken(object));
    json_decref(was);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_arrive_as_they_were),
        cmocka_unit_test(test_settings_lack_nothing),
        cmocka_unit_test(test_settings_name_each_native_rank_once),
        cmocka_unit_test(test_settings_are_in_range),
        cmocka_unit_test(test_settings_each_of_the_list_arrives_alone),
        cmocka_unit_test(test_settings_name_nodes_that_there_are),
        cmocka_unit_test(test_settings_of_no_grid_arrive),
        cmocka_unit_test(test_settings_of_a_grid_are_whole_and_in_range),
    };
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
