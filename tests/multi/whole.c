/* Aligned 8-byte words are never torn: rank 1 puts 16 KiB that are all zeros or all ones into its part, rank 0 gets them meanwhile, to and from places
 * a little apart from the part's, modulo a page (where memcpy goes byte by byte on some processors). Contiguous, strided, and with a shadow. Exit 0 if
 * all is right. */
#include <keel/keel.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { PAGE = 4096, LEN = 4 * PAGE, ROUNDS = 2000, ROWS = 4 };

static const size_t apart[] = {0, 8, 16, 40, PAGE - 8, PAGE - 16};
enum { PLACES = sizeof apart / sizeof apart[0] };

static const keel_strided rows = {
    .levels = 1, .count = {LEN / ROWS / 2, ROWS}, .global_stride = {LEN / ROWS}, .local_stride = {LEN / ROWS}};

static void put(keel_segment *s, const uint8_t *from, bool strided)
{
    CHECK(strided ? keel_put_strided(s, 1, 0, from, &rows) : keel_put(s, 1, 0, from, LEN));
}

static void get(keel_segment *s, uint8_t *to, bool strided)
{
    CHECK(strided ? keel_get_strided(s, 1, 0, to, &rows) : keel_get(s, 1, 0, to, LEN));
}

static size_t torn_in(const uint8_t *bytes)
{
    size_t torn = 0;
    for (size_t i = 0; i < LEN / 8; i++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, 8);
        torn += word && word != UINT64_MAX;
    }
    return torn;
}

static void test_whole(keel_redundancy redundancy, bool strided)
{
    keel_segment *s;
    uint8_t *own[2] = {aligned_alloc(PAGE, LEN + 2 * PAGE), aligned_alloc(PAGE, LEN + 2 * PAGE)};
    size_t torn = 0;
    CHECK(keel_segment_alloc(LEN, redundancy, &s));
    memset(own[0], 0, LEN + 2 * (size_t)PAGE);
    memset(own[1], keel_rank() ? 0xff : 0, LEN + 2 * (size_t)PAGE);
    CHECK(keel_barrier());
    for (int round = 0; round < ROUNDS; round++)
        for (size_t p = 0; p < PLACES; p++)
            if (keel_rank() == 1) {
                put(s, own[(round + (int)p) % 2] + apart[p], strided);
            } else if (keel_rank() == 0) {
                get(s, own[0] + apart[p], strided);
                torn += torn_in(own[0] + apart[p]);
            }
    EXPECT(torn == 0);
    CHECK(keel_barrier());
    free(own[0]);
    free(own[1]);
    CHECK(keel_segment_free(s));
}

int main(void)
{
    CHECK(keel_init());
    test_whole(KEEL_REDUNDANCY_NONE, false);
    test_whole(KEEL_REDUNDANCY_NONE, true);
    test_whole(KEEL_REDUNDANCY_SHADOW, false);
    CHECK(keel_finalize());
    return 0;
}
