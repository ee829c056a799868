/* A molecule: atoms with their places, read from an XYZ file. */
#ifndef KEEL_SCF_MOLECULE_H
#define KEEL_SCF_MOLECULE_H

#include <stdbool.h>

#include "apps/scf/complaint.h"

/* NWChem works with 0.529177249 angstrom to the bohr, so the same file gives the same geometry. */
#define BOHR_PER_ANGSTROM (1 / 0.529177249)

struct atom {
    int z;       /* atomic number */
    double r[3]; /* bohr */
};

struct molecule {
    int natoms;
    struct atom *atoms;
};

/* Read an XYZ file (count, comment, then symbol x y z in angstrom, one atom a line; further columns are ignored).
 * On false *why says what is wrong and *out is empty. molecule_fini frees what is in *out. */
bool molecule_read(const char *path, struct molecule *out, struct complaint *why);
/* The checks that do not depend on the file's form: no two atoms in one place, an even number of electrons. */
bool molecule_check(const struct molecule *molecule, struct complaint *why);
void molecule_fini(struct molecule *molecule);

int molecule_electrons(const struct molecule *molecule);
/* Hartree */
double molecule_nuclear_repulsion(const struct molecule *molecule);

#endif
