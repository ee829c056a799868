/* Copies between memory that others write or read meanwhile and the caller's own. Each aligned 8-byte word of the
 * former that lies within is read, or written, as a whole; what of a word lies within only in part, byte by byte.
 *
 * memcpy does not say so. From some 2 KiB on it is one instruction of the processor (rep movsb), which goes byte by
 * byte on some processors where the destination lies a few bytes behind the source, modulo 4096: as memory from malloc
 * does, compared with a part. Then it tears words, and takes 20 times as long (64 KiB in 36 us instead of 1.7). */
#ifndef KEEL_BASE_WORDS_H
#define KEEL_BASE_WORDS_H

#include <stddef.h>
#include <string.h>

void words_store_run(void *shared, const void *own, size_t len);
void words_load_run(void *own, const void *shared, size_t len);

static inline void words_store(void *shared, const void *own, size_t len)
{
    if (len == 8)
        memcpy(shared, own, 8); /* one store */
    else
        words_store_run(shared, own, len);
}

static inline void words_load(void *own, const void *shared, size_t len)
{
    if (len == 8)
        memcpy(own, shared, 8);
    else
        words_load_run(own, shared, len);
}
#endif
