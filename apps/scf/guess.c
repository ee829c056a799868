/* Superposition of atomic densities. Each element's atom is solved once with its electrons spread evenly over the
 * functions of a shell (2p^2 of carbon is 2/3 of an electron in each p orbital), which keeps it spherical. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/scf/diis.h"
#include "apps/scf/hf.h"
#include "apps/scf/matrix.h"

enum { ATOM_ITERATIONS = 40 };
static const double atom_threshold = 1e-6;

/* The angular momentum whose functions weigh most in orbital number o (columns of c, n x m). */
static int orbital_l(const struct hf *atom, const double *c, int o)
{
    double weight[SHELL_L_MAX + 1] = {0};
    int best = 0;
    for (int s = 0; s < atom->basis.nshells; s++) {
        const struct shell *shell = &atom->basis.shells[s];
        for (int i = shell->first; i < shell->first + shell_functions(shell->l); i++)
            for (int j = 0; j < atom->n; j++)
                weight[shell->l] += c[i * atom->m + o] * atom->overlap[i * atom->n + j] * c[j * atom->m + o];
    }
    for (int l = 1; l <= SHELL_L_MAX; l++)
        if (weight[l] > weight[best])
            best = l;
    return best;
}

/* Fill orbitals upwards, each angular momentum on its own: 2 electrons an orbital as long as whole shells can be
 * filled, then what is left evenly over the next 2l+1. */
static bool atom_density(const struct hf *atom, const double *fock, double *density)
{
    int n = atom->n, m = atom->m, electrons[3], given[3] = {0};
    double *f = matrix_new(m, m), *values = matrix_new(m, 1), *vectors = matrix_new(m, m), *c = matrix_new(n, m);
    element_occupation(atom->molecule->atoms[0].z, electrons);
    matrix_transform(n, m, fock, atom->orthogonaliser, f);
    bool good = matrix_eigen(m, f, values, vectors);
    memset(density, 0, (size_t)n * (size_t)n * sizeof *density);
    matrix_multiply(n, m, m, atom->orthogonaliser, vectors, c);
    for (int o = 0; o < m && good; o++) {
        int l = orbital_l(atom, c, o), degeneracy = 2 * l + 1, shell = given[l]++ / degeneracy;
        double occupation = fmin(2, (double)(electrons[l] - 2 * degeneracy * shell) / degeneracy);
        if (occupation <= 0)
            continue;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                density[i * n + j] += occupation * c[i * m + o] * c[j * m + o];
    }
    free(f);
    free(values);
    free(vectors);
    free(c);
    return good;
}

static void full_fock(const struct hf *atom, const double *density, double *fock)
{
    double *g = matrix_new(atom->n, atom->n), *maxima = matrix_new(atom->basis.nshells, atom->basis.nshells);
    fock_block_maxima(&atom->basis, density, maxima);
    for (int task = 0; task < atom->plan.ntasks; task++)
        hf_task(atom, density, maxima, task, g);
    hf_fock(atom, g, fock);
    free(g);
    free(maxima);
}

static bool solve_atom(const struct hf *atom, double *density)
{
    int n = atom->n, m = atom->m;
    size_t nn = (size_t)n * (size_t)n;
    double *focks = matrix_new(DIIS_MAX * n, n), *errors = matrix_new(DIIS_MAX * m, m), *mixed = matrix_new(n, n);
    bool good = atom_density(atom, atom->core, density);
    for (int it = 0; it < ATOM_ITERATIONS && good; it++) {
        const double *window[DIIS_MAX];
        double c[DIIS_MAX];
        int count = it + 1 < DIIS_MAX ? it + 1 : DIIS_MAX;
        full_fock(atom, density, focks + (size_t)(it % DIIS_MAX) * nn);
        double size = hf_error(atom, density, focks + (size_t)(it % DIIS_MAX) * nn, errors + it % DIIS_MAX * m * m);
        if (size < atom_threshold)
            break;
        for (int i = 0; i < count; i++)
            window[i] = errors + (it - count + 1 + i) % DIIS_MAX * m * m;
        diis_coefficients(count, (size_t)m * (size_t)m, window, c);
        memset(mixed, 0, nn * sizeof *mixed);
        for (int i = 0; i < count; i++)
            for (size_t e = 0; e < nn; e++)
                mixed[e] += c[i] * focks[(size_t)((it - count + 1 + i) % DIIS_MAX) * nn + e];
        good = atom_density(atom, mixed, density);
    }
    free(focks);
    free(errors);
    free(mixed);
    return good;
}

/* Solve the atom of element z and put its density on every atom of that element. */
static bool place_element(const struct hf *hf, const struct basis_library *library, int z, double *density,
                          struct complaint *why)
{
    struct atom place = {.z = z};
    struct molecule one = {.natoms = 1, .atoms = &place};
    struct hf atom;
    if (!hf_init(&one, library, hf->screening, &atom, why))
        return false;
    double *local = matrix_new(atom.n, atom.n);
    bool good = solve_atom(&atom, local) || complain(why, "the atom %s cannot be diagonalised", element_symbol(z));
    int first = 0;
    for (int a = 0; a < hf->molecule->natoms; a++) {
        int functions = 0;
        const struct element_shells *shells = &library->elements[hf->molecule->atoms[a].z];
        for (int s = 0; s < shells->nshells; s++)
            functions += shell_functions(shells->shells[s].l);
        for (int i = 0; i < functions && hf->molecule->atoms[a].z == z; i++)
            memcpy(density + (size_t)(first + i) * (size_t)hf->n + first, local + i * atom.n,
                   (size_t)atom.n * sizeof *density);
        first += functions;
    }
    free(local);
    hf_fini(&atom);
    return good;
}

bool guess_density(const struct hf *hf, const struct basis_library *library, double *density, struct complaint *why)
{
    memset(density, 0, (size_t)hf->n * (size_t)hf->n * sizeof *density);
    for (int z = 1; z <= ELEMENT_MAX; z++) {
        bool present = false;
        for (int a = 0; a < hf->molecule->natoms; a++)
            present = present || hf->molecule->atoms[a].z == z;
        if (present && !place_element(hf, library, z, density, why))
            return false;
    }
    return true;
}
