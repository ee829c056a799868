#include "runtime/base/racks.h"

#include <ctype.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Always false, with why it is. */
__attribute__((format(printf, 3, 4))) static bool no(char *why, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, size, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- does a name stand in a list? ---- */

/* Is what the digits say in 01-16,20 ? A number that begins with a zero says how many digits there are. */
static bool in_ranges(const char *ranges, const char *end, const char *digits, size_t n)
{
    unsigned long long value = strtoull(digits, NULL, 10);
    while (ranges < end) {
        char *after;
        unsigned long long low = strtoull(ranges, &after, 10), high = low;
        size_t width = (size_t)(after - ranges);
        bool padded = width > 1 && ranges[0] == '0';
        if (*after == '-')
            high = strtoull(after + 1, &after, 10);
        if (value >= low && value <= high && (padded ? n == width : digits[0] != '0' || n == 1))
            return true;
        ranges = *after == ',' ? after + 1 : end;
    }
    return false;
}

/* node[1-4]x against the first len characters of a host's name. */
static bool matches_pattern(const char *pattern, const char *end, const char *host, size_t len)
{
    size_t at = 0;
    while (pattern < end) {
        const char *close = *pattern == '[' ? memchr(pattern, ']', (size_t)(end - pattern)) : NULL;
        if (!close) {
            if (at == len || *pattern++ != host[at++])
                return false;
            continue;
        }
        size_t digits = 0;
        while (at + digits < len && isdigit((unsigned char)host[at + digits]))
            digits++;
        if (!digits || !in_ranges(pattern + 1, close, host + at, digits))
            return false;
        at += digits;
        pattern = close + 1;
    }
    return at == len;
}

static bool matches_host(const char *pattern, const char *end, const char *host)
{
    const char *dot = strchr(host, '.'), *pattern_dot = memchr(pattern, '.', (size_t)(end - pattern));
    if (matches_pattern(pattern, end, host, strlen(host)))
        return true;
    if (dot && !pattern_dot)
        return matches_pattern(pattern, end, host, (size_t)(dot - host));
    return pattern_dot && !dot && matches_pattern(pattern, pattern_dot, host, strlen(host));
}

/* Commas between brackets do not separate. */
static bool list_has(const char *list, const char *end, const char *host)
{
    while (list < end) {
        const char *item = list;
        for (bool inside = false; list < end && (inside || *list != ','); list++)
            inside = *list == '[' || (inside && *list != ']');
        if (matches_host(item, list, host))
            return true;
        list++;
    }
    return false;
}

/* Numbers, ranges and commas between [ and ], else as it comes. */
static bool is_good_list(const char *list, const char *end)
{
    bool inside = false;
    for (; list < end; list++) {
        if (inside ? !isdigit((unsigned char)*list) && !strchr("-,]", *list) : *list == ']')
            return false;
        inside = *list == '[' || (inside && *list != ']');
    }
    return !inside;
}

/* ---- the file ---- */

static const char *skip_spaces(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

static const char *word_end(const char *p, const char *end)
{
    while (p < end && !isspace((unsigned char)*p))
        p++;
    return p;
}

/* A line without its comment, from its first word on. */
static bool read_line(const char *line, const char *end, const char *host, int number, struct rack_names *out,
                      char *why, size_t size)
{
    const char *list = line, *list_end = word_end(line, end);
    struct rack_names here = {0};
    if (!is_good_list(list, list_end))
        return no(why, size, "line %d: %.*s is no list of hosts", number, (int)(list_end - list), list);
    for (const char *p = skip_spaces(list_end, end); p < end;) {
        const char *word = p;
        p = word_end(p, end);
        if (here.levels == RACK_LEVELS_MAX)
            return no(why, size, "line %d: more than %d switches", number, RACK_LEVELS_MAX - 1);
        if (p - word >= RACK_NAME_MAX)
            return no(why, size, "line %d: %.*s is longer than %d characters", number, (int)(p - word), word,
                      RACK_NAME_MAX - 1);
        memcpy(here.name[here.levels++], word, (size_t)(p - word));
        p = skip_spaces(p, end);
    }
    if (!here.levels)
        return no(why, size, "line %d is not \"HOSTS RACK [SWITCH ...]\"", number);
    if (!list_has(list, list_end, host))
        return true;
    if (out->levels && strcmp(out->name[0], here.name[0]) != 0)
        return no(why, size, "line %d: host %s is in rack %s, and in rack %s", number, host, out->name[0],
                  here.name[0]);
    *out = here;
    return true;
}

bool racks_find(const char *text, const char *host, struct rack_names *out, char *why, size_t size)
{
    *out = (struct rack_names){0};
    for (int number = 1; *text; number++) {
        const char *end = text + strcspn(text, "#\n"), *line = skip_spaces(text, end);
        if (line < end && !read_line(line, end, host, number, out, why, size))
            return false;
        text = end + strcspn(end, "\n");
        text += *text == '\n';
    }
    return out->levels || no(why, size, "host %s is in no line", host);
}

/* ---- the expression ---- */

bool racks_match(const char *expression, const char *host, struct rack_names *out, char *why, size_t size)
{
    regex_t compiled;
    regmatch_t found[2];
    char text[128];
    *out = (struct rack_names){0};
    int error = regcomp(&compiled, expression, REG_EXTENDED);
    if (error) {
        regerror(error, &compiled, text, sizeof text);
        return no(why, size, "%s is no regular expression: %s", expression, text);
    }
    bool matched = regexec(&compiled, host, 2, found, 0) == 0;
    regfree(&compiled);
    const regmatch_t *part = &found[matched && found[1].rm_so >= 0];
    if (!matched || part->rm_eo == part->rm_so)
        return no(why, size, "%s finds no rack in host %s", expression, host);
    if (part->rm_eo - part->rm_so >= RACK_NAME_MAX)
        return no(why, size, "the rack of host %s is longer than %d characters", host, RACK_NAME_MAX - 1);
    out->levels = 1;
    memcpy(out->name[0], host + part->rm_so, (size_t)(part->rm_eo - part->rm_so));
    return true;
}

/* ---- numbers ---- */

static const char *name_at(const char *const *host, const struct rack_names *racks, int level, int node)
{
    return level == 0 ? host[node] : racks[node].name[level - 1];
}

/* True: it tells some apart, and, hosts only, holds some together. */
static bool number_level(const char *const *host, const struct rack_names *racks, int level, int n, int *domain)
{
    int names = 0;
    for (int m = 0; m < n; m++) {
        int same = 0;
        while (same < m && strcmp(name_at(host, racks, level, same), name_at(host, racks, level, m)) != 0)
            same++;
        domain[m] = same < m ? domain[same] : names++;
    }
    return names > 1 && (level > 0 || names < n);
}

static bool check_racks(const char *const *host, const struct rack_names *racks, int n, char *why, size_t size)
{
    for (int m = 1; m < n; m++) {
        if (racks[m].levels != racks[0].levels)
            return no(why, size, "host %s has %d switches, host %s %d", host[0], racks[0].levels - 1, host[m],
                      racks[m].levels - 1);
        for (int level = 1; level < racks[m].levels; level++)
            for (int k = 0; k < m; k++)
                if (strcmp(racks[k].name[level - 1], racks[m].name[level - 1]) == 0 &&
                    strcmp(racks[k].name[level], racks[m].name[level]) != 0)
                    return no(why, size, "%s is behind switch %s, and behind switch %s", racks[m].name[level - 1],
                              racks[k].name[level], racks[m].name[level]);
    }
    return true;
}

bool racks_number(struct copy_rule *rule, int *domain, const char *const *host, const struct rack_names *racks, int n,
                  char *why, size_t size)
{
    int known = racks ? racks[0].levels : 0;
    rule->levels = 0;
    rule->domain = domain;
    rule->hosts_told = false;
    if (racks && !check_racks(host, racks, n, why, size))
        return false;
    for (int level = 0; level <= known; level++) {
        bool tells = number_level(host, racks, level, n, &domain[rule->levels * n]);
        if (level == 1 && !tells && n > 1)
            return no(why, size, "rack %s holds all %d nodes: no copy would be in another one", racks[0].name[0], n);
        rule->hosts_told = rule->hosts_told || (level == 0 && tells);
        rule->levels += tells;
    }
    return true;
}

const char *racks_level_name(const struct copy_rule *rule, int level)
{
    if (level == 1 && rule->hosts_told)
        return "host";
    return level == 1 + rule->hosts_told ? "rack" : "switch";
}
