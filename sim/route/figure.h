/* The figures of docs/routing.md: each is a batch of cells, a CSV file, a gnuplot script, a PNG and an SVG. */
#ifndef KEEL_SIM_ROUTE_FIGURE_H
#define KEEL_SIM_ROUTE_FIGURE_H
#include "sim/route/options.h"

enum { FIGURE_MAX_CELLS = 160 };

/* Cells of a figure in the making, and what they point to. */
struct figure_plan {
    struct batch_cell cell[FIGURE_MAX_CELLS];
    int n;
    struct fabric fabric; /* when the figure has its own */
    struct trace trace[8];
    int ntraces;
};

struct figure {
    const char *name, *title, *xlabel;
    int reps;             /* unless the user says otherwise */
    double time_ms, load; /* likewise */
    bool learned;         /* measured in the second half of the run only */
    const char *xtics;    /* gnuplot's list, or NULL for numbers */
    const char *set;      /* further gnuplot settings, or NULL */
    /* Panels: column of the CSV, its label, further settings; a row of two plots. `only`: what the names of its series
     * begin with (left out in the picture), or NULL for all. */
    struct {
        const char *column, *label, *set, *only;
    } panel[2];
    /* Fill p->cell; returns NULL or what is wrong. */
    const char *(*cells)(const struct figure *f, struct options *o, struct figure_plan *p);
};

extern const struct figure figures[];
extern const int nfigures;

/* Figures that are no batch of means: OUT/latency.csv and OUT/connectivity.csv, with their plots.
 * returns NULL or what is wrong. */
const char *figure_latency(struct options *o);
const char *figure_connectivity(struct options *o);
const char *figure_learning(struct options *o);
const char *figure_outages(struct options *o);
/* Of a series, from 1. */
const char *figure_color(int i);

/* What a figure that was interrupted too early says: it has written nothing. */
#define FIGURE_NOTHING_YET "interrupted before there was anything to draw"

/* One run of a cell without failures, before searches of routes that take longer than it: is anything measured? returns
 * NULL or what is wrong. */
const char *figure_try(const struct batch_cell *cell, uint64_t seed);
/* batch_run, and something must have been measured. */
const char *figure_run(struct batch *b);

/* Open OUT/name.ext for writing; ends the program with one line when that fails. */
FILE *figure_open(const struct options *o, const char *name, const char *ext);
/* Run OUT/name.gp for both pictures; the script plots to the terminal it is given by this header. */
void figure_script_begin(FILE *gp, const char *name, const char *title);
const char *figure_plot(const struct options *o, const char *name);
/* OUT/name.gp of a figure of means: two panels, a line or row of points for each series of the cells. */
void figure_script(const struct options *o, const struct figure *f, const struct batch *b);
#endif
