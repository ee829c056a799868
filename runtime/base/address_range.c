#include "runtime/base/address_range.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 1 << 20 };

static bool read_number(const char **text, uint64_t *out)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoull(*text, &end, 0);
    *text = end;
    return true;
}

/* Of the letter behind a number. */
static int shift_of(char letter)
{
    static const char letters[] = "KMGT";
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? 10 * (int)(at - letters + 1) : 0;
}

bool address_range_parse(const char *text, struct address_range *out)
{
    struct address_range r;
    if (strcmp(text, "small") == 0) {
        *out = address_range_small();
        return true;
    }
    if (!read_number(&text, &r.base) || *text++ != ',' || !read_number(&text, &r.bytes))
        return false;
    int shift = shift_of(*text);
    text += shift != 0;
    if (*text || r.bytes > UINT64_MAX >> 1 >> shift)
        return false;
    r.bytes <<= shift;
    *out = r;
    return r.base && r.bytes && r.base % UNIT == 0 && r.bytes % (2 * UNIT) == 0 &&
           r.base <= (UINT64_MAX >> 1) - r.bytes;
}

struct address_range address_range_small(void)
{
    return (struct address_range){0x400000000, 0x800000000};
}

bool address_range_will_be_watched(char *const *argv)
{
    for (; *argv; argv++) {
        const char *slash = strrchr(*argv, '/');
        if (strcmp(slash ? slash + 1 : *argv, "valgrind") == 0)
            return true;
    }
    return false;
}
