#include "sim/place/options.h"

#include "runtime/base/number.h"
#include "runtime/base/plural.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct argp_option table[] = {
    {"grid", 'g', "24x24x24", 0, "the nodes; t after a size makes that dimension a torus: 8tx8tx16", 0},
    {"spares", 's', "qD(r,s)", 0,
     "spare allocation, for example 3D(2,1), or 3D(2,1):xz for other sides than the first; default: two sides, one "
     "layer",
     0},
    {"share", 'S', "LOW-HIGH", 0, "choose the allocation for a share of spares in percent, for example 2-5", 0},
    {"method", 'm', "NAME", 0,
     "0D, 1D, ..., hybrid(all), hybrid(-2D), hybrid(2D+0D), balance, repair, repair(8); may be repeated", 0},
    {"order", 'T', "yxz", 0,
     "dimensions in the order in which slides try them; xyz- takes planes from the highest down", 0},
    {"moves", 'b', "NUMBER", 0, "how many moves one failure may cost, by any method", 0},
    {"slots", 'z', "NUMBER", 0, "slots of the job (default: one on each node that is no spare)", 0},
    {"bytes", 'B', "NUMBER", 0, "bytes of each slot, to sum up what moves (default: 1, so that moves are counted)", 0},
    {"pattern", 'p', "NAME", 0, "5p, 9p, 7p, 27p, star, barrier, allreduce, ring; default: the grid's own stencil", 0},
    {"count", 'c', "all|received", 0,
     "messages that count: all (default), or without those sent by a slot that is not on its first node", 0},
    {"fattree", 'F', "DOWN,SPINES", 0, "messages travel on a two-stage fat tree with DOWN nodes per edge switch", 0},
    {"fail", 'f', "NODE", 0, "a node that dies: coordinates 3,4,0 or a number; may be repeated, in order", 0},
    {"dead", 'd', "NODE", 0, "a node that is dead at launch; may be repeated", 0},
    {"plane", 'P', "z=3", 0, "which plane of a grid of more than 2 dimensions to draw", 0},
    {"no-draw", 'N', NULL, 0, "no drawing", 0},
    {"cases", 'n', "NUMBER", 0, "maps to look at (default 1000000)", 0},
    {"failures", 'k', "NUMBER", 0, "failures per sequence (default: as many as there are spares)", 0},
    {"seed", 'r', "NUMBER", 0, "seed of the random sequences (default 1)", 0},
    {"threads", 't', "NUMBER", 0, "threads (default: one per processor); the result does not depend on it", 0},
    {"draw", 'D', "job|any|active", 0,
     "which nodes die: those with a slot at launch (default), any live node, those with a slot at that moment", 0},
    {"out", 'o', "FILE", 0, "write the CSV here instead of to standard output", 0},
    {"links", 'l', "FILE", 0, "also write how many links carry how many messages, per number of failures", 0},
    {"resume", 'R', NULL, 0, "go on where an interrupted run with the same --out stopped", 0},
    {"worst", 'w', NULL, 0, "search all sequences for the worst case instead of sampling", 0},
    {"full", 'u', NULL, 0, "with --worst: without symmetry and bounds", 0},
    {"memory", 'M', "MIB", 0, "with --worst: what the search may keep in memory (default 2048)", 0},
    {"steps", 'x', "NUMBER", 0, "changes to try (default 2000000)", 0},
    {"prove", 'q', NULL, 0, "look at every map, until none can be better than the one found", 0},
    {"dir", 'O', "FOLDER", 0, "where figures go (default .)", 0},
    {"json", 'j', NULL, 0, "JSON instead of text", 0},
    {"csv", 'v', NULL, 0, "CSV instead of text", 0},
    {0},
};

enum { NO_LETTER = 256 }; /* added to a key: only long names are offered */

static void read_share(struct options *o, const char *arg)
{
    int used = 0;
    if (!number_none_is_odd(arg) || sscanf(arg, "%lf-%lf%n", &o->low, &o->high, &used) != 2 || arg[used] ||
        !(o->low > 0) || !(o->high < 100) || o->low > o->high)
        cli_die("--share is written like 2-5 (percent), not '%s'", arg);
    o->low /= 100;
    o->high /= 100;
}

static void read_choice(struct options *o, int key, const char *arg)
{
    if (key == 'c') {
        if (strcmp(arg, "all") != 0 && strcmp(arg, "received") != 0)
            cli_die("--count is all or received, not '%s'", arg);
        o->setup.convention = arg[0] == 'a' ? LOAD_ALL : LOAD_RECEIVED;
    } else {
        static const char *const names[] = {"job", "any", "active"};
        for (int i = 0; i < 3; i++)
            if (strcmp(arg, names[i]) == 0) {
                o->draw = (enum draw)i;
                return;
            }
        cli_die("--draw is job, any or active, not '%s'", arg);
    }
}

