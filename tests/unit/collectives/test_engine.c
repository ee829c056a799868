/* The engine's answers to what members do wrong, late or not at all. Deaths at every step: tests/sim/coll. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine.h"
#include "collectives/group.h"
#include "collectives/message.h"
#include "tests/unit/collectives/fakes.h"
#include "tests/unit/collectives/made.h"

/* ------------------------------------------------------------------------------------------------ mismatch */

/* One member's call differs in one thing: everybody gets MISMATCH, and the next collective is right again. */
static void mismatch(struct engine_call *call, struct engine_call *other, bool timers)
{
    start(N);
    for (int i = 0; i < N; i++)
        begin(i, i == 4 ? other : call);
    deliver();
    if (timers)
        let_time_pass();
    assert_all(ENGINE_MISMATCH, 1);
    for (int i = 0; i < N; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    assert_all(ENGINE_OK, 2);
    stop();
}

static void leave_alone(const void *left, void *right, size_t n, void *context)
{
    (void)left;
    (void)right;
    (void)n;
    (void)context;
}

static void test_engine_different_arguments_are_a_mismatch_for_all(void **state)
{
    (void)state;
    static uint64_t in[8], out[64];
    struct engine_call call = sum_of(in, out, 4), other = call;
    other.len = 40;
    mismatch(&call, &other, false);
    other = call;
    other.element.op = ELEMENT_MAX;
    mismatch(&call, &other, false);
    other = call;
    other.element.type = ELEMENT_DOUBLE;
    mismatch(&call, &other, false);
    other = call;
    other.move = SCHEDULE_SCAN;
    mismatch(&call, &other, false);
    other = (struct engine_call){.kind = ENGINE_BARRIER};
    mismatch(&call, &other, false);
    struct engine_call min = {.kind = ENGINE_AGREE, .agree = ENGINE_MIN},
                       max = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX};
    mismatch(&min, &max, false);
    call = (struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = out, .len = 64};
    other = call;
    other.root = 4; /* who thinks itself root waits for nobody: found when it comes to the meeting */
    mismatch(&call, &other, true);
    call = (struct engine_call){.kind = ENGINE_MOVE,
                                .move = SCHEDULE_ALLREDUCE,
                                .in = in,
                                .out = out,
                                .len = 16,
                                .element = {.op = ELEMENT_USER, .user = leave_alone, .user_size = 8}};
    other = call;
    other.element.user_size = 4;
    mismatch(&call, &other, false);
}

/* Who gives nothing has nothing to send, and is through with the data at once: it has been told nothing, and tells
 * nobody. */
static void test_engine_root_that_gives_nothing_is_a_mismatch_for_all(void **state)
{
    (void)state;
    static uint64_t out[8];
    for (int n = 2; n <= N; n++) {
        start(n);
        for (int i = 0; i < n; i++)
            begin(i, &(struct engine_call){
                         .kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = out, .len = i ? 64 : 0, .root = 0});
        deliver();
        let_time_pass();
        assert_all(ENGINE_MISMATCH, 1);
        stop();
    }
}

/* Everybody waits for another root's data and nobody sends any: the question that is asked after a while tells. */
static void test_engine_two_that_wait_for_each_other_find_the_mismatch_in_time(void **state)
{
    (void)state;
    static uint64_t out[4];
    start(2);
    for (int i = 0; i < 2; i++)
        begin(i,
              &(struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = out, .len = 32, .root = 1 - i});
    deliver();
    assert_int_equal(fakes[0].done, 0);
    let_time_pass();
    assert_all(ENGINE_MISMATCH, 1);
    stop();
}

/* Blocks of different lengths are not in the signature: the length that comes is not the one expected. */
static void test_engine_block_of_another_length_is_a_mismatch_for_all(void **state)
{
    (void)state;
    static const size_t at[N] = {0, 8, 16, 24, 32, 40}, len[N] = {8, 8, 8, 8, 8, 8};
    static uint64_t in[N], out[N * 2];
    start(N);
    for (int i = 0; i < N; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_MOVE,
                                       .move = SCHEDULE_GATHER,
                                       .in = in,
                                       .out = out,
                                       .varying = true,
                                       .mine = i == 3 ? 16 : 8,
                                       .out_blocks = {at, len}});
    deliver();
    assert_all(ENGINE_MISMATCH, 1);
    stop();
}

