/* A file of a save: written so that it is there as a whole or not at all, and read with its digest. */
#include "runtime/save/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fault.h"

static bool failed(char *why, const char *what, const char *path)
{
    snprintf(why, SAVE_WHY, "%s %s: %s", what, path, strerror(errno));
    return false;
}

/* What is written has a name of this process's own until it is whole: two may write the same file. */
static bool name_it(struct save_file *f, const char *folder, const char *name, char *why)
{
    uint64_t own;
    randombytes_buf(&own, sizeof own);
    f->fd = -1;
    f->bytes = 0;
    crypto_generichash_init(&f->sum, NULL, 0, SAVE_SUM);
    int n = snprintf(f->path, sizeof f->path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof f->path) {
        errno = ENAMETOOLONG;
        return failed(why, "open", folder);
    }
    snprintf(f->part, sizeof f->part, "%s.%016llx.part", f->path, (unsigned long long)own);
    return true;
}

/* Who waits for the other end of a pipe waits without a line, and a device is no file of a save. */
static bool only_file(struct save_file *f, const char *what, const char *path, char *why)
{
    struct stat st;
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return failed(why, what, path);
    if (S_ISREG(st.st_mode))
        return true;
    close(f->fd);
    f->fd = -1;
    snprintf(why, SAVE_WHY, "%s %s: it is no file", what, path);
    return false;
}

bool save_create(struct save_file *f, const char *folder, const char *name, char *why)
{
    if (!name_it(f, folder, name, why))
        return false;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return failed(why, "make", folder);
    f->fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return only_file(f, "write", f->part, why);
}

bool save_append(struct save_file *f, const void *data, size_t len, char *why)
{
    const uint8_t *at = data;
    crypto_generichash_update(&f->sum, at, len);
    f->bytes += len;
    while (len) {
        ssize_t n = write(f->fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(why, "write", f->part);
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* The name is on the disk when the folder is. */
static bool sync_folder(const char *path, char *why)
{
    char folder[SAVE_PATH];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    int fd = open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = fd >= 0 && fsync(fd) == 0;
    if (!done)
        failed(why, "write", folder);
    if (fd >= 0)
        close(fd);
    return done;
}

bool save_finish(struct save_file *f, uint8_t sum[SAVE_SUM], char *why)
{
    crypto_generichash_final(&f->sum, sum, SAVE_SUM);
    bool done = fchmod(f->fd, 0600) == 0 && fsync(f->fd) == 0;
    if (!done)
        failed(why, "write", f->part);
    if (close(f->fd) != 0 && done)
        done = failed(why, "write", f->part);
    f->fd = -1;
    FAULT_POINT("save.finishing");
    if (done && rename(f->part, f->path) != 0)
        done = failed(why, "write", f->path);
    if (!done)
        (void)unlink(f->part);
    return done && sync_folder(f->path, why);
}

bool save_open(struct save_file *f, const char *folder, const char *name, char *why)
{
    if (!name_it(f, folder, name, why))
        return false;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return only_file(f, "read", f->path, why);
}

bool save_next(struct save_file *f, void *data, size_t len, char *why)
{
    uint8_t *at = data;
    for (size_t left = len; left;) {
        ssize_t n = read(f->fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(why, "read", f->path);
        if (n == 0) {
            snprintf(why, SAVE_WHY, "%s ends after %llu bytes: it was cut off", f->path,
                     (unsigned long long)(f->bytes + (len - left)));
            return false;
        }
        at += n;
        left -= (size_t)n;
    }
    crypto_generichash_update(&f->sum, data, len);
    f->bytes += len;
    return true;
}

bool save_check(struct save_file *f, const struct save_entry *e, char *why)
{
    uint8_t sum[SAVE_SUM], more;
    bool ends = read(f->fd, &more, 1) == 0;
    crypto_generichash_final(&f->sum, sum, sizeof sum);
    close(f->fd);
    f->fd = -1;
    if (ends && f->bytes == e->bytes && memcmp(sum, e->sum, sizeof sum) == 0)
        return true;
    snprintf(why, SAVE_WHY, "%s is not what was saved: %s", f->path,
             ends && f->bytes == e->bytes ? "its bytes have another digest" : "it has another length");
    return false;
}

void save_drop(struct save_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    (void)unlink(f->part);
}
