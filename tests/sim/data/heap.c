#include "tests/sim/data/heap.h"

#include <stdlib.h>
#include <string.h>

struct heap_block {
    struct heap_block *next, *prev;
    struct heap *owner;
    size_t bytes;
};
_Static_assert(sizeof(struct heap_block) % 16 == 0, "what follows is aligned");

enum { SMALL = 960 };

static struct heap *current;

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
// NOLINTEND(bugprone-reserved-identifier)

struct heap *heap_enter(struct heap *h)
{
    struct heap *before = current;
    current = h;
    return before;
}

static void link_block(struct heap_block *b)
{
    struct heap *h = b->owner;
    b->prev = NULL;
    b->next = h ? h->first : NULL;
    if (!h)
        return;
    if (b->next)
        b->next->prev = b;
    h->first = b;
    h->blocks++;
}

static void unlink_block(struct heap_block *b)
{
    struct heap *h = b->owner;
    if (!h)
        return;
    if (b->prev)
        b->prev->next = b->next;
    else
        h->first = b->next;
    if (b->next)
        b->next->prev = b->prev;
    h->blocks--;
}

void heap_drop(struct heap *h)
{
    while (h->first) {
        struct heap_block *b = h->first;
        unlink_block(b);
        __real_free(b);
    }
}

static bool fails(void)
{
    if (!current || ++current->allocations < current->fail_at || !current->fail_at)
        return false;
    return current->allocations - current->fail_at <= current->fail_more;
}

static void *made(struct heap_block *b, size_t bytes)
{
    if (!b)
        return NULL;
    b->owner = current;
    b->bytes = bytes;
    link_block(b);
    return b + 1;
}

static bool has_room(size_t bytes)
{
    return !fails() && bytes <= SIZE_MAX - sizeof(struct heap_block);
}

void *__wrap_malloc(size_t bytes)
{
    return made(has_room(bytes) ? __real_malloc(sizeof(struct heap_block) + bytes) : NULL, bytes);
}

/* Of what is large the library knows which memory is new, and zero already; for what is small its malloc is the
 * faster one. */
void *__wrap_calloc(size_t n, size_t bytes)
{
    if (bytes && n > SIZE_MAX / bytes)
        return NULL;
    if (n * bytes <= SMALL) {
        void *p = __wrap_malloc(n * bytes);
        return p ? memset(p, 0, n * bytes) : NULL;
    }
    return made(has_room(n * bytes) ? __real_calloc(1, sizeof(struct heap_block) + n * bytes) : NULL, n * bytes);
}

void __wrap_free(void *p)
{
    if (!p)
        return;
    struct heap_block *b = (struct heap_block *)p - 1;
    unlink_block(b);
    __real_free(b);
}

void *__wrap_realloc(void *p, size_t bytes)
{
    if (!p)
        return __wrap_malloc(bytes);
    void *q = __wrap_malloc(bytes);
    if (!q)
        return NULL;
    const struct heap_block *b = (struct heap_block *)p - 1;
    memcpy(q, p, b->bytes < bytes ? b->bytes : bytes);
    __wrap_free(p);
    return q;
}

char *__wrap_strdup(const char *s)
{
    size_t bytes = strlen(s) + 1;
    char *copy = __wrap_malloc(bytes);
    return copy ? memcpy(copy, s, bytes) : NULL;
}