/* A member that knows two lengths of its own block: nobody gets it, and nothing is read or written beyond the
 * shorter one. */
static void test_engine_own_block_of_two_lengths_is_a_mismatch_for_all(void **state)
{
    (void)state;
    static const size_t at[N] = {0, 8, 16, 24, 32, 40}, len[N] = {8, 8, 8, 8, 8, 8}, less[N] = {8, 8, 8, 0, 8, 8};
    static const enum schedule_kind moves[] = {SCHEDULE_GATHER, SCHEDULE_SCATTER, SCHEDULE_ALLGATHER,
                                               SCHEDULE_ALLTOALL};
    static uint64_t in[N], out[N];
    for (size_t k = 0; k < sizeof moves / sizeof *moves; k++) {
        start(N);
        for (int i = 0; i < N; i++) {
            bool odd = i == 3;
            struct engine_call call = {.kind = ENGINE_MOVE,
                                       .move = moves[k],
                                       .root = 3,
                                       .in = in,
                                       .out = out,
                                       .varying = true,
                                       .mine = odd ? 0 : 8,
                                       .in_blocks = {at, odd && moves[k] == SCHEDULE_ALLTOALL ? less : len},
                                       .out_blocks = {at, len}};
            begin(i, &call);
        }
        deliver();
        assert_all(ENGINE_MISMATCH, 1);
        stop();
    }
}

static void test_engine_arguments_that_make_no_sense_start_nothing(void **state)
{
    (void)state;
    static uint64_t in[4], out[4];
    uint64_t seq;
    start(2);
    struct engine_call good = sum_of(in, out, 2), bad = good;
    bad.len = 13;
    assert_int_equal(engine_start(fakes[0].e, &bad, now, &seq), ENGINE_BAD);
    bad = good;
    bad.element = (struct element){.type = ELEMENT_DOUBLE, .op = ELEMENT_XOR};
    assert_int_equal(engine_start(fakes[0].e, &bad, now, &seq), ENGINE_BAD);
    bad = good;
    bad.move = SCHEDULE_BCAST;
    bad.root = 2;
    assert_int_equal(engine_start(fakes[0].e, &bad, now, &seq), ENGINE_BAD);
    bad.root = -1;
    assert_int_equal(engine_start(fakes[0].e, &bad, now, &seq), ENGINE_BAD);
    assert_int_equal(tail, 0);
    stop();
}

/* ------------------------------------------------------------------------------------------------ lost, late, many */

static void test_engine_lost_messages_of_a_meeting_are_made_good_by_time(void **state)
{
    (void)state;
    start(5);
    for (int i = 0; i < 5; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_BARRIER});
    lose();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    stop();
}

static void test_engine_lost_data_are_sent_in_another_attempt(void **state)
{
    (void)state;
    static uint64_t in[5][3], out[5][3];
    start(5);
    for (int i = 0; i < 5; i++) {
        in[i][0] = in[i][1] = in[i][2] = (uint64_t)i + 1;
        struct engine_call call = sum_of(in[i], out[i], 3);
        begin(i, &call);
    }
    lose();
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            if (i != k)
                engine_lost(fakes[i].e, k, now);
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(out[i][2], 15);
    stop();
}

/* Who waits long asks often; what is asked of a member that has not begun is not kept there. */
static void test_engine_questions_before_the_call_take_no_memory(void **state)
{
    (void)state;
    size_t used[2];
    start(2);
    begin(0, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    for (int k = 0; k < 2; k++) {
        let_time_pass();
        used[k] = mallinfo2().uordblks;
    }
    assert_true(used[1] <= used[0]);
    begin(1, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    assert_all(ENGINE_OK, 1);
    stop();
}

static void test_engine_late_member_keeps_everybody_waiting_and_is_named(void **state)
{
    (void)state;
    start(4);
    for (int i = 0; i < 3; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    let_time_pass();
    bool named = false;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].done, 0);
        named |= engine_waits_for(fakes[i].e, 2) == 3;
    }
    assert_true(named);
    begin(3, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    stop();
}

/* Many begun before the first is complete: each completes, in order; not more than the window. */
static void test_engine_many_at_a_time_complete_in_order(void **state)
{
    (void)state;
    uint64_t seq;
    start(3);
    struct engine_call call = {.kind = ENGINE_BARRIER};
    for (int k = 0; k < ENGINE_WINDOW; k++)
        for (int i = 0; i < 3; i++)
            begin(i, &call);
    assert_int_equal(engine_start(fakes[0].e, &call, now, &seq), ENGINE_LIMIT);
    deliver();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fakes[i].done, ENGINE_WINDOW);
        for (int k = 1; k < ENGINE_WINDOW; k++)
            assert_true(fakes[i].seq[k] > fakes[i].seq[k - 1]);
    }
    begin(0, &call);
    stop();
}

