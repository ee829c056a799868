/* Pictures with gnuplot: colours that the colour-blind can tell apart, a colour and a line style for each method, a
 * weight for each statistic, and a name at the end of each curve. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim/place/figure.h"

/* Okabe and Ito's, without the yellow. */
static const char *const palette[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#000000", "#56B4E9", "#E69F00", "#7F7F7F"};
enum { COLOURS = sizeof palette / sizeof *palette };

/* Line styles: what is drawn and left out in turn, in points whatever the weight; all zero is a whole line. */
static const float styles[][6] = {{0},     {8, 3},          {2.5F, 2.5F}, {9, 3, 2, 3}, {9, 2, 2, 2, 2, 2},
                                  {14, 4}, {5, 4, 1.5F, 4}, {4, 2}};
enum { STYLES = sizeof styles / sizeof *styles };

/* gnuplot makes dashes longer where a line is heavier: that is taken back. */
static void put_style(FILE *g, int dash, double width)
{
    const float *s = styles[dash % STYLES];
    const double unit = 3.5; /* of gnuplot's, to a point */
    if (!(s[0] > 0)) {
        fputs("dt 1", g);
        return;
    }
    for (int i = 0; i < 6 && s[i] > 0; i++)
        fprintf(g, "%s%.3g", i ? "," : "dt (", unit * (double)s[i] / width);
    fputc(')', g);
}

/* The field of a line of CSV, from 1; methods have no commas outside parentheses. */
static const char *field(const char *line, int column, char *buf, size_t len)
{
    const char *at = line;
    for (int i = 1; i < column && at; i++) {
        at = strchr(at, ',');
        at += at != NULL;
    }
    size_t n = at ? strcspn(at, ",\n") : 0;
    n = n < len ? n : len - 1;
    memcpy(buf, at ? at : "", n);
    buf[n] = '\0';
    return buf;
}

static bool is_on(const struct curve *c, const char *line)
{
    char have[64];
    for (int i = 0; i < 3; i++)
        if (c->column[i] && strcmp(field(line, c->column[i], have, sizeof have), c->value[i]) != 0)
            return false;
    return true;
}

/* Where the curves end, and the range of y. */
static void find_ends(const char *csv, struct curve *curve, int n, double *low, double *high)
{
    char line[FIGURE_CSV], text[64];
    FILE *f = fopen(csv, "r");
    *low = 0;
    *high = 0;
    for (int i = 0; i < n; i++)
        curve[i].last_x = -1;
    while (f && fgets(line, sizeof line, f))
        for (int i = 0; i < n; i++) {
            if (!is_on(&curve[i], line))
                continue;
            curve[i].last_x = atof(field(line, curve[i].x, text, sizeof text));
            curve[i].last_y =
                atof(field(line, curve[i].y, text, sizeof text)) * (curve[i].scale > 0 ? curve[i].scale : 1);
            *high = curve[i].last_y > *high ? curve[i].last_y : *high;
        }
    if (f)
        fclose(f);
}

/* Names beside the curves' ends, pushed apart where they would cover each other. */
static void put_labels(FILE *g, struct curve *curve, int n, double high)
{
    struct curve *order[FIGURE_CURVES];
    double at[FIGURE_CURVES], gap = high / 24;
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (curve[i].last_x < 0 || !curve[i].label[0] || curve[i].marked)
            continue;
        int j = k++;
        for (; j > 0 && order[j - 1]->last_y > curve[i].last_y; j--)
            order[j] = order[j - 1];
        order[j] = &curve[i];
    }
    for (int i = 0; i < k; i++)
        at[i] = i && order[i]->last_y < at[i - 1] + gap ? at[i - 1] + gap : order[i]->last_y;
    for (int i = k - 1; i >= 0; i--) { /* those pushed beyond the top come down again */
        double top = i == k - 1 ? high * 1.03 : at[i + 1] - gap;
        at[i] = at[i] > top ? top : at[i];
    }
    for (int i = 0; i < k; i++)
        fprintf(g, "set label %d '%s' at graph 1.01, first %g left tc rgb '%s'\n", i + 1, order[i]->label, at[i],
                palette[order[i]->colour % COLOURS]);
}

