#include "runtime/net/ofi/fabric.h"

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef KEEL_LIBEXECDIR
#define KEEL_LIBEXECDIR "/usr/libexec/keel"
#endif

enum { PATH = 4096 };

struct fabric_calls fabric_calls;

/* ---- libraries that nap ----
 *
 * libfabric may have been built with the providers psm and psm2. Their libraries measure the processor's clock when
 * they are loaded, by naps of 125 us for 100 ms each. Where the machine has no device of theirs they are of no use to
 * anybody, and stand-ins that find no device (runtime/net/nopsm) are loaded before: the loader takes what has the
 * name that is wanted. */

static bool has_psm_device(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    bool found = getenv("IPATH_SYSFS_PATH") || getenv("HFI_SYSFS_PATH");
    for (struct dirent *e; dir && !found && (e = readdir(dir));)
        found = strncmp(e->d_name, "qib", 3) == 0 || strncmp(e->d_name, "hfi", 3) == 0;
    if (dir)
        closedir(dir);
    return found;
}

/* Only what has the owner of the file that this code is in, or root's: nobody else decides what is loaded. */
static void *open_stand_in(const char *folder, const char *name, const struct stat *ours)
{
    char path[PATH];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &st) != 0 || (st.st_uid != 0 && st.st_uid != ours->st_uid))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void open_stand_ins(void *opened[2])
{
    /* beside keeld, where an installed or a built library has it seen from there */
    static const char *const places[] = {"nopsm", "../libexec/keel/nopsm", "../../libexec/keel/nopsm", "../net/nopsm",
                                         "../runtime/net/nopsm"};
    Dl_info self;
    struct stat ours;
    if (!dladdr((const void *)&fabric_calls, &self) || !self.dli_fname ||
        (stat(self.dli_fname, &ours) != 0 && stat("/proc/self/exe", &ours) != 0))
        return;
    const char *slash = strrchr(self.dli_fname, '/');
    for (size_t i = 0; i <= sizeof places / sizeof places[0] && !opened[0]; i++) {
        char folder[PATH];
        if (i == sizeof places / sizeof places[0])
            snprintf(folder, sizeof folder, "%s/nopsm", KEEL_LIBEXECDIR);
        else if (!slash || snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname,
                                    places[i]) >= (int)sizeof folder)
            continue;
        opened[0] = open_stand_in(folder, "libpsm_infinipath.so.1", &ours);
        opened[1] = open_stand_in(folder, "libpsm2.so.2", &ours);
    }
}

/* ---- the library ---- */

/* The interface that Keel was built with: the structures of later ones are longer. */
static void *find_call(void *library, const char *name)
{
#if FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20
    static const char *const changed[] = {"fi_getinfo", "fi_freeinfo", "fi_dupinfo"};
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++)
        if (strcmp(name, changed[i]) == 0)
            return dlvsym(library, name, "FABRIC_1.3");
    return dlsym(library, name);
#else
    uint32_t (*version)(void) = (uint32_t(*)(void))dlsym(library, "fi_version");
    return version && version() == FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) ? dlsym(library, name) : NULL;
#endif
}

static void *open_library(void)
{
    void *stand_ins[2] = {NULL, NULL};
    void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD); /* the program's, or MPI's */
    if (!library && !has_psm_device()) {
        open_stand_ins(stand_ins);
        library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
        for (int i = 0; i < 2 && !library; i++) /* one that wants more than they have */
            if (stand_ins[i])
                dlclose(stand_ins[i]);
    }
    return library ? library : dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
}

static bool loaded;

static void complain(const char *why)
{
    char text[REFUSAL_MAX];
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        (void)refusal_note(errno);
    log_error("transport: %s: %s", why, fd < 0 ? refusal_error(errno, text) : "is libfabric installed on this host?");
    if (fd >= 0)
        close(fd);
}

static void load(void)
{
    void *library = open_library();
    if (!library) {
        complain(dlerror());
        return;
    }
    loaded = true;
#define X(type, name, args)                                                                                            \
    if (!(*(void **)&fabric_calls.name = find_call(library, "fi_" #name)))                                             \
        loaded = false;
    FABRIC_CALLS(X)
#undef X
    if (!loaded)
        log_error(
            "transport: this host's libfabric has another interface than the one that Keel was built with (%d.%d)",
            FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

bool fabric_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return loaded;
}

/* libfabric keeps a provider that FI_PROVIDER does not name for other providers, which find it by this flag
 * (OFI_GETINFO_HIDDEN of its inner header, the same from 1.12 to 2.6). */
int fabric_find(const char *host, const struct fi_info *hints, struct fi_info **info)
{
    const uint64_t filtered_too = 1ULL << 60, flags = FI_SOURCE | FI_NUMERICHOST;
    uint32_t version = FI_VERSION(1, 17);
    int rc = fabric_calls.getinfo(version, host, NULL, flags, hints, info);
    return rc == -FI_ENODATA ? fabric_calls.getinfo(version, host, NULL, flags | filtered_too, hints, info) : rc;
}
