/* keeld: the agent of one node. Started by a launcher; what it inherits from that stays with a stub.
 *
 *      ssh, srun, ... -> keel-launch, which becomes keeld (stub) -> keeld (agent, session of its own) -> ranks
 *
 * The stub keeps a batch system's step alive and relays what the agent says before it is connected. It may be killed,
 * and so may everything above it: the agent holds none of their descriptors. The stub is also where processes go that
 * are left when the agent is killed (PR_SET_CHILD_SUBREAPER); it ends them. */
#include "pm/keeld/keeld.h"
#include "pm/wire/descriptors.h"
#include "pm/wire/orphans.h"
#include "pm/wire/order.h"
#include "pm/wire/ticket.h"
#include "runtime/base/bootstrap.h"
#include "runtime/base/fault.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((visibility("default"))) const char *argp_program_version = "keeld (Keel) " KEEL_VERSION;

/* The line that keel-launch has left in a pipe, our standard input. */
static struct summons *read_summons(void)
{
    char line[ORDER_TEXT];
    struct stat st;
    size_t len = 0;
    struct summons *s = secret_alloc(sizeof *s);
    bool is_pipe = fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode);
    while (is_pipe && len < sizeof line - 1 && read(STDIN_FILENO, line + len, 1) == 1 && line[len++] != '\n')
        ;
    line[len] = '\0';
    bool good = s && summons_read(line, s);
    explicit_bzero(line, sizeof line);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    close(null);
    if (good)
        return s;
    secret_free(s, sizeof *s);
    return NULL;
}

/* What says that we belong to a start stays where the kernel shows it, for those that look; ranks do not get it. */
static void forget_launcher(void)
{
    static const char *const names[] = {START_ENV, "PMI_FD",          "PMI_RANK",        "PMI_SIZE",       "PMI_PORT",
                                        "PMI_ID",  "HYDI_CONTROL_FD", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static void relay(int fd)
{
    char buffer[4096];
    ssize_t n;
    while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR))
        for (ssize_t done = 0, w; n > 0 && done < n; done += w)
            if ((w = write(STDERR_FILENO, buffer + done, (size_t)(n - done))) <= 0)
                break;
}

/* The nodes that our agent has started do not end with it, but on a bed they live below it: also where it has not heard
 * of the job's start, as they may have. They know when to end. But an ssh that gets no answer would stay here where
 * the job does not start. */
static bool is_launching(void *user, pid_t pid)
{
    atomic_bool *runs = user;
    return atomic_load(runs) ? start_is_of(pid) : start_is_agents(pid);
}

/* Batch systems warn by signals to all processes of a step: ranks may want to know, we do not. The witness of the
 * detector inherits it, ranks do not. */
static void survive_warnings(void)
{
    static const int warnings[] = {SIGUSR1, SIGUSR2,   SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGURG, SIGIO,
                                   SIGPWR,  SIGSTKFLT, SIGHUP,  SIGQUIT,   SIGTSTP, SIGTTIN, SIGTTOU};
    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++)
        signal(warnings[i], SIG_IGN);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        signal(s, SIG_IGN);
}

