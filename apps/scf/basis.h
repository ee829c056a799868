/* Basis sets of contracted cartesian Gaussian functions: the library read from a file in NWChem's format, and the
 * shells it puts on the atoms of a molecule.
 *
 * A function is  N x^i y^j z^k sum_p c_p exp(-a_p r^2)  about its atom, i + j + k = l. All functions of a shell have
 * the same factor, chosen as NWChem does for cartesian functions: x^l has norm 1 (so the d function xy has norm 1/sqrt
 * 3). */
#ifndef KEEL_SCF_BASIS_H
#define KEEL_SCF_BASIS_H

#include <stdbool.h>

#include "apps/scf/complaint.h"
#include "apps/scf/element.h"
#include "apps/scf/molecule.h"

enum { SHELL_L_MAX = 2, SHELL_FUNCTIONS_MAX = 6 };

struct shell_entry {
    int l;
    int nprimitives;
    double *exponents;    /* [nprimitives], 1/bohr^2, positive; owned */
    double *coefficients; /* [nprimitives], of normalised primitives, as in the file; owned */
};

struct basis_library {
    struct element_shells {
        int nshells;
        struct shell_entry *shells;
    } elements[ELEMENT_MAX + 1];
};

/* Read a basis set file: blocks of "Symbol Type" (S, P, D or SP) followed by rows "exponent coefficient...", with
 * several coefficient columns for several functions on the same exponents; lines basis... and end may surround them, #
 * starts a comment. On false *why says what is wrong and *out is empty. */
bool basis_library_read(const char *path, struct basis_library *out, struct complaint *why);
void basis_library_fini(struct basis_library *library);

struct shell {
    int l;
    int first; /* number of its first basis function */
    int nprimitives;
    double r[3]; /* bohr */
    const double *exponents;
    double *coefficients; /* [nprimitives] of x^l exp(-a r^2), all norms included; owned */
};

struct basis {
    int nshells;
    int nfunctions;
    struct shell *shells;
};

/* The library's shells on every atom, in the order of atoms. Keeps pointers into the library. False and *why if an
 * element has no shells there. */
bool basis_build(const struct basis_library *library, const struct molecule *molecule, struct basis *out,
                 struct complaint *why);
void basis_fini(struct basis *basis);

/* Functions of a shell: 1, 3 (x y z), 6 (xx xy xz yy yz zz). */
static inline int shell_functions(int l)
{
    return (l + 1) * (l + 2) / 2;
}

/* Powers i, j, k of function number c of a shell. */
void shell_powers(int l, int c, int powers[3]);

#endif
