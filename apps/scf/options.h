/* The command line of keel-scf. */
#ifndef KEEL_SCF_OPTIONS_H
#define KEEL_SCF_OPTIONS_H

#include <stdbool.h>

#include <keel/segment.h>

#include "apps/scf/complaint.h"

struct scf_options {
    const char *molecule;   /* file, or the name of a shipped one */
    const char *basis;      /* name of a shipped basis set */
    const char *basis_file; /* NULL: the shipped one */
    int max_iterations;
    double threshold;
    double screening; /* Hartree */
    keel_redundancy redundancy;
};

/* False with a complaint if it is wrong; prints the text and exits after --help, --usage and --version. Says nothing
 * itself, so that one of many ranks can. */
bool options_parse(int argc, char **argv, struct scf_options *out, struct complaint *why);

/* Path of a data file: the name itself if there is such a file or it has a slash, else in folder (basis, molecules) of
 * $KEEL_SCF_DATA, of the source tree this program was built from, or of the place it was installed to. Writes name
 * itself if it is nowhere. */
void options_find_file(const char *folder, const char *name, char *path, int size);

#endif
