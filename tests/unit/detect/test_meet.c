/* Helper threads of two members, and of nodes that join them: real datagrams and heartbeats on this machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "detect/helper.h"
#include "runtime/base/clock.h"

enum { MEMBERS = 2, IDS = 4 };

struct node {
    struct helper *h;
    struct helper_blob blob;
    atomic_uint born; /* bit i: node i is, in its view */
    _Atomic(uint64_t) epoch;
    _Atomic(const char *) ended;
};

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct node *s = user;
    (void)epoch, (void)events, (void)n;
    helper_prepared(s->h, proposal, 0);
}
static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct node *s = user;
    (void)max_value;
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_BORN)
            s->born |= 1u << events[i].a;
    s->epoch = epoch;
}
static void on_settled(void *user, uint64_t epoch)
{
    (void)user, (void)epoch;
}
static void on_halt(void *user, const char *reason)
{
    ((struct node *)user)->ended = reason;
}

static void make(struct node *s, int id, uint32_t incarnation)
{
    static const uint8_t secret[32] = {1};
    struct helper_config config = {.job_id = 7,
                                   .host = "127.0.0.1",
                                   .provider = "tcp",
                                   .probe = PROBE_OFI,
                                   .secret = secret,
                                   .incarnation = incarnation};
    struct helper_callbacks callbacks = {s, on_prepare, on_commit, on_settled, on_halt, NULL};
    member_params_default(&config.params, IDS, id);
    config.params.n_born = MEMBERS;
    config.params.incarnation = incarnation;
    config.params.limit_ns = 500 * KEEL_NS_PER_MS;
    memset(s, 0, sizeof *s);
    assert_int_equal(helper_create(&config, &callbacks, &s->h, &s->blob), KEEL_OK);
}

static void start(struct node *s, const struct helper_blob *blobs)
{
    int bad = -1;
    assert_int_equal(helper_start(s->h, blobs, &bad), KEEL_OK);
    assert_int_equal(bad, -1);
}

static bool within(const atomic_uint *what, unsigned wanted)
{
    for (uint64_t end = clock_now_ns() + 20 * KEEL_NS_PER_S; *what != wanted && clock_now_ns() < end;)
        nanosleep(&(struct timespec){.tv_nsec = KEEL_NS_PER_MS}, NULL);
    return *what == wanted;
}

/* Two are told of under the next id, and both begin: one is born, by all views the same, and the other one ends.
 * Then one more joins. */
static void test_who_is_known_to_all_is_born_and_no_other(void **state)
{
    (void)state;
    static struct node member[MEMBERS], joins[2], later;
    struct helper_blob blobs[IDS] = {0};
    for (int i = 0; i < MEMBERS; i++) {
        make(&member[i], i, 10 + (uint32_t)i);
        blobs[i] = member[i].blob;
    }
    for (int i = 0; i < MEMBERS; i++)
        start(&member[i], blobs);
    for (int k = 0; k < 2; k++) {
        make(&joins[k], MEMBERS, 20 + (uint32_t)k);
        for (int i = 0; i < MEMBERS; i++)
            assert_int_equal(helper_meet(member[i].h, MEMBERS, &joins[k].blob), KEEL_OK);
    }
    for (int k = 0; k < 2; k++)
        start(&joins[k], blobs);
    for (int i = 0; i < MEMBERS; i++)
        assert_true(within(&member[i].born, 1u << MEMBERS));
    for (uint64_t end = clock_now_ns() + 20 * KEEL_NS_PER_S; clock_now_ns() < end;)
        if ((joins[0].born && joins[1].ended) || (joins[1].born && joins[0].ended))
            break;
        else
            nanosleep(&(struct timespec){.tv_nsec = KEEL_NS_PER_MS}, NULL);
    struct node *one = joins[0].born ? &joins[0] : &joins[1], *other = joins[0].born ? &joins[1] : &joins[0];
    assert_int_equal(one->born, 1u << MEMBERS);
    assert_null(one->ended);
    assert_int_equal(other->born, 0);
    assert_non_null(other->ended);
    blobs[MEMBERS] = one->blob;
    make(&later, MEMBERS + 1, 30);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(helper_meet(member[i].h, MEMBERS + 1, &later.blob), KEEL_OK);
    assert_int_equal(helper_meet(one->h, MEMBERS + 1, &later.blob), KEEL_OK);
    start(&later, blobs);
    const unsigned all = 3u << MEMBERS;
    for (int i = 0; i < MEMBERS; i++)
        assert_true(within(&member[i].born, all));
    assert_true(within(&one->born, all));
    assert_true(within(&later.born, all));
    for (int i = 0; i < MEMBERS; i++)
        assert_null(member[i].ended);
    helper_destroy(later.h);
    helper_destroy(other->h);
    helper_destroy(one->h);
    for (int i = 0; i < MEMBERS; i++)
        helper_destroy(member[i].h);
}

static void test_what_is_no_blob_is_not_taken(void **state)
{
    (void)state;
    static struct node s;
    make(&s, 0, 1);
    struct helper_blob bad = s.blob;
    bad.len--;
    assert_int_equal(helper_meet(s.h, MEMBERS, &bad), KEEL_ERR_ARG);
    for (bad.len = 0; bad.len <= HELPER_BLOB_MAX + 1; bad.len++)
        assert_int_equal(helper_meet(s.h, MEMBERS, &bad), bad.len == s.blob.len ? KEEL_OK : KEEL_ERR_ARG);
    assert_int_equal(helper_meet(s.h, IDS, &s.blob), KEEL_ERR_ARG);
    assert_int_equal(helper_meet(s.h, -1, &s.blob), KEEL_ERR_ARG);
    assert_int_equal(helper_meet(s.h, MEMBERS, &s.blob), KEEL_OK); /* and nobody takes it from the queue */
    helper_destroy(s.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_known_to_all_is_born_and_no_other),
        cmocka_unit_test(test_what_is_no_blob_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
