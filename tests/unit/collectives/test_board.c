/* Boards: the words, under threads; calls over them, beside the same calls with messages; whoever takes the other way,
 * comes late, or joins. Deaths and freezes between any two looks: tests/sim/coll (--sweep board); between any two
 * words: docs/models/collectives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine.h"
#include "collectives/together.h"
#include "tests/unit/collectives/made.h"

enum { MEMBERS = 9, GROUP = 7, QUEUE = 8192 };

static void *new_memory(int members)
{
    void *m = aligned_alloc(alignof(struct board_head), board_size(members));
    assert_non_null(m);
    memset(m, 0, board_size(members));
    return m;
}

/* ---- the words ---- */

static struct board board;

static void words(int members)
{
    assert_true(board_attach(&board, new_memory(members), members, GROUP));
}

static struct board_meeting meeting(int me, int n, uint64_t turn, uint64_t epoch)
{
    struct board_meeting m = {.lane = 0, .me = me, .turn = turn, .group = GROUP, .epoch = epoch};
    for (int i = 0; i < n; i++)
        if (i != me)
            m.other[m.n++] = (uint8_t)i;
    return m;
}

static void board_is_met_when_all_have_posted(void **state)
{
    (void)state;
    words(3);
    struct board_meeting m[3];
    for (int i = 0; i < 3; i++) {
        m[i] = meeting(i, 3, board_turn(1, 0), 1);
        assert_int_equal(board_look(&board, &m[0]), BOARD_WAITS);
        board_post(&board, &m[i], 5);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(board_look(&board, &m[i]), BOARD_MET);
    assert_int_equal(board_leave(&board, &m[1]), BOARD_MET); /* too late to leave */
    assert_int_equal(board_look(&board, &m[2]), BOARD_MET);
    free(board.head);
}

static void board_that_was_left_is_left_by_all(void **state)
{
    (void)state;
    words(3);
    struct board_meeting a = meeting(0, 3, board_turn(1, 0), 1), b = meeting(1, 3, board_turn(1, 0), 1),
                         c = meeting(2, 3, board_turn(1, 0), 1);
    board_post(&board, &a, 5);
    board_post(&board, &b, 5);
    assert_int_equal(board_leave(&board, &b), BOARD_LEFT);
    board_post(&board, &c, 5);
    assert_int_equal(board_look(&board, &a), BOARD_LEFT);
    assert_int_equal(board_look(&board, &c), BOARD_LEFT);
    free(board.head);
}

static void board_is_closed_by_who_takes_another_way(void **state)
{
    (void)state;
    words(2);
    struct board_meeting a = meeting(0, 2, board_turn(4, 0), 1);
    board_post(&board, &a, 5);
    board_close(&board, 0, board_turn(4, 0));
    assert_int_equal(board_look(&board, &a), BOARD_LEFT);
    board_close(&board, 0, board_turn(2, 0)); /* an older one of the same side: nothing */
    assert_int_equal(board_look(&board, &a), BOARD_LEFT);
    free(board.head);
}

/* Who has met may be two calls further, begun without waiting, before somebody who was looking gives up. */
static void board_that_others_have_met_and_gone_on_from_is_met(void **state)
{
    (void)state;
    words(2);
    struct board_meeting a = meeting(0, 2, board_turn(1, 0), 1), b = meeting(1, 2, board_turn(1, 0), 1);
    board_post(&board, &a, 5);
    assert_int_equal(board_look(&board, &a), BOARD_WAITS);
    board_post(&board, &b, 5);
    assert_int_equal(board_look(&board, &b), BOARD_MET);
    board_close(&board, 0, board_turn(2, 0));
    board_close(&board, 0, board_turn(3, 0));
    assert_int_equal(board_leave(&board, &a), BOARD_MET);
    assert_int_equal(board_look(&board, &a), BOARD_MET);
    free(board.head);
}

/* Nor does it count if who is three calls further has never posted. */
static void board_that_somebody_never_posted_is_left_however_far_it_is(void **state)
{
    (void)state;
    words(2);
    struct board_meeting a = meeting(0, 2, board_turn(1, 0), 1);
    board_post(&board, &a, 5);
    for (uint64_t number = 1; number <= 3; number++)
        board_close(&board, 0, board_turn(number, 0));
    assert_int_equal(board_look(&board, &a), BOARD_WAITS);
    assert_int_equal(board_leave(&board, &a), BOARD_LEFT);
    free(board.head);
}

static void board_posts_of_another_view_or_group_do_not_count(void **state)
{
    (void)state;
    words(2);
    struct board_meeting a = meeting(0, 2, board_turn(1, 0), 1), b = meeting(1, 2, board_turn(1, 0), 2);
    board_post(&board, &a, 5);
    board_post(&board, &b, 5);
    assert_int_equal(board_look(&board, &a), BOARD_WAITS);
    assert_int_equal(board_leave(&board, &a), BOARD_LEFT);
    assert_int_equal(board_look(&board, &b), BOARD_LEFT);
    b = meeting(1, 2, board_turn(2, 0), 2);
    b.group = GROUP + 1;
    a = meeting(0, 2, board_turn(2, 0), 2);
    board_post(&board, &a, 5);
    board_post(&board, &b, 5);
    assert_int_equal(board_look(&board, &a), BOARD_WAITS);
    free(board.head);
}

static void board_tells_who_that_is_waited_for_ran_on_the_same_processor(void **state)
{
    (void)state;
    words(3);
    struct board_meeting m[3];
    for (int i = 0; i < 3; i++) {
        m[i] = meeting(i, 3, board_turn(1, 0), 1);
        m[i].processor = i == 1 ? 8 : 7;
        assert_int_equal(board_beside(&board, &m[i], 7), -1); /* nobody has said anything yet, or has posted */
        board_post(&board, &m[i], 5);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(board_beside(&board, &m[i], 7), -1); /* all have posted: nobody is waited for */
    for (int i = 0; i < 3; i++) {
        m[i] = meeting(i, 3, board_turn(2, 0), 1);
        m[i].processor = 7;
    }
    board_post(&board, &m[0], 5);
    assert_int_equal(board_beside(&board, &m[0], 7), 2);
    assert_int_equal(board_beside(&board, &m[0], 8), 1);
    assert_int_equal(board_beside(&board, &m[0], 9), -1);
    assert_int_equal(board_beside(&board, &m[0], 0), -1);
    board_post(&board, &m[1], 5); /* here now; but it has come */
    assert_int_equal(board_beside(&board, &m[0], 8), -1);
    assert_int_equal(board_beside(&board, &m[2], 7), -1);
    for (int i = 1; i >= 0; i--) {
        m[i] = meeting(i, 3, board_turn(3, 0), 1);
        m[i].processor = 9;
        if (i)
            board_post(&board, &m[i], 5);
    }
    assert_int_equal(board_beside(&board, &m[1], 7), 0); /* what was said last counts, whichever side it is on */
    free(board.head);
}

static void board_is_had_by_one_group_and_empty_for_the_next(void **state)
{
    (void)state;
    struct board other;
    words(2);
    struct board_meeting a = meeting(0, 2, board_turn(1, 0), 1);
    board_post(&board, &a, 5);
    board_close(&board, 1, board_turn(9, 0));
    assert_true(board_attach(&other, board.head, 2, GROUP));
    assert_false(board_attach(&other, board.head, 2, GROUP + 1));
    board_release(&other, GROUP + 1);
    assert_false(board_attach(&other, board.head, 2, GROUP + 1));
    board_release(&board, GROUP);
    assert_true(board_attach(&other, board.head, 2, GROUP + 1));
    for (size_t i = 0; i < board_lines(2); i++)
        assert_int_equal(other.line[i].turn, 0);
    assert_int_equal(other.head->verdict[1][1], 0);
    free(board.head);
}

static void board_sides_alternate_within_a_call_and_between_calls(void **state)
{
    (void)state;
    for (uint64_t number = 1; number < 5; number++)
        for (unsigned chunks = 1; chunks < 8; chunks += 2) {
            for (unsigned k = 0; k + 1 < chunks; k++)
                assert_int_not_equal(board_side(board_turn(number, k)), board_side(board_turn(number, k + 1)));
            assert_int_not_equal(board_side(board_turn(number, chunks - 1)), board_side(board_turn(number + 1, 0)));
        }
}

/* Threads that post, look and leave at random: of each turn all say the same, and a turn that is met was posted by
 * all. */
enum { THREADS = 3, TURNS = 1500 };
static _Atomic int arrived[TURNS + 1], posted[TURNS + 1];
static uint8_t said[THREADS][TURNS + 1];

static void *member(void *arg)
{
    int me = (int)(intptr_t)arg;
    unsigned random = 12345u + (unsigned)me;
    for (uint64_t t = 1; t <= TURNS; t++) {
        struct board_meeting m = meeting(me, THREADS, board_turn(t, 0), 1);
        enum board_state s = BOARD_WAITS;
        random = random * 1103515245u + 12345u;
        atomic_fetch_add(&posted[t], 1);
        board_post(&board, &m, 0);
        for (unsigned left = random >> 16 & 127; s == BOARD_WAITS && left; left--)
            s = board_look(&board, &m);
        if (s == BOARD_WAITS)
            s = board_leave(&board, &m);
        if (s == BOARD_MET)
            assert_int_equal(posted[t], THREADS);
        said[me][t] = (uint8_t)s;
        if (s == BOARD_LEFT) { /* completed otherwise, by all */
            atomic_fetch_add(&arrived[t], 1);
            while (atomic_load(&arrived[t]) < THREADS)
                sched_yield();
        }
    }
    return NULL;
}

static void board_verdicts_are_the_same_for_all_threads(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    int met = 0, left = 0;
    words(THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, member, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int t = 1; t <= TURNS; t++) {
        for (int i = 1; i < THREADS; i++)
            assert_int_equal(said[i][t], said[0][t]);
        met += said[0][t] == BOARD_MET;
        left += said[0][t] == BOARD_LEFT;
    }
    assert_int_equal(met + left, TURNS);
    free(board.head);
}

/* ---- calls ---- */

struct fake {
    int id, done;
    struct engine *e;
    struct engine_result result;
};
static struct fake fakes[MEMBERS];
static struct letter {
    int from, to;
    size_t len;
    uint8_t *data;
} queue[QUEUE];
static int head, tail, n_members, sent;
static struct roster *roster;
static void *memory;

static bool on_send(void *user, int to, uint64_t seq, const void *h, size_t head_len, const void *data, size_t len)
{
    struct fake *f = user;
    (void)seq;
    assert_true(tail < QUEUE);
    queue[tail] = (struct letter){f->id, to, head_len + len, malloc(head_len + len)};
    assert_non_null(queue[tail].data);
    memcpy(queue[tail].data, h, head_len);
    if (len)
        memcpy(queue[tail].data + head_len, data, len);
    tail++;
    sent++;
    return true;
}

static void on_done(void *user, uint64_t seq, const struct engine_result *r)
{
    struct fake *f = user;
    (void)seq;
    f->done++;
    f->result = *r;
}

static void deliver(void)
{
    for (; head < tail; head++) {
        if (fakes[queue[head].to].e)
            engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, 1);
        free(queue[head].data);
    }
    head = tail = 0;
}

static struct roster *of(int n, int but, uint64_t epoch)
{
    uint64_t bits = (1ull << n) - 1;
    if (but >= 0)
        bits &= ~(1ull << but);
    return made_roster(n, &bits, epoch);
}

static void create(int i, int n)
{
    struct engine_ops ops = {&fakes[i], on_send, on_done, NULL, NULL, NULL, NULL};
    fakes[i] = (struct fake){.id = i, .e = made_engine(GROUP, i, roster, NULL, &ops)};
    assert_non_null(fakes[i].e);
    (void)n;
}

static void start(int n, bool boarded)
{
    struct board b;
    n_members = n;
    roster = of(n, -1, 1);
    memory = new_memory(n);
    sent = 0;
    for (int i = 0; i < n; i++) {
        create(i, n);
        if (boarded) {
            assert_true(board_attach(&b, memory, n, GROUP));
            assert_true(engine_board(fakes[i].e, &b));
        }
    }
}

static void stop(void)
{
    for (; head < tail; head++)
        free(queue[head].data);
    head = tail = 0;
    for (int i = 0; i < n_members; i++)
        engine_destroy(fakes[i].e);
    roster_unref(roster);
    free(memory);
}

static void begin(int i, const struct engine_call *call)
{
    uint64_t seq;
    assert_int_equal(engine_start(fakes[i].e, call, 1, &seq), ENGINE_OK);
}

/* All of them do the call, over the board or not, until it is done. */
static void all_do(const struct engine_call *calls, bool boarded)
{
    int todo = n_members;
    bool over[MEMBERS] = {false};
    for (int i = 0; i < n_members; i++) {
        fakes[i].done = 0;
        if (boarded)
            assert_true(engine_post(fakes[i].e, &calls[i]));
        else
            begin(i, &calls[i]);
    }
    deliver();
    while (boarded && todo)
        for (int i = 0; i < n_members; i++) {
            struct engine_result r;
            enum engine_post p = over[i] ? ENGINE_POST_WAITS : engine_look(fakes[i].e, &r);
            assert_int_not_equal(p, ENGINE_POST_LEFT);
            if (p != ENGINE_POST_DONE)
                continue;
            on_done(&fakes[i], 0, &r);
            over[i] = true;
            todo--;
        }
    for (int i = 0; i < n_members; i++)
        assert_int_equal(fakes[i].done, 1);
}

static void plus_but_not_the_other_way_round(const void *left, void *right, size_t n, void *context)
{
    const double *l = left;
    double *r = right;
    (void)context;
    for (size_t i = 0; i < n; i++)
        r[i] = l[i] + 0.3 * r[i];
}

/* The same bits whichever way, so what is left in the middle may end the other way. */
static void same_both_ways(int n, enum schedule_kind kind, int root, size_t len, bool user, bool in_place)
{
    static double in[MEMBERS][20000], out[2][MEMBERS][20000 * MEMBERS];
    for (int way = 0; way < 2; way++) {
        struct engine_call calls[MEMBERS];
        start(n, way);
        for (int i = 0; i < n; i++) {
            memset(out[way][i], 0, sizeof out[way][i]);
            for (size_t k = 0; k < sizeof in[i] / sizeof(double); k++)
                in[i][k] = 1.0 / (double)(7 * k + 13 * (size_t)i + 3);
            if (in_place || (kind == SCHEDULE_BCAST && i == root))
                memcpy(out[way][i], in[i], sizeof in[i]);
            calls[i] = (struct engine_call){.kind = ENGINE_MOVE,
                                            .move = kind,
                                            .root = root,
                                            .in = in_place ? out[way][i] : in[i],
                                            .out = out[way][i],
                                            .len = len,
                                            .element = {.type = ELEMENT_DOUBLE,
                                                        .op = user ? ELEMENT_USER : ELEMENT_SUM,
                                                        .user = plus_but_not_the_other_way_round}};
        }
        all_do(calls, way);
        for (int i = 0; i < n; i++)
            assert_int_equal(fakes[i].result.status, ENGINE_OK);
        if (way)
            assert_int_equal(sent, 0);
        stop();
    }
    bool gives = kind == SCHEDULE_ALLGATHER || kind == SCHEDULE_ALLTOALL || kind == SCHEDULE_GATHER;
    for (int i = 0; i < n; i++)
        if (i == root || (kind != SCHEDULE_REDUCE && kind != SCHEDULE_GATHER))
            assert_memory_equal(out[0][i], out[1][i], gives ? len * (size_t)n : len);
}

static void board_gives_the_bits_that_messages_give(void **state)
{
    (void)state;
    for (int n = 2; n <= MEMBERS; n++)
        for (int root = 0; root < n; root += 2)
            for (int user = 0; user < 2; user++) {
                same_both_ways(n, SCHEDULE_REDUCE, root, 72, user, false);
                same_both_ways(n, SCHEDULE_REDUCE, root, 40000, user, true);
                same_both_ways(n, SCHEDULE_ALLREDUCE, 0, 8, user, false);
                same_both_ways(n, SCHEDULE_ALLREDUCE, 0, 16000, user, true);
            }
    for (int n = 3; n <= MEMBERS; n++)
        for (int user = 0; user < 2; user++)
            same_both_ways(n, SCHEDULE_ALLREDUCE, 0, 100000, user, n % 2);
    for (int user = 0; user < 2; user++)
        for (int in_place = 0; in_place < 2; in_place++)
            same_both_ways(2, SCHEDULE_ALLREDUCE, 0, 150000, user, in_place);
}

static void board_moves_what_messages_move(void **state)
{
    (void)state;
    static const enum schedule_kind kinds[] = {SCHEDULE_BCAST, SCHEDULE_GATHER, SCHEDULE_SCATTER, SCHEDULE_ALLGATHER,
                                               SCHEDULE_ALLTOALL};
    static const size_t lens[] = {0, 1, 8, 96, 97, 4096, 16000};
    for (int n = 2; n <= MEMBERS; n += 3)
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (size_t l = 0; l < sizeof lens / sizeof lens[0]; l++)
                for (int in_place = 0; in_place < 2; in_place++)
                    same_both_ways(n, kinds[k], n - 1, lens[l], false, in_place);
    same_both_ways(3, SCHEDULE_BCAST, 1, 150000, false, false);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) /* in several turns */
        for (int in_place = 0; in_place < 2; in_place++)
            same_both_ways(3, kinds[k], 1, 50001, false, in_place);
}

