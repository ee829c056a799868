/* The agent's half with the threads, up to its start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "pm/plane.h"

/* Says what could not be done, and with whom. */
static void test_plane_start_names_the_node_that_it_cannot_read(void **state)
{
    (void)state;
    int where[] = {0, 1};
    const struct job_settings settings = {.nodes = 2,
                                          .ranks = 2,
                                          .rank_node = where,
                                          .probe = PROBE_OFI,
                                          .silence_ms = 600000,
                                          .stopped_ms = 600000,
                                          .late_ms = 150};
    static const uint8_t secret[32] = {1};
    const struct plane_config config = {.job_id = 7, .host = "127.0.0.1", .settings = &settings, .secret = secret};
    const struct plane_callbacks callbacks = {0};
    struct plane *plane;
    struct plane_blob blobs[2];
    char why[PLANE_WHY_MAX] = "what was here before";
    assert_int_equal(plane_create(&config, &callbacks, &plane, &blobs[0]), KEEL_OK);
    blobs[1] = blobs[0];
    memset(blobs[1].bytes, 0, sizeof blobs[1].bytes);
    assert_int_equal(plane_start(plane, blobs, why), KEEL_ERR_ARG);
    assert_string_equal(why, "what node 1 says of itself is not what this agent reads: another version of it?");
    plane_destroy(plane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plane_start_names_the_node_that_it_cannot_read)};
    return cmocka_run_group_tests_name("plane", tests, NULL, NULL);
}
