#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/place/figure.h"

/* A file name from the words of a study: 24x24x24_3D-2-1_7p_hybrid-all.csv */
static void run_name(const struct options *o, const struct figure_run *r, char *buf, size_t len)
{
    int n = snprintf(buf, len, "%s/%s_%s_%s_%s%s.csv", o->dir, r->grid, r->spares, r->pattern, r->method,
                     r->tree ? "_tree" : "");
    if (n < 0 || (size_t)n >= len)
        cli_die("the folder name is too long");
    size_t at = strlen(o->dir), to = at;
    for (; buf[at]; at++)
        if (buf[at] != ')')
            buf[to++] = (char)(strchr("(,+", buf[at]) ? '-' : buf[at]);
    buf[to] = '\0';
}

static void sample(const struct options *o, const struct figure_run *r, const char *name)
{
    struct options s = *o;
    char state[4200];
    s.grid = r->grid;
    s.spares = r->spares;
    s.pattern = r->pattern;
    s.tree = r->tree;
    s.methods = 1;
    strcpy(s.method[0], r->method);
    options_setup(&s);
    snprintf(state, sizeof state, "%s.state", name);
    struct sample_config c = {.setup = s.setup,
                              .seed = o->seed,
                              .cases = o->cases ? o->cases : r->cases,
                              .threads = o->threads,
                              .state = state,
                              .resume = o->resume && access(state, R_OK) == 0,
                              .progress = true,
                              .label = r->method};
    struct sample_result result;
    struct out out;
    out_open(&out, name);
    const char *why = sample_run(&c, &cli_stop, &result);
    if (why)
        cli_die("%s: %s", why, state);
    if (result.interrupted) {
        out_discard(&out);
        fprintf(stderr, "keel-place figure: interrupted; --resume goes on\n");
        exit(130);
    }
    fprintf(stderr, "%s %s %s: %lld cases in %.1f s\n", r->grid, r->pattern, r->method, (long long)result.cases,
            result.seconds);
    out_csv(out.f, &c, &result);
    out_commit(&out);
    sample_free(&result);
}

/* The runs one after another in one file, with the pattern as a last column. base[i] is the collisions without failure.
 */
static void collect(const struct options *o, const struct figure *fig, FILE *f, double base[3], int *columns)
{
    bool head = false;
    for (const struct figure_run *r = fig->run; r < fig->run + FIGURE_RUNS && r->grid; r++) {
        char name[4096], line[1024];
        run_name(o, r, name, sizeof name);
        if (!o->resume || access(name, R_OK) != 0)
            sample(o, r, name);
        FILE *in = fopen(name, "r");
        if (!in)
            cli_die("cannot read %s: %s", name, strerror(errno));
        for (bool first = true; fgets(line, sizeof line, in); first = false) {
            line[strcspn(line, "\n")] = '\0';
            if (first) {
                *columns = 2;
                for (const char *c = line; *c; c++)
                    *columns += *c == ',';
                if (!head)
                    fprintf(f, "%s,pattern\n", line);
                head = true;
                continue;
            }
            int failures;
            double mean;
            if (sscanf(line, "%*[^,],%d,%*d,%*d,%lf", &failures, &mean) == 2 && failures == 0)
                base[r->pattern[0] == 'b' ? 1 : r->pattern[0] == 'r' ? 2 : 0] = mean;
            fprintf(f, "%s,%s\n", line, r->pattern);
        }
        fclose(in);
    }
}

static void plot(const struct options *o, const struct figure *fig, const double base[3], int columns)
{
    FILE *g = popen("gnuplot", "w");
    if (!g)
        cli_die("cannot start gnuplot");
    fprintf(g, "set datafile separator ','; set grid; set title '%s'; CSV='%s/fig%s.csv'\n", fig->title, o->dir,
            fig->name);
    fprintf(g, "set datafile columnheaders\ncolumns_=%d; base_7=%g; base_b=%g; base_r=%g\n", columns, base[0], base[1],
            base[2]);
    fprintf(g, "set terminal pngcairo size 760,480 font 'sans,10'; set output '%s/fig%s.png'\n%s", o->dir, fig->name,
            fig->plot);
    fprintf(g, "set terminal svg size 760,480 font 'sans,10'; set output '%s/fig%s.svg'; replot\n", o->dir, fig->name);
    if (pclose(g) != 0) {
        fprintf(stderr, "keel-place figure: gnuplot failed (is it installed?); the data is in %s/fig%s.csv\n", o->dir,
                fig->name);
        exit(1);
    }
}

static void make(const struct options *o, const struct figure *fig)
{
    char name[4096];
    struct out out;
    double base[3] = {1, 1, 1};
    int columns = 0;
    if ((size_t)snprintf(name, sizeof name, "%s/fig%s.csv", o->dir, fig->name) >= sizeof name)
        cli_die("the folder name is too long");
    FILE *data = tmpfile();
    if (!data)
        cli_die("cannot make a temporary file: %s", strerror(errno));
    if (fig->data)
        fig->data(o, data);
    else
        collect(o, fig, data, base, &columns);
    if (cli_stop) {
        fprintf(stderr, "keel-place figure: interrupted\n");
        exit(130);
    }
    out_open(&out, name);
    rewind(data);
    for (int c; (c = fgetc(data)) != EOF;)
        fputc(c, out.f);
    fclose(data);
    out_commit(&out);
    plot(o, fig, base, columns);
    fprintf(stderr, "%s/fig%s.csv .png .svg: %s\n", o->dir, fig->name, fig->title);
}

static const struct figure *find(const char *name)
{
    for (const struct figure *fig = figures; fig->name; fig++)
        if (strcmp(fig->name, name) == 0)
            return fig;
    return NULL;
}

int cmd_figure(int argc, char **argv)
{
    static struct options o;
    options_parse(
        &o, "figure",
        "Make the figures of docs/placement.md: 3 8 10 11 12 13 14 15 20 21 22 fattree balance12 balance24 "
        "balance100, or all. "
        "Each becomes figN.png, figN.svg and figN.csv in --dir. Every study behind a figure is kept there too, under "
        "its own name; with --resume those that are complete are used again and an interrupted one is continued.",
        "*nrtOR", argc, argv);
    if (!o.args)
        cli_die("which figure? See keel-place figure --help");
    for (int i = 0; i < o.args; i++)
        if (strcmp(o.arg[i], "all") != 0 && !find(o.arg[i]))
            cli_die("unknown figure '%s'", o.arg[i]);
    struct stat st;
    if (stat(o.dir, &st) != 0 || !S_ISDIR(st.st_mode) || access(o.dir, W_OK) != 0)
        cli_die("cannot write into the folder %s", o.dir);
    if (strpbrk(o.dir, "'\"\n"))
        cli_die("the folder name must not contain quotes");
    cli_catch_signals();
    for (int i = 0; i < o.args; i++)
        for (const struct figure *fig = figures; fig->name; fig++)
            if (strcmp(o.arg[i], "all") == 0 || strcmp(o.arg[i], fig->name) == 0)
                make(&o, fig);
    return 0;
}
