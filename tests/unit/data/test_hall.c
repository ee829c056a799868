/* Ranks of one node and their messages through the hall: in order and whole, with and without room; who is not reached
 * through it; what a rank that writes nonsense into it does. Nobody's agent does anything here. Rings alone:
 * test_shm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "memory.h"
#include "runtime/client/client.h"
#include "runtime/client/progress.h"
#include "runtime/client/stream/mail.h"
#include "tests/lib/net/mem.h"

enum { RANKS = 4, HERE = 3, MAX = 65536 }; /* the last one is on another node */

static struct rank {
    struct client c;
    struct intent_page intents;
    struct tp *net, *shm;
} rank[RANKS];

static struct page *page;
static void *memory;
static uint64_t now_ns;

static uint64_t e_now(void *user)
{
    (void)user;
    return now_ns += 1000;
}

static void e_yield(void *user)
{
    (void)user;
}

static bool e_tell(void *user, const struct control *r)
{
    (void)user;
    (void)r;
    return true;
}

static bool e_gone(void *user)
{
    (void)user;
    return false;
}

static void turn(void)
{
    for (int r = 0; r < HERE; r++)
        if (pthread_mutex_trylock(&rank[r].c.lock) == 0) {
            client_progress(&rank[r].c);
            pthread_mutex_unlock(&rank[r].c.lock);
        }
}

/* Who waits sleeps, and the others go on. */
static void e_sleep(void *user, int ms)
{
    (void)user;
    now_ns += (uint64_t)ms * KEEL_NS_PER_MS;
    turn();
}

static const struct client_env env = {
    .now = e_now, .sleep = e_sleep, .yield = e_yield, .tell = e_tell, .agent_is_gone = e_gone};

static void start(int r)
{
    struct rank *k = &rank[r];
    struct tp_config config = {.host = "rank"};
    struct control_welcome welcome = {.rank = r, .size = RANKS, .node = r / HERE, .job = 1};
    assert_int_equal(tp_mem.open(&config, &k->net), KEEL_OK);
    assert_int_equal(tp_mem.open(&config, &k->shm), KEEL_OK);
    assert_int_equal(client_init(&k->c, &env, &welcome, page, &k->intents, k->net, k->shm), KEEL_OK);
    k->c.env.user = k;
    hall_attach(&k->c, r < HERE ? memory : NULL);
    k->c.ready = true;
}

static int set_up(void **state)
{
    (void)state;
    memset(rank, 0, sizeof rank);
    page = calloc(1, page_bytes(2, RANKS, 2));
    *page = (struct page){.magic = PAGE_MAGIC, .nodes = 2, .members = 2, .ranks = RANKS};
    for (int n = 0; n < 2; n++)
        page_node(page, n)->alive = 1;
    for (int r = 0; r < RANKS; r++) {
        page_rank(page, r)->where = (uint64_t)(r / HERE) << 32;
        page_rank(page, r)->slot = (uint32_t)(r / HERE);
        page_rank(page, r)->life = 1;
    }
    size_t bytes = hall_bytes(page, 0);
    assert_true(bytes > 0 && hall_bytes(page, 1) == 0); /* one rank alone has none */
    memory = aligned_alloc(128, (bytes + 127) / 128 * 128);
    memset(memory, 0, bytes);
    for (int r = 0; r < RANKS; r++)
        start(r);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++) {
        rank[r].net->table->close(rank[r].net);
        rank[r].shm->table->close(rank[r].shm);
        client_fini(&rank[r].c);
    }
    free(memory);
    free(page);
    return 0;
}

static void send_number(int from, int to, int number, size_t len)
{
    static uint8_t data[MAX];
    memset(data, number, len);
    assert_int_equal(mail_send(&rank[from].c, to, 7, data, len), KEEL_OK);
}

static void expect_number(int to, int from, int number, size_t len)
{
    static uint8_t data[MAX];
    size_t have;
    assert_int_equal(mail_receive(&rank[to].c, from, 7, data, sizeof data, &have, NULL), KEEL_OK);
    assert_int_equal(have, len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(data[i], (uint8_t)number);
}

/* ---- tests ---- */

static void test_hall_messages_of_all_lengths_come_whole_and_in_order(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 8, 100, 4096, COURIER_PIECE - 1, COURIER_PIECE, COURIER_PIECE + 1, MAX};
    enum { LENS = sizeof lens / sizeof *lens };
    for (int k = 0; k < LENS; k++)
        for (int from = 0; from < HERE; from++)
            for (int to = 0; to < HERE; to++)
                if (from != to)
                    send_number(from, to, k * HERE + from, lens[k]);
    for (int k = 0; k < LENS; k++)
        for (int from = 0; from < HERE; from++)
            for (int to = 0; to < HERE; to++)
                if (from != to)
                    expect_number(to, from, k * HERE + from, lens[k]);
}

/* More than a ring holds, while the receiver does not look: nothing is lost, and nothing overtakes. */
static void test_hall_without_room_goes_on_when_the_receiver_looks(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < 15; k++)
            send_number(0, 1, k, MAX);
        assert_true(rank[0].c.hall.blocked);
        for (int k = 0; k < 15; k++)
            expect_number(1, 0, k, MAX);
        turn();
        assert_false(rank[0].c.hall.blocked);
    }
}

