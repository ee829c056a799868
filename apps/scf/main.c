/* keel-scf: restricted Hartree-Fock under keelrun. Input is read and integrals are prepared before keel_init, so that a
 * process that waits on a spare node can take over at once. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <keel/keel.h>

#include "apps/scf/matrix.h"
#include "apps/scf/options.h"
#include "apps/scf/scf.h"

enum { EXIT_BROKEN = 1, EXIT_BAD_INPUT = 2, EXIT_NOT_CONVERGED = 3 };

struct prepared {
    struct scf_options options;
    struct molecule molecule;
    struct basis_library library;
    struct hf hf;
    bool good;
};

static bool prepare(int argc, char **argv, struct prepared *out, struct complaint *why)
{
    char path[PATH_MAX], basis[32];
    if (!options_parse(argc, argv, &out->options, why))
        return false;
    options_find_file("molecules", out->options.molecule, path, sizeof path);
    if (!molecule_read(path, &out->molecule, why))
        return false;
    if (!molecule_check(&out->molecule, why)) {
        struct complaint named = {0};
        complain(&named, "%.100s: %.290s", path, why->text);
        *why = named;
        return false;
    }
    snprintf(basis, sizeof basis, "%s.nw", out->options.basis);
    if (out->options.basis_file != NULL)
        snprintf(path, sizeof path, "%s", out->options.basis_file);
    else
        options_find_file("basis", basis, path, sizeof path);
    return basis_library_read(path, &out->library, why) &&
           hf_init(&out->molecule, &out->library, out->options.screening, &out->hf, why);
}

static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u; /* FNV-1a */
    return hash;
}

/* Of all that decides the result. */
static uint64_t fingerprint(const struct prepared *prepared)
{
    const struct hf *hf = &prepared->hf;
    uint64_t hash = mix(14695981039346656037u, &hf->n, sizeof hf->n);
    for (int a = 0; a < hf->molecule->natoms; a++)
        hash = mix(mix(hash, &hf->molecule->atoms[a].z, sizeof(int)), hf->molecule->atoms[a].r, 3 * sizeof(double));
    for (int s = 0; s < hf->basis.nshells; s++) {
        const struct shell *shell = &hf->basis.shells[s];
        size_t bytes = (size_t)shell->nprimitives * sizeof(double);
        hash = mix(mix(hash, &shell->l, sizeof shell->l), shell->exponents, bytes);
        hash = mix(hash, shell->coefficients, bytes);
    }
    hash = mix(hash, &prepared->options.max_iterations, sizeof(int));
    hash = mix(hash, &prepared->options.threshold, sizeof(double));
    hash = mix(hash, &prepared->options.redundancy, sizeof(keel_redundancy));
    return mix(hash, &prepared->options.screening, sizeof(double));
}

static bool is_lowest_live(void)
{
    for (int r = 0; r < keel_rank(); r++)
        if (keel_rank_alive(r))
            return false;
    return true;
}

/* One rank says what is wrong; nobody leaves before it has been said, since the first rank to leave with a code ends
 * the job. */
static int end(enum scf_outcome outcome, const struct complaint *why)
{
    if (outcome == SCF_BROKEN) {
        fprintf(stderr, "keel-scf: rank %d: %s\n", keel_rank(), why->text);
        return EXIT_BROKEN;
    }
    if (outcome != SCF_CONVERGED) {
        if (outcome == SCF_BAD_INPUT ? why->text[0] != '\0' : is_lowest_live())
            fprintf(stderr, "keel-scf: %s\n", why->text);
        if (keel_barrier() != KEEL_OK)
            fprintf(stderr, "keel-scf: rank %d: the others could not be waited for\n", keel_rank());
    }
    (void)keel_finalize();
    return outcome == SCF_CONVERGED ? 0 : outcome == SCF_BAD_INPUT ? EXIT_BAD_INPUT : EXIT_NOT_CONVERGED;
}

static void discard(struct prepared *prepared)
{
    if (prepared->good)
        hf_fini(&prepared->hf);
    basis_library_fini(&prepared->library);
    molecule_fini(&prepared->molecule);
}

int main(int argc, char **argv)
{
    struct prepared prepared = {0};
    struct complaint why = {0};
    struct scf_result result;
    setvbuf(stdout, NULL, _IOLBF, 0);
    matrix_use_one_thread();
    prepared.good = prepare(argc, argv, &prepared, &why);
    keel_status status = keel_init();
    if (status != KEEL_OK) {
        fprintf(stderr, "keel-scf: %s\n",
                status == KEEL_ERR_NOT_LAUNCHED && why.text[0] != '\0' ? why.text : keel_status_text(status));
        return EXIT_BAD_INPUT;
    }
    struct scf_input input = {.hf = prepared.good ? &prepared.hf : NULL,
                              .library = &prepared.library,
                              .fingerprint = prepared.good ? fingerprint(&prepared) : 0,
                              .max_iterations = prepared.options.max_iterations,
                              .threshold = prepared.options.threshold,
                              .redundancy = prepared.options.redundancy,
                              .molecule = prepared.options.molecule,
                              .basis = prepared.options.basis_file != NULL ? prepared.options.basis_file
                                                                           : prepared.options.basis};
    int code = end(scf_run(&input, stdout, &result, &why), &why);
    discard(&prepared);
    return code;
}
