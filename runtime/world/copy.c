/* What is done to the files beside a file (shadow.h). */
#include "runtime/world/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int file_open(int at, const char *path, int flags, mode_t mode)
{
    return (int)NEXT(syscall)(SYS_openat, at, path, flags | O_LARGEFILE, mode);
}

bool file_stat(int at, const char *path, struct stat *s)
{
    return NEXT(syscall)(SYS_newfstatat, at, path, s, 0) == 0;
}

bool file_there(int at, const char *path)
{
    struct stat s;
    return file_stat(at, path, &s);
}

void file_remove(int at, const char *path)
{
    (void)NEXT(syscall)(SYS_unlinkat, at, path, 0);
}

bool file_rename(int at, const char *from, int to_at, const char *to)
{
    return NEXT(syscall)(SYS_renameat, at, from, to_at, to) == 0;
}

bool file_make(int at, const char *path, mode_t mode)
{
    int fd = file_open(at, path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    if (fd >= 0)
        (void)NEXT(close)(fd);
    return fd >= 0;
}

bool file_name(const struct world_page *page, enum shadow_kind kind, const char *path, char out[SHADOW_PATH])
{
    return shadow_name(kind, page->job, page->set, page->rank, path, out);
}

/* As a whole, or not at all: others see `to` when all is in it. */
bool file_copy(const struct world_page *page, int at, const char *from, const char *path, const char *to, bool content)
{
    char making[SHADOW_PATH];
    struct stat s;
    int in = file_open(at, from, O_RDONLY | O_CLOEXEC, 0);
    if (in < 0 || NEXT(fstat)(in, &s) != 0 || !file_name(page, SHADOW_MAKING, path, making)) {
        if (in >= 0)
            (void)NEXT(close)(in);
        return false;
    }
    int out = file_open(at, making, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, s.st_mode & 07777);
    bool good = out >= 0;
    for (off_t left = content ? s.st_size : 0; good && left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        good = n >= 0;
        left = n > 0 ? left - n : 0;
    }
    good = good && fchmod(out, s.st_mode & 07777) == 0 && file_rename(at, making, at, to);
    if (out >= 0)
        (void)NEXT(close)(out);
    (void)NEXT(close)(in);
    return good;
}

/* Two ranks of set 0 may write a file first at the same time. -1: nothing is held. */
int file_lock(int at, const char *path)
{
    char folder[SHADOW_PATH];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s.", slash ? (int)(slash - path) + 1 : 0, path);
    int fd = file_open(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    return fd;
}

void file_unlock(int lock)
{
    if (lock >= 0)
        (void)NEXT(close)(lock);
}

/* ---- what the agent is to clear up at the end ---- */

static bool is_listed(const struct world_page *page, const char *path, uint32_t len)
{
    for (uint32_t i = 0; i < len; i += (uint32_t)strlen(page->written + i) + 1)
        if (strcmp(page->written + i, path) == 0)
            return true;
    return false;
}

/* The holder may be killed. */
static void hold(struct world_page *page)
{
    uint32_t me = (uint32_t)NEXT(syscall)(SYS_getpid), holder = 0;
    while (!atomic_compare_exchange_weak(&page->written_lock, &holder, me)) {
        if (holder && NEXT(kill)((pid_t)holder, 0) != 0 && errno == ESRCH)
            (void)atomic_compare_exchange_strong(&page->written_lock, &holder, 0);
        holder = 0;
        sched_yield();
    }
}

bool file_list(struct world_page *page, int at, const char *path)
{
    char whole[2 * SHADOW_PATH], folder[SHADOW_PATH] = "", link[64];
    if (*path != '/' && at == AT_FDCWD) {
        if (NEXT(syscall)(SYS_getcwd, folder, sizeof folder) <= 0)
            return false;
    } else if (*path != '/') {
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        if (NEXT(syscall)(SYS_readlinkat, AT_FDCWD, link, folder, sizeof folder - 1) <= 0)
            return false;
    }
    int need = snprintf(whole, sizeof whole, "%s%s%s", folder, *path == '/' ? "" : "/", path) + 1;
    hold(page);
    uint32_t len = atomic_load(&page->written_len);
    bool listed = is_listed(page, whole, len), fits = need < SHADOW_PATH && len + (uint32_t)need <= WORLD_WRITTEN;
    if (!listed && fits) {
        memcpy(page->written + len, whole, (size_t)need);
        atomic_store(&page->written_len, len + (uint32_t)need);
    }
    atomic_store(&page->written_lock, 0);
    return listed || fits;
}
