/* The first call into libfabric reads little, and restricts nobody but the thread that makes it. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/net/ofi/fabric.h"
#include "runtime/net/ofi/ofi_init.h"
#include "runtime/net/transport.h"

static long long bytes_read(void)
{
    long long bytes = -1;
    FILE *f = fopen("/proc/self/io", "re");
    if (!f || fscanf(f, "rchar: %lld", &bytes) != 1)
        bytes = -1;
    if (f)
        fclose(f);
    return bytes;
}

static void test_ofi_init_reads_little_and_restricts_nobody_else(void **state)
{
    (void)state;
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 0)
        skip(); /* a kernel without landlock */
    long long before = bytes_read();
    ofi_init(false);
    long long after = bytes_read();
    assert_true(before >= 0 && after >= before);
    assert_in_range(after - before, 0, 2000000); /* the kernel's symbols are ten megabytes */
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}

static int no_params(struct fi_param **params, int *count)
{
    *params = NULL;
    *count = 0;
    return 0;
}

static void need_params(struct fi_param *params)
{
    if (!params)
        _exit(1);
}

/* As it is where its own start had no memory; fi_freeparams looks at the first one all the same. */
static void test_ofi_init_frees_no_settings_where_there_are_none(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        if (!fabric_load())
            _exit(2);
        fabric_calls.getparams = no_params;
        fabric_calls.freeparams = need_params;
        ofi_init(true);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int fabric_without_memory(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    (void)attr;
    (void)fabric;
    (void)context;
    return -FI_ENOMEM;
}

static int none_without_memory(uint32_t version, const char *node, const char *service, uint64_t flags,
                               const struct fi_info *hints, struct fi_info **info)
{
    (void)version;
    (void)node;
    (void)service;
    (void)flags;
    (void)hints;
    *info = NULL;
    return -FI_ENOMEM;
}

static struct fi_info *no_copy(const struct fi_info *info)
{
    (void)info;
    return NULL;
}

/* What tp_open says where libfabric has no memory in its n-th call of those that say so; in a process of its own, as
 * the table of calls is the process's. */
static int opened_where(int n)
{
    const struct tp_config config = {.host = "127.0.0.1", .provider = "tcp"};
    struct tp *tp;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (!fabric_load())
            _exit(100);
        if (n == 0)
            fabric_calls.dupinfo = no_copy;
        else if (n == 1)
            fabric_calls.getinfo = none_without_memory;
        else if (n == 2)
            fabric_calls.fabric = fabric_without_memory;
        _exit(-tp_ofi.open(&config, &tp));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void test_ofi_open_without_memory_says_so(void **state)
{
    (void)state;
    for (int n = 0; n < 3; n++)
        assert_int_equal(opened_where(n), KEEL_ERR_NOMEM);
    assert_int_equal(opened_where(3), KEEL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ofi_open_without_memory_says_so),
                                       cmocka_unit_test(test_ofi_init_frees_no_settings_where_there_are_none),
                                       cmocka_unit_test(test_ofi_init_reads_little_and_restricts_nobody_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
