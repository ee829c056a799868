/* Small sums return with the data: what remains for those who have not got them, and when it goes. Deaths and leaves at
 * every step: tests/sim/coll. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/message.h"
#include "tests/unit/collectives/fakes.h"

static uint64_t in[N], out[N];

static void begin_sum(int i)
{
    struct engine_call call = sum_of(&in[i], &out[i], 1);
    in[i] = 1ull << i;
    out[i] = 0;
    call.early = true;
    begin(i, &call);
}

static void start_sum(int n)
{
    start(n);
    for (int i = 0; i < n; i++)
        begin_sum(i);
}

/* Nobody meets; and the next sum shows that nobody needs the first one any more. */
static void test_early_sum_returns_without_a_meeting(void **state)
{
    (void)state;
    start_sum(4);
    for (int i = head; i < tail; i++)
        assert_int_equal(queue[i].data[0], MESSAGE_DATA);
    deliver();
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 4; i++) {
            assert_int_equal(fakes[i].done, 1);
            assert_int_equal(fakes[i].result[0].status, ENGINE_OK);
            assert_int_equal(out[i], 15);
            assert_true(engine_deadline(fakes[i].e) == UINT64_MAX);
            assert_true(engine_unsettled(fakes[i].e) == 2 * (uint64_t)(round + 1)); /* the last one alone */
            fakes[i].done = 0;
        }
        let_time_pass();
        for (int i = 0; i < 4; i++)
            begin_sum(i);
        deliver();
    }
    stop();
}

/* Two of three have returned when what they sent to the third is lost with its connections: it gets the bytes, and
 * all the list. */
static void test_early_sum_reaches_who_missed_it(void **state)
{
    (void)state;
    start_sum(3);
    for (; head < tail; head++) {
        if (queue[head].to != 2)
            engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    assert_true(fakes[0].done + fakes[1].done > 0 && !fakes[2].done);
    out[0] = out[1] = 0; /* the callers' again */
    for (int i = 0; i < 2; i++)
        engine_lost(fakes[i].e, 2, now);
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    assert_int_equal(out[2], 7);
    for (int i = 0; i < 3; i++)
        assert_true(engine_settled(fakes[i].e));
    stop();
}

/* Who leaves has settled when all have what it returned, not before; also one that has forgotten the call answers. */
static void test_early_sum_is_settled_before_its_member_leaves(void **state)
{
    (void)state;
    start_sum(2);
    engine_receive(fakes[0].e, 1, queue[1].data, queue[1].len, now); /* what goes to member 1 is still on its way */
    assert_true(fakes[0].done == 1 && !fakes[1].done);
    engine_settle(fakes[0].e, now);
    assert_false(engine_settled(fakes[0].e));
    assert_int_equal(queue[0].to, 1);
    engine_receive(fakes[1].e, 0, queue[0].data, queue[0].len, now);
    assert_false(engine_settled(fakes[0].e));
    head = 2;
    free(queue[0].data);
    free(queue[1].data);
    deliver();
    assert_all(ENGINE_OK, 1);
    assert_true(engine_settled(fakes[0].e));
    stop();
}

static void test_early_sum_that_others_have_forgotten_is_settled(void **state)
{
    (void)state;
    start_sum(2);
    deliver();
    begin_sum(0); /* what member 1 says of the first with its second does not arrive before member 0 leaves the first */
    begin_sum(1);
    engine_receive(fakes[1].e, 0, queue[0].data, queue[0].len, now);
    engine_settle(fakes[0].e, now); /* of the first */
    for (int i = 1; i < tail; i++)
        if (queue[i].data[0] == MESSAGE_DATA && queue[i].to == 0)
            queue[i].len = 0;
    deliver();
    assert_int_equal(fakes[0].done, 1);
    assert_false(engine_settled(fakes[0].e));
    let_time_pass();
    assert_true(engine_settled(fakes[0].e));
    stop();
}

/* A call that was begun and comes to its end while its member leaves: nobody would ask about it, so it has met
 * before it returns. */
static void test_early_sum_that_ends_while_its_member_leaves_is_settled(void **state)
{
    (void)state;
    start_sum(2);
    deliver();
    begin_sum(0);
    for (int i = 0; i < tail; i++)
        assert_int_equal(queue[i].to, 1);
    engine_settle(fakes[0].e, now); /* the first one: member 1 has not heard that it has returned */
    assert_false(engine_settled(fakes[0].e));
    begin_sum(1);
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 2);
    assert_true(engine_settled(fakes[0].e));
    stop();
}

