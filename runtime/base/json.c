#include "runtime/base/json.h"

#include <string.h>

struct json_writer json_into(char *text, size_t size)
{
    text[0] = '\0';
    return (struct json_writer){.text = text, .size = size};
}

struct json_writer json_into_file(FILE *file)
{
    return (struct json_writer){.file = file};
}

void json_go_on(struct json_writer *w)
{
    w->last = '}';
}

static void put(struct json_writer *w, const char *bytes, size_t n)
{
    if (n == 0)
        return;
    if (!w->text) {
        fwrite(bytes, 1, n, w->file);
    } else if (w->len + n < w->size) {
        memcpy(w->text + w->len, bytes, n);
        w->text[w->len + n] = '\0';
    }
    w->len += n;
    w->last = bytes[n - 1];
}

static void put_quoted(struct json_writer *w, const char *text)
{
    put(w, "\"", 1);
    for (const char *p = text ? text : ""; *p;) {
        size_t plain = 0;
        while ((unsigned char)p[plain] >= ' ' && p[plain] != '"' && p[plain] != '\\')
            plain++;
        put(w, p, plain);
        p += plain;
        if (*p == '"' || *p == '\\') {
            put(w, "\\", 1);
            put(w, p++, 1);
        } else if (*p) {
            char code[8];
            int n = snprintf(code, sizeof code, "\\u%04x", (unsigned char)*p++);
            put(w, code, (size_t)n);
        }
    }
    put(w, "\"", 1);
}

/* What stands before a value. */
static void begin(struct json_writer *w, const char *key)
{
    if (w->last && w->last != '{' && w->last != '[')
        put(w, ",", 1);
    if (!key)
        return;
    put_quoted(w, key);
    put(w, ":", 1);
}

void json_open(struct json_writer *w, const char *key, char bracket)
{
    begin(w, key);
    put(w, &bracket, 1);
}

void json_close(struct json_writer *w, char bracket)
{
    put(w, &bracket, 1);
}

void json_put(struct json_writer *w, struct json_member m)
{
    char number[352]; /* a double before its point has 309 digits */
    int n = 0;
    begin(w, m.key);
    switch (m.kind) {
    case JSON_IS_INT:
        n = snprintf(number, sizeof number, "%lld", m.i);
        break;
    case JSON_IS_UINT:
        n = snprintf(number, sizeof number, "%llu", m.u);
        break;
    case JSON_IS_REAL:
        n = snprintf(number, sizeof number, "%.*f", m.decimals, m.real);
        break;
    case JSON_IS_BOOL:
        n = snprintf(number, sizeof number, "%s", m.yes ? "true" : "false");
        break;
    case JSON_IS_TEXT:
        put_quoted(w, m.text);
        return;
    case JSON_IS_NULL:
        n = snprintf(number, sizeof number, "null");
        break;
    }
    put(w, number, (size_t)n);
}

void json_put_all(struct json_writer *w, const struct json_member *m, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_put(w, m[i]);
}

void json_put_written(struct json_writer *w, const char *members)
{
    put(w, members, strlen(members));
}

bool json_is_whole(const struct json_writer *w)
{
    return !w->text || w->len < w->size;
}
