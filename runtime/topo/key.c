#include "runtime/topo/key.h"

#include <stdlib.h>
#include <string.h>

bool load_key_init(struct load_key *k, const struct load *l)
{
    int32_t most = 0;
    for (int32_t i = 0; i < l->pattern->phases; i++)
        most = l->phase[i].cap > most ? l->phase[i].cap : most;
    *k = (struct load_key){.links_with = calloc((size_t)most + 2, sizeof *k->links_with)};
    return k->links_with;
}

void load_key_fini(struct load_key *k)
{
    free(k->links_with);
    *k = (struct load_key){0};
}

void load_key_read(struct load_key *k, const struct load *l, int32_t moves)
{
    k->collisions = load_collisions(l);
    k->hops = l->hops;
    k->moves = moves;
    k->squares = 0;
    if (l->pattern->phases == 1) {
        memcpy(k->links_with, l->phase[0].hist, ((size_t)l->phase[0].max + 1) * sizeof *k->links_with);
        return;
    }
    for (int32_t i = 0; i < l->pattern->phases; i++)
        for (int64_t n = 1; n <= l->phase[i].max; n++)
            k->squares += n * n * l->phase[i].hist[n];
}

bool load_key_better(const struct load_key *a, const struct load_key *b)
{
    if (a->collisions != b->collisions)
        return a->collisions < b->collisions;
    if (a->squares != b->squares)
        return a->squares < b->squares;
    for (int32_t n = a->collisions; !a->squares && n > 1; n--)
        if (a->links_with[n] != b->links_with[n])
            return a->links_with[n] < b->links_with[n];
    return a->hops != b->hops ? a->hops < b->hops : a->moves < b->moves;
}
