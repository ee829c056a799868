/* Load against moves: what each method reaches when all spares are used, and how many slots it has moved for that; what
 * annealing finds for the same failures, whatever it moves; and what no map can beat. */
#include <stdlib.h>
#include <string.h>

#include "sim/cli/pool.h"
#include "sim/place/anneal.h"
#include "sim/place/figure.h"

enum { SEQUENCES = 40, CUBE_SEQUENCES = 10, MOST_MOVES = 64 }; /* that are annealed */

struct moves {
    const struct options *o;
    const struct figure *fig;
    struct setup setup; /* without a method */
    int32_t failures, sequences;
    int64_t steps;
    int32_t found[SEQUENCES], bound[SEQUENCES]; /* 0: not reached */
};

/* A map for one sequence: the nodes that die are those of sequence task in sampling with this seed. */
static const char *anneal_one(struct pool *p, int worker, int64_t task)
{
    struct moves *m = p->arg;
    struct setup s = m->setup;
    struct job *j = malloc(sizeof *j);
    struct anneal a = {0};
    (void)worker;
    strcpy(s.method, "repair(32)");
    if (!j || !job_open(j, &s)) {
        free(j);
        return "out of memory";
    }
    struct rng rng;
    rng_seed(&rng, m->o->seed * 1000003u + (uint64_t)task);
    for (int32_t left = m->failures; left > 0;) {
        int32_t node = j->place.home[rng_below(&rng, (uint64_t)j->place.slots)];
        left -= j->place.slot_at[node] != PLACE_DEAD;
        job_fail(j, node);
    }
    const char *why = anneal_open(&a, j, m->o->seed + (uint64_t)task, m->steps);
    while (!why && !atomic_load(&p->quit) && anneal_burst(&a))
        continue;
    if (!why && !atomic_load(&p->quit)) {
        m->found[task] = a.found;
        m->bound[task] = a.bound;
    }
    anneal_close(&a);
    job_close(j);
    free(j);
    return why;
}

/* The last row of a study, and the mean of its moves over all failures. */
static void study_row(const struct moves *m, const char *csv, const char *grid, const char *series, FILE *f)
{
    char line[FIGURE_CSV];
    double sum = 0, mean = 0, moves, n = 0;
    long long worst = 0, w;
    int failures;
    FILE *in = fopen(csv, "r");
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "%*[^,],%d,%*d,%lld,%lf,%*d,%*f,%*f,%lf", &failures, &w, &mean, &moves) == 4 && failures > 0) {
            sum += moves;
            n++;
            worst = w;
        }
    if (in)
        fclose(in);
    if ((int32_t)n == m->failures)
        fprintf(f, "%s,%s,%.4f,%.4f,%lld\n", grid, series, sum / n, mean, worst);
}

static bool anneal_rows(struct moves *m, const char *grid, FILE *f)
{
    struct pool pool = {
        .threads = m->o->threads, .tasks = m->sequences, .arg = m, .stop = &cli_stop, .run = anneal_one};
    const char *why = pool_run(&pool);
    double found = 0, bound = 0;
    int n = 0, most = 0, most_bound = 0;
    if (why)
        cli_die("%s", why);
    for (int i = 0; i < m->sequences; i++)
        if (m->found[i]) {
            n++;
            found += m->found[i];
            bound += m->bound[i];
            most = m->found[i] > most ? m->found[i] : most;
            most_bound = m->bound[i] > most_bound ? m->bound[i] : most_bound;
        }
    for (int x = 1; x <= MOST_MOVES && n; x += MOST_MOVES - 1)
        fprintf(f, "%s,annealed,%d,%.4f,%d\n", grid, x, found / n, most);
    for (int x = 1; x <= MOST_MOVES && n; x += MOST_MOVES - 1)
        fprintf(f, "%s,bound,%d,%.4f,%d\n", grid, x, bound / n, most_bound);
    return n == m->sequences;
}

bool figure_moves(const struct figure *fig, const struct options *o, FILE *f)
{
    static const char *const methods[] = {"0D",         "hybrid(all)", "hybrid(-2D)", "balance",   "repair(1)",
                                          "repair(2)",  "repair(3)",   "repair(4)",   "repair(6)", "repair",
                                          "repair(12)", "repair(16)",  "repair(32)",  "repair(64)"};
    bool cube = strcmp(fig->name, "moves12") == 0, whole = true;
    const char *grid = cube ? "12x12x12" : "12x12", *spares = cube ? "3D(2,1)" : "2D(2,1)";
    struct moves m = {
        .o = o, .fig = fig, .steps = cube ? 100000 : 400000, .sequences = cube ? CUBE_SEQUENCES : SEQUENCES};
    grid_parse(&m.setup.grid, grid);
    spare_parse(&m.setup.layout, spares);
    m.setup.pattern = setup_stencil(&m.setup.grid);
    m.failures = spare_count(&m.setup.layout, &m.setup.grid);
    fputs("grid,method,moves_per_failure,mean,worst\n", f);
    for (size_t i = 0; i < sizeof methods / sizeof *methods && whole; i++) {
        bool repair = methods[i][0] == 'r', balance = methods[i][0] == 'b';
        int64_t cases = balance ? FIGURE_BALANCE : repair ? FIGURE_MOVES : FIGURE_SAMPLES;
        if (strcmp(methods[i], "repair") == 0) /* repair(8), also behind the figures of balance */
            cases = FIGURE_REPAIR;
        struct figure_run r = {grid, spares, cube ? "7p" : "5p", methods[i], NULL, cases};
        char name[FIGURE_CSV];
        whole = figure_study(o, &r, name, sizeof name);
        study_row(&m, name, grid, repair ? "repair" : methods[i], f);
    }
    return whole && anneal_rows(&m, grid, f);
}
