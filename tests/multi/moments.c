/* moments [list]: every public call of Keel's at the wrong moment: before keel_init, in the child of a fork and after
 * keel_finalize, there with everything that the program had before; and what was given back once more. The children
 * are made while another thread is inside the library. list: prints the names of the calls that are tried, one a
 * line, and does nothing else. Exit 0 if all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../lib/expect.h"

/* What a program may have at hand; before keel_init, nothing. */
static keel_segment *segment;
static keel_handle handle, aggregate, fresh, handles[2];
static keel_mutexes *mutexes;
static uint64_t version;
static keel_taskpool *pool;
static keel_group *world, *group, *made;
static keel_request *request, *begun;
static keel_covered *covered;

static double in[8], out[8];
static int64_t word, old;
static size_t lens[2] = {8, 8}, at[2] = {0, 8}, ones[2] = {1, 1}, n, which;
static int ranks[4] = {0, 1}, count, from, nodes[KEEL_COPIES_MAX];
static uint64_t value;
static const keel_grid grid = {.dims = 2, .size = {3, 2, 1, 1, 1, 1}, .block = {3, 1, 1, 1, 1, 1}};
static keel_grid grid_made;
static const keel_strided shape = {.levels = 1, .count = {8, 2}, .global_stride = {16}, .local_stride = {16}};
static const keel_combine sum = {.type = KEEL_DOUBLE, .op = KEEL_SUM};
static keel_piece pieces[2];
static keel_verdict verdict;
static keel_failure failures[8];
static keel_link links[8];
static void *address;
static keel_segment *found;
static keel_segment_part part;

struct tried {
    const char *name;
    long got, wanted;
};

#define TRY(WANTED, NAME, ...)                                                                                         \
    {                                                                                                                  \
#NAME, (long)NAME(__VA_ARGS__), (long)(WANTED)                                                                 \
    }
#define STATE(NAME, ...) TRY(KEEL_ERR_STATE, NAME, __VA_ARGS__)

static int look(const char *when, const struct tried *tried, size_t tries, bool list)
{
    int wrong = 0;
    for (size_t i = 0; i < tries; i++) {
        if (list)
            puts(tried[i].name);
        else if (tried[i].got != tried[i].wanted && ++wrong)
            fprintf(stderr, "%s %s: %s gave %ld, not %ld\n", "moments: ", when, tried[i].name, tried[i].got,
                    tried[i].wanted);
    }
    return wrong;
}

static int nodes_of_job;

static int callback_calls;
static void callback(const keel_failure *failure, void *arg)
{
    (void)failure;
    (void)arg;
    callback_calls++;
}

static int gather(void *user, const void *mine, size_t len, void *all)
{
    (void)user;
    memcpy(all, mine, len);
    return 0;
}