static void board_agrees(void **state)
{
    (void)state;
    static const uint64_t want[] = {[ENGINE_AND] = 1, [ENGINE_OR] = 15, [ENGINE_MIN] = 3, [ENGINE_MAX] = 13};
    for (int op = 0; op < 4; op++) {
        struct engine_call calls[3];
        start(3, true);
        for (int i = 0; i < 3; i++)
            calls[i] = (struct engine_call){
                .kind = ENGINE_AGREE, .agree = (enum engine_agree)op, .value = (uint64_t[]){13, 7, 3}[i]};
        all_do(calls, true);
        for (int i = 0; i < 3; i++)
            assert_int_equal(fakes[i].result.value, want[op]);
        stop();
    }
}

static void board_finds_what_does_not_fit(void **state)
{
    (void)state;
    struct engine_call calls[3] = {{.kind = ENGINE_BARRIER}, {.kind = ENGINE_BARRIER}, {.kind = ENGINE_MOVE}};
    uint8_t byte = 0;
    calls[2].move = SCHEDULE_BCAST;
    calls[2].out = &byte;
    calls[2].len = 1;
    start(3, true);
    all_do(calls, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].result.status, ENGINE_MISMATCH);
        assert_null(fakes[i].result.members);
        calls[i] = (struct engine_call){.kind = ENGINE_BARRIER};
    }
    all_do(calls, true); /* and the next call is itself again */
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].result.status, ENGINE_OK);
    stop();
}

