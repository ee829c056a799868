/* leave mail|wait|request|several|alloc|outlast|twice|calls|made|begun: what finalize does with messages that were
 * sent, with a thread that waits, with a request that nobody waited for, with threads that allocate, leave, or make
 * one call after the other. Two ranks, several and made: five. Exit 0 if all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { MESSAGES = 16, LENGTH = 60000 };

static char bytes[LENGTH];

/* All of them arrive, though the receiver looks only after the sender has begun to leave. */
static void mail(void)
{
    size_t len;
    for (int i = 0; i < MESSAGES; i++) {
        bytes[0] = (char)i;
        if (keel_rank() == 0)
            EXPECT_STATUS(keel_message_send(1, 5, bytes, sizeof bytes), KEEL_OK);
    }
    if (keel_rank() == 0)
        return;
    for (int i = 0; i < MESSAGES; i++) {
        EXPECT_STATUS(keel_message_receive(0, 5, bytes, sizeof bytes, &len, NULL), KEEL_OK);
        EXPECT_STATUS(len == LENGTH && bytes[0] == (char)i ? KEEL_OK : KEEL_ERR_SYSTEM, KEEL_OK);
    }
    EXPECT_STATUS(keel_message_receive(0, 5, bytes, sizeof bytes, &len, NULL), KEEL_ERR_RANK_DEAD);
}

/* Everybody has messages for everybody, gets them, and leaves; those who leave later hear of views meanwhile. */
static void several(void)
{
    size_t len;
    for (int r = 0; r < keel_size(); r++)
        if (r != keel_rank())
            EXPECT_STATUS(keel_message_send(r, 5, bytes, 100), KEEL_OK);
    for (int r = 0; r < keel_size(); r++)
        if (r != keel_rank())
            EXPECT_STATUS(keel_message_receive(r, 5, bytes, sizeof bytes, &len, NULL), KEEL_OK);
    EXPECT_STATUS(keel_barrier(), KEEL_OK);
}

/* The first leaves right after it has made a group with the others, who have the same one. */
static void made(void)
{
    int all[] = {0, 1, 2, 3, 4}, sizes[5], n = keel_size();
    keel_group *first, *g;
    EXPECT(n == 5);
    CHECK(keel_group_create(all, n, 1, &first));
    CHECK(keel_group_shrink(first, &g));
    if (keel_rank() == 0)
        return;
    int size = keel_group_size(g);
    EXPECT(size == n || size == n - 1);
    sizes[0] = n - 1; /* of who has left nothing comes */
    CHECK(keel_group_allgather(g, &size, &sizes[n - size], sizeof size));
    for (int r = 1; r < n; r++)
        EXPECT(sizes[r] == size);
}

static void *wait_for_a_message(void *unused)
{
    EXPECT_STATUS(keel_message_receive(1, 7, NULL, 0, NULL, NULL), KEEL_ERR_STATE);
    return unused;
}

/* What was under way is completed, unless it needs more of its rank than that. */
static void *allocate(void *unused)
{
    keel_segment *s;
    keel_status status = keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &s);
    EXPECT(status == KEEL_OK || status == KEEL_ERR_STATE);
    return unused;
}

static void alloc(void)
{
    pthread_t thread;
    if (keel_rank() == 0) {
        EXPECT(!pthread_create(&thread, NULL, allocate, NULL));
        while (keel_message_test(1, 9, NULL, NULL) == KEEL_IN_PROGRESS)
            ; /* the thread had time to begin */
        EXPECT_STATUS(keel_finalize(), KEEL_OK);
        pthread_join(thread, NULL);
    } else {
        EXPECT_STATUS(keel_message_send(0, 9, NULL, 0), KEEL_OK);
        allocate(NULL);
        EXPECT_STATUS(keel_finalize(), KEEL_OK);
    }
}

static void *allocate_in_vain(void *unused)
{
    keel_segment *s;
    EXPECT_STATUS(keel_segment_alloc(64, KEEL_REDUNDANCY_SHADOW, &s), KEEL_ERR_STATE);
    return unused;
}

/* The others do not come: they wait until it has left. */
static void alone(void)
{
    pthread_t thread;
    if (keel_rank() == 0) {
        EXPECT(!pthread_create(&thread, NULL, allocate_in_vain, NULL));
        usleep(200 * 1000); /* most often it waits for the others by then, and it is right before that, too */
        EXPECT_STATUS(keel_finalize(), KEEL_OK);
        pthread_join(thread, NULL);
    } else {
        EXPECT_STATUS(keel_message_receive(0, 9, NULL, 0, NULL, NULL), KEEL_ERR_RANK_DEAD);
        allocate(NULL); /* without it */
        EXPECT_STATUS(keel_finalize(), KEEL_OK);
    }
}

static void *leave(void *status)
{
    *(keel_status *)status = keel_finalize();
    return NULL;
}

