/* reader SILENT END: all ranks but SILENT get from its part, eight bytes and a mebibyte in turn, until the file END is
 * there. Each says how many there were, and how long the longest of each kind took. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/expect.h"

enum { BYTES = 1 << 20 };

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fill(uint8_t *bytes, int of)
{
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251 + (size_t)of);
}

int main(int argc, char **argv)
{
    CHECK(keel_init());
    EXPECT(argc == 3);
    int me = keel_rank(), silent = atoi(argv[1]);
    uint8_t *want = malloc(BYTES), *got = malloc(BYTES);
    EXPECT(want && got);
    keel_segment *s;
    CHECK(keel_segment_alloc(BYTES, KEEL_REDUNDANCY_SHADOW, &s));
    fill(want, me);
    CHECK(keel_put(s, me, 0, want, BYTES));
    CHECK(keel_barrier());
    CHECK(keel_event("phase", 1, NULL));
    fill(want, silent);
    uint64_t longest[2] = {0};
    unsigned gets = 0;
    while (me != silent && access(argv[2], F_OK) != 0) {
        size_t len = gets % 2 ? BYTES : 8, at = gets % 2 ? 0 : gets % (BYTES / 8) * 8;
        memset(got, 0, len);
        uint64_t begun = now();
        CHECK(keel_get(s, silent, at, got, len));
        uint64_t took = now() - begun;
        EXPECT(memcmp(got, want + at, len) == 0);
        if (took > longest[gets % 2])
            longest[gets % 2] = took;
        gets++;
        usleep(1000);
    }
    if (me != silent)
        printf("%u gets, longest %.0f ms of 8 bytes, %.0f ms of 1 MiB\n", gets, (double)longest[0] / 1e6,
               (double)longest[1] / 1e6);
    CHECK(keel_put(s, silent, 0, want, BYTES));
    CHECK(keel_barrier());
    free(want);
    free(got);
    CHECK(keel_finalize());
}
