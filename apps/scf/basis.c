#include "apps/scf/basis.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void shell_powers(int l, int c, int powers[3])
{
    for (int i = l; i >= 0; i--)
        for (int j = l - i; j >= 0; j--)
            if (c-- == 0) {
                powers[0] = i;
                powers[1] = j;
                powers[2] = l - i - j;
                return;
            }
}

static double double_factorial(int n)
{
    return n <= 1 ? 1 : n * double_factorial(n - 2);
}

/* Self-overlap of x^l exp(-a r^2) with x^l exp(-b r^2) on one centre. */
static double self_overlap(int l, double a, double b)
{
    return pow(M_PI / (a + b), 1.5) * double_factorial(2 * l - 1) / pow(2 * (a + b), l);
}

/* Coefficients of bare primitives such that the contracted x^l has norm 1. */
static bool normalise(const struct shell_entry *entry, double *out)
{
    double norm = 0;
    for (int i = 0; i < entry->nprimitives; i++)
        out[i] = entry->coefficients[i] / sqrt(self_overlap(entry->l, entry->exponents[i], entry->exponents[i]));
    for (int i = 0; i < entry->nprimitives; i++)
        for (int j = 0; j < entry->nprimitives; j++)
            norm += out[i] * out[j] * self_overlap(entry->l, entry->exponents[i], entry->exponents[j]);
    if (!isfinite(norm) || norm < 1e-12)
        return false;
    for (int i = 0; i < entry->nprimitives; i++)
        out[i] /= sqrt(norm);
    return true;
}

static bool add_shells(const struct element_shells *source, const struct atom *atom, struct basis *out,
                       struct complaint *why)
{
    for (int s = 0; s < source->nshells; s++) {
        const struct shell_entry *entry = &source->shells[s];
        struct shell *shell = &out->shells[out->nshells++];
        *shell = (struct shell){
            .l = entry->l, .first = out->nfunctions, .nprimitives = entry->nprimitives, .exponents = entry->exponents};
        memcpy(shell->r, atom->r, sizeof shell->r);
        shell->coefficients = calloc((size_t)entry->nprimitives, sizeof(double));
        if (!shell->coefficients)
            return complain(why, "out of memory");
        if (!normalise(entry, shell->coefficients))
            return complain(why, "basis set: shell %d of %s has norm 0", s + 1, element_symbol(atom->z));
        out->nfunctions += shell_functions(entry->l);
    }
    return true;
}

bool basis_build(const struct basis_library *library, const struct molecule *molecule, struct basis *out,
                 struct complaint *why)
{
    *out = (struct basis){0};
    int count = 0;
    assert(molecule->natoms > 0);
    for (int a = 0; a < molecule->natoms; a++) {
        int z = molecule->atoms[a].z;
        if (library->elements[z].nshells == 0)
            return complain(why, "the basis set has no functions for %s", element_symbol(z));
        count += library->elements[z].nshells;
    }
    out->shells = calloc((size_t)count, sizeof *out->shells);
    if (!out->shells)
        return complain(why, "out of memory");
    for (int a = 0; a < molecule->natoms; a++)
        if (!add_shells(&library->elements[molecule->atoms[a].z], &molecule->atoms[a], out, why)) {
            basis_fini(out);
            return false;
        }
    return true;
}

void basis_fini(struct basis *basis)
{
    for (int s = 0; s < basis->nshells; s++)
        free(basis->shells[s].coefficients);
    free(basis->shells);
    *basis = (struct basis){0};
}
