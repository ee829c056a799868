/* Calls with arguments that are wrong or rare, whose answers a program prints: sets of replicas are to give the same as
 * a program gets alone. Nothing that is refused is read, compared or counted; "any rank" is one of the program's. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <keel/keel.h>

enum { PART = 1 << 16 };
static const size_t FAR_TOO_LONG = (size_t)1 << 40;

static int me, size, right;
static keel_segment *segment;
static char memory[PART + 2];

static void say(int line, keel_status status)
{
    const char *name = "?";
#define X(constant, number, text) name = status == (constant) ? #constant : name;
    KEEL_STATUS_TABLE(X)
#undef X
    printf("%d line %d: %s\n", me, line, name);
    fflush(stdout);
}
#define SAY(call) say(__LINE__, call)

static void lengths(void)
{
    const int64_t one = 1;
    SAY(keel_put(segment, right, 0, memory, FAR_TOO_LONG));
    SAY(keel_put(segment, right, 0, memory, SIZE_MAX));
    SAY(keel_put(segment, right, SIZE_MAX, memory, 8));
    SAY(keel_put(segment, size, 0, memory, 8));
    SAY(keel_put(NULL, right, 0, memory, 8));
    SAY(keel_put_nb(segment, right, 0, memory, FAR_TOO_LONG, NULL));
    SAY(keel_put_signal(segment, right, 0, memory, FAR_TOO_LONG, 8, 1));
    SAY(keel_put_signal(segment, right, 0, NULL, 8, 8, 1));
    SAY(keel_put_signal(segment, right, 0, NULL, 0, 8, 1));
    SAY(keel_acc(segment, right, 0, KEEL_INT64, NULL, memory, FAR_TOO_LONG));
    SAY(keel_acc(segment, right, 0, KEEL_INT64, NULL, memory, SIZE_MAX / 8));
    SAY(keel_acc(segment, right, 0, KEEL_BYTE, NULL, memory, 8));
    SAY(keel_acc(segment, right, 3, KEEL_INT64, NULL, &one, 1));
    SAY(keel_acc_nb(segment, right, 0, KEEL_INT64, NULL, memory, SIZE_MAX / 8, NULL));
    SAY(keel_rmw(segment, right, 0, (keel_type)99, KEEL_RMW_ADD, &one, NULL, NULL));
    SAY(keel_rmw(segment, right, 0, KEEL_INT64, KEEL_RMW_ADD, NULL, NULL, NULL));
    SAY(keel_message_send(right, 1, memory, FAR_TOO_LONG));
    SAY(keel_message_send(right, 1, memory, KEEL_MESSAGE_MAX + 1));
    SAY(keel_message_send(right, 1, NULL, 1));
    SAY(keel_fence_all());
}

/* What a shape has no levels for is what lay on the stack: addresses, which are others in each process. */
static void shapes(void)
{
    keel_strided shape;
    for (size_t i = 0; i < sizeof shape / sizeof(void *); i++)
        memcpy((char *)&shape + i * sizeof(void *), &(void *){(char *)&shape + i}, sizeof(void *));
    shape.levels = 1;
    shape.count[0] = shape.local_stride[0] = 8;
    shape.count[1] = 4;
    shape.global_stride[0] = 16;
    SAY(keel_put_strided(segment, right, 0, memory, &shape));
    SAY(keel_acc_strided(segment, right, 0, KEEL_INT64, NULL, memory, &shape));
    SAY(keel_put_strided(segment, right, PART - 8, memory, &shape));
    shape.global_stride[0] = 4;
    SAY(keel_put_strided(segment, right, 0, memory, &shape));
    shape.count[0] = FAR_TOO_LONG;
    SAY(keel_put_strided(segment, right, 0, memory, &shape));
    SAY(keel_acc_strided(segment, right, 0, KEEL_INT64, NULL, memory, &shape));
    shape = (keel_strided){.levels = 4, .count = {8, 1U << 30, 1U << 30, 1U << 30, 1U << 30}};
    SAY(keel_put_strided(segment, right, 0, memory, &shape));
    shape.levels = -1;
    SAY(keel_put_strided(segment, right, 0, memory, &shape));
    keel_piece pieces[] = {{0, memory, 16}, {8, memory, 16}, {0, NULL, 0}, {0, memory, FAR_TOO_LONG}};
    SAY(keel_put_vector(segment, right, pieces, 2));
    SAY(keel_acc_vector(segment, right, KEEL_INT64, NULL, pieces, 3));
    SAY(keel_put_vector(segment, right, pieces + 2, 2));
    SAY(keel_acc_vector(segment, right, KEEL_INT64, NULL, pieces, 4));
    SAY(keel_put_vector(segment, right, NULL, 1));
    SAY(keel_fence_all());
}