static void read_listed(const char **list, int32_t *n, const char *arg)
{
    if (*n == MAX_LISTED)
        cli_die("more than %d nodes are listed", MAX_LISTED);
    list[(*n)++] = arg;
}

/* What is placed, and by which method. */
static bool read_setup(struct options *o, int key, char *arg)
{
    switch (key) {
    case 'g':
        o->grid = arg;
        break;
    case 's':
        o->spares = arg;
        break;
    case 'S':
        read_share(o, arg);
        break;
    case 'm':
        if (o->methods == MAX_METHODS || strlen(arg) >= sizeof o->method[0])
            cli_die("unknown method '%s'", arg);
        strcpy(o->method[o->methods++], arg);
        break;
    case 'T':
        if (strlen(arg) >= sizeof o->setup.order)
            cli_die("--order '%s' is too long", arg);
        strcpy(o->setup.order, arg);
        break;
    case 'b':
        o->setup.moves = (int32_t)cli_whole(arg, "--moves", 1, GRID_MAX_NODES);
        break;
    case 'z':
        o->setup.slots = (int32_t)cli_whole(arg, "--slots", 1, GRID_MAX_NODES);
        break;
    case 'B':
        o->bytes = cli_whole(arg, "--bytes", 1, INT64_C(1) << 36);
        break;
    case 'p':
        o->pattern = arg;
        break;
    case 'F':
        o->tree = arg;
        break;
    case 'c':
    case 'D':
        read_choice(o, key, arg);
        break;
    default:
        return false;
    }
    return true;
}

/* What happens to it, and how often it is looked at. */
static bool read_study(struct options *o, int key, char *arg)
{
    switch (key) {
    case 'f':
        read_listed(o->fail, &o->nfail, arg);
        break;
    case 'd':
        read_listed(o->dead, &o->ndead, arg);
        break;
    case 'P':
        o->plane = arg;
        break;
    case 'N':
        o->no_draw = true;
        break;
    case 'n':
        o->cases = cli_whole(arg, "--cases", 1, INT64_C(1) << 50);
        break;
    case 'k':
        o->failures = (int32_t)cli_whole(arg, "--failures", 1, GRID_MAX_NODES);
        break;
    case 'r':
        o->seed = (uint64_t)cli_whole(arg, "--seed", 0, INT64_MAX);
        break;
    case 't':
        o->threads = (int)cli_whole(arg, "--threads", 1, 1024);
        break;
    default:
        return false;
    }
    return true;
}

/* What is written, and how far a search goes. */
static bool read_output(struct options *o, int key, char *arg)
{
    switch (key) {
    case 'o':
        o->out = arg;
        break;
    case 'l':
        o->links = arg;
        break;
    case 'R':
        o->resume = true;
        break;
    case 'w':
        o->worst = true;
        break;
    case 'u':
        o->full = true;
        break;
    case 'M':
        o->memory = cli_whole(arg, "--memory", 1, 1 << 30);
        break;
    case 'x':
        o->steps = cli_whole(arg, "--steps", 0, INT64_C(1) << 50);
        break;
    case 'q':
        o->prove = true;
        break;
    case 'O':
        o->dir = arg;
        break;
    case 'j':
        o->format = FORMAT_JSON;
        break;
    case 'v':
        o->format = FORMAT_CSV;
        break;
    default:
        return false;
    }
    return true;
}

static error_t read_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    if (key == ARGP_KEY_ARG) {
        if (o->args == 16)
            cli_die("too many arguments");
        o->arg[o->args++] = arg;
        return 0;
    }
    if (key > NO_LETTER && key < 2 * NO_LETTER) {
        key -= NO_LETTER;
        o->given[key] = true;
    }
    return read_setup(o, key, arg) || read_study(o, key, arg) || read_output(o, key, arg) ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp_option *find_option(const struct argp_option *used, const char *name, size_t len)
{
    for (; used->name; used++)
        if (strlen(used->name) == len && memcmp(used->name, name, len) == 0)
            return used;
    return NULL;
}

/* Long names are written out: getopt would take --fail for --failures where there is no other. */
static void check_names(const struct argp_option *used, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        size_t len = strcspn(argv[i] + 2, "=");
        const struct argp_option *known = find_option(used, argv[i] + 2, len);
        if (!known)
            cli_die("unknown option '%s'; see %s --help", argv[i], argv[0]);
        i += known->arg && !argv[i][2 + len]; /* its value is the next one, whatever that looks like */
    }
}

void options_shown(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        cli_die("cannot write standard output: %s", strerror(errno));
}

