#include "detect/witness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/kernel.h"
#include "runtime/base/log.h"
#include "runtime/base/prompt.h"
#include "runtime/base/refusal.h"

enum { NICE = -10 };

bool witness_raise_priority(void)
{
    if (prompt_begin())
        return true;
    if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE) != 0)
        log_info("detect: a thread of the detector runs at normal priority: %m");
    return false;
}

static int open_socket(const char *host, uint16_t *port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    bool is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
        return -1;
    const struct sockaddr *at = is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
    struct sockaddr_in6 got = {.sin6_family = AF_UNSPEC};
    socklen_t len = is_v4 ? sizeof v4 : sizeof v6, got_len = sizeof got;
    int fd = socket(at->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, at, len) != 0 || getsockname(fd, (struct sockaddr *)&got, &got_len) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(got.sin6_port); /* at the same place in both families */
    return fd;
}

/* ------------------------------------------------------------------------------------------------ the witness's
 * process */

/* The state letter of a process, '?' if it cannot be had: proc(5), stat, what follows the name in brackets. */
static char state_of(int fd)
{
    char text[512];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return '?';
    text[n] = 0;
    const char *name_ends = strrchr(text, ')');
    if (!name_ends || name_ends[1] != ' ')
        return '?';
    return name_ends[2];
}

/* Is /proc that of our own processes' numbers? */
static bool proc_is_ours(void)
{
    char link[16];
    ssize_t n = readlink("/proc/self", link, sizeof link - 1);
    if (n <= 0)
        return false;
    link[n] = 0;
    return atoi(link) == (int)getpid();
}

static void answer_one(const struct seal *seal, int fd, int stat_fd)
{
    uint8_t in[SEAL_OVERHEAD + 16], out[SEAL_OVERHEAD + 1];
    struct sockaddr_storage from;
    socklen_t from_len = sizeof from;
    struct seal_opened s;
    ssize_t n = recvfrom(fd, in, sizeof in, 0, (struct sockaddr *)&from, &from_len);
    if (n <= 0 || !seal_open(seal, in, (size_t)n, &s) || s.kind != SEAL_QUESTION)
        return;
    char state = state_of(stat_fd);
    uint8_t answer = state == 'T' || state == 't' ? WITNESS_STOPPED : WITNESS_RUNS;
    size_t len = seal_close(seal, SEAL_ANSWER, s.from, s.number, &answer, 1, out);
    (void)sendto(fd, out, len, 0, (struct sockaddr *)&from, from_len);
}

static _Noreturn void serve(const struct seal *seal, int fd, int agent)
{
    char path[64];
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent)
        _exit(0); /* it died before that */
    setsid();
    prctl(PR_SET_NAME, "keel-witness");
    /* its listener above all: who holds one keeps a dead agent's port open */
    if ((fd != 0 && dup2(fd, 0) < 0) || !kernel_close_from(1, false) || chdir("/") != 0)
        _exit(0);
    snprintf(path, sizeof path, "/proc/%d/stat", agent);
    int stat_fd = proc_is_ours() ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (stat_fd < 0)
        _exit(0); /* it could say nothing */
    witness_raise_priority();
    for (;;) {
        answer_one(seal, 0, stat_fd);
        prompt_keep();
    }
}

/* ------------------------------------------------------------------------------------------------ the agent's side */

/* May this process have threads with real-time priority? */
static bool may_be_prompt(void)
{
    struct sched_param was, param = {.sched_priority = 1};
    int policy;
    if (pthread_getschedparam(pthread_self(), &policy, &was) != 0 ||
        pthread_setschedparam(pthread_self(), SCHED_RR, &param) != 0)
        return false;
    pthread_setschedparam(pthread_self(), policy, &was);
    return true;
}

keel_status witness_start(const struct seal *seal, const char *host, struct witness *out)
{
    *out = (struct witness){.pid = 0};
    int fd = open_socket(host, &out->port), agent = (int)getpid();
    if (fd < 0) {
        log_warn("detect: no witness on %s: %m", host);
        return KEEL_ERR_SYSTEM;
    }
    bool prompt = may_be_prompt();
    int pid = (int)fork(), error = errno;
    if (pid == 0)
        serve(seal, fd, agent);
    close(fd);
    if (pid < 0) {
        char why[REFUSAL_MAX];
        log_warn("detect: no witness: fork: %s", refusal_error(error, why));
        return KEEL_ERR_SYSTEM;
    }
    out->pid = pid;
    out->prompt = prompt;
    return KEEL_OK;
}

void witness_end(struct witness *w)
{
    if (w->pid > 0 && waitpid(w->pid, NULL, WNOHANG) == 0) { /* else it has ended, and others may have its number */
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    w->pid = 0;
}
