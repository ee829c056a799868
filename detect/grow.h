/* Arrays that grow. */
#ifndef KEEL_DETECT_GROW_H
#define KEEL_DETECT_GROW_H

#include <stdbool.h>
#include <stdlib.h>

/* Room for `need` elements of that size; *cap is for how many there is room. False: out of memory, and all is as
 * before. */
static inline bool grow(void **array, int *cap, int need, size_t size)
{
    if (need <= *cap)
        return true;
    int c = *cap ? 2 * *cap : 8;
    void *p = realloc(*array, (size_t)c * size);
    if (!p)
        return false;
    *array = p;
    *cap = c;
    return true;
}
#endif
