/* Options that a row of a table describes: what is taken goes where the row says; what is not is one line, and the
 * end with 2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pm/run/option_row.h"

enum shape { ROUND, SQUARE };

struct filled {
    bool first; /* at offset 0 no row may have its given */
    bool flag, given;
    int number, time;
    enum shape shape;
    const char *text, *called;
};

static void called(void *into, const char *text)
{
    ((struct filled *)into)->called = text;
}

static const struct option_row flag = {"flag", 0, NULL, 1, "help", OPTION_FLAG(struct filled, flag)},
                               number = {"number",
                                         'n',
                                         "N",
                                         1,
                                         "help",
                                         OPTION_NUMBER(struct filled, number, -2, 7),
                                         .given = OPTION_AT(struct filled, given, bool : 1)},
                               age = {"age", 0, "TIME", 1, "help", OPTION_TIME(struct filled, time, 200, 60000)},
                               term = {"term",          0,
                                       "TIME",          1,
                                       "help",          OPTION_TIME(struct filled, time, 1000, 60500),
                                       .never = "never"},
                               shape = {"shape", 0,      "SHAPE",
                                        1,       "help", OPTION_CHOICE(struct filled, shape, "round", "square")},
                               text = {"text", 0, "TEXT", 1, "help", OPTION_TEXT(struct filled, text)},
                               call = {"call", 0, "TEXT", 1, "help", OPTION_CALL(called)};

static void test_option_row_takes_what_it_says(void **state)
{
    struct filled f = {.time = 5};
    (void)state;
    option_take(&flag, &f, NULL);
    assert_true(f.flag);
    assert_false(f.given);
    option_take(&number, &f, "-2");
    assert_int_equal(f.number, -2);
    assert_true(f.given);
    option_take(&number, &f, "7");
    assert_int_equal(f.number, 7);
    option_take(&age, &f, "0.2");
    assert_int_equal(f.time, 200);
    option_take(&age, &f, "1min");
    assert_int_equal(f.time, 60000);
    option_take(&term, &f, "never");
    assert_int_equal(f.time, 0);
    option_take(&shape, &f, "square");
    assert_int_equal(f.shape, SQUARE);
    option_take(&shape, &f, "round");
    assert_int_equal(f.shape, ROUND);
    option_take(&text, &f, "");
    assert_string_equal(f.text, "");
    option_take(&call, &f, "word");
    assert_string_equal(f.called, "word");
    assert_false(f.first);
}

/* The line behind "PROGRAM: ". */
static void refuses(const struct option_row *row, const char *value, const char *line)
{
    int fds[2], status;
    char said[256] = "";
    struct filled f = {0};
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        option_take(row, &f, value);
        _exit(0);
    }
    close(fds[1]);
    ssize_t n, len = 0;
    while ((n = read(fds[0], said + len, sizeof said - 1 - (size_t)len)) > 0)
        len += n;
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    const char *behind = strstr(said, ": ");
    assert_non_null(behind);
    assert_string_equal(behind + 2, line);
}

static void test_option_row_refuses_all_else_in_one_line(void **state)
{
    (void)state;
    refuses(&number, "8", "-n: 8 is not a number from -2 to 7\n");
    refuses(&number, "-3", "-n: -3 is not a number from -2 to 7\n");
    refuses(&number, "", "-n:  is not a number from -2 to 7\n");
    refuses(&number, "4x", "-n: 4x is not a number from -2 to 7\n");
    refuses(&number, "99999999999999999999", "-n: 99999999999999999999 is not a number from -2 to 7\n");
    refuses(&age, "199ms", "--age: 199ms is not a time from 200ms to 60s, as 0.5s or 500ms is\n");
    refuses(&age, "never", "--age: never is not a time from 200ms to 60s, as 0.5s or 500ms is\n");
    refuses(&term, "61s", "--term: 61s is neither a time from 1s to 60500ms nor never\n");
    refuses(&term, "ever", "--term: ever is neither a time from 1s to 60500ms nor never\n");
    refuses(&shape, "oval", "--shape: oval is not known\n");
    refuses(&shape, "", "--shape:  is not known\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_option_row_takes_what_it_says),
        cmocka_unit_test(test_option_row_refuses_all_else_in_one_line),
    };
    return cmocka_run_group_tests_name("option_row", tests, NULL, NULL);
}
