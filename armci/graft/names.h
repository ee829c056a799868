/* Names that the preload, keel-armci-run and their tests share. */
#ifndef ARMCI_GRAFT_NAMES_H
#define ARMCI_GRAFT_NAMES_H

#include <stdbool.h>
#include <string.h>

#define GRAFT_RUN "keel-armci-run"
#define GRAFT_PRELOAD "keel-armci-graft.so"
#define GRAFT_ARCHIVE "/usr/lib/x86_64-linux-gnu/libarmci-mpich.a"
#define GRAFT_PACKAGE "libarmci-mpi-dev"
#define GRAFT_ARCHIVE_ENV "KEEL_ARMCI_ARCHIVE"
#define GRAFT_NEEDED "ARMCI_Init" /* every program that uses ARMCI has it */

/* The name that ARMCI gives what its profiling interface calls so. */
static inline const char *graft_name(const char *name)
{
    return strncmp(name, "PARMCI_", 7) == 0 || strncmp(name, "parmci_", 7) == 0 ? name + 1 : name;
}

/* May a program call it? The rest is ARMCI-MPI's inside. */
static inline bool graft_is_public(const char *name)
{
    name = graft_name(name);
    return strncmp(name, "ARMCI_", 6) == 0 || strncmp(name, "ARMCIX_", 7) == 0 || strncmp(name, "armci_", 6) == 0;
}
#endif
