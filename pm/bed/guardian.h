/* The guardian of a netns bed: a process that removes the namespaces when keelrun is gone and nobody lives in them. */
#ifndef KEEL_PM_GUARDIAN_H
#define KEEL_PM_GUARDIAN_H

#include <stddef.h>
#include <stdint.h>

/* The guardian holds an abstract socket of this name as long as it lives. A descriptor, or -1 if somebody has it. */
int bed_guard_name(uint64_t job_id);
/* In the child: waits for the end of the pipe, and for all that live in the bed; then removes it and ends. */
_Noreturn void bed_guardian_run(uint64_t job_id, int nodes, int pipe_fd, int guard_fd);
/* Removes beds whose guardian was killed together with everything else: nobody holds the name, nobody lives there. */
void bed_sweep(void);

/* bed.c: where a namespace is (node -1: the hub), and the end of all of a bed. */
void bed_netns_path(uint64_t job_id, int node, char *out, size_t size);
void bed_demolish(uint64_t job_id, int nodes);
#endif
