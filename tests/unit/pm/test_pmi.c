#include "pm/pmi/pmi.h"
#include "pm/pmi/pmi_root.h"

#include "runtime/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pmi_server *server_new(void)
{
    return pmi_create(4, 2, "kvs_1", "(vector,(0,2,2))");
}

/* Send text, compare the whole reply. Returns the effects. */
static int expect(struct pmi_client *c, const char *request, const char *reply)
{
    struct bytes out = {0};
    int abort_code = -1;
    const char *why = NULL;
    int effects = pmi_client_feed(c, request, strlen(request), &out, &abort_code, &why);
    bytes_append(&out, "", 1);
    assert_string_equal((char *)out.data, reply);
    bytes_free(&out);
    if (effects & PMI_BROKEN)
        assert_non_null(why);
    return effects;
}

static struct pmi_client *client_ready(struct pmi_server *s, int rank)
{
    struct pmi_client *c = pmi_client_create(s, rank);
    expect(c, "cmd=init pmi_version=1 pmi_subversion=1\n",
           "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    return c;
}

static void test_pmi_keys_in_any_order_are_understood(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = pmi_client_create(s, 0);
    expect(c, "pmi_subversion=1 pmi_version=1 cmd=init\n",
           "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    expect(c, "value=V key=a  kvsname=kvs_1 cmd=put \n", "cmd=put_result rc=0 msg=success\n");
    expect(c, "key=a cmd=get kvsname=kvs_1\n", "cmd=get_result rc=0 msg=success value=V\n");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_value_with_equal_signs_is_kept_whole(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = client_ready(s, 0);
    expect(c, "cmd=put kvsname=kvs_1 key=k value=a=b==#!\n", "cmd=put_result rc=0 msg=success\n");
    expect(c, "cmd=get kvsname=kvs_1 key=k\n", "cmd=get_result rc=0 msg=success value=a=b==#!\n");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_request_in_pieces_is_answered_once_whole(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = client_ready(s, 0);
    expect(c, "cmd=get_app", "");
    expect(c, "num\ncmd=get_universe_size", "cmd=appnum appnum=0\n");
    expect(c, "\n", "cmd=universe_size size=4\n");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_well_known_keys_are_answered(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = client_ready(s, 0);
    expect(c, "cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
    expect(c, "cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=kvs_1\n");
    expect(c, "cmd=get kvsname=kvs_1 key=PMI_process_mapping\n",
           "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n");
    expect(c, "cmd=get kvsname=kvs_1 key=PMI_dead_processes\n", "cmd=get_result rc=0 msg=success value=\n");
    expect(c, "cmd=get kvsname=kvs_1 key=none\n", "cmd=get_result rc=-1 msg=key_nosuchkey_not_found value=unknown\n");
    expect(c, "cmd=get kvsname=other key=PMI_process_mapping\n",
           "cmd=get_result rc=-1 msg=key_nosuchkey_not_found value=unknown\n");
    expect(c, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_barrier_fences_when_the_last_local_rank_enters(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *a = client_ready(s, 0), *b = client_ready(s, 1);
    expect(a, "cmd=put kvsname=kvs_1 key=a value=1\n", "cmd=put_result rc=0 msg=success\n");
    expect(b, "cmd=put kvsname=kvs_1 key=b value=2\n", "cmd=put_result rc=0 msg=success\n");
    assert_int_equal(expect(a, "cmd=barrier_in\n", ""), PMI_NONE);
    assert_int_equal(expect(b, "cmd=barrier_in\n", ""), PMI_FENCE);
    assert_int_equal(json_object_size(pmi_own_pairs(s)), 2);
    json_t *all = json_pack("{s:s, s:s, s:s}", "a", "1", "b", "2", "far", "3");
    pmi_release(s, all);
    assert_true(pmi_client_release(a));
    assert_true(pmi_client_release(b));
    assert_false(pmi_client_release(a));
    expect(a, "cmd=get kvsname=kvs_1 key=far\n", "cmd=get_result rc=0 msg=success value=3\n");
    /* the next barrier starts from nothing */
    assert_int_equal(expect(b, "cmd=barrier_in\n", ""), PMI_NONE);
    assert_int_equal(expect(a, "cmd=barrier_in\n", ""), PMI_FENCE);

    json_decref(all);
    pmi_client_destroy(a);
    pmi_client_destroy(b);
    pmi_destroy(s);
}

static void test_pmi_version_2_is_refused(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = pmi_client_create(s, 0);
    expect(c, "cmd=init pmi_version=2 pmi_subversion=0\n",
           "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_abort_gives_the_code(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = client_ready(s, 0);
    struct bytes out = {0};
    int code = 0;
    const char *why = NULL;
    assert_int_equal(pmi_client_feed(c, "cmd=abort exitcode=7\n", 21, &out, &code, &why), PMI_ABORT);
    assert_int_equal(code, 7);
    bytes_free(&out);
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_spawn_is_refused_as_a_whole(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = client_ready(s, 0);
    expect(c, "mcmd=spawn\nnprocs=1\nexecname=x\nargcnt=0\nendcmd\n", "cmd=spawn_result rc=-1 msg=not_supported\n");
    expect(c, "cmd=get_appnum\n", "cmd=appnum appnum=0\n");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_standby_is_not_answered(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = pmi_client_create(s, -1);
    expect(c, "cmd=init pmi_version=1 pmi_subversion=1\n", "");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_bad_requests_break_only_their_client(void **state)
{
    (void)state;
    static const char *const bad[] = {"nonsense\n", "cmd=get_maxes\n", "a=b\n", "=\n", "\n"};
    struct pmi_server *s = server_new();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pmi_client *c = pmi_client_create(s, 0);
        assert_int_equal(expect(c, bad[i], ""), PMI_BROKEN);
        expect(c, "cmd=init pmi_version=1 pmi_subversion=1\n", ""); /* nothing any more */
        pmi_client_destroy(c);
    }
    struct pmi_client *c = client_ready(s, 1);
    expect(c, "cmd=barrier_in\n", "");
    assert_int_equal(expect(c, "cmd=barrier_in\n", ""), PMI_BROKEN);
    pmi_client_destroy(c);
    c = client_ready(s, 1);
    expect(c, "cmd=get_appnum\n", "cmd=appnum appnum=0\n");
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_oversized_key_value_or_line_is_refused(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *c = client_ready(s, 0);
    char text[8000], request[8200];
    memset(text, 'x', sizeof text);
    text[1024] = '\0';
    snprintf(request, sizeof request, "cmd=put kvsname=kvs_1 key=k value=%s\n", text);
    expect(c, request, "cmd=put_result rc=-1 msg=bad_key_or_value\n");
    text[1024] = 'x', text[64] = '\0';
    snprintf(request, sizeof request, "cmd=put kvsname=kvs_1 key=%s value=1\n", text);
    expect(c, request, "cmd=put_result rc=-1 msg=bad_key_or_value\n");
    text[64] = 'x', text[sizeof text - 1] = '\0';
    assert_int_equal(expect(c, text, ""), PMI_BROKEN);
    pmi_client_destroy(c);
    pmi_destroy(s);
}

static void test_pmi_rank_that_ends_is_not_waited_for(void **state)
{
    (void)state;
    struct pmi_server *s = server_new();
    struct pmi_client *a = client_ready(s, 0), *b = client_ready(s, 1);
    assert_int_equal(expect(a, "cmd=barrier_in\n", ""), PMI_NONE);
    assert_int_equal(pmi_client_gone(b), PMI_FENCE);
    assert_int_equal(pmi_client_gone(b), PMI_NONE);
    assert_int_equal(pmi_client_gone(a), PMI_NONE); /* in the fence already: the release comes for nobody */
    pmi_client_destroy(a);
    pmi_client_destroy(b);
    pmi_destroy(s);
}

static void report_pair(struct pmi_root *root, int node, long long round, const char *key)
{
    json_t *kvs = json_pack("{s:s}", key, "v");
    pmi_root_report(root, node, round, kvs);
    json_decref(kvs);
}

static void test_pmi_root_round_is_complete_when_all_are_in_it(void **state)
{
    (void)state;
    struct pmi_root *root = pmi_root_create(3);
    report_pair(root, 0, 1, "a");
    report_pair(root, 1, 1, "b");
    report_pair(root, 1, 1, "b"); /* repeated */
    assert_int_equal(pmi_root_complete(root), 0);
    report_pair(root, 2, 1, "c");
    assert_int_equal(pmi_root_complete(root), 1);
    json_t *all = pmi_root_pairs(root);
    assert_int_equal(json_object_size(all), 3);
    json_decref(all);
    report_pair(root, 0, 2, "a");
    assert_int_equal(pmi_root_complete(root), 1);
    pmi_root_report(root, 7, 9, NULL);
    pmi_root_destroy(root);
}

static void test_pmi_root_new_root_finishes_a_round_that_some_have_left(void **state)
{
    (void)state;
    struct pmi_root *root = pmi_root_create(3); /* node 0, the old root, is dead; node 1 had its release of round 1 */
    pmi_root_set_alive(root, 0, false);
    report_pair(root, 2, 1, "c");
    assert_int_equal(pmi_root_complete(root), 0);
    report_pair(root, 1, 2, "b");
    assert_int_equal(pmi_root_complete(root), 1);
    report_pair(root, 2, 2, "c");
    assert_int_equal(pmi_root_complete(root), 2);
    pmi_root_destroy(root);
}

/* Whatever a rank sends, the server answers, refuses or breaks the client: under the sanitizers this is the test. */
static void test_pmi_random_bytes_are_survived(void **state)
{
    (void)state;
    static const char *const words[] = {"cmd=",     "init",     "put",  "get",   "barrier_in",    " ",
                                        "=",        "\n",       "key=", "value", "kvsname=kvs_1", "mcmd=spawn\n",
                                        "endcmd\n", "\xff\xfe", "abort"};
    uint64_t seed = 77001;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    struct pmi_server *s = server_new();
    for (int round = 0; round < 3000; round++) {
        struct pmi_client *c = round % 2 ? client_ready(s, 0) : pmi_client_create(s, 0);
        struct bytes out = {0};
        int code, effects = 0;
        const char *why = NULL;
        for (int i = 0; i < 40; i++) {
            const char *word = words[rng_below(&r, sizeof words / sizeof words[0])];
            uint8_t byte = (uint8_t)rng_u64(&r);
            if (rng_below(&r, 8) == 0)
                effects |= pmi_client_feed(c, &byte, 1, &out, &code, &why);
            else
                effects |= pmi_client_feed(c, word, strlen(word), &out, &code, &why);
        }
        assert_true(out.len == 0 || out.data[out.len - 1] == '\n');
        if (effects & PMI_FENCE) {

            json_t *none = json_object();
            pmi_release(s, none);
            json_decref(none);
        }
        bytes_free(&out);
        pmi_client_destroy(c);
    }
    pmi_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pmi_keys_in_any_order_are_understood),
        cmocka_unit_test(test_pmi_value_with_equal_signs_is_kept_whole),
        cmocka_unit_test(test_pmi_request_in_pieces_is_answered_once_whole),
        cmocka_unit_test(test_pmi_well_known_keys_are_answered),
        cmocka_unit_test(test_pmi_barrier_fences_when_the_last_local_rank_enters),
        cmocka_unit_test(test_pmi_version_2_is_refused),
        cmocka_unit_test(test_pmi_abort_gives_the_code),
        cmocka_unit_test(test_pmi_spawn_is_refused_as_a_whole),
        cmocka_unit_test(test_pmi_standby_is_not_answered),
        cmocka_unit_test(test_pmi_bad_requests_break_only_their_client),
        cmocka_unit_test(test_pmi_oversized_key_value_or_line_is_refused),
        cmocka_unit_test(test_pmi_rank_that_ends_is_not_waited_for),
        cmocka_unit_test(test_pmi_root_round_is_complete_when_all_are_in_it),
        cmocka_unit_test(test_pmi_root_new_root_finishes_a_round_that_some_have_left),
        cmocka_unit_test(test_pmi_random_bytes_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
