/* Figure 8: the worst cases of 0D, 1D and 2D. Grids wide enough for the laws are climbed (a lower bound that meets the
 * law), small ones searched in full (a proof). Each study is a task of its own and keeps its rows in a file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/pool.h"
#include "sim/place/figure.h"
#include "sim/place/worst.h"

/* What the rows of a search depend on besides its parameters: counted up when searches or methods change. */
enum { VERSION = 2 };

static const struct study {
    const char *grid, *spares, *method;
    enum load_convention count;
    int32_t failures;
    bool search;
} studies[] = {
    {"12x12", "2D(1,1)", "0D", LOAD_ALL, 6, true},
    {"12x12", "2D(1,1)", "0D", LOAD_RECEIVED, 8, true},
    {"31x31", "2D(1,1)", "0D", LOAD_RECEIVED, 10, true},
    {"31x31", "2D(1,1)", "0D", LOAD_ALL, 10, false},
    {"31x31", "2D(1,1)", "0D", LOAD_RECEIVED, 10, false},
    {"61tx61t", "2D(1,1)", "0D", LOAD_ALL, 10, false},
    {"61tx61t", "2D(1,1)", "0D", LOAD_RECEIVED, 10, false},
    {"31x31", "2D(2,1)", "0D", LOAD_ALL, 10, false},
    {"31x31", "2D(2,1)", "0D", LOAD_RECEIVED, 10, false},
    {"7tx7t", "2D(1,1)", "0D", LOAD_ALL, 5, true},
    {"8x8", "2D(2,1)", "0D", LOAD_ALL, 5, true},
    {"8x8", "2D(2,1)", "1D", LOAD_ALL, 5, true},
    {"16x16", "2D(2,1)", "2D", LOAD_ALL, 3, true},
    {"6x6", "2D(2,1)", "hybrid(all)", LOAD_ALL, 6, true},
    {"6x6", "2D(2,1)", "hybrid(-2D)", LOAD_ALL, 6, true},
};
enum { STUDIES = sizeof studies / sizeof *studies };

struct searches {
    const struct options *o;
    struct worst_result result[STUDIES];
    bool done[STUDIES];
    int64_t todo[STUDIES]; /* those without a file */
};

static const char *count_name(const struct study *s)
{
    return s->count == LOAD_ALL ? "all" : "received";
}

static void study_name(const struct options *o, const struct study *s, char *buf, size_t len)
{
    if ((size_t)snprintf(buf, len, "%s/worst%d_%s_%s_%s_%s_%s%d.csv", o->dir, VERSION, s->grid, s->spares, s->method,
                         count_name(s), s->search ? "search" : "climb", s->failures) >= len)
        cli_die("the folder name is too long");
}

static const char *search(struct pool *p, int worker, int64_t task)
{
    struct searches *all = p->arg;
    const struct study *s = &studies[all->todo[task]];
    struct worst_config c = {.setup = {.pattern = PATTERN_5P, .convention = s->count},
                             .failures = s->failures,
                             .threads = 1,
                             .memory = ((size_t)2 << 30) / (size_t)p->threads,
                             .stop = &p->quit};
    (void)worker;
    grid_parse(&c.setup.grid, s->grid);
    spare_parse(&c.setup.layout, s->spares);
    strcpy(c.setup.method, s->method);
    struct worst_result *r = &all->result[all->todo[task]];
    return s->search ? worst_run(&c, r) : worst_climb(&c, r);
}

static void write_rows(FILE *f, const struct study *s, const struct worst_result *r)
{
    struct spare_layout l;
    spare_parse(&l, s->spares);
    for (int32_t i = 1; i <= s->failures; i++)
        if (r->collisions[i] >= 0)
            fprintf(f, "%s,%d,%d,%d,%s,%s,%s,%d,%d,%s %s\n", s->method, l.q, l.r, l.s, s->grid, count_name(s),
                    s->search ? "search" : "climb", i, r->collisions[i], s->grid, count_name(s));
}

static void keep(struct pool *p, int worker, int64_t task)
{
    struct searches *all = p->arg;
    int64_t i = all->todo[task];
    char name[FIGURE_CSV];
    struct out out;
    (void)worker;
    all->done[i] = !all->result[i].interrupted;
    if (!all->done[i])
        return;
    study_name(all->o, &studies[i], name, sizeof name);
    out_open(&out, name);
    write_rows(out.f, &studies[i], &all->result[i]);
    out_commit(&out);
}

static void show(struct pool *p, double seconds)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rworst cases: %lld of %lld searches, %.0f s \033[K", (long long)p->finished,
                (long long)p->tasks, seconds);
}

static void law_rows(FILE *f)
{
    for (int i = 1; i <= 10; i++)
        fprintf(f, "0D,2,1,1,mesh,law,law,%d,%d,mesh\n", i, i <= 6 ? 2 * i + 1 : 4 * (i - 3));
    for (int i = 1; i <= 10; i++)
        fprintf(f, "0D,2,1,1,torus,law,law,%d,%d,torus\n", i, 2 * i + 1);
    for (int i = 1; i <= 3; i++)
        fprintf(f, "1D,2,2,1,mesh,law,law,%d,%d,mesh\n", i, 2 + i);
    for (int i = 1; i <= 2; i++)
        fprintf(f, "2D,2,2,1,mesh,law,law,%d,1,mesh\n", i);
}

static bool copy_rows(const char *name, FILE *to)
{
    char line[FIGURE_CSV];
    FILE *f = fopen(name, "r");
    if (!f)
        return false;
    while (fgets(line, sizeof line, f))
        fputs(line, to);
    fclose(f);
    return true;
}

bool figure_worst(const struct figure *fig, const struct options *o, FILE *f)
{
    char name[FIGURE_CSV];
    (void)fig;
    struct searches *all = calloc(1, sizeof *all);
    if (!all)
        cli_die("out of memory");
    all->o = o;
    struct pool pool = {
        .threads = o->threads, .arg = all, .stop = &cli_stop, .run = search, .done = keep, .watch = show};
    for (int i = 0; i < STUDIES; i++) {
        study_name(o, &studies[i], name, sizeof name);
        if (!o->resume || access(name, R_OK) != 0)
            all->todo[pool.tasks++] = i;
        else
            all->done[i] = true;
    }
    const char *why = pool.tasks ? pool_run(&pool) : NULL;
    if (why)
        cli_die("%s", why);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    fputs("method,q,r,s,grid,count,how,failures,worst,net\n", f);
    law_rows(f);
    bool whole = true;
    for (int i = 0; i < STUDIES; i++) {
        study_name(o, &studies[i], name, sizeof name);
        whole = all->done[i] && copy_rows(name, f) && whole;
    }
    free(all);
    return whole;
}
