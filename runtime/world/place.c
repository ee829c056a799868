/* Where this process is: its page, and whose call it is. */
#include "runtime/world/world.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>

void *world_next(const char *name, const char *version)
{
    void *at = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    return at ? at : dlsym(RTLD_NEXT, name);
}

/* ---- the page ---- */

static struct world_page *mapped(int fd)
{
    struct stat s;
    if (NEXT(fstat)(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size < (off_t)sizeof(struct world_page))
        return NULL;
    struct world_page *page = NEXT(mmap)(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (page->magic == WORLD_MAGIC)
        return page;
    (void)NEXT(munmap)(page, sizeof *page);
    return NULL;
}

/* A program closes descriptors before it starts another one; the rank itself leads its session. */
static struct world_page *mapped_of(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, WORLD_FD);
    int fd = (int)NEXT(syscall)(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    struct world_page *page = fd >= 0 ? mapped(fd) : NULL;
    if (fd >= 0)
        NEXT(close)(fd);
    return page;
}

static struct world_page *find(void)
{
    struct world_page *page = mapped(WORLD_FD);
    int32_t none = 0;
    if (!page)
        page = mapped_of((int)NEXT(syscall)(SYS_getsid, 0));
    if (!page)
        page = mapped_of((int)NEXT(syscall)(SYS_getppid));
    if (page)
        (void)atomic_compare_exchange_strong(&page->pid, &none, (int32_t)NEXT(syscall)(SYS_getpid));
    return page;
}

/* What is called meanwhile may read a clock itself: that of the host. */
struct world_page *world_page(void)
{
    static struct world_page none;
    static struct world_page *_Atomic found;
    static _Thread_local bool finding __attribute__((tls_model("initial-exec")));
    struct world_page *page = atomic_load_explicit(&found, memory_order_acquire);
    if (!page && !finding) {
        finding = true;
        struct world_page *mine = find(), *first = NULL;
        mine = mine ? mine : &none;
        page = atomic_compare_exchange_strong(&found, &first, mine) ? mine : first;
        finding = false;
    }
    return page == &none ? NULL : page;
}

/* ---- whose call it is ---- */

enum kind { COVERED, CARRIER, MPI, ALLOCATOR };
struct range {
    uintptr_t low, high;
    enum kind kind;
};
enum { RANGES_MAX = 1024 };

static struct {
    pthread_mutex_t lock;
    struct range range[RANGES_MAX];
    _Atomic int count;
} ranges = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum kind kind_of(const char *path)
{
    static const char *const carriers[] = {"libkeel",  "keel-",       "libfabric",  "libucp.",    "libucs.",  "libuct",
                                           "libucm",   "libibverbs.", "librdmacm.", "libsodium.", "libpsm",   "libuv.",
                                           "libarmci", "libefa",      "libmlx5",    "librxe",     "libpmix.", "libpmi"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof carriers / sizeof carriers[0]; i++)
        if (strncmp(name, carriers[i], strlen(carriers[i])) == 0)
            return CARRIER;
    return strncmp(name, "libmpi", strlen("libmpi")) == 0 ? MPI : COVERED;
}

/* The object behind this one that has malloc, if it is not the C library: a preloaded allocator, or a sanitizer's. */
static bool is_allocator(const struct dl_phdr_info *object)
{
    uintptr_t at = (uintptr_t)NEXT(malloc);
    const char *slash = strrchr(object->dlpi_name ? object->dlpi_name : "", '/');
    if (!slash || strncmp(slash, "/libc.", strlen("/libc.")) == 0)
        return false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t low = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && at >= low && at < low + part->p_memsz)
            return true;
    }
    return false;
}

static void add(uintptr_t low, uintptr_t high, enum kind kind)
{
    int n = atomic_load_explicit(&ranges.count, memory_order_relaxed);
    for (int i = 0; i < n; i++)
        if (ranges.range[i].low == low && ranges.range[i].high == high)
            return;
    if (n == RANGES_MAX)
        return;
    ranges.range[n] = (struct range){low, high, kind};
    atomic_store_explicit(&ranges.count, n + 1, memory_order_release);
}

static int add_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    enum kind kind = is_allocator(object) ? ALLOCATOR : kind_of(object->dlpi_name ? object->dlpi_name : "");
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X)
            add(object->dlpi_addr + part->p_vaddr, object->dlpi_addr + part->p_vaddr + part->p_memsz, kind);
    }
    return 0;
}

static bool look_up(uintptr_t at, enum kind *kind)
{
    int n = atomic_load_explicit(&ranges.count, memory_order_acquire);
    for (int i = 0; i < n; i++)
        if (at >= ranges.range[i].low && at < ranges.range[i].high) {
            *kind = ranges.range[i].kind;
            return true;
        }
    return false;
}

/* What no object has is code that a program has made. */
static enum kind kind_at(const void *caller)
{
    enum kind kind = COVERED;
    if (look_up((uintptr_t)caller, &kind) || pthread_mutex_trylock(&ranges.lock) != 0)
        return kind;
    (void)dl_iterate_phdr(add_object, NULL);
    if (!look_up((uintptr_t)caller, &kind))
        add((uintptr_t)caller, (uintptr_t)caller + 1, COVERED);
    pthread_mutex_unlock(&ranges.lock);
    return kind;
}

bool world_covers(const void *caller)
{
    return kind_at(caller) == COVERED;
}

bool world_covers_clock(const void *caller)
{
    enum kind kind = kind_at(caller);
    return kind == COVERED || kind == MPI;
}

bool world_covers_files(const void *caller)
{
    enum kind kind = kind_at(caller);
    return kind == COVERED || kind == ALLOCATOR;
}
