/* What programs of Global Arrays need that go on when processes and nodes die: tasks of Keel's, and arrays written and
 * read so that nothing depends on who lives. Run them with KEEL_ARMCI_REDUNDANCY=shadow. */
#ifndef GA_TASKS_H
#define GA_TASKS_H

#include <keel/keel.h>

enum { GA_TASK_DIMS_MAX = 4 };

/* Ends the program if a call of Keel's has failed. */
void ga_check(keel_status status);
/* Memory of so many doubles; ends the program if there is none. */
double *ga_memory(size_t doubles);
/* For tests that kill: the first process that lives tells the event log that a phase begins. */
void ga_phase(int number);

/* An array of doubles and its dimensions. */
struct ga_array {
    int handle, ndim, dims[GA_TASK_DIMS_MAX];
};
struct ga_array ga_array_create(const char *name, int ndim, const int *dims);
size_t ga_array_size(const struct ga_array *a);
/* All of it, from or into local memory. Everybody writes all, beginning at another slice: whoever lives to the end
 * has written it. */
void ga_array_write(const struct ga_array *a, double *from);
void ga_array_read(const struct ga_array *a, double *into);
/* Add a block (packed) to it, owner by owner: GA itself takes those of the caller's last, and a task must make the same
 * accumulates in the same order whoever runs it. The block stays as it is until the task has ended: what goes to
 * several owners is added at the same time. */
void ga_array_add(const struct ga_array *a, const int *lo, const int *hi, double *block);
void ga_array_get(const struct ga_array *a, const int *lo, const int *hi, double *block);

/* Tasks 0..count-1 of a round, each of whose accumulates counts once, whoever dies. */
void ga_tasks_run(keel_taskpool *pool, void (*task)(void *work, long number), void *work);
#endif
