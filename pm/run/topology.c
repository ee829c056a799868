#include "pm/run/topology.h"

#include "pm/run/hosts.h"
#include "pm/wire/bytes.h"
#include "pm/wire/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- switches ---- */

/* The value of a word NAME=value of the line, for free(); NULL: there is none. */
static char *value_of(const char *line, size_t len, const char *name)
{
    size_t key = strlen(name);
    for (size_t i = 0; i + key <= len; i++) {
        if (memcmp(line + i, name, key) != 0 || (i > 0 && line[i - 1] != ' '))
            continue;
        const char *value = line + i + key, *end = memchr(value, ' ', len - i - key);
        return pm_printf("%.*s", (int)(end ? end - value : line + len - value), value);
    }
    return NULL;
}

static int host_of(const struct topology_hosts *hosts, const char *name)
{
    for (int i = 0; i < hosts->count; i++)
        if (strcmp(hosts->name[i], name) == 0)
            return i;
    return -1;
}

struct reading {
    const struct topology_hosts *hosts;
    int *leaf, *at; /* [hosts] the switch, and the place there; -1: not said yet */
    int leaves;     /* that have some */
    int said;       /* leaf switches, of others, too */
    char *why;
    size_t len;
};

static enum topology_result complain(const struct reading *r, const char *what, const char *name)
{
    snprintf(r->why, r->len, what, name);
    return TOPOLOGY_BAD;
}

/* The hosts of one leaf switch. */
static enum topology_result take_leaf(struct reading *r, const char *name, const char *nodes)
{
    struct host_list list = {0};
    char bad[128];
    int here = 0;
    enum topology_result result = TOPOLOGY_FOUND;
    if (!hosts_parse_slurm(&list, nodes, NULL, bad, sizeof bad)) {
        hosts_free(&list);
        return complain(r, "the nodes of switch %s cannot be read", name);
    }
    for (int i = 0; i < list.count && result == TOPOLOGY_FOUND; i++) {
        int host = host_of(r->hosts, list.names[i]);
        if (host < 0)
            continue;
        if (r->leaf[host] >= 0)
            result = complain(r, "%s is on two leaf switches", list.names[i]);
        r->leaf[host] = r->leaves;
        r->at[host] = here++;
    }
    r->leaves += here > 0;
    r->said++;
    hosts_free(&list);
    return result;
}

static enum topology_result take_line(struct reading *r, const char *line, size_t len)
{
    char *name = value_of(line, len, "SwitchName="), *level = value_of(line, len, "Level="),
         *nodes = value_of(line, len, "Nodes=");
    enum topology_result result = TOPOLOGY_FOUND;
    if (name && level && nodes && strcmp(level, "0") == 0)
        result = take_leaf(r, name, nodes);
    free(name);
    free(level);
    free(nodes);
    return result;
}

/* Of what was read of all lines. */
static enum topology_result stand(const struct reading *r, int size[2], int *place_of)
{
    size[0] = r->leaves;
    size[1] = 0;
    for (int i = 0; i < r->hosts->count; i++) {
        if (r->leaf[i] < 0)
            return complain(r, "host %s of the job is on no leaf switch", r->hosts->name[i]);
        size[1] = r->at[i] >= size[1] ? r->at[i] + 1 : size[1];
    }
    if ((long long)size[0] * size[1] > LIMIT_NODES)
        return complain(r, "the grid of its switches has too many places%s", "");
    for (int i = 0; i < r->hosts->count; i++)
        place_of[i] = r->leaf[i] + size[0] * r->at[i];
    return TOPOLOGY_FOUND;
}

enum topology_result topology_of_switches(const struct topology_hosts *hosts, const char *text, int size[2],
                                          int *place_of, char *why, size_t len)
{
    size_t count = (size_t)hosts->count + 1;
    struct reading r = {.hosts = hosts,
                        .leaf = pm_alloc(count * sizeof *r.leaf),
                        .at = pm_alloc(count * sizeof *r.at),
                        .why = why,
                        .len = len};
    enum topology_result result = TOPOLOGY_FOUND;
    for (int i = 0; i < hosts->count; i++)
        r.leaf[i] = -1;
    while (*text && result == TOPOLOGY_FOUND) {
        size_t line = strcspn(text, "\n");
        result = take_line(&r, text, line);
        text += line + (text[line] == '\n');
    }
    if (result == TOPOLOGY_FOUND)
        result = r.said ? stand(&r, size, place_of) : TOPOLOGY_SILENT;
    free(r.leaf);
    free(r.at);
    return result;
}

/* ---- a torus ---- */

static int coordinate(char c)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

enum topology_result topology_of_names(const struct topology_hosts *hosts, int size[3], int *place_of, char *why,
                                       size_t len)
{
    size[0] = size[1] = size[2] = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < hosts->count; i++) {
            const char *name = hosts->name[i];
            size_t n = strlen(name);
            int at[3] = {-1, -1, -1};
            for (int d = 0; d < 3 && n > 3; d++) {
                at[d] = coordinate(name[n - 3 + (size_t)d]);
                size[d] = at[d] >= size[d] ? at[d] + 1 : size[d];
            }
            if (at[0] < 0 || at[1] < 0 || at[2] < 0) {
                snprintf(why, len, "host %s does not end with three coordinates", name);
                return TOPOLOGY_BAD;
            }
            place_of[i] = at[0] + size[0] * (at[1] + size[1] * at[2]);
        }
    for (int i = 0; i < hosts->count; i++)
        for (int k = 0; k < i; k++)
            if (place_of[i] == place_of[k]) {
                snprintf(why, len, "hosts %s and %s have the same coordinates", hosts->name[k], hosts->name[i]);
                return TOPOLOGY_BAD;
            }
    return TOPOLOGY_FOUND;
}
