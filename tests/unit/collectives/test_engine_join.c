/* The engine's members that join: a process that takes a dead one's place, and what the others have done before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine.h"
#include "collectives/group.h"
#include "collectives/message.h"
#include "tests/unit/collectives/fakes.h"
#include "tests/unit/collectives/made.h"

/* Member 2 dies and another process takes its place, that has so many calls behind it. */
static void rejoin(uint64_t complete)
{
    struct roster *without = all_but(3, 2, 2), *with = all_but(3, -1, 3);
    assert_true(roster_set_after(with, (uint64_t[]){0, 0, complete}));
    struct engine_ops ops = {&fakes[2], on_send, on_done, NULL, on_arrived, NULL, NULL};
    for (int i = 0; i < 2; i++) {
        assert_true(engine_view(fakes[i].e, without, now));
        assert_true(engine_view(fakes[i].e, with, now));
    }
    for (int i = head; i < tail; i++)
        if (queue[i].to == 2 || queue[i].from == 2)
            queue[i].len = 0; /* its life is over */
    engine_destroy(fakes[2].e);
    fakes[2] = (struct fake){.id = 2, .e = made_engine(7, 2, with, NULL, &ops)};
    assert_non_null(fakes[2].e);
    assert_true(engine_join(fakes[2].e, complete));
    roster_unref(without);
    roster_unref(with);
}

static void start_joinable(int n)
{
    start(n);
    for (int i = 0; i < n; i++)
        assert_true(engine_join(fakes[i].e, 0));
}

/* It repeats what the others completed without it: a sum, a broadcast, a barrier; they have gone on and wait for it. */
static void test_engine_joined_member_gets_what_the_others_got(void **state)
{
    (void)state;
    uint64_t in[3] = {1, 2, 3}, out[3] = {0}, data[3] = {42, 0, 0};
    for (int kind = 0; kind < 3; kind++) {
        struct engine_call call[3];
        start_joinable(3);
        for (int i = 0; i < 3; i++) {
            call[i] = kind == 0 ? sum_of(&in[i], &out[i], 1)
                      : kind == 1
                          ? (struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = &data[i], .len = 8}
                          : (struct engine_call){.kind = ENGINE_BARRIER};
            begin(i, &call[i]);
        }
        deliver();
        assert_all(ENGINE_OK, 1);
        in[2] = 100;
        out[2] = data[2] = 0;
        rejoin(0);
        for (int i = 0; i < 2; i++)
            begin(i, &(struct engine_call){.kind = ENGINE_BARRIER});
        deliver();
        begin(2, &call[2]);
        deliver();
        let_time_pass();
        assert_int_equal(fakes[2].done, 1);
        assert_int_equal(fakes[2].result[0].status, ENGINE_OK);
        assert_true(kind == 0 ? out[2] == 6 : kind == 1 ? data[2] == 42 : true);
        assert_int_equal(fakes[0].done, 1);
        begin(2, &(struct engine_call){.kind = ENGINE_BARRIER});
        deliver();
        for (int i = 0; i < 3; i++)
            assert_int_equal(fakes[i].done, 2);
        in[2] = 3;
        stop();
    }
}

static void deliver_next(void)
{
    assert_true(head < tail);
    struct letter *l = &queue[head++];
    engine_receive(fakes[l->to].e, l->from, l->data, l->len, now);
    free(l->data);
}

/* It sends what one says that it need not, with all the others' votes; what is on its way to the other has not
 * arrived for that. */
static void test_engine_joined_member_has_not_sent_what_the_others_voted_on(void **state)
{
    (void)state;
    uint64_t data[3] = {0, 0, 42};
    const struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = 2, .len = 8};
    struct engine_call of[3] = {call, call, call};
    start_joinable(3);
    for (int i = 0; i < 3; i++) {
        of[i].out = &data[i];
        begin(i, &of[i]);
    }
    deliver();
    assert_all(ENGINE_OK, 1);
    rejoin(0);
    lose();
    borrows = true;
    begin(2, &of[2]);
    borrows = false;
    assert_true(fakes[2].lent[0] == 1 && fakes[2].lent[1] == 1 && queue[head + 1].from == 2);
    deliver_next(); /* to one, who answers */
    while (queue[tail - 1].to != 2)
        deliver_next();
    struct letter answer = queue[--tail];
    engine_receive(fakes[2].e, answer.from, answer.data, answer.len, now);
    free(answer.data);
    assert_true(head < tail && fakes[2].lent[0] == 1 && fakes[2].lent[1] == 1 && fakes[2].done == 0);
    lose();
    on_arrived(&fakes[2], 2); /* they say that they have it */
    assert_int_equal(fakes[2].done, 1);
    assert_int_equal(fakes[2].result[0].status, ENGINE_OK);
    stop();
}

