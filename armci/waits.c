/* Waits in MPI after a death. MPI waits for the dead without end and without a word, so a process that has entered a
 * call of MPI's (mpi.c) and does not come back is told of, and ended.
 *
 * The thread looks once a second. It compares numbers that the calls count up, so the calls read no clock. The time
 * counts from the first look that has found the process in the call and the loss. Who is in no call of MPI's computes,
 * and is left alone, however long it takes.
 *
 *   known to wait for the dead: a collective of all, or of a communicator that has a dead member, a message from or to
 *     a dead process: after KEEL_ARMCI_MPI_WAIT_S a line, after twice that the end
 *   in doubt: MPI_Wait, any source, a call that was entered before the death: it may be for a process that lives and
 *     computes: the line, and the end after ten times that */
#include "armci/waits.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_S_DEFAULT = 30, CERTAIN_TIMES = 2, DOUBT_TIMES = 10, WAIT_S_MAX = 1000000 };

/* Written by the watched thread, read by the thread that looks. */
static struct {
    atomic_uint count; /* odd: in a call */
    _Atomic(const char *) call;
    atomic_bool of_all, has_dead; /* it waits for all processes; for all of a communicator of which one is dead */
    atomic_int peer[2];           /* it waits for these processes, WAITS_NOBODY: no certain one */
} now;

static atomic_bool lost;      /* somebody is known to be missing; written by the thread that looks */
static atomic_bool ends_come; /* the end has begun: who has ended has done so in order */
static _Thread_local bool watched;
static bool same_numbers; /* ARMCI's processes are MPI_COMM_WORLD's */
static MPI_Group processes = MPI_GROUP_NULL;
static atomic_int wait_s; /* ARMCI may begin again while the thread looks */

/* "died", or "ended" */
static const char *what_became_of(int r)
{
    keel_verdict verdict = KEEL_RANK_DEAD;
    return keel_rank_status(r, 0, &verdict) == KEEL_OK && verdict == KEEL_RANK_ENDED ? "ended" : "died";
}

#pragma weak PMPI_Comm_group
#pragma weak PMPI_Comm_compare
#pragma weak PMPI_Group_free
#pragma weak PMPI_Group_size
#pragma weak PMPI_Group_translate_ranks

bool waits_watched(void)
{
    return watched;
}

static bool is_missing(int r)
{
    keel_verdict verdict = KEEL_ALIVE;
    if (r < 0 || r >= keel_size() || keel_rank_alive(r))
        return false;
    bool ended = keel_rank_status(r, 0, &verdict) == KEEL_OK && verdict == KEEL_RANK_ENDED;
    return !ended || !atomic_load(&ends_come);
}

static int first_missing(void)
{
    for (int r = 0; r < keel_size(); r++)
        if (is_missing(r))
            return r;
    return WAITS_NOBODY;
}

/* ---- in the calls ---- */

static void enter(const char *call, bool of_all, bool has_dead, int a, int b)
{
    atomic_store_explicit(&now.call, call, memory_order_relaxed);
    atomic_store_explicit(&now.of_all, of_all, memory_order_relaxed);
    atomic_store_explicit(&now.has_dead, has_dead, memory_order_relaxed);
    atomic_store_explicit(&now.peer[0], a, memory_order_relaxed);
    atomic_store_explicit(&now.peer[1], b, memory_order_relaxed);
    atomic_fetch_add_explicit(&now.count, 1, memory_order_release);
}

/* The job's number of a process of the communicator's. */
static int number_of(MPI_Comm comm, int rank)
{
    MPI_Group group;
    int size = 0, number = MPI_UNDEFINED;
    if (rank < 0 || (comm == MPI_COMM_WORLD && same_numbers))
        return rank < 0 ? WAITS_NOBODY : rank;
    if (!atomic_load_explicit(&lost, memory_order_relaxed) || PMPI_Comm_group(comm, &group) != MPI_SUCCESS)
        return WAITS_NOBODY;
    if (PMPI_Group_size(group, &size) == MPI_SUCCESS && rank < size)
        (void)PMPI_Group_translate_ranks(group, 1, &rank, processes, &number);
    (void)PMPI_Group_free(&group);
    return number == MPI_UNDEFINED ? WAITS_NOBODY : number;
}

static bool has_missing(MPI_Comm comm)
{
    MPI_Group group;
    bool has = false;
    if (!atomic_load_explicit(&lost, memory_order_relaxed) || comm == MPI_COMM_NULL ||
        PMPI_Comm_group(comm, &group) != MPI_SUCCESS)
        return false;
    for (int r = 0; r < keel_size() && !has; r++) {
        int there = MPI_UNDEFINED;
        has = is_missing(r) && PMPI_Group_translate_ranks(processes, 1, &r, group, &there) == MPI_SUCCESS &&
              there != MPI_UNDEFINED;
    }
    (void)PMPI_Group_free(&group);
    return has;
}

