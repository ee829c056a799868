#include "apps/scf/options.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) const char *argp_program_version = "keel-scf " KEEL_VERSION;

enum { KEY_BASIS_FILE = 256, KEY_SCREENING, KEY_REDUNDANCY };

static const struct argp_option rows[] = {
    {"basis", 'b', "NAME", 0, "shipped basis set: sto-3g (default), 6-31g or 6-31gs", 0},
    {"basis-file", KEY_BASIS_FILE, "FILE", 0, "basis set in NWChem's format, instead of --basis", 0},
    {"max-iterations", 'n', "N", 0, "give up after N iterations (default 100)", 0},
    {"threshold", 't', "X", 0, "converged when no element of FDS-SDF exceeds X (default 1e-7)", 0},
    {"screening", KEY_SCREENING, "X", 0, "leave out integrals that change no Fock element by X Hartree (default 1e-12)",
     0},
    {"redundancy", KEY_REDUNDANCY, "NAME", 0, "copies of what is shared: none, shadow (default) or triple", 0},
    {0},
};

struct parse {
    struct scf_options *options;
    struct complaint *why;
    int next; /* number of the argument after the one that is wrong */
};

static error_t parse_real(struct parse *parse, const char *option, const char *text, double least, double most,
                          double *out)
{
    char *end = (char *)text;
    bool plain = strspn(text, "0123456789.eE+-") == strlen(text) && *text != '+';
    *out = plain ? strtod(text, &end) : 0;
    if (end == text || *end != '\0' || !(*out >= least && *out <= most)) {
        complain(parse->why, "--%s %s: expected a number from %g to %g", option, text, least, most);
        return EINVAL;
    }
    return 0;
}

static error_t parse_basis(struct parse *parse, const char *name)
{
    static const char *const names[] = {"sto-3g", "6-31g", "6-31gs"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            parse->options->basis = names[i];
            return 0;
        }
    complain(parse->why, "--basis %s: the shipped basis sets are sto-3g, 6-31g and 6-31gs", name);
    return EINVAL;
}

static error_t parse_redundancy(struct parse *parse, const char *name)
{
    static const char *const names[] = {
        [KEEL_REDUNDANCY_NONE] = "none", [KEEL_REDUNDANCY_SHADOW] = "shadow", [KEEL_REDUNDANCY_TRIPLE] = "triple"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            parse->options->redundancy = (keel_redundancy)i;
            return 0;
        }
    complain(parse->why, "--redundancy %s: there are none, shadow and triple", name);
    return EINVAL;
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    struct scf_options *options = parse->options;
    double number;
    error_t error;
    switch (key) {
    case 'b':
        return parse_basis(parse, text);
    case KEY_BASIS_FILE:
        options->basis_file = text;
        return 0;
    case 'n':
        error = parse_real(parse, "max-iterations", text, 1, 1000000, &number);
        options->max_iterations = (int)number;
        return error;
    case 't':
        return parse_real(parse, "threshold", text, 1e-10, 1e-2, &options->threshold);
    case KEY_REDUNDANCY:
        return parse_redundancy(parse, text);
    case KEY_SCREENING:
        return parse_real(parse, "screening", text, 0, 1e-4, &options->screening);
    case ARGP_KEY_ARG:
        if (options->molecule != NULL) {
            complain(parse->why, "more than one molecule: %s and %s", options->molecule, text);
            return EINVAL;
        }
        options->molecule = text;
        return 0;
    case ARGP_KEY_ERROR:
        parse->next = state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool options_parse(int argc, char **argv, struct scf_options *out, struct complaint *why)
{
    static const struct argp argp = {
        rows,
        parse_key,
        "FILE.xyz",
        "Restricted Hartree-Fock energy of a closed-shell molecule, on the ranks of a keelrun job.\v"
        "FILE.xyz and basis sets are looked for here, then in $KEEL_SCF_DATA, then among the shipped ones. "
        "Exit code 2 after bad input, 3 without convergence.",
        NULL,
        NULL,
        NULL};
    struct parse parse = {out, why, argc};
    *out = (struct scf_options){.basis = "sto-3g",
                                .max_iterations = 100,
                                .threshold = 1e-7,
                                .screening = 1e-12,
                                .redundancy = KEEL_REDUNDANCY_SHADOW};
    bool asks = false;
    for (int i = 1; i < argc; i++)
        asks = asks || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 ||
               strcmp(argv[i], "--usage") == 0 || strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0;
    unsigned quiet = asks ? 0 : ARGP_NO_ERRS | ARGP_NO_EXIT;
    if (argp_parse(&argp, argc, argv, quiet, NULL, &parse) != 0)
        return complain(why, "%s: unknown option, or its value is missing (see --help)",
                        argv[parse.next > 1 && parse.next <= argc ? parse.next - 1 : argc - 1]);
    if (out->molecule == NULL)
        return complain(why, "which molecule? usage: keel-scf FILE.xyz [--basis NAME]");
    return true;
}

void options_find_file(const char *folder, const char *name, char *path, int size)
{
    const char *places[] = {getenv("KEEL_SCF_DATA"), SCF_SOURCE_DATA, SCF_INSTALLED_DATA};
    snprintf(path, (size_t)size, "%s", name);
    if (strchr(name, '/') != NULL || access(name, F_OK) == 0)
        return;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i] == NULL)
            continue;
        snprintf(path, (size_t)size, "%s/%s/%s", places[i], folder, name);
        if (access(path, F_OK) == 0)
            return;
    }
    snprintf(path, (size_t)size, "%s", name);
}
