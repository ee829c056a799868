/* The figures: what is run for each, and how it is drawn. */
#ifndef KEEL_SIM_PLACE_FIGURE_H
#define KEEL_SIM_PLACE_FIGURE_H
#include "sim/place/options.h"

/* One study behind a figure. */
struct figure_run {
    const char *grid, *spares, *pattern, *method, *tree;
    int64_t cases; /* unless --cases says otherwise */
};

/* Cases of a study unless --cases says otherwise: as many as the paper's, and fewer for methods that try many maps. */
enum {
    FIGURE_SAMPLES = 3686400,
    FIGURE_COLLECTIVE = 1000000,
    FIGURE_BALANCE = 400000,
    FIGURE_REPAIR = 30000,
    FIGURE_MOVES = 10000
};

enum { FIGURE_RUNS = 6, FIGURE_CURVES = 24, FIGURE_CSV = 4096 };

/* A curve of a CSV file: rows in which some columns have given values. */
struct curve {
    char label[64];    /* at its end */
    int column[3];     /* rows are the curve's where column[i] ... */
    char value[3][32]; /* ... is value[i]; column 0: no condition */
    int x, y;          /* columns, from 1 */
    double scale;      /* of y; 0: as it is */
    int colour, dash;  /* of the method */
    double width;      /* of the statistic; 0: points */
    bool marked;       /* its points are marked, and its name stands beside its last point, not in the margin */
    double last_x, last_y;
};

struct figure {
    const char *name, *title, *xlabel, *ylabel;
    struct figure_run run[FIGURE_RUNS];
    /* Instead of runs. returns false when it was interrupted: f holds what there is. */
    bool (*data)(const struct figure *fig, const struct options *o, FILE *f);
    /* Fills curve, after the data are there. returns how many. first[i]: the mean of run i without failures. */
    int (*curves)(const struct figure *fig, const double *first, struct curve *curve);
    const char *set; /* further gnuplot settings */
};

extern const struct figure figures[];

/* A study's CSV in o->dir, made or found. returns false when it was interrupted; then it holds whole sequences only. */
bool figure_study(const struct options *o, const struct figure_run *r, char *name, size_t len);

/* The data of figures 3, 8, 22 and moves. */
bool figure_shares(const struct figure *fig, const struct options *o, FILE *f);
bool figure_worst(const struct figure *fig, const struct options *o, FILE *f);
bool figure_mixed(const struct figure *fig, const struct options *o, FILE *f);
bool figure_moves(const struct figure *fig, const struct options *o, FILE *f);

/* Draws DIR/figNAME.csv as PNG and SVG. Dies; exits with 1 when gnuplot fails. */
void figure_draw(const struct options *o, const struct figure *fig, struct curve *curve, int n);
#endif
