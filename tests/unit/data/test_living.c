/* Numbers that stand for what a program holds (runtime/client/api/living.c). */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "runtime/client/api/living.h"
#include "tests/unit/data/memory.h"

enum { MANY = 1000 };

static int object[MANY];
static void *number[MANY];

static void *as_pointer(uint64_t bits)
{
    return (void *)(uintptr_t)bits; // NOLINT(performance-no-int-to-ptr)
}

static void test_living_many_each_found_by_its_kind_only(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        number[i] = living_take(i % 2 ? LIVING_GROUP : LIVING_POOL);
        assert_non_null(number[i]);
        assert_null(living_find(number[i], i % 2 ? LIVING_GROUP : LIVING_POOL));
        living_set(number[i], &object[i]);
    }
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(living_find(number[i], i % 2 ? LIVING_GROUP : LIVING_POOL), &object[i]);
        assert_null(living_find(number[i], i % 2 ? LIVING_POOL : LIVING_GROUP));
    }
    for (int i = 0; i < MANY; i++)
        living_give_back(number[i]);
}

static void test_living_stale_and_foreign_are_nobodys(void **state)
{
    (void)state;
    void *first = living_take(LIVING_GROUP);
    living_set(first, &object[0]);
    living_give_back(first);
    assert_null(living_find(first, LIVING_GROUP));
    void *second = living_take(LIVING_GROUP);
    living_set(second, &object[1]);
    assert_ptr_not_equal(first, second);
    assert_null(living_find(first, LIVING_GROUP));
    living_give_back(first); /* twice: not what is there now */
    assert_ptr_equal(living_find(second, LIVING_GROUP), &object[1]);
    assert_null(living_find(NULL, LIVING_GROUP));
    assert_null(living_find(&object[0], LIVING_GROUP));
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_null(living_find(as_pointer((uint64_t)1 << bit), LIVING_GROUP));
        assert_null(living_find(as_pointer((uintptr_t)second ^ (uint64_t)1 << bit), LIVING_GROUP));
    }
    assert_null(living_find(as_pointer(UINT64_MAX), LIVING_GROUP));
    living_give_back(second);
}

static void test_living_becomes_another_kind(void **state)
{
    (void)state;
    void *n = living_take(LIVING_REQUEST);
    living_set(n, &object[0]);
    living_become(n, LIVING_COVERED, &object[1]);
    assert_null(living_find(n, LIVING_REQUEST));
    assert_ptr_equal(living_find(n, LIVING_COVERED), &object[1]);
    living_give_back(n);
}

static void *poor_take(enum living_kind kind)
{
    memory_fail_at(1);
    void *n = living_take(kind);
    memory_fail_at(0);
    return n;
}

/* The last one is a group's. */
static void test_living_without_memory_one_group_more(void **state)
{
    (void)state;
    int n = 0;
    while (n < MANY && (number[n] = poor_take(LIVING_REQUEST)))
        n++;
    void *group = poor_take(LIVING_GROUP), *none = poor_take(LIVING_GROUP);
    assert_true(n < MANY);
    assert_non_null(group);
    assert_null(none);
    void *again = living_take(LIVING_REQUEST);
    assert_non_null(again);
    living_give_back(again);
    living_give_back(group);
    for (int i = 0; i < n; i++)
        living_give_back(number[i]);
}

/* Another thread gives back and takes the same place all the time: who looks finds its own object or none, never
 * another's. */
static atomic_bool stop;
static void *_Atomic shown;

static void *change(void *arg)
{
    (void)arg;
    for (int i = 0; !atomic_load(&stop); i ^= 1) {
        void *n = living_take(i ? LIVING_REQUEST : LIVING_POOL);
        living_set(n, i ? &object[1] : &object[0]);
        atomic_store(&shown, n);
        if (i)
            living_become(n, LIVING_COVERED, &object[2]);
        living_give_back(n);
    }
    return NULL;
}

static void test_living_found_while_another_changes_is_right(void **state)
{
    (void)state;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, change, NULL), 0);
    for (int i = 0; i < 300000; i++) {
        void *n = atomic_load(&shown);
        void *pool = living_find(n, LIVING_POOL), *request = living_find(n, LIVING_REQUEST),
             *covered = living_find(n, LIVING_COVERED);
        assert_true(!pool || pool == &object[0]);
        assert_true(!request || request == &object[1]);
        assert_true(!covered || covered == &object[2]);
    }
    atomic_store(&stop, true);
    pthread_join(t, NULL);
}

static void test_living_forgotten_nothing_is_found(void **state)
{
    (void)state;
    void *n = living_take(LIVING_GROUP);
    living_set(n, &object[0]);
    living_forget();
    assert_null(living_find(n, LIVING_GROUP));
    living_give_back(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_living_without_memory_one_group_more),
        cmocka_unit_test(test_living_many_each_found_by_its_kind_only),
        cmocka_unit_test(test_living_stale_and_foreign_are_nobodys),
        cmocka_unit_test(test_living_becomes_another_kind),
        cmocka_unit_test(test_living_found_while_another_changes_is_right),
        cmocka_unit_test(test_living_forgotten_nothing_is_found),
    };
    return cmocka_run_group_tests_name("living", tests, NULL, NULL);
}