static void test_engine_alone_completes_at_once(void **state)
{
    (void)state;
    uint64_t in[2] = {3, 4}, out[2] = {0};
    start(1);
    struct engine_call call = sum_of(in, out, 2);
    begin(0, &call);
    assert_all(ENGINE_OK, 1);
    assert_true(out[0] == 3 && out[1] == 4);
    stop();
}

/* ------------------------------------------------------------------------------------------------ revoke, agree,
 * shrink */

/* The first letter that waits, as a long message of one piece. */
static bool place_first_letter(void)
{
    struct letter l = queue[head];
    bool taken = engine_place(fakes[l.to].e, l.from, l.data, l.len - ENGINE_HEAD, 0, l.data + ENGINE_HEAD,
                              l.len - ENGINE_HEAD, now);
    if (taken) {
        free(l.data);
        head++;
    }
    return taken;
}

/* All members have voted that they have finished: what they were sent has arrived, whether they say so or not. */
static void test_engine_what_all_have_finished_need_not_be_acknowledged(void **state)
{
    (void)state;
    static uint64_t in[N][8], out[N][8 * N];
    const struct engine_call calls[] = {
        {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .len = 64},
        {.kind = ENGINE_MOVE, .move = SCHEDULE_GATHER, .root = 2, .in = in[0], .len = 64},
    };
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
        start(N);
        borrows = true;
        for (int i = 0; i < N; i++) {
            struct engine_call call = calls[k];
            call.in = call.in ? in[i] : NULL;
            call.out = out[i];
            begin(i, &call);
        }
        deliver();
        borrows = false;
        assert_all(ENGINE_OK, 1);
        stop();
    }
}

/* An allreduce of halves: the half that was given away comes back as soon as its send is over, though another send
 * is not. */
static void test_engine_long_message_is_placed_when_the_send_of_its_place_is_over(void **state)
{
    (void)state;
    int64_t in[2][16], out[2][16];
    uint64_t seq[2];
    start(2);
    borrows = true;
    for (int m = 0; m < 2; m++) {
        for (int i = 0; i < 16; i++)
            in[m][i] = 100 * m + i;
        struct engine_call call = {.kind = ENGINE_MOVE,
                                   .move = SCHEDULE_ALLREDUCE,
                                   .in = in[m],
                                   .out = out[m],
                                   .len = sizeof in[m],
                                   .element = {.type = ELEMENT_INT64, .op = ELEMENT_SUM},
                                   .algorithm = SCHEDULE_RABENSEIFNER + 1};
        assert_int_equal(engine_start(fakes[m].e, &call, now, &seq[m]), ENGINE_OK);
    }
    assert_true(place_first_letter()); /* 0 -> 1: it has its half, and sends it */
    assert_true(place_first_letter()); /* 1 -> 0: the same */
    for (int to = 0; to < 2; to++) {
        int other = 1 - to;
        assert_int_equal(queue[head].to, to);
        engine_sent(fakes[to].e, other, seq[to], now);
        assert_true(place_first_letter());
        engine_sent(fakes[to].e, other, seq[to], now);
    }
    deliver();
    borrows = false;
    for (int m = 0; m < 2; m++) {
        assert_int_equal(fakes[m].done, 1);
        assert_int_equal(fakes[m].result[0].status, ENGINE_OK);
        for (int i = 0; i < 16; i++)
            assert_int_equal(out[m][i], 100 + 2 * i);
    }
    stop();
}

