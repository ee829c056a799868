/* Memory for what must not be in a core dump: secrets, tickets, keys of sessions. In pages of their own. */
#ifndef KEEL_BASE_SECRET_H
#define KEEL_BASE_SECRET_H

#include <stddef.h>

/* Zeroed. NULL: out of memory.   takes   whole pages: not for many small things. */
void *secret_alloc(size_t size);
/* Wiped and given back; NULL is allowed. size as it was asked for. */
void secret_free(void *p, size_t size);
#endif
