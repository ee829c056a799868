/* What programs and archives that were compiled with an armci.h know of it: sizes, places, numbers. Compiled with ours
 * and with Debian's. */
#include <armci.h>
#include <stddef.h>

#include "layout.h"

#define OF(TYPE, MEMBER)                                                                                               \
    {                                                                                                                  \
#TYPE "." #MEMBER, (long)offsetof(TYPE, MEMBER), (long)sizeof(((TYPE *)0)->MEMBER)                             \
    }
#define SIZE(TYPE)                                                                                                     \
    {                                                                                                                  \
#TYPE, (long)sizeof(TYPE), (long)_Alignof(TYPE)                                                                \
    }
#define NUMBER(NAME)                                                                                                   \
    {                                                                                                                  \
#NAME, NAME, 0                                                                                                 \
    }

const struct layout TABLE[] = {
    SIZE(armci_giov_t),
    OF(armci_giov_t, src_ptr_array),
    OF(armci_giov_t, dst_ptr_array),
    OF(armci_giov_t, bytes),
    OF(armci_giov_t, ptr_array_len),
    SIZE(armci_hdl_t),
    SIZE(ARMCI_Group),
    OF(ARMCI_Group, comm),
    OF(ARMCI_Group, rank),
    OF(ARMCI_Group, size),
    SIZE(armci_size_t),
    SIZE(armci_domain_t),
    NUMBER(ARMCI_ACC_INT),
    NUMBER(ARMCI_ACC_LNG),
    NUMBER(ARMCI_ACC_FLT),
    NUMBER(ARMCI_ACC_DBL),
    NUMBER(ARMCI_ACC_CPL),
    NUMBER(ARMCI_ACC_DCP),
    NUMBER(ARMCI_FETCH_AND_ADD),
    NUMBER(ARMCI_FETCH_AND_ADD_LONG),
    NUMBER(ARMCI_SWAP),
    NUMBER(ARMCI_SWAP_LONG),
    NUMBER(SCOPE_ALL),
    NUMBER(SCOPE_NODE),
    NUMBER(SCOPE_MASTERS),
    NUMBER(ARMCI_INT),
    NUMBER(ARMCI_LONG),
    NUMBER(ARMCI_LONG_LONG),
    NUMBER(ARMCI_FLOAT),
    NUMBER(ARMCI_DOUBLE),
    NUMBER(ARMCI_DOMAIN_SMP),
    {NULL, 0, 0},
};
