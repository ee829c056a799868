#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pm/wire/codec.h"
#include "runtime/base/log.h"

/* A message that is dropped because it could not be read or written is one that the other end waits for. */
static void test_value_without_memory_ends_the_process(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        json_malloc_t allocate;
        json_free_t give_back;
        codec_init();
        json_get_alloc_funcs(&allocate, &give_back);
        give_back(allocate((size_t)1 << 50));
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0); /* a sanitizer has its own way to end */
}

static void line_that_needs_memory(void *user, const char *line, size_t len)
{
    (void)user;
    (void)line;
    (void)len;
    (void)pm_alloc((size_t)1 << 50);
}

/* keelrun's lines go into a queue, which needs memory and has a lock. */
static void test_line_about_it_needs_none(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        log_to(line_that_needs_memory, NULL);
        (void)pm_alloc((size_t)1 << 50);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void test_objects_are_read_and_others_are_none(void **state)
{
    (void)state;
    codec_init();
    static const char good[] = "{\"why\": \"none\"}", cut[] = "{\"why\": \"no", list[] = "[1]";
    json_t *m = codec_object(good, sizeof good - 1);
    assert_non_null(m);
    json_decref(m);
    assert_null(codec_object(cut, sizeof cut - 1));
    assert_null(codec_object(list, sizeof list - 1));
    assert_null(codec_object("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_without_memory_ends_the_process),
        cmocka_unit_test(test_line_about_it_needs_none),
        cmocka_unit_test(test_objects_are_read_and_others_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
