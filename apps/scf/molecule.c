#include "apps/scf/molecule.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/scf/element.h"

enum { ATOMS_MAX = 10000 };
static const double same_place = 0.01 * BOHR_PER_ANGSTROM; /* bohr; no two nuclei get nearer */

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == '\0';
}

static bool parse_count(const char *line, int *out)
{
    char *end;
    errno = 0;
    long value = strtol(line, &end, 10);
    if (end == line || !is_blank(end) || errno != 0 || value < 1 || value > ATOMS_MAX)
        return false;
    *out = (int)value;
    return true;
}

static bool parse_atom(const char *path, int number, const char *line, struct atom *out, struct complaint *why)
{
    char symbol[8];
    int used = 0;
    if (sscanf(line, " %7s%n", symbol, &used) != 1)
        return complain(why, "%s: line %d: an atom is missing", path, number);
    out->z = element_number(symbol);
    if (out->z == 0)
        return complain(why, "%s: line %d: unknown element %s (H to Kr are known)", path, number, symbol);
    const char *p = line + used;
    for (int i = 0; i < 3; i++) {
        char *end;
        double value = strtod(p, &end);
        if (end == p || !isfinite(value) || strchr(" \t\r\n", *end) == NULL)
            return complain(why, "%s: line %d: three coordinates in angstrom must follow the symbol", path, number);
        out->r[i] = value * BOHR_PER_ANGSTROM;
        p = end;
    }
    return true;
}

static bool read_lines(FILE *file, const char *path, struct molecule *out, struct complaint *why)
{
    char *line = NULL;
    size_t room = 0;
    int number = 0;
    bool good = true;
    while (good && getline(&line, &room, file) >= 0) {
        number++;
        if (number == 1) {
            if (!parse_count(line, &out->natoms))
                good = complain(why, "%s: line 1: the number of atoms (1 to %d) must stand alone", path, ATOMS_MAX);
            else
                out->atoms = calloc((size_t)out->natoms, sizeof *out->atoms);
        } else if (number >= 3 && number < 3 + out->natoms) {
            good = parse_atom(path, number, line, &out->atoms[number - 3], why);
        } else if (number >= 3 && !is_blank(line)) {
            good = complain(why, "%s: line %d: more lines than the %d atoms of line 1", path, number, out->natoms);
        }
    }
    free(line);
    if (!good)
        return false;
    if (number == 0)
        return complain(why, "%s: the file is empty", path);
    if (number < 2 + out->natoms)
        return complain(why, "%s: the file ends after %d of %d atoms", path, number > 2 ? number - 2 : 0, out->natoms);
    return true;
}

bool molecule_read(const char *path, struct molecule *out, struct complaint *why)
{
    *out = (struct molecule){0};
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return complain(why, "%s: %s", path, strerror(errno));
    bool good = read_lines(file, path, out, why);
    if (good && ferror(file))
        good = complain(why, "%s: the file cannot be read", path);
    fclose(file);
    if (!good)
        molecule_fini(out);
    return good;
}

static double distance(const struct atom *a, const struct atom *b)
{
    double dx = a->r[0] - b->r[0], dy = a->r[1] - b->r[1], dz = a->r[2] - b->r[2];
    return sqrt(dx * dx + dy * dy + dz * dz);
}

bool molecule_check(const struct molecule *molecule, struct complaint *why)
{
    const struct atom *atoms = molecule->atoms;
    for (int i = 0; i < molecule->natoms; i++)
        for (int j = 0; j < i; j++)
            if (distance(&atoms[i], &atoms[j]) < same_place)
                return complain(why, "atoms %d (%s) and %d (%s) are in one place", j + 1, element_symbol(atoms[j].z),
                                i + 1, element_symbol(atoms[i].z));
    int electrons = molecule_electrons(molecule);
    if (electrons % 2 != 0)
        return complain(why, "the molecule has %d electrons; restricted Hartree-Fock needs an even number", electrons);
    return true;
}

void molecule_fini(struct molecule *molecule)
{
    free(molecule->atoms);
    *molecule = (struct molecule){0};
}

int molecule_electrons(const struct molecule *molecule)
{
    int sum = 0;
    for (int i = 0; i < molecule->natoms; i++)
        sum += molecule->atoms[i].z;
    return sum;
}

double molecule_nuclear_repulsion(const struct molecule *molecule)
{
    double sum = 0;
    for (int i = 0; i < molecule->natoms; i++)
        for (int j = 0; j < i; j++)
            sum += (double)molecule->atoms[i].z * molecule->atoms[j].z /
                   distance(&molecule->atoms[i], &molecule->atoms[j]);
    return sum;
}
