#include <string.h>

#include "sim/place/figure.h"

#define K24 "24x24x24", "3D(2,1)", "7p"
#define K12 "12x12x12", "3D(2,1)", "7p"
#define K100 "100x100", "2D(2,1)", "5p"

/* Columns of a study's CSV as it stands in a figure: the pattern comes first. */
enum { PATTERN_COLUMN = 1, METHOD_COLUMN, FAILURES_COLUMN, WORST_COLUMN = 5, MEAN_COLUMN, BEST_COLUMN };

/* Colour and line style of a method, the same in every figure but where a colour tells something else. */
static int style_of(const char *method)
{
    static const char *const methods[] = {"0D", "hybrid(all)", "hybrid(-2D)", "balance", "repair", "1D", "2D", "3D"};
    for (int i = 0; i < (int)(sizeof methods / sizeof *methods); i++)
        if (strcmp(methods[i], method) == 0)
            return i;
    return 4; /* repair(N) */
}

static struct curve curve_of(const struct figure_run *r, int column, double width, const char *what)
{
    struct curve c = {.column = {METHOD_COLUMN, PATTERN_COLUMN},
                      .x = FAILURES_COLUMN,
                      .y = column,
                      .colour = style_of(r->method),
                      .dash = style_of(r->method),
                      .width = width};
    snprintf(c.value[0], sizeof c.value[0], "%s", r->method);
    snprintf(c.value[1], sizeof c.value[1], "%s", r->pattern);
    snprintf(c.label, sizeof c.label, "%s %s", r->method, what);
    return c;
}

/* Worst, mean and best of each run, as the paper draws them. */
static int three_each(const struct figure *fig, const double *first, struct curve *curve)
{
    int n = 0;
    (void)first;
    for (const struct figure_run *r = fig->run; r < fig->run + FIGURE_RUNS && r->grid; r++) {
        curve[n++] = curve_of(r, WORST_COLUMN, 1.5, "worst");
        curve[n++] = curve_of(r, MEAN_COLUMN, 3, "mean");
        curve[n++] = curve_of(r, BEST_COLUMN, 1, "best");
    }
    return n;
}

static int mean_and_worst(const struct figure *fig, const double *first, struct curve *curve)
{
    int n = 0;
    (void)first;
    for (const struct figure_run *r = fig->run; r < fig->run + FIGURE_RUNS && r->grid; r++) {
        curve[n++] = curve_of(r, MEAN_COLUMN, 3, "mean");
        curve[n++] = curve_of(r, WORST_COLUMN, 1.5, "worst");
    }
    return n;
}

/* Means relative to those without failures; a colour for each pattern, a line style for each method. */
static int relative(const struct figure *fig, const double *first, struct curve *curve)
{
    static const char *const patterns[] = {"barrier", "ring", "7p"};
    int n = 0;
    for (const struct figure_run *r = fig->run; r < fig->run + FIGURE_RUNS && r->grid; r++, n++) {
        curve[n] = curve_of(r, MEAN_COLUMN, 2.2, "");
        curve[n].scale = first[n] > 0 ? 1 / first[n] : 1;
        for (int i = 0; i < 3; i++)
            if (strcmp(patterns[i], r->pattern) == 0)
                curve[n].colour = i;
        snprintf(curve[n].label, sizeof curve[n].label, "%s, %s", r->pattern, r->method);
    }
    return n;
}

static int shares_curves(const struct figure *fig, const double *first, struct curve *curve)
{
    int n = 0;
    (void)fig, (void)first;
    for (int q = 2; q <= 3; q++)
        for (int r = 1; r <= q; r++, n++) {
            curve[n] = (struct curve){.column = {1, 2}, .x = 4, .y = 5, .colour = n, .dash = q - 2, .width = 2};
            snprintf(curve[n].value[0], 32, "%d", q);
            snprintf(curve[n].value[1], 32, "%d", r);
            snprintf(curve[n].label, 64, "%dD(%d,1)", q, r);
        }
    return n;
}

