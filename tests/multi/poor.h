/* An allocator that fails when a test wants it to, for what Keel allocates only: malloc and the like of the C library, with these in their place. */
#ifndef KEEL_TESTS_MULTI_POOR_H
#define KEEL_TESTS_MULTI_POOR_H

#include <link.h>
#include <stdatomic.h>
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
static atomic_int poor_every;        /* 0: all succeed */
static int poor_was;
static atomic_int poor_asked;

static bool poor_fails(const void *caller)
{
    int every = poor_every;
    if (!every || (uintptr_t)caller < poor_from || (uintptr_t)caller >= poor_to)
        return false;
    return ++poor_asked % every == 0;
}

#define INSTEAD __attribute__((visibility("default"))) /* of the C library's */

INSTEAD void *malloc(size_t n) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
    return poor_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

INSTEAD void *calloc(size_t n, size_t size) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
    return poor_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

INSTEAD void *realloc(void *p, size_t n) // NOLINT(readability-inconsistent-declaration-parameter-name)
{
    return poor_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
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

static inline void poor_each(int every)
{
    poor_every = every;
}

static inline void poor_pause(void)
{
    poor_was = poor_every;
    poor_every = 0;
}

static inline void poor_go_on(void)
{
    poor_every = poor_was;
}

static inline void poor_end(void)
{
    poor_every = 0;
}
#endif
