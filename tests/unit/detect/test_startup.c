/* Members that are dead before anybody has heard of them: five cores in one process, whose messages arrive at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/sim/look.h"

enum { N = 5, QUEUE = 4096 };
#define MS 1000000ull

static struct fake {
    int id;
    struct member *m;
    bool dead, halted;
    bool reads[N];
} fakes[N];
static struct {
    int from, to;
    size_t len;
    uint8_t data[MEMBER_DATAGRAM_MAX];
} queue[QUEUE];
static int head, tail;
static uint64_t now;

static void on_send(void *user, int to, const void *data, size_t len)
{
    const struct fake *f = user;
    if (fakes[to].dead)
        return;
    assert_true(tail - head < QUEUE);
    queue[tail % QUEUE].from = f->id;
    queue[tail % QUEUE].to = to;
    queue[tail % QUEUE].len = len;
    memcpy(queue[tail++ % QUEUE].data, data, len);
}

static void on_read(void *user, int node)
{
    ((struct fake *)user)->reads[node] = true;
}

static void on_watch(void *user, int node, bool on)
{
    (void)user, (void)node, (void)on;
}

static void on_probe(void *user, int node)
{
    (void)user, (void)node; /* a host that is switched off says nothing */
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    (void)epoch, (void)events, (void)n;
    member_prepared(((struct fake *)user)->m, proposal, 0, now);
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    (void)user, (void)epoch, (void)events, (void)n, (void)max_value;
}

static void on_settled(void *user, uint64_t epoch)
{
    (void)user, (void)epoch;
}

static void on_halt(void *user, const char *reason)
{
    (void)reason;
    ((struct fake *)user)->halted = true;
}

static int set_up(void **state)
{
    (void)state;
    now = 1000 * MS;
    head = tail = 0;
    memset(fakes, 0, sizeof fakes);
    for (int i = 0; i < N; i++) {
        struct member_params p;
        member_params_default(&p, N, i);
        member_params_silence(&p, 250, 780);
        struct member_ops ops = {&fakes[i], on_send,    on_read, on_watch, on_probe, on_prepare,
                                 on_commit, on_settled, on_halt, NULL,     NULL};
        fakes[i].id = i;
        fakes[i].m = member_create(&p, &ops, now);
        assert_non_null(fakes[i].m);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++)
        member_destroy(fakes[i].m);
    return 0;
}

static void step(struct fake *f)
{
    for (int k = 0; k < N; k++)
        if (f->reads[k] && !fakes[k].dead) {
            f->reads[k] = false;
            member_heartbeat(f->m, k, now, now);
        }
    if (now >= member_deadline(f->m))
        member_tick(f->m, now);
}

static void pass(uint64_t ns)
{
    for (uint64_t end = now + ns; now < end; now += MS) {
        for (int i = 0; i < N; i++)
            if (!fakes[i].dead)
                step(&fakes[i]);
        for (; head < tail; head++) {
            struct fake *to = &fakes[queue[head % QUEUE].to];
            if (!to->dead)
                member_receive(to->m, queue[head % QUEUE].from, queue[head % QUEUE].data, queue[head % QUEUE].len, now);
        }
    }
}

static void kill_certainly(int node)
{
    fakes[node].dead = true;
    for (int i = 0; i < N; i++)
        if (!fakes[i].dead)
            member_refused(fakes[i].m, node, now);
}

/* Nobody is called silent who may just not have been started yet. Until then no view can be made, for the coordinator
 * is missing, and that is no reason to end. */
static void test_startup_coordinator_never_heard_of_is_waited_for(void **state)
{
    (void)state;
    fakes[0].dead = true;
    pass(50 * MS);
    kill_certainly(3);
    pass(6000 * MS);
    for (int i = 0; i < N; i++) {
        if (fakes[i].dead)
            continue;
        assert_false(fakes[i].halted);
        assert_false(look_alive(fakes[i].m, 0));
        assert_false(look_alive(fakes[i].m, 3));
        assert_int_equal(look_settled(fakes[i].m), look_epoch(fakes[i].m));
    }
}

/* The same when it is another that was never heard of, which the coordinator waits for. */
static void test_startup_member_never_heard_of_is_declared_after_all(void **state)
{
    (void)state;
    fakes[4].dead = true;
    pass(50 * MS);
    kill_certainly(0);
    pass(6000 * MS);
    for (int i = 1; i < 4; i++) {
        assert_false(fakes[i].halted);
        assert_false(look_alive(fakes[i].m, 0));
        assert_false(look_alive(fakes[i].m, 4));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_startup_coordinator_never_heard_of_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_startup_member_never_heard_of_is_declared_after_all, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
