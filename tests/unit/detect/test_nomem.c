/* Membership where memory runs out: whichever allocation of a core fails, it goes on as if none had, or ends and says
 * so; the others see one of them that ended, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/detect/cores.h"

/* The allocator, by the linker: while the code of `poor` runs allocation number `fail` fails, and with `all` each
 * after it, too. */
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static int poor, done, fail;
static bool all;
static long living; /* pieces of memory that cores have */

static bool fails(void)
{
    if (!cores.running || cores.running->id != poor)
        return false;
    done++;
    return fail && (all ? done >= fail : done == fail);
}

void *__wrap_malloc(size_t n)
{
    void *p = fails() ? NULL : __real_malloc(n);
    living += p != NULL;
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = fails() ? NULL : __real_calloc(n, size);
    living += p != NULL;
    return p;
}

void *__wrap_realloc(void *p, size_t n)
{
    void *more = fails() ? NULL : __real_realloc(p, n);
    living += more && !p;
    return more;
}

void __wrap_free(void *p)
{
    living -= p != NULL;
    __real_free(p);
}
// NOLINTEND(bugprone-reserved-identifier)

enum { FEW = 7, MANY = 150 };

static void end_all_but_poor(int node, bool off)
{
    if (node != poor)
        (off ? cores_off : cores_kill)(node);
}

/* Events, a broken link, questions, the death of a coordinator, of one that is merely silent, of the next
 * coordinator. */
static void history_of_few(void)
{
    cores_pass(200 * MS);
    cores.lost[poor][(poor + 1) % FEW] = cores.lost[(poor + 1) % FEW][poor] = true;
    for (int i = 0; i < 20; i++) {
        (void)cores_submit(poor);
        (void)cores_submit((poor + 2) % FEW);
    }
    cores_pass(1500 * MS);
    end_all_but_poor(0, false);
    (void)cores_submit((poor + 2) % FEW);
    (void)cores_submit(poor);
    cores_pass(500 * MS);
    cores.lost[poor][(poor + 1) % FEW] = cores.lost[(poor + 1) % FEW][poor] = false;
    if (cores_is_well(&cores.c[poor]))
        cores_check(poor, 5);
    end_all_but_poor(4, true);
    cores_pass(2000 * MS);
    end_all_but_poor(1, false);
    (void)cores_submit(poor);
    cores_pass(3000 * MS);
}

/* So many deaths, scattered, that sets of them are kept in another form, and batches hold more than one entry each. */
static void history_of_many(void)
{
    cores_pass(100 * MS);
    for (int i = 2; i < MANY - 2; i += 2)
        end_all_but_poor(i, false);
    cores_pass(3000 * MS);
}

static void with_degree(struct member_params *p)
{
    p->topology = MEMBER_RANDOM;
    p->degree = 3;
}

/* True: all allocations were made. */
static bool one_fails(int n, void (*story)(void))
{
    living = done = 0;
    if (cores_start(n, n == FEW ? NULL : with_degree)) {
        const struct core *c = &cores.c[poor];
        story();
        int verdicts = 0;
        for (int i = 0; i < n; i++)
            verdicts += cores_is_well(&cores.c[i]);
        if (c->halted)
            assert_string_equal(c->reason, "out of memory");
        assert_true(verdicts >= (n == FEW ? 3 : n / 2));
        cores_expect_one_view();
    } else {
        assert_true(fail);
        assert_null(cores.c[poor].m);
    }
    cores_end();
    assert_int_equal(living, 0);
    return !fail || done < fail;
}

static void sweep(int n, void (*story)(void), int who)
{
    poor = who;
    for (int mode = 0; mode < 2; mode++) {
        all = mode;
        fail = 0;
        (void)one_fails(n, story);
        do
            fail++;
        while (!one_fails(n, story));
        assert_true(fail > 10);
    }
}

static void test_nomem_coordinator_goes_on_or_ends(void **state)
{
    (void)state;
    sweep(FEW, history_of_few, 0);
}

static void test_nomem_next_coordinator_goes_on_or_ends(void **state)
{
    (void)state;
    sweep(FEW, history_of_few, 1);
}

static void test_nomem_member_goes_on_or_ends(void **state)
{
    (void)state;
    for (int who = 2; who < FEW; who++)
        sweep(FEW, history_of_few, who);
}

static void test_nomem_many_deaths_coordinator_goes_on_or_ends(void **state)
{
    (void)state;
    sweep(MANY, history_of_many, 0);
}

static void test_nomem_many_deaths_member_goes_on_or_ends(void **state)
{
    (void)state;
    sweep(MANY, history_of_many, 75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nomem_coordinator_goes_on_or_ends),
        cmocka_unit_test(test_nomem_next_coordinator_goes_on_or_ends),
        cmocka_unit_test(test_nomem_member_goes_on_or_ends),
        cmocka_unit_test(test_nomem_many_deaths_coordinator_goes_on_or_ends),
        cmocka_unit_test(test_nomem_many_deaths_member_goes_on_or_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
