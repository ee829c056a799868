#include "memory.h"

#include <malloc.h>
#include <stdlib.h>

static long left;    /* allocations until one fails; 0: none fails */
static size_t least; /* smaller ones are not counted */
static bool failed;
static size_t living;

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *memory);
// NOLINTEND(bugprone-reserved-identifier)

void memory_fail_large(long n, size_t bytes)
{
    left = n;
    least = bytes;
    failed = false;
}

void memory_fail_at(long n)
{
    memory_fail_large(n, 0);
}

bool memory_failed(void)
{
    left = 0;
    return failed;
}

size_t memory_living(void)
{
    return living;
}

static bool fails(size_t size)
{
    if (size < least || left == 0 || --left > 0)
        return false;
    failed = true;
    return true;
}

static void *count(void *memory)
{
    if (memory)
        living += malloc_usable_size(memory);
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return fails(size) ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(n * size) ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (fails(size))
        return NULL;
    size_t before = old ? malloc_usable_size(old) : 0;
    void *grown = __real_realloc(old, size);
    if (grown)
        living -= before;
    return count(grown);
}

void __wrap_free(void *memory)
{
    if (memory)
        living -= malloc_usable_size(memory);
    __real_free(memory);
}
