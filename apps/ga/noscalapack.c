/* The solvers that Debian's archive of Global Arrays refers to, for programs that call none of them: its ScaLAPACK
 * brings a second MPI, which would become the machine's default. */
#include <stdio.h>
#include <stdlib.h>

#define ABSENT(NAME)                                                                                                   \
    void NAME(void);                                                                                                   \
    void NAME(void)                                                                                                    \
    {                                                                                                                  \
        fputs(#NAME ": this program is linked without ScaLAPACK\n", stderr);                                           \
        abort();                                                                                                       \
    }

ABSENT(blacs_gridexit_)
ABSENT(blacs_gridinfo_)
ABSENT(blacs_gridinit_)
ABSENT(descinit_)
ABSENT(iceil_)
ABSENT(indxg2p_)
ABSENT(numroc_)
ABSENT(pdgetrf_)
ABSENT(pdgetrs_)
ABSENT(pdlamch_)
ABSENT(pdpotrf_)
ABSENT(pdpotri_)
ABSENT(pdpotrs_)
ABSENT(pdsyev_)
ABSENT(pdsyevd_)
ABSENT(pdsyevr_)
ABSENT(pdsyevx_)
ABSENT(pdsygvx_)
ABSENT(pzheevd_)
ABSENT(pzheevr_)
