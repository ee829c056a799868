/* How those who wait find out which one of them is stopped: ranks that wait for each other in a row, the first for the
 * second and so on, and agents that answer after a while, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/client/group/look.h"

#define MS 1000000ull

enum { MEMBERS_MAX = 1024, PER_NODE = 4, TIMEOUT_MS = 300, ANSWER_MS = 2, DUE_MS_MAX = 640 };

static struct waiter {
    struct look look;
    uint64_t due_at, every;
    int answers; /* about this member; -1: none is under way */
    uint64_t asked_at, answer_at;
    uint64_t found_at; /* 0: not yet */
} waiter[MEMBERS_MAX];

static bool stopped[MEMBERS_MAX], dead[MEMBERS_MAX], told[MEMBERS_MAX];
static struct look_member page[MEMBERS_MAX / PER_NODE][MEMBERS_MAX];
static int members, self;
static uint64_t now;
static bool deaf; /* agents of other nodes are told nothing by who was not asked */

static struct look_member at(const void *user, int member)
{
    (void)user;
    struct look_member m = page[self / PER_NODE][member];
    m.lives = !dead[member] && member != self;
    return m;
}

static void begin(int n)
{
    memset(waiter, 0, sizeof waiter);
    memset(stopped, 0, sizeof stopped);
    memset(dead, 0, sizeof dead);
    memset(told, 0, sizeof told);
    memset(page, 0, sizeof page);
    members = n;
    now = 1000 * MS;
    deaf = false;
    for (int i = 0; i < n; i++) {
        look_begin(&waiter[i].look);
        waiter[i].every = 20 * MS;
        waiter[i].due_at = now + 20 * MS;
        waiter[i].answers = -1;
    }
}

static void answer(struct waiter *k)
{
    int about = k->answers;
    struct look_member *m = &page[self / PER_NODE][about];
    k->answers = -1;
    m->stopped = stopped[about];
    m->answered = k->asked_at;
    for (int node = 0; stopped[about] && !told[about] && !deaf && node * PER_NODE < members; node++)
        page[node][about].stopped = true;
    told[about] = stopped[about];
}

static void turn(int i)
{
    struct waiter *k = &waiter[i];
    self = i;
    if (k->answers >= 0 && now >= k->answer_at)
        answer(k);
    bool due = now >= k->due_at;
    if (stopped[i] || dead[i] || k->found_at || (!due && now < k->look.next))
        return;
    if (due) {
        k->every = 2 * k->every < DUE_MS_MAX * MS ? 2 * k->every : DUE_MS_MAX * MS;
        k->due_at = now + k->every;
    }
    int ask = look_turn(&k->look, members, i + 1 < members ? i + 1 : -1, due, at, NULL, TIMEOUT_MS * MS, now);
    assert_true(ask != i);
    if (ask >= 0) {
        k->answers = ask;
        k->asked_at = now;
        k->answer_at = now + ANSWER_MS * MS;
    }
    if (look_found(&k->look))
        k->found_at = now;
}

static void run(unsigned ms)
{
    for (unsigned i = 0; i < ms; i++, now += MS)
        for (int k = 0; k < members; k++)
            turn(k);
}

static uint64_t last_found(int who)
{
    uint64_t last = 0;
    for (int i = 0; i < members; i++)
        if (!stopped[i] && !dead[i]) {
            assert_true(waiter[i].found_at);
            assert_int_equal(waiter[i].look.stopped, who);
            last = waiter[i].found_at > last ? waiter[i].found_at : last;
        }
    return last;
}

/* Who waits for it asks first, the others as soon as they are told: it does not depend on how many they are. */
static void test_look_all_find_who_is_stopped_at_about_the_same_time(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 8, 64, MEMBERS_MAX};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin(sizes[i]);
        stopped[sizes[i] - 1] = true;
        uint64_t from = now;
        run(1000);
        assert_in_range(last_found(sizes[i] - 1) - from, TIMEOUT_MS * MS, (TIMEOUT_MS + 200) * MS);
    }
}

/* Also where it is stopped when all have waited for long. */
static void test_look_who_is_stopped_later_is_found(void **state)
{
    (void)state;
    begin(64);
    run(20000);
    stopped[63] = true;
    uint64_t from = now;
    run(3000);
    assert_in_range(last_found(63) - from, TIMEOUT_MS * MS, (TIMEOUT_MS + 2 * DUE_MS_MAX) * MS);
}

/* What agents tell without being asked may be lost: then each finds it by itself. */
static void test_look_who_is_told_nothing_finds_it_in_turn(void **state)
{
    (void)state;
    begin(8);
    deaf = true;
    stopped[7] = true;
    run(60000);
    (void)last_found(7);
}

/* It goes on before the time is over, and is seen by the question at its end. */
static void test_look_who_goes_on_is_not_found(void **state)
{
    (void)state;
    begin(8);
    stopped[7] = true;
    run(200);
    stopped[7] = false;
    run(20000);
    for (int i = 0; i < 8; i++)
        assert_true(!waiter[i].found_at && waiter[i].look.stopped == -1);
    stopped[7] = true;
    run(5000);
    (void)last_found(7);
}

static void test_look_who_dies_is_not_found(void **state)
{
    (void)state;
    begin(8);
    stopped[7] = true;
    run(200);
    dead[7] = true;
    stopped[7] = false;
    run(20000);
    for (int i = 0; i < 7; i++)
        assert_true(!waiter[i].found_at);
    stopped[3] = true;
    run(5000);
    (void)last_found(3);
}

/* Given up by one call, it is seen as long again by the next. */
static void test_look_again_takes_as_long_again(void **state)
{
    (void)state;
    begin(3);
    stopped[2] = true;
    run(1000);
    (void)last_found(2);
    for (int i = 0; i < 2; i++) {
        look_forget(&waiter[i].look);
        waiter[i].found_at = 0;
    }
    uint64_t from = now;
    run(3000);
    assert_true(last_found(2) - from >= TIMEOUT_MS * MS);
    look_again(&waiter[0].look, now);
    waiter[0].found_at = 0;
    from = now;
    run(3000);
    assert_true(waiter[0].found_at - from >= TIMEOUT_MS * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look_all_find_who_is_stopped_at_about_the_same_time),
        cmocka_unit_test(test_look_who_is_stopped_later_is_found),
        cmocka_unit_test(test_look_who_is_told_nothing_finds_it_in_turn),
        cmocka_unit_test(test_look_who_goes_on_is_not_found),
        cmocka_unit_test(test_look_who_dies_is_not_found),
        cmocka_unit_test(test_look_again_takes_as_long_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