static void together(void)
{
    keel_segment *none;
    keel_mutexes *mutexes = NULL;
    keel_taskpool *pool = NULL;
    int64_t task;
    SAY(keel_segment_alloc(8, (keel_redundancy)17, &none));
    SAY(keel_segment_alloc(SIZE_MAX, KEEL_REDUNDANCY_NONE, &none));
    SAY(keel_segment_alloc(8 + (size_t)me, KEEL_REDUNDANCY_NONE, &none));
    SAY(keel_mutexes_create(me == 0 ? -1 : 2, &mutexes));
    SAY(keel_mutexes_create(1 + me, &mutexes));
    SAY(keel_taskpool_create(5 + me, &pool));
    SAY(keel_taskpool_create(-1, &pool));
    SAY(keel_group_free(keel_group_world()));
    SAY(keel_group_free(keel_group_node()));
    SAY(keel_taskpool_create(size, &pool));
    SAY(keel_barrier_begin());
    SAY(keel_segment_alloc(8, KEEL_REDUNDANCY_NONE, &none));
    SAY(keel_mutexes_create(1, &mutexes));
    SAY(keel_barrier());
    SAY(keel_barrier_end(NULL));
    SAY(keel_task_next(pool, &task));
    if (task >= 0) { /* another rank may have drawn all of them */
        keel_status barrier = keel_barrier(), group = keel_group_barrier(keel_group_world());
        if (barrier != KEEL_ERR_STATE || group != KEEL_ERR_STATE)
            printf("%d: together inside a task\n", me);
    }
    while (task >= 0 && keel_task_commit(pool, task) == KEEL_OK && keel_task_next(pool, &task) == KEEL_OK)
        ;
    SAY(keel_taskpool_free(pool));
}

/* Between a value of 4 bytes and its place is what lay on the stack. */
static void pairs(void)
{
    struct {
        int32_t value;
        int64_t place;
    } mine, least = {0, 0};
    const keel_combine how = {.type = KEEL_INT32, .op = KEEL_MINLOC};
    keel_request *request = NULL;
    memcpy(&mine, &(void *){&mine}, sizeof(void *));
    mine.value = -me;
    mine.place = me;
    SAY(keel_group_allreduce(keel_group_world(), &mine, &least, 1, &how));
    if (least.value != 1 - size || least.place != size - 1)
        printf("%d: least %d at %d\n", me, (int)least.value, (int)least.place);
    SAY(keel_group_allreduce_begin(keel_group_world(), &mine, &least, 1, &how, &request));
    SAY(keel_request_wait(request, NULL));
    SAY(keel_group_allreduce(keel_group_world(), &mine, &mine, 1, &how));
}

/* The first rank waits for any of the others, who leave. */
static void left_alone(void)
{
    int64_t got = 0;
    if (me != 0)
        return;
    SAY(keel_message_receive(KEEL_ANY_RANK, 7, memory, 1, NULL, NULL));
    SAY(keel_wait_until(segment, 64, KEEL_GT, 1 << 20, KEEL_ANY_RANK, &got));
    SAY(keel_wait_until(segment, 64, KEEL_GT, 1 << 20, KEEL_ANY_RANK, NULL));
    SAY(keel_message_test(KEEL_ANY_RANK, 7, NULL, NULL));
}

/* What is not there where the program has replicas, which a line of the library says. */
static int refused(void)
{
    SAY(keel_links(NULL, 0, &(size_t){0}));
    return keel_finalize() != KEEL_OK;
}

/* Ranks write to one word by turns, which they give each other by an atomic. */
static int by_turns(void)
{
    enum { TURNS = 12, TURN_AT = 0, WORD_AT = 8 };
    int64_t turn = 0, word = 0;
    for (int64_t t = 0; t <= TURNS; t++) {
        while (turn < t)
            if (keel_fetch_add(segment, 0, TURN_AT, 0, &turn) != KEEL_OK)
                return 1;
        if (t < TURNS && t % size == me &&
            (keel_put(segment, size - 1, WORD_AT, &t, sizeof t) != KEEL_OK ||
             keel_fetch_add(segment, 0, TURN_AT, 1, NULL) != KEEL_OK))
            return 1;
    }
    SAY(keel_barrier());
    SAY(keel_get(segment, size - 1, WORD_AT, &word, sizeof word));
    return word != TURNS - 1 || keel_finalize() != KEEL_OK;
}

int main(int n, char **arguments)
{
    if (keel_init() != KEEL_OK)
        return 1;
    me = keel_rank();
    size = keel_size();
    right = (me + 1) % size;
    SAY(keel_segment_alloc(PART, KEEL_REDUNDANCY_SHADOW, &segment));
    if (n > 1)
        return strcmp(arguments[1], "turns") == 0 ? by_turns() : refused();
    lengths();
    shapes();
    together();
    pairs();
    left_alone();
    SAY(keel_finalize());
    SAY(keel_failures(0, NULL, 0, &(size_t){0}, NULL));
    return 0;
}
