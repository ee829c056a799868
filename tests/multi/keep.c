/* keep: keel/keep.h sentence by sentence. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../lib/expect.h"

enum { WORDS = 5000, ROOM = 3 * WORDS * 8, PAGE = 4096, NAMES = 63 };

static uint64_t field[2][WORDS], count;

static void fill(uint64_t *words, uint64_t by)
{
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = by * WORDS + i;
}

/* Before there is room, and what does not fit in. */
static void wrong_calls(void)
{
    static char many[NAMES + 1];
    uint64_t version = 7;
    EXPECT_STATUS(keel_keep("count", &count, sizeof count), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_keep_commit(1), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_keep_restore(&version, NULL), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_keep_room(SIZE_MAX), KEEL_ERR_ARG);
    CHECK(keel_keep_room(ROOM));
    EXPECT_STATUS(keel_keep_room(ROOM), KEEL_ERR_STATE);
    EXPECT_STATUS(keel_keep_restore(NULL, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep("", &count, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep(NULL, &count, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep("123456789012345678901234567890123456789012345678", &count, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep("none", NULL, 8), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep("none", NULL, 0), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep("large", field, ROOM + 1), KEEL_ERR_LIMIT);
    char *gone = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(gone != MAP_FAILED && munmap(gone + PAGE, PAGE) == 0);
    EXPECT_STATUS(keel_keep("gone", gone, PAGE + 1), KEEL_ERR_ARG);
    CHECK(keel_keep("there", gone, PAGE));
    CHECK(keel_keep("there", NULL, 0));
    EXPECT(mprotect(gone, PAGE, PROT_READ) == 0);
    EXPECT_STATUS(keel_keep("there", gone, PAGE), KEEL_ERR_ARG);
    EXPECT(mprotect(gone, PAGE, PROT_NONE) == 0);
    EXPECT_STATUS(keel_keep("there", gone, PAGE), KEEL_ERR_ARG);
    munmap(gone, PAGE);
    char *shared = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED);
    CHECK(keel_keep("there", shared, PAGE)); /* it may be tracked */
    CHECK(keel_keep("there", NULL, 0));
    munmap(shared, PAGE);
    for (int i = 0; i < NAMES; i++) {
        char name[] = {(char)('0' + i / 8), (char)('0' + i % 8), 0};
        CHECK(keel_keep(name, &many[i], 1));
    }
    EXPECT_STATUS(keel_keep("one more", &count, 8), KEEL_ERR_LIMIT);
    for (int i = NAMES; i-- > 0;) {
        char name[] = {(char)('0' + i / 8), (char)('0' + i % 8), 0};
        CHECK(keel_keep(name, NULL, 0));
    }
}

/* What is kept differs by rank; the order of names does not matter. */
static void keep_it(const uint64_t *words)
{
    if (keel_rank() % 2)
        CHECK(keel_keep("count", &count, sizeof count));
    CHECK(keel_keep("field", (void *)(uintptr_t)words, sizeof field[0] - 8 * (size_t)keel_rank()));
    if (keel_rank() % 2 == 0)
        CHECK(keel_keep("count", &count, sizeof count));
}

static void expect_version(uint64_t expected)
{
    uint64_t version = expected + 1;
    fill(field[0], 99);
    fill(field[1], 98);
    count = 97;
    CHECK(keel_keep_rollback(&version));
    EXPECT(version == expected);
}

static void versions(void)
{
    uint64_t version = 7, since = 7;
    keep_it(field[0]);
    CHECK(keel_keep_restore(&version, &since));
    EXPECT(version == 0 && since == 0);
    expect_version(0);
    EXPECT(count == 97);
    EXPECT_STATUS(keel_keep_get(keel_rank(), "count", 0, &count, sizeof count, NULL), KEEL_ERR_STATE);
    for (uint64_t v = 1; v <= 6; v++) { /* two arrays that change places */
        uint64_t *now = field[v % 2];
        fill(now, v + 100 * (uint64_t)keel_rank());
        count = v;
        keep_it(now);
        CHECK(keel_keep_commit(3 * v));
        EXPECT_STATUS(keel_keep_commit(3 * v), KEEL_ERR_ARG);
        CHECK(keel_barrier()); /* nobody has gone further, and gone back */
        expect_version(3 * v);
        size_t kept = WORDS - (size_t)keel_rank();
        for (uint64_t i = 0; i < WORDS; i++)
            EXPECT(now[i] == (i < kept ? v + 100 * (uint64_t)keel_rank() : v % 2 ? 98u : 99u) * WORDS + i);
        EXPECT(count == v);
    }
    EXPECT_STATUS(keel_keep_restore(&version, NULL), KEEL_ERR_STATE);
}

/* A byte here and there, and none at all. */
static void small_changes(void)
{
    keep_it(field[0]);
    fill(field[0], 1);
    count = 1;
    for (uint64_t v = 20; v < 40; v++) {
        size_t at = (size_t)(v * 7919 % (sizeof field[0] - 8 * (size_t)keel_size()));
        uint8_t *bytes = (uint8_t *)field[0], before[sizeof field[0]];
        if (v % 3)
            bytes[at] ^= (uint8_t)(1u << v % 8);
        memcpy(before, field[0], sizeof before);
        CHECK(keel_keep_commit(v));
        memset(field[0], 0, sizeof before - 8 * (size_t)keel_rank());
        uint64_t version;
        CHECK(keel_keep_rollback(&version));
        EXPECT(version == v && memcmp(before, field[0], sizeof before) == 0);
    }
}

/* Others read it; other sizes, other names. */
static void read_by_others(void)
{
    uint64_t got, version;
    const int next = (keel_rank() + 1) % keel_size();
    fill(field[0], 1000 + (uint64_t)keel_rank());
    count = 50 + (uint64_t)keel_rank();
    CHECK(keel_keep("count", NULL, 0));
    CHECK(keel_keep("a longer name", &count, sizeof count));
    CHECK(keel_keep_commit(50));
    CHECK(keel_keep_get(next, "a longer name", 0, &got, sizeof got, &version));
    EXPECT(got == 50 + (uint64_t)next && version == 50);
    CHECK(keel_keep_get(next, "field", 80, &got, sizeof got, NULL));
    EXPECT(got == (1000 + (uint64_t)next) * WORDS + 10);
    EXPECT_STATUS(keel_keep_get(next, "count", 0, &got, sizeof got, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep_get(next, "a longer name", 1, &got, sizeof got, NULL), KEEL_ERR_ARG);
    EXPECT_STATUS(keel_keep_get(keel_size(), "field", 0, &got, sizeof got, NULL), KEEL_ERR_ARG);
    CHECK(keel_barrier());
    CHECK(keel_keep("count", &got, sizeof got)); /* no part of the version: it cannot be gone back to with it */
    EXPECT_STATUS(keel_keep_rollback(&version), KEEL_ERR_MISMATCH);
    CHECK(keel_keep("count", NULL, 0));
    expect_version(50);
}

/* Who calls with another version is found by all. */
static void disagreement(void)
{
    if (keel_size() > 1)
        EXPECT_STATUS(keel_keep_commit(60 + (uint64_t)(keel_rank() == 1)), KEEL_ERR_MISMATCH);
    CHECK(keel_keep_commit(70));
    expect_version(70);
}

int main(void)
{
    EXPECT_STATUS(keel_keep_commit(1), KEEL_ERR_STATE);
    CHECK(keel_init());
    wrong_calls();
    versions();
    small_changes();
    read_by_others();
    disagreement();
    CHECK(keel_finalize());
    EXPECT_STATUS(keel_keep_commit(80), KEEL_ERR_STATE);
    return 0;
}
