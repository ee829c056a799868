/* Real-time priority that cannot take the machine. A thread that has it and runs for PROMPT_ALONE_MS without a sleep,
 * for whatever reason (a flood of strangers' datagrams, an error of ours), falls to normal priority, with a line, and
 * is raised again PROMPT_AGAIN_MS later. The kernel counts (RLIMIT_RTTIME, of the whole process) and says it by
 * SIGXCPU; one that a user or a batch system sends does nothing. */
#ifndef KEEL_BASE_PROMPT_H
#define KEEL_BASE_PROMPT_H

#include <stdbool.h>

enum { PROMPT_ALONE_MS = 200, PROMPT_AGAIN_MS = 1000 };

/* Raise the calling thread. False, and errno: it may not. */
bool prompt_begin(void);
/* In the thread's loop, at each passing: says the line, and raises it again. Costs a load otherwise. */
void prompt_keep(void);
/* In a child between fork and exec: another program's limit is not ours. Async-signal-safe. */
void prompt_forget(void);
#endif
