/* Where this process waits in MPI: noted by the calls of mpi.c, looked at by the thread of waits.c. */
#ifndef ARMCI_WAITS_H
#define ARMCI_WAITS_H

#include "armci/armci_int.h"

enum { WAITS_NOBODY = -1 };

/* Is the calling thread the one that is watched? */
bool waits_watched(void);
/* It enters a call of MPI's that can wait: for all members of the communicator, */
void waits_for_all(const char *call, MPI_Comm comm);
/* for these processes of it (MPI_ANY_SOURCE, MPI_PROC_NULL: no certain one), */
void waits_for_two(const char *call, MPI_Comm comm, int a, int b);
/* or for nobody knows whom. */
void waits_for_some(const char *call);
/* And it is back. */
void waits_over(void);

#endif
