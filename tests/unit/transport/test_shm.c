/* The rings between a rank and its agent. In one process the two sides are two tps; where they have to run at the same
 * time, two threads or a child process. */
#include "runtime/net/shm/shm.h"
#include "tests/unit/transport/tp_peer.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/base/rng.h"
#include "runtime/net/shm/ring.h"

struct pair {
    struct world world;
    struct peer agent, rank;
    struct tp_ep *agent_ep, *rank_ep;
    int rings_fd;
};

static void peer_init(struct world *world, struct peer *peer)
{
    *peer = (struct peer){.batch = 16};
    peer->last = &peer->first;
    assert_int_equal(tp_shm_open(&peer->tp), KEEL_OK);
    peer->table = peer->tp->table;
    world->peers[world->count++] = peer;
}

static void pair_open(struct pair *p)
{
    int fds[TP_SHM_FDS];
    *p = (struct pair){0};
    peer_init(&p->world, &p->agent);
    peer_init(&p->world, &p->rank);
    assert_int_equal(tp_shm_create(p->agent.tp, p, fds, &p->agent_ep), KEEL_OK);
    assert_int_equal(tp_shm_attach(p->rank.tp, fds, p, &p->rank_ep), KEEL_OK);
    p->rings_fd = fds[0];
    close(fds[1]);
    close(fds[2]);
}

static void pair_close(struct pair *p)
{
    peer_close(&p->world, &p->agent);
    peer_close(&p->world, &p->rank);
    close(p->rings_fd);
}

static void expect_message(struct pair *p, struct peer *at, struct tp_ep *ep, size_t len, uint64_t seed)
{
    struct peer_record *record = world_await(&p->world, at, TP_RECV, ep);
    assert_int_equal(record->event.len, len);
    assert_true(is_pattern(record->event.data, len, seed));
    record_free(record);
}

static void test_shm_messages_of_all_sizes_arrive_in_both_directions(void **state)
{
    (void)state;
    struct pair p;
    static uint8_t bytes[TP_SHM_MAX];
    pair_open(&p);
    for (size_t len = 0; len <= TP_SHM_MAX; len = len < 70 ? len + 1
                                                  : len < TP_SHM_MAX
                                                      ? (len * 3 / 2 > TP_SHM_MAX ? TP_SHM_MAX : len * 3 / 2)
                                                      : len + 1) {
        fill_pattern(bytes, len, len);
        assert_int_equal(tp_send(p.rank_ep, bytes, len / 2, bytes + len / 2, len - len / 2, NULL), KEEL_OK);
        assert_int_equal(tp_send(p.agent_ep, bytes, len, NULL, 0, NULL), KEEL_OK);
        expect_message(&p, &p.agent, p.agent_ep, len, len);
        expect_message(&p, &p.rank, p.rank_ep, len, len);
    }
    assert_int_equal(tp_send(p.rank_ep, bytes, TP_SHM_MAX, "x", 1, NULL), KEEL_ERR_ARG);
    pair_close(&p);
}

static void test_shm_full_ring_is_absorbed_in_order(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct pair p;
    static uint8_t bytes[TP_MSG_MAX];
    pair_open(&p);
    for (uint64_t i = 0; i < COUNT; i++) {
        fill_pattern(bytes, i * 37 % 9000, i);
        assert_int_equal(tp_send(p.rank_ep, bytes, i * 37 % 9000, NULL, 0, NULL), KEEL_OK);
    }
    for (uint64_t i = 0; i < COUNT; i++)
        expect_message(&p, &p.agent, p.agent_ep, i * 37 % 9000, i);
    pair_close(&p);
}

static void test_shm_queue_past_its_bound_ends_the_connection(void **state)
{
    (void)state;
    struct pair p;
    static uint8_t bytes[TP_MSG_MAX];
    int sent = 0;
    pair_open(&p);
    keel_status status;
    while ((status = tp_send(p.agent_ep, bytes, sizeof(bytes), NULL, 0, NULL)) == KEEL_OK)
        sent++;
    assert_int_equal(status, KEEL_ERR_LINK);
    assert_in_range((size_t)sent * sizeof(bytes), 60u << 20, 70u << 20);
    assert_int_equal(world_await_status(&p.world, &p.agent, TP_CLOSED, p.agent_ep), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&p.world, &p.rank, TP_CLOSED, p.rank_ep), KEEL_ERR_LINK); /* it is told, too */
    pair_close(&p);
}