static int mixed_curves(const struct figure *fig, const double *first, struct curve *curve)
{
    (void)fig, (void)first;
    for (int r = 1; r <= 4; r++) {
        curve[r - 1] = (struct curve){.column = {1, r < 4 ? 2 : 0},
                                      .value = {"fixed"},
                                      .x = 4,
                                      .y = 5,
                                      .colour = r < 4 ? r - 1 : 4,
                                      .dash = r < 4 ? 1 : 0,
                                      .width = r < 4 ? 1 : 3};
        snprintf(curve[r - 1].value[1], 32, "%d", r);
        snprintf(curve[r - 1].label, 64, "3D(%d,1)", r);
    }
    strcpy(curve[3].value[0], "chosen");
    strcpy(curve[3].label, "chosen");
    return 4;
}

static int worst_curves(const struct figure *fig, const double *first, struct curve *curve)
{
    static const struct {
        const char *method, *sides, *grid, *label;
        double width;
        int dash;
        int colour;
    } line[] = {{"0D", "1", "mesh", "0D 2D(1,1) mesh, law", 1.5, 0, 0},
                {"0D", "1", "31x31", "0D 2D(1,1) 31x31", 0, 0, 0},
                {"0D", "1", "torus", "0D 2D(1,1) torus, law", 1.5, 0, 4},
                {"0D", "1", "61tx61t", "0D 2D(1,1) torus 61x61", 0, 4, 4},
                {"0D", "2", "31x31", "0D 2D(2,1) 31x31", 1.5, 0, 3},
                {"0D", "1", "12x12", "0D 2D(1,1) 12x12", 0, 6, 0},
                {"1D", "2", "8x8", "1D 2D(2,1) 8x8", 1.5, 5, 5},
                {"2D", "2", "16x16", "2D 2D(2,1) 16x16", 1.5, 6, 6},
                {"hybrid(all)", "2", "6x6", "hybrid(all) 6x6", 1.5, 1, 1}};
    int n = 0;
    (void)fig, (void)first;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++, n++) {
        bool law = strcmp(line[i].grid, "mesh") == 0 || strcmp(line[i].grid, "torus") == 0;
        curve[n] = (struct curve){.column = {1, 3, law ? 5 : 10},
                                  .x = 8,
                                  .y = 9,
                                  .colour = line[i].colour,
                                  .dash = line[i].dash,
                                  .width = line[i].width};
        snprintf(curve[n].value[0], 32, "%s", line[i].method);
        snprintf(curve[n].value[1], 32, "%s", line[i].sides);
        snprintf(curve[n].value[2], 32, "%s%s", line[i].grid, law ? "" : " all");
        snprintf(curve[n].label, 64, "%s", line[i].label);
    }
    return n;
}

/* by_3D, by_2D, by_1D and by_0D as shares; 14 of each failure, 15 of all up to there: columns added by the figure. */
static int used_curves(const struct figure *fig, const double *first, struct curve *curve)
{
    bool so_far = strcmp(fig->name, "15") == 0;
    (void)first;
    for (int k = 0; k < 4; k++) {
        curve[k] = (struct curve){.x = FAILURES_COLUMN, .y = 18 + (so_far ? 4 : 0) + k, .width = 2.2};
        snprintf(curve[k].label, 64, "%dD", 3 - k);
        curve[k].colour = curve[k].dash = style_of(curve[k].label);
    }
    return 4;
}

static int moves_curves(const struct figure *fig, const double *first, struct curve *curve)
{
    static const char *const methods[] = {"0D", "hybrid(all)", "hybrid(-2D)", "balance", "repair", "annealed", "bound"};
    int n = 0;
    (void)first;
    for (int i = 0; i < 7; i++, n++) {
        curve[n] = (struct curve){
            .column = {1, 2}, .x = 3, .y = 4, .colour = i, .dash = i, .width = i >= 4 ? 2 : 0, .marked = i <= 4};
        snprintf(curve[n].value[0], 32, "%s", strcmp(fig->name, "moves12") == 0 ? "12x12x12" : "12x12");
        snprintf(curve[n].value[1], 32, "%s", methods[i]);
        snprintf(curve[n].label, 64, "%s", i == 4 ? "repair(1) ... repair(64)" : i == 6 ? "bound, proven" : methods[i]);
    }
    return n;
}

