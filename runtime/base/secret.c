#include "runtime/base/secret.h"

#include <string.h>
#include <sys/mman.h>

/* Who looks for leaks looks into this memory, too: connections lie there, and have others. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define LEAKS_LOOK_AT(p, size) __lsan_register_root_region(p, size)
#define LEAKS_LOOK_AWAY(p, size) __lsan_unregister_root_region(p, size)
#endif
#endif
#ifndef LEAKS_LOOK_AT
#define LEAKS_LOOK_AT(p, size) ((void)(p))
#define LEAKS_LOOK_AWAY(p, size) ((void)(p))
#endif

void *secret_alloc(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    (void)madvise(p, size, MADV_DONTDUMP); /* every kernel that runs Keel has it */
    LEAKS_LOOK_AT(p, size);
    return p;
}

void secret_free(void *p, size_t size)
{
    if (!p)
        return;
    LEAKS_LOOK_AWAY(p, size);
    explicit_bzero(p, size);
    munmap(p, size);
}
