#include "pm/run/replica_file.h"

#include "pm/run/file_line.h"
#include "pm/wire/bytes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 3 };

struct reading {
    int ranks, replicas;
    int *native;
    bool *taken; /* [ranks * replicas] native ranks */
    struct file_line at;
};

static bool read_number(struct reading *r, const char *what, const char *word, int below, int *out)
{
    char *end;
    long value = isdigit((unsigned char)*word) ? strtol(word, &end, 10) : -1;
    if (value < 0 || value >= below || *end)
        return file_line_wrong(&r->at, "%s is no %s from 0 to %d", word, what, below - 1);
    *out = (int)value;
    return true;
}

static bool read_line(struct reading *r, char *const word[COLUMNS])
{
    int rank = 0, native = 0, replica = 0;
    if (!read_number(r, "rank", word[0], r->ranks, &rank) ||
        !read_number(r, "native rank", word[1], r->ranks * r->replicas, &native) ||
        !read_number(r, "replica", word[2], r->replicas, &replica))
        return false;
    int *at = &r->native[replica * r->ranks + rank];
    if (*at >= 0)
        return file_line_wrong(&r->at, "replica %d of rank %d is native rank %d already", replica, rank, *at);
    if (r->taken[native])
        return file_line_wrong(&r->at, "native rank %d is in a line before", native);
    r->taken[native] = true;
    *at = native;
    return true;
}

static bool read_lines(struct reading *r, char *text, bool *racks)
{
    for (char *line; (line = strsep(&text, "\n"));) {
        char *word[COLUMNS + 1], *next;
        int n = 0;
        r->at.number++;
        line[strcspn(line, "#")] = '\0';
        while ((next = strsep(&line, " \t\r")) && n <= COLUMNS)
            if (*next)
                word[n++] = next;
        if (n == 0)
            continue;
        if (n == 1 && strcmp(word[0], "racks") == 0)
            *racks = true;
        else if (n != COLUMNS)
            return file_line_wrong(&r->at, "is not \"RANK NATIVE REPLICA\", three numbers, and not \"racks\"");
        else if (!read_line(r, word))
            return false;
    }
    return true;
}

bool replica_file_parse(const char *text, int ranks, int replicas, int *native, bool *racks, char *why, size_t len)
{
    int natives = ranks * replicas;
    char *copy = pm_strdup(text);
    struct reading r = {.ranks = ranks,
                        .replicas = replicas,
                        .native = native,
                        .taken = pm_alloc((size_t)natives * sizeof *r.taken),
                        .at = {.why = why, .len = len}};
    for (int i = 0; i < natives; i++)
        native[i] = -1;
    *racks = false;
    bool good = read_lines(&r, copy, racks);
    for (int i = 0; i < natives && good; i++)
        if (native[i] < 0) {
            snprintf(why, len, "replica %d of rank %d is in no line", i / ranks, i % ranks);
            good = false;
        }
    free(r.taken);
    free(copy);
    return good;
}
