/* Start, end, errors, and where processes are. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "armci/armci_int.h"

static bool started, ended;
static bool stays; /* in the job, though ARMCI has ended: it may begin again */

_Noreturn void armci_end(const char *call, int proc, const char *what)
{
    char line[256];
    if (!ARMCI_Initialized())
        snprintf(line, sizeof line, "%s: called before ARMCI_Init, or after ARMCI_Finalize", call);
    else
        snprintf(line, sizeof line, "rank %d: %s, process %d: %s", keel_rank(), call, proc, what);
    keel_abort(1, line);
}

void armci_check(keel_status status, const char *call, int proc)
{
    if (status == KEEL_OK)
        return;
    if (ARMCI_Initialized())
        armci_loss_look(); /* a death says it all */
    armci_end(call, proc, keel_status_text(status));
}

void armci_running(const char *call)
{
    if (!ARMCI_Initialized())
        armci_end(call, -1, "");
}

void armci_check_all(keel_status status, const char *call)
{
    armci_loss_look();
    armci_check(status, call, keel_rank());
}

#pragma weak PMPI_Init
#pragma weak PMPI_Initialized
#pragma weak PMPI_Finalized
#pragma weak PMPI_Comm_compare
#pragma weak PMPI_Comm_dup
#pragma weak PMPI_Comm_free
#pragma weak PMPI_Comm_rank
#pragma weak PMPI_Comm_size
#pragma weak PMPI_Comm_group
#pragma weak PMPI_Group_compare
#pragma weak PMPI_Group_free
#pragma weak PMPI_Allgather
static int gather(void *comm, const void *mine, size_t len, void *all)
{
    return PMPI_Allgather(mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, *(const MPI_Comm *)comm) != MPI_SUCCESS;
}

bool armci_mpi_runs(void)
{
    int begun = 0, over = 0;
    if (!PMPI_Initialized)
        return false;
    (void)PMPI_Initialized(&begun);
    (void)PMPI_Finalized(&over);
    return begun && !over;
}

/* keelrun's processes have their agent; those of an MPI program that another launcher started find each other by
 * MPI. */
static keel_status join(MPI_Comm all)
{
    MPI_Comm comm;
    struct keel_exchange e = {.user = &comm, .gather = gather};
    if (getenv("KEEL_FD") || !armci_mpi_runs())
        return keel_init();
    if (PMPI_Comm_dup(all, &comm) != MPI_SUCCESS)
        return KEEL_ERR_SYSTEM;
    (void)PMPI_Comm_rank(comm, &e.rank);
    (void)PMPI_Comm_size(comm, &e.size);
    keel_status status = keel_init_over(&e);
    (void)PMPI_Comm_free(&comm);
    return status;
}

/* The job that keelrun started is of all its processes, in MPI_COMM_WORLD's order; without it the communicator makes
 * the job. */
static bool can_be_job(MPI_Comm comm)
{
    int result = MPI_UNEQUAL;
    if (comm == MPI_COMM_NULL || !armci_mpi_runs())
        return comm == MPI_COMM_WORLD;
    return !getenv("KEEL_FD") || (PMPI_Comm_compare(comm, MPI_COMM_WORLD, &result) == MPI_SUCCESS &&
                                  (result == MPI_IDENT || result == MPI_CONGRUENT));
}

/* ---- domains: nodes that have processes, numbered by their first process ---- */

/* The node of each process and the numbers of nodes, looked up once: processes do not move. */
static int *domain; /* [processes] */
static int domains;

/* Collective, at the start: all have the same, whoever dies later. */
static void domains_init(void)
{
    int64_t mine = keel_rank_node(keel_rank()) + 1, *node = calloc((size_t)keel_size(), sizeof *node);
    free(domain);
    domain = malloc((size_t)keel_size() * sizeof *domain);
    domains = 0;
    if (!node || !domain)
        armci_end("ARMCI_Init", keel_rank(), "out of memory");
    armci_check(keel_group_allgather(keel_group_world(), &mine, node, sizeof mine), "ARMCI_Init", keel_rank());
    for (int p = 0; p < keel_size(); p++) {
        domain[p] = -1;
        for (int q = 0; q < p && node[p] && domain[p] < 0; q++) /* 0: it had died before */
            if (node[q] == node[p])
                domain[p] = domain[q];
        if (domain[p] < 0)
            domain[p] = domains++;
    }
    free(node);
}

static int domain_of(const char *call, int proc)
{
    armci_running(call);
    return proc >= 0 && proc < keel_size() ? domain[proc] : -1;
}

/* Those with which ARMCI has begun: a job's processes stay the same. */
static MPI_Group processes = MPI_GROUP_NULL;

static bool is_of_the_same(MPI_Comm comm)
{
    MPI_Group now;
    int how = MPI_UNEQUAL;
    if (processes == MPI_GROUP_NULL || !armci_mpi_runs())
        return true;
    if (PMPI_Comm_group(comm, &now) == MPI_SUCCESS) {
        (void)PMPI_Group_compare(processes, now, &how);
        (void)PMPI_Group_free(&now);
    }
    return how == MPI_IDENT;
}

static int refuse(const char *why)
{
    fprintf(stderr, "ARMCI_Init: %s\n", why);
    return 1;
}

