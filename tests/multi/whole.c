/* Aligned 8-byte words are never torn: one of two ranks puts bytes that are all zeros or all ones into rank 1's part,
 * the other gets them meanwhile, to and from places a little apart from the part's, modulo a page (where memcpy goes
 * byte by byte on some processors). Contiguous, strided, and with a shadow; up to the 64 KiB that the promise reaches
 * between nodes, and at an offset that is no word's. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { PAGE = 4096, SPACE = 18 * PAGE, ROWS = 4 };

static const size_t apart[] = {0, 8, 16, 40, PAGE - 8, PAGE - 16};
enum { PLACES = sizeof apart / sizeof apart[0] };

struct form {
    const char *name;
    keel_redundancy redundancy;
    int putter; /* the other one gets */
    bool strided;
    size_t offset, len;
    int rounds;
};

static keel_strided rows_of(const struct form *f)
{
    return (keel_strided){.levels = 1,
                          .count = {f->len / ROWS / 2, ROWS},
                          .global_stride = {f->len / ROWS},
                          .local_stride = {f->len / ROWS}};
}

static void put(const struct form *f, keel_segment *s, const uint8_t *from)
{
    const keel_strided rows = rows_of(f);
    CHECK(f->strided ? keel_put_strided(s, 1, f->offset, from, &rows) : keel_put(s, 1, f->offset, from, f->len));
}

static void get(const struct form *f, keel_segment *s, uint8_t *to)
{
    const keel_strided rows = rows_of(f);
    CHECK(f->strided ? keel_get_strided(s, 1, f->offset, to, &rows) : keel_get(s, 1, f->offset, to, f->len));
}

/* Of the words that lie within. */
static size_t torn_in(const struct form *f, const uint8_t *bytes)
{
    size_t torn = 0;
    for (size_t at = (8 - f->offset % 8) % 8; at + 8 <= f->len; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        torn += word && word != UINT64_MAX;
    }
    return torn;
}

static void test_whole(const struct form *f)
{
    keel_segment *s;
    uint8_t *own[2] = {aligned_alloc(PAGE, SPACE), aligned_alloc(PAGE, SPACE)};
    bool puts = keel_rank() == f->putter, gets = keel_rank() == 1 - f->putter;
    size_t torn = 0;
    CHECK(keel_segment_alloc(SPACE, f->redundancy, &s));
    memset(own[0], 0, SPACE);
    memset(own[1], puts ? 0xff : 0, SPACE);
    CHECK(keel_barrier());
    for (int round = 0; round < f->rounds; round++)
        for (size_t p = 0; p < PLACES; p++)
            if (puts) {
                put(f, s, own[(round + (int)p) % 2] + apart[p]);
            } else if (gets) {
                get(f, s, own[0] + apart[p]);
                torn += torn_in(f, own[0] + apart[p]);
            }
    if (torn)
        fprintf(stderr, "%s: %zu torn words\n", f->name, torn);
    EXPECT(torn == 0);
    CHECK(keel_barrier());
    free(own[0]);
    free(own[1]);
    CHECK(keel_segment_free(s));
}

int main(void)
{
    static const struct form form[] = {
        {"owner puts", KEEL_REDUNDANCY_NONE, 1, false, 0, 4 * (size_t)PAGE, 2000},
        {"owner puts rows", KEEL_REDUNDANCY_NONE, 1, true, 0, 4 * (size_t)PAGE, 2000},
        {"owner puts, shadow", KEEL_REDUNDANCY_SHADOW, 1, false, 0, 4 * (size_t)PAGE, 2000},
        {"owner puts a word", KEEL_REDUNDANCY_NONE, 1, false, 0, 8, 2000},
        {"owner gets", KEEL_REDUNDANCY_NONE, 0, false, 0, 4 * (size_t)PAGE, 1000},
        {"owner gets much", KEEL_REDUNDANCY_NONE, 0, false, 0, 16 * (size_t)PAGE, 500},
        {"owner gets much, odd", KEEL_REDUNDANCY_NONE, 0, false, 3, 16 * (size_t)PAGE, 300},
        {"owner gets rows", KEEL_REDUNDANCY_NONE, 0, true, 0, 16 * (size_t)PAGE, 300},
        {"owner gets much, shadow", KEEL_REDUNDANCY_SHADOW, 0, false, 3, 16 * (size_t)PAGE, 300},
    };
    CHECK(keel_init());
    for (size_t i = 0; i < sizeof form / sizeof form[0]; i++)
        test_whole(&form[i]);
    CHECK(keel_finalize());
    return 0;
}
