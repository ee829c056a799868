#include "runtime/base/secret.h"

#include <string.h>
#include <sys/mman.h>

void *secret_alloc(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    (void)madvise(p, size, MADV_DONTDUMP); /* every kernel that runs Keel has it */
    return p;
}

void secret_free(void *p, size_t size)
{
    if (!p)
        return;
    explicit_bzero(p, size);
    munmap(p, size);
}
