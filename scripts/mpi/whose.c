/* An MPI compiler counts as MPICH's, or with -DWANT_OPEN_MPI as Open MPI's, if it builds this, and the program then
 * ends with 0. */
#include <mpi.h>
#include <string.h>

#ifdef WANT_OPEN_MPI
#ifndef OPEN_MPI
#error "mpi.h is not Open MPI's"
#endif
enum { OPEN_MPI_WANTED = 1 };
#else
#ifndef MPICH
#error "mpi.h is not MPICH's"
#endif
enum { OPEN_MPI_WANTED = 0 };
#endif

int main(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) /* allowed before MPI_Init */
        return 2;
    return (strstr(version, "Open MPI") != NULL) == OPEN_MPI_WANTED ? 0 : 1;
}