static int operations(const char *when, bool list)
{
    const struct tried tried[] = {
        STATE(keel_put, segment, 0, 0, in, 8),
        STATE(keel_get, segment, 0, 0, out, 8),
        STATE(keel_get_strong, segment, 0, 0, out, 8),
        STATE(keel_put_nb, segment, 0, 0, in, 8, &fresh),
        STATE(keel_put_nb, segment, 0, 0, in, 8, NULL),
        STATE(keel_get_nb, segment, 0, 0, out, 8, &fresh),
        STATE(keel_get_strong_nb, segment, 0, 0, out, 8, &fresh),
        STATE(keel_acc, segment, 0, 0, KEEL_DOUBLE, NULL, in, 1),
        STATE(keel_acc_nb, segment, 0, 0, KEEL_DOUBLE, NULL, in, 1, &fresh),
        STATE(keel_acc_nb, segment, 0, 0, KEEL_DOUBLE, NULL, in, 1, &aggregate),
        STATE(keel_acc_double, segment, 0, 0, 1.0, in, 1),
        STATE(keel_rmw, segment, 0, 0, KEEL_INT64, KEEL_RMW_ADD, &word, NULL, &old),
        STATE(keel_fetch_add, segment, 0, 0, 1, &old),
        STATE(keel_compare_swap, segment, 0, 0, 0, 1, &old),
        STATE(keel_put_strided, segment, 0, 0, in, &shape),
        STATE(keel_put_strided_nb, segment, 0, 0, in, &shape, &fresh),
        STATE(keel_get_strided, segment, 0, 0, out, &shape),
        STATE(keel_get_strided_nb, segment, 0, 0, out, &shape, &fresh),
        STATE(keel_acc_strided, segment, 0, 0, KEEL_DOUBLE, NULL, in, &shape),
        STATE(keel_acc_strided_nb, segment, 0, 0, KEEL_DOUBLE, NULL, in, &shape, &fresh),
        STATE(keel_put_vector, segment, 0, pieces, 2),
        STATE(keel_put_vector_nb, segment, 0, pieces, 2, &fresh),
        STATE(keel_get_vector, segment, 0, pieces, 2),
        STATE(keel_get_vector_nb, segment, 0, pieces, 2, &fresh),
        STATE(keel_acc_vector, segment, 0, KEEL_DOUBLE, NULL, pieces, 2),
        STATE(keel_acc_vector_nb, segment, 0, KEEL_DOUBLE, NULL, pieces, 2, &fresh),
        STATE(keel_handle_aggregate, &fresh),
        STATE(keel_wait, &fresh),
        STATE(keel_test, &fresh),
        STATE(keel_wait_all, handles, 2),
        STATE(keel_wait_any, handles, 2, &which),
        STATE(keel_fence, 0),
        STATE(keel_fence_all, ),
        STATE(keel_group_fence, group),
        STATE(keel_signal, segment, 0, 0, 1),
        STATE(keel_put_signal, segment, 0, 8, in, 8, 0, 1),
        STATE(keel_wait_until, segment, 0, KEEL_GE, 0, KEEL_ANY_RANK, &old),
        STATE(keel_update_begin, segment, 0, 8, &address),
        STATE(keel_update_end, segment, 0, 8),
        STATE(keel_segment_track, segment),
        STATE(keel_update_flush, segment),
        STATE(keel_update_flush, NULL),
        STATE(keel_update_flush_all, segment),
        STATE(keel_message_send, 0, 1, in, 8),
        STATE(keel_message_receive, 0, 1, out, 8, &n, &from),
        STATE(keel_message_test, 0, 1, &n, &from),
    };
    return look(when, tried, sizeof tried / sizeof *tried, list);
}