static int stub_run(pid_t agent, int fd, atomic_bool *runs)
{
    int status = 0;
    survive_warnings();
    signal(SIGPIPE, SIG_IGN);
    relay(fd);
    while (waitpid(agent, &status, 0) < 0 && errno == EINTR)
        ;
    orphans_kill(is_launching, runs);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Bodies of messages come and go, up to 128 KiB each. By default their pages go back to the kernel every time, and come
 * again by a fault each. */
static void keep_memory(void)
{
    enum { LARGEST_KEPT = 1 << 20, KEPT = 8 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT);
    mallopt(M_TRIM_THRESHOLD, KEPT);
}

/* What cannot be written is an error of that call: nobody reads, or a file may not become so large (RLIMIT_FSIZE, which
 * memory files obey, too). */
static void survive_writing(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    survive_warnings();
}

/* Leave the launcher: no controlling terminal, none of its descriptors. say is what remains of it. */
static void detach(int say)
{
    setsid();
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(say, STDOUT_FILENO);
    dup2(say, STDERR_FILENO);
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK); /* a frozen stub must not freeze us */
    kernel_close_from(3, false);
    survive_writing();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool is_socket(int fd)
{
    int type;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

/* A process of the node has started us, waits for our end, and gets it at once: the agent is nobody's child. */
static int run_joined(void)
{
    struct keeld_launch launch = {.join = true};
    atomic_bool runs = false;
    pid_t agent = fork();
    if (agent != 0)
        return agent < 0;
    launch.runs = &runs;
    setsid();
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        dup2(null,
             STDERR_FILENO); /* else something of ours gets that number, and is lost when the log is caught there */
    kernel_close_from(BOOTSTRAP_CHANNEL + 1, false);
    survive_writing();
    descriptors_raise(&launch.descriptors);
    log_init("keeld");
    return keeld_run(&launch, 0);
}

/* What we were is a node that was put out: all that it had is gone with it, but the process, which is still the stub's
 * child. */
static int run_again(void)
{
    struct keeld_launch launch = {.back = keeld_return_read()};
    atomic_bool runs = false;
    if (!launch.back) {
        fprintf(stderr, "keeld: not started by itself\n");
        return 2;
    }
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    kernel_close_from(3, false);
    survive_writing();
    keep_memory();
    launch.job_id = launch.back->summons.job_id;
    launch.node = launch.back->node;
    launch.descriptors = launch.back->descriptors;
    launch.summons = secret_alloc(sizeof *launch.summons);
    if (!launch.summons)
        return 1;
    *launch.summons = launch.back->summons;
    launch.runs = &runs; /* the stub knows already that the job runs */
    char who[32];
    snprintf(who, sizeof who, "keeld node %d", launch.node);
    log_init(who);
    fault_init(launch.node, -1, 1);
    return keeld_run(&launch, launch.back->stub_pid);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != 'j' && key != 'r')
        return ARGP_ERR_UNKNOWN;
    *(int *)state->input = key;
    return 0;
}

/* The stub keeps the launcher's step alive; the agent is its child. */
static int run_behind_stub(struct keeld_launch *launch)
{
    int pair[2];
    launch->job_id = launch->summons->job_id;
    launch->node = launch->summons->node;
    forget_launcher();
    descriptors_raise(&launch->descriptors);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) {
        perror("keeld: socketpair");
        return 1;
    }
    launch->runs = mmap(NULL, sizeof *launch->runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (launch->runs == MAP_FAILED) {
        perror("keeld: mmap");
        return 1;
    }
    pid_t stub = getpid();
    pid_t agent = fork();
    if (agent < 0) {
        perror("keeld: fork");
        return 1;
    }
    if (agent > 0) {
        close(pair[1]);
        secret_free(launch->summons, sizeof *launch->summons);
        return stub_run(agent, pair[0], launch->runs);
    }
    detach(pair[1]);
    keep_memory();
    char who[32];
    snprintf(who, sizeof who, "keeld node %d", launch->node);
    log_init(who);
    fault_init(launch->node, -1, 0);
    return keeld_run(launch, stub);
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"join", 'j', NULL, OPTION_HIDDEN, NULL, 0}, {"return", 'r', NULL, OPTION_HIDDEN, NULL, 0}, {0}};
    static const struct argp argp = {.options = options,
                                     .parser = parse_option,
                                     .doc = "The agent of one node of a Keel job. Started by keelrun, not by hand."};
    int how = 0;
    struct keeld_launch launch = {0};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &how);
    bool join = how == 'j';
    if (how == 'r' && sodium_init() >= 0) {
        forget_launcher();
        return run_again();
    }
    if (join && (!is_socket(BOOTSTRAP_LISTENER) || !is_socket(BOOTSTRAP_CHANNEL))) {
        fprintf(stderr, "keeld: not started by a program that uses Keel\n");
        return 2;
    }
    if (join && sodium_init() >= 0) {
        forget_launcher();
        return run_joined();
    }
    if (sodium_init() < 0 || !(launch.summons = read_summons())) {
        fprintf(stderr, "keeld: not started by keelrun (no ticket on standard input)\n");
        return 2;
    }
    return run_behind_stub(&launch);
}