static void test_shm_send_with_op_reports_it_once(void **state)
{
    (void)state;
    struct pair p;
    struct tp_op op[2] = {{.user = &p}, {.user = &p}};
    pair_open(&p);
    assert_int_equal(tp_send(p.rank_ep, "ab", 2, NULL, 0, &op[0]), KEEL_OK);
    assert_int_equal(tp_send(p.rank_ep, "cd", 2, NULL, 0, &op[1]), KEEL_OK);
    for (int i = 0; i < 2; i++) {
        struct peer_record *record = world_await(&p.world, &p.rank, TP_DONE, p.rank_ep);
        assert_ptr_equal(record->event.op, &op[i]);
        assert_ptr_equal(op[i].user, &p);
        record_free(record);
    }
    tp_disconnect(p.rank_ep);
    assert_int_equal(world_await_status(&p.world, &p.rank, TP_CLOSED, p.rank_ep), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&p.world, &p.agent, TP_CLOSED, p.agent_ep),
                     KEEL_ERR_LINK); /* it is told, too */
    world_expect_none(&p.world, &p.rank, TP_DONE, 1);
    pair_close(&p);
}

static void test_shm_one_busy_rank_does_not_starve_another(void **state)
{
    (void)state;
    enum { FLOOD = 5000 };
    struct pair p;
    struct peer second;
    struct tp_ep *second_agent_ep, *second_ep;
    int fds[TP_SHM_FDS];
    static uint8_t bytes[TP_SHM_MAX];
    pair_open(&p);
    peer_init(&p.world, &second);
    assert_int_equal(tp_shm_create(p.agent.tp, NULL, fds, &second_agent_ep), KEEL_OK);
    assert_int_equal(tp_shm_attach(second.tp, fds, NULL, &second_ep), KEEL_OK);
    for (int i = 0; i < TP_SHM_FDS; i++)
        close(fds[i]);
    p.agent.batch = 4;
    for (int i = 0; i < 12; i++) /* more than one poll can carry, all the time */
        assert_int_equal(tp_send(p.rank_ep, bytes, sizeof(bytes), NULL, 0, NULL), KEEL_OK);
    assert_int_equal(tp_send(second_ep, "me", 2, NULL, 0, NULL), KEEL_OK);
    bool heard = false;
    for (int i = 0; i < 4 && !heard; i++) {
        peer_step(&p.agent);
        for (struct peer_record *r = p.agent.first; r; r = r->next)
            heard |= r->event.ep == second_agent_ep;
        tp_send(p.rank_ep, bytes, sizeof(bytes), NULL, 0, NULL);
    }
    assert_true(heard);
    peer_close(&p.world, &second);
    pair_close(&p);
}

/* ---- a rank that has gone mad ---- */

static void test_shm_random_garbage_in_the_rings_never_crashes(void **state)
{
    (void)state;
    const char *text = getenv("KEEL_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 99;
    struct rng rng;
    int closed = 0;
    print_message("seed %llu (KEEL_TEST_SEED)\n", (unsigned long long)seed);
    rng_seed(&rng, seed);
    for (int round = 0; round < 300; round++) {
        struct pair p;
        pair_open(&p);
        struct stat info;
        assert_int_equal(fstat(p.rings_fd, &info), 0);
        uint8_t *map = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, p.rings_fd, 0);
        assert_true(map != MAP_FAILED);
        for (int step = 0; step < 40; step++) {
            uint8_t bytes[300];
            fill_pattern(bytes, sizeof(bytes), (uint64_t)step);
            if (rng_below(&rng, 4)) {
                (void)tp_send(p.rank_ep, bytes, rng_below(&rng, sizeof(bytes)), NULL, 0, NULL);
                (void)tp_send(p.agent_ep, bytes, rng_below(&rng, sizeof(bytes)), NULL, 0, NULL);
            } else { /* mostly near the start, where the words of the protocol are */
                size_t range = rng_below(&rng, 3) ? 1500 : (size_t)info.st_size;
                size_t at = rng_below(&rng, range - 8) & ~7ull;
                uint64_t word =
                    rng_below(&rng, 2) ? rng_u64(&rng) : (1 + rng_below(&rng, 3)) << 32 | rng_below(&rng, 40000);
                memcpy(map + at, &word, 8);
            }
            peer_step(&p.agent);
        }
        for (struct peer_record *r = p.agent.first; r; r = r->next) {
            assert_true(r->event.type == TP_RECV || r->event.type == TP_CLOSED);
            closed += r->event.type == TP_CLOSED;
        }
        munmap(map, (size_t)info.st_size);
        pair_close(&p);
    }
    assert_true(closed > 0); /* some of it was noticed */
}

