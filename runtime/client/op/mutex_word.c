/* The words of a mutex: where they are, what they say, and how a process reads and changes them. */
#include "runtime/client/op/mutex_int.h"

#include "runtime/client/op/near.h"

enum { RANK_BITS = 20, INCARNATION_BITS = 11 };

size_t mutex_place(const keel_mutexes *m, int number)
{
    return (size_t)number * 8 * (2 + (size_t)m->client->size);
}

size_t mutex_place_of_dead(const keel_mutexes *m, int number)
{
    return mutex_place(m, number) + 8;
}

size_t mutex_place_of_wants(const keel_mutexes *m, int number, int rank)
{
    return mutex_place(m, number) + 8 * (2 + (size_t)rank);
}

int64_t mutex_owner_of(int rank, uint64_t incarnation)
{
    return (int64_t)(incarnation & ((1u << INCARNATION_BITS) - 1)) << RANK_BITS | (rank + 1);
}

int mutex_rank_of(int64_t word)
{
    return (int)(word & ((1 << RANK_BITS) - 1)) - 1;
}

bool mutex_rank_lives(const struct client *c, int rank, uint64_t *incarnation)
{
    const struct page_rank *r = page_rank(c->page, rank);
    uint64_t where = atomic_load_explicit(&r->where, memory_order_acquire);
    *incarnation = where & 0xffffffff;
    return (int32_t)(where >> 32) >= 0 && !atomic_load_explicit(&r->done, memory_order_acquire);
}

bool mutex_owner_lives(const struct client *c, int64_t word)
{
    uint64_t incarnation;
    int rank = mutex_rank_of(word);
    if (rank >= c->size)
        return false;
    bool running = mutex_rank_lives(c, rank, &incarnation);
    unsigned ahead = (unsigned)((word & OWNER) >> RANK_BITS) - (unsigned)incarnation;
    ahead &= (1u << INCARNATION_BITS) - 1;
    return ahead ? ahead < 1u << (INCARNATION_BITS - 1) : running;
}

int64_t mutex_myself(const struct client *c)
{
    return mutex_owner_of(c->rank, c->incarnation);
}

static bool prepare(const keel_mutexes *m, struct op *op, enum op_kind kind, int home, size_t at, size_t len)
{
    if (near_bad_range(m->client, m->segment, home, at, len))
        return false;
    op_init(m->client, op, kind, m->segment, home, at, len);
    op->patient = true;
    return true;
}

keel_status mutex_load(keel_mutexes *m, int home, size_t at, int64_t *words, size_t n)
{
    struct op op;
    if (!prepare(m, &op, OP_GET, home, at, n * sizeof *words))
        return KEEL_ERR_ARG;
    op.dst = (uint8_t *)words;
    return op_run(&op);
}

keel_status mutex_store(keel_mutexes *m, int home, size_t at, int64_t word)
{
    struct op op;
    if (!prepare(m, &op, OP_PUT, home, at, sizeof word))
        return KEEL_ERR_ARG;
    op.src = (const uint8_t *)&word;
    return op_run(&op);
}

/* *old: what the word was. */
static keel_status change(keel_mutexes *m, int home, int number, keel_rmw_op how, int64_t a, int64_t b, int64_t *old)
{
    struct op op;
    if (!prepare(m, &op, OP_RMW, home, mutex_place(m, number), sizeof *old))
        return KEEL_ERR_ARG;
    op.what = (uint32_t)how;
    op.word = sizeof *old;
    op.a = a;
    op.b = b;
    keel_status status = op_run(&op);
    *old = op.result;
    return status;
}

keel_status mutex_arrive(keel_mutexes *m, int home, int number, int64_t *word)
{
    keel_status status = change(m, home, number, KEEL_RMW_ADD, ARRIVAL, 0, word);
    if (status == KEEL_OK)
        *word += ARRIVAL;
    return status;
}

keel_status mutex_swap(keel_mutexes *m, int home, int number, int64_t *word, int64_t to, bool *done)
{
    int64_t old = *word;
    keel_status status = change(m, home, number, KEEL_RMW_COMPARE_SWAP, *word, to, &old);
    *done = status == KEEL_OK && old == *word;
    *word = *done ? to : old;
    return status;
}
