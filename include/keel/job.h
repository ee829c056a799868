/* The job: start, end, who am I, who is alive. Where a call does not say otherwise:
 *  threads   any.
 *  blocks    no. */
#ifndef KEEL_JOB_H
#define KEEL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Join the job that keelrun started; or make one of the processes that another launcher started, if it speaks PMI-1
 * (`mpiexec` of MPICH, `srun --mpi=pmi2`): see keel_init_over. First call of a program; once per process.
 * Where keelrun starts a script, the rank is the first process of it that calls keel_init. Another one, at the same
 * time or after it (`./a; ./a`), is told with a line that names the first, which works on undisturbed; it is given a
 * keelrun of its own instead. The child of a fork is not the rank: what it calls of Keel is as after keel_finalize
 * (KEEL_ERR_STATE), also keel_init and keel_finalize, keel_abort ends the child alone, and nothing that it does, its
 * end included, is seen by the parent's job. The addresses of segments stay readable there.
 * blocks    on a spare node until this process is given a rank, which may be never: the process is then ended from
 *           inside this call when the job ends.  Elsewhere until the node's agent answers.
 * threads   call it from one thread; the others may use Keel after it returned.
 * errors    KEEL_ERR_NOT_LAUNCHED without either, in a program that a rank has started, or where another process is or
 *           was the rank, with a line on
 *           standard error; KEEL_ERR_STATE at the second call, KEEL_ERR_AGENT_GONE;
 *           KEEL_ERR_SYSTEM with a line on standard error: the system refuses what it takes, such as descriptors
 *           (`ulimit -n`);
 *           KEEL_ERR_NOMEM, also with a line: no memory, or no address space (`ulimit -v`). Where libfabric lacked it
 *           and says only that there is no network it is KEEL_ERR_SYSTEM. */
KEEL_MUST_CHECK keel_status keel_init(void);

/* How processes that keelrun did not start tell each other where they are: any launcher's or library's way. */
struct keel_exchange {
    int rank, size;
    void *user;
    /* Called by all processes of the job together: each gives len bytes, and has in `all` the bytes of rank 0, 1, ...
     * one after the other. 0: done. MPI_Allgather is one. */
    int (*gather)(void *user, const void *mine, size_t len, void *all);
};

/* keel_init for a job that keelrun did not start, such as an MPI program: all its processes call it. The first one on
 * each machine starts the node's agent, which ends when all processes of the job have ended, however they do; the
 * exchange is used twice, inside this call only, and should be as private as the job's data are to be. With
 * KEEL_NODES=n in the environment of rank 0 the processes of one machine make n nodes.
 *
 * What such a job does without: its processes are the launcher's. There are no spares, nobody is started again, there
 * is no event log; keelctl works. Whether the others go on when a process dies is for the launcher to say: mpiexec ends
 * all of them, unless it was given -disable-auto-cleanup; then it ends those that it has started on the same host, and
 * those on other hosts go on with the dead one's data, as under `keelrun --on-failure degrade` (SIGUSR1, with which
 * mpiexec tells them, is ignored if the program has not set it). A process whose agent dies is killed: a node dies as a
 * whole. One that ends with neither keel_finalize nor exit counts as killed. With MPICH's launcher, a program that
 * calls keel_finalize before MPI_Init must not call MPI_Init any more.
 * threads   as keel_init.
 * blocks    until all processes have called it; what the exchange blocks.
 * errors    KEEL_ERR_ARG; KEEL_ERR_STATE at the second call, also after keel_init; KEEL_ERR_NOT_LAUNCHED with a line on
 *           standard error: an agent
 *           could not be started, the same on all processes; KEEL_ERR_SYSTEM: the exchange failed;
 *           KEEL_ERR_AGENT_GONE. */
KEEL_MUST_CHECK keel_status keel_init_over(const struct keel_exchange *exchange);