static int objects(const char *when, bool list)
{
    const struct tried tried[] = {
        STATE(keel_mutex_lock, mutexes, 0, 0, &from),
        STATE(keel_mutex_try, mutexes, 0, 0, &from),
        STATE(keel_mutex_unlock, mutexes, 0, 0),
        STATE(keel_mutexes_create, 1, &mutexes),
        STATE(keel_mutexes_free, mutexes),
        STATE(keel_keep_room, 8),
        STATE(keel_keep, "name", &word, 8),
        STATE(keel_keep_commit, 1),
        STATE(keel_keep_save, 1, "folder"),
        STATE(keel_keep_restore, &version, NULL),
        STATE(keel_keep_rollback, &version),
        STATE(keel_keep_get, 0, "name", 0, &word, 8, NULL),
        STATE(keel_task_next, pool, &word),
        STATE(keel_task_commit, pool, 0),
        STATE(keel_taskpool_reset, pool),
        STATE(keel_taskpool_create, 4, &pool),
        STATE(keel_taskpool_free, pool),
        TRY(0, keel_segment_bytes, segment, 0),
        TRY(0, keel_segment_bytes_per_rank, segment),
        TRY(KEEL_REDUNDANCY_NONE, keel_segment_redundancy, segment),
        STATE(keel_segment_copies, segment, 0, nodes, &count),
        TRY(NULL, keel_address, segment, 0),
        STATE(keel_locate, 0, in, &found, &n),
        STATE(keel_segment_alloc, 64, KEEL_REDUNDANCY_SHADOW, &found),
        STATE(keel_segment_alloc_parts, lens, KEEL_REDUNDANCY_SHADOW, &found),
        STATE(keel_segment_alloc_group, group, lens, KEEL_REDUNDANCY_SHADOW, &found),
        STATE(keel_segment_describe, segment, 0, &part),
        STATE(keel_segment_attach, &part, &found),
        STATE(keel_segment_free, segment),
        STATE(keel_segment_free, NULL),
        TRY(NULL, keel_group_world, ),
        TRY(NULL, keel_group_node, ),
        TRY(0, keel_group_size, group),
        TRY(-1, keel_group_rank, group),
        TRY(-1, keel_group_to_world, group, 0),
        TRY(-1, keel_group_from_world, group, 0),
        TRY(-1, keel_group_stopped, group),
        TRY(false, keel_group_alive, group, 0),
        STATE(keel_group_create, ranks, 2, 0, &made),
        STATE(keel_group_split, group, 0, 0, &made),
        STATE(keel_group_union, group, group, ranks, &count),
        STATE(keel_group_difference, group, group, ranks, &count),
        STATE(keel_group_shrink, group, &made),
        STATE(keel_group_shrink_among, group, ranks, 2, &made),
        STATE(keel_group_agree, group, KEEL_GROUP_AND, 1, &value),
        STATE(keel_group_revoke, group),
        STATE(keel_group_patience, group, true),
        STATE(keel_group_free, group),
    };
    return look(when, tried, sizeof tried / sizeof *tried, list);
}

static int collectives(const char *when, keel_group *g, bool list)
{
    const struct tried tried[] = {
        STATE(keel_barrier, ),
        STATE(keel_sync, ),
        STATE(keel_barrier_begin, ),
        STATE(keel_barrier_test, &value),
        STATE(keel_barrier_end, &value),
        STATE(keel_bcast, 0, out, 8),
        STATE(keel_allreduce_sum, in, out, 1),
        STATE(keel_group_barrier, g),
        STATE(keel_group_barrier_begin, g, &begun),
        STATE(keel_group_sync, g),
        STATE(keel_group_bcast, g, 0, out, 8),
        STATE(keel_group_bcast_begin, g, 0, out, 8, &begun),
        STATE(keel_group_reduce, g, 0, in, out, 1, &sum),
        STATE(keel_group_reduce_begin, g, 0, in, out, 1, &sum, &begun),
        STATE(keel_group_allreduce, g, in, out, 1, &sum),
        STATE(keel_group_allreduce_begin, g, in, out, 1, &sum, &begun),
        STATE(keel_group_reduce_scatter, g, in, out, ones, &sum),
        STATE(keel_group_reduce_scatter_begin, g, in, out, ones, &sum, &begun),
        STATE(keel_group_scan, g, in, out, 1, &sum),
        STATE(keel_group_scan_begin, g, in, out, 1, &sum, &begun),
        STATE(keel_group_exscan, g, in, out, 1, &sum),
        STATE(keel_group_exscan_begin, g, in, out, 1, &sum, &begun),
        STATE(keel_group_gather, g, 0, in, out, 8),
        STATE(keel_group_gather_begin, g, 0, in, out, 8, &begun),
        STATE(keel_group_scatter, g, 0, in, out, 8),
        STATE(keel_group_scatter_begin, g, 0, in, out, 8, &begun),
        STATE(keel_group_allgather, g, in, out, 8),
        STATE(keel_group_allgather_begin, g, in, out, 8, &begun),
        STATE(keel_group_alltoall, g, in, out, 8),
        STATE(keel_group_alltoall_begin, g, in, out, 8, &begun),
        STATE(keel_group_gather_v, g, 0, in, 8, out, lens, at),
        STATE(keel_group_gather_v_begin, g, 0, in, 8, out, lens, at, &begun),
        STATE(keel_group_scatter_v, g, 0, in, lens, at, out, 8),
        STATE(keel_group_scatter_v_begin, g, 0, in, lens, at, out, 8, &begun),
        STATE(keel_group_allgather_v, g, in, 8, out, lens, at),
        STATE(keel_group_allgather_v_begin, g, in, 8, out, lens, at, &begun),
        STATE(keel_group_alltoall_v, g, in, lens, at, out, lens, at),
        STATE(keel_group_alltoall_v_begin, g, in, lens, at, out, lens, at, &begun),
        STATE(keel_request_test, request, &covered),
        STATE(keel_request_wait, request, &covered),
    };
    return look(when, tried, sizeof tried / sizeof *tried, list);
}

