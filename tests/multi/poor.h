/* An allocator that fails when a test wants it to, for what Keel allocates only: malloc and the like of the C
 * library, with these in their place. */
#ifndef KEEL_TESTS_MULTI_POOR_H
#define KEEL_TESTS_MULTI_POOR_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
// NOLINTEND(bugprone-reserved-identifier)

static uintptr_t poor_from, poor_to; /* the library */

/* The program's: does this allocation of Keel's fail? */
static bool poor_fails(void);

static bool poor_at(const void *caller)
{
    return (uintptr_t)caller >= poor_from && (uintptr_t)caller < poor_to && poor_fails();
}

#define INSTEAD __attribute__((visibility("default"))) /* of the C library's */

INSTEAD void *malloc(size_t n) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
    return poor_at(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

INSTEAD void *calloc(size_t n, size_t size) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
    return poor_at(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

INSTEAD void *realloc(void *p, size_t n) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
    return poor_at(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}

static int poor_library(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    if (!strstr(info->dlpi_name, "libkeel.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            poor_from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            poor_to = poor_from + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static inline void poor_find(void)
{
    dl_iterate_phdr(poor_library, NULL);
}
#endif