/* Leave the job: every call of Keel's that returns a status returns KEEL_ERR_STATE from then on, as it does before
 * keel_init. Completes this rank's outstanding operations first, and waits until every rank to which it has sent
 * messages (keel_message_send) has them, has left or is dead: a rank takes messages inside its Keel calls, so it blocks
 * while one makes none. So it does until it has heard of the members of a group that they, too, have the result of the
 * last allreduce or allgather (keel/collective.h) that it has returned from, and know of the end of the last reduce or
 * gather of which it was the root, of an error of the last call, and that the group is revoked; for one whose process
 * is stopped KEEL_TIMEOUT_MS at most. A thread that is in a collective or waits for a message gets KEEL_ERR_STATE, as
 * do requests that were not waited for. Not collective: other ranks go on, and this rank's data stays readable until
 * the job ends.  Returning from main (or exit) without it ends the rank, too; what it had under way is then in doubt
 *                like the puts of a dead rank: old or new bytes, the same in all copies.
 * threads   any one; others may be in their calls.
 * blocks    until the above is done, but for no peer that is dead.
 * errors    KEEL_ERR_STATE; those of keel/rma.h, which its last operations met. */
keel_status keel_finalize(void);

/* End the whole job with this exit code (1..255; what no exit code can be counts modulo 256, 0 as 1) and print the
 * message (or NULL) on standard error. Does not return. If the node dies in the middle of the call, the job may go on
 * without it.
 * blocks    for ever: it does not return. */
__attribute__((noreturn)) void keel_abort(int code, const char *message);

int keel_rank(void);
int keel_size(void);
/* The node (0..) that runs the rank now; -1 if no process runs it. Changes with the view. */
int keel_rank_node(int rank);
/* False once the rank's process is known to be dead and no other took its place. */
__extension__ bool keel_rank_alive(int rank);
/* Does the program go on when ranks die? One that is written for Keel does, and need not say so. Programs of a library
 * that cannot know (ARMCI, Global Arrays) say keel_need_all by that library: none of their ranks is started again,
 * whatever `keelrun --on-failure` says (spares take copies only), and the first rank that dies ends the job, with exit
 * code 1 and a line that says which; also one that died before. keel_survive, on all ranks, says that the program
 * answers for what it computes without the dead: the job goes on, from the first process on that has said it. No
 * option of keelrun's says that in a program's place. keel_survives tells whether this process has. Any time, also
 * before keel_init, any thread; nothing takes them back. */
void keel_need_all(void);
void keel_survive(void);
__extension__ bool keel_survives(void);
/* Epoch of the current view: grows by one with every change of membership. One atomic load. */
uint64_t keel_view_epoch(void);

/* True if this process took the place of a rank that died. Such a process
 *  - calls keel_segment_alloc for each segment again, in the same order, and gets the existing ones with their
 *    contents;
 *  - then calls keel_resume, from where on it takes part in collectives and draws tasks;
 *  - must not call a collective before. */
__extension__ bool keel_restarted(void);

/* Take part in collectives, and draw tasks, from now on. *collectives (NULL is allowed) is the number of barriers,
 * broadcasts, reductions and task pool resets (each counts as one) that the job had completed when this process joined
 * (segment and pool creation are not counted), so a program whose phases are separated by collectives knows its phase
 * from it. No death takes back what a call has returned for: also where the nodes die that run all ranks, as long as
 * the program's data survive that (as many nodes at once as its segments have copies beside the first, at least one).
 * Usually it is the count that every other rank has at this point. If the rank that died had already entered a
 * barrier, that entry counts: the others may complete it without the new process and be one ahead of this count. The
 * new process then does that last phase again while others are in the next one, and its barrier returns at once; a
 * broadcast or sum gives it what they got. Doing a phase again must therefore be harmless even then: writes of the same
 * values, or tasks. On a process that was not restarted it returns the count and does nothing else.
 * errors    KEEL_ERR_STATE. */
keel_status keel_resume(uint64_t *collectives);
/* The number of collectives this rank has completed (see keel_resume). */
uint64_t keel_collective_count(void);

/* Write one line to the job's event log: an event called name with a number and a text that may be NULL.
 * For time lines of the application beside the runtime's own events. Lost if the node dies at once.
 * errors    KEEL_ERR_ARG: no name, or one of more than 64 bytes; KEEL_ERR_STATE. */
keel_status keel_event(const char *name, int64_t number, const char *text);

/* Say where the program stands: it is at that step (iteration, sweep, cycle) from now on. Wrong bits are made at steps
 * (keelrun --inject), and what replicas of a rank say of a difference names the step. Costs a store, and does nothing
 * outside a job. A process that has not called it is at step 0.
 * step      a number that grows; the same in each replica
 * threads   any thread.   blocks   no.
 * source    RedMPI, section IV-A. */
void keel_timestep(uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
