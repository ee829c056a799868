#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/place/figure.h"
#include "sim/place/state.h"

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

/* The studies made in this run: those that several figures share are made once. */
static char made[64][FIGURE_CSV / 16];
static int nmade;

static bool was_made(const char *name)
{
    for (int i = 0; i < nmade; i++)
        if (strcmp(made[i], name) == 0)
            return true;
    return false;
}

/* The state knows what study it belongs to; that of another one (a seed, a number of cases) is not gone on with. */
static const char *run_or_resume(const struct options *o, struct sample_config *c, struct sample_result *r)
{
    c->resume = o->resume && access(c->state, R_OK) == 0;
    const char *why = sample_run(c, &cli_stop, r);
    if (!why || !c->resume || (why != state_of_another && why != state_damaged))
        return why;
    fprintf(stderr, "keel-place figure: %s %s: made anew\n", c->state,
            why == state_damaged ? "is damaged" : "is of another study");
    sample_free(r);
    c->resume = false;
    return sample_run(c, &cli_stop, r);
}

bool figure_study(const struct options *o, const struct figure_run *r, char *name, size_t len)
{
    struct options *s = malloc(sizeof *s);
    char state[FIGURE_CSV + 8];
    struct sample_result result;
    struct out out;
    run_name(o, r, name, len);
    snprintf(state, sizeof state, "%s.state", name);
    if (!s)
        cli_die("out of memory");
    *s = *o;
    s->grid = r->grid;
    s->spares = r->spares;
    s->pattern = r->pattern;
    s->tree = r->tree;
    s->methods = 1;
    strcpy(s->method[0], r->method);
    options_setup(s);
    struct sample_config c = {.setup = s->setup,
                              .seed = o->seed,
                              .cases = o->cases ? o->cases : r->cases,
                              .threads = o->threads,
                              .state = state,
                              .keep_state = true,
                              .progress = true,
                              .label = r->method};
    free(s);
    if (was_made(name))
        return true;
    const char *why = run_or_resume(o, &c, &result);
    if (why)
        cli_die("%s: %s", why, state);
    if (result.cases)
        fprintf(stderr, "%s %s %s: %lld cases in %.1f s\n", r->grid, r->pattern, r->method, (long long)result.cases,
                result.seconds);
    if (result.unsaved)
        fprintf(stderr, "keel-place figure: %s: %s; --resume makes it anew\n", state, result.unsaved);
    out_open(&out, name);
    out_csv(out.f, &c, &result);
    out_commit(&out);
    bool whole = !result.interrupted;
    sample_free(&result);
    if (whole && nmade < 64 && strlen(name) < sizeof made[0])
        strcpy(made[nmade++], name);
    return whole;
}

/* by_3D, by_2D, by_1D and by_0D as shares of this failure, and of all so far. */
static void put_shares(FILE *f, const char *line, double sum[4])
{
    double by[4], here = 0, all = 0;
    const char *at = line;
    for (int i = 0; i < 11 && at; i++) /* behind method, failures ... cannot */
        at = (at = strchr(at, ',')) ? at + 1 : NULL;
    if (!at || sscanf(at, "%lf,%lf,%lf,%lf", &by[0], &by[1], &by[2], &by[3]) != 4)
        return;
    for (int i = 0; i < 4; i++) {
        here += by[i];
        sum[i] += by[i];
        all += sum[i];
    }
    for (int i = 0; i < 4; i++)
        fprintf(f, ",%.4f", here > 0 ? 100 * by[i] / here : 0);
    for (int i = 0; i < 4; i++)
        fprintf(f, ",%.4f", all > 0 ? 100 * sum[i] / all : 0);
}