static void board_is_left_when_one_takes_messages(void **state)
{
    (void)state;
    struct engine_call call = {.kind = ENGINE_BARRIER};
    struct engine_result r;
    start(2, true);
    assert_true(engine_post(fakes[0].e, &call));
    assert_int_equal(engine_look(fakes[0].e, &r), ENGINE_POST_WAITS);
    begin(1, &call);
    assert_int_equal(engine_look(fakes[0].e, &r), ENGINE_POST_LEFT);
    begin(0, engine_left(fakes[0].e));
    deliver();
    assert_int_equal(fakes[0].done, 1);
    assert_int_equal(fakes[1].done, 1);
    stop();
}

/* What was left in vain several times is tried rarely, by all at the same calls. */
static void board_that_is_in_vain_is_tried_rarely(void **state)
{
    (void)state;
    struct engine_call call = {.kind = ENGINE_BARRIER};
    struct engine_result r;
    int tried[2] = {0, 0};
    start(2, true);
    for (int number = 1; number <= 256; number++) {
        for (int i = 0; i < 2; i++)
            if (engine_post(fakes[i].e, &call)) {
                tried[i]++;
                if (number > 4)
                    assert_int_equal(number % 64, 0);
                assert_int_equal(engine_leave(fakes[i].e, &r), ENGINE_POST_LEFT);
            }
        begin(0, &call);
        begin(1, &call);
        deliver();
    }
    assert_int_equal(tried[0], tried[1]);
    assert_int_equal(tried[0], 4 + 4);
    for (int number = 257; number < 320; number++) {
        assert_false(engine_post(fakes[0].e, &call));
        assert_false(engine_post(fakes[1].e, &call));
        begin(0, &call);
        begin(1, &call);
        deliver();
    }
    struct engine_call calls[2] = {call, call};
    all_do(calls, true); /* 320 is met: back to the board */
    all_do(calls, true);
    stop();
}