/* Of those that live: of the others nothing is said any more. */
static void go_on_without_0(void)
{
    for (int round = 0; round < 40; round++) {
        deliver_but(0);
        now += SEC;
        for (int i = 1; i < n_members; i++)
            engine_tick(fakes[i].e, now);
    }
}

/* Who got it from one that completed it then dies or goes on can give it to the others that have not heard. */
static void test_engine_joined_member_passes_the_result_on(void **state)
{
    (void)state;
    uint64_t data[3] = {42, 0, 0};
    start_joinable(3);
    for (int i = 0; i < 3; i++)
        begin(i, &(struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = &data[i], .len = 8});
    while (head < tail) { /* 0 completes, 1 misses the last vote */
        struct letter *l = &queue[head++];
        struct message_head h;
        assert_true(message_head_read(l->data, l->len, &h));
        if (!(h.kind == MESSAGE_VOTE && l->to == 1 && h.tag == 1))
            engine_receive(fakes[l->to].e, l->from, l->data, l->len, now);
        free(l->data);
    }
    assert_true(fakes[0].done == 1 && fakes[1].done == 0);
    rejoin(0);
    data[2] = 0;
    begin(2, &(struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = &data[2], .len = 8});
    for (; head < tail; head++) { /* of all that is said 1 hears nothing from 0 */
        if (queue[head].len && !(queue[head].to == 1 && queue[head].from == 0))
            engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    head = tail = 0;
    struct roster *last = all_but(3, 0, 4);
    assert_true(engine_view(fakes[1].e, last, now) && engine_view(fakes[2].e, last, now));
    go_on_without_0();
    for (int i = 1; i < 3; i++) {
        assert_int_equal(fakes[i].done, 1);
        assert_int_equal(fakes[i].result[0].status, ENGINE_OK);
        assert_int_equal(data[i], 42);
    }
    roster_unref(last);
    stop();
}

/* The only one that had completed the first call is dead: the others do it without its successor, which comes after
 * it. */
static void test_engine_joined_member_is_not_waited_for_in_calls_before_it(void **state)
{
    (void)state;
    uint64_t in[3] = {1, 2, 3}, out[3] = {0};
    struct engine_call call[3];
    for (int order = 0; order < 2; order++) { /* the others begin before it joins, or after */
        start_joinable(3);
        for (int i = 0; i < 2 && order == 0; i++) {
            call[i] = sum_of(&in[i], &out[i], 1);
            begin(i, &call[i]);
        }
        lose();
        rejoin(1);
        for (int i = 0; i < 2 && order == 1; i++) {
            call[i] = sum_of(&in[i], &out[i], 1);
            begin(i, &call[i]);
        }
        begin(2, &(struct engine_call){.kind = ENGINE_BARRIER}); /* its first, the second of all */
        deliver();
        let_time_pass();
        for (int i = 0; i < 2; i++) {
            assert_int_equal(fakes[i].done, 1);
            assert_int_equal(fakes[i].result[0].status, ENGINE_OK);
            assert_int_equal(out[i], 3);
        }
        assert_int_equal(fakes[2].done, 0);
        for (int i = 0; i < 2; i++)
            begin(i, &(struct engine_call){.kind = ENGINE_BARRIER});
        deliver();
        let_time_pass();
        assert_int_equal(fakes[2].done, 1);
        assert_true(fakes[0].done == 2 && fakes[1].done == 2);
        stop();
    }
}

/* The others are in a later attempt when it joins; the sum is of those who live at the end. */
static void test_engine_joined_member_goes_to_the_attempt_of_the_others(void **state)
{
    (void)state;
    uint64_t in[3] = {1, 2, 3}, out[3] = {0};
    struct engine_call call[3];
    start_joinable(3);
    for (int i = 0; i < 2; i++) {
        call[i] = sum_of(&in[i], &out[i], 1);
        begin(i, &call[i]);
    }
    struct roster *without = all_but(3, 2, 2);
    for (int i = 0; i < 2; i++)
        assert_true(engine_view(fakes[i].e, without, now));
    for (bool votes = true; votes;) { /* only votes arrive: attempt 0 is decided, attempt 1 waits for data */
        votes = false;
        for (int k = head, end = tail; k < end; k++) {
            struct message_head h;
            struct letter l = queue[k];
            if (l.len && message_head_read(l.data, l.len, &h) && h.kind == MESSAGE_VOTE && l.to != 2) {
                queue[k].len = 0;
                engine_receive(fakes[l.to].e, l.from, l.data, l.len, now);
                votes = true;
            }
        }
    }
    lose();
    struct roster *with = all_but(3, -1, 3);
    struct engine_ops ops = {&fakes[2], on_send, on_done, NULL, on_arrived, NULL, NULL};
    for (int i = 0; i < 2; i++)
        assert_true(engine_view(fakes[i].e, with, now));
    engine_destroy(fakes[2].e);
    fakes[2] = (struct fake){.id = 2, .e = made_engine(7, 2, with, NULL, &ops)};
    assert_true(engine_join(fakes[2].e, 0));
    call[2] = sum_of(&in[2], &out[2], 1);
    begin(2, &call[2]);
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(out[i], 6);
    roster_unref(without);
    roster_unref(with);
    stop();
}

/* The root dies, and then the only one that has its data, which all have agreed on as the root: its successor has
 * nothing to give. */
static void test_engine_joined_member_has_not_what_it_was_to_give(void **state)
{
    (void)state;
    uint64_t data[4] = {42, 0, 0, 0};
    struct engine_call call[4];
    start_joinable(4);
    for (int i = 0; i < 4; i++)
        call[i] = (struct engine_call){.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .out = &data[i], .len = 8};
    begin(0, &call[0]);
    begin(2, &call[2]);
    while (head < tail) {
        struct letter l = queue[head++];
        if (l.to == 0 || l.to == 2)
            engine_receive(fakes[l.to].e, l.from, l.data, l.len, now);
        free(l.data);
    }
    assert_int_equal(data[2], 42);
    struct roster *three = all_but(4, 0, 2), *two = made_roster(4, (uint64_t[]){1 << 1 | 1 << 3}, 3),
                  *again = all_but(4, 0, 4);
    for (int i = 1; i < 4; i++)
        assert_true(engine_view(fakes[i].e, three, now));
    begin(1, &call[1]);
    begin(3, &call[3]);
    while (head < tail) { /* they agree, and no data arrive */
        struct letter l = queue[head++];
        struct message_head h;
        assert_true(message_head_read(l.data, l.len, &h));
        if (l.to != 0 && h.kind != MESSAGE_DATA)
            engine_receive(fakes[l.to].e, l.from, l.data, l.len, now);
        free(l.data);
    }
    for (int i = 1; i < 4; i++)
        assert_int_equal(fakes[i].done, 0);
    assert_true(engine_view(fakes[1].e, two, now) && engine_view(fakes[3].e, two, now));
    lose();
    assert_true(engine_view(fakes[1].e, again, now) && engine_view(fakes[3].e, again, now));
    engine_destroy(fakes[2].e);
    struct engine_ops ops = {&fakes[2], on_send, on_done, NULL, on_arrived, NULL, NULL};
    fakes[2] = (struct fake){.id = 2, .e = made_engine(7, 2, again, NULL, &ops)};
    assert_true(engine_join(fakes[2].e, 0));
    data[2] = 0;
    begin(2, &call[2]);
    go_on_without_0();
    for (int i = 1; i < 4; i++) {
        assert_int_equal(fakes[i].done, 1);
        assert_int_equal(fakes[i].result[0].status, ENGINE_ROOT_DEAD);
    }
    roster_unref(three);
    roster_unref(two);
    roster_unref(again);
    stop();
}

/* Member i says so, of a decision. */
static struct engine_call decision(int i, uint64_t value)
{
    return (struct engine_call){
        .kind = ENGINE_DECIDE, .agree = ENGINE_MAX, .value = value, .arguments = 77, .place = i == 1 ? 0 : 0x1000};
}

/* The first says something of it: 0 as it should be, else other arguments or another place. Then it dies, and the
 * second, whose place is taken, after so many messages. Returns false if there are not so many. */
static bool decide_and_die(int wrong, int messages)
{
    start_joinable(3);
    for (int i = 0; i < 3; i++) {
        struct engine_call call = decision(i, i == 0 ? 5 : 0);
        call.arguments += wrong == 1 && i == 0;
        call.place += wrong == 2 && i == 0 ? 0x1000 : 0;
        begin(i, &call);
    }
    for (; messages > 0 && head < tail; messages--)
        deliver_next();
    bool known = fakes[1].done, all = head == tail;
    struct engine_result was = fakes[1].result[0];
    lose();
    struct roster *alone = made_roster(3, (uint64_t[]){1 << 2}, 2), *with = made_roster(3, (uint64_t[]){6}, 3);
    assert_true(engine_view(fakes[2].e, alone, now) && engine_view(fakes[2].e, with, now));
    engine_destroy(fakes[1].e);
    struct engine_ops ops = {&fakes[1], on_send, on_done, NULL, on_arrived, NULL, NULL};
    fakes[1] = (struct fake){.id = 1, .e = made_engine(7, 1, with, NULL, &ops)};
    assert_true(engine_join(fakes[1].e, 0));
    struct engine_call call = decision(1, 0);
    begin(1, &call);
    go_on_without_0();
    const struct engine_result *now_1 = &fakes[1].result[0], *now_2 = &fakes[2].result[0];
    assert_true(fakes[1].done == 1 && fakes[2].done == 1);
    assert_int_equal(now_1->status, now_2->status);
    assert_true(now_1->status || now_1->value == now_2->value);
    assert_true(!known || (was.status == now_2->status && (was.status || was.value == now_2->value)));
    assert_true(!known || was.status == (wrong ? ENGINE_MISMATCH : ENGINE_OK));
    assert_true(!known || wrong || was.value == 5);
    roster_unref(alone);
    roster_unref(with);
    stop();
    return !all;
}

/* What one that is dead was told of a decision the others are told, and who takes its place. */
static void test_engine_decision_of_the_dead_holds_for_who_joins(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 3; wrong++)
        for (int messages = 0; decide_and_die(wrong, messages); messages++)
            ;
}

