/* From fork to exec of mpiexec.hydra. */
#include "pm/wire/hydra_spawn.h"

#include "pm/wire/order.h"
#include "runtime/base/kernel.h"
#include "runtime/base/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child, between fork and exec: async-signal-safe calls only. The three go to their numbers, whatever they are
 * now. */
static bool place_descriptors(int order, int report, int output)
{
    int from[] = {order, report, output}, to[] = {ORDER_FILE, ORDER_REPORT, ORDER_OUTPUT}, high[3];
    for (int i = 0; i < 3; i++)
        if ((high[i] = fcntl(from[i], F_DUPFD, ORDER_OUTPUT + 1)) < 0)
            return false;
    for (int i = 0; i < 3; i++)
        if (dup2(high[i], to[i]) < 0)
            return false;
    int null = open("/dev/null", O_RDONLY);
    return null >= 0 && dup2(null, 0) >= 0 && dup2(ORDER_OUTPUT, 1) >= 0 && dup2(ORDER_OUTPUT, 2) >= 0 &&
           kernel_close_from(ORDER_OUTPUT + 1, true);
}

/* A session of its own: a Ctrl-C at the terminal is for keelrun, which ends the job in order. Its directory it would
 * tell, too. Without us it would wait for ever. */
static _Noreturn void child_run(const struct hydra_command *command, pid_t parent, int order, int report, int output,
                                int error)
{
    sigset_t none;
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prompt_forget();
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    error = fcntl(error, F_DUPFD, ORDER_OUTPUT + 1);
    bool ready = place_descriptors(order, report, output) && chdir("/") >= 0 &&
                 (!command->descriptors || setrlimit(RLIMIT_NOFILE, command->descriptors) >= 0);
    if (ready)
        execvpe(command->argv[0], (char *const *)command->argv, command->env);
    int failed = ready ? errno : -errno;
    ssize_t rc = write(error, &failed, sizeof failed);
    (void)rc;
    _exit(127);
}

/* Returns 0 or an errno; a negative one of what it has to begin with. */
int hydra_spawn(struct hydra *h, const struct hydra_command *command, int order, int report, int output)
{
    int error[2], failed = 0;
    sigset_t all, before;
    if (pipe2(error, O_CLOEXEC) < 0)
        return errno;
    sigfillset(&all); /* the child never runs one of our handlers */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t self = getpid();
    h->mpiexec = fork();
    if (h->mpiexec == 0)
        child_run(command, self, order, report, output, error[1]);
    failed = h->mpiexec < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(error[1]);
    ssize_t n = 0;
    while (!failed && (n = read(error[0], &failed, sizeof failed)) < 0 && errno == EINTR)
        ;
    close(error[0]);
    if (h->mpiexec > 0 && n == sizeof failed)
        waitpid(h->mpiexec, NULL, 0);
    return failed;
}
