#include "pm/wire/bytes.h"

#include "runtime/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void no_memory(void)
{
    log_to(NULL, NULL); /* who writes the lines in our place needs memory for them */
    log_error("out of memory");
    abort();
}

void *pm_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p)
        no_memory();
    return p;
}

char *pm_strdup(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        no_memory();
    return copy;
}

char *pm_printf(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        no_memory();
    return text;
}

uint8_t *bytes_reserve(struct bytes *b, size_t len)
{
    if (b->cap - b->len < len) {
        size_t cap = b->cap ? b->cap : 256;
        while (cap - b->len < len)
            cap *= 2;
        b->data = realloc(b->data, cap);
        if (!b->data)
            no_memory();
        b->cap = cap;
    }
    return b->data + b->len;
}

void bytes_printf(struct bytes *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    va_start(ap, fmt);
    vsnprintf((char *)bytes_reserve(b, size), size, fmt, ap);
    va_end(ap);
    b->len += size - 1;
}

void bytes_append(struct bytes *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    memcpy(bytes_reserve(b, len), data, len);
    b->len += len;
}

void bytes_drop(struct bytes *b, size_t n)
{
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    explicit_bzero(b->data + b->len, n); /* it may have been a secret */
}

void bytes_free(struct bytes *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    free(b->data);
    *b = (struct bytes){0};
}
