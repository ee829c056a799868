/* JSON that is written by hand: commas, escapes, numbers, and what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/json.h"

static void put_all_kinds(struct json_writer *w, struct json_member last)
{
    json_open(w, NULL, '{');
    json_put_all(w, J_ALL(J_INT("a", -3), J_UINT("b", UINT64_MAX), J_REAL("c", 2.25, 1), J_BOOL("d", true), J_NULL("e"),
                          J_TEXT("f", NULL)));
    json_open(w, "g", '[');
    json_put(w, J_INT(NULL, 1));
    json_open(w, NULL, '[');
    json_close(w, ']');
    json_open(w, NULL, '{');
    json_put(w, J_BOOL("h", false));
    json_close(w, '}');
    json_close(w, ']');
    json_put(w, last);
    json_close(w, '}');
}

static void test_json_of_all_kinds_has_its_commas(void **state)
{
    char text[256];
    struct json_writer w = json_into(text, sizeof text);
    (void)state;
    put_all_kinds(&w, J_INT("i", 0));
    assert_true(json_is_whole(&w));
    assert_string_equal(text, "{\"a\":-3,\"b\":18446744073709551615,\"c\":2.2,\"d\":true,\"e\":null,\"f\":\"\","
                              "\"g\":[1,[],{\"h\":false}],\"i\":0}");
    assert_int_equal(w.len, strlen(text));
    w = json_into(text, sizeof text);
    put_all_kinds(&w, J_REAL("i", -1.7e308, 3)); /* the longest number */
    assert_false(json_is_whole(&w));
}

static void test_json_texts_are_escaped(void **state)
{
    char text[128];
    struct json_writer w = json_into(text, sizeof text);
    (void)state;
    json_put(&w, J_TEXT("a\"", "x\"\\\n\x01\x1f y\xc3\xa4\x7f"));
    assert_string_equal(text, "\"a\\\"\":\"x\\\"\\\\\\u000a\\u0001\\u001f y\xc3\xa4\x7f\"");
}

static void test_json_that_goes_on_begins_with_a_comma(void **state)
{
    char members[64], text[64];
    struct json_writer w = json_into(members, sizeof members);
    (void)state;
    json_go_on(&w);
    json_put_all(&w, J_ALL(J_INT("a", 1), J_INT("b", 2)));
    assert_string_equal(members, ",\"a\":1,\"b\":2");
    w = json_into(text, sizeof text);
    json_open(&w, NULL, '{');
    json_put(&w, J_INT("t", 0));
    json_put_written(&w, "");
    json_put_written(&w, members);
    json_put(&w, J_INT("z", 3));
    json_close(&w, '}');
    assert_string_equal(text, "{\"t\":0,\"a\":1,\"b\":2,\"z\":3}");
}

/* At each size: whole, or said not to be, and never behind the end. */
static void test_json_that_does_not_fit_is_not_whole(void **state)
{
    static const char full[] = "{\"key\":\"some text\",\"list\":[1]}";
    (void)state;
    for (size_t size = 1; size <= sizeof full + 1; size++) {
        char *text = malloc(size); /* a sanitizer sees its end */
        assert_non_null(text);
        struct json_writer w = json_into(text, size);
        json_open(&w, NULL, '{');
        json_put(&w, J_TEXT("key", "some text"));
        json_open(&w, "list", '[');
        json_put(&w, J_INT(NULL, 1));
        json_close(&w, ']');
        json_close(&w, '}');
        assert_int_equal(json_is_whole(&w), size >= sizeof full);
        assert_int_equal(w.len, strlen(full));
        assert_true(strlen(text) < size);
        if (json_is_whole(&w))
            assert_string_equal(text, full);
        free(text);
    }
}

static void test_json_into_a_file_is_the_same(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    (void)state;
    assert_non_null(f);
    struct json_writer w = json_into_file(f);
    json_open(&w, NULL, '[');
    json_put_all(&w, J_ALL(J_INT(NULL, 1), J_TEXT(NULL, "\"")));
    json_close(&w, ']');
    assert_true(json_is_whole(&w));
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, "[1,\"\\\"\"]");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_of_all_kinds_has_its_commas),
        cmocka_unit_test(test_json_texts_are_escaped),
        cmocka_unit_test(test_json_that_goes_on_begins_with_a_comma),
        cmocka_unit_test(test_json_that_does_not_fit_is_not_whole),
        cmocka_unit_test(test_json_into_a_file_is_the_same),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
