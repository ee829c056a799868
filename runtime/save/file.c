/* A file of a save: written so that it is there as a whole or not at all, and read with its digest. Others may write to
 * the folder: what is written goes into a file that was not there before, and what is read is of this user, of root or
 * of him whose folder it is. */
#include "runtime/save/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fault.h"
#include "runtime/base/limited.h"
#include "runtime/base/refusal.h"

static bool failed(char *why, const char *what, const char *path)
{
    char error[REFUSAL_MAX];
    snprintf(why, SAVE_WHY, "%s %s: %s", what, path, refusal_error(errno, error));
    return false;
}

/* What is written has a name of this process's own until it is whole: two may write the same file. */
static bool name_it(struct save_file *f, const char *folder, const char *name, char *why)
{
    char part[SAVE_PART];
    f->fd = -1;
    f->bytes = 0;
    crypto_generichash_init(&f->sum, NULL, 0, SAVE_SUM);
    int n = snprintf(f->path, sizeof f->path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof f->path) {
        errno = ENAMETOOLONG;
        return failed(why, "open", folder);
    }
    save_name_of_part(part, name);
    snprintf(f->part, sizeof f->part, "%s/%s", folder, part);
    return true;
}

static bool refused(struct save_file *f, char *why, const char *what, const char *path, const char *reason)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    snprintf(why, SAVE_WHY, "%s %s: %s", what, path, reason);
    return false;
}

static bool belongs_to_another(struct save_file *f, char *why, const char *what, const char *path, uid_t owner)
{
    char reason[80];
    snprintf(reason, sizeof reason, "it belongs to user %lu, and not to this one", (unsigned long)owner);
    return refused(f, why, what, path, reason);
}

/* Who may write to a folder can put anything in the place of its files, but for files of others in one with a sticky
 * bit. That whoever is in the folder's group may is its owner's will; that everybody may is nobody's. */
static bool folder_is_safe(struct save_file *f, const char *what, const char *folder, struct stat *st, char *why)
{
    if (stat(folder, st) != 0)
        return failed(why, what, folder);
    if (!S_ISDIR(st->st_mode))
        return refused(f, why, what, folder, "it is no folder");
    if (!(st->st_mode & S_IWOTH) || (st->st_mode & S_ISVTX && (st->st_uid == geteuid() || !st->st_uid)))
        return true;
    return refused(f, why, what, folder, "everybody may write to this folder, and change what is saved there");
}

/* Who waits for the other end of a pipe waits without a line, and a device is no file of a save. */
static bool only_file(struct save_file *f, const char *what, const char *path, struct stat *st, char *why)
{
    if (f->fd < 0 || fstat(f->fd, st) != 0)
        return failed(why, what, path);
    return S_ISREG(st->st_mode) || refused(f, why, what, path, "it is no file");
}

/* It is this user's, and others cannot open it. (Root's files on a disk of another host may belong to nobody.) */
static bool is_private(struct save_file *f, char *why)
{
    struct stat st;
    if (fchmod(f->fd, 0600) != 0)
        return failed(why, "write", f->part);
    if (!only_file(f, "write", f->part, &st, why))
        return false;
    if (st.st_uid != geteuid() && geteuid() != 0)
        return belongs_to_another(f, why, "write", f->part, st.st_uid);
    return !(st.st_mode & 077) || refused(f, why, "write", f->part, "this file system lets others read it");
}

/* A new file, which nobody else has open. */
static bool make_file(struct save_file *f, char *why)
{
    f->fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return failed(why, "write", f->part);
    if (is_private(f, why))
        return true;
    (void)unlink(f->part);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    return false;
}

bool save_create(struct save_file *f, const char *folder, const char *name, char *why)
{
    struct stat st;
    if (!name_it(f, folder, name, why))
        return false;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return failed(why, "make", folder);
    return folder_is_safe(f, "write", folder, &st, why) && make_file(f, why);
}

bool save_append(struct save_file *f, const void *data, size_t len, char *why)
{
    const uint8_t *at = data;
    crypto_generichash_update(&f->sum, at, len);
    f->bytes += len;
    while (len) {
        ssize_t n = limited_write(f->fd, at, len);
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
    bool done = fsync(f->fd) == 0;
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
    struct stat in, st;
    if (!name_it(f, folder, name, why) || !folder_is_safe(f, "read", folder, &in, why))
        return false;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (!only_file(f, "read", f->path, &st, why))
        return false;
    if (st.st_uid == geteuid() || !st.st_uid || st.st_uid == in.st_uid)
        return true;
    return belongs_to_another(f, why, "read", f->path, st.st_uid);
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
