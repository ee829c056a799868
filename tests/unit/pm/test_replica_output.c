/* Output of a program with replicas: shown once, without a gap, and compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pm/run/replica_output_int.h"
#include "runtime/base/rng.h"

enum { RANKS = 2, TEXT = 3000 };

static struct replica_map map;
static struct replica_output *o;
static char shown[RANKS][2][TEXT + 1];
static size_t shown_len[RANKS][2];
static int differences, diff_set;
static uint64_t diff_at, lost_at, lost_bytes;

static void show(void *user, int rank, int stream, const uint8_t *data, size_t len)
{
    (void)user;
    assert_true(len > 0 && shown_len[rank][stream] + len <= TEXT);
    memcpy(shown[rank][stream] + shown_len[rank][stream], data, len);
    shown_len[rank][stream] += len;
}
static void differs(void *user, int rank, int stream, int set, uint64_t at)
{
    (void)user;
    (void)rank;
    (void)stream;
    differences++;
    diff_set = set;
    diff_at = at;
}
static void lost(void *user, int rank, int stream, uint64_t at, uint64_t bytes)
{
    (void)user;
    (void)rank;
    (void)stream;
    lost_at = at;
    lost_bytes = bytes;
}

static void seed_rng(struct rng *rng)
{
    const char *said = getenv("KEEL_SEED");
    uint64_t seed = said ? strtoull(said, NULL, 10) : (uint64_t)time(NULL);
    printf("KEEL_SEED=%llu\n", (unsigned long long)seed);
    rng_seed(rng, seed);
}

static void begin(int sets, size_t kept_max)
{
    static const struct replica_output_events events = {NULL, show, differs, lost};
    memset(shown, 0, sizeof shown);
    memset(shown_len, 0, sizeof shown_len);
    differences = 0;
    lost_bytes = 0;
    assert_true(replica_map_init(&map, RANKS, sets));
    o = replica_output_create(&map, &events, kept_max);
}
static void finish(void)
{
    replica_output_destroy(o);
    replica_map_fini(&map);
}
static void says(int rank, int set, const char *text)
{
    replica_output_take(o, replica_native(&map, rank, set), 0, (const uint8_t *)text, strlen(text));
}

static void test_replica_output_of_the_leading_set_is_shown_at_once(void **state)
{
    (void)state;
    begin(2, 1000);
    says(0, 0, "one\n");
    assert_string_equal(shown[0][0], "one\n");
    says(0, 1, "one\ntwo\n");
    assert_string_equal(shown[0][0], "one\n");
    assert_int_equal(o->kept, 4);
    says(0, 0, "two\n");
    assert_string_equal(shown[0][0], "one\ntwo\n");
    assert_int_equal(o->kept, 0);
    assert_int_equal(differences, 0);
    finish();
}

static void test_replica_output_goes_on_where_it_had_come_to(void **state)
{
    (void)state;
    begin(3, 1000);
    says(1, 0, "abc");
    says(1, 1, "a");
    says(1, 2, "abcdef");
    replica_output_retire(o, 0); /* the next is behind */
    assert_string_equal(shown[1][0], "abc");
    says(1, 1, "bcd");
    assert_string_equal(shown[1][0], "abcd");
    says(1, 0, "xyz"); /* still on its way */
    assert_string_equal(shown[1][0], "abcd");
    replica_output_retire(o, 1); /* and this one is ahead */
    assert_string_equal(shown[1][0], "abcdef");
    replica_output_retire(o, 2); /* the last one's end is the job's, and what it still says is shown */
    says(1, 2, "g");
    assert_string_equal(shown[1][0], "abcdefg");
    assert_int_equal(differences, 0);
    finish();
}

static void test_replica_output_that_differs_is_told_once_with_its_place(void **state)
{
    (void)state;
    begin(2, 1000);
    says(0, 1, "E = 1.25\n");
    says(0, 0, "E =");
    says(0, 0, " 1.75\n");
    assert_int_equal(differences, 1);
    assert_int_equal(diff_set, 0);
    assert_int_equal(diff_at, 6);
    assert_string_equal(shown[0][0], "E = 1.75\n"); /* the leading set's */
    says(0, 0, "x");
    says(0, 1, "y");
    assert_int_equal(differences, 1);
    finish();
}

static void test_replica_output_of_one_that_says_less_is_told_at_the_end(void **state)
{
    (void)state;
    begin(2, 1000);
    says(0, 0, "all\n");
    says(0, 1, "al");
    replica_output_finish(o);
    assert_int_equal(differences, 1);
    assert_int_equal(diff_set, 1);
    assert_int_equal(diff_at, 2);
    finish();
    begin(2, 1000);
    says(0, 0, "all\n");
    says(0, 1, "al");
    replica_output_retire(o, 1); /* it was cut off */
    replica_output_finish(o);
    assert_int_equal(differences, 0);
    finish();
}