static void test_engine_revoke_ends_pending_and_future_calls_of_all(void **state)
{
    (void)state;
    uint64_t seq;
    start(N);
    for (int i = 0; i < 3; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_BARRIER}); /* the others never will */
    deliver();
    engine_revoke_for(fakes[5].e, 4, now);
    engine_revoke_for(fakes[5].e, 3, now); /* the first word counts */
    deliver();
    for (int i = 0; i < N; i++) {
        assert_true(engine_revoked(fakes[i].e));
        assert_int_equal(engine_blamed(fakes[i].e), 4);
        assert_int_equal(fakes[i].done, i < 3);
        assert_int_equal(engine_start(fakes[i].e, &(struct engine_call){.kind = ENGINE_BARRIER}, now, &seq),
                         ENGINE_REVOKED);
    }
    for (int i = 0; i < N; i++) /* agreements go on, though the members have begun different numbers of others */
        begin(i, &(struct engine_call){.kind = ENGINE_AGREE, .agree = ENGINE_MIN, .value = 10 + (uint64_t)i});
    deliver();
    for (int i = 0; i < N; i++) {
        const struct engine_result *r = &fakes[i].result[fakes[i].done - 1];
        assert_true(r->status == ENGINE_OK && r->value == 10);
    }
    stop();
}

static void test_engine_who_missed_the_revocation_hears_of_it_when_it_waits(void **state)
{
    (void)state;
    start(4);
    engine_revoke(fakes[0].e, now);
    lose();
    for (int i = 1; i < 4; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    let_time_pass();
    for (int i = 1; i < 4; i++)
        assert_int_equal(fakes[i].result[0].status, ENGINE_REVOKED);
    stop();
}

static void test_engine_agree_combines_by_each_operation(void **state)
{
    (void)state;
    static const uint64_t want[] = {0x10, 0x1f, 0x11, 0x1c};
    for (int op = ENGINE_AND; op <= ENGINE_MAX; op++) {
        static const uint64_t value[3] = {0x13, 0x11, 0x1c};
        start(3);
        for (int i = 0; i < 3; i++)
            begin(i, &(struct engine_call){.kind = ENGINE_AGREE, .agree = (enum engine_agree)op, .value = value[i]});
        deliver();
        for (int i = 0; i < 3; i++)
            assert_int_equal(fakes[i].result[0].value, want[op]);
        stop();
    }
}

/* Member 2 has died, some know it, some do not: all get the same live set. */
static void test_engine_shrink_gives_all_callers_the_same_live_set(void **state)
{
    (void)state;
    start(5);
    struct roster *later = all_but(5, 2, 2);
    engine_destroy(fakes[2].e);
    assert_true(engine_view(fakes[0].e, later, now));
    for (int i = 0; i < 5; i++)
        if (i != 2)
            begin(i, &(struct engine_call){.kind = ENGINE_SHRINK, .shape = MEET_TREE});
    for (int i = 1; i < 5; i++)
        if (i != 2)
            assert_true(engine_view(fakes[i].e, later, now));
    fakes[2].e = NULL;
    deliver_but(2);
    let_time_pass();
    for (int i = 0; i < 5; i++)
        if (i != 2) {
            assert_int_equal(fakes[i].done, 1);
            assert_true(fakes[i].result[0].members == later);
        }
    roster_unref(later);
    stop();
}

/* Non-collective creation: four of ten ranks have nothing but their list. One has died, which only some know; one dies
 * while they meet. Those who live end with the same group, of the same identity, and it works. */
static void test_engine_group_is_created_by_its_members_alone(void **state)
{
    (void)state;
    static const int list[N] = {9, 2, 5, 7, 3, 0};
    struct group *wanted, *made[N] = {NULL};
    assert_int_equal(made_group(10, list, N, 77, &wanted), GROUP_OK);
    start(N);
    struct roster *known = all_but(N, 1, 2), *at_last = NULL;
    uint64_t bits[1] = {roster_bits(known)[0] & ~(1ull << 4)};
    at_last = made_roster(N, bits, 3);
    assert_true(engine_view(fakes[0].e, known, now));
    for (int i = 0; i < N; i++)
        if (i != 1)
            begin(i, &(struct engine_call){.kind = ENGINE_SHRINK, .shape = MEET_TREE});
    deliver_but(1);
    for (int i = 0; i < N; i++) {
        if (i == 1 || i == 4)
            continue;
        if (i)
            assert_true(engine_view(fakes[i].e, known, now));
        assert_true(engine_view(fakes[i].e, at_last, now));
    }
    deliver_but(4);
    for (int i = 0; i < N; i++) {
        if (i == 1 || i == 4)
            continue;
        const struct engine_result *r = &fakes[i].result[0];
        assert_int_equal(fakes[i].done, 1);
        assert_int_equal(r->status, ENGINE_OK);
        made[i] = group_room(N);
        group_keep_in(made[i], wanted, roster_bits(r->members), roster_epoch(r->members));
        assert_int_equal(group_size(made[i]), 4);
        assert_true(group_id(made[i]) == group_id(made[0]));
        for (int k = 0; k < 4; k++)
            assert_int_equal(group_rank(made[i], k), group_rank(made[0], k));
    }
    assert_int_equal(group_rank(made[0], 0), 9);
    assert_int_equal(group_member_of(made[0], 7), 2);
    assert_int_equal(group_member_of(made[0], 2), -1);
    assert_true(group_id(made[0]) != group_id(wanted));
    for (int i = 0; i < N; i++)
        group_unref(made[i]);
    group_unref(wanted);
    roster_unref(known);
    roster_unref(at_last);
    stop();
}

/* The root dies when one of two has its bytes: the other gets them from there. Without that one all are told that it
 * died. */
static void test_engine_broadcast_goes_on_from_who_has_the_bytes(void **state)
{
    (void)state;
    for (int reached = 0; reached < 2; reached++) {
        uint64_t data[3] = {42, 0, 0};
        start(3);
        struct roster *later = all_but(3, 0, 2);
        for (int i = 0; i < 3; i++)
            begin(i, &(struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = &data[i], .len = 8});
        for (int i = head; i < tail; i++)
            if (queue[i].to == 2 || !reached)
                queue[i].len = 0; /* lost with the root */
        deliver();
        assert_true(engine_view(fakes[1].e, later, now));
        assert_true(engine_view(fakes[2].e, later, now));
        deliver_but(0);
        for (int i = 1; i < 3; i++) {
            assert_int_equal(fakes[i].done, 1);
            assert_int_equal(fakes[i].result[0].status, reached ? ENGINE_OK : ENGINE_ROOT_DEAD);
            assert_int_equal(data[i], reached ? 42 : 0);
        }
        roster_unref(later);
        stop();
    }
}

/* ------------------------------------------------------------------------------------------------ no memory for a
 * message */

/* A piece of data could not be kept, before the call or in it: all get the error, and the next call is as ever. */
static void test_engine_data_without_memory_are_an_error_for_all(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        uint64_t in[3] = {1, 2, 3}, out[3];
        start(3);
        for (int i = 0; i < 3 - late; i++) {
            struct engine_call call = sum_of(&in[i], &out[i], 1);
            begin(i, &call);
        }
        for (bool starved = false; head < tail; head++) {
            struct message_head h;
            struct letter *l = &queue[head];
            assert_true(message_head_read(l->data, l->len, &h));
            if (l->to == 2 && h.kind == MESSAGE_DATA && !starved) {
                engine_starved(fakes[2].e, l->from, l->data, MESSAGE_HEAD, now);
                starved = true;
            } else {
                engine_receive(fakes[l->to].e, l->from, l->data, l->len, now);
            }
            free(l->data);
        }
        if (late) {
            struct engine_call call = sum_of(&in[2], &out[2], 1);
            begin(2, &call);
        }
        deliver();
        let_time_pass();
        assert_all(ENGINE_NOMEM, 1);
        for (int i = 0; i < 3; i++) {
            struct engine_call call = sum_of(&in[i], &out[i], 1);
            begin(i, &call);
        }
        deliver();
        assert_int_equal(fakes[2].result[1].status, ENGINE_OK);
        assert_int_equal(out[2], 6);
        stop();
    }
}

