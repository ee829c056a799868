/* keel-scf: restricted Hartree-Fock energies of small molecules, on Keel. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <keel/keel.h>

#include "apps/scf/scf.h"

enum { EXIT_INPUT = 2, EXIT_CONVERGENCE = 3, OPTION_BASIS_FILE = 256, OPTION_ITERATIONS, OPTION_THRESHOLD };

const char *argp_program_version = "keel-scf " KEEL_VERSION;

struct arguments {
    const char *molecule, *basis, *basis_file;
    long max_iterations;
    double threshold;
    struct complaint why; /* what is wrong with them */
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    char *end;
    switch (key) {
    case 'b':
        a->basis = text;
        break;
    case OPTION_BASIS_FILE:
        a->basis_file = text;
        break;
    case OPTION_ITERATIONS:
        a->max_iterations = strtol(text, &end, 10);
        if (*end || end == text || a->max_iterations < 1 || a->max_iterations > 10000)
            complain(&a->why, "--max-iterations takes a number from 1 to 10000, not '%s'", text);
        break;
    case OPTION_THRESHOLD:
        a->threshold = strtod(text, &end);
        if (*end || end == text || !(a->threshold >= 1e-12 && a->threshold <= 1))
            complain(&a->why, "--threshold takes a number from 1e-12 to 1, not '%s'", text);
        break;
    case ARGP_KEY_ARG:
        if (a->molecule)
            complain(&a->why, "one molecule at a time: what is '%s'?", text);
        a->molecule = text;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_option options[] = {
    {"basis", 'b', "NAME", 0, "basis set: sto-3g (default), 6-31g or 6-31gs", 0},
    {"basis-file", OPTION_BASIS_FILE, "FILE", 0, "a basis set file in NWChem's format instead", 0},
    {"max-iterations", OPTION_ITERATIONS, "N", 0, "give up after so many (default 100)", 0},
    {"threshold", OPTION_THRESHOLD, "X", 0, "largest element of the orbital gradient at convergence (default 1e-7)", 0},
    {0},
};
static const struct argp parser = {
    options, parse, "FILE.xyz",
    "Total energy of a molecule by restricted Hartree-Fock with cartesian s, p and d functions.\v"
    "Start it with keelrun. Exit code 2: bad input; 3: no convergence.",
    NULL, NULL, NULL};

static const char *data_folder(void)
{
    const char *folder = getenv("KEEL_SCF_DATA");
    return folder ? folder : access(SCF_SOURCE_DATA "/basis", R_OK) == 0 ? SCF_SOURCE_DATA : SCF_INSTALLED_DATA;
}

/* FNV-1a: ranks compare it to see that they read the same. */
static void fingerprint_add(uint64_t *print, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *print = (*print ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static uint64_t fingerprint(const struct arguments *a, const struct molecule *molecule, const struct basis *basis)
{
    uint64_t print = 0xcbf29ce484222325u;
    fingerprint_add(&print, &a->max_iterations, sizeof a->max_iterations);
    fingerprint_add(&print, &a->threshold, sizeof a->threshold);
    for (int i = 0; i < molecule->natoms; i++) {
        fingerprint_add(&print, &molecule->atoms[i].z, sizeof molecule->atoms[i].z);
        fingerprint_add(&print, molecule->atoms[i].r, sizeof molecule->atoms[i].r);
    }
    for (int i = 0; i < basis->nshells; i++) {
        const struct shell *s = &basis->shells[i];
        fingerprint_add(&print, s->exponents, (size_t)s->nprimitives * sizeof *s->exponents);
        fingerprint_add(&print, s->coefficients, (size_t)s->nprimitives * sizeof *s->coefficients);
    }
    return print;
}

struct problem {
    struct molecule molecule;
    struct basis_library library;
    struct hf hf;
    bool loaded;
};

static bool load(const struct arguments *a, struct problem *p, struct complaint *why)
{
    static const char *const known[] = {"sto-3g", "6-31g", "6-31gs"};
    char path[4096];
    bool is_known = a->basis_file != NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        is_known = is_known || strcmp(a->basis, known[i]) == 0;
    if (why->text[0])
        return false;
    if (!a->molecule)
        return complain(why, "which molecule? Name an XYZ file (see keel-scf --help)");
    if (!is_known)
        return complain(why, "no basis set is called '%s': sto-3g, 6-31g and 6-31gs are there", a->basis);
    snprintf(path, sizeof path, "%s/basis/%s.nw", data_folder(), a->basis);
    if (!molecule_read(a->molecule, &p->molecule, why))
        return false;
    p->loaded = molecule_check(&p->molecule, why) &&
                basis_library_read(a->basis_file ? a->basis_file : path, &p->library, why);
    if (p->loaded && !hf_init(&p->molecule, &p->library, 1e-12, &p->hf, why)) {
        basis_library_fini(&p->library);
        p->loaded = false;
    }
    if (!p->loaded)
        molecule_fini(&p->molecule);
    return p->loaded;
}

static const char *name_of(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    return name;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.basis = "sto-3g", .max_iterations = 100, .threshold = 1e-7};
    argp_parse(&parser, argc, argv, 0, NULL, &arguments);
    keel_status status = keel_init();
    if (status != KEEL_OK) {
        fprintf(stderr, "keel-scf: %s\n", keel_status_text(status));
        return 1;
    }
    struct problem problem = {0};
    struct complaint why = arguments.why;
    char name[256];
    struct scf_input input = {.max_iterations = (int)arguments.max_iterations,
                              .threshold = arguments.threshold,
                              .library = &problem.library,
                              .molecule = name_of(arguments.molecule ? arguments.molecule : "", name, sizeof name),
                              .basis = arguments.basis_file ? arguments.basis_file : arguments.basis};
    if (load(&arguments, &problem, &why)) {
        input.hf = &problem.hf;
        input.fingerprint = fingerprint(&arguments, &problem.molecule, &problem.hf.basis);
    }
    struct scf_result result;
    enum scf_outcome outcome = scf_run(&input, stdout, &result, &why);
    bool speaks = why.text[0] && (outcome != SCF_NOT_CONVERGED || keel_rank() == 0);
    if (speaks)
        fprintf(stderr, "keel-scf: %s\n", why.text);
    if (problem.loaded) {
        hf_fini(&problem.hf);
        basis_library_fini(&problem.library);
        molecule_fini(&problem.molecule);
    }
    if (outcome == SCF_BROKEN)
        return 1;
    (void)keel_finalize();
    return outcome == SCF_CONVERGED ? 0 : outcome == SCF_BAD_INPUT ? EXIT_INPUT : EXIT_CONVERGENCE;
}