static void test_shm_rings_cannot_be_shrunk(void **state)
{
    (void)state;
    struct pair p;
    pair_open(&p);
    assert_int_equal(ftruncate(p.rings_fd, 0), -1);
    pair_close(&p);
}

static void test_shm_attach_to_something_else_is_refused(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer rank;
    struct tp_ep *ep;
    int fd = memfd_create("not-rings", MFD_CLOEXEC);
    int fds[TP_SHM_FDS] = {fd, fd, fd};
    peer_init(&world, &rank);
    assert_int_equal(tp_shm_attach(rank.tp, fds, NULL, &ep), KEEL_ERR_ARG);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(tp_shm_attach(rank.tp, fds, NULL, &ep), KEEL_ERR_ARG);
    close(fd);
    peer_close(&world, &rank);
}

/* ---- sleeping and waking, for real ---- */

enum { WAKE_ROUNDS = 30000 };

struct sleeper {
    struct tp *tp;
    struct tp_ep *ep;
    bool starts;
    uint64_t seed;
    int rounds, stuck;
};

static void sleep_until_work(struct sleeper *s)
{
    if (!s->tp->table->arm(s->tp))
        return;
    struct pollfd fd = {.fd = s->tp->table->wait_fd(s->tp), .events = POLLIN};
    if (poll(&fd, 1, 20000) == 0)
        s->stuck = 1;
}

/* Answers every message, sleeping as soon as there is nothing, sometimes after spinning a little. */
static void *play(void *arg)
{
    struct sleeper *s = arg;
    struct tp_event events[4];
    struct rng rng;
    uint32_t count = 0;
    rng_seed(&rng, s->seed);
    if (s->starts)
        (void)tp_send(s->ep, &count, sizeof(count), NULL, 0, NULL);
    while (s->rounds < WAKE_ROUNDS && !s->stuck) {
        int n = tp_poll(s->tp, events, 4);
        for (int i = 0; i < n; i++) {
            s->rounds++;
            if (tp_send(s->ep, events[i].data, events[i].len, NULL, 0, NULL) != KEEL_OK)
                s->stuck = 1;
        }
        if (n == 0 && rng_below(&rng, 3) == 0)
            sleep_until_work(s);
    }
    return NULL;
}

static void test_shm_sleeping_sides_never_miss_a_message(void **state)
{
    (void)state;
    struct pair p;
    pthread_t thread;
    pair_open(&p);
    struct sleeper agent = {.tp = p.agent.tp, .ep = p.agent_ep, .starts = true, .seed = 1};
    struct sleeper rank = {.tp = p.rank.tp, .ep = p.rank_ep, .seed = 2};
    assert_int_equal(pthread_create(&thread, NULL, play, &rank), 0);
    play(&agent);
    pthread_join(thread, NULL);
    assert_false(agent.stuck);
    assert_false(rank.stuck);
    pair_close(&p);
}

struct stream {
    struct tp *tp;
    struct tp_ep *ep;
    int failed;
};

enum { STREAM_COUNT = 12000 }; /* 53 MB: below the bound of the queue */

static size_t stream_len(uint64_t i)
{
    return i % 110 == 0 ? TP_SHM_MAX : i % 11 == 0 ? TP_MSG_MAX : 8 + i * 131 % 4000;
}

/* Sends far faster than the other side reads, and sleeps while its queue waits for room. */
static void *pour(void *arg)
{
    struct stream *s = arg;
    struct tp_event event;
    struct sleeper sleeper = {.tp = s->tp, .ep = s->ep};
    static uint8_t bytes[TP_SHM_MAX];
    for (uint64_t i = 0; i < STREAM_COUNT && !s->failed; i++) {
        memcpy(bytes, &i, sizeof(i));
        fill_pattern(bytes + 8, stream_len(i) - 8, i);
        s->failed |= tp_send(s->ep, bytes, stream_len(i), NULL, 0, NULL) != KEEL_OK;
        if (i % 300 == 299) /* no sleep here: with an empty queue nobody would wake us */
            (void)tp_poll(s->tp, &event, 1);
    }
    tp_send(s->ep, "end", 3, NULL, 0, NULL);
    while (!s->failed && !sleeper.stuck) { /* until the other side says it has all */
        if (tp_poll(s->tp, &event, 1) == 1)
            break;
        sleep_until_work(&sleeper);
    }
    s->failed |= sleeper.stuck;
    return NULL;
}