/* One of two threads leaves. */
static void twice(void)
{
    pthread_t thread;
    keel_status theirs = KEEL_OK, ours;
    EXPECT_STATUS(keel_barrier(), KEEL_OK);
    EXPECT(!pthread_create(&thread, NULL, leave, &theirs));
    ours = keel_finalize();
    pthread_join(thread, NULL);
    EXPECT((ours == KEEL_OK && theirs == KEEL_ERR_STATE) || (theirs == KEEL_OK && ours == KEEL_ERR_STATE));
}

static keel_segment *seg;

/* Each call is right, or refused for good. */
static void *call_on(void *which)
{
    keel_status status = KEEL_OK;
    int other = 1 - keel_rank();
    int64_t word = 0, old;
    size_t offset = 64 * (size_t) * (int *)which;
    while (status == KEEL_OK) {
        keel_handle h;
        switch (*(int *)which) {
        case 0:
            status = keel_put(seg, other, offset, &word, sizeof word);
            break;
        case 1:
            status = keel_fetch_add(seg, other, offset, 1, &old);
            break;
        case 2:
            status = keel_get_nb(seg, other, offset, &word, sizeof word, &h);
            status = status == KEEL_OK ? keel_wait(&h) : status;
            break;
        case 3:
            status = keel_put_nb(seg, other, offset, &word, sizeof word, NULL);
            status = status == KEEL_OK ? keel_fence_all() : status;
            break;
        default:
            status = keel_get(seg, keel_rank(), offset, &word, sizeof word);
        }
    }
    EXPECT_STATUS(status, KEEL_ERR_STATE);
    return NULL;
}

enum { CALLERS = 5 };

static void calls(void)
{
    pthread_t thread[CALLERS];
    static int which[CALLERS];
    EXPECT_STATUS(keel_segment_alloc(CALLERS * 64, KEEL_REDUNDANCY_SHADOW, &seg), KEEL_OK);
    for (int i = 0; i < CALLERS; i++) {
        which[i] = i;
        EXPECT(!pthread_create(&thread[i], NULL, call_on, &which[i]));
    }
    EXPECT_STATUS(keel_barrier(), KEEL_OK);
    EXPECT_STATUS(keel_finalize(), KEEL_OK);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(thread[i], NULL);
}

/* Complete or not: it was not waited for. */
static void begun(void)
{
    keel_request *barrier, *sum;
    keel_covered *covered = NULL;
    uint64_t value;
    double x = 1, y;
    EXPECT_STATUS(keel_group_allreduce_begin(keel_group_world(), &x, &y, 1, &(keel_combine){.type = KEEL_DOUBLE}, &sum),
                  KEEL_OK);
    EXPECT_STATUS(keel_group_agree(keel_group_world(), KEEL_GROUP_AND, 1, &value), KEEL_OK);
    EXPECT_STATUS(keel_group_barrier_begin(keel_group_world(), &barrier), KEEL_OK);
    EXPECT_STATUS(keel_finalize(), KEEL_OK);
    EXPECT_STATUS(keel_request_wait(barrier, NULL), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_request_test(sum, &covered), KEEL_ERR_STATE);
    EXPECT(!covered);
}

int main(int argc, char **argv)
{
    keel_request *r = NULL;
    pthread_t thread;
    if (argc != 2 || keel_init() != KEEL_OK)
        return 2;
    bool first = keel_rank() == 0, waits = strcmp(argv[1], "wait") == 0 && first;
    if (strcmp(argv[1], "mail") == 0)
        mail();
    if (strcmp(argv[1], "several") == 0)
        several();
    if (strcmp(argv[1], "made") == 0)
        made();
    if (strcmp(argv[1], "alloc") == 0)
        alloc();
    if (strcmp(argv[1], "outlast") == 0)
        alone();
    if (strcmp(argv[1], "twice") == 0)
        twice();
    if (strcmp(argv[1], "calls") == 0)
        calls();
    if (strcmp(argv[1], "begun") == 0)
        begun();
    if (strchr("abtco", argv[1][0]))
        return 0;
    if (strcmp(argv[1], "request") == 0 && first)
        EXPECT_STATUS(keel_group_barrier_begin(keel_group_world(), &r), KEEL_OK);
    if (waits && pthread_create(&thread, NULL, wait_for_a_message, NULL))
        return 2;
    if (!first && (argv[1][0] == 'w' || argv[1][0] == 'r')) /* stays until the other has left */
        EXPECT_STATUS(keel_message_receive(0, 9, NULL, 0, NULL, NULL), KEEL_ERR_RANK_DEAD);
    EXPECT_STATUS(keel_finalize(), KEEL_OK);
    if (r)
        EXPECT_STATUS(keel_request_wait(r, NULL), KEEL_ERR_STATE);
    if (waits)
        pthread_join(thread, NULL);
    return 0;
}