static void board_is_not_for_who_has_revoked(void **state)
{
    (void)state;
    struct engine_call call = {.kind = ENGINE_BARRIER}, agree = {.kind = ENGINE_AGREE};
    start(2, true);
    engine_revoke(fakes[0].e, 1);
    assert_false(engine_post(fakes[0].e, &call));
    assert_true(engine_post(fakes[0].e, &agree));
    stop();
}

/* Members may join: a call that was done on the board is given to who joined after it. */
static void board_results_are_kept_for_who_joins(void **state)
{
    (void)state;
    uint64_t data[3] = {41, 0, 0};
    struct engine_call calls[3];
    struct board b;
    start(3, false);
    roster_unref(roster);
    engine_destroy(fakes[2].e);
    roster = of(3, 2, 1);
    for (int i = 0; i < 2; i++) {
        engine_destroy(fakes[i].e);
        create(i, 3);
        assert_true(engine_join(fakes[i].e, 0));
        assert_true(board_attach(&b, memory, 3, GROUP));
        assert_true(engine_board(fakes[i].e, &b));
    }
    for (int i = 0; i < 3; i++)
        calls[i] = (struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = &data[i], .len = 8};
    n_members = 2;
    all_do(calls, true);
    n_members = 3;
    roster_unref(roster);
    roster = of(3, -1, 2);
    assert_true(roster_set_after(roster, (uint64_t[]){0, 0, 0}));
    for (int i = 0; i < 2; i++) {
        assert_true(engine_board(fakes[i].e, NULL));
        assert_true(engine_view(fakes[i].e, roster, 1));
        assert_false(engine_post(fakes[i].e, &calls[i]));
    }
    create(2, 3);
    assert_true(engine_join(fakes[2].e, 0));
    begin(2, &calls[2]);
    engine_tick(fakes[2].e, engine_deadline(fakes[2].e)); /* it asks */
    deliver();
    assert_int_equal(fakes[2].done, 1);
    assert_int_equal(fakes[2].result.status, ENGINE_OK);
    assert_int_equal(data[2], 41);
    stop();
}

