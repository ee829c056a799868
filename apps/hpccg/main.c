/* keel-hpccg: a sparse system by the conjugate gradient method, under keelrun. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/hpccg/solve.h"

__attribute__((visibility("default"))) const char *argp_program_version = "keel-hpccg " KEEL_VERSION;

enum { EXIT_WRONG_RESULT = 1, EXIT_CANNOT = 2, WHY = 200 };

static const double largest_error_allowed = 1e-6;

struct options {
    size_t points[3];
    int given; /* of these */
    int iterations;
    double tolerance;
    char why[WHY];
};

static const struct argp_option rows[] = {
    {"iterations", 'i', "N", 0, "at most so many (default 150)", 0},
    {"tolerance", 't', "X", 0, "the residual, beside the right side, that is small enough (default 1e-10)", 0},
    {0},
};

__attribute__((format(printf, 2, 3))) static error_t wrong(struct options *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (o->why[0] == '\0')
        vsnprintf(o->why, sizeof o->why, format, args);
    va_end(args);
    return EINVAL;
}

static error_t parse_number(struct options *o, const char *text, const char *what, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end || *out < 1 || *out > 1000000)
        return wrong(o, "%.60s: %s is a number from 1 to 1000000", text, what);
    return 0;
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    long number = 0;
    char *end;
    error_t error;
    switch (key) {
    case 'i':
        error = parse_number(o, text, "--iterations", &number);
        o->iterations = (int)number;
        return error;
    case 't':
        o->tolerance = strtod(text, &end);
        if (end == text || *end || !isfinite(o->tolerance) || o->tolerance < 0)
            return wrong(o, "%.60s: --tolerance is a number from 0 on", text);
        return 0;
    case ARGP_KEY_ARG:
        if (o->given == 3)
            return wrong(o, "%.60s: a box has three sides", text);
        error = parse_number(o, text, "a side of a box", &number);
        o->points[o->given++] = (size_t)number;
        return error;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool asks(int argc, char **argv)
{
    static const char *const words[] = {"--help", "-?", "--usage", "--version", "-V"};
    for (int i = 1; i < argc; i++)
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
            if (strcmp(argv[i], words[w]) == 0)
                return true;
    return false;
}

/* False, with a line in why, if it is wrong. Says nothing itself, so that one of many ranks can. */
static bool parse(int argc, char **argv, struct options *o)
{
    static const struct argp argp = {
        rows,
        parse_key,
        "NX NY NZ",
        "A sparse system of 27 couplings a point by the conjugate gradient method, on the ranks of a keelrun job. "
        "Each rank has a box of NX by NY by NZ points.\v"
        "Exit code 1 if the residual is not small enough in the end or an unknown is not 1, 2 if the command line is "
        "wrong.",
        NULL,
        NULL,
        NULL};
    *o = (struct options){.iterations = 150, .tolerance = 1e-10};
    if (argp_parse(&argp, argc, argv, asks(argc, argv) ? 0 : ARGP_NO_ERRS | ARGP_NO_EXIT, NULL, o) != 0)
        wrong(o, "unknown option, or its value is missing (see --help)");
    else if (o->given != 3)
        wrong(o, "which box? usage: keel-hpccg NX NY NZ [--iterations N] [--tolerance X]");
    else if (problem_rows(o->points[0], o->points[1], o->points[2]) == 0)
        wrong(o, "a box of %zu x %zu x %zu has too many points", o->points[0], o->points[1], o->points[2]);
    return o->why[0] == '\0';
}

/* Rank 0 says why; nobody leaves before, since the first rank to leave with a code ends the job. */
static int end(int code)
{
    must(keel_group_barrier(keel_group_world()), "waiting for all ranks");
    must(keel_finalize(), "end");
    return code;
}

static int run(const struct options *o)
{
    struct problem p = {.nx = o->points[0], .ny = o->points[1], .nz = o->points[2]};
    p.plane = p.nx * p.ny;
    p.rows = problem_rows(p.nx, p.ny, p.nz);
    p.value = reserve(p.rows, PROBLEM_COUPLINGS * sizeof *p.value);
    p.column = reserve(p.rows, PROBLEM_COUPLINGS * sizeof *p.column);
    p.right = reserve(p.rows, sizeof *p.right);
    problem_fill(&p, keel_rank() == 0, keel_rank() == keel_size() - 1);
    must(keel_group_barrier(keel_group_world()), "waiting for all ranks");
    double start = now();
    struct solve s;
    solve(&p, o->iterations, o->tolerance, &s);
    bool right = s.residual <= o->tolerance && s.error <= largest_error_allowed;
    if (keel_rank() == 0) {
        printf("box         %zu x %zu x %zu on each of %d rank%s\n", p.nx, p.ny, p.nz, keel_size(),
               keel_size() == 1 ? "" : "s");
        printf("iterations  %d\nresidual    %.17g\nerror       %.17g: %s\n", s.iterations, s.residual, s.error,
               right ? "right" : "wrong");
        printf("time        %.3f s, %llu messages of rank 0 with %.1f MB\n", now() - start, (unsigned long long)s.sent,
               (double)s.bytes * 1e-6);
        fflush(stdout);
    }
    keel_local_free(p.value);
    keel_local_free(p.column);
    keel_local_free(p.right);
    return end(right ? 0 : EXIT_WRONG_RESULT);
}

int main(int argc, char **argv)
{
    struct options o;
    bool good = parse(argc, argv, &o);
    keel_need_all(); /* each rank has a part of the unknowns that nobody else has */
    keel_status status = keel_init();
    if (status != KEEL_OK) {
        fprintf(stderr, "keel-hpccg: %s\n",
                status == KEEL_ERR_NOT_LAUNCHED && !good ? o.why : keel_status_text(status));
        return EXIT_CANNOT;
    }
    must(keel_group_patience(keel_group_world(), true), "waiting for who stands still");
    if (!good) {
        if (keel_rank() == 0)
            fprintf(stderr, "keel-hpccg: %s\n", o.why);
        return end(EXIT_CANNOT);
    }
    return run(&o);
}
