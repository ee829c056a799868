/* Copies whose words on the shared side are whole: the right bytes for every length and place, and no torn word beside
 * who writes or reads the same memory. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/words.h"

enum { PAGE = 4096, ROOM = 4 * PAGE, ROUNDS = 4000 };

typedef void copy_fn(void *to, const void *from, size_t len);

static uint8_t *room(void)
{
    uint8_t *p = aligned_alloc(PAGE, ROOM);
    assert_non_null(p);
    return p;
}

static void copies(copy_fn *copy, size_t to_at, size_t from_at, size_t len)
{
    static uint8_t *to, *from, *want;
    if (!to) {
        to = room();
        from = room();
        want = room();
        for (size_t i = 0; i < ROOM; i++)
            from[i] = (uint8_t)(i * 7 + i / 251);
    }
    memset(to, 0xee, ROOM);
    memset(want, 0xee, ROOM);
    for (size_t i = 0; i < len; i++)
        want[to_at + i] = from[from_at + i];
    copy(to + to_at, from + from_at, len);
    assert_memory_equal(to, want, ROOM);
}

static void test_words_every_length_and_place(void **state)
{
    (void)state;
    for (size_t to = 0; to < 9; to++)
        for (size_t from = 0; from < 9; from++)
            for (size_t len = 0; len < 300; len += len < 40 ? 1 : 23) {
                copies(words_store, to, from, len);
                copies(words_load, to, from, len);
            }
}

static void test_words_long_ones(void **state)
{
    (void)state;
    const size_t len[] = {1023, 2048, 4096, 8191, 10000};
    for (size_t l = 0; l < sizeof len / sizeof len[0]; l++)
        for (size_t at = 0; at < 70; at += 3) {
            copies(words_store, at, 0, len[l]);
            copies(words_load, at, 0, len[l]);
            copies(words_store, 0, at, len[l]);
            copies(words_load, 0, at, len[l]);
        }
}

/* ------------------------------------------------------------------------------------------------ whole words */

static uint64_t *shared;
static atomic_bool runs, stop;

static uint64_t pattern(uint64_t number)
{
    return number % 2 ? UINT64_MAX : 0;
}

static void *write_words(void *arg)
{
    (void)arg;
    runs = true;
    for (uint64_t number = 0; !stop; number++)
        for (size_t i = 0; i < ROOM / 8; i++)
            __atomic_store_n(&shared[i], pattern(number), __ATOMIC_RELAXED);
    return NULL;
}

static void *read_words(void *torn)
{
    runs = true;
    while (!stop)
        for (size_t i = 0; i < ROOM / 8; i++) {
            uint64_t word = __atomic_load_n(&shared[i], __ATOMIC_RELAXED);
            *(size_t *)torn += word && word != UINT64_MAX;
        }
    return NULL;
}

/* A little behind the other, modulo a page: there memcpy goes byte by byte. */
static const size_t behind[] = {0, 1, 8, 16, 24, 40, PAGE - 16, PAGE - 8};
enum { PLACES = sizeof behind / sizeof behind[0] };

static void test_words_are_read_whole(void **state)
{
    (void)state;
    pthread_t writer;
    uint8_t *own = aligned_alloc(PAGE, 2 * ROOM);
    size_t torn = 0;
    shared = (void *)room();
    memset(shared, 0, ROOM);
    runs = stop = false;
    assert_int_equal(pthread_create(&writer, NULL, write_words, NULL), 0);
    while (!runs)
        (void)sched_yield();
    for (int round = 0; round < ROUNDS; round++)
        for (size_t p = 0; p < PLACES; p++) {
            words_load(own + behind[p], shared, ROOM - 8);
            for (size_t i = 0; i < ROOM / 8 - 1; i++) {
                uint64_t word;
                memcpy(&word, own + behind[p] + 8 * i, 8);
                torn += word && word != UINT64_MAX;
            }
        }
    stop = true;
    assert_int_equal(pthread_join(writer, NULL), 0);
    free(own);
    free(shared);
    assert_int_equal(torn, 0);
}

static void test_words_are_written_whole(void **state)
{
    (void)state;
    pthread_t reader;
    uint8_t *own[2] = {aligned_alloc(PAGE, 2 * ROOM), aligned_alloc(PAGE, 2 * ROOM)};
    size_t torn = 0;
    memset(own[0], 0, 2 * (size_t)ROOM);
    memset(own[1], 0xff, 2 * (size_t)ROOM);
    shared = (void *)room();
    memset(shared, 0, ROOM);
    runs = stop = false;
    assert_int_equal(pthread_create(&reader, NULL, read_words, &torn), 0);
    while (!runs)
        (void)sched_yield();
    for (int round = 0; round < ROUNDS; round++)
        for (size_t p = 0; p < PLACES; p++) /* the part lies a little behind our bytes */
            words_store(shared, own[(round + (int)p) % 2] + (PAGE - behind[p]), ROOM);
    stop = true;
    assert_int_equal(pthread_join(reader, NULL), 0);
    free(own[0]);
    free(own[1]);
    free(shared);
    assert_int_equal(torn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_every_length_and_place),
        cmocka_unit_test(test_words_long_ones),
        cmocka_unit_test(test_words_are_read_whole),
        cmocka_unit_test(test_words_are_written_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
