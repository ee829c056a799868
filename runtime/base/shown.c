#include "runtime/base/shown.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* How many bytes the character has; code is 0 if they are none of UTF-8. */
static size_t read_one(const char *text, uint32_t *code)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t n = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : c[0] >= 0xe0 && c[0] < 0xf0 ? 3 : 4;
    *code = n == 1 ? c[0] : c[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (c[0] < 0xc2 || c[0] > 0xf4 || (c[i] & 0xc0) != 0x80) {
            *code = 0;
            return 1;
        }
        *code = *code << 6 | (c[i] & 0x3f);
    }
    return n;
}

/* Marks of direction and of order, ends of lines, and a byte order mark. */
static bool is_hidden(uint32_t code)
{
    return (code >= 0x80 && code < 0xa0) || (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

/* Returns how many bytes of the text were written as how many of mark. */
static size_t show_one(const char *text, char mark[8], size_t *len)
{
    static const char named[] = "\n\r\t", letters[] = "nrt";
    unsigned char c = (unsigned char)*text;
    const char *name = memchr(named, c, sizeof named - 1);
    uint32_t code;
    size_t n = read_one(text, &code);
    if (name)
        *len = (size_t)snprintf(mark, 8, "\\%c", letters[name - named]);
    else if (c < ' ' || c == 0x7f || (!code && c < 0xa0)) /* the last: what a terminal of eight bits obeys */
        *len = (size_t)snprintf(mark, 8, "\\x%02x", c);
    else if (is_hidden(code))
        *len = (size_t)snprintf(mark, 8, "\\u%04x", code);
    else
        memcpy(mark, text, *len = n);
    return n;
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
