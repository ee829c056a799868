/* Memory that knows when each of its blocks was written last, whoever did it and however: what nobody has written since
 * the last look is write-protected, and the first store to it is noted. */
#ifndef KEEL_TESTS_SIM_DATA_PAGES_H
#define KEEL_TESTS_SIM_DATA_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGES_BLOCK = 32 * 1024, PAGES_MIN = 96 * 1024 };

struct pages;

/* Zeroed memory, as if written now. A SIGSEGV that is about something else goes to whoever had it before. */
struct pages *pages_alloc(size_t bytes, uint8_t **base);
void pages_free(struct pages *p);
/* Those of a run that was given up, too. */
void pages_free_all(void);

/* Everything was looked at: the n-th look, from 1 on. */
void pages_looked(uint64_t n);
/* Was anything of the range written after the n-th look? */
bool pages_written(const struct pages *p, const void *from, size_t len, uint64_t n);
#endif
