#include "apps/npb/kernel.h"

#include <string.h>

const struct npb_kernel *npb_kernel_find(const char *name)
{
    static const struct npb_kernel *const all[] = {&npb_ep, &npb_is, &npb_cg, &npb_mg, &npb_ft, &npb_lu};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
