#include "apps/npb/mg_charges.h"

#include "apps/npb/random.h"

enum { CHARGES = 10 };

/* The points with the largest values so far, the smallest of them first. */
struct best {
    double value[CHARGES];
    uint64_t place[CHARGES]; /* (z n + y) n + x in the cube */
};

static void offer(struct best *best, double value, uint64_t place)
{
    if (value <= best->value[0])
        return;
    int i = 0;
    for (; i + 1 < CHARGES && best->value[i + 1] < value; i++) {
        best->value[i] = best->value[i + 1];
        best->place[i] = best->place[i + 1];
    }
    best->value[i] = value;
    best->place[i] = place;
}

static void place(const struct grid *grid, const struct best *best, double charge, double *v)
{
    for (int i = 0; i < CHARGES; i++) {
        size_t x = best->place[i] % grid->n, y = best->place[i] / grid->n % grid->n;
        size_t z = best->place[i] / grid->n / grid->n - grid->first; /* wraps if it is before the slab */
        if (z < grid->planes)
            v[(z + 1) * grid_plane(grid) + (y + 1) * (grid->n + 2) + x + 1] = charge;
    }
}

void mg_charges_place(struct npb *npb, const struct grid *grid, double *v)
{
    struct best mine[2] = {0}, all[2] = {0}; /* largest, and smallest: of 1 - value */
    struct best(*each)[2] = reserve((size_t)npb->size, sizeof *each);
    uint64_t from = grid->first * grid->n * grid->n, to = from + grid->planes * grid->n * grid->n;
    struct random random = random_at(RANDOM_SEED, from);
    for (uint64_t i = from; i < to; i++) {
        double value = random_next(&random);
        offer(&mine[0], value, i);
        offer(&mine[1], 1 - value, i);
    }
    npb_gather(npb, mine, each, sizeof mine);
    for (int r = 0; r < npb->size; r++)
        for (int i = 0; i < 2 * CHARGES; i++)
            offer(&all[i / CHARGES], each[r][i / CHARGES].value[i % CHARGES], each[r][i / CHARGES].place[i % CHARGES]);
    keel_local_free(each);
    place(grid, &all[0], 1, v);
    place(grid, &all[1], -1, v);
}