/* rank, size: what keel_rank and keel_size say then. */
static int questions(const char *when, int rank, int size, bool list)
{
    bool joined = size > 0;
    const struct tried tried[] = {
        TRY(rank, keel_rank, ),
        TRY(size, keel_size, ),
        TRY(-1, keel_rank_node, joined ? 77 : 0), /* where rank 0 is after keel_finalize depends on when it leaves */
        TRY(false, keel_rank_alive, joined ? -1 : 0),
        TRY(false, keel_restarted, ),
        TRY(joined ? 3 : 0, keel_collective_count, ),
        TRY(false, keel_survives, ),
        STATE(keel_resume, &value),
        STATE(keel_move_mode, KEEL_MOVE_ASK),
        STATE(keel_pattern, KEEL_PATTERN_5P, 8),
        TRY(false, keel_move_pending, ),
        STATE(keel_move, ),
        STATE(keel_event, "moment", 1, NULL),
        TRY(joined ? nodes_of_job : 0, keel_node_count, ),
        STATE(keel_node_status, 0, 0, &verdict),
        STATE(keel_rank_status, 0, 0, &verdict),
        STATE(keel_failures, 0, failures, 8, &n, &value),
        TRY(-1, keel_failure_fd, ),
        STATE(keel_on_failure, callback, NULL),
        STATE(keel_on_failure, NULL, NULL),
        STATE(keel_links, links, 8, &n),
        STATE(keel_finalize, ),
        TRY(8, keel_type_size, KEEL_DOUBLE),
        STATE(keel_grid_make, 2, NULL, &grid_made),
        TRY(KEEL_OK, keel_grid_coords, &grid, 5, nodes),
        TRY(KEEL_OK, keel_grid_rank, &grid, nodes, &from),
        TRY(KEEL_OK, keel_grid_neighbour, &grid, 5, nodes, true, &from),
        TRY(0, keel_grid_place, joined ? 77 : 0, nodes),
        TRY(-1, keel_grid_distance, joined ? 77 : 0, 0),
        TRY(0, strcmp, keel_status_name(KEEL_ERR_STATE), "KEEL_ERR_STATE"),
        TRY(0, strcmp, keel_verdict_name(KEEL_ALIVE), "KEEL_ALIVE"),
        TRY(false, keel_covered_has, NULL, 0),
        TRY(0, keel_covered_count, NULL),
    };
    if (list) /* those without a value, and those that every program of this folder calls at the right moment */
        puts("keel_local_alloc\nkeel_local_free\nkeel_covered_free\nkeel_status_text\nkeel_status_name\nkeel_verdict_"
             "name\nkeel_survive\nkeel_need_all\n"
             "keel_view_epoch\nkeel_timestep\nkeel_abort\nkeel_init\nkeel_init_over");
    EXPECT(*keel_status_text(KEEL_ERR_STATE));
    keel_covered_free(NULL);
    void *memory = keel_local_alloc(100);
    EXPECT(memory);
    memset(memory, 1, 100);
    keel_local_free(memory);
    keel_local_free(NULL);
    return look(when, tried, sizeof tried / sizeof *tried, list);
}

static int at_wrong_moment(const char *when, keel_group *g, int rank, int size, bool list)
{
    return operations(when, list) + collectives(when, g, list) + objects(when, list) +
           questions(when, rank, size, list);
}

