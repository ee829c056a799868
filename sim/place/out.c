/* Output files. What is written stays in a file without a name, in the folder of its target, until it is whole, so that
 * neither an error nor kill -9 leaves a piece of it behind. Where the file system has no such files it is one in the
 * temporary folder, and is copied in the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/place/options.h"

static void cannot(const char *path)
{
    cli_die("cannot write %s: %s", path, strerror(errno));
}

/* Say now, not after an hour of work, that the folder cannot be written to. returns   a file without a name there, or
 * in the temporary folder; beside tells which. */
static FILE *nameless(const char *path, bool *beside)
{
    char folder[OUT_PATH];
    if ((size_t)snprintf(folder, sizeof folder - 32, "%s", path) >= sizeof folder - 32)
        cli_die("the file name is too long");
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    if (access(slash ? folder : ".", W_OK | X_OK) != 0)
        cannot(path);
    int fd = open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    *beside = fd >= 0;
    return fd >= 0 ? fdopen(fd, "w+") : tmpfile();
}

void out_open(struct out *out, const char *path)
{
    *out = (struct out){.f = stdout, .path = path};
    struct stat st;
    if (!path)
        return;
    errno = ENOENT;
    if (!path[0])
        cannot(path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe is written to, not replaced */
        out->f = fopen(path, "w");
        if (!out->f)
            cannot(path);
        return;
    }
    out->replaces = true;
    out->f = nameless(path, &out->beside);
    if (!out->f)
        cannot(path);
}

static bool copy(FILE *from, FILE *to)
{
    char buf[1 << 16];
    rewind(from);
    for (size_t n; (n = fread(buf, 1, sizeof buf, from)) > 0;)
        if (fwrite(buf, 1, n, to) != n)
            return false;
    return !ferror(from);
}

/* Over another file it needs a name in between. A process of its own takes the two steps, which ends them also when
 * this one is killed after the first. */
static bool name_over(const char *fd, const char *part, const char *path)
{
    int status;
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        setsid();
        bool ok = linkat(AT_FDCWD, fd, AT_FDCWD, part, AT_SYMLINK_FOLLOW) == 0 && rename(part, path) == 0;
        _exit(!ok);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The file gets its name. */
static bool give_name(const struct out *out, const char *part)
{
    char fd[64];
    snprintf(fd, sizeof fd, "/proc/self/fd/%d", fileno(out->f)); /* in a child of this process, too */
    if (linkat(AT_FDCWD, fd, AT_FDCWD, out->path, AT_SYMLINK_FOLLOW) == 0)
        return true;
    return errno == EEXIST && name_over(fd, part, out->path);
}

static bool copy_over(const struct out *out, const char *part)
{
    FILE *f = fopen(part, "w");
    if (!f)
        return false;
    bool ok = copy(out->f, f);
    return fclose(f) == 0 && ok && rename(part, out->path) == 0;
}

static void replace(struct out *out)
{
    char part[OUT_PATH];
    snprintf(part, sizeof part, "%s.part%ld", out->path, (long)getpid());
    if (!(out->beside && give_name(out, part)) && !copy_over(out, part)) {
        int why = errno;
        unlink(part);
        errno = why;
        cannot(out->path);
    }
}

static void out_discard(struct out *out)
{
    if (out->path && fclose(out->f) != 0 && !out->replaces)
        cannot(out->path);
}

void out_commit(struct out *out)
{
    if (fflush(out->f) != 0 || ferror(out->f))
        cannot(out->path ? out->path : "standard output");
    if (out->replaces)
        replace(out);
    out_discard(out);
}
