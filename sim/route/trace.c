#include "sim/route/trace.h"

#include "runtime/base/user_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIELDS_MAX = 40, LINE_MAX_BYTES = 8192 };

static const char *const header[] = {
    [TRACE_LANL] = "System,machine type,",
    [TRACE_LANL_EXTRACT] = "start,end,node,cause",
    [TRACE_PNNL] = "Date,Hardware Identifier,What Failed",
    [TRACE_PNNL_EXTRACT] = "time,hw,what",
};
static const int columns[] = {26, 5, 5, 5};

void trace_fini(struct trace *t)
{
    free(t->record);
    *t = (struct trace){0};
}

/* Split one line in place at commas outside of quotes; quotes are taken off. returns fields, or -1: quotes do not
 * match, or too many fields. */
static int split(char *line, char *field[FIELDS_MAX])
{
    int n = 0;
    char *in = line, *out = line;
    for (;;) {
        if (n == FIELDS_MAX)
            return -1;
        field[n++] = out;
        bool quoted = false;
        for (; *in && (quoted || *in != ','); in++) {
            if (*in == '"')
                quoted = !quoted;
            else
                *out++ = *in;
        }
        if (quoted)
            return -1;
        bool more = *in == ',';
        in += more;
        *out++ = '\0';
        if (!more)
            return n;
    }
}

/* "6/21/2005 10:54" or "2005-06-21 10:54:00". */
static bool parse_time(const char *text, int64_t *seconds)
{
    int y, mo, d, h, mi, s = 0, used = 0;
    if (sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d%n", &y, &mo, &d, &h, &mi, &s, &used) != 6) {
        s = used = 0;
        if (sscanf(text, "%2d/%2d/%4d %2d:%2d%n", &mo, &d, &y, &h, &mi, &used) != 5)
            return false;
    }
    if (text[used] != '\0' || y < 1970 || y > 2200 || mo < 1 || mo > 12 || d < 1 || d > 31 || h < 0 || h > 23 ||
        mi < 0 || mi > 59 || s < 0 || s > 60)
        return false;
    struct tm tm = {.tm_year = y - 1900, .tm_mon = mo - 1, .tm_mday = d, .tm_hour = h, .tm_min = mi, .tm_sec = s};
    *seconds = timegm(&tm);
    return tm.tm_mday == d; /* 31 April would have moved on */
}

static bool parse_node(const char *text, uint64_t *node)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *node = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0 && *node < 1u << 30;
}

/* "node 604", or a switch: any fixed number will do. */
static uint64_t hardware_node(const char *text)
{
    uint64_t node, hash = 0xcbf29ce484222325u;
    if (strncmp(text, "node ", 5) == 0 && parse_node(text + 5, &node))
        return node;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)tolower((unsigned char)*text)) * 0x100000001b3u;
    return hash >> 20;
}

static bool is_quadrics(const char *what)
{
    return strcmp(what, "ELAN3") == 0 || strcmp(what, "ELAN4") == 0 || strcmp(what, "QSW") == 0;
}

/* One row. *keep: it is one of those asked for; of others only the columns are checked. returns NULL or what is wrong.
 */
static const char *parse_row(enum trace_format format, char **field, int n, const struct trace_options *o,
                             struct trace_record *r, bool *keep)
{
    if (n != columns[format])
        return "the number of columns is not that of the header";
    *keep = true;
    r->end_s = -1;
    if (format == TRACE_PNNL || format == TRACE_PNNL_EXTRACT) {
        r->node = hardware_node(field[1]);
        *keep = format == TRACE_PNNL_EXTRACT || o->all || is_quadrics(field[2]);
        return !*keep || parse_time(field[0], &r->start_s) ? NULL : "the time is malformed";
    }
    bool full = format == TRACE_LANL;
    if (full) {
        uint64_t system;
        if (!parse_node(field[0], &system))
            return "the system is not a number";
        *keep =
            (!o->system || system == (uint64_t)o->system) && (o->all || strncmp(field[20], "Interconnect", 12) == 0);
        if (!*keep)
            return NULL;
    }
    if (!parse_node(field[full ? 6 : 2], &r->node))
        return "the node is not a number";
    if (!parse_time(field[full ? 16 : 0], &r->start_s))
        return "the start time is malformed";
    if (!parse_time(field[full ? 17 : 1], &r->end_s))
        return "the end time is malformed";
    return r->end_s < r->start_s ? "the failure ends before it starts" : NULL;
}

static bool add(struct trace *t, const struct trace_record *r)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 256;
        struct trace_record *more = realloc(t->record, cap * sizeof *more);
        if (!more)
            return false;
        t->record = more;
        t->cap = cap;
    }
    t->record[t->n++] = *r;
    return true;
}

static int by_start(const void *pa, const void *pb)
{
    const struct trace_record *a = pa, *b = pb;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->end_s < b->end_s ? -1 : a->end_s > b->end_s;
}

static bool find_format(const char *line, enum trace_format *format)
{
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        if (strncmp(line, header[i], strlen(header[i])) == 0) {
            *format = (enum trace_format)i;
            return true;
        }
    return false;
}

/* returns NULL or what is wrong with this line. */
static const char *parse_line(struct trace *t, char *line, bool first, const struct trace_options *o)
{
    if (first)
        return find_format(line, &t->format) ? NULL : "the header is none of a known failure log";
    if (*line == '\0')
        return NULL;
    t->rows++;
    char *field[FIELDS_MAX];
    struct trace_record r;
    bool keep = false;
    int n = split(line, field);
    const char *wrong =
        n < 0 ? "the quotes do not match, or there are too many columns" : parse_row(t->format, field, n, o, &r, &keep);
    if (wrong) {
        t->bad += o->skip_bad;
        return o->skip_bad ? NULL : wrong;
    }
    return !keep || add(t, &r) ? NULL : "out of memory";
}

bool trace_parse(struct trace *t, const char *text, size_t len, const char *name, const struct trace_options *o,
                 char what[TRACE_WHAT])
{
    *t = (struct trace){0};
    char line[LINE_MAX_BYTES];
    const char *wrong = len == 0 ? "the file is empty" : user_text_mark(text, len);
    size_t number = 0;
    for (size_t at = 0; at < len && !wrong;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = (end ? (size_t)(end - text) : len) - at, next = at + n + 1;
        number++;
        if (n && text[at + n - 1] == '\r')
            n--;
        if (n >= sizeof line || memchr(text + at, '\0', n)) {
            t->bad += o->skip_bad && number > 1;
            t->rows++;
            wrong = o->skip_bad && number > 1 ? NULL : "the line is too long or not text";
        } else {
            memcpy(line, text + at, n);
            line[n] = '\0';
            wrong = parse_line(t, line, number == 1, o);
        }
        at = next;
    }
    if (wrong) {
        snprintf(what, TRACE_WHAT, "%.100s:%zu: %s", name, number ? number : 1, wrong);
        trace_fini(t);
        return false;
    }
    if (t->n)
        qsort(t->record, t->n, sizeof *t->record, by_start);
    return true;
}
