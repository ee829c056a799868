/* A growing byte buffer, and allocation that ends the program instead of returning NULL (a launcher without memory for
 * a few kilobytes can do nothing better). One thread. */
#ifndef KEEL_PM_BYTES_H
#define KEEL_PM_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;
    size_t len, cap;
};

void *pm_alloc(size_t size); /* zeroed; never NULL */
char *pm_strdup(const char *text);
char *pm_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* caller frees */

void bytes_append(struct bytes *b, const void *data, size_t len);
/* Appends text, without its terminating zero; behind it stands one that does not count. */
void bytes_printf(struct bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for len more bytes at the end; the caller writes them and adds to b->len. */
uint8_t *bytes_reserve(struct bytes *b, size_t len);
/* Drop the first n bytes. */
void bytes_drop(struct bytes *b, size_t n);
void bytes_free(struct bytes *b);

static inline void put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v, p[1] = (uint8_t)(v >> 8), p[2] = (uint8_t)(v >> 16), p[3] = (uint8_t)(v >> 24);
}
static inline uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
#endif
