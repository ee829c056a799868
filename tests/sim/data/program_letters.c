/* Messages of ranks of a set, where replicas do the part of the dead: what a letter says is known from whom it is of,
 * whom it is for and its number among these. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/client.h"
#include "tests/sim/data/replicas.h"

enum { LETTER = 3, COUNT = 4, LETTER_MAX = 40000 };

static size_t length_of(uint64_t seed)
{
    return seed % 8 ? seed % 300 : seed % LETTER_MAX;
}

static uint64_t seed_of(int from, int to, uint64_t number)
{
    struct rng rng;
    rng_seed(&rng, number * 1000 + (uint64_t)from * 31 + (uint64_t)to);
    return rng_below(&rng, UINT32_MAX);
}

static void fill(uint8_t *at, uint64_t seed)
{
    for (size_t i = 0, n = length_of(seed); i < n; i++)
        at[i] = (uint8_t)(seed + i * 7);
}

keel_status replicas_write(struct replica_program *q, int to)
{
    uint64_t seed = seed_of(q->rank, to, ++q->written[to]);
    uint8_t *bytes = sim_alloc(LETTER_MAX);
    fill(bytes, seed);
    q->fresh[to]++;
    program_begin(&q->p, "keel_message_send");
    keel_status status = q->calls->message_send(to, LETTER, bytes, length_of(seed));
    free(bytes);
    return status;
}

static keel_status read_one(struct replica_program *q, int from)
{
    uint64_t seed = seed_of(from, q->rank, ++q->read[from]);
    uint8_t *is = sim_alloc(LETTER_MAX), *ought = sim_alloc(LETTER_MAX);
    size_t len = 0;
    int who = -1;
    fill(ought, seed);
    program_begin(&q->p, "keel_message_receive");
    keel_status status = q->calls->message_receive(from, LETTER, is, LETTER_MAX, &len, &who);
    if (status == KEEL_OK && (len != length_of(seed) || who != from || memcmp(is, ought, len) != 0))
        world_fail(q->p.w, "rank %d of set %d: letter %llu of rank %d is another one", q->rank, q->set,
                   (unsigned long long)q->read[from], from);
    free(is);
    free(ought);
    return status;
}

/* Of any, whoever says it first. */
static keel_status hear_count(struct replica_program *q, uint64_t *counts)
{
    uint64_t count = 0;
    size_t len = 0;
    int who = 0;
    program_begin(&q->p, "keel_message_receive of any");
    keel_status status = q->calls->message_receive(KEEL_ANY_RANK, COUNT, &count, sizeof count, &len, &who);
    if (status == KEEL_OK)
        counts[who] = count;
    return status;
}

keel_status replicas_read_letters(struct replica_program *q)
{
    uint64_t counts[RANKS_MAX] = {0};
    keel_status status = KEEL_OK;
    int ranks = q->all->map.ranks;
    for (int to = 0; to < ranks && status == KEEL_OK; to++) {
        program_begin(&q->p, "keel_message_send of a count");
        status = q->calls->message_send(to, COUNT, &q->fresh[to], sizeof q->fresh[to]);
        q->fresh[to] = 0;
    }
    for (int n = 0; n < ranks && status == KEEL_OK; n++)
        status = hear_count(q, counts);
    for (int from = 0; from < ranks; from++)
        for (uint64_t n = 0; n < counts[from] && status == KEEL_OK && !q->p.w->failed; n++)
            status = read_one(q, from);
    return status;
}
