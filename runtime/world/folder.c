/* What is in a folder, as a set sees it: its own files by their names, and none that only another set has made. */
#undef _FILE_OFFSET_BITS
#include "runtime/world/files.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static bool beside(const struct world_page *page, int at, enum shadow_kind kind, const char *name)
{
    char path[SHADOW_PATH];
    return file_name(page, kind, name, path) && file_there(at, path);
}

/* name is that of one of the files beside a file (shadow.h), without what all have in front. False: nothing to see. */
static bool stands_for(const struct world_page *page, int at, const char *name, const char **of)
{
    char own[8];
    snprintf(own, sizeof own, "w%d-", page->set);
    *of = strchr(name, '-') + 1;
    if (page->set > 0 && strncmp(name, own, strlen(own)) == 0)
        return true;
    return page->set > 0 && strncmp(name, "b-", 2) == 0 && !file_there(at, *of) && !beside(page, at, SHADOW_OWN, *of) &&
           !beside(page, at, SHADOW_GONE, *of);
}

/* False: it is not for this set. The name may become another one. */
static bool shows(const struct world_page *page, int at, char *name, unsigned char *type)
{
    char mark[32];
    const char *of;
    if (!page || !page->files)
        return true;
    snprintf(mark, sizeof mark, ".keel-%016llx-", (unsigned long long)page->job);
    if (strncmp(name, mark, strlen(mark)) != 0)
        return page->set == 0 || (!beside(page, at, SHADOW_OWN, name) && !beside(page, at, SHADOW_GONE, name) &&
                                  !beside(page, at, SHADOW_NONE, name));
    if (!strchr(name + strlen(mark), '-') || !stands_for(page, at, name + strlen(mark), &of))
        return false;
    memmove(name, of, strlen(of) + 1);
    *type = DT_UNKNOWN;
    return true;
}

#define READDIR(name, type)                                                                                            \
    WORLD_API struct type *name(DIR *folder)                                                                           \
    {                                                                                                                  \
        const struct world_page *page = FILES_FOR_CALLER();                                                            \
        struct type *entry;                                                                                            \
        do                                                                                                             \
            entry = NEXT(name)(folder);                                                                                \
        while (entry && !shows(page, dirfd(folder), entry->d_name, &entry->d_type));                                   \
        return entry;                                                                                                  \
    }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)