/* One of each, and all of them in use. */
static void have_everything(void)
{
    CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &segment));
    CHECK(keel_mutexes_create(1, &mutexes));
    CHECK(keel_taskpool_create(4, &pool));
    CHECK(keel_group_create(ranks, keel_size(), 0, &group));
    CHECK(keel_group_barrier_begin(group, &request));
    CHECK(keel_request_wait(request, &covered));
    CHECK(keel_group_barrier(group)); /* who leaves before the others know whom it covers need not be on their lists */
    CHECK(keel_segment_track(segment));
    CHECK(keel_put_nb(segment, keel_size() - 1, 0, in, 8, &handle));
    CHECK(keel_handle_aggregate(&aggregate));
    CHECK(keel_put_nb(segment, keel_size() - 1, 8, in, 8, &aggregate));
    CHECK(keel_put_nb(segment, 0, 16, in, 8, NULL));
    if (keel_rank() == 0)
        CHECK(keel_mutex_lock(mutexes, 0, 0, NULL));
    world = keel_group_world();
}

/* What takes the place of the first must not be taken for it, nor be touched. */
static void given_back_twice(void)
{
    keel_mutexes *m[2];
    keel_taskpool *p[2];
    keel_request *r[2];
    keel_covered *c[2];
    keel_group *g[2];
    keel_segment *s[2];
    for (int i = 0; i < 2; i++) {
        CHECK(keel_mutexes_create(1, &m[i]));
        CHECK(keel_taskpool_create(4, &p[i]));
        CHECK(keel_segment_alloc(64, KEEL_REDUNDANCY_NONE, &s[i]));
        CHECK(keel_group_create(ranks, keel_size(), 0, &g[i]));
        CHECK(keel_group_barrier_begin(keel_group_world(), &r[i]));
        CHECK(keel_request_wait(r[i], &c[i]));
        if (i == 0) {
            CHECK(keel_mutexes_free(m[0]));
            CHECK(keel_taskpool_free(p[0]));
            CHECK(keel_segment_free(s[0]));
            CHECK(keel_group_free(g[0]));
            keel_covered_free(c[0]);
        }
    }
    EXPECT_STATUS(keel_mutexes_free(m[0]), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_mutex_lock(m[0], 0, 0, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_mutex_try(m[0], 0, 0, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_mutex_unlock(m[0], 0, 0), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_taskpool_free(p[0]), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_taskpool_reset(p[0]), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_task_next(p[0], &word), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_task_commit(p[0], 0), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_free(s[0]), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_segment_track(s[0]), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_put(s[0], 0, 0, in, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_group_free(g[0]), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_request_wait(r[0], NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_request_test(r[1], &c[0]), KEEL_ERR_ARG);
    EXPECT(!c[0] && keel_covered_count(c[1]) == keel_size());
    keel_covered *given = c[1];
    keel_covered_free(given);
    keel_covered_free(given);
    EXPECT(keel_covered_count(given) == 0 && !keel_covered_has(given, 0));
    EXPECT_STATUS(keel_mutex_lock((keel_mutexes *)(void *)p[1], 0, 0, NULL), KEEL_ERR_ARG); /* another thing */
    CHECK(keel_mutexes_free(m[1]));
    CHECK(keel_taskpool_free(p[1]));
    CHECK(keel_segment_free(s[1]));
    CHECK(keel_group_free(g[1]));
}

/* Where the ranks' arguments differ all are told, nobody waits for the one whose are wrong, and the next call is
 * right again. */
static void made_differently(int size)
{
    int me = keel_rank();
    keel_status differ = size > 1 ? KEEL_ERR_MISMATCH : KEEL_OK;
    for (int i = 0; i < 3; i++) {
        keel_taskpool *p = (keel_taskpool *)&word;
        keel_mutexes *m = (keel_mutexes *)&word;
        if (i == 0) /* as much memory, another number */
            EXPECT_STATUS(keel_taskpool_create(me ? 2 * size - 1 : 2 * size, &p), differ);
        else if (i == 1)
            EXPECT_STATUS(keel_taskpool_create(me ? 4 : -1, &p), size > 1 ? differ : KEEL_ERR_ARG);
        else if (me) /* a pool of as much memory as the mutexes */
            EXPECT_STATUS(keel_taskpool_create((int64_t)size * (16 * (size + 2) - 8), &p), differ);
        else
            EXPECT_STATUS(keel_mutexes_create(16, &m), differ);
        EXPECT(differ == KEEL_OK || !p || !m);
        if (differ == KEEL_OK && i == 0)
            CHECK(keel_taskpool_free(p));
        if (differ == KEEL_OK && i == 2)
            CHECK(keel_mutexes_free(m));
        CHECK(keel_barrier());
    }
    EXPECT_STATUS(keel_taskpool_create(4, NULL), KEEL_ERR_ARG);
}

/* What was still in use when the program left. */
static void wait_for_the_rest(void)
{
    EXPECT_STATUS(keel_put(segment, 0, 0, in, 0), KEEL_ERR_STATE);
    EXPECT(keel_wait(&handle) == KEEL_OK || keel_wait(&handle) == KEEL_ERR_STATE);
    EXPECT(keel_covered_has(covered, 0) && keel_covered_count(covered) == keel_size());
    keel_covered_free(covered);
    covered = NULL;
}

static atomic_bool busy = true;

static void *be_inside(void *arg)
{
    int64_t one = 1;
    (void)arg;
    while (atomic_load(&busy))
        CHECK(keel_acc(segment, keel_size() - 1, 32, KEEL_INT64, NULL, &one, 1));
    return NULL;
}

static bool is_child;

/* The leak sanitizer asks. At the end of a fork's child it would wait for a lock that the other thread had in the
 * parent. */
int __lsan_is_turned_off(void); // NOLINT(bugprone-reserved-identifier): its name
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
    return is_child;
}

/* As after keel_finalize, also at its end; and nothing of it harms the parent. */
static int in_children(int rank, int size)
{
    enum { CHILDREN = 20 };
    pthread_t thread;
    int wrong = 0, status;
    EXPECT(pthread_create(&thread, NULL, be_inside, NULL) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            is_child = true;
            EXPECT(keel_wait(&handle) == KEEL_OK || keel_wait(&handle) == KEEL_ERR_STATE);
            int mine = at_wrong_moment("in a fork's child", world, rank, size, false);
            EXPECT_STATUS(keel_init(), KEEL_ERR_STATE);
            if (i % 2)
                keel_abort(mine ? 1 : 9, "(a child of a fork that aborts)"); /* itself */
            exit(mine ? 1 : 9);
        }
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
        wrong += WEXITSTATUS(status) != 9;
    }
    atomic_store(&busy, false);
    EXPECT(pthread_join(thread, NULL) == 0);
    return wrong;
}

int main(int argc, char **argv)
{
    bool list = argc > 1 && strcmp(argv[1], "list") == 0;
    const struct keel_exchange exchange = {.rank = 0, .size = 1, .gather = gather};
    for (int i = 0; i < 2; i++)
        pieces[i] = (keel_piece){16 * (size_t)i, &in[i], 8};
    int wrong = at_wrong_moment("before keel_init", NULL, 0, 0, list);
    if (list)
        return 0;
    CHECK(keel_init());
    EXPECT_STATUS(keel_init(), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_init_over(&exchange), KEEL_ERR_STATE);
    int rank = keel_rank(), size = keel_size();
    nodes_of_job = keel_node_count();
    given_back_twice();
    made_differently(size);
    have_everything();
    wrong += in_children(rank, size);
    CHECK(keel_finalize());
    wait_for_the_rest();
    wrong += at_wrong_moment("after keel_finalize", world, rank, size, false);
    wrong += collectives("after keel_finalize, a group of its own", group, false);
    EXPECT_STATUS(keel_group_free(world), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_init(), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_init_over(&exchange), KEEL_ERR_STATE);
    EXPECT(callback_calls == 0);
    return wrong > 0;
}