/* However long: turns are odd, none is without bytes, and all of it goes. */
static void board_gives_bytes_in_every_turn(void **state)
{
    (void)state;
    uint64_t bits = 3;
    struct roster *two = made_roster(2, &bits, 1);
    for (size_t len = 1; len <= (size_t)9 * BOARD_CHUNK; len += 333) {
        struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .len = len};
        struct together t = {0};
        assert_true(together_begin(&t, &call, two, 2, 0));
        assert_true(t.turns % 2 && t.piece && t.piece <= BOARD_CHUNK);
        assert_true((t.turns - 1) * t.piece < len && len <= t.turns * t.piece);
    }
    roster_unref(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(board_is_met_when_all_have_posted),
        cmocka_unit_test(board_that_was_left_is_left_by_all),
        cmocka_unit_test(board_is_closed_by_who_takes_another_way),
        cmocka_unit_test(board_that_others_have_met_and_gone_on_from_is_met),
        cmocka_unit_test(board_that_somebody_never_posted_is_left_however_far_it_is),
        cmocka_unit_test(board_posts_of_another_view_or_group_do_not_count),
        cmocka_unit_test(board_tells_who_that_is_waited_for_ran_on_the_same_processor),
        cmocka_unit_test(board_is_had_by_one_group_and_empty_for_the_next),
        cmocka_unit_test(board_sides_alternate_within_a_call_and_between_calls),
        cmocka_unit_test(board_verdicts_are_the_same_for_all_threads),
        cmocka_unit_test(board_gives_the_bits_that_messages_give),
        cmocka_unit_test(board_moves_what_messages_move),
        cmocka_unit_test(board_agrees),
        cmocka_unit_test(board_finds_what_does_not_fit),
        cmocka_unit_test(board_is_left_when_one_takes_messages),
        cmocka_unit_test(board_that_is_in_vain_is_tried_rarely),
        cmocka_unit_test(board_is_not_for_who_has_revoked),
        cmocka_unit_test(board_results_are_kept_for_who_joins),
        cmocka_unit_test(board_gives_bytes_in_every_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
