/* keel-armci-run [--archive FILE] PROGRAM [ARGUMENT...]: runs a program that was linked with Debian's libarmci-mpich.a
 * on Keel's ARMCI. It looks whether the system would preload anything into that program at all, as ld.so says nothing
 * where it does not, and becomes it. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "armci/graft/names.h"

static _Noreturn void quit(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

static _Noreturn void quit(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs(GRAFT_RUN ": ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(code);
}

/* Beside this program, as in the folder where it was built; where an installation has it seen from there; or where it
 * was installed. */
static void find_preload(char *path, size_t len)
{
    static const char *const places[] = {"", "../libexec/keel/"};
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;
    bool found = false;
    for (size_t i = 0; slash && !found && i < sizeof places / sizeof *places; i++) {
        snprintf(path, len, "%.*s/%s" GRAFT_PRELOAD, (int)(slash - self), self, places[i]);
        found = access(path, R_OK) == 0;
    }
    if (!found)
        snprintf(path, len, "%s/" GRAFT_PRELOAD, KEEL_LIBEXECDIR);
    if (access(path, R_OK) != 0)
        quit(1, GRAFT_PRELOAD " is neither beside " GRAFT_RUN " nor in " KEEL_LIBEXECDIR);
    if (strpbrk(path, ": "))
        quit(1, "%s: a path with a colon or a space cannot be preloaded; install Keel elsewhere", path);
}

/* As execvp does. */
static void find_program(const char *name, char *path, size_t len)
{
    const char *from = getenv("PATH");
    struct stat st;
    snprintf(path, len, "%s", name);
    if (strchr(name, '/'))
        return;
    for (from = from ? from : "/usr/local/bin:/usr/bin:/bin"; *from;) {
        size_t n = strcspn(from, ":");
        snprintf(path, len, "%.*s/%s", n ? (int)n : 1, n ? from : ".", name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return;
        from += n + (from[n] == ':');
    }
    quit(127, "%s is not found", name);
}

static bool is_loaded_by_ld(int fd, const Elf64_Ehdr *e)
{
    for (int i = 0; i < e->e_phnum; i++) {
        Elf64_Phdr h;
        if (pread(fd, &h, sizeof h, (off_t)(e->e_phoff + (uint64_t)i * sizeof h)) != (ssize_t)sizeof h)
            return false;
        if (h.p_type == PT_INTERP)
            return true;
    }
    return false;
}

/* Ends this program if nothing can be preloaded into that one. */
static void check_program(const char *path)
{
    Elf64_Ehdr e = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        quit(errno == ENOENT ? 127 : 126, "%s: %s", path, strerror(errno));
    ssize_t n = pread(fd, &e, sizeof e, 0);
    if (n >= 2 && memcmp(&e, "#!", 2) == 0)
        quit(2, "%s is a script; write " GRAFT_RUN " in it, before the program that it starts", path);
    if (n != (ssize_t)sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_machine != EM_X86_64 || (e.e_type != ET_EXEC && e.e_type != ET_DYN))
        quit(2, "%s is no program for x86-64", path);
    if (!is_loaded_by_ld(fd, &e))
        quit(2, "%s is linked statically as a whole: nothing can be put in the place of its ARMCI", path);
    if (fstat(fd, &st) != 0 || (st.st_mode & (S_ISUID | S_ISGID)) || fgetxattr(fd, "security.capability", NULL, 0) > 0)
        quit(2, "%s runs with other rights than yours: the system preloads nothing into it", path);
    close(fd);
}

static const char *archive_option(int argc, char **argv, int *i)
{
    static const char option[] = "--archive";
    size_t n = sizeof option - 1;
    if (strncmp(argv[*i], option, n) != 0 || (argv[*i][n] && argv[*i][n] != '='))
        quit(2, "%s is not an option; see " GRAFT_RUN " --help", argv[*i]);
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    if (++*i >= argc)
        quit(2, "--archive: the file is missing");
    return argv[*i];
}

int main(int argc, char **argv)
{
    static char preload[2 * PATH_MAX], program[2 * PATH_MAX], all[4 * PATH_MAX];
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            puts("usage: " GRAFT_RUN " [--archive FILE] PROGRAM [ARGUMENT...]\n"
                 "Runs a program that was linked with Debian's libarmci-mpich.a on Keel's ARMCI.\n"
                 "  --archive FILE   the library that it was linked with (default " GRAFT_ARCHIVE ")");
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            puts(GRAFT_RUN " (Keel) " KEEL_VERSION);
            return 0;
        }
        setenv(GRAFT_ARCHIVE_ENV, archive_option(argc, argv, &i), 1);
    }
    if (i >= argc)
        quit(2, "the program to run is missing; see " GRAFT_RUN " --help");
    find_preload(preload, sizeof preload);
    find_program(argv[i], program, sizeof program);
    check_program(program);
    const char *others = getenv("LD_PRELOAD");
    snprintf(all, sizeof all, "%s%s%s", preload, others && *others ? ":" : "", others ? others : "");
    setenv("LD_PRELOAD", all, 1);
    execv(program, argv + i);
    quit(126, "%s: %s", program, strerror(errno));
}
