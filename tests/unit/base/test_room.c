/* How much memory is left, from files as the kernel writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "runtime/base/room.h"

static char root[64];

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/keel-room-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command); // NOLINT(cert-env33-c): a folder of our own
}

static void write_file(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        (void)mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_room_nothing_known_is_no_limit(void **state)
{
    (void)state;
    assert_true(room_bytes(root) == UINT64_MAX);
}

static void test_room_for_processes_is_that_of_the_group_that_has_least(void **state)
{
    (void)state;
    uint64_t limit;
    assert_true(room_processes(root, &limit) == UINT64_MAX);
    write_file("/proc/self/cgroup", "8:pids:/a/b\n4:memory:/x\n0::/job\n");
    assert_true(room_processes(root, &limit) == UINT64_MAX);
    write_file("/sys/fs/cgroup/pids/a/b/pids.max", "max\n");
    write_file("/sys/fs/cgroup/pids/a/b/pids.current", "7\n");
    assert_true(room_processes(root, &limit) == UINT64_MAX);
    write_file("/sys/fs/cgroup/job/pids.max", "100\n");
    write_file("/sys/fs/cgroup/job/pids.current", "90\n");
    assert_int_equal(room_processes(root, &limit), 10);
    assert_int_equal(limit, 100);
    write_file("/sys/fs/cgroup/pids/a/pids.max", "20\n");
    write_file("/sys/fs/cgroup/pids/a/pids.current", "20\n");
    assert_int_equal(room_processes(root, &limit), 0);
    assert_int_equal(limit, 20);
}

static void test_room_is_what_the_machine_has_available(void **state)
{
    (void)state;
    write_file("/proc/meminfo",
               "MemTotal:       24684544 kB\nMemFree:         1000 kB\nMemAvailable:   5000 kB\nHugePages: 0\n");
    write_file("/proc/self/cgroup", "0::/\n");
    assert_int_equal(room_bytes(root), 5000 * 1024);
}

static void test_room_of_version_two_is_the_least_of_all_groups_above(void **state)
{
    (void)state;
    write_file("/proc/meminfo", "MemAvailable: 5000 kB\n");
    write_file("/proc/self/cgroup", "0::/job/step\n");
    write_file("/sys/fs/cgroup/job/step/memory.max", "max\n");
    write_file("/sys/fs/cgroup/job/step/memory.current", "700000\n");
    assert_int_equal(room_bytes(root), 5000 * 1024);
    write_file("/sys/fs/cgroup/job/memory.max", "1000000\n");
    write_file("/sys/fs/cgroup/job/memory.current", "900000\n");
    assert_int_equal(room_bytes(root), 100000);
    write_file("/sys/fs/cgroup/job/memory.stat", "anon 600000\ninactive_file 30000\nactive_file 20000\nshmem 10\n");
    assert_int_equal(room_bytes(root), 150000);
    write_file("/sys/fs/cgroup/job/step/memory.max", "710000\n");
    assert_int_equal(room_bytes(root), 10000);
    write_file("/sys/fs/cgroup/job/step/memory.max", "600000\n"); /* lowered below what is used */
    assert_int_equal(room_bytes(root), 0);
}

static void test_room_of_version_one_is_that_of_the_memory_controller(void **state)
{
    (void)state;
    write_file("/proc/self/cgroup", "9:name=systemd:/a\n4:memory:/job\n0::/\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "123456\n");
    write_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000000\n");
    write_file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "400000\n");
    write_file("/sys/fs/cgroup/memory/job/memory.stat", "cache 5\ntotal_inactive_file 1000\ntotal_active_file 2000\n");
    assert_int_equal(room_bytes(root), 603000);
}

/* A container sees its own group at the mount, and the path that the host gave it. */
static void test_room_in_a_container_is_that_of_the_mount(void **state)
{
    (void)state;
    write_file("/proc/self/cgroup", "4:memory:/docker/496db52a\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
    write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
    assert_int_equal(room_bytes(root), 1500000);
}

static void test_room_ever_is_memory_and_swap_unless_all_is_promised(void **state)
{
    (void)state;
    assert_true(room_ever(root) == UINT64_MAX);
    write_file("/proc/meminfo", "MemTotal: 3000 kB\nMemAvailable: 5 kB\nSwapCached: 7 kB\nSwapTotal: 1000 kB\n");
    assert_int_equal(room_ever(root), 4000 * 1024);
    write_file("/proc/sys/vm/overcommit_memory", "0\n");
    assert_int_equal(room_ever(root), 4000 * 1024);
    write_file("/proc/sys/vm/overcommit_memory", "2\n");
    assert_int_equal(room_ever(root), 4000 * 1024);
    write_file("/proc/sys/vm/overcommit_memory", "1\n");
    assert_true(room_ever(root) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_room_nothing_known_is_no_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_for_processes_is_that_of_the_group_that_has_least, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_is_what_the_machine_has_available, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_of_version_two_is_the_least_of_all_groups_above, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_of_version_one_is_that_of_the_memory_controller, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_in_a_container_is_that_of_the_mount, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_ever_is_memory_and_swap_unless_all_is_promised, setup, teardown),
    };
    return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
