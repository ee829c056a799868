/* From fork to exec of mpiexec.hydra, for hydra.c. */
#ifndef KEEL_PM_HYDRA_SPAWN_H
#define KEEL_PM_HYDRA_SPAWN_H

#include "pm/wire/hydra.h"

/* Sets h->mpiexec. order, report and output are the ends that it gets; the caller closes them. Returns 0 or an errno; a
 * negative one of what it has to begin with. */
int hydra_spawn(struct hydra *h, const struct hydra_command *command, int order, int report, int output);
#endif