static void test_replica_output_too_far_ahead_is_not_kept_and_its_loss_is_told(void **state)
{
    (void)state;
    begin(2, 8);
    says(0, 0, "ab");
    says(0, 1, "abcdefgh");
    says(0, 1, "ijk"); /* too much: nothing is kept */
    assert_int_equal(o->kept, 0);
    says(0, 0, "cd"); /* shown all the same */
    assert_string_equal(shown[0][0], "abcd");
    replica_output_retire(o, 0);
    assert_int_equal(lost_at, 4);
    assert_int_equal(lost_bytes, 7);
    says(0, 1, "lm");
    assert_string_equal(shown[0][0], "abcdlm");
    finish();
}

/* Sets that write the same, in pieces of any size in any order, one retired after the other at any moment: what is
 * shown is what they write, and at the end all of it. */
static void joins(int rank, int set, uint64_t at)
{
    replica_output_join(o, replica_native(&map, rank, set), 0, at);
}

static void test_replica_output_of_a_set_that_joins_goes_on_at_its_place(void **state)
{
    (void)state;
    begin(2, SIZE_MAX);
    says(0, 0, "one");
    replica_output_retire(o, 0);
    says(0, 1, "one two");
    joins(0, 0, 8); /* what lies before is still on its way */
    says(0, 0, "four ");
    assert_string_equal(shown[0][0], "one two");
    says(0, 1, " ");
    assert_string_equal(shown[0][0], "one two four "); /* it leads */
    says(0, 1, "four five");
    assert_string_equal(shown[0][0], "one two four ");
    replica_output_retire(o, 0);
    assert_string_equal(shown[0][0], "one two four five");
    assert_int_equal(differences, 0);
    assert_int_equal(lost_bytes, 0);
    finish();
}

static void test_replica_output_that_nobody_brings_is_told(void **state)
{
    (void)state;
    begin(2, SIZE_MAX);
    says(0, 1, "one");
    replica_output_retire(o, 1);
    says(0, 0, "one ");
    joins(0, 1, 8);
    says(0, 1, "three");
    replica_output_retire(o, 0);
    assert_string_equal(shown[0][0], "one "); /* it may be on its way */
    replica_output_settle(o);
    assert_string_equal(shown[0][0], "one three");
    assert_int_equal(lost_at, 4);
    assert_int_equal(lost_bytes, 4);
    replica_output_retire(o, 1); /* and the last one stays */
    assert_string_equal(shown[0][0], "one three");
    finish();
    begin(2, SIZE_MAX); /* the others are lost before it says where it is, and what they had written comes */
    says(0, 1, "one");
    replica_output_retire(o, 1);
    says(0, 0, "one ");
    replica_output_retire(o, 0);
    joins(0, 1, 8);
    says(0, 1, "three");
    says(0, 0, "two ");
    assert_string_equal(shown[0][0], "one two three");
    assert_int_equal(lost_bytes, 0);
    assert_int_equal(differences, 0);
    finish();
}

/* All its ranks, at the place of one that is whole. */
static void join_where_another_is(struct rng *rng, int set, size_t at[REPLICAS_MAX][RANKS][2], bool *retired, int sets)
{
    int host = (int)rng_below(rng, (uint64_t)sets);
    while (retired[host])
        host = (host + 1) % sets;
    retired[set] = false;
    for (int i = 0; i < RANKS * 2; i++) {
        at[set][i / 2][i % 2] = at[host][i / 2][i % 2];
        replica_output_join(o, replica_native(&map, i / 2, set), i % 2, at[set][i / 2][i % 2]);
    }
}

static void test_replica_output_at_random_is_shown_once_and_whole(void **state)
{
    (void)state;
    static char text[RANKS][2][TEXT];
    struct rng rng;
    seed_rng(&rng);
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < TEXT; i++)
            text[r][0][i] = (char)rng_below(&rng, 256), text[r][1][i] = (char)rng_below(&rng, 256);
    for (int run = 0; run < 300; run++) {
        int sets = 2 + run % 2, whole = sets;
        size_t at[REPLICAS_MAX][RANKS][2] = {0};
        bool retired[REPLICAS_MAX] = {false};
        begin(sets, SIZE_MAX);
        for (int left = 1; left;) {
            int s = (int)rng_below(&rng, (uint64_t)sets), r = (int)rng_below(&rng, RANKS), k = (int)rng_below(&rng, 2);
            size_t most = TEXT - at[s][r][k], n = (size_t)rng_below(&rng, 600);
            n = n < most ? n : most;
            if (n && (!retired[s] || rng_below(&rng, 2))) /* what is on its way comes in, too */
                replica_output_take(o, replica_native(&map, r, s), k, (const uint8_t *)text[r][k] + at[s][r][k], n);
            at[s][r][k] += n;
            if (whole > 1 && rng_below(&rng, 100) == 0 && !retired[s]) {
                retired[s] = true;
                whole--;
                replica_output_retire(o, s);
            }
            if (retired[s] && rng_below(&rng, 60) == 0) { /* it has begun anew */
                join_where_another_is(&rng, s, at, retired, sets);
                whole++;
            }
            left = 0;
            for (int t = 0; t < sets; t++)
                for (int i = 0; i < RANKS * 2 && !retired[t]; i++)
                    left += at[t][i / 2][i % 2] < TEXT;
            assert_memory_equal(shown[r][k], text[r][k], shown_len[r][k]);
        }
        replica_output_finish(o);
        for (int i = 0; i < RANKS * 2; i++)
            assert_int_equal(shown_len[i / 2][i % 2], TEXT);
        assert_int_equal(differences, 0);
        assert_int_equal(o->kept, 0);
        finish();
    }
}

