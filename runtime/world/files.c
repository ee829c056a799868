/* Calls with the path of a file. The functions for large files are the same ones on 64 bits. */
#undef _FILE_OFFSET_BITS
#include "runtime/world/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

static bool is_random(const char *path)
{
    return strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0;
}

int files_open(struct world_page *page, int at, const char *path, int flags, mode_t mode)
{
    char seen_in[SHADOW_PATH];
    if (page && page->clocks && path && is_random(path))
        return world_random_file(page, flags);
    bool plain = flags & (O_PATH | O_DIRECTORY) || (flags & O_TMPFILE) == O_TMPFILE;
    page = plain ? NULL : view_of(page, at, path);
    if (!page)
        return file_open(at, path, flags, mode);
    bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    const char *seen = writes ? view_write(page, at, path, flags, seen_in) : view_read(page, at, path, seen_in);
    if (!seen)
        return -1;
    if (writes && page->set > 0)
        flags = (flags | O_CREAT) & ~O_EXCL;
    int fd = file_open(at, seen, flags, mode);
    while (fd >= 0 && !writes && view_has_moved(page, at, path, seen)) {
        (void)NEXT(close)(fd);
        seen = view_read(page, at, path, seen_in);
        fd = seen ? file_open(at, seen, flags, mode) : -1;
    }
    return fd;
}

#define MODE_ARGUMENT(flags)                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                                                         \
        va_list ap;                                                                                                    \
        va_start(ap, flags);                                                                                           \
        mode = va_arg(ap, mode_t);                                                                                     \
        va_end(ap);                                                                                                    \
    }
#define OPEN(name)                                                                                                     \
    WORLD_API int name(const char *path, int flags, ...)                                                               \
    {                                                                                                                  \
        MODE_ARGUMENT(flags)                                                                                           \
        return files_open(FILES_FOR_CALLER(), AT_FDCWD, path, flags, mode);                                            \
    }
