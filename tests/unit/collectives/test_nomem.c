/* Collectives where memory runs out: whichever allocation fails on a member, nobody waits for ever, and all return
 * the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "tests/unit/collectives/fakes.h"

/* The allocator, by the linker: while a member is `poor` allocation number `fail` fails, and with `all` each after
 * it, too. */
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static int done, fail;
static bool all;

static bool fails(void)
{
    if (!poor)
        return false;
    done++;
    return fail && (all ? done >= fail : done == fail);
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}
// NOLINTEND(bugprone-reserved-identifier)

static uint64_t in[N], out[N];

static struct engine_call call_of(int kind, int i)
{
    struct engine_call call = sum_of(&in[i], &out[i], 1);
    in[i] = 1ull << i;
    if (kind == 1)
        call = (struct engine_call){.kind = ENGINE_AGREE, .agree = ENGINE_OR, .value = in[i]};
    if (kind == 2)
        call.move = SCHEDULE_REDUCE;
    if (kind == 3)
        call = (struct engine_call){.kind = ENGINE_BARRIER};
    call.early = kind == 4;
    call.refuses = kind == 5 && i == 0;
    if (kind == 6)
        call.in = call.out;
    if (kind == 6)
        out[i] = in[i];
    return call;
}

/* What member 0 sends is lost while it has no memory: what the others need of it they ask for when it has. True: all
 * allocations were made. */
static bool one_fails(int n, int kind)
{
    done = 0;
    start(n);
    for (int i = 1; i < n; i++) {
        struct engine_call call = call_of(kind, i);
        begin(i, &call);
    }
    struct engine_call mine = call_of(kind, 0);
    uint64_t seq;
    enum engine_status status;
    poor = true;
    status = engine_start(fakes[0].e, &mine, now, &seq);
    poor = false;
    assert_int_equal(status, ENGINE_OK); /* it takes part all the same: the others wait for it */
    for (int k = head; k < tail; k++) {
        poor = queue[k].to == 0;
        if (queue[k].to == 0)
            engine_receive(fakes[0].e, queue[k].from, queue[k].data, queue[k].len, now);
        poor = false;
    }
    lose();
    for (int i = 1; i < n; i++) {
        engine_lost(fakes[0].e, i, now);
        engine_lost(fakes[i].e, 0, now);
    }
    deliver();
    let_time_pass();
    for (int i = 0; i < n; i++) {
        assert_int_equal(fakes[i].done, 1);
        assert_int_equal(fakes[i].result[0].status, fakes[0].result[0].status);
    }
    for (int i = 0; i < n; i++)
        engine_settle(fakes[i].e, now);
    deliver();
    let_time_pass();
    for (int i = 0; i < n; i++)
        assert_true(engine_settled(fakes[i].e));
    stop();
    return done < fail;
}

static void test_nomem_whatever_fails_all_return_the_same(void **state)
{
    (void)state;
    for (int kind = 0; kind < 7; kind++)
        for (int n = 2; n <= 5; n++)
            for (int each = 0; each < 2; each++) {
                bool through = false;
                all = each;
                for (fail = 1; !through; fail++)
                    through = one_fails(n, kind);
            }
}

/* Whatever it begins while there is no memory: what cannot be begun is not, and all that was returns the same, again
 * and again. */
static void test_nomem_begun_while_there_is_none_fails_for_all(void **state)
{
    (void)state;
    start(3);
    all = true;
    fail = 1;
    for (int round = 0; round < 5; round++) {
        struct engine_call mine = call_of(3, 0);
        uint64_t seq;
        done = 0;
        poor = true;
        assert_int_equal(engine_start(fakes[0].e, &mine, now, &seq), ENGINE_OK);
        assert_int_equal(engine_start(fakes[0].e, &mine, now, &seq), ENGINE_LIMIT);
        poor = false;
        for (int i = 1; i < 3; i++) {
            struct engine_call call = call_of(3, i);
            begin(i, &call);
        }
        deliver();
        let_time_pass();
        assert_all(ENGINE_NOMEM, round + 1);
    }
    stop();
}

/* Somebody has joined after the call that the others are about to begin: who has no memory begins it all the same. */
static bool one_fails_beside_who_joins(int kind)
{
    uint64_t seq;
    start(3);
    for (int i = 0; i < 3; i++)
        assert_true(engine_join(fakes[i].e, 0));
    struct roster *without = all_but(3, 2, 2), *with = all_but(3, -1, 3);
    assert_true(roster_set_after(with, (uint64_t[]){0, 0, 1}));
    for (int i = 0; i < 2; i++) {
        assert_true(engine_view(fakes[i].e, without, now));
        assert_true(engine_view(fakes[i].e, with, now));
    }
    struct engine_call call = call_of(kind, 1), mine = call_of(kind, 0);
    begin(1, &call);
    done = 0;
    poor = true;
    assert_int_equal(engine_start(fakes[0].e, &mine, now, &seq), ENGINE_OK);
    poor = false;
    deliver_but(2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fakes[i].done, 1);
        assert_int_equal(fakes[i].result[0].status, fakes[0].result[0].status);
    }
    roster_unref(without);
    roster_unref(with);
    stop();
    return done < fail;
}

static void test_nomem_beside_who_joins_all_are_told(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind += 3)
        for (int each = 0; each < 2; each++) {
            bool through = false;
            all = each;
            for (fail = 1; !through; fail++)
                through = one_fails_beside_who_joins(kind);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nomem_whatever_fails_all_return_the_same),
        cmocka_unit_test(test_nomem_begun_while_there_is_none_fails_for_all),
        cmocka_unit_test(test_nomem_beside_who_joins_all_are_told),
    };
    return cmocka_run_group_tests_name("coll-nomem", tests, NULL, NULL);
}
