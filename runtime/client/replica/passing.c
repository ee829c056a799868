#include "runtime/client/replica/passing.h"

enum { WORD = sizeof(int64_t), GENERATIONS = 2 };

int passing_rounds(int size)
{
    int rounds = 0;
    while (1LL << rounds < size)
        rounds++;
    return rounds;
}

struct passing_round passing_round(const struct passing *p, int round)
{
    int far = 1 << round, lacks = p->size - far;
    return (struct passing_round){.to = (p->rank + far) % p->size,
                                  .from = (p->rank + p->size - far) % p->size,
                                  .blocks = far < lacks ? far : lacks,
                                  .word = (size_t)round * WORD};
}

/* Behind the words. */
static size_t blocks_at(const struct passing *p)
{
    return (size_t)passing_rounds(p->size) * WORD;
}

size_t passing_place(const struct passing *p, uint64_t number, int origin)
{
    size_t generation = number % GENERATIONS;
    return blocks_at(p) + (generation * (size_t)p->size + (size_t)origin) * p->room;
}

size_t passing_bytes(const struct passing *p)
{
    return blocks_at(p) + GENERATIONS * (size_t)p->size * p->room;
}
