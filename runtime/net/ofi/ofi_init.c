/* The first call into libfabric initialises every provider that it was built with, wanted or not. That of verbs reads
 * /proc/kallsyms to its end, twice, to learn whether the kernel passes on device memory (1.17): ten megabytes that the
 * kernel makes up line by line, 90 ms, and 85 % of the processor time in which a job starts. It does without if the
 * file cannot be opened. So the first call is made by a thread of its own that may not open that file (landlock, which
 * any process may use on itself; the restriction ends with the thread). Where the kernel has no landlock nothing is
 * lost but time.
 *
 * The provider opens the devices in that call, and the kernel takes commands for a device only from threads of the same
 * credentials as the one that opened it; a restricted thread has others (EACCES). So who wants to use them lets it
 * read its file. */
#include "runtime/net/ofi/ofi_init.h"

#include "runtime/base/env.h"
#include "runtime/net/ofi/fabric.h"

#include <dirent.h>
#include <fcntl.h>
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef LANDLOCK_ACCESS_FS_READ_FILE
static void allow(int rules, const char *path)
{
    struct landlock_path_beneath_attr beneath = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
                                                 .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (beneath.parent_fd < 0)
        return;
    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    close(beneath.parent_fd);
}

/* This thread may read all but /proc, and of that what a provider may want to know. */
static void restrict_thread(void)
{
    static const char *const of_proc[] = {"/proc/self",    "/proc/cpuinfo", "/proc/meminfo", "/proc/modules",
                                          "/proc/devices", "/proc/sys",     "/proc/bus",     "/proc/filesystems"};
    struct landlock_ruleset_attr reading = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &reading, sizeof reading, 0);
    DIR *root = rules >= 0 ? opendir("/") : NULL;
    for (struct dirent *e; root && (e = readdir(root));) {
        char path[sizeof e->d_name + 2];
        snprintf(path, sizeof path, "/%s", e->d_name);
        if (strcmp(e->d_name, "proc") != 0 && e->d_name[0] != '.')
            allow(rules, path);
    }
    for (size_t i = 0; i < sizeof of_proc / sizeof of_proc[0]; i++)
        allow(rules, of_proc[i]);
    if (root && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        syscall(SYS_landlock_restrict_self, rules, 0);
    if (root)
        closedir(root);
    if (rules >= 0)
        close(rules);
}

#else
static void restrict_thread(void)
{
}
#endif

static void call(void)
{
    struct fi_param *params = NULL;
    int count = 0;
    if (fabric_calls.getparams(&params, &count) == 0 && params) /* none: its start had no memory */
        fabric_calls.freeparams(params);
}

static void *first_call(void *arg)
{
    (void)arg;
    restrict_thread();
    call();
    return NULL;
}

static void run_first_call(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, first_call, NULL) == 0)
        pthread_join(thread, NULL);
}

bool ofi_init(bool devices)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!fabric_load())
        return false;
    /* valgrind knows nothing of landlock and says so in forty lines */
    pthread_once(&once, devices || env_is_valgrind() ? call : run_first_call);
    return true;
}
