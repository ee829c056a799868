/* How much memory this process may still take before the kernel ends somebody for it: what the machine has available,
 * and what the memory groups (cgroups, version 1 or 2) that the process is in allow, whichever is least. */
#ifndef KEEL_BASE_ROOM_H
#define KEEL_BASE_ROOM_H

#include <stdint.h>

/* Bytes; UINT64_MAX if nothing says so. Reads a few files below root ("" for the system's own; tests have others).
 * Any thread. */
uint64_t room_bytes(const char *root);
/* How many more processes and threads these groups allow, and the limit of the group that allows fewest; UINT64_MAX:
 * there is none. Likewise. */
uint64_t room_processes(const char *root, uint64_t *limit);
/* Memory and swap of the machine: more than that nobody can ever have. UINT64_MAX: the system is told to promise it all
 * the same (vm.overcommit_memory is 1), or nothing says how much there is. */
uint64_t room_ever(const char *root);
#endif
