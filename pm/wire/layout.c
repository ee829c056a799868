#include "pm/wire/layout.h"

#include "pm/wire/bytes.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int layout_ranks(int ranks, int nodes, int ppn, int *rank_node)
{
    if (ranks < 1 || nodes < 1 || ppn < 0 || nodes > ranks)
        return 0;
    if (ppn > 0 && ((ranks + ppn - 1) / ppn != nodes))
        return 0;
    int base = ranks / nodes, extra = ranks % nodes, rank = 0;
    for (int node = 0; node < nodes; node++) {
        int here = ppn > 0 ? ppn : base + (node < extra);
        for (int i = 0; i < here && rank < ranks; i++)
            rank_node[rank++] = node;
    }
    return 1;
}

int layout_max_per_node(const int *rank_node, int ranks)
{
    int max = 0, run = 0;
    for (int r = 0; r < ranks; r++) {
        run = r > 0 && rank_node[r] == rank_node[r - 1] ? run + 1 : 1;
        max = run > max ? run : max;
    }
    return max;
}

size_t layout_pmi_mapping(const int *rank_node, int ranks, char *out, size_t size)
{
    size_t used = 0;
#define EMIT(...) used += (size_t)snprintf(used < size ? out + used : NULL, used < size ? size - used : 0, __VA_ARGS__)
    EMIT("(vector");
    for (int r = 0; r < ranks;) {
        int first = rank_node[r], per_node = 0, nodes = 0;
        while (r + per_node < ranks && rank_node[r + per_node] == first)
            per_node++;
        /* as many further nodes, counted up, as hold the same number of ranks */
        while (r < ranks) {
            int here = 0;
            while (r + here < ranks && rank_node[r + here] == first + nodes)
                here++;
            if (here != per_node)
                break;
            r += here;
            nodes++;
        }
        EMIT(",(%d,%d,%d)", first, nodes, per_node);
    }
    EMIT(")");
#undef EMIT
    return used;
}

static bool valid_host(const char *name, size_t len)
{
    if (len == 0 || len > 255 || name[0] == '-')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr(".-_:", name[i]))
            return false;
    return true;
}

static const char *append(struct host_list *hosts, const char *name, size_t len)
{
    if (!valid_host(name, len))
        return "a host name is empty or has characters that no host name has";
    if (hosts->count == LAYOUT_MAX_NODES)
        return "too many hosts";
    char **names = realloc(hosts->names, (size_t)(hosts->count + 1) * sizeof *names);
    if (!names)
        return "out of memory";
    hosts->names = names;
    hosts->names[hosts->count++] = pm_printf("%.*s", (int)len, name);
    return NULL;
}

const char *host_list_parse(struct host_list *hosts, const char *text)
{
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        const char *bad = append(hosts, p, len);
        if (bad)
            return bad;
        p += len;
        if (*p == '\0')
            return NULL;
    }
}

const char *host_list_parse_file(struct host_list *hosts, const char *text)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        const char *p = line, *end = line + len;
        while (p < end && isspace((unsigned char)*p))
            p++;
        size_t name = 0;
        while (p + name < end && !isspace((unsigned char)p[name]) && p[name] != '#' && p[name] != ':')
            name++;
        if (name > 0) {
            const char *bad = append(hosts, p, name);
            if (bad)
                return bad;
        } else if (p < end && *p != '#') {
            return "a host name is empty or has characters that no host name has";
        }
        line += len + (line[len] == '\n');
    }
    return hosts->count ? NULL : "no host in the file";
}

void host_list_free(struct host_list *hosts)
{
    for (int i = 0; i < hosts->count; i++)
        free(hosts->names[i]);
    free(hosts->names);
    *hosts = (struct host_list){0};
}
