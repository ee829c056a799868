#include "pm/run/watchers.h"

#include "pm/wire/bytes.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node number at *p, or -1. */
static long node_at(const char **p)
{
    char *end;
    while (**p == ' ' || **p == '\t')
        (*p)++;
    if (!isdigit((unsigned char)**p))
        return -1;
    long value = strtol(*p, &end, 10);
    *p = end;
    return value;
}

static const char *check_edge(const struct watchers *w, long reader, long watched, int nodes)
{
    int reads = 0;
    if (reader < 0 || watched < 0)
        return "is not \"READER WATCHED\", two node numbers";
    if (reader >= nodes || watched >= nodes)
        return "names a node that the job does not have";
    if (reader == watched)
        return "lets a node watch itself";
    for (int i = 0; i < w->count; i++) {
        reads += w->edges[2 * i] == reader;
        if (w->edges[2 * i] == reader && w->edges[2 * i + 1] == watched)
            return "was there before";
    }
    return reads == WATCHERS_MAX ? "lets a node read more than 16 others" : NULL;
}

const char *watchers_parse(struct watchers *w, const char *text, int nodes, char *why, size_t why_size)
{
    *w = (struct watchers){0};
    size_t lines = 1;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    w->edges = pm_alloc(2 * lines * sizeof *w->edges);
    bool *read = pm_alloc((size_t)nodes * sizeof *read);
    const char *problem = NULL;
    int line = 0;
    while (*text && !problem) {
        const char *end = text + strcspn(text, "#\n");
        line++;
        while (text < end && isspace((unsigned char)*text))
            text++;
        if (text < end) {
            const char *p = text;
            long reader = node_at(&p), watched = node_at(&p);
            p += strspn(p, " \t\r");
            problem = p == end ? check_edge(w, reader, watched, nodes) : "is not \"READER WATCHED\", two node numbers";
            if (!problem) {
                w->edges[2 * w->count] = (int)reader;
                w->edges[2 * w->count++ + 1] = (int)watched;
                read[watched] = true;
            }
        }
        text = end + strcspn(end, "\n");
        text += *text == '\n';
    }
    if (problem)
        snprintf(why, why_size, "line %d %s", line, problem);
    for (int i = 0; i < nodes && !problem && nodes > 1; i++)
        if (!read[i]) {
            snprintf(why, why_size, "nobody reads node %d", i);
            problem = why;
        }
    free(read);
    return problem ? why : NULL;
}
