/* The parallel self-consistent field over Keel. See docs/scf.md for why the death of any rank at any moment is
 * survived. */
#ifndef KEEL_SCF_SCF_H
#define KEEL_SCF_SCF_H

#include <stdint.h>
#include <stdio.h>

#include <keel/segment.h>

#include "apps/scf/complaint.h"
#include "apps/scf/hf.h"

struct scf_input {
    const struct hf *hf; /* NULL if this rank's input is bad: *why of scf_run says how */
    const struct basis_library *library;
    uint64_t fingerprint; /* of everything that must be the same on all ranks */
    int max_iterations;
    keel_redundancy redundancy; /* of all that the ranks share */
    double threshold; /* of the largest element of F D S - S D F; the energy must settle to 1 % of it, in Hartree */
    const char *molecule, *basis; /* names for the heading */
};

enum scf_outcome {
    SCF_CONVERGED,
    /* the same on all ranks; *why says what is wrong on the rank that should tell, and is empty on the others */
    SCF_BAD_INPUT,
    SCF_NOT_CONVERGED, /* the same on all ranks, with the same line in *why */
    SCF_BROKEN         /* Keel returned an error that is told in *why, or this rank's restart has no good input */
};

struct scf_result {
    double energy; /* Hartree */
    int iterations;
};

/* Call after keel_init, on all ranks, also restarted ones. Collective. The lowest live rank writes the report to out.
 * After SCF_BROKEN the rank must leave the job. */
enum scf_outcome scf_run(const struct scf_input *input, FILE *out, struct scf_result *result, struct complaint *why);

#endif