/* Names beside the last points of marked curves: to the right, or to the left of a point that has another one on its
 * right at about the same height. */
static void put_names(FILE *g, const struct curve *curve, int n, double high)
{
    for (int i = 0; i < n; i++) {
        bool left = false;
        if (!curve[i].marked || curve[i].last_x < 0)
            continue;
        for (int k = 0; k < n; k++)
            left = left ||
                   (curve[k].marked && curve[k].last_x > curve[i].last_x &&
                    curve[k].last_y - curve[i].last_y < high / 24 && curve[i].last_y - curve[k].last_y < high / 24);
        fprintf(g, "set label %d '%s' at first %g, first %g %s offset %d,0 tc rgb '%s'\n", FIGURE_CURVES + i + 1,
                curve[i].label, curve[i].last_x, curve[i].last_y, left ? "right" : "left", left ? -1 : 1,
                palette[curve[i].colour % COLOURS]);
    }
}

static void put_curve(FILE *g, const struct curve *c, const char *csv, bool first)
{
    fprintf(g, "%s '%s' using %d:(1", first ? "plot" : ",", csv, c->x);
    for (int i = 0; i < 3; i++)
        if (c->column[i])
            fprintf(g, " && strcol(%d) eq '%s'", c->column[i], c->value[i]);
    fprintf(g, " ? %.9g*column(%d) : 1/0) ", c->scale > 0 ? c->scale : 1, c->y);
    const char *colour = palette[c->colour % COLOURS];
    if (c->width <= 0) {
        fprintf(g, "with points pt %d ps 0.9 lc rgb '%s' notitle", 4 + c->dash, colour);
        return;
    }
    fprintf(g, "with %s lw %g lc rgb '%s' ", c->marked ? "linespoints" : "lines", c->width, colour);
    if (c->marked)
        fprintf(g, "pt %d ps 0.7 ", 4 + c->dash);
    put_style(g, c->dash, c->width);
    fputs(" notitle", g);
}

static void put_figure(FILE *g, const struct options *o, const struct figure *fig, struct curve *curve, int n,
                       const char *csv, double high)
{
    fprintf(g,
            "set datafile separator ','; set datafile columnheaders; set grid lc rgb '#DDDDDD'; set title '%s'\n"
            "set xlabel '%s'; set ylabel '%s'; set rmargin 26; set yrange [0:*]\n%s",
            fig->title, fig->xlabel, fig->ylabel, fig->set ? fig->set : "");
    put_labels(g, curve, n, high);
    put_names(g, curve, n, high);
    fprintf(g, "set terminal pngcairo size 900,520 font 'sans,10'; set output '%s/fig%s.png'\n", o->dir, fig->name);
    for (int i = 0; i < n; i++)
        put_curve(g, &curve[i], csv, i == 0);
    fprintf(g, "\nset terminal svg size 900,520 font 'sans,10'; set output '%s/fig%s.svg'; replot\n", o->dir,
            fig->name);
}

void figure_draw(const struct options *o, const struct figure *fig, struct curve *curve, int n)
{
    char csv[FIGURE_CSV];
    double low, high;
    struct cli_pipe gnuplot;
    snprintf(csv, sizeof csv, "%s/fig%s.csv", o->dir, fig->name);
    find_ends(csv, curve, n, &low, &high);
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN); /* gnuplot may end before it has read everything */
    bool drawn = cli_pipe_begin(&gnuplot, "gnuplot");
    if (drawn) {
        put_figure(gnuplot.in, o, fig, curve, n, csv, high);
        drawn = cli_pipe_end(&gnuplot);
    }
    signal(SIGPIPE, on_pipe);
    if (!drawn) {
        fprintf(stderr, "keel-place figure: gnuplot failed (is it installed?); the data is in %s\n", csv);
        exit(1);
    }
}
