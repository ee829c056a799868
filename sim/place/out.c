/* Output files. What is written stays in a file without a name until it is whole, so that neither an error nor kill -9
 * leaves a piece of it behind; the copy beside the target lives as long as it takes to copy and rename. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/place/options.h"

static void cannot(const char *path)
{
    cli_die("cannot write %s: %s", path, strerror(errno));
}

/* Say now, not after an hour of work, that the folder cannot be written to. */
static void check_folder(const char *path)
{
    char folder[OUT_PATH];
    if ((size_t)snprintf(folder, sizeof folder - 32, "%s", path) >= sizeof folder - 32)
        cli_die("the file name is too long");
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    if (access(slash ? folder : ".", W_OK | X_OK) != 0)
        cannot(path);
}

void out_open(struct out *out, const char *path)
{
    *out = (struct out){.f = stdout, .path = path};
    struct stat st;
    if (!path)
        return;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe is written to, not replaced */
        out->f = fopen(path, "w");
        if (!out->f)
            cannot(path);
        return;
    }
    check_folder(path);
    out->replaces = true;
    out->f = tmpfile();
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

static void replace(struct out *out)
{
    char part[OUT_PATH];
    snprintf(part, sizeof part, "%s.part%ld", out->path, (long)getpid());
    FILE *f = fopen(part, "w");
    if (!f)
        cannot(out->path);
    bool ok = copy(out->f, f);
    ok = fclose(f) == 0 && ok && rename(part, out->path) == 0;
    if (!ok) {
        int why = errno;
        unlink(part);
        errno = why;
        cannot(out->path);
    }
}

void out_commit(struct out *out)
{
    if (fflush(out->f) != 0 || ferror(out->f))
        cannot(out->path ? out->path : "standard output");
    if (out->replaces)
        replace(out);
    out_discard(out);
}

void out_discard(struct out *out)
{
    if (out->path && fclose(out->f) != 0 && !out->replaces)
        cannot(out->path);
}
