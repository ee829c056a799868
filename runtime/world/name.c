/* The rank's process and its host have names that no host gives. Processes that it starts keep theirs. */
#include "runtime/world/world.h"

#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int world_pid_out(const struct world_page *page, int pid)
{
    return pid == atomic_load(&page->pid) ? WORLD_PID + page->rank : pid;
}

int world_pid_in(const struct world_page *page, int pid)
{
    int known = WORLD_PID + page->rank, its = atomic_load(&page->pid);
    return pid == known ? its : pid == -known ? -its : pid;
}

static int own_pid(const struct world_page *page)
{
    return world_pid_out(page, (int)NEXT(syscall)(SYS_getpid));
}

static int own_parent(const struct world_page *page)
{
    bool is_rank = NEXT(syscall)(SYS_getpid) == atomic_load(&page->pid);
    return is_rank ? 1 : world_pid_out(page, (int)NEXT(syscall)(SYS_getppid));
}

#define OWN(type, name, value)                                                                                         \
    WORLD_API type name(void)                                                                                          \
    {                                                                                                                  \
        struct world_page *page = WORLD_FOR_CALLER();                                                                  \
        return page ? (value) : NEXT(name)();                                                                          \
    }
OWN(pid_t, getpid, own_pid(page))
OWN(pid_t, getppid, own_parent(page))
OWN(pid_t, gettid, world_pid_out(page, (int)NEXT(syscall)(SYS_gettid)))
OWN(pid_t, getpgrp, world_pid_out(page, NEXT(getpgrp)()))

/* Those that are asked by number. */
#define ASKED(type, name, parameters, out, ...)                                                                        \
    WORLD_API type name parameters                                                                                     \
    {                                                                                                                  \
        struct world_page *page = WORLD_FOR_CALLER();                                                                  \
        if (page)                                                                                                      \
            pid = world_pid_in(page, pid);                                                                             \
        type got = NEXT(name)(__VA_ARGS__);                                                                            \
        return page && (out) ? (type)world_pid_out(page, (int)got) : got;                                              \
    }
ASKED(int, kill, (pid_t pid, int signal_number), false, pid, signal_number)
ASKED(int, killpg, (pid_t pid, int signal_number), false, pid, signal_number)
ASKED(pid_t, getpgid, (pid_t pid), true, pid)
ASKED(pid_t, getsid, (pid_t pid), true, pid)
ASKED(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *set), false, pid, size, set)
ASKED(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set), false, pid, size, set)
ASKED(int, sched_getscheduler, (pid_t pid), false, pid)
ASKED(int, sched_getparam, (pid_t pid, struct sched_param *out), false, pid, out)

WORLD_API int setpgid(pid_t pid, pid_t group)
{
    struct world_page *page = WORLD_FOR_CALLER();
    return page ? NEXT(setpgid)(world_pid_in(page, pid), world_pid_in(page, group)) : NEXT(setpgid)(pid, group);
}

/* ---- the host ---- */

static void host_name(const struct world_page *page, char *out, size_t size)
{
    snprintf(out, size, "node%d", page->node);
}

WORLD_API int gethostname(char *out, size_t size)
{
    struct world_page *page = WORLD_FOR_CALLER();
    char name[32];
    if (!page)
        return NEXT(gethostname)(out, size);
    host_name(page, name, sizeof name);
    if (strlen(name) >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(out, name); // NOLINT(clang-analyzer-security.insecureAPI.strcpy) it fits
    return 0;
}

WORLD_API int uname(struct utsname *out)
{
    struct world_page *page = WORLD_FOR_CALLER();
    int rc = NEXT(uname)(out);
    if (page && rc == 0)
        host_name(page, out->nodename, sizeof out->nodename);
    return rc;
}

static const char *true_name(const struct world_page *page, const char *name)
{
    char own[32];
    if (page)
        host_name(page, own, sizeof own);
    return page && name && strcmp(name, own) == 0 ? "localhost" : name;
}

WORLD_API int getaddrinfo(const char *restrict name, const char *restrict service,
                          const struct addrinfo *restrict hints, struct addrinfo **restrict out)
{
    return NEXT(getaddrinfo)(true_name(WORLD_FOR_CALLER(), name), service, hints, out);
}

WORLD_API struct hostent *gethostbyname(const char *name)
{
    return NEXT(gethostbyname)(true_name(WORLD_FOR_CALLER(), name));
}

WORLD_API int MPI_Get_processor_name(char *name, int *len);

int MPI_Get_processor_name(char *name, int *len)
{
    struct world_page *page = WORLD_FOR_CALLER();
    if (!page)
        return NEXT(MPI_Get_processor_name)(name, len);
    host_name(page, name, 32);
    *len = (int)strlen(name);
    return 0;
}

/* ---- the same by their numbers ---- */

WORLD_API long syscall(long number, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    struct world_page *page = WORLD_FOR_CALLER();
    if (page && number == SYS_getpid)
        return own_pid(page);
    if (page && number == SYS_gettid)
        return world_pid_out(page, (int)NEXT(syscall)(SYS_gettid));
    if (page && number == SYS_getrandom) {
        world_random(page, (void *)a[0], (size_t)a[1]); // NOLINT(performance-no-int-to-ptr) as the kernel does
        return a[1];
    }
    if (page && (number == SYS_tgkill || number == SYS_kill || number == SYS_tkill)) {
        a[0] = world_pid_in(page, (int)a[0]);
        a[1] = number == SYS_tgkill ? world_pid_in(page, (int)a[1]) : a[1];
    }
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