/* What a call failed for only the votes of all say: who leaves makes sure that the others have heard it. */
static void test_mismatch_is_heard_by_all_before_a_member_leaves(void **state)
{
    (void)state;
    start(2);
    begin_sum(0);
    begin(1, &(struct engine_call){.kind = ENGINE_BARRIER});
    int seen = 0;
    for (; seen < tail; seen++)
        if (queue[seen].to == 0)
            engine_receive(fakes[0].e, 1, queue[seen].data, queue[seen].len, now);
    assert_true(fakes[0].done == 1 && !fakes[1].done);
    engine_settle(fakes[0].e, now);
    assert_false(engine_settled(fakes[0].e));
    assert_int_equal(engine_waits_for(fakes[0].e, engine_unsettled(fakes[0].e)), 1);
    lose(); /* it asks again */
    let_time_pass();
    assert_all(ENGINE_MISMATCH, 1);
    assert_true(engine_settled(fakes[0].e));
    stop();
}

/* Who had no memory for the others' data gets the result when there is some: they have returned it. */
static void test_early_sum_returned_by_others_is_no_want_of_memory(void **state)
{
    (void)state;
    start_sum(2);
    int lost = queue[0].to == 1 ? 0 : 1;
    engine_receive(fakes[0].e, 1, queue[1 - lost].data, queue[1 - lost].len, now);
    assert_true(fakes[0].done == 1);
    engine_starved(fakes[1].e, 0, queue[lost].data, MESSAGE_HEAD, now);
    free(queue[0].data);
    free(queue[1].data);
    head = 2;
    deliver();
    assert_int_equal(fakes[1].done, 0); /* not at once: there is none yet */
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    assert_int_equal(out[1], 3);
    stop();
}

/* It was the data of the second attempt that it had none for, while it was in the meeting before that: nobody waits
 * for ever. */