void options_parse(struct options *o, const char *command, const char *doc, const char *keys, int argc, char **argv)
{
    static char name[64];
    struct argp_option used[sizeof table / sizeof *table] = {{0}};
    int n = 0;
    for (const struct argp_option *t = table; t->name; t++)
        if (strchr(keys, t->key)) {
            used[n] = *t;
            used[n++].key += NO_LETTER;
        }
    memset(o, 0, sizeof *o);
    o->cases = strchr(keys, '*') ? 0 : 1000000; /* figures have numbers of their own */
    o->steps = 2000000;
    o->memory = 2048;
    o->seed = 1;
    o->dir = ".";
    o->threads = cli_threads();
    snprintf(name, sizeof name, "keel-place %s", command);
    cli_name(name);
    argv[0] = name;
    struct argp argp = {
        .options = used, .parser = read_option, .args_doc = strchr(keys, '*') ? "NUMBER..." : NULL, .doc = doc};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0) {
            argp_help(&argp, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
            options_shown();
            exit(0);
        }
    check_names(used, argc, argv);
    int at = argc;
    if (argp_parse(&argp, argc, argv, ARGP_NO_ERRS, &at, o) != 0)
        cli_die("unknown or incomplete option '%s'; see %s --help", at > 0 && at <= argc ? argv[at - (at == argc)] : "",
                name);
    if (o->given['j'] && o->given['v'])
        cli_die("give --json or --csv, not both");
    if (o->args && !strchr(keys, '*'))
        cli_die("'%s' is not understood; see %s --help", o->arg[0], name);
}

void options_useless(const struct options *o, const char *letters, const char *why)
{
    for (const struct argp_option *t = table; t->name; t++)
        if (strchr(letters, t->key) && o->given[t->key])
            cli_die("--%s has no effect %s", t->name, why);
}

static void choose_share(struct options *o)
{
    struct setup *s = &o->setup;
    char layout[32];
    double share = spare_choose(&s->grid, o->low, o->high, &s->layout);
    if (share < o->low || share > o->high)
        cli_die("%s has no allocation with %g to %g %% spares; the nearest is %s with %.3g %%", o->grid, 100 * o->low,
                100 * o->high, spare_format(&s->layout, layout, sizeof layout), 100 * share);
}

void options_setup(struct options *o)
{
    struct setup *s = &o->setup;
    if (!o->grid)
        cli_die("--grid is missing; see --help");
    const char *why = grid_parse(&s->grid, o->grid);
    if (why)
        cli_die("'%s': %s", o->grid, why);
    if (o->low > 0 && o->spares)
        cli_die("give --spares or --share, not both");
    if (o->low > 0)
        choose_share(o);
    else if (o->spares) {
        why = spare_parse(&s->layout, o->spares);
        if (why)
            cli_die("'%s': %s", o->spares, why);
    } else
        s->layout = spare_default(&s->grid);
    s->pattern = setup_stencil(&s->grid);
    if (o->pattern && (s->pattern = pattern_kind_parse(o->pattern)) == PATTERN_KINDS)
        cli_die("unknown stencil or pattern '%s'", o->pattern);
    if (!o->methods)
        strcpy(o->method[o->methods++], "hybrid(all)");
    for (int i = 0; i < o->methods; i++) {
        strcpy(s->method, o->method[i]);
        why = setup_check(s);
        if (why)
            cli_die("%s %s%s%s: %s", o->grid, o->spares ? o->spares : "", o->spares ? " " : "", s->method, why);
    }
    bool slides = false;
    for (int i = 0; i < o->methods; i++) {
        strcpy(s->method, o->method[i]);
        slides = slides || setup_slides(s);
    }
    if (!slides)
        options_useless(o, "T", "on methods without slides");
    strcpy(s->method, o->method[0]);
    if (o->tree) {
        int down, spines, used = 0;
        if (!number_none_is_odd(o->tree) || sscanf(o->tree, "%9d,%9d%n", &down, &spines, &used) != 2 || o->tree[used] ||
            !fattree_init(&s->net.tree, s->grid.nodes, down, spines))
            cli_die("--fattree is written like 16,16 (nodes per edge switch, spines), not '%s'", o->tree);
    }
    for (int32_t i = 0; i < o->ndead; i++)
        o->dead_node[i] = options_node(o, o->dead[i]);
}

int32_t options_node(const struct options *o, const char *text)
{
    const struct grid *g = &o->setup.grid;
    int c[GRID_MAX_DIMS], n = 0;
    const char *t = number_none_is_odd(text) ? text : "";
    for (;; t++) {
        char *end;
        errno = 0;
        long v = strtol(t, &end, 10);
        if (end == t || errno || n == GRID_MAX_DIMS || (*end && *end != ','))
            cli_die("'%s' is not a node: give coordinates like 3,4,0 or a number", text);
        if (v < 0 || v > INT32_MAX)
            cli_die("node %s is outside the grid", text);
        c[n++] = (int)v;
        t = end;
        if (!*t)
            break;
    }
    if (n == 1 && g->ndims > 1) {
        if (c[0] >= g->nodes)
            cli_die("node %s is outside the grid", text);
        return c[0];
    }
    if (n != g->ndims)
        cli_die("node %s needs %d %s", text, g->ndims, plural(g->ndims, "coordinate", "coordinates"));
    for (int d = 0; d < n; d++)
        if (c[d] >= g->size[d])
            cli_die("node %s is outside the grid", text);
    return grid_node(g, c);
}
