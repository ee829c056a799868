/* Bodies with many pieces: what is written is what is read, and what is no such body is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/client/op/packed.h"
#include "runtime/wire/pack.h"
#include "seed.h"

enum { ROOM = 8192, RUNS = 40, LEN_MAX = 64 };

static uint8_t body[PACK_BODY_MAX], data[ROOM], base[ROOM], model[ROOM];

static size_t some_pieces(struct rng *rng, struct pack_run *run, size_t *runs, bool with_data)
{
    struct pack_writer w;
    *runs = 1 + rng_below(rng, RUNS);
    pack_begin(&w, body, *runs);
    for (size_t i = 0; i < *runs; i++) {
        run[i].len = (uint32_t)rng_below(rng, LEN_MAX + 1);
        run[i].at = (uint32_t)(i * (ROOM / RUNS) + rng_below(rng, ROOM / RUNS - LEN_MAX));
        pack_add(&w, run[i].at, with_data ? data + run[i].at : NULL, run[i].len);
    }
    return pack_end(&w, with_data);
}

static void test_pack_random_pieces_come_to_their_places_and_back(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (size_t i = 0; i < ROOM; i++)
        data[i] = (uint8_t)(1 + rng_below(&rng, 255));
    for (int round = 0; round < 300; round++) {
        struct pack_run run[RUNS];
        struct pack p;
        size_t runs, len = some_pieces(&rng, run, &runs, true);
        uint8_t again[PACK_BODY_MAX];
        memset(base, 0, sizeof base);
        memset(model, 0, sizeof model);
        uint64_t reach = 0;
        for (size_t i = 0; i < runs; i++) {
            memcpy(model + run[i].at, data + run[i].at, run[i].len);
            reach = run[i].at + run[i].len > reach ? run[i].at + run[i].len : reach;
        }
        assert_true(pack_open(&p, body, len, true));
        assert_int_equal(p.runs, runs);
        assert_int_equal(pack_reach(&p), reach);
        assert_true(pack_fits(&p, reach, 1, 1));
        assert_false(reach && pack_fits(&p, reach - 1, 1, 1));
        pack_scatter(&p, base);
        assert_memory_equal(base, model, ROOM);
        pack_again(&p, base, again);
        assert_memory_equal(again, body, len);
        len = some_pieces(&rng, run, &runs, false);
        assert_true(pack_open(&p, body, len, false));
        pack_gather(&p, data, again);
        for (size_t i = 0, at = 0; i < runs; at += run[i++].len)
            assert_memory_equal(again + at, data + run[i].at, run[i].len);
    }
}

static size_t two_words(void)
{
    struct pack_writer w;
    pack_begin(&w, body, 2);
    pack_add(&w, 8, data, 8);
    pack_add(&w, 32, data, 16);
    return pack_end(&w, true);
}

static void test_pack_what_is_no_such_body_is_refused(void **state)
{
    (void)state;
    struct pack p;
    struct pack_run head;
    size_t len = two_words();
    assert_true(pack_open(&p, body, len, true));
    assert_false(pack_open(&p, body, len, false));
    for (size_t cut = 0; cut < len; cut++)
        assert_false(pack_open(&p, body, cut, true));
    assert_false(pack_open(&p, body, len + 1, true));
    static const struct pack_run wrong[] = {{0, 24}, {3, 24}, {2, 23}, {UINT32_MAX, 24}, {2, UINT32_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        len = two_words();
        memcpy(body, &wrong[i], sizeof head);
        assert_false(pack_open(&p, body, len, true));
    }
    len = two_words();
    head = (struct pack_run){.at = 8, .len = 9}; /* the pieces together are longer than their bytes */
    memcpy(body + sizeof head, &head, sizeof head);
    assert_false(pack_open(&p, body, len, true));
}

static void test_pack_fits_looks_at_each_piece(void **state)
{
    (void)state;
    struct pack p;
    size_t len = two_words();
    assert_true(pack_open(&p, body, len, true));
    assert_true(pack_fits(&p, 48, 8, 8));
    assert_false(pack_fits(&p, 47, 8, 8));
    assert_false(pack_fits(&p, 48, 16, 8));
    assert_false(pack_fits(&p, 48, 8, 16));
    struct pack_run far = {.at = UINT32_MAX, .len = 8};
    memcpy(body + sizeof far, &far, sizeof far);
    assert_true(pack_open(&p, body, len, true));
    assert_false(pack_fits(&p, UINT32_MAX, 1, 1));
}

static void test_pack_has_room_up_to_the_limits(void **state)
{
    (void)state;
    assert_true(pack_has_room(0, 0, PACK_BODY_MAX - pack_head(1)));
    assert_false(pack_has_room(0, 0, PACK_BODY_MAX - pack_head(1) + 1));
    assert_false(pack_has_room(1, PACK_BODY_MAX - pack_head(2), 1));
    assert_true(pack_has_room(PACK_RUNS_MAX - 1, 0, 8));
    assert_false(pack_has_room(PACK_RUNS_MAX, 0, 8));
    assert_false(pack_has_room(1, SIZE_MAX, 1));
    assert_false(pack_has_room(1, 1, SIZE_MAX));
}

/* Four of a quarter of a message would fit but for their places: it carries three. */
static void test_packing_takes_pieces_of_up_to_what_was_said(void **state)
{
    (void)state;
    struct packing p = {.run_max = PACK_BODY_MAX / 4, .reach_max = UINT32_MAX};
    keel_piece run = {.offset = PACK_BODY_MAX, .len = PACK_BODY_MAX / 4 + 1};
    assert_false(packing_add(&p, &run));
    run.len--;
    for (size_t i = 0; i < 3; i++, run.offset += 2 * run.len)
        assert_true(packing_add(&p, &run));
    assert_false(packing_add(&p, &run));
    assert_int_equal(p.runs, 3);
    assert_int_equal(p.first, PACK_BODY_MAX);
    assert_int_equal(p.end - p.first, 5 * run.len);
    run = (keel_piece){.offset = 0, .len = 8};
    p.reach_max = p.end - 1;
    assert_false(packing_add(&p, &run));
    p.reach_max++;
    assert_true(packing_add(&p, &run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_random_pieces_come_to_their_places_and_back),
        cmocka_unit_test(test_pack_what_is_no_such_body_is_refused),
        cmocka_unit_test(test_pack_fits_looks_at_each_piece),
        cmocka_unit_test(test_pack_has_room_up_to_the_limits),
        cmocka_unit_test(test_packing_takes_pieces_of_up_to_what_was_said),
    };
    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
