/* keel-armci-graft.so: a preload that lets a program which was linked with Debian's libarmci-mpich.a run on Keel's
 * libarmci.
 *
 * Before main it finds the objects of the library in the program's code (find.h) and writes jumps over all their
 * functions that have a name for others: to libarmci's function of that name, or, where libarmci has none, to a line
 * and the end. So either every call of ARMCI in the program is Keel's, or the program does not run. Whatever keeps it
 * from that ends the process with a line and exit code 2.
 *
 * keel-armci-run (run.c) starts programs so; who starts them otherwise gets the same. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <keel/keel.h>

#include "armci/graft/find.h"
#include "armci/graft/names.h"
#include "armci/graft/patch.h"

#define SONAME "libarmci.so.1"
#define VERSION "ARMCI_1" /* of the symbols of Keel's */

static void *armci;

static _Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void refuse(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    dprintf(STDERR_FILENO, GRAFT_RUN ": %s: %s\n", program_invocation_short_name, text);
    _exit(2);
}

/* In the place of a function that libarmci has not. */
static _Noreturn void missing(const char *name)
{
    char line[256];
    snprintf(line, sizeof line, GRAFT_RUN ": %s calls %s, which Keel's ARMCI does not have",
             program_invocation_short_name, name);
    keel_abort(2, line);
}

/* The programs that this one starts are none of ours: LD_PRELOAD is again what it was before keel-armci-run. */
static void forget_preload(void)
{
    Dl_info self;
    const char *preload = getenv("LD_PRELOAD");
    if (!preload || !dladdr((void *)forget_preload, &self))
        return;
    size_t n = strlen(self.dli_fname);
    if (strncmp(preload, self.dli_fname, n) != 0)
        return;
    if (preload[n] == ':')
        setenv("LD_PRELOAD", preload + n + 1, 1);
    else if (!preload[n])
        unsetenv("LD_PRELOAD");
}

static int first_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct graft_code *code = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || h->p_filesz <= code->len)
            continue;
        code->address = info->dlpi_addr + h->p_vaddr;
        code->bytes = (const uint8_t *)code->address; /* NOLINT(performance-no-int-to-ptr): that is where it is */
        code->len = h->p_filesz;
    }
    return 1; /* the program itself is the first */
}

static void read_archive(const char *path, struct graft_archive *a)
{
    const char *why;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        refuse("cannot open %s: %s; it is in Debian's package " GRAFT_PACKAGE, path, strerror(errno));
    if (fstat(fd, &st) != 0 || st.st_size == 0)
        refuse("cannot read %s", path);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        refuse("cannot read %s: %s", path, strerror(errno));
    if (!graft_archive_read(a, bytes, (size_t)st.st_size, &why))
        refuse("%s: %s", path, why);
    munmap(bytes, (size_t)st.st_size);
}

static struct graft_jump jump_of(const struct graft_code *code, const struct graft_object *o,
                                 const struct graft_function *f)
{
    struct graft_jump jump = {.from = o->address + f->at, .to = dlvsym(armci, graft_name(f->name), VERSION)};
    if (graft_room(code, o, f) < GRAFT_JUMP_LEN)
        refuse("%s (%s) is too short to be replaced", f->name, o->name);
    if (!jump.to) {
        if (graft_is_public(f->name) && f->called)
            refuse("it calls %s, which Keel's ARMCI does not have", f->name);
        jump.to = (const void *)missing;
        jump.argument = f->name;
    }
    return jump;
}

static void replace_all(const struct graft_archive *a, const struct graft_code *code)
{
    size_t room = 0, n = 0;
    for (size_t i = 0; i < a->count; i++)
        room += a->object[i].functions;
    struct graft_jump *jump = calloc(room + 1, sizeof *jump);
    if (!jump)
        refuse("out of memory");
    for (size_t i = 0; i < a->count; i++)
        for (size_t f = 0; a->object[i].address && f < a->object[i].functions; f++)
            jump[n++] = jump_of(code, &a->object[i], &a->object[i].function[f]);
    if (!graft_patch(jump, n))
        refuse("its code cannot be changed: %s", strerror(errno));
    free(jump);
}

__attribute__((constructor)) static void graft(void)
{
    static struct graft_archive a; /* for good: its names are the arguments of missing() */
    struct graft_code code = {0};
    const char *said = getenv(GRAFT_ARCHIVE_ENV), *path = said && *said ? said : GRAFT_ARCHIVE;
    char why[256];
    forget_preload();
    armci = dlopen(SONAME, RTLD_NOW); /* as this file's RUNPATH says */
    if (!armci)
        refuse("%s", dlerror());
    if (!dlvsym(armci, GRAFT_NEEDED, VERSION))
        refuse("it loads another " SONAME " than Keel's");
    if (!dlsym(RTLD_DEFAULT, "PMPI_Init"))
        refuse("it loads no library of MPI");
    read_archive(path, &a);
    (void)dl_iterate_phdr(first_program, &code);
    if (!graft_find(&a, &code, GRAFT_NEEDED, why, sizeof why))
        refuse("%s; --archive names the library that it was linked with, if that is not %s", why, path);
    graft_find_calls(&a, &code);
    replace_all(&a, &code);
}

/* libarmci's, before that of MPI, which the program has loaded before libarmci. */
__attribute__((visibility("default"))) int MPI_Finalize(void);

int MPI_Finalize(void)
{
    union {
        void *found;
        int (*call)(void);
    } finalize = {.found = dlvsym(armci, "MPI_Finalize", VERSION)};
    return finalize.call();
}