static void test_replica_output_of_a_rank_goes_on_where_the_rank_lives(void **state)
{
    (void)state;
    begin(2, SIZE_MAX);
    says(0, 0, "first, ");
    says(0, 1, "first, second");
    says(1, 0, "other, ");
    says(1, 1, "other, ");
    replica_output_lose(o, replica_native(&map, 0, 0)); /* set 0 goes on without rank 0, */
    assert_string_equal(shown[0][0], "first, second");
    says(0, 0, "nobody's");
    assert_string_equal(shown[0][0], "first, second");
    says(1, 0, "of set 0");
    assert_string_equal(shown[1][0], "other, of set 0");
    replica_output_lose(o, replica_native(&map, 1, 1)); /* and set 1 without rank 1 */
    says(1, 0, " still");
    says(0, 1, " and third");
    assert_string_equal(shown[1][0], "other, of set 0 still");
    assert_string_equal(shown[0][0], "first, second and third");
    replica_output_lose(o, replica_native(&map, 1, 0)); /* its last one: the job ends, and shows what it says */
    says(1, 0, " here");
    assert_string_equal(shown[1][0], "other, of set 0 still here");
    replica_output_finish(o);
    assert_int_equal(differences, 0);
    assert_int_equal(o->kept, 0);
    finish();
}

/* The same where single processes die, as long as each rank lives somewhere. */
static void test_replica_output_of_partners_at_random_is_shown_once_and_whole(void **state)
{
    (void)state;
    static char text[TEXT];
    struct rng rng;
    seed_rng(&rng);
    for (int i = 0; i < TEXT; i++)
        text[i] = (char)rng_below(&rng, 256);
    for (int run = 0; run < 300; run++) {
        int sets = 2 + run % 2, left = 1;
        size_t at[REPLICAS_MAX][RANKS] = {0};
        unsigned lives[RANKS] = {(1u << sets) - 1, (1u << sets) - 1};
        begin(sets, SIZE_MAX);
        while (left) {
            int s = (int)rng_below(&rng, (uint64_t)sets), r = (int)rng_below(&rng, RANKS);
            size_t most = TEXT - at[s][r], n = (size_t)rng_below(&rng, 600);
            n = n < most ? n : most;
            if (n && (lives[r] >> s & 1 || rng_below(&rng, 2)))
                replica_output_take(o, replica_native(&map, r, s), 0, (const uint8_t *)text + at[s][r], n);
            at[s][r] += n;
            if (lives[r] & ~(1u << s) && lives[r] >> s & 1 && rng_below(&rng, 30) == 0) {
                lives[r] &= ~(1u << s);
                replica_output_lose(o, replica_native(&map, r, s));
            }
            left = 0;
            for (int i = 0; i < sets * RANKS; i++)
                left += lives[i % RANKS] >> i / RANKS & 1 && at[i / RANKS][i % RANKS] < TEXT;
            assert_memory_equal(shown[r][0], text, shown_len[r][0]);
        }
        replica_output_finish(o);
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(shown_len[r][0], TEXT);
        assert_int_equal(differences, 0);
        assert_int_equal(o->kept, 0);
        finish();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replica_output_of_the_leading_set_is_shown_at_once),
        cmocka_unit_test(test_replica_output_goes_on_where_it_had_come_to),
        cmocka_unit_test(test_replica_output_that_differs_is_told_once_with_its_place),
        cmocka_unit_test(test_replica_output_of_one_that_says_less_is_told_at_the_end),
        cmocka_unit_test(test_replica_output_too_far_ahead_is_not_kept_and_its_loss_is_told),
        cmocka_unit_test(test_replica_output_of_a_set_that_joins_goes_on_at_its_place),
        cmocka_unit_test(test_replica_output_that_nobody_brings_is_told),
        cmocka_unit_test(test_replica_output_at_random_is_shown_once_and_whole),
        cmocka_unit_test(test_replica_output_of_a_rank_goes_on_where_the_rank_lives),
        cmocka_unit_test(test_replica_output_of_partners_at_random_is_shown_once_and_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
