#include "apps/scf/hf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/scf/matrix.h"
#include "apps/scf/oneint.h"

static const double smallest_overlap = 1e-7; /* eigenvalue of the overlap matrix */

static bool make_matrices(struct hf *hf, struct complaint *why)
{
    int n = hf->n;
    double *nuclear = matrix_new(n, n);
    hf->overlap = matrix_new(n, n);
    hf->core = matrix_new(n, n);
    hf->orthogonaliser = matrix_new(n, n);
    oneint_overlap(&hf->basis, hf->overlap);
    oneint_kinetic(&hf->basis, hf->core);
    oneint_nuclear(&hf->basis, &hf->pairs, hf->molecule, nuclear);
    for (int i = 0; i < n * n; i++)
        hf->core[i] += nuclear[i];
    free(nuclear);
    if (!matrix_orthogonaliser(n, hf->overlap, smallest_overlap, hf->orthogonaliser, &hf->m))
        return complain(why, "the overlap matrix cannot be diagonalised");
    if (hf->m < hf->nocc)
        return complain(why, "%d independent basis functions cannot hold %d electrons", hf->m, 2 * hf->nocc);
    return true;
}

bool hf_init(const struct molecule *molecule, const struct basis_library *library, double screening, struct hf *out,
             struct complaint *why)
{
    *out = (struct hf){.molecule = molecule, .screening = screening};
    if (!basis_build(library, molecule, &out->basis, why))
        return false;
    out->n = out->basis.nfunctions;
    out->nocc = molecule_electrons(molecule) / 2;
    out->nuclear_repulsion = molecule_nuclear_repulsion(molecule);
    pairs_build(&out->basis, &out->pairs);
    fock_plan_make(&out->pairs, screening, &out->plan);
    if (make_matrices(out, why))
        return true;
    hf_fini(out);
    return false;
}

void hf_fini(struct hf *hf)
{
    fock_plan_fini(&hf->plan);
    pairs_fini(&hf->pairs);
    basis_fini(&hf->basis);
    free(hf->overlap);
    free(hf->core);
    free(hf->orthogonaliser);
    *hf = (struct hf){0};
}

void hf_fock(const struct hf *hf, const double *g, double *fock)
{
    int n = hf->n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            fock[i * n + j] = hf->core[i * n + j] + 0.5 * (g[i * n + j] + g[j * n + i]);
}

double hf_energy(const struct hf *hf, const double *density, const double *fock)
{
    size_t count = (size_t)hf->n * (size_t)hf->n;
    return 0.5 * (matrix_dot(count, density, hf->core) + matrix_dot(count, density, fock)) + hf->nuclear_repulsion;
}

double hf_error(const struct hf *hf, const double *density, const double *fock, double *error)
{
    int n = hf->n;
    double *fd = matrix_new(n, n), *fds = matrix_new(n, n);
    matrix_multiply(n, n, n, fock, density, fd);
    matrix_multiply(n, n, n, fd, hf->overlap, fds);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            fd[i * n + j] = fds[i * n + j] - fds[j * n + i];
    matrix_transform(n, hf->m, fd, hf->orthogonaliser, error);
    free(fd);
    free(fds);
    return matrix_largest((size_t)hf->m * (size_t)hf->m, error);
}

bool hf_density(const struct hf *hf, const double *fock, double *density)
{
    int n = hf->n, m = hf->m;
    double *f = matrix_new(m, m), *values = matrix_new(m, 1), *vectors = matrix_new(m, m), *c = matrix_new(n, m);
    matrix_transform(n, m, fock, hf->orthogonaliser, f);
    bool good = matrix_eigen(m, f, values, vectors);
    if (good) {
        matrix_multiply(n, m, m, hf->orthogonaliser, vectors, c);
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++) {
                double sum = 2 * matrix_dot((size_t)hf->nocc, c + i * m, c + j * m);
                density[i * n + j] = density[j * n + i] = sum;
            }
    }
    free(f);
    free(values);
    free(vectors);
    free(c);
    return good;
}

void hf_task(const struct hf *hf, const double *density, const double *maxima, int task, double *g)
{
    fock_task(&hf->basis, &hf->pairs, &hf->plan, hf->screening, density, maxima, task, g);
}
