/* What an agent is started with, and whom keelrun may kill. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pm/wire/order.h"
#include "pm/wire/orphans.h"
#include "pm/wire/ticket.h"

static char *env[] = {"A=1", "EMPTY=", "LINES=a\nb", NULL};
static const struct order whole = {.way = ORDER_BY_LAUNCHER_IF_FAR,
                                   .launcher = "",
                                   .host = "me@n1",
                                   .cwd = "/a b",
                                   .ticket = "a line\n",
                                   .keeld = "/x/keeld",
                                   .env = env};

static void expect_far(const struct order *o)
{
    assert_string_equal(o->ticket, whole.ticket);
    assert_string_equal(o->keeld, whole.keeld);
    for (int i = 0; i < 3; i++)
        assert_string_equal(o->env[i], env[i]);
    assert_null(o->env[3]);
}

/* The program that reads an order becomes another one. */
static void release(struct order *o)
{
    free(o->memory[0]);
    free(o->memory[1]);
    o->memory[0] = o->memory[1] = NULL;
}

static void test_order_arrives_whole(void **state)
{
    (void)state;
    struct order read = {0}, far = {0};
    int fd = order_write(&whole), second;
    assert_true(fd >= 0 && order_read(fd, &read));
    assert_int_equal(read.way, whole.way);
    assert_string_equal(read.launcher, "");
    assert_string_equal(read.host, whole.host);
    assert_string_equal(read.cwd, whole.cwd);
    expect_far(&read);
    second = order_write_far(&read);
    assert_true(second >= 0 && order_read_far(second, &far));
    expect_far(&far);
    release(&read);
    release(&far);
    close(fd);
    close(second);
}

/* By a pipe, with what the user's program would read behind it. */
static void test_order_takes_not_one_byte_more(void **state)
{
    (void)state;
    struct order far = {0};
    char bytes[4096], rest[10] = "";
    int fd = order_write_far(&whole), way[2];
    ssize_t len = read(fd, bytes, sizeof bytes);
    assert_true(len > 0 && pipe(way) == 0);
    assert_int_equal(write(way[1], bytes, (size_t)len), len);
    assert_int_equal(write(way[1], "rest", 5), 5);
    assert_true(order_read_far(way[0], &far));
    expect_far(&far);
    assert_int_equal(read(way[0], rest, sizeof rest), 5);
    assert_string_equal(rest, "rest");
    release(&far);
    close(fd);
    close(way[0]);
    close(way[1]);
}

static void test_order_cut_short_or_senseless_is_refused(void **state)
{
    (void)state;
    char bytes[4096];
    int fd = order_write_far(&whole);
    ssize_t len = read(fd, bytes, sizeof bytes);
    for (ssize_t cut = 0; cut < len; cut++) {
        struct order far = {0};
        int way[2];
        assert_int_equal(pipe(way), 0);
        assert_int_equal(write(way[1], bytes, (size_t)cut), cut);
        close(way[1]);
        assert_false(order_read_far(way[0], &far));
        close(way[0]);
    }
    bytes[3] = 0x7f; /* two gigabytes */
    struct order far = {0};
    int way[2];
    assert_true(pipe(way) == 0 && write(way[1], bytes, (size_t)len) == len);
    assert_false(order_read_far(way[0], &far));
    close(way[0]);
    close(way[1]);
    close(fd);
}

static void test_summons_comes_back_as_it_was(void **state)
{
    (void)state;
    struct summons to = {.job_id = 7, .host = "10.0.0.1", .port = 4711, .node = 3, .from = ""}, read;
    char line[ORDER_TEXT];
    ticket_make(&to.ticket);
    summons_write(&to, line, sizeof line);
    assert_true(summons_read(line, &read));
    assert_int_equal(read.job_id, 7);
    assert_int_equal(read.ticket.id, to.ticket.id);
    assert_memory_equal(read.ticket.key, to.ticket.key, sizeof to.ticket.key);
    assert_string_equal(read.host, "10.0.0.1");
    assert_int_equal(read.port, 4711);
    assert_int_equal(read.node, 3);
    assert_string_equal(read.from, "");
    line[strlen(line) - 1] = '\0';
    assert_false(summons_read(line, &read));
}

/* A child that tells a child's number and waits, as that does. */
static pid_t family(pid_t *grandchild)
{
    int way[2];
    assert_int_equal(pipe(way), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t next = fork();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (next != 0 && write(way[1], &next, sizeof next) != sizeof next)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(way[0], grandchild, sizeof *grandchild), sizeof *grandchild);
    close(way[0]);
    close(way[1]);
    return child;
}

static void test_descendants_only_those_below_are_opened(void **state)
{
    (void)state;
    pid_t below, below_other;
    pid_t child = family(&below), other = family(&below_other);
    int fd = descendants_open(below, child);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(descendants_open(below, other), -1);
    assert_int_equal(descendants_open(below_other, child), -1);
    assert_int_equal(descendants_open(child, child), -1);
    assert_int_equal(descendants_open(1, child), -1);
    assert_int_equal(descendants_open(getppid(), child), -1);
    assert_int_equal(descendants_open(getpid(), getpid()), -1);
    assert_int_equal(descendants_open(below, 0), -1);
    kill(below, SIGKILL);
    kill(below_other, SIGKILL);
    kill(child, SIGKILL);
    kill(other, SIGKILL);
    waitpid(child, NULL, 0);
    waitpid(other, NULL, 0);
    assert_int_equal(descendants_open(below, child), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_arrives_whole),
        cmocka_unit_test(test_order_takes_not_one_byte_more),
        cmocka_unit_test(test_order_cut_short_or_senseless_is_refused),
        cmocka_unit_test(test_summons_comes_back_as_it_was),
        cmocka_unit_test(test_descendants_only_those_below_are_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
