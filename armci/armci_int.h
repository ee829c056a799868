/* What the files of libarmci share. Everything rests on Keel's public calls:
 *   start.c    start, end, errors, where processes are
 *   memory.c   allocation; from (process, address) to (segment, offset)
 *   memget.c   memory that one process makes alone
 *   data.c     put, get, accumulate, strided and of values; atomics. data_vector.c: of vectors
 *   handle.c   non-blocking operations, fences
 *   group.c    groups
 *   message.c  messages, barriers, broadcasts; message_reduce.c: reductions
 *   mutex.c    mutexes
 *   loss.c     processes that die
 *   waits.c    waits in MPI for the dead; mpi.c: MPI's calls, which tell of them */
#ifndef ARMCI_INT_H
#define ARMCI_INT_H

#include <stdbool.h>
#include <stddef.h>

#include <keel/keel.h>

#include "armci/armci.h"

#define ARMCI_EXPORT __attribute__((visibility("default")))

/* Ends the job with a line: who, in which call, what. */
_Noreturn void armci_end(const char *call, int proc, const char *what);
/* Ends it if the library was not started, or has ended. */
void armci_running(const char *call);
/* Ends it if the status is an error. */
void armci_check(keel_status status, const char *call, int proc);

/* The same at the end of a collective, where it is also seen whether somebody has died. */
void armci_check_all(keel_status status, const char *call);
/* ARMCI begins once more in this process. */
void armci_loss_again(void);
/* Collective: all processes come to this end (a call's name) before one of them goes on, or the program ends with a
 * line that says who has not. */
void armci_loss_meet(const char *end);
/* A group was made of this list: who is not in it has died, or has ended. */
void armci_loss_lacks(const keel_group *g, const int *ranks, int n);
/* Has ARMCI ended, in a process that is still in the job? It leaves by MPI_Finalize or at exit. */
bool armci_stays(void);
void armci_leave(void);
/* Whenever all meet, and at every error: returns if nobody is missing, or the program goes on without who is. */
void armci_loss_look(void);

/* The part of *proc that the address lies in; false: none. *proc becomes the process whose part Keel takes it for:
 * another one where that one died before all had made the group that the memory is of. */
bool armci_find(int *proc, const void *address, keel_segment **segment, size_t *offset);
/* keel_fence of all that was told to be of that process. */
keel_status armci_fence_of(int proc);

/* Pieces of one length, of which the last stays where several begin at one place; in another order. Returns how many
 * are left. */
size_t armci_distinct(keel_piece *piece, size_t n);

/* A handle for the library's call: NULL for an implicit operation. */
keel_handle *armci_handle(armci_hdl_t *handle);

/* The members of a scope, for the library's call; NULL: this process is none. */
keel_group *armci_scope_group(int scope, const char *call);
/* The members of a group, NULL: the default group. Ends the job, with the call's name, if there are none. */
keel_group *armci_group(const ARMCI_Group *group, const char *call);
/* keel_group_create of a group whose calls wait for who is stopped, as ARMCI's all do. */
keel_group *armci_make_group(const int *ranks, int n, uint64_t tag, const char *call);
/* At the start, collective: comm is of all processes. And at the end. */
void armci_groups_init(MPI_Comm comm);
void armci_groups_fini(void);
void armci_memory_fini(void);
void armci_mutexes_fini(void);
/* Waits in MPI are watched (waits.c): from ARMCI_Init on; the end has begun; MPI's own has. */
void armci_waits_init(MPI_Comm comm);
void armci_waits_ending(void);
void armci_waits_fini(void);
bool armci_mpi_runs(void);
/* Collective over the group, for the library's call: what ARMCI_Malloc_group and ARMCI_Free_group do. */
int armci_malloc_on(keel_group *g, void **base_ptrs, armci_size_t size, const char *call);
int armci_free_on(keel_group *g, void *ptr, const char *call);
/* This process's stores into what it has attached of others' own memory go to the copies. At the end. */
void armci_memget_update(void);
void armci_memget_fini(void);
/* In each barrier of the group (or of all processes), before its members meet: what they stored into memory of
 * theirs goes to its copies. */
void armci_update_copies(keel_group *g);
void armci_messages_init(void);
void armci_messages_fini(void);

#endif