static void copy_study(const char *name, const struct figure *fig, const struct figure_run *r, FILE *f, double *first)
{
    char line[1024];
    double sum[4] = {0}, mean;
    bool shares = fig->name[0] == '1' && (fig->name[1] == '4' || fig->name[1] == '5');
    FILE *in = fopen(name, "r");
    if (!in)
        cli_die("cannot read %s: %s", name, strerror(errno));
    for (bool head = true; fgets(line, sizeof line, in); head = false) {
        int failures = -1;
        line[strcspn(line, "\n")] = '\0';
        if (head && r == fig->run)
            fprintf(f, "pattern,%s%s\n", line,
                    shares ? ",by_3D_pct,by_2D_pct,by_1D_pct,by_0D_pct,to_3D_pct,to_2D_pct,to_1D_pct,to_0D_pct" : "");
        if (head)
            continue;
        if (sscanf(line, "%*[^,],%d,%*d,%*d,%lf", &failures, &mean) == 2 && failures == 0)
            *first = mean;
        if (failures == 0 && shares)
            continue;
        fprintf(f, "%s,%s", r->pattern, line);
        if (shares)
            put_shares(f, line, sum);
        fputc('\n', f);
    }
    fclose(in);
}

/* The studies one after another in one file, with the pattern as first column. */
static bool collect(const struct options *o, const struct figure *fig, FILE *f, double *first)
{
    bool whole = true;
    for (const struct figure_run *r = fig->run; r < fig->run + FIGURE_RUNS && r->grid && whole; r++) {
        char name[FIGURE_CSV];
        whole = figure_study(o, r, name, sizeof name);
        copy_study(name, fig, r, f, &first[r - fig->run]);
    }
    return whole;
}

/* returns false when it was interrupted: the figure shows what there is. */
static bool make(const struct options *o, const struct figure *fig)
{
    char name[FIGURE_CSV];
    struct out out;
    struct curve curve[FIGURE_CURVES];
    double first[FIGURE_RUNS] = {0};
    if ((size_t)snprintf(name, sizeof name, "%s/fig%s.csv", o->dir, fig->name) >= sizeof name)
        cli_die("the folder name is too long");
    out_open(&out, name);
    bool whole = fig->data ? fig->data(fig, o, out.f) : collect(o, fig, out.f, first);
    out_commit(&out);
    figure_draw(o, fig, curve, fig->curves(fig, first, curve));
    fprintf(stderr, "%s/fig%s.csv .png .svg: %s%s\n", o->dir, fig->name, fig->title,
            whole ? "" : "; interrupted, --resume goes on");
    return whole;
}

static const struct figure *find(const char *name)
{
    for (const struct figure *fig = figures; fig->name; fig++)
        if (strcmp(fig->name, name) == 0)
            return fig;
    return NULL;
}

/* Figures that are no sampling have no cases and draw nothing at random. */
static void check_cases(const struct options *o)
{
    for (int i = 0; i < o->args; i++) {
        const struct figure *fig = find(o->arg[i]);
        if (!fig || !fig->data || fig->data == figure_moves)
            return;
    }
    options_useless(o, "nr", "on figures 3, 8 and 22, which look at all there is");
}

int cmd_figure(int argc, char **argv)
{
    static struct options o;
    options_parse(
        &o, "figure",
        "Make the figures of docs/placement.md: 3 8 10 11 12 13 14 15 20 21 22 fattree balance12 balance24 "
        "balance100 moves moves12, or all. Each becomes figN.png, figN.svg and figN.csv in --dir, also when it is "
        "interrupted: then with what there is. Every study behind a figure is kept there too, under its own name and "
        "with its state; with --resume those that are complete are used again and an interrupted one is continued, "
        "but not those of another seed or number of cases.",
        "*nrtOR", argc, argv);
    if (!o.args)
        cli_die("which figure? See keel-place figure --help");
    for (int i = 0; i < o.args; i++)
        if (strcmp(o.arg[i], "all") != 0 && !find(o.arg[i]))
            cli_die("unknown figure '%s'", o.arg[i]);
    check_cases(&o);
    struct stat st;
    if (stat(o.dir, &st) != 0 || !S_ISDIR(st.st_mode) || access(o.dir, W_OK) != 0)
        cli_die("cannot write into the folder %s", o.dir);
    if (strpbrk(o.dir, "'\"\n"))
        cli_die("the folder name must not contain quotes");
    cli_catch_signals();
    for (int i = 0; i < o.args; i++)
        for (const struct figure *fig = figures; fig->name; fig++)
            if ((strcmp(o.arg[i], "all") == 0 || strcmp(o.arg[i], fig->name) == 0) && !make(&o, fig))
                return 130;
    return 0;
}
