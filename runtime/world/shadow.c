#include "runtime/world/shadow.h"

#include <stdio.h>
#include <string.h>

enum { NAME_LONGEST = 255 };

bool shadow_name(enum shadow_kind kind, uint64_t job, int set, int rank, const char *path, char out[SHADOW_PATH])
{
    static const char letter[] = {'b', 'n', 'w', 'g', 'm'};
    bool of_all = kind == SHADOW_BEFORE || kind == SHADOW_NONE;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char mark[64];
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strncmp(name, ".keel-", 6) == 0)
        return false;
    if (of_all)
        snprintf(mark, sizeof mark, ".keel-%016llx-%c-", (unsigned long long)job, letter[kind]);
    else if (kind == SHADOW_MAKING)
        snprintf(mark, sizeof mark, ".keel-%016llx-%c%d.%d-", (unsigned long long)job, letter[kind], set, rank);
    else
        snprintf(mark, sizeof mark, ".keel-%016llx-%c%d-", (unsigned long long)job, letter[kind], set);
    if (strlen(mark) + strlen(name) > NAME_LONGEST)
        return false;
    return snprintf(out, SHADOW_PATH, "%.*s%s%s", (int)(name - path), path, mark, name) < SHADOW_PATH;
}

bool shadow_is_system(const char *path)
{
    static const char *const places[] = {"/dev/", "/proc/", "/sys/", "/run/"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}
