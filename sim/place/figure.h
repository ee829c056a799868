/* The figures: what is run for each, and how it is drawn. */
#ifndef KEEL_SIM_PLACE_FIGURE_H
#define KEEL_SIM_PLACE_FIGURE_H
#include "sim/place/options.h"

/* One study behind a figure. */
struct figure_run {
    const char *grid, *spares, *pattern, *method, *tree;
    int64_t cases; /* unless --cases says otherwise */
};

enum { FIGURE_RUNS = 6 };

struct figure {
    const char *name, *title;
    struct figure_run run[FIGURE_RUNS];
    void (*data)(const struct options *o, FILE *f); /* instead of runs */
    const char *plot;                               /* gnuplot commands; CSV is the data file */
};

extern const struct figure figures[];

/* The data of figures 3, 8 and 22. */
void figure_shares(const struct options *o, FILE *f);
void figure_worst(const struct options *o, FILE *f);
void figure_mixed(const struct options *o, FILE *f);
#endif