static int enter_job(MPI_Comm comm)
{
    keel_status status = join(comm);
    if (status != KEEL_OK)
        return refuse(keel_status_text(status));
    started = true;
    if (PMPI_Comm_group && armci_mpi_runs())
        (void)PMPI_Comm_group(comm, &processes);
    return 0;
}

static int enter_again(MPI_Comm comm)
{
    if (!stays)
        return refuse("this process has left the job, with MPI_Finalize");
    if (!is_of_the_same(comm))
        return refuse("ARMCI has run before, with other processes, or in another order");
    ended = stays = false;
    armci_loss_again();
    return 0;
}

ARMCI_EXPORT int ARMCI_Init_mpi_comm(MPI_Comm comm)
{
    if (started && !ended)
        return 0;
    if (!can_be_job(comm))
        return refuse("the communicator is not of the job's processes in their order, or MPI does not run");
    if (started ? enter_again(comm) : enter_job(comm))
        return 1;
    armci_groups_init(comm);
    domains_init();
    armci_messages_init();
    armci_waits_init(comm);
    return 0;
}

ARMCI_EXPORT int ARMCI_Init(void)
{
    return ARMCI_Init_mpi_comm(MPI_COMM_WORLD);
}

ARMCI_EXPORT int ARMCI_Init_args(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return ARMCI_Init();
}

ARMCI_EXPORT int ARMCI_Initialized(void)
{
    return started && !ended;
}

void armci_leave(void)
{
    bool leaves = stays;
    stays = false;
    if (leaves && keel_finalize() != KEEL_OK)
        fprintf(stderr, "rank %d: the end of the job's processes could not be waited for\n", keel_rank());
}

bool armci_stays(void)
{
    return stays;
}

static pid_t owner; /* not a child of it */

static void leave_at_exit(void)
{
    if (getpid() == owner)
        armci_leave();
}

/* The process stays in the job, until MPI_Finalize or its exit: ARMCI may begin again, and a death is still known. */
ARMCI_EXPORT int ARMCI_Finalize(void)
{
    if (!started || ended)
        return 0;
    ARMCI_Barrier();
    armci_waits_ending();
    armci_loss_meet("ARMCI_Finalize");
    armci_messages_fini();
    armci_memget_fini();
    armci_mutexes_fini();
    armci_memory_fini();
    armci_groups_fini();
    ended = true;
    stays = owner || atexit(leave_at_exit) == 0;
    owner = getpid();
    return stays || keel_finalize() == KEEL_OK ? 0 : 1;
}

ARMCI_EXPORT void ARMCI_Cleanup(void)
{
}

ARMCI_EXPORT void ARMCI_Error(const char *msg, int code)
{
    char line[512];
    snprintf(line, sizeof line, "rank %d: %s (%d)", keel_rank(), msg ? msg : "ARMCI_Error", code);
    keel_abort(code, line);
}

ARMCI_EXPORT void armci_msg_init(int *argc, char ***argv)
{
    if (PMPI_Init && !armci_mpi_runs() && PMPI_Init(argc, argv) != MPI_SUCCESS)
        ARMCI_Error("armci_msg_init: MPI_Init failed", 1);
}

ARMCI_EXPORT void armci_msg_finalize(void)
{
    if (armci_mpi_runs())
        (void)MPI_Finalize();
}

ARMCI_EXPORT int armci_msg_me(void)
{
    return keel_rank();
}

ARMCI_EXPORT int armci_msg_nproc(void)
{
    return keel_size();
}

ARMCI_EXPORT void armci_msg_abort(int code)
{
    ARMCI_Error("armci_msg_abort", code);
}

ARMCI_EXPORT double armci_timer(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- domains ---- */

ARMCI_EXPORT int armci_domain_id(armci_domain_t kind, int proc)
{
    (void)kind;
    return domain_of("armci_domain_id", proc);
}

ARMCI_EXPORT int armci_domain_my_id(armci_domain_t kind)
{
    (void)kind;
    return domain_of("armci_domain_my_id", keel_rank());
}

ARMCI_EXPORT int armci_domain_count(armci_domain_t kind)
{
    (void)kind;
    (void)domain_of("armci_domain_count", 0);
    return domains;
}

ARMCI_EXPORT int armci_domain_same_id(armci_domain_t kind, int proc)
{
    (void)kind;
    return domain_of("armci_domain_same_id", proc) == domain_of("armci_domain_same_id", keel_rank());
}

ARMCI_EXPORT int armci_domain_nprocs(armci_domain_t kind, int id)
{
    int n = 0, mine = domain_of("armci_domain_nprocs", keel_rank());
    (void)kind;
    if (id < 0)
        id = mine;
    for (int p = 0; p < keel_size(); p++)
        n += domain_of("armci_domain_nprocs", p) == id;
    return n;
}

ARMCI_EXPORT int armci_domain_glob_proc_id(armci_domain_t kind, int id, int proc_in_domain)
{
    (void)kind;
    armci_running("armci_domain_glob_proc_id");
    for (int p = 0; p < keel_size(); p++)
        if (domain_of("armci_domain_glob_proc_id", p) == id && proc_in_domain-- == 0)
            return p;
    return -1;
}

ARMCI_EXPORT int ARMCI_Same_node(int proc)
{
    return domain_of("ARMCI_Same_node", proc) == domain_of("ARMCI_Same_node", keel_rank());
}