static void test_shm_sleeping_producer_is_woken_when_there_is_room(void **state)
{
    (void)state;
    struct pair p;
    pthread_t thread;
    pair_open(&p);
    struct stream stream = {.tp = p.rank.tp, .ep = p.rank_ep};
    assert_int_equal(pthread_create(&thread, NULL, pour, &stream), 0);
    struct sleeper sleeper = {.tp = p.agent.tp, .ep = p.agent_ep};
    bool ended = false;
    for (uint64_t i = 0; !ended && !sleeper.stuck;) {
        struct tp_event events[3];
        int n = tp_poll(p.agent.tp, events, 3);
        for (int k = 0; k < n; k++) {
            ended = events[k].len == 3;
            if (ended)
                break;
            assert_int_equal(events[k].len, stream_len(i));
            assert_memory_equal(events[k].data, &i, sizeof(i));
            assert_true(is_pattern((const uint8_t *)events[k].data + 8, events[k].len - 8, i));
            i++;
        }
        if (n == 0)
            sleep_until_work(&sleeper);
    }
    assert_true(ended);
    assert_int_equal(tp_send(p.agent_ep, "ok", 2, NULL, 0, NULL), KEEL_OK);
    pthread_join(thread, NULL);
    assert_false(stream.failed);
    pair_close(&p);
}

/* ---- the other side is a process that is killed or frozen ---- */

static pid_t start_flooding_rank(const int fds[TP_SHM_FDS])
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct tp *tp;
    struct tp_ep *ep;
    struct tp_event event;
    static uint8_t bytes[5000];
    if (tp_shm_open(&tp) != KEEL_OK || tp_shm_attach(tp, fds, NULL, &ep) != KEEL_OK)
        _exit(3);
    for (uint64_t i = 0;; i++) {
        fill_pattern(bytes, sizeof(bytes), i);
        if (tp_send(ep, &i, sizeof(i), bytes, i % sizeof(bytes), NULL) != KEEL_OK)
            pause();
        (void)tp_poll(tp, &event, 1);
        for (int spin = 0; i % 64 == 0 && spin < 1000; spin++)
            (void)tp_poll(tp, &event, 1);
    }
}

static void test_shm_rank_killed_or_frozen_anywhere_leaves_whole_messages(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        struct world world = {0};
        struct peer agent;
        struct tp_ep *ep;
        int fds[TP_SHM_FDS];
        peer_init(&world, &agent);
        assert_int_equal(tp_shm_create(agent.tp, NULL, fds, &ep), KEEL_OK);
        pid_t pid = start_flooding_rank(fds);
        assert_true(pid > 0);
        uint64_t next = 0, stop = 100 + (uint64_t)round * 23;
        int quiet = 0;
        bool stopped = false;
        while (quiet < 1000) {
            struct tp_event events[8];
            int n = tp_poll(agent.tp, events, 8);
            for (int i = 0; i < n; i++, next++) {
                assert_int_equal(events[i].type, TP_RECV);
                assert_int_equal(events[i].len, 8 + next % 5000);
                assert_memory_equal(events[i].data, &next, 8);
                assert_true(is_pattern((const uint8_t *)events[i].data + 8, events[i].len - 8, next));
            }
            quiet = stopped && n == 0 ? quiet + 1 : 0;
            if (!stopped && next >= stop) {
                kill(pid, round % 2 ? SIGSTOP : SIGKILL);
                waitpid(pid, NULL, round % 2 ? WUNTRACED : 0);
                stopped = true;
            }
        }
        for (int i = 0; i < 200; i++) /* the dead do not read: sending to them neither blocks nor fails */
            assert_int_equal(tp_send(ep, &next, sizeof(next), NULL, 0, NULL), KEEL_OK);
        if (round % 2) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
        for (int i = 0; i < TP_SHM_FDS; i++)
            close(fds[i]);
        peer_close(&world, &agent);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shm_messages_of_all_sizes_arrive_in_both_directions),
        cmocka_unit_test(test_shm_full_ring_is_absorbed_in_order),
        cmocka_unit_test(test_shm_queue_past_its_bound_ends_the_connection),
        cmocka_unit_test(test_shm_send_with_op_reports_it_once),
        cmocka_unit_test(test_shm_one_busy_rank_does_not_starve_another),
        cmocka_unit_test(test_shm_random_garbage_in_the_rings_never_crashes),
        cmocka_unit_test(test_shm_rings_cannot_be_shrunk),
        cmocka_unit_test(test_shm_attach_to_something_else_is_refused),
        cmocka_unit_test(test_shm_sleeping_sides_never_miss_a_message),
        cmocka_unit_test(test_shm_sleeping_producer_is_woken_when_there_is_room),
        cmocka_unit_test(test_shm_rank_killed_or_frozen_anywhere_leaves_whole_messages),
    };
    return cmocka_run_group_tests_name("shm", tests, NULL, NULL);
}
