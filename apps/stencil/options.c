#include "apps/stencil/options.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) const char *argp_program_version = "keel-stencil " KEEL_VERSION;

enum {
    KEY_REDUNDANCY = 256,
    KEY_PERIODIC,
    KEY_LOOK,
    KEY_PNG,
    KEY_SHOW,
    KEY_PAUSE,
    CELLS_MAX = 1 << 20,
    PAUSE_MAX_MS = 60000
};

static const struct argp_option rows[] = {
    {"cells", 'c', "NxM[xK]", 0, "cells of the field (default 256x256, or 64x64x64)", 0},
    {"sweeps", 's', "N", 0, "at most so many (default 200)", 0},
    {"tolerance", 't', "X", 0, "stop when the changes of a sweep are that small in the mean (default 0: never)", 0},
    {"look", KEY_LOOK, "N", 0, "look for that every N sweeps (default 10)", 0},
    {"pause", KEY_PAUSE, "MS", 0, "sleep so many milliseconds before each sweep (default 0)", 0},
    {"periodic", KEY_PERIODIC, NULL, 0, "the field has no border: what leaves on one side enters on the other", 0},
    {"redundancy", KEY_REDUNDANCY, "NAME", 0, "copies of the field: none, shadow (default) or triple", 0},
    {"png", KEY_PNG, "FILE", 0, "write a picture of the field", 0},
    {"show", KEY_SHOW, NULL, 0, "show it in the terminal", 0},
    {0},
};

struct parse {
    struct stencil_options *options;
    char *why;
    int next; /* number of the argument after the one that is wrong */
    bool has_stencil;
    int sides; /* that --cells names */
};

__attribute__((format(printf, 2, 3))) static error_t wrong(struct parse *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (p->why[0] == '\0')
        vsnprintf(p->why, 200, format, args);
    va_end(args);
    return EINVAL;
}

static error_t parse_count(struct parse *p, const char *text, const char *what, int64_t *out)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end != '\0' || n < 1)
        return wrong(p, "%.60s: %s is a number from 1 on", text, what);
    *out = n;
    return 0;
}

static error_t parse_cells(struct parse *p, const char *text)
{
    int *cells = p->options->cells, n = 0;
    const char *at = text;
    cells[2] = 1;
    for (;;) {
        char *end;
        long side = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;
        if (side < 1 || side > CELLS_MAX || n == STENCIL_DIMS)
            return wrong(p, "%.60s: cells are NxM or NxMxK, each from 1 to %d", text, CELLS_MAX);
        cells[n++] = (int)side;
        if (*end == '\0')
            break;
        at = *end == 'x' ? end + 1 : "";
    }
    if (n < 2)
        return wrong(p, "%.60s: a field has two or three sides", text);
    p->sides = n;
    return 0;
}

static error_t parse_tolerance(struct parse *p, const char *text)
{
    char *end = NULL;
    double x = strspn(text, "0123456789.eE+-") == strlen(text) && *text != '+' ? strtod(text, &end) : -1;
    if (!end || x < 0 || end == text || *end != '\0' || !isfinite(x))
        return wrong(p, "%.60s: a tolerance is a number, not less than 0", text);
    p->options->tolerance = x;
    return 0;
}

static error_t parse_pause(struct parse *p, const char *text)
{
    char *end = NULL;
    long ms = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    if (ms < 0 || ms > PAUSE_MAX_MS || *end != '\0')
        return wrong(p, "%.60s: a pause has from 0 to %d milliseconds", text, PAUSE_MAX_MS);
    p->options->pause_ms = (int)ms;
    return 0;
}

static error_t parse_redundancy(struct parse *p, const char *text)
{
    static const char *const names[] = {"none", "shadow", "triple"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            p->options->redundancy = (keel_redundancy)i;
            return 0;
        }
    }
    return wrong(p, "%.60s: there are none, shadow and triple", text);
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
    struct parse *p = state->input;
    switch (key) {
    case 'c':
        return parse_cells(p, text);
    case 's':
        return parse_count(p, text, "the number of sweeps", &p->options->sweeps);
    case 't':
        return parse_tolerance(p, text);
    case KEY_LOOK:
        return parse_count(p, text, "the number of sweeps between looks", &p->options->look);
    case KEY_PAUSE:
        return parse_pause(p, text);
    case KEY_PERIODIC:
        p->options->periodic = true;
        return 0;
    case KEY_REDUNDANCY:
        return parse_redundancy(p, text);
    case KEY_PNG:
        p->options->png = text;
        return 0;
    case KEY_SHOW:
        p->options->show = true;
        return 0;
    case ARGP_KEY_ARG:
        if (p->has_stencil)
            return wrong(p, "%.60s: one stencil in a run", text);
        p->has_stencil = stencil_parse(text, &p->options->stencil);
        return p->has_stencil ? 0 : wrong(p, "%.60s: there are the stencils 5p, 9p, 7p and 27p", text);
    case ARGP_KEY_ERROR:
        p->next = state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What only all of them together tell. */
static error_t look_at_all(struct parse *p)
{
    struct stencil_options *o = p->options;
    if (!p->has_stencil)
        return wrong(p, "which stencil? usage: keel-stencil 5p|9p|7p|27p [--cells NxM[xK]] [--sweeps N]");
    bool flat = stencil_dims(o->stencil) == 2;
    static const int sides[2][STENCIL_DIMS] = {{64, 64, 64}, {256, 256, 1}};
    if (p->sides == 0)
        memcpy(o->cells, sides[flat], sizeof o->cells);
    if (flat && o->cells[2] > 1)
        return wrong(p, "%s is a stencil of two dimensions: --cells NxM", stencil_name(o->stencil));
    if (!flat && p->sides == 2)
        return wrong(p, "%s is a stencil of three dimensions: --cells NxMxK", stencil_name(o->stencil));
    for (int d = 0; o->periodic && d < stencil_dims(o->stencil); d++)
        if (o->cells[d] < 2)
            return wrong(p, "a periodic field has at least two cells in each dimension");
    return 0;
}

bool stencil_options_parse(int argc, char **argv, struct stencil_options *out, char why[200])
{
    static const struct argp argp = {
        rows,
        parse_key,
        "STENCIL",
        "Jacobi sweeps of a stencil (5p, 9p: two dimensions; 7p, 27p: three) over a field that the ranks of a keelrun "
        "job share, with the same bits whatever dies on the way.\vExit code 2 if the command line is wrong or the "
        "field "
        "has fewer cells than ranks.",
        NULL,
        NULL,
        NULL};
    struct parse p = {out, why, argc, false, 0};
    why[0] = '\0';
    *out = (struct stencil_options){.sweeps = 200, .look = 10, .redundancy = KEEL_REDUNDANCY_SHADOW};
    bool asks = false;
    for (int i = 1; i < argc; i++)
        asks = asks || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 ||
               strcmp(argv[i], "--usage") == 0 || strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0;
    if (argp_parse(&argp, argc, argv, asks ? 0 : ARGP_NO_ERRS | ARGP_NO_EXIT, NULL, &p) != 0) {
        wrong(&p, "%.60s: unknown option, or its value is missing (see --help)",
              argv[p.next > 1 && p.next <= argc ? p.next - 1 : argc - 1]);
        return false;
    }
    return look_at_all(&p) == 0;
}