void waits_for_all(const char *call, MPI_Comm comm)
{
    enter(call, comm == MPI_COMM_WORLD, comm != MPI_COMM_WORLD && has_missing(comm), WAITS_NOBODY, WAITS_NOBODY);
}

void waits_for_two(const char *call, MPI_Comm comm, int a, int b)
{
    enter(call, false, false, number_of(comm, a), number_of(comm, b));
}

void waits_for_some(const char *call)
{
    enter(call, false, false, WAITS_NOBODY, WAITS_NOBODY);
}

void waits_over(void)
{
    atomic_fetch_add_explicit(&now.count, 1, memory_order_release);
}

/* ---- the thread that looks ---- */

/* Who of the missing the call is known to wait for. */
static int waited_for(int missing)
{
    for (int i = 0; i < 2; i++)
        if (is_missing(atomic_load(&now.peer[i])))
            return atomic_load(&now.peer[i]);
    return atomic_load(&now.of_all) || atomic_load(&now.has_dead) ? missing : WAITS_NOBODY;
}

static bool is_first(void)
{
    int r = 0;
    while (r < keel_rank() && !keel_rank_alive(r))
        r++;
    return r == keel_rank();
}

/* All who wait find the same: the first one that lives tells of it, and ends the job. The others give it some time for
 * that. */
static void look(int waited, int missing, const char *call)
{
    enum { FIRST_S = 2 };
    const int certain = waited_for(missing), whom = certain >= 0 ? certain : missing;
    const int end = (certain >= 0 ? CERTAIN_TIMES : DOUBT_TIMES) * wait_s;
    const char *why = certain >= 0 ? "waits for the dead" : "may wait for the dead";
    char line[256];
    int n = snprintf(line, sizeof line, "rank %d: process %d has not been in Keel for %d s since process %d %s; ",
                     keel_rank(), keel_rank(), waited, whom, what_became_of(whom));
    if (waited == wait_s && is_first())
        fprintf(stderr, "%s%s %s (it is ended after %d s)\n", line, call, why, end);
    if (waited < end + (is_first() ? 0 : FIRST_S))
        return;
    (void)snprintf(line + n, sizeof line - (size_t)n, "%s %s, and the program ends", call, why);
    keel_abort(1, line);
}

static void *watch(void *arg)
{
    unsigned last = 0;
    int waited = 0, missing = WAITS_NOBODY;
    (void)arg;
    pthread_setname_np(pthread_self(), "armci-waits");
    for (;;) {
        struct timespec second = {.tv_sec = 1};
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL);
        const unsigned count = atomic_load_explicit(&now.count, memory_order_acquire);
        const char *call = atomic_load(&now.call);
        const int found = first_missing();
        atomic_store(&lost, found >= 0);
        waited = count % 2 && count == last && found >= 0 && missing >= 0 ? waited + 1 : 0;
        missing = found;
        last = count;
        if (waited >= wait_s)
            look(waited, missing, call);
    }
    return NULL;
}

static void start(void)
{
    static bool runs;
    pthread_t thread;
    sigset_t all, old;
    if (runs)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    runs = pthread_create(&thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (runs)
        (void)pthread_detach(thread);
}

void armci_waits_init(MPI_Comm comm)
{
    const char *text = getenv("KEEL_ARMCI_MPI_WAIT_S");
    char *end;
    long said = text ? strtol(text, &end, 10) : WAIT_S_DEFAULT;
    if (text && (end == text || *end || said < 0 || said > WAIT_S_MAX))
        armci_end("ARMCI_Init", keel_rank(), "KEEL_ARMCI_MPI_WAIT_S is not a number of seconds");
    wait_s = (int)said;
    atomic_store(&ends_come, false);
    watched = wait_s > 0 && comm != MPI_COMM_NULL && PMPI_Comm_group && armci_mpi_runs();
    if (!watched)
        return;
    int how = MPI_UNEQUAL;
    if (PMPI_Comm_compare(comm, MPI_COMM_WORLD, &how) == MPI_SUCCESS)
        same_numbers = how == MPI_IDENT || how == MPI_CONGRUENT;
    if (processes == MPI_GROUP_NULL && PMPI_Comm_group(comm, &processes) != MPI_SUCCESS)
        watched = false;
    else
        start();
}

void armci_waits_ending(void)
{
    atomic_store(&ends_come, true);
}

void armci_waits_fini(void)
{
    watched = false;
}
