#include "runtime/base/room.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 1024 };

static FILE *open_below(const char *root, const char *folder, const char *file)
{
    char path[PATH];
    int n = snprintf(path, sizeof path, "%s%s/%s", root, folder, file);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* The number in the file; false: there is none ("max"), or no such file. */
static bool read_number(const char *root, const char *folder, const char *file, uint64_t *value)
{
    FILE *f = open_below(root, folder, file);
    bool any = f && fscanf(f, "%" SCNu64, value) == 1; // NOLINT(cert-err34-c): what the kernel wrote
    if (f)
        fclose(f);
    return any;
}

/* The sum of the values of lines "name value". */
static uint64_t read_lines(const char *root, const char *folder, const char *file, const char *const *names, int n)
{
    FILE *f = open_below(root, folder, file);
    char name[64];
    uint64_t value, sum = 0;
    while (f && fscanf(f, "%63s %" SCNu64 "%*[^\n]", name, &value) == 2) // NOLINT(cert-err34-c)
        for (int i = 0; i < n; i++)
            if (strcmp(name, names[i]) == 0)
                sum += value;
    if (f)
        fclose(f);
    return sum;
}

/* What is limited, in groups of version 1 (with a mount for each controller) or 2. */
struct version {
    const char *controllers; /* the beginning of its line in /proc/self/cgroup, behind the number */
    const char *mount, *limit, *usage;
    const char *cache[2]; /* files' pages, which the kernel gives up first */
};

static const struct version memory[] = {
    {":memory:",
     "/sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}}};
static const struct version processes[] = {{":pids:", "/sys/fs/cgroup/pids", "pids.max", "pids.current", {NULL, NULL}},
                                           {"::", "/sys/fs/cgroup", "pids.max", "pids.current", {NULL, NULL}}};

/* What is left in the group that has least, and what that one's limit is. */
struct room {
    uint64_t left, limit;
};

static const struct room endless = {UINT64_MAX, UINT64_MAX};

static struct room less(struct room a, struct room b)
{
    return b.left < a.left ? b : a;
}

static struct room room_of(const char *root, const struct version *v, const char *folder)
{
    uint64_t limit, usage;
    if (!read_number(root, folder, v->limit, &limit) || !read_number(root, folder, v->usage, &usage))
        return endless;
    uint64_t cache = v->cache[0] ? read_lines(root, folder, "memory.stat", v->cache, 2) : 0;
    usage -= cache < usage ? cache : usage;
    return (struct room){usage < limit ? limit - usage : 0, limit};
}

/* The group and all that it is in. In a container the path may be one that only the host has: then the mount is the
 * group. */
static struct room room_of_groups(const char *root, const struct version *v, const char *group)
{
    char folder[PATH];
    struct room least = endless;
    size_t mount = strlen(v->mount);
    int n = snprintf(folder, sizeof folder, "%s%s", v->mount, group);
    if (n < 0 || (size_t)n >= sizeof folder)
        return least;
    for (char *end = folder + n; end >= folder + mount; end--) {
        if (*end != '/' && *end != 0)
            continue;
        *end = 0;
        least = less(least, room_of(root, v, folder));
    }
    return least;
}

static struct room room_of_all(const char *root, const struct version versions[2])
{
    struct room least = endless;
    FILE *f = open_below(root, "/proc/self", "cgroup");
    char line[PATH];
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        const char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        for (int i = 0; i < 2; i++)
            if (strncmp(controllers, versions[i].controllers, strlen(versions[i].controllers)) == 0)
                least = less(least, room_of_groups(root, &versions[i], group + 1));
    }
    if (f)
        fclose(f);
    return least;
}

uint64_t room_bytes(const char *root)
{
    static const char *const available = "MemAvailable:";
    uint64_t kib = read_lines(root, "/proc", "meminfo", &available, 1);
    uint64_t least = kib ? kib * 1024 : UINT64_MAX, left = room_of_all(root, memory).left;
    return left < least ? left : least;
}

uint64_t room_processes(const char *root, uint64_t *limit)
{
    struct room room = room_of_all(root, processes);
    *limit = room.limit;
    return room.left;
}

uint64_t room_ever(const char *root)
{
    enum { PROMISE_ALL = 1 };
    static const char *const all[] = {"MemTotal:", "SwapTotal:"};
    uint64_t kib = read_lines(root, "/proc", "meminfo", all, 2), how = 0;
    if (read_number(root, "/proc/sys/vm", "overcommit_memory", &how) && how == PROMISE_ALL)
        return UINT64_MAX;
    return kib ? kib * 1024 : UINT64_MAX;
}