#define OPENAT(name)                                                                                                   \
    WORLD_API int name(int at, const char *path, int flags, ...)                                                       \
    {                                                                                                                  \
        MODE_ARGUMENT(flags)                                                                                           \
        return files_open(FILES_FOR_CALLER(), at, path, flags, mode);                                                  \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* What programs call that are compiled with _FORTIFY_SOURCE. */
WORLD_API int __open_2(const char *path, int flags);             // NOLINT(bugprone-reserved-identifier)
WORLD_API int __open64_2(const char *path, int flags);           // NOLINT(bugprone-reserved-identifier)
WORLD_API int __openat_2(int at, const char *path, int flags);   // NOLINT(bugprone-reserved-identifier)
WORLD_API int __openat64_2(int at, const char *path, int flags); // NOLINT(bugprone-reserved-identifier)

int __open_2(const char *path, int flags)
{
    return files_open(FILES_FOR_CALLER(), AT_FDCWD, path, flags, 0);
}
int __open64_2(const char *path, int flags)
{
    return files_open(FILES_FOR_CALLER(), AT_FDCWD, path, flags, 0);
}
int __openat_2(int at, const char *path, int flags)
{
    return files_open(FILES_FOR_CALLER(), at, path, flags, 0);
}
int __openat64_2(int at, const char *path, int flags)
{
    return files_open(FILES_FOR_CALLER(), at, path, flags, 0);
}

WORLD_API int creat(const char *path, mode_t mode)
{
    return files_open(FILES_FOR_CALLER(), AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}
WORLD_API int creat64(const char *path, mode_t mode)
{
    return files_open(FILES_FOR_CALLER(), AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

/* ---- streams ---- */

static int flags_of(const char *mode)
{
    int way = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
    int more = *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT | O_APPEND : 0;
    return way | more | (strchr(mode, 'x') ? O_EXCL : 0);
}

static const char *stream_seen(struct world_page *page, const char *path, const char *mode, char seen_in[SHADOW_PATH])
{
    int flags = flags_of(mode);
    page = path ? view_of(page, AT_FDCWD, path) : NULL;
    if (!page)
        return path;
    return flags == O_RDONLY ? view_read(page, AT_FDCWD, path, seen_in)
                             : view_write(page, AT_FDCWD, path, flags, seen_in);
}

static FILE *random_stream(struct world_page *page, const char *path, const char *mode)
{
    bool wanted = page && page->clocks && path && is_random(path);
    int fd = wanted ? world_random_file(page, O_CLOEXEC) : -1;
    return fd >= 0 ? fdopen(fd, mode) : NULL;
}

#define FOPEN(name)                                                                                                    \
    WORLD_API FILE *name(const char *restrict path, const char *restrict mode)                                         \
    {                                                                                                                  \
        struct world_page *page = FILES_FOR_CALLER();                                                                  \
        char seen_in[SHADOW_PATH];                                                                                     \
        FILE *random = random_stream(page, path, mode);                                                                \
        const char *seen = random ? NULL : stream_seen(page, path, mode, seen_in);                                     \
        FILE *opened = random ? random : seen ? NEXT(name)(seen, mode) : NULL;                                         \
        page = opened && !random ? view_of(page, AT_FDCWD, path) : NULL;                                               \
        while (opened && page && view_has_moved(page, AT_FDCWD, path, seen)) {                                         \
            (void)NEXT(fclose)(opened);                                                                                \
            seen = stream_seen(page, path, mode, seen_in);                                                             \
            opened = seen ? NEXT(name)(seen, mode) : NULL;                                                             \
        }                                                                                                              \
        return opened;                                                                                                 \
    }
#define FREOPEN(name)                                                                                                  \
    WORLD_API FILE *name(const char *restrict path, const char *restrict mode, FILE *restrict stream)                  \
    {                                                                                                                  \
        struct world_page *page = FILES_FOR_CALLER();                                                                  \
        char seen_in[SHADOW_PATH];                                                                                     \
        const char *seen = stream_seen(page, path, mode, seen_in);                                                     \
        return path && !seen ? NULL : NEXT(name)(seen, mode, stream);                                                  \
    }
FOPEN(fopen)
FOPEN(fopen64)
FREOPEN(freopen)
FREOPEN(freopen64)

/* ---- names ---- */

static int unlink_seen(struct world_page *page, int at, const char *path)
{
    page = view_of(page, at, path);
    return page ? view_unlink(page, at, path) : (int)NEXT(syscall)(SYS_unlinkat, at, path, 0);
}

WORLD_API int unlink(const char *path)
{
    return unlink_seen(FILES_FOR_CALLER(), AT_FDCWD, path);
}

WORLD_API int unlinkat(int at, const char *path, int flags)
{
    struct world_page *page = FILES_FOR_CALLER();
    return flags ? NEXT(unlinkat)(at, path, flags) : unlink_seen(page, at, path);
}

WORLD_API int remove(const char *path)
{
    int rc = unlink_seen(FILES_FOR_CALLER(), AT_FDCWD, path);
    return rc != 0 && (errno == EISDIR || errno == EPERM) ? NEXT(rmdir)(path) : rc;
}

static int rename_seen(struct world_page *page, int at, const char *from, int to_at, const char *to)
{
    page = view_of(page, at, from) ? view_of(page, to_at, to) : NULL;
    return page ? view_rename(page, at, from, to_at, to) : (int)NEXT(syscall)(SYS_renameat, at, from, to_at, to);
}

WORLD_API int rename(const char *from, const char *to)
{
    return rename_seen(FILES_FOR_CALLER(), AT_FDCWD, from, AT_FDCWD, to);
}

WORLD_API int renameat(int at, const char *from, int to_at, const char *to)
{
    return rename_seen(FILES_FOR_CALLER(), at, from, to_at, to);
}

WORLD_API int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags)
{
    struct world_page *page = FILES_FOR_CALLER();
    char seen_in[SHADOW_PATH];
    if (flags & RENAME_NOREPLACE && view_of(page, to_at, to) && view_read(page, to_at, to, seen_in) &&
        file_there(to_at, seen_in[0] && page->set ? seen_in : to)) {
        errno = EEXIST;
        return -1;
    }
    return flags & ~(unsigned)RENAME_NOREPLACE ? NEXT(renameat2)(at, from, to_at, to, flags)
                                               : rename_seen(page, at, from, to_at, to);
}

int files_mkdir(struct world_page *page, int at, const char *path, mode_t mode)
{
    bool plain = !page || !page->files || shadow_is_system(path) || strlen(path) > SHADOW_PATH / 2;
    return plain ? (int)NEXT(syscall)(SYS_mkdirat, at, path, mode) : view_mkdir(page, at, path, mode);
}

WORLD_API int mkdir(const char *path, mode_t mode)
{
    return files_mkdir(FILES_FOR_CALLER(), AT_FDCWD, path, mode);
}

WORLD_API int mkdirat(int at, const char *path, mode_t mode)
{
    return files_mkdir(FILES_FOR_CALLER(), at, path, mode);
}

/* ---- what is asked of a file, and of its owner ---- */

/* NULL with errno: it is not there for the set. */
static const char *seen_of(struct world_page *page, int at, const char *path, char seen_in[SHADOW_PATH])
{
    page = page && page->set > 0 ? view_of(page, at, path) : NULL;
    return page ? view_read(page, at, path, seen_in) : path;
}

#define LOOK(type, name, parameters, at, ...)                                                                          \
    WORLD_API type name parameters                                                                                     \
    {                                                                                                                  \
        char seen_in[SHADOW_PATH];                                                                                     \
        const char *seen = seen_of(FILES_FOR_CALLER(), at, path, seen_in);                                             \
        return seen ? NEXT(name)(__VA_ARGS__) : -1;                                                                    \
    }
LOOK(int, stat, (const char *restrict path, struct stat *restrict s), AT_FDCWD, seen, s)
LOOK(int, lstat, (const char *restrict path, struct stat *restrict s), AT_FDCWD, seen, s)
LOOK(int, stat64, (const char *restrict path, struct stat64 *restrict s), AT_FDCWD, seen, s)
LOOK(int, lstat64, (const char *restrict path, struct stat64 *restrict s), AT_FDCWD, seen, s)
LOOK(int, fstatat, (int at, const char *restrict path, struct stat *restrict s, int flags), at, at, seen, s, flags)
LOOK(int, fstatat64, (int at, const char *restrict path, struct stat64 *restrict s, int flags), at, at, seen, s, flags)
LOOK(int, statx, (int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict s), at, at, seen,
     flags, mask, s)
LOOK(int, access, (const char *path, int mode), AT_FDCWD, seen, mode)
LOOK(int, euidaccess, (const char *path, int mode), AT_FDCWD, seen, mode)
LOOK(int, faccessat, (int at, const char *path, int mode, int flags), at, at, seen, mode, flags)

static int truncate_seen(struct world_page *page, const char *path, off_t len)
{
    char seen_in[SHADOW_PATH];
    page = view_of(page, AT_FDCWD, path);
    const char *seen = page ? view_write(page, AT_FDCWD, path, 0, seen_in) : path;
    return seen ? (int)NEXT(syscall)(SYS_truncate, seen, len) : -1;
}

WORLD_API int truncate(const char *path, off_t len)
{
    return truncate_seen(FILES_FOR_CALLER(), path, len);
}

WORLD_API int truncate64(const char *path, off64_t len)
{
    return truncate_seen(FILES_FOR_CALLER(), path, len);
}

/* What belongs to no set but 0 is not changed by others. */
#define CHANGE(name, parameters, at, ...)                                                                              \
    WORLD_API int name parameters                                                                                      \
    {                                                                                                                  \
        char seen_in[SHADOW_PATH];                                                                                     \
        struct world_page *page = FILES_FOR_CALLER();                                                                  \
        const char *seen = seen_of(page, at, path, seen_in);                                                           \
        bool others = page && page->set > 0 && view_of(page, at, path) && (seen == path || strstr(seen_in, "-b-"));    \
        return !seen ? -1 : others ? 0 : NEXT(name)(__VA_ARGS__);                                                      \
    }
CHANGE(chmod, (const char *path, mode_t mode), AT_FDCWD, seen, mode)
CHANGE(fchmodat, (int at, const char *path, mode_t mode, int flags), at, at, seen, mode, flags)
CHANGE(chown, (const char *path, uid_t user, gid_t group), AT_FDCWD, seen, user, group)
CHANGE(lchown, (const char *path, uid_t user, gid_t group), AT_FDCWD, seen, user, group)
CHANGE(fchownat, (int at, const char *path, uid_t user, gid_t group, int flags), at, at, seen, user, group, flags)
CHANGE(utime, (const char *path, const struct utimbuf *times), AT_FDCWD, seen, times)
CHANGE(lutimes, (const char *path, const struct timeval times[2]), AT_FDCWD, seen, times)
CHANGE(utimes, (const char *path, const struct timeval times[2]), AT_FDCWD, seen, times)
CHANGE(utimensat, (int at, const char *path, const struct timespec times[2], int flags), at, at, seen, times, flags)
