/* The allocations of a test, caught by the linker (--wrap): what is living, and one that fails. */
#ifndef KEEL_TEST_MEMORY_H
#define KEEL_TEST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* The n-th allocation from now on fails, once; 0: none does. */
void memory_fail_at(long n);
/* The same of those of so many bytes and more. */
void memory_fail_large(long n, size_t bytes);
/* It came to that. No allocation fails any more. */
bool memory_failed(void);
/* Bytes allocated and not freed. */
size_t memory_living(void);
#endif
