/* A program of messages: in each round every rank writes to some others, some letters long, and says to each how many
 * it has sent, which these take from whoever comes first. What a letter tells of was put before. With the same result
 * each time, which rank 0 prints. KEEL_TEST_ROUNDS: how many rounds; KEEL_TEST_FOLDER: ranks 0 and 1 add a line to
 * a file there in each. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <keel/keel.h>

#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            fprintf(stderr, "rank %d: %s:%d: %s\n", keel_rank(), __FILE__, __LINE__, #x);                              \
            keel_abort(3, "a wrong number");                                                                           \
        }                                                                                                              \
    } while (0)
#define OK(x) CHECK((x) == KEEL_OK)

enum { LETTER = 1, COUNT = 2, RANKS_MAX = 16, LETTERS = 6, PLACES = 64 };

static int rank, size;
static keel_segment *segment; /* of each rank: PLACES words for each writer */
static uint64_t told, state, sent[RANKS_MAX], got[RANKS_MAX];
static uint8_t bytes[KEEL_MESSAGE_MAX];

static uint64_t random_word(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 11;
}

static void hear(uint64_t word)
{
    told = (told ^ word) * 0x9e3779b97f4a7c15u;
    told ^= told >> 31;
}

static size_t place_of(int writer, uint64_t number)
{
    return 8 * ((size_t)writer * PLACES + number % PLACES);
}

/* It begins with its number, and tells of a word that was put for it. */
static void write_to(int to)
{
    size_t len = 8 + random_word() % (random_word() % 6 ? 200 : KEEL_MESSAGE_MAX - 8);
    uint64_t number = ++sent[to], word = random_word();
    for (size_t i = 8; i < len; i++)
        bytes[i] = (uint8_t)(number * 3 + i * (uint64_t)(rank + 1));
    memcpy(bytes, &number, 8);
    OK(keel_put(segment, to, place_of(rank, number), &word, sizeof word));
    OK(keel_message_send(to, LETTER, bytes, len));
}

static void read_one(int from)
{
    uint64_t number, word;
    size_t len = 0;
    int who = -1;
    OK(keel_message_receive(from, LETTER, bytes, sizeof bytes, &len, &who));
    memcpy(&number, bytes, 8);
    CHECK(who == from && number == ++got[from]);
    for (size_t i = 8; i < len; i++)
        CHECK(bytes[i] == (uint8_t)(number * 3 + i * (uint64_t)(from + 1)));
    OK(keel_get(segment, rank, place_of(from, number), &word, sizeof word));
    hear(word + len);
}

/* Whoever says it first; half of them are looked for without waiting. */
static void hear_count(uint64_t *counts, uint32_t tag, bool looks)
{
    uint64_t count = 0;
    size_t len = 0;
    int who = -1;
    keel_status status = KEEL_IN_PROGRESS;
    while (looks && (status = keel_message_test(KEEL_ANY_RANK, tag, &len, &who)) == KEEL_IN_PROGRESS)
        ;
    if (looks)
        OK(status);
    OK(keel_message_receive(looks ? who : KEEL_ANY_RANK, tag, &count, sizeof count, &len, &who));
    counts[who] = count;
}

/* Who is ahead has said already how many there are in the next round. */
static void one_round(uint32_t round)
{
    uint64_t fresh[RANKS_MAX] = {0}, counts[RANKS_MAX];
    for (int i = 0; i < LETTERS; i++) {
        int to = (int)(random_word() % (uint64_t)size);
        write_to(to);
        fresh[to]++;
    }
    for (int to = 0; to < size; to++)
        OK(keel_message_send(to, COUNT + round, &fresh[to], sizeof fresh[to]));
    for (int n = 0; n < size; n++)
        hear_count(counts, COUNT + round, n % 2);
    for (int from = 0; from < size; from++)
        for (uint64_t n = 0; n < counts[from]; n++)
            read_one(from);
}

static void note(const char *folder, int round)
{
    char name[256];
    if (!folder || rank > 1)
        return;
    snprintf(name, sizeof name, "%s/told-%d", folder, rank);
    FILE *f = fopen(name, "a");
    CHECK(f && fprintf(f, "%d %016llx\n", round, (unsigned long long)told) > 0 && fclose(f) == 0);
}

int main(void)
{
    const char *text = getenv("KEEL_TEST_ROUNDS");
    int rounds = text ? atoi(text) : 20;
    uint64_t all[RANKS_MAX], sum = 0;
    OK(keel_init());
    rank = keel_rank();
    size = keel_size();
    CHECK(size <= RANKS_MAX);
    state = (uint64_t)rank + 1;
    OK(keel_segment_alloc(8 * PLACES * (size_t)size, KEEL_REDUNDANCY_NONE, &segment));
    for (int round = 0; round < rounds; round++) {
        one_round((uint32_t)round);
        note(getenv("KEEL_TEST_FOLDER"), round);
        if (round % 5 == 4)
            OK(keel_barrier());
    }
    OK(keel_group_allgather(keel_group_world(), &told, all, sizeof told));
    for (int r = 0; r < size; r++)
        sum = sum * 31 + all[r];
    if (rank == 0)
        printf("read %016llx\n", (unsigned long long)sum);
    OK(keel_segment_free(segment));
    OK(keel_finalize());
    return 0;
}