static void test_hall_reaches_first_lives_on_the_same_node_only(void **state)
{
    (void)state;
    assert_int_equal(hall_place(&rank[0].c, 1), 1);
    assert_int_equal(hall_place(&rank[2].c, 0), 0);
    assert_int_equal(hall_place(&rank[0].c, 0), -1);    /* itself */
    assert_int_equal(hall_place(&rank[0].c, HERE), -1); /* on another node */
    assert_int_equal(hall_place(&rank[HERE].c, 0), -1); /* from there */
    rank[0].c.coll.life[1].life = 2;                    /* somebody else has its place */
    rank[0].c.coll.life[2].life = 0;                    /* dead */
    assert_int_equal(hall_place(&rank[0].c, 1), -1);
    assert_int_equal(hall_place(&rank[0].c, 2), -1);
    struct client *second = calloc(1, sizeof *second);
    second->page = page;
    second->size = RANKS;
    second->incarnation = 1; /* a ring that somebody died over is not used again */
    hall_attach(second, memory);
    assert_int_equal(second->hall.n, 0);
    assert_null(hall_board(second, 0, 1));
    free(second);
}

static void test_hall_who_sleeps_is_woken_and_who_has_something_does_not_sleep(void **state)
{
    (void)state;
    assert_true(hall_sleep(&rank[1].c));
    assert_false(hall_has(&rank[1].c));
    send_number(0, 1, 1, 8);
    assert_true(hall_has(&rank[1].c));
    hall_awake(&rank[1].c);
    assert_false(hall_sleep(&rank[1].c));
    hall_awake(&rank[1].c);
    expect_number(1, 0, 1, 8);
}

/* A rank is a user's process, and may write anywhere: calls of those whom it reaches end with an error. */
static void test_hall_nonsense_ends_collectives(void **state)
{
    (void)state;
    static const uint64_t words[] = {0x7fffffffffffffff, 3, 0x1000000000000000 | TP_MSG_MAX};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        send_number(0, 1, 1, 8);
        struct ring *ring = rank[1].c.hall.from[0].ring;
        uint64_t *at = (uint64_t *)(ring->bytes + rank[1].c.hall.from[0].tail % RING_BYTES), word = words[k];
        if (k == 2) /* a message, longer than any */
            word = (*at & ~0xffffffffull) | (TP_MSG_MAX + 8);
        *at = word;
        hall_poll(&rank[1].c, now_ns);
        assert_int_equal(rank[1].c.coll.broken, KEEL_ERR_SYSTEM);
        assert_int_equal(rank[2].c.coll.broken, KEEL_OK);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_hall_boards_are_apart(void **state)
{
    (void)state;
    size_t size = board_size(HERE);
    uint8_t *first = hall_board(&rank[0].c, 0, 0), *end = (uint8_t *)memory + hall_bytes(page, 0);
    assert_ptr_equal(hall_board(&rank[1].c, 0, 0), first);
    assert_true(first >= (uint8_t *)memory + (size_t)HERE * HERE * sizeof(struct ring));
    for (int which = 1; which < HALL_BOARDS_KEPT; which++)
        assert_ptr_equal(hall_board(&rank[0].c, which, 99), first + (size_t)which * size);
    for (uint64_t group = 0; group < 100; group++) {
        uint8_t *board = hall_board(&rank[2].c, -1, group);
        assert_true(board >= first + HALL_BOARDS_KEPT * size && board + size <= end);
    }
    assert_null(hall_board(&rank[HERE].c, 0, 0));
}

/* ---- without memory ---- */

static void end_life(int r)
{
    uint64_t n = page->changes;
    page->change[n] = (struct page_change){.epoch = 5, .life = 0, .rank = (uint32_t)r};
    page_rank(page, r)->life = 0;
    atomic_store(&page->changes, n + 1);
    atomic_store(&page->epoch, 5);
}

static void agree_without(int dead)
{
    struct keel_request *request[RANKS] = {NULL};
    for (int r = 0; r < dead; r++) {
        struct engine_call call = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX, .value = (uint64_t)r + 1};
        assert_int_equal(coll_call(rank[r].c.coll.world, &call, NULL, &request[r]), KEEL_OK);
    }
    for (int r = 0; r < dead; r++) {
        uint64_t value = 0;
        assert_int_equal(coll_wait(request[r], NULL, &value), KEEL_OK);
        assert_int_equal(value, dead);
    }
}

/* The n-th allocation fails while a process looks at a view, for each n: it takes the view later, and its
 * collectives go on. */
static void test_hall_a_view_that_there_is_no_memory_for_is_taken_later(void **state)
{
    bool failed = true;
    for (int n = 1; failed; n++) {
        end_life(RANKS - 1);
        memory_fail_at(n);
        coll_see_views(&rank[0].c, e_now(NULL));
        failed = memory_failed();
        agree_without(RANKS - 1);
        assert_false(rank[0].c.coll.view_missed);
        assert_int_equal(rank[0].c.coll.broken, KEEL_OK);
        tear_down(state);
        set_up(state);
        assert_true(n > 3 || failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hall_messages_of_all_lengths_come_whole_and_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hall_without_room_goes_on_when_the_receiver_looks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hall_reaches_first_lives_on_the_same_node_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hall_who_sleeps_is_woken_and_who_has_something_does_not_sleep, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_hall_nonsense_ends_collectives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hall_boards_are_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hall_a_view_that_there_is_no_memory_for_is_taken_later, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("hall", tests, NULL, NULL);
}
