#include "runtime/base/shown.h"

#include <string.h>

/* Returns how many bytes of the text were written as how many of mark. */
static size_t show_one(const char *text, char mark[8], size_t *len)
{
    static const char digits[] = "0123456789abcdef", named[] = "\n\r\t", letters[] = "nrt";
    unsigned char c = (unsigned char)*text;
    const char *name = memchr(named, c, sizeof named - 1);
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) {
        memcpy(mark, "\\ufeff", *len = 6);
        return 3;
    }
    mark[0] = '\\';
    *len = 2;
    if (name) {
        mark[1] = letters[name - named];
    } else if (c < ' ' || c == 0x7f) {
        mark[1] = 'x';
        mark[2] = digits[c >> 4];
        mark[3] = digits[c & 15];
        *len = 4;
    } else {
        mark[0] = *text;
        *len = 1;
    }
    return 1;
}

char *shown_text(const char *text, char *out, size_t size)
{
    char mark[8];
    size_t at = 0, len;
    while (*text && size) {
        size_t used = show_one(text, mark, &len);
        if (at + len >= size)
            break;
        memcpy(out + at, mark, len);
        at += len;
        text += used;
    }
    if (size)
        out[at] = '\0';
    return out;
}
