/* The agent of a node, which its first process starts. */
#include "runtime/client/job/bootstrap_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/refusal.h"

#ifndef KEEL_LIBEXECDIR
#define KEEL_LIBEXECDIR "/usr/libexec/keel"
#endif

/* The program's environment, with what keeps libraries that libfabric loads from catching the signals of a crash. To
 * be freed. */
static char **agent_environment(void)
{
    static char ipath[] = "IPATH_NO_BACKTRACE=1", hfi[] = "HFI_NO_BACKTRACE=1";
    size_t n = 0;
    while (environ[n])
        n++;
    char **all = calloc(n + 3, sizeof *all);
    if (all) {
        memcpy(all, environ, n * sizeof *all);
        all[n] = ipath;
        all[n + 1] = hfi;
    }
    return all;
}

int bootstrap_agent_start(int listener, char *wrong, size_t size)
{
    const char *said = getenv("KEEL_KEELD"), *path = said && *said ? said : KEEL_LIBEXECDIR "/keeld";
    char *argv[] = {"keeld", BOOTSTRAP_OPTION, NULL}, why[REFUSAL_MAX];
    int channel[2];
    pid_t pid;
    sigset_t set;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0) {
        snprintf(wrong, size, "no descriptors to start an agent: %s", refusal_error(errno, why));
        return -1;
    }
    /* above those that it is to have, so that none is overwritten before it is copied */
    int from[2] = {fcntl(listener, F_DUPFD_CLOEXEC, 10), fcntl(channel[1], F_DUPFD_CLOEXEC, 10)};
    close(channel[1]);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, from[0], BOOTSTRAP_LISTENER);
    posix_spawn_file_actions_adddup2(&files, from[1], BOOTSTRAP_CHANNEL);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&how, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&how, &set);
    char **environment = agent_environment();
    int error = environment ? posix_spawn(&pid, path, &files, &how, argv, environment) : ENOMEM;
    free(environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    close(from[0]);
    close(from[1]);
    if (!error) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return channel[0];
    }
    snprintf(wrong, size, "cannot run %s: %s", path, refusal_error(error, why));
    close(channel[0]);
    return -1;
}

bool bootstrap_agent_describe(int channel, const struct bootstrap_job *j, const int *rank_node, const int *domain)
{
    size_t numbers = (size_t)j->ranks * sizeof(int32_t), domains = (size_t)(j->levels * j->nodes) * sizeof(int32_t);
    struct iovec parts[] = {{(void *)j, sizeof *j}, {(void *)rank_node, numbers}, {(void *)domain, domains}};
    int room = (int)(sizeof *j + numbers + domains) * 2 + 4096;
    (void)setsockopt(channel, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 3};
    return sendmsg(channel, &msg, MSG_NOSIGNAL) == (ssize_t)(sizeof *j + numbers + domains);
}
