/* MPI's calls that can wait, each of which says so (waits.h) and is then MPI's own, by the interface for profilers. A
 * program's calls come here first, as libarmci is linked before MPI; those of Fortran programs and of ScaLAPACK call
 * these. */
#include "armci/waits.h"

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define CALL(NAME, ENTER, PARAMETERS, ARGUMENTS)                                                                       \
    extern int PMPI_##NAME PARAMETERS __attribute__((weak));                                                           \
    ARMCI_EXPORT int MPI_##NAME PARAMETERS                                                                             \
    {                                                                                                                  \
        if (!waits_watched())                                                                                          \
            return PMPI_##NAME ARGUMENTS;                                                                              \
        ENTER;                                                                                                         \
        int code = PMPI_##NAME ARGUMENTS;                                                                              \
        waits_over();                                                                                                  \
        return code;                                                                                                   \
    }
#define ALL(NAME, PARAMETERS, ARGUMENTS) CALL(NAME, waits_for_all("MPI_" #NAME, comm), PARAMETERS, ARGUMENTS)
#define TWO(NAME, A, B, PARAMETERS, ARGUMENTS)                                                                         \
    CALL(NAME, waits_for_two("MPI_" #NAME, comm, A, B), PARAMETERS, ARGUMENTS)
#define SOME(NAME, PARAMETERS, ARGUMENTS) CALL(NAME, waits_for_some("MPI_" #NAME), PARAMETERS, ARGUMENTS)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- for all of a communicator ---- */

ALL(Barrier, (MPI_Comm comm), (comm))
ALL(Bcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm),
    (buffer, count, datatype, root, comm))
ALL(Gather,
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
     int root, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
ALL(Gatherv,
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
     const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm))
ALL(Scatter,
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
     int root, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
ALL(Scatterv,
    (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
     int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
    (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm))
ALL(Allgather,
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
     MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
ALL(Allgatherv,
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
     const int displs[], MPI_Datatype recvtype, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
ALL(Alltoall,
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
     MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
ALL(Alltoallv,
    (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
     const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
ALL(Reduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm),
    (sendbuf, recvbuf, count, datatype, op, root, comm))
ALL(Allreduce, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, count, datatype, op, comm))
ALL(Reduce_scatter,
    (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, recvcounts, datatype, op, comm))
ALL(Reduce_scatter_block,
    (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, recvcount, datatype, op, comm))
ALL(Scan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, count, datatype, op, comm))
ALL(Exscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
    (sendbuf, recvbuf, count, datatype, op, comm))
ALL(Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm))
ALL(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm), (comm, group, newcomm))
ALL(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm), (comm, color, key, newcomm))
ALL(Comm_split_type, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm),
    (comm, split_type, key, info, newcomm))
CALL(Cart_create, waits_for_all("MPI_Cart_create", comm_old),
     (MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *comm_cart),
     (comm_old, ndims, dims, periods, reorder, comm_cart))
ALL(Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm), (comm, remain_dims, newcomm))
ALL(Win_create, (void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
    (base, size, disp_unit, info, comm, win))
ALL(Win_allocate, (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
    (size, disp_unit, info, comm, baseptr, win))
ALL(File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh),
    (comm, filename, amode, info, fh))

/* ---- for one or two processes ---- */

TWO(Send, dest, WAITS_NOBODY, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
    (buf, count, datatype, dest, tag, comm))
TWO(Ssend, dest, WAITS_NOBODY, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
    (buf, count, datatype, dest, tag, comm))
TWO(Rsend, dest, WAITS_NOBODY, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
    (buf, count, datatype, dest, tag, comm))
TWO(Recv, source, WAITS_NOBODY,
    (void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status),
    (buf, count, datatype, source, tag, comm, status))
TWO(Probe, source, WAITS_NOBODY, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status))
TWO(Sendrecv, dest, source,
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount,
     MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status),
    (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status))
TWO(Sendrecv_replace, dest, source,
    (void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm,
     MPI_Status *status),
    (buf, count, datatype, dest, sendtag, source, recvtag, comm, status))

/* ---- for nobody knows whom ---- */

SOME(Wait, (MPI_Request * request, MPI_Status *status), (request, status))
SOME(Waitall, (int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]),
     (count, array_of_requests, array_of_statuses))
SOME(Waitany, (int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status),
     (count, array_of_requests, indx, status))
SOME(Waitsome,
     (int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
      MPI_Status array_of_statuses[]),
     (incount, array_of_requests, outcount, array_of_indices, array_of_statuses))
SOME(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm), (comm, group, tag, newcomm))
SOME(Win_fence, (int assert, MPI_Win win), (assert, win))
SOME(Win_free, (MPI_Win * win), (win))
