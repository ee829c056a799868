#include <stdlib.h>
#include <string.h>

#include "sim/place/figure.h"
#include "sim/place/worst.h"

/* Figure 3: the share of spares by number of nodes; exact where the sides are whole numbers. */
void figure_shares(const struct options *o, FILE *f)
{
    (void)o;
    fputs("q,r,s,nodes,exact_percent,formula_percent\n", f);
    for (int q = 2; q <= 3; q++)
        for (int r = 1; r <= q; r++)
            for (int side = q == 2 ? 10 : 5; side <= (q == 2 ? 1000 : 100); side += q == 2 ? 10 : 1) {
                int size[3] = {side, side, side};
                struct grid g;
                struct spare_layout l = {.q = q, .r = r, .s = 1};
                grid_init(&g, q, size, NULL);
                fprintf(f, "%d,%d,1,%d,%.6f,%.6f\n", q, r, g.nodes, 100.0 * spare_count(&l, &g) / g.nodes,
                        100 * spare_share(&l, g.nodes));
            }
}

/* Figure 22: the allocation that keeps the share between 2 and 5 percent, beside the fixed ones. */
void figure_mixed(const struct options *o, FILE *f)
{
    (void)o;
    fputs("kind,r,s,nodes,exact_percent\n", f);
    for (int r = 1; r <= 4; r++)
        for (int side = 10; side <= 160; side++) {
            int size[3] = {side, side, side};
            struct grid g;
            struct spare_layout l = {.q = 3, .r = r, .s = 1};
            grid_init(&g, 3, size, NULL);
            double share = r == 4 ? spare_choose(&g, 0.02, 0.05, &l) : (double)spare_count(&l, &g) / g.nodes;
            fprintf(f, "%s,%d,%d,%d,%.6f\n", r == 4 ? "chosen" : "fixed", l.r, l.s, g.nodes, 100 * share);
        }
}

static void worst_rows(FILE *f, const char *grid, const char *spares, const char *method, enum load_convention count,
                       int32_t failures, bool search)
{
    struct worst_config c = {
        .setup = {.pattern = PATTERN_5P, .convention = count}, .failures = failures, .stop = &cli_stop};
    struct setup *s = &c.setup;
    struct worst_result r;
    grid_parse(&s->grid, grid);
    spare_parse(&s->layout, spares);
    strcpy(s->method, method);
    const char *why = search ? worst_run(&c, &r) : worst_climb(&c, &r);
    if (why)
        cli_die("%s", why);
    for (int32_t i = 1; i <= failures; i++)
        if (r.collisions[i] >= 0)
            fprintf(f, "%s,%d,%d,%d,%s,%s,%s,%d,%d\n", method, s->layout.q, s->layout.r, s->layout.s, grid,
                    count == LOAD_ALL ? "all" : "received",
                    r.interrupted ? "interrupted"
                    : search      ? "search"
                                  : "climb",
                    i, r.collisions[i]);
}

static void law_rows(FILE *f)
{
    for (int i = 1; i <= 10; i++)
        fprintf(f, "0D,2,1,1,mesh,law,law,%d,%d\n", i, i <= 6 ? 2 * i + 1 : 4 * (i - 3));
    for (int i = 1; i <= 10; i++)
        fprintf(f, "0D,2,1,1,torus,law,law,%d,%d\n", i, 2 * i + 1);
    for (int i = 1; i <= 3; i++)
        fprintf(f, "1D,2,2,1,mesh,law,law,%d,%d\n", i, 2 + i);
    for (int i = 1; i <= 2; i++)
        fprintf(f, "2D,2,2,1,mesh,law,law,%d,1\n", i);
}

/* Figure 8: the worst cases of 0D, 1D and 2D. Grids wide enough for the laws are climbed (a lower bound that meets the
 * law), small ones searched in full (a proof). */
void figure_worst(const struct options *o, FILE *f)
{
    (void)o;
    fputs("method,q,r,s,grid,count,how,failures,worst\n", f);
    law_rows(f);
    for (int c = LOAD_ALL; c <= LOAD_RECEIVED; c++) {
        worst_rows(f, "31x31", "2D(1,1)", "0D", (enum load_convention)c, 10, false);
        worst_rows(f, "61tx61t", "2D(1,1)", "0D", (enum load_convention)c, 10, false);
        worst_rows(f, "31x31", "2D(2,1)", "0D", (enum load_convention)c, 10, false);
    }
    worst_rows(f, "12x12", "2D(1,1)", "0D", LOAD_ALL, 6, true);
    worst_rows(f, "12x12", "2D(1,1)", "0D", LOAD_RECEIVED, 8, true);
    worst_rows(f, "31x31", "2D(1,1)", "0D", LOAD_RECEIVED, 10, true);
    worst_rows(f, "7tx7t", "2D(1,1)", "0D", LOAD_ALL, 5, true);
    worst_rows(f, "8x8", "2D(2,1)", "0D", LOAD_ALL, 5, true);
    worst_rows(f, "8x8", "2D(2,1)", "1D", LOAD_ALL, 5, true);
    worst_rows(f, "16x16", "2D(2,1)", "2D", LOAD_ALL, 3, true);
    worst_rows(f, "6x6", "2D(2,1)", "hybrid(all)", LOAD_ALL, 6, true);
    worst_rows(f, "6x6", "2D(2,1)", "hybrid(-2D)", LOAD_ALL, 6, true);
}
