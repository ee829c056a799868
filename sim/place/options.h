/* What the sub-commands of keel-place share: options, errors, output files, drawing. */
#ifndef KEEL_SIM_PLACE_OPTIONS_H
#define KEEL_SIM_PLACE_OPTIONS_H
#include <argp.h>
#include <stdio.h>

#include "sim/cli/cli.h"
#include "sim/place/sample.h"

enum format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };

enum { MAX_METHODS = 8, MAX_LISTED = 65536 };

/* Everything any sub-command can be told. */
struct options {
    struct setup setup;
    const char *grid, *spares, *pattern, *tree; /* as given */
    char method[MAX_METHODS][64];
    int methods;
    enum format format;
    double low, high; /* wanted share of spares; 0 when not asked for */
    const char *fail[MAX_LISTED], *dead[MAX_LISTED];
    int32_t nfail, ndead;
    int32_t dead_node[MAX_LISTED];
    const char *plane;
    bool no_draw;
    int64_t cases, steps, memory; /* memory in MiB */
    int64_t bytes;                /* of each slot; 0: not told */
    int32_t failures;
    uint64_t seed;
    int threads;
    enum draw draw;
    const char *out, *links;
    bool resume, worst, full, prove;
    const char *dir;
    bool given[128]; /* by the option's letter */
    const char *arg[16];
    int args;
};

/* Reads argv with the options named in keys (a string of their letters in options.c; users only see the long names) and
 * --help; dies on bad input. */
void options_parse(struct options *o, const char *command, const char *doc, const char *keys, int argc, char **argv);
/* After --help: dies when standard output could not be written. */
void options_shown(void);
/* Dies when one of the options with these letters was given; why says what it would need. */
void options_useless(const struct options *o, const char *letters, const char *why);
/* Grid, spares, pattern, tree into o->setup; the method is methods[0] or the default. Dies. */
void options_setup(struct options *o);
/* "3,4,5" or "27". Dies. */
int32_t options_node(const struct options *o, const char *text);

/* A file that appears under its name only when it is whole. path NULL is stdout. What exists and is no
 * regular file (a pipe, a device) is written to instead. Dies when it cannot be made. */
enum { OUT_PATH = 4096 };
struct out {
    FILE *f;
    const char *path;
    bool replaces; /* f has no name; commit makes it the file at path */
    bool beside;   /* and is on the same file system */
};
void out_open(struct out *out, const char *path);
/* Dies when the data could not be written. */
void out_commit(struct out *out);
void out_csv(FILE *f, const struct sample_config *c, const struct sample_result *r);
void out_links(FILE *f, const struct sample_result *r);

/* The plane of the first two dimensions at the given other coordinates (in at, at[0] and at[1] unused), with failed,
 * free and moved nodes and links that carry more than one message. moved[slot] or NULL. */
void draw_plane(FILE *f, const struct job *j, const int at[GRID_MAX_DIMS]);
/* "z=3" or "2=3,3=0" into at. Dies. */
void draw_plane_parse(const struct options *o, const char *text, int at[GRID_MAX_DIMS]);

int cmd_allocate(int argc, char **argv);
int cmd_substitute(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_optimise(int argc, char **argv);
int cmd_figure(int argc, char **argv);
#endif
