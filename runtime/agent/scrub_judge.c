#include "runtime/agent/scrub_judge.h"

#include <stdlib.h>

enum { DRIFT = 1024 };

static int votes(const struct scrub_word *copy, int n, uint64_t sum)
{
    int of = 0;
    for (int i = 0; i < n; i++)
        of += copy[i].sum == sum;
    return of;
}

/* The sum that is right; false: nobody knows. */
static bool right_sum(const struct scrub_word *copy, int n, const struct scrub_kept *kept, uint64_t *sum)
{
    *sum = kept->sum;
    if (kept->any && votes(copy, n, kept->sum) > 0)
        return true;
    for (int i = 0; i < n; i++)
        if (2 * votes(copy, n, copy[i].sum) > n) {
            *sum = copy[i].sum;
            return true;
        }
    return false;
}

/* Has a write come to a copy of which it is not known that it has come to all? What is kept was in all copies when it
 * was: a write that was noted well before was complete then, or changes nothing. */
static bool is_written(const struct scrub_word *c, const struct scrub_kept *kept)
{
    return c->written || (c->noted_ns != UINT64_MAX && (!kept->any || c->noted_ns <= kept->age_ns));
}

enum scrub_verdict scrub_judge(const struct scrub_word *copy, int n, const struct scrub_kept *kept, unsigned *wrong)
{
    uint64_t sum;
    *wrong = 0;
    if (votes(copy, n, copy[0].sum) == n)
        return SCRUB_EQUAL;
    bool known = right_sum(copy, n, kept, &sum);
    for (int i = 0; i < n; i++) {
        bool differs = !known || copy[i].sum != sum;
        if (is_written(&copy[i], kept) || (differs && copy[i].stored))
            return SCRUB_BUSY;
        *wrong |= (unsigned)differs << i;
    }
    return known ? SCRUB_WRONG : SCRUB_UNKNOWN;
}

struct scrub_part *scrub_part(struct scrub_part **all, uint32_t seg, int slot, size_t blocks)
{
    struct scrub_part *p = *all;
    while (p && !(p->seg == seg && p->slot == slot && p->blocks == blocks))
        p = p->next;
    if (p || !(p = calloc(1, sizeof *p)))
        return p;
    *p = (struct scrub_part){.seg = seg,
                             .slot = slot,
                             .blocks = blocks,
                             .sum = calloc(blocks, sizeof *p->sum),
                             .since = calloc(blocks, sizeof *p->since)};
    p->next = *all;
    *all = p;
    if (p->sum && p->since)
        return p;
    p->pass = 0;
    *all = p->next;
    free(p->sum);
    free(p->since);
    free(p);
    return NULL;
}

void scrub_forget(struct scrub_part **all, uint64_t pass)
{
    while (*all) {
        struct scrub_part *p = *all;
        if (p->pass >= pass && pass != UINT64_MAX) {
            all = &p->next;
            continue;
        }
        *all = p->next;
        free(p->sum);
        free(p->since);
        free(p);
    }
}

void scrub_keep(struct scrub_part *p, size_t block, uint64_t sum, uint64_t asked_at)
{
    p->sum[block] = sum;
    p->since[block] = asked_at;
}

struct scrub_kept scrub_kept_of(const struct scrub_part *p, size_t block, uint64_t now, uint64_t slack_ns)
{
    if (!p || !p->since[block])
        return (struct scrub_kept){0};
    uint64_t age = now - p->since[block];
    return (struct scrub_kept){.any = true, .sum = p->sum[block], .age_ns = age + age / DRIFT + slack_ns};
}
