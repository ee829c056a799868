/* From fork to exec of a node's process. */
#include "pm/keeld/process_parts.h"

#include "pm/wire/message.h"
#include "runtime/base/kernel.h"
#include "runtime/base/prompt.h"
#include "runtime/base/world_page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void child_fds_close(struct child_fds *f)
{
    close_pair(f->in);
    close_pair(f->out[0]);
    close_pair(f->out[1]);
    close_pair(f->pmi);
    close_pair(f->keel);
    close_pair(f->error);
}

bool child_fds_open(struct child_fds *f, bool with_stdin)
{
    memset(f, -1, sizeof *f);
    if (with_stdin) {
        if (pipe2(f->in, O_CLOEXEC) < 0)
            return false;
    } else if ((f->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
        return false;
    }
    return pipe2(f->out[0], O_CLOEXEC) == 0 && pipe2(f->out[1], O_CLOEXEC) == 0 && pipe2(f->error, O_CLOEXEC) == 0 &&
           socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->pmi) == 0 &&
           socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->keel) == 0;
}

enum { FD_PMI = 3, FD_KEEL, FD_FREE = WORLD_FD + 1 }; /* where the numbers are to be the same */

/* Its descriptors get these numbers. Async-signal-safe. */
static bool renumber(struct child_fds *f, int world)
{
    int given = world < 0 ? -1 : fcntl(world, F_DUPFD_CLOEXEC, FD_FREE),
        pmi = fcntl(f->pmi[1], F_DUPFD_CLOEXEC, FD_FREE), keel = fcntl(f->keel[1], F_DUPFD_CLOEXEC, FD_FREE),
        error = fcntl(f->error[1], F_DUPFD_CLOEXEC, FD_FREE);
    if (pmi < 0 || keel < 0 || error < 0 || (world >= 0 && given < 0))
        return false;
    f->error[1] = error;
    f->pmi[1] = FD_PMI;
    f->keel[1] = FD_KEEL;
    return dup2(pmi, FD_PMI) >= 0 && dup2(keel, FD_KEEL) >= 0 && (given < 0 || dup2(given, WORLD_FD) >= 0);
}

/* In the child, between fork and exec: async-signal-safe calls only. */
static _Noreturn void child_run(const struct process_spec *spec, struct child_fds *f, char **env, pid_t agent)
{
    sigset_t none;
    int failed = 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s <= SIGRTMAX; s++)
        signal(s, SIG_DFL);
    prompt_forget();
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != agent)
        _exit(127);
    /* nothing of ours goes on in the program, or in what it leaves behind: not the listeners, not the sockets to other
     * nodes, which would keep us alive for them when we are dead */
    if (dup2(f->in[0], 0) < 0 || dup2(f->out[0][1], 1) < 0 || dup2(f->out[1][1], 2) < 0 ||
        (spec->same_numbers && !renumber(f, spec->world)) || !kernel_close_from(3, true) ||
        fcntl(f->pmi[1], F_SETFD, 0) < 0 || fcntl(f->keel[1], F_SETFD, 0) < 0 ||
        (spec->world >= 0 && fcntl(WORLD_FD, F_SETFD, 0) < 0) || setrlimit(RLIMIT_NOFILE, &spec->descriptors) < 0)
        failed = errno;
    if (!failed && spec->cwd && chdir(spec->cwd) < 0)
        failed = -errno;
    if (!failed) {
        environ = env;
        execvp(spec->argv[0], spec->argv);
        failed = errno;
    }
    ssize_t rc = write(f->error[1], &failed, sizeof failed);
    (void)rc;
    _exit(127);
}

/* The caller frees the list; the strings are others'. */
static char **env_with_fds(char *const *env, char *keel_fd, char *pmi_fd)
{
    size_t n = 0;
    while (env[n])
        n++;
    char **all = pm_alloc((n + 5) * sizeof *all);
    memcpy(all, env, n * sizeof *all);
    all[n] = (char *)NO_BACKTRACE_IPATH;
    all[n + 1] = (char *)NO_BACKTRACE_HFI;
    all[n + 2] = keel_fd;
    all[n + 3] = pmi_fd;
    return all;
}

/* Forks and waits for the exec to happen or fail. Returns 0 or an errno (negative errno: of chdir). */
int process_spawn(const struct process_spec *spec, struct child_fds *f, pid_t *pid)
{
    char *keel_fd = pm_printf("KEEL_FD=%d", spec->same_numbers ? FD_KEEL : f->keel[1]),
         *pmi_fd = pm_printf("PMI_FD=%d", spec->same_numbers ? FD_PMI : f->pmi[1]);
    char **env = env_with_fds(spec->env, keel_fd, pmi_fd);
    pid_t agent = getpid();
    /* Signals stay blocked across the fork so that the child never runs one of our handlers. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = fork();
    if (*pid == 0)
        child_run(spec, f, env, agent);
    int failed = *pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(env);
    free(keel_fd);
    free(pmi_fd);
    if (failed)
        return failed;
    close(f->error[1]);
    f->error[1] = -1;
    ssize_t n;
    do
        n = read(f->error[0], &failed, sizeof failed);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    waitpid(*pid, NULL, 0);
    return n == sizeof failed ? failed : EIO;
}
