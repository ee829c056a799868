/* Files that users name: what is read, and what is refused instead of being waited for. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/user_file.h"

static char folder[64], path[80], why[USER_FILE_WHY];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/keel-user-file-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/f", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static void write_file(const char *bytes, size_t len)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void assert_refused(const char *name, const char *what)
{
    char want[USER_FILE_WHY];
    snprintf(want, sizeof want, what, name);
    assert_null(user_text_read(name, why));
    assert_string_equal(why, want);
}

static void test_user_file_whole_is_as_it_was_written(void **state)
{
    (void)state;
    size_t len, sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *bytes = malloc(sizes[i] + 1);
        assert_non_null(bytes);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (char)(k * 7);
        write_file(bytes, sizes[i]);
        char *got = user_file_read(path, sizes[i], &len, why);
        assert_non_null(got);
        assert_int_equal(len, sizes[i]);
        assert_memory_equal(got, bytes, len);
        assert_int_equal(got[len], 0);
        free(got);
        if (sizes[i] > 0) {
            assert_null(user_file_read(path, sizes[i] - 1, &len, why));
            assert_non_null(strstr(why, "is longer than"));
            assert_int_equal(errno, 0);
        }
        free(bytes);
    }
}

/* A fifo is waited for by a plain open until somebody writes. */
static void test_user_file_no_regular_one_is_refused_at_once(void **state)
{
    (void)state;
    assert_refused(folder, "cannot read %s: it is a folder, and no regular file");
    assert_refused("/dev/zero", "cannot read %s: it is a device, and no regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, "cannot read %s: it is a fifo, and no regular file");
    int writer = open(path, O_RDWR | O_CLOEXEC);
    assert_true(writer >= 0);
    assert_refused(path, "cannot read %s: it is a fifo, and no regular file");
    close(writer);
}

static void test_user_file_absent_says_so(void **state)
{
    (void)state;
    assert_null(user_text_read(path, why));
    assert_int_equal(errno, ENOENT);
    assert_refused(path, "cannot open %s: No such file or directory");
}

static void test_user_file_a_shells_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    int ends[2];
    char name[32];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "a\nb\n", 4), 4);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    char *text = user_text_read(name, why);
    assert_non_null(text);
    assert_string_equal(text, "a\nb\n");
    free(text);
    close(ends[0]);
}

static void test_user_file_a_text_has_no_zero_and_no_mark(void **state)
{
    (void)state;
    write_file("a\nb\n\0c\n", 7);
    assert_refused(path, "%s: line 3: a zero byte, which no text has");
    write_file("\xef\xbb\xbf"
               "a\n",
               5);
    assert_refused(path, "%s: line 1: the text begins with a byte order mark (UTF-8 with BOM); save it without");
    write_file("\xef\xbb", 2);
    char *text = user_text_read(path, why);
    assert_non_null(text);
    free(text);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_user_file_whole_is_as_it_was_written),
        TEST(test_user_file_no_regular_one_is_refused_at_once),
        TEST(test_user_file_absent_says_so),
        TEST(test_user_file_a_shells_pipe_is_read_to_its_end),
        TEST(test_user_file_a_text_has_no_zero_and_no_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
