#include "runtime/topo/lines.h"

#include <stdlib.h>
#include <string.h>

bool lines_init(struct lines *l, const struct place *p)
{
    int32_t cap = p->slots + p->slots / 2 + 1;
    *l = (struct lines){.cap = cap};
    l->move = malloc((size_t)cap * sizeof *l->move);
    l->first = malloc(((size_t)cap + 1) * sizeof *l->first);
    l->left = malloc((size_t)p->grid.nodes * sizeof *l->left);
    l->next = malloc((size_t)cap * sizeof *l->next);
    l->times = calloc((size_t)p->slots, sizeof *l->times);
    if (!l->move || !l->first || !l->left || !l->next || !l->times) {
        lines_fini(l);
        return false;
    }
    memset(l->left, -1, (size_t)p->grid.nodes * sizeof *l->left);
    lines_clear(l);
    return true;
}

void lines_fini(struct lines *l)
{
    free(l->move);
    free(l->first);
    free(l->left);
    free(l->next);
    free(l->times);
    *l = (struct lines){0};
}

void lines_clear(struct lines *l)
{
    l->count = l->lines = 0;
    l->first[0] = 0;
}

void lines_add(struct lines *l, int32_t slot, int32_t from, int32_t to)
{
    l->move[l->count++] = (struct place_move){.slot = slot, .from = from, .to = to};
}

void lines_end(struct lines *l)
{
    if (l->count > l->first[l->lines])
        l->first[++l->lines] = l->count;
}

void lines_of_plan(struct lines *l, const struct place_plan *plan)
{
    enum { NONE = -1, WAITS = -2 }; /* in next: nobody waits for the move; it is no line's first, either */
    lines_clear(l);
    for (int32_t i = 0; i < plan->count; i++)
        l->next[i] = NONE;
    for (int32_t i = 0; i < plan->count; i++) {
        int32_t before = l->left[plan->moves[i].to];
        l->left[plan->moves[i].to] = NONE;
        l->left[plan->moves[i].from] = i;
        if (before >= 0)
            l->next[before] = i;
    }
    for (int32_t i = 0; i < plan->count; i++)
        l->left[plan->moves[i].from] = l->left[plan->moves[i].to] = NONE;
    for (int32_t i = 0; i < plan->count; i++) {
        if (l->next[i] == WAITS)
            continue;
        for (int32_t at = i, then; at >= 0; at = then) { /* a move comes behind the one it waits for */
            const struct place_move *m = &plan->moves[at];
            lines_add(l, m->slot, m->from, m->to);
            then = l->next[at];
            l->next[at] = WAITS;
        }
        lines_end(l);
    }
}

struct lines_cost lines_cost(struct lines *l, const int64_t *bytes)
{
    struct lines_cost c = {.moves = l->count, .lines = l->lines};
    for (int32_t k = 0; k < l->lines; k++) {
        const struct place_move *m = l->move + l->first[k], *end = l->move + l->first[k + 1];
        int64_t sum = 0, most = 0;
        c.longest = end - m > c.longest ? (int32_t)(end - m) : c.longest;
        for (const struct place_move *i = m; i < end; i++) {
            int64_t n = bytes ? bytes[i->slot] : 1, own = n * ++l->times[i->slot];
            sum += n;
            most = own > most ? own : most;
        }
        for (const struct place_move *i = m; i < end; i++)
            l->times[i->slot] = 0;
        c.bytes += sum;
        c.one_by_one = sum > c.one_by_one ? sum : c.one_by_one;
        c.pipelined = most > c.pipelined ? most : c.pipelined;
    }
    return c;
}