static void test_early_sum_ends_without_memory_for_data_of_the_next_attempt(void **state)
{
    (void)state;
    start_sum(2);
    lose();
    engine_lost(fakes[0].e, 1, now);
    engine_lost(fakes[1].e, 0, now);
    int starved = 0, seen = 0;
    for (; seen < tail; seen++) /* member 0 is through with the meeting first, */
        if (queue[seen].to == 0)
            engine_receive(fakes[0].e, 1, queue[seen].data, queue[seen].len, now);
    for (int i = 0; i < seen; i++) /* and its data for the second attempt come before its vote in the first */
        if (queue[i].to == 1 && queue[i].data[0] == MESSAGE_DATA) {
            engine_starved(fakes[1].e, 0, queue[i].data, MESSAGE_HEAD, now);
            starved++;
        }
    assert_int_equal(starved, 1);
    for (; head < seen; head++) {
        if (queue[head].to == 1 && queue[head].data[0] != MESSAGE_DATA)
            engine_receive(fakes[1].e, 0, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    deliver();
    let_time_pass();
    assert_true(fakes[0].done == 1 && fakes[1].done == 1);
    assert_int_equal(fakes[0].result[0].status, fakes[1].result[0].status);
    stop();
}

/* A member that begins many and waits for none: so many are behind there, and remain here; never more than the
 * window. */
static void test_early_sums_begun_at_once_remain_until_all_have_returned(void **state)
{
    (void)state;
    static uint64_t many[2][ENGINE_WINDOW];
    start(2);
    for (int k = 0; k < ENGINE_WINDOW; k++)
        for (int i = 0; i < 2; i++) {
            struct engine_call call = sum_of(&in[i], &many[i][k], 1);
            call.early = true;
            in[i] = 1;
            begin(i, &call);
        }
    uint64_t seq;
    struct engine_call barrier = {.kind = ENGINE_BARRIER};
    assert_int_equal(engine_start(fakes[0].e, &barrier, now, &seq), ENGINE_LIMIT);
    deliver();
    assert_all(ENGINE_OK, ENGINE_WINDOW);
    assert_true(engine_unsettled(fakes[0].e) != 0);
    for (int i = 0; i < 2; i++)
        begin(i, &barrier); /* what has returned takes no place */
    deliver();
    assert_true(engine_settled(fakes[0].e) && engine_settled(fakes[1].e)); /* its votes said that all have returned */
    stop();
}

/* The root has sent to two of three and returned; it lives, the third's letter is lost with its connection: it gets
 * the bytes. */
static void test_early_broadcast_reaches_who_missed_it(void **state)
{
    (void)state;
    uint64_t data[3] = {42, 0, 0};
    start(3);
    for (int i = 0; i < 3; i++)
        begin(i, &(struct engine_call){
                     .kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = &data[i], .len = 8, .early = true});
    assert_int_equal(fakes[0].done, 1);
    data[0] = 0; /* the root's buffer is its own again */
    for (int i = head; i < tail; i++)
        if (queue[i].from == 0 && queue[i].to == 2)
            queue[i].len = 0; /* lost */
    engine_lost(fakes[0].e, 2, now);
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    assert_true(data[1] == 42 && data[2] == 42);
    stop();
}

/* Member 1 has begun two and has neither; who has both keeps both for it. */
static void test_early_sums_are_kept_for_who_is_behind(void **state)
{
    (void)state;
    start(2);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            begin_sum(i);
    for (; head < tail; head++) {
        if (queue[head].to == 0)
            engine_receive(fakes[0].e, 1, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    assert_true(fakes[0].done == 2 && !fakes[1].done);
    engine_lost(fakes[0].e, 1, now);
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 2);
    stop();
}

enum { FIRST = 2 }; /* the name of the first ordinary call */

static void deliver_data(void)
{
    for (; head < tail; head++) {
        assert_int_equal(queue[head].data[0], MESSAGE_DATA);
        engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    head = tail = 0;
}

/* What it has sent is not its own again when its data are here: it waits for that, but nobody has to meet, nor to
 * ask. */
static void test_early_gathering_waits_for_what_it_has_lent_and_meets_nobody(void **state)
{
    (void)state;
    static uint64_t all[4][4];
    borrows = true;
    start(4);
    for (int i = 0; i < 4; i++) {
        in[i] = (uint64_t)i;
        begin(i, &(struct engine_call){.kind = ENGINE_MOVE,
                                       .move = SCHEDULE_ALLGATHER,
                                       .algorithm = SCHEDULE_BRUCK + 1,
                                       .in = &in[i],
                                       .out = all[i],
                                       .len = 8,
                                       .early = true});
    }
    deliver_data();
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fakes[i].done, 0);
        on_arrived(&fakes[i], FIRST);
        assert_int_equal(fakes[i].done, 1);
        assert_int_equal(all[i][3 - i], 3 - i);
    }
    assert_int_equal(head, tail);
    stop();
    borrows = false;
}

/* Or has it copied, and need not wait. */
static void test_early_sum_takes_back_what_it_has_lent(void **state)
{
    (void)state;
    borrows = keeps = true;
    start_sum(4);
    deliver_data();
    assert_all(ENGINE_OK, 1);
    stop();
    borrows = keeps = false;
}

static uint64_t gives[N][N], gets[N][N];

static void begin_exchange(int i, bool in_place)
{
    for (int to = 0; to < n_members; to++) {
        gives[i][to] = (uint64_t)(10 * i + to + 1);
        gets[i][to] = in_place ? gives[i][to] : 99;
    }
    begin(i, &(struct engine_call){.kind = ENGINE_MOVE,
                                   .move = SCHEDULE_ALLTOALL,
                                   .in = in_place ? gets[i] : gives[i],
                                   .out = gets[i],
                                   .len = 8,
                                   .early = true});
}

/* Two exchange: who has the other's block has all, and does not meet. */
static void test_early_exchange_of_two_returns_without_a_meeting(void **state)
{
    (void)state;
    start(2);
    for (int i = 0; i < 2; i++)
        begin_exchange(i, i);
    deliver_data();
    assert_all(ENGINE_OK, 1);
    for (int i = 0; i < 2; i++)
        for (int from = 0; from < 2; from++)
            assert_int_equal(gets[i][from], 10 * from + i + 1);
    stop();
}

/* Three do: one that returned and died would have been alone with its block for the third. */
static void test_early_exchange_of_three_meets(void **state)
{
    (void)state;
    start(3);
    for (int i = 0; i < 3; i++)
        begin_exchange(i, false);
    for (; queue[head].data[0] == MESSAGE_DATA; head++) {
        engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].done, 0);
    deliver();
    assert_all(ENGINE_OK, 1);
    stop();
}

/* The third is dead, and was in the first attempt of member 1. Member 0 has returned, and its buffers are its own
 * again, when what it sent is lost: it sends that again, from what it has kept. */
static void test_early_exchange_reaches_who_missed_it(void **state)
{
    (void)state;
    start(3);
    begin_exchange(1, true);
    struct roster *two = all_but(3, 2, 2);
    for (int i = 0; i < 2; i++)
        assert_true(engine_view(fakes[i].e, two, now));
    begin_exchange(0, false);
    deliver_but(2);
    let_time_pass();
    assert_true(fakes[0].done == 1 && fakes[1].done == 1);
    for (int i = 0; i < 2; i++)
        begin_exchange(i, i);
    int lost = 0;
    for (; head < tail; head++) {
        if (queue[head].to == 0)
            engine_receive(fakes[0].e, 1, queue[head].data, queue[head].len, now);
        lost += queue[head].to == 1;
        free(queue[head].data);
    }
    assert_true(lost && fakes[0].done == 2 && fakes[1].done == 1);
    assert_true(gets[0][0] == 1 && gets[0][1] == 11 && gets[0][2] == 0);
    memset(gives[0], 0, sizeof gives[0]);
    memset(gets[0], 7, sizeof gets[0]);
    engine_lost(fakes[0].e, 1, now);
    deliver_but(2);
    let_time_pass();
    assert_true(fakes[1].done == 2 && fakes[1].result[1].status == ENGINE_OK);
    assert_true(gets[1][0] == 2 && gets[1][1] == 12 && gets[1][2] == 0);
    for (size_t b = 0; b < sizeof gets[0]; b++)
        assert_int_equal(((const uint8_t *)gets[0])[b], 7);
    assert_true(engine_settled(fakes[0].e) && engine_settled(fakes[1].e));
    roster_unref(two);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early_sum_returns_without_a_meeting),
        cmocka_unit_test(test_early_sum_reaches_who_missed_it),
        cmocka_unit_test(test_early_sum_is_settled_before_its_member_leaves),
        cmocka_unit_test(test_early_sum_that_others_have_forgotten_is_settled),
        cmocka_unit_test(test_early_sum_that_ends_while_its_member_leaves_is_settled),
        cmocka_unit_test(test_mismatch_is_heard_by_all_before_a_member_leaves),
        cmocka_unit_test(test_early_sum_returned_by_others_is_no_want_of_memory),
        cmocka_unit_test(test_early_sum_ends_without_memory_for_data_of_the_next_attempt),
        cmocka_unit_test(test_early_sums_begun_at_once_remain_until_all_have_returned),
        cmocka_unit_test(test_early_sums_are_kept_for_who_is_behind),
        cmocka_unit_test(test_early_broadcast_reaches_who_missed_it),
        cmocka_unit_test(test_early_gathering_waits_for_what_it_has_lent_and_meets_nobody),
        cmocka_unit_test(test_early_sum_takes_back_what_it_has_lent),
        cmocka_unit_test(test_early_exchange_of_two_returns_without_a_meeting),
        cmocka_unit_test(test_early_exchange_of_three_meets),
        cmocka_unit_test(test_early_exchange_reaches_who_missed_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