#define FAILURES .xlabel = "node failures", .ylabel = "messages on the most used link"
#define RELATIVE .xlabel = "node failures", .ylabel = "collisions, relative to no failure"
#define SPARES .xlabel = "nodes", .ylabel = "spare nodes, %"

const struct figure figures[] = {
    {.name = "3",
     .title = "Share of spare nodes",
     SPARES,
     .data = figure_shares,
     .curves = shares_curves,
     .set = "set logscale x; set yrange [0:50]\n"},
    {.name = "8",
     .title = "Worst cases (5-point stencil)",
     FAILURES,
     .data = figure_worst,
     .curves = worst_curves,
     .set = "set xrange [0.5:10.5]\n"},
    {.name = "10",
     .title = "hybrid(all) and 0D, 100x100, 2D(2,1), 5-point stencil",
     FAILURES,
     .run = {{K100, "hybrid(all)", NULL, 3340000}, {K100, "0D", NULL, 3340000}},
     .curves = three_each},
    {.name = "11",
     .title = "hybrid(all) and 0D, 12x12x12, 3D(2,1), 7-point stencil",
     FAILURES,
     .run = {{K12, "hybrid(all)", NULL, FIGURE_SAMPLES}, {K12, "0D", NULL, FIGURE_SAMPLES}},
     .curves = three_each},
    {.name = "12",
     .title = "hybrid(all) and 0D, 24x24x24, 3D(2,1), 7-point stencil",
     FAILURES,
     .run = {{K24, "hybrid(all)", NULL, FIGURE_SAMPLES}, {K24, "0D", NULL, FIGURE_SAMPLES}},
     .curves = three_each},
    {.name = "13",
     .title = "hybrid(-2D) and hybrid(all), 24x24x24, 3D(2,1), 7-point stencil",
     FAILURES,
     .run = {{K24, "hybrid(-2D)", NULL, FIGURE_SAMPLES}, {K24, "hybrid(all)", NULL, FIGURE_SAMPLES}},
     .curves = three_each},
    {.name = "14",
     .title = "Method used by hybrid(all), 24x24x24, 3D(2,1)",
     .xlabel = "node failures",
     .ylabel = "substitutions, %",
     .run = {{K24, "hybrid(all)", NULL, FIGURE_SAMPLES}},
     .curves = used_curves,
     .set = "set logscale x; set xrange [0.8:1200]; set yrange [0:105]\n"},
    {.name = "15",
     .title = "Method used by hybrid(all) up to here, 24x24x24, 3D(2,1)",
     .xlabel = "node failures",
     .ylabel = "substitutions so far, %",
     .run = {{K24, "hybrid(all)", NULL, FIGURE_SAMPLES}},
     .curves = used_curves,
     .set = "set logscale x; set xrange [0.8:1200]; set yrange [0:105]\n"},
    {.name = "20",
     .title = "Barrier and allreduce, 12x12x12, 3D(2,1)",
     RELATIVE,
     .run = {{"12x12x12", "3D(2,1)", "barrier", "hybrid(all)", NULL, FIGURE_COLLECTIVE},
             {"12x12x12", "3D(2,1)", "barrier", "hybrid(-2D)", NULL, FIGURE_COLLECTIVE},
             {"12x12x12", "3D(2,1)", "ring", "hybrid(all)", NULL, FIGURE_COLLECTIVE},
             {"12x12x12", "3D(2,1)", "ring", "hybrid(-2D)", NULL, FIGURE_COLLECTIVE}},
     .curves = relative},
    {.name = "21",
     .title = "Barrier and allreduce, 16x8x8, 3D(2,1)",
     RELATIVE,
     .run = {{"16x8x8", "3D(2,1)", "barrier", "hybrid(all)", NULL, FIGURE_COLLECTIVE},
             {"16x8x8", "3D(2,1)", "barrier", "hybrid(-2D)", NULL, FIGURE_COLLECTIVE},
             {"16x8x8", "3D(2,1)", "ring", "hybrid(all)", NULL, FIGURE_COLLECTIVE},
             {"16x8x8", "3D(2,1)", "ring", "hybrid(-2D)", NULL, FIGURE_COLLECTIVE}},
     .curves = relative},
    {.name = "22",
     .title = "Share of spare nodes, kept between 2 and 5 %",
     SPARES,
     .data = figure_mixed,
     .curves = mixed_curves,
     .set = "set logscale x; set yrange [0:20]\n"},
    {.name = "fattree",
     .title = "Fat tree of 7x7x7 nodes, 18 per edge switch, 18 spines",
     RELATIVE,
     .run = {{"7x7x7", "3D(2,1)", "7p", "hybrid(all)", "18,18", FIGURE_COLLECTIVE},
             {"7x7x7", "3D(2,1)", "7p", "0D", "18,18", FIGURE_COLLECTIVE},
             {"7x7x7", "3D(2,1)", "barrier", "hybrid(all)", "18,18", FIGURE_COLLECTIVE},
             {"7x7x7", "3D(2,1)", "barrier", "0D", "18,18", FIGURE_COLLECTIVE},
             {"7x7x7", "3D(2,1)", "ring", "hybrid(all)", "18,18", FIGURE_COLLECTIVE},
             {"7x7x7", "3D(2,1)", "ring", "0D", "18,18", FIGURE_COLLECTIVE}},
     .curves = relative},
    {.name = "balance12",
     .title = "Mean and worst, 12x12x12, 3D(2,1), 7-point stencil",
     FAILURES,
     .run = {{K12, "0D", NULL, FIGURE_SAMPLES},
             {K12, "hybrid(all)", NULL, FIGURE_SAMPLES},
             {K12, "hybrid(-2D)", NULL, FIGURE_SAMPLES},
             {K12, "balance", NULL, FIGURE_BALANCE},
             {K12, "repair", NULL, FIGURE_REPAIR}},
     .curves = mean_and_worst},
    {.name = "balance24",
     .title = "Mean and worst, 24x24x24, 3D(2,1), 7-point stencil",
     FAILURES,
     .run = {{K24, "0D", NULL, FIGURE_SAMPLES},
             {K24, "hybrid(all)", NULL, FIGURE_SAMPLES},
             {K24, "hybrid(-2D)", NULL, FIGURE_SAMPLES},
             {K24, "balance", NULL, FIGURE_BALANCE},
             {K24, "repair", NULL, FIGURE_REPAIR}},
     .curves = mean_and_worst},
    {.name = "balance100",
     .title = "Mean and worst, 100x100, 2D(2,1), 5-point stencil",
     FAILURES,
     .run = {{K100, "0D", NULL, 3340000},
             {K100, "hybrid(all)", NULL, 3340000},
             {K100, "hybrid(-2D)", NULL, 3340000},
             {K100, "balance", NULL, FIGURE_BALANCE},
             {K100, "repair", NULL, FIGURE_REPAIR}},
     .curves = mean_and_worst},
    {.name = "moves",
     .title = "Load against moves, 12x12, 2D(2,1), all 23 spares used",
     .xlabel = "moves per failure",
     .ylabel = "messages on the most used link, mean",
     .data = figure_moves,
     .curves = moves_curves,
     .set = "set logscale x\n"},
    {.name = "moves12",
     .title = "Load against moves, 12x12x12, 3D(2,1), all 276 spares used",
     .xlabel = "moves per failure",
     .ylabel = "messages on the most used link, mean",
     .data = figure_moves,
     .curves = moves_curves,
     .set = "set logscale x\n"},
    {.name = NULL},
};