/* ------------------------------------------------------------------------------------------------ what is no
 * message */

static void test_engine_garbage_and_strangers_change_nothing(void **state)
{
    (void)state;
    start(3);
    for (int i = 0; i < 2; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    uint8_t bytes[MESSAGE_HEAD + MESSAGE_VOTE_BYTES] = {0};
    for (int kind = 0; kind < 256; kind++)
        for (size_t len = 0; len <= sizeof bytes; len += 8) {
            struct message_head h = {(enum message_kind)kind, 0, 0, 0, 0, 8, 2, 1};
            message_head_write(bytes, &h); /* of another group */
            engine_receive(fakes[0].e, 2, bytes, len, now);
            h.group = 7;
            h.attempt = 9;
            message_head_write(bytes, &h); /* of an attempt that does not exist */
            if (kind != MESSAGE_REVOKED)
                engine_receive(fakes[0].e, 2, bytes, len, now);
            engine_receive(fakes[0].e, 3, bytes, len, now); /* from nobody */
            engine_receive(fakes[0].e, 0, bytes, len, now);
        }
    struct message_head h = {MESSAGE_DECIDED, 0, 0, 0, 0, 7, 2, 99}; /* of a view that is yet to come */
    message_head_write(bytes, &h);
    engine_receive(fakes[0].e, 2, bytes, sizeof bytes, now);
    deliver();
    assert_int_equal(fakes[0].done, 0);
    assert_false(engine_revoked(fakes[0].e));
    uint64_t group;
    assert_true(engine_peek(bytes, sizeof bytes, &group));
    assert_int_equal(group, 7);
    assert_false(engine_peek(bytes, sizeof bytes - 1, &group));
    begin(2, &(struct engine_call){.kind = ENGINE_BARRIER});
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    stop();
}

/* The first two have no memory, or another idea of the call; they die after so many messages. False: there are not
 * so many. */
static bool agree_and_die(enum engine_kind kind, bool mismatch, int messages)
{
    start(3);
    for (int i = 0; i < 3; i++) {
        struct engine_call call = {.kind = kind, .agree = mismatch && i == 0 ? ENGINE_MIN : ENGINE_MAX};
        if (mismatch && i == 0 && kind == ENGINE_SHRINK)
            call.kind = ENGINE_AGREE;
        call.refuses = !mismatch && i == 0;
        begin(i, &call);
    }
    for (; messages > 0 && head < tail; messages--, head++) {
        engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    bool all = head == tail;
    lose();
    struct roster *alone = made_roster(3, (uint64_t[]){1 << 2}, 2);
    assert_true(engine_view(fakes[2].e, alone, now));
    assert_int_equal(fakes[2].done, 1);
    for (int i = 0; i < 2; i++)
        assert_true(!fakes[i].done || (fakes[i].result[0].status == fakes[2].result[0].status &&
                                       fakes[2].result[0].status == (mismatch ? ENGINE_MISMATCH : ENGINE_NOMEM)));
    roster_unref(alone);
    stop();
    return !all;
}

/* The error of an agreement, too: nobody is told that it came to its end of which one that has died was told that it
 * failed. */
static void test_engine_error_of_an_agreement_binds(void **state)
{
    (void)state;
    for (int of = 0; of < 4; of++)
        for (int messages = 0; agree_and_die(of % 2 ? ENGINE_AGREE : ENGINE_SHRINK, of / 2, messages); messages++)
            ;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_different_arguments_are_a_mismatch_for_all),
        cmocka_unit_test(test_engine_two_that_wait_for_each_other_find_the_mismatch_in_time),
        cmocka_unit_test(test_engine_block_of_another_length_is_a_mismatch_for_all),
        cmocka_unit_test(test_engine_own_block_of_two_lengths_is_a_mismatch_for_all),
        cmocka_unit_test(test_engine_root_that_gives_nothing_is_a_mismatch_for_all),
        cmocka_unit_test(test_engine_arguments_that_make_no_sense_start_nothing),
        cmocka_unit_test(test_engine_lost_messages_of_a_meeting_are_made_good_by_time),
        cmocka_unit_test(test_engine_lost_data_are_sent_in_another_attempt),
        cmocka_unit_test(test_engine_questions_before_the_call_take_no_memory),
        cmocka_unit_test(test_engine_late_member_keeps_everybody_waiting_and_is_named),
        cmocka_unit_test(test_engine_many_at_a_time_complete_in_order),
        cmocka_unit_test(test_engine_alone_completes_at_once),
        cmocka_unit_test(test_engine_what_all_have_finished_need_not_be_acknowledged),
        cmocka_unit_test(test_engine_long_message_is_placed_when_the_send_of_its_place_is_over),
        cmocka_unit_test(test_engine_revoke_ends_pending_and_future_calls_of_all),
        cmocka_unit_test(test_engine_who_missed_the_revocation_hears_of_it_when_it_waits),
        cmocka_unit_test(test_engine_agree_combines_by_each_operation),
        cmocka_unit_test(test_engine_shrink_gives_all_callers_the_same_live_set),
        cmocka_unit_test(test_engine_group_is_created_by_its_members_alone),
        cmocka_unit_test(test_engine_broadcast_goes_on_from_who_has_the_bytes),
        cmocka_unit_test(test_engine_data_without_memory_are_an_error_for_all),
        cmocka_unit_test(test_engine_error_of_an_agreement_binds),
        cmocka_unit_test(test_engine_garbage_and_strangers_change_nothing),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
