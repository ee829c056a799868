/* Plain stores that bring a word back to what it was before somebody wrote it through Keel: keel_update_flush brings
 * them to the other copies like any others. The owner stores next to the word, so that the piece is watched from then
 * on; a writer puts, adds, accumulates ... there; the owner stores the old value. A strong get gives a word that all
 * copies have. Neighbours on the owner's node have parts in the same copy. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { WORDS = 3 * 65536 / 8 + 5, FIRST = 5, FAR = WORDS - 3, RUN = 40, VALUE = 77 }; /* parts do not begin at pieces */

static int me, n, owner;

/* Write VALUE to the words FIRST and FAR of the owner's part. */
struct write {
    const char *name;
    void (*do_it)(keel_segment *s);
};

static void put(keel_segment *s)
{
    int64_t value = VALUE;
    CHECK(keel_put(s, owner, 8 * FIRST, &value, 8));
    CHECK(keel_put_nb(s, owner, 8 * FAR, &value, 8, NULL));
    CHECK(keel_fence_all());
}

static void put_much(keel_segment *s)
{
    static int64_t value[WORDS];
    for (int i = 0; i < WORDS; i++)
        value[i] = VALUE;
    CHECK(keel_put(s, owner, 8, value, 8 * (WORDS - 1)));
}

static void put_pieces(keel_segment *s)
{
    int64_t value[2] = {VALUE, VALUE};
    keel_piece piece[2] = {{8 * FIRST, &value[0], 8}, {8 * FAR, &value[1], 8}};
    CHECK(keel_put_vector(s, owner, piece, 2));
}

static void put_rows(keel_segment *s)
{
    int64_t value[2] = {VALUE, VALUE};
    keel_strided shape = {
        .levels = 1, .count = {8, 2}, .global_stride = {8 * (size_t)(FAR - FIRST)}, .local_stride = {8}};
    CHECK(keel_put_strided(s, owner, 8 * FIRST, value, &shape));
}

static void fetch_add(keel_segment *s)
{
    CHECK(keel_fetch_add(s, owner, 8 * FIRST, VALUE, NULL));
    CHECK(keel_fetch_add(s, owner, 8 * FAR, VALUE, NULL));
}

static void swap(keel_segment *s)
{
    int64_t old;
    CHECK(keel_compare_swap(s, owner, 8 * FIRST, 0, VALUE, &old));
    CHECK(keel_compare_swap(s, owner, 8 * FAR, 0, VALUE, &old));
}

static void accumulate(keel_segment *s)
{
    int64_t value[RUN] = {VALUE};
    CHECK(keel_acc(s, owner, 8 * FIRST, KEEL_INT64, NULL, value, RUN));
    CHECK(keel_acc(s, owner, 8 * FAR, KEEL_INT64, NULL, value, 1));
}

static void accumulate_pieces(keel_segment *s)
{
    int64_t value[2] = {VALUE, VALUE};
    keel_piece piece[2] = {{8 * FIRST, &value[0], 8}, {8 * FAR, &value[1], 8}};
    CHECK(keel_acc_vector(s, owner, KEEL_INT64, NULL, piece, 2));
}

static const struct write writes[] = {{"put", put},
                                      {"put much", put_much},
                                      {"put pieces", put_pieces},
                                      {"put rows", put_rows},
                                      {"fetch-add", fetch_add},
                                      {"swap", swap},
                                      {"accumulate", accumulate},
                                      {"accumulate pieces", accumulate_pieces}};

/* What only the owner can do. */
static void update(keel_segment *s)
{
    const size_t at[] = {FIRST, FAR};
    for (int i = 0; i < 2; i++) {
        void *place;
        CHECK(keel_update_begin(s, 8 * at[i], 8, &place));
        *(int64_t *)place = VALUE;
        CHECK(keel_update_end(s, 8 * at[i], 8));
    }
}

static void update_never_begun(keel_segment *s)
{
    volatile int64_t *part = keel_address(s, owner);
    part[FIRST] = part[FAR] = VALUE;
    CHECK(keel_update_end(s, 0, 8 * WORDS));
}

static const struct write own[] = {{"update", update}, {"update never begun", update_never_begun}};

static void expect_in_all_copies(keel_segment *s, size_t word, int64_t wanted, const char *how, int writer)
{
    int64_t got = -1;
    keel_status status = keel_get_strong(s, owner, 8 * word, &got, 8);
    if (status != KEEL_OK || got != wanted)
        fprintf(stderr, "%s by rank %d to rank %d, word %zu: %s, %lld\n", how, writer, owner, word,
                keel_status_name(status), (long long)got);
    EXPECT(status == KEEL_OK && got == wanted);
}