/* One that joins among those who have decided is told what they decided. */
static void test_engine_joined_member_is_told_the_decision(void **state)
{
    (void)state;
    start_joinable(3);
    for (int i = 0; i < 3; i++) {
        struct engine_call call = decision(i, i == 0 ? 5 : 0);
        begin(i, &call);
    }
    deliver();
    assert_all(ENGINE_OK, 1);
    rejoin(0);
    struct engine_call call = decision(2, 0);
    begin(2, &call);
    deliver();
    let_time_pass();
    assert_all(ENGINE_OK, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fakes[i].result[0].value, 5);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_joined_member_gets_what_the_others_got),
        cmocka_unit_test(test_engine_joined_member_has_not_sent_what_the_others_voted_on),
        cmocka_unit_test(test_engine_joined_member_passes_the_result_on),
        cmocka_unit_test(test_engine_joined_member_is_not_waited_for_in_calls_before_it),
        cmocka_unit_test(test_engine_joined_member_goes_to_the_attempt_of_the_others),
        cmocka_unit_test(test_engine_joined_member_has_not_what_it_was_to_give),
        cmocka_unit_test(test_engine_decision_of_the_dead_holds_for_who_joins),
        cmocka_unit_test(test_engine_joined_member_is_told_the_decision),
    };
    return cmocka_run_group_tests_name("engine_join", tests, NULL, NULL);
}
