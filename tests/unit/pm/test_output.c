/* Lines, backlog and the conversions of message bodies. */
#include "pm/keeld/backlog.h"
#include "pm/wire/codec.h"
#include "pm/keeld/lines.h"

#include "runtime/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

struct collected {
    struct bytes all;
    int count;
    bool whole; /* every piece ended with a newline or was of the largest size */
};

static void collect(void *user, const uint8_t *data, size_t len)
{
    struct collected *c = user;
    bytes_append(&c->all, data, len);
    c->count++;
    c->whole &= data[len - 1] == '\n' || len == LINES_MAX;
}

static void test_lines_pieces_come_out_as_whole_lines(void **state)
{
    (void)state;
    struct lines l = {0};
    struct collected c = {.whole = true};
    lines_feed(&l, "ab", 2, collect, &c);
    assert_int_equal(c.count, 0);
    lines_feed(&l, "c\nd\ne", 5, collect, &c);
    assert_int_equal(c.all.len, 6);
    lines_finish(&l, collect, &c);
    assert_memory_equal(c.all.data, "abc\nd\ne", 7);
    assert_int_equal(c.all.len, 7); /* nothing is added */
    bytes_free(&c.all);
}

static void test_lines_random_cuts_lose_nothing(void **state)
{
    (void)state;
    uint64_t seed = 5151;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    size_t size = 600000;
    uint8_t *text = malloc(size);
    for (size_t i = 0; i < size; i++)
        text[i] = i > 300000 ? 'x' : rng_below(&r, 50) ? (uint8_t)rng_u64(&r) : '\n';
    text[size - 1] = '\n';
    struct lines l = {0};
    struct collected c = {.whole = true};
    for (size_t at = 0; at < size;) {
        size_t n = 1 + (size_t)rng_below(&r, 5000);
        n = n < size - at ? n : size - at;
        lines_feed(&l, text + at, n, collect, &c);
        at += n;
    }
    lines_finish(&l, collect, &c);
    assert_int_equal(c.all.len, size);
    assert_memory_equal(c.all.data, text, size);
    assert_true(c.whole);
    free(text);
    bytes_free(&c.all);
}

static void test_backlog_full_drops_the_oldest(void **state)
{
    (void)state;
    struct backlog b;
    struct collected c = {.whole = true};
    backlog_init(&b, 10);
    backlog_add(&b, "aaaa", 4);
    backlog_add(&b, "bbbb", 4);
    backlog_add(&b, "cccc", 4);
    backlog_add(&b, "too long to keep", 16);
    backlog_each(&b, collect, &c);
    assert_int_equal(c.all.len, 8);
    assert_memory_equal(c.all.data, "bbbbcccc", 8);
    bytes_free(&c.all);
    backlog_free(&b);
    assert_int_equal(b.used, 0);
}

static void test_codec_strings_of_any_bytes_come_back(void **state)
{
    (void)state;
    char *const in[] = {"prog", "", "a b\n", "\xff\xfe not utf-8", NULL};
    json_t *value = codec_strings(in);
    char **out = codec_to_strings(value);
    for (int i = 0; in[i]; i++)
        assert_string_equal(out[i], in[i]);
    assert_null(out[4]);
    free(out);
    json_decref(value);
    char *const none[] = {NULL};
    value = codec_strings(none);
    out = codec_to_strings(value);
    assert_null(out[0]);
    free(out);
    json_decref(value);
}

static void test_codec_wrong_values_are_refused(void **state)
{
    (void)state;
    json_t *number = json_integer(3), *text = json_string("not base64!"),
           *cut = json_string("YWI="); /* "ab" without zero */
    uint8_t small[1];
    size_t len;
    assert_null(codec_to_strings(number));
    assert_null(codec_to_strings(text));
    assert_null(codec_to_strings(cut));
    assert_null(codec_to_strings(NULL));
    assert_false(codec_to_blob(cut, small, sizeof small, &len));
    json_t *list = json_pack("[i, i]", 1, 5);
    int ints[2];
    assert_true(codec_to_ints(list, ints, 2, 0, 5));
    assert_false(codec_to_ints(list, ints, 2, 0, 4));
    assert_false(codec_to_ints(list, ints, 3, 0, 5));
    assert_null(codec_object("[1]", 3));
    assert_null(codec_object("{", 1));
    json_decref(number);
    json_decref(text);
    json_decref(cut);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_pieces_come_out_as_whole_lines),
        cmocka_unit_test(test_lines_random_cuts_lose_nothing),
        cmocka_unit_test(test_backlog_full_drops_the_oldest),
        cmocka_unit_test(test_codec_strings_of_any_bytes_come_back),
        cmocka_unit_test(test_codec_wrong_values_are_refused),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
