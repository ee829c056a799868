/* loaded save|load FOLDER: each rank fills its parts of two segments, one of which has no further copies, and saves
 * them with a word that it keeps; in a job that begins with that each rank says what it reads of all, also of the
 * dead. */
#include <keel/keel.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { WORDS = 300000 }; /* several blocks of load.c */

static uint64_t word_of(int rank, size_t i)
{
    return (uint64_t)rank * WORDS + i + 1;
}

static void save(keel_segment *s, keel_segment *single, uint64_t *block, const char *folder)
{
    const int me = keel_rank();
    for (size_t i = 0; i < WORDS; i++)
        block[i] = word_of(me, i);
    CHECK(keel_put(s, me, 0, block, WORDS * sizeof *block));
    CHECK(keel_put(single, me, 0, block, sizeof *block));
    CHECK(keel_keep_save(1, folder));
}

static void say_part(const char *what, keel_segment *s, int rank, uint64_t *block, size_t words)
{
    size_t wrong = 0;
    keel_status status = keel_get(s, rank, 0, block, words * sizeof *block);
    for (size_t i = 0; i < words; i++)
        wrong += block[i] != word_of(rank, i);
    printf("rank %d reads %s part of %d: %s, %zu wrong\n", keel_rank(), what, rank, keel_status_name(status),
           status == KEEL_OK ? wrong : 0);
}

static void load(keel_segment *s, keel_segment *single, uint64_t *block)
{
    for (int r = 0; r < keel_size(); r++) {
        uint64_t kept = 0, version;
        say_part("the", s, r, block, WORDS);
        say_part("the single", single, r, block, 1);
        keel_status status = keel_keep_get(r, "x", 0, &kept, sizeof kept, &version);
        printf("rank %d reads what %d kept: %s, %s, version %" PRIu64 "\n", keel_rank(), r, keel_status_name(status),
               kept == word_of(r, 7) ? "right" : "wrong", version);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    keel_segment *s, *single;
    uint64_t version, since;
    EXPECT(argc == 3);
    CHECK(keel_init());
    uint64_t x = word_of(keel_rank(), 7), *block = calloc(WORDS, sizeof *block);
    EXPECT(block);
    CHECK(keel_segment_alloc(WORDS * sizeof *block, KEEL_REDUNDANCY_SHADOW, &s));
    CHECK(keel_segment_alloc(sizeof *block, KEEL_REDUNDANCY_NONE, &single));
    CHECK(keel_keep_room(64));
    CHECK(keel_keep("x", &x, sizeof x));
    const keel_status restored = keel_keep_restore(&version, &since);
    if (restored != KEEL_OK) { /* the first that ends may take the others with it, so all say it before */
        fprintf(stderr, "rank %d has not restored: %s\n", keel_rank(), keel_status_name(restored));
        return keel_barrier() == KEEL_OK ? 1 : 2;
    }
    if (strcmp(argv[1], "save") == 0) {
        save(s, single, block, argv[2]);
    } else {
        EXPECT(version == 1 && since == 0);
        load(s, single, block);
        CHECK(keel_keep_commit(2));
    }
    free(block);
    CHECK(keel_finalize());
    return 0;
}