static void flush(keel_segment *s)
{
    CHECK(keel_fence_all());
    CHECK(keel_barrier());
    CHECK(keel_update_flush(s));
    CHECK(keel_barrier());
}

static void store_back(keel_segment *s, const struct write *w, int writer)
{
    volatile int64_t *part = me == owner ? keel_address(s, owner) : NULL;
    if (part)
        part[2] = part[FAR - 1] = 1;
    CHECK(keel_barrier());
    if (me == writer)
        w->do_it(s);
    CHECK(keel_barrier());
    if (part) {
        EXPECT(part[FIRST] == VALUE && part[FAR] == VALUE);
        memset((void *)part, 0, 8 * WORDS);
    }
    flush(s);
    if (me == writer) {
        expect_in_all_copies(s, FIRST, 0, w->name, writer);
        expect_in_all_copies(s, FAR, 0, w->name, writer);
    }
    CHECK(keel_barrier());
}

static void test_others_write(keel_segment *s)
{
    for (owner = 0; owner<n; owner += n> 1 ? n - 1 : 1) {
        for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++)
            for (int writer = 0; writer < n; writer++)
                store_back(s, &writes[i], writer);
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            store_back(s, &own[i], owner);
    }
}

/* The end of rank 0's part and the beginning of rank 1's lie in one piece, and both have stored there: the first one's
 * flush takes nothing from the second one's. */
static void test_one_flushes_after_the_other(keel_segment *s)
{
    const size_t word[] = {WORDS - 1, 0};
    int64_t value = VALUE;
    if (n < 2 || keel_rank_node(1) != keel_rank_node(0))
        return;
    volatile int64_t *mine = me < 2 ? (volatile int64_t *)keel_address(s, me) + word[me] : NULL;
    if (mine)
        *mine = 1;
    CHECK(keel_barrier());
    for (int r = 0; r < 2 && me == n - 1; r++)
        CHECK(keel_put(s, r, 8 * word[r], &value, 8));
    CHECK(keel_barrier());
    if (mine)
        *mine = 0;
    for (int r = 0; r < n; r++) {
        CHECK(keel_barrier());
        if (r == me)
            CHECK(keel_update_flush(s));
    }
    CHECK(keel_barrier());
    for (owner = 0; owner < 2 && me == n - 1; owner++)
        expect_in_all_copies(s, word[owner], 0, "flush after flush", me);
    CHECK(keel_barrier());
}

/* What was not stored to is left alone: a word that only others have written keeps what they wrote. */
static void test_what_others_wrote_stays(keel_segment *s)
{
    int64_t value = VALUE, got;
    owner = 0;
    volatile int64_t *part = keel_address(s, me);
    part[0] = 9;
    CHECK(keel_barrier());
    CHECK(keel_put(s, (me + 1) % n, 8 * FIRST, &value, 8));
    flush(s);
    CHECK(keel_get_strong(s, (me + 1) % n, 8 * FIRST, &got, 8));
    EXPECT(got == VALUE);
    CHECK(keel_get_strong(s, (me + 1) % n, 0, &got, 8));
    EXPECT(got == 9);
    CHECK(keel_barrier());
}

int main(void)
{
    CHECK(keel_init());
    me = keel_rank();
    n = keel_size();
    size_t *bytes = malloc((size_t)n * sizeof *bytes);
    for (int r = 0; r < n; r++)
        bytes[r] = 8 * WORDS;
    for (int redundancy = KEEL_REDUNDANCY_SHADOW; redundancy <= KEEL_REDUNDANCY_TRIPLE; redundancy++) {
        keel_segment *s[2];
        CHECK(keel_segment_alloc(8 * WORDS, (keel_redundancy)redundancy, &s[0]));
        CHECK(keel_segment_alloc_group(keel_group_world(), bytes, (keel_redundancy)redundancy, &s[1]));
        for (int i = 0; i < 2; i++) {
            CHECK(keel_segment_track(s[i]));
            CHECK(keel_barrier());
            test_others_write(s[i]);
            test_one_flushes_after_the_other(s[i]);
            test_what_others_wrote_stays(s[i]);
            CHECK(keel_segment_free(s[i]));
        }
    }
    free(bytes);
    return keel_finalize() != KEEL_OK;
}
