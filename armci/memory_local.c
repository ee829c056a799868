/* Memory of the process's own, and what there is nothing to do for: memory is shared within a node as it is. */
#include <stdlib.h>

#include "armci/armci_int.h"

ARMCI_EXPORT void *ARMCI_Malloc_local(armci_size_t size)
{
    return size < 0 ? NULL : malloc((size_t)size + !size);
}

ARMCI_EXPORT int ARMCI_Free_local(void *ptr)
{
    free(ptr);
    return 0;
}

/* Memory is shared within a node, as much as there is. */
ARMCI_EXPORT void ARMCI_Set_shm_limit(unsigned long shmemlimit)
{
    (void)shmemlimit;
}

ARMCI_EXPORT int ARMCI_Uses_shm(void)
{
    return 1;
}

ARMCI_EXPORT int ARMCI_Uses_shm_grp(ARMCI_Group *group)
{
    if (group && group->grp_to_abs && ARMCI_Initialized()) /* else of a process that is no member */
        (void)armci_group(group, "ARMCI_Uses_shm_grp");
    return 1;
}

ARMCI_EXPORT void ARMCI_Access_begin(void *ptr)
{
    (void)ptr;
}

ARMCI_EXPORT void ARMCI_Access_end(void *ptr)
{
    (void)ptr;
}
