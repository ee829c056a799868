/* What the files of process.h have in common: process.c watches, process_spawn.c forks, process_output.c reads. */
#ifndef KEEL_PM_KEELD_PROCESS_PARTS_H
#define KEEL_PM_KEELD_PROCESS_PARTS_H

#include "pm/keeld/process.h"

/* process_spawn.c */
/* [0] of in, pmi, keel and error, and [1] of out are read or held there: pairs, -1 where there is none. */
struct child_fds {
    int in[2], out[2][2], pmi[2], keel[2], error[2];
};

/* False: errno says why; what is open then is to be closed, too. */
bool child_fds_open(struct child_fds *f, bool with_stdin);
void child_fds_close(struct child_fds *f);
/* Forks and waits for the exec to happen or fail. Returns 0 or an errno (negative errno: of chdir). */
int process_spawn(const struct process_spec *spec, struct child_fds *f, pid_t *pid);

/* process_output.c */
void process_read_outputs(struct process *p);
/* What the pipe holds now, also while it is paused: no more than it can hold at a time, whoever still writes. */
void process_take_rest(struct process *p, int i);
/* Calls drained once the process has ended and nothing is left to read. */
void process_finish_if_drained(struct process *p);
void process_drain_passed(uv_timer_t *timer);
/* Of a handle whose data is the process. */
void process_handle_closed(uv_handle_t *handle);
void process_read_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
#endif
