/* Names of temporary files: from the process's random bytes, so that they are the same in all sets. */
#undef _FILE_OFFSET_BITS
#include "runtime/world/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LETTERS = 6, TRIES = 100 };
enum made { MADE_FILE, MADE_FOLDER, MADE_NAME };

static int try_one(struct world_page *page, const char *name, enum made what, int flags)
{
    char seen_in[SHADOW_PATH];
    const struct world_page *of = view_of(page, AT_FDCWD, name);
    if (what == MADE_FILE)
        return files_open(page, AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
    if (what == MADE_FOLDER)
        return files_mkdir(page, AT_FDCWD, name, 0700);
    const char *seen = of ? view_read(of, AT_FDCWD, name, seen_in) : name;
    errno = EEXIST;
    return seen && file_there(AT_FDCWD, seen) ? -1 : 0;
}

/* The last six letters before the suffix, which are XXXXXX. */
static int make(struct world_page *page, char *name, int suffix, enum made what, int flags)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(name);
    char *at = name + len - (size_t)suffix - LETTERS;
    if (suffix < 0 || len < (size_t)suffix + LETTERS || strncmp(at, "XXXXXX", LETTERS) != 0) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < TRIES; i++) {
        uint8_t random[LETTERS];
        world_random(page, random, sizeof random);
        for (int k = 0; k < LETTERS; k++)
            at[k] = letters[random[k] % (sizeof letters - 1)];
        int made = try_one(page, name, what, flags);
        if (made >= 0 || errno != EEXIST)
            return made;
    }
    return -1;
}

/* NULL: it is not looked after. */
static struct world_page *temporary(struct world_page *page, const char *name)
{
    return page && page->files && page->clocks && !shadow_is_system(name) ? page : NULL;
}

#define MKSTEMP(name, parameters, suffix, flags, ...)                                                                  \
    WORLD_API int name parameters                                                                                      \
    {                                                                                                                  \
        struct world_page *page = temporary(FILES_FOR_CALLER(), template);                                             \
        return page ? make(page, template, suffix, MADE_FILE, flags) : NEXT(name)(__VA_ARGS__);                        \
    }
MKSTEMP(mkstemp, (char *template), 0, 0, template)
MKSTEMP(mkstemp64, (char *template), 0, 0, template)
MKSTEMP(mkostemp, (char *template, int flags), 0, flags, template, flags)
MKSTEMP(mkostemp64, (char *template, int flags), 0, flags, template, flags)
MKSTEMP(mkstemps, (char *template, int suffix), suffix, 0, template, suffix)
MKSTEMP(mkstemps64, (char *template, int suffix), suffix, 0, template, suffix)
MKSTEMP(mkostemps, (char *template, int suffix, int flags), suffix, flags, template, suffix, flags)
MKSTEMP(mkostemps64, (char *template, int suffix, int flags), suffix, flags, template, suffix, flags)

WORLD_API char *mkdtemp(char *template)
{
    struct world_page *page = temporary(FILES_FOR_CALLER(), template);
    if (!page)
        return NEXT(mkdtemp)(template);
    return make(page, template, 0, MADE_FOLDER, 0) == 0 ? template : NULL;
}

/* ---- names alone ---- */

WORLD_API char *mktemp(char *template)
{
    struct world_page *page = temporary(FILES_FOR_CALLER(), template);
    if (!page)
        return NEXT(mktemp)(template);
    if (make(page, template, 0, MADE_NAME, 0) != 0)
        *template = '\0';
    return template;
}

static char *name_in(struct world_page *page, char *out, size_t room, const char *folder, const char *prefix)
{
    int n = snprintf(out, room, "%s/%.5sXXXXXX", folder, prefix);
    return n > 0 && (size_t)n < room && make(page, out, 0, MADE_NAME, 0) == 0 ? out : NULL;
}

WORLD_API char *tmpnam(char out[L_tmpnam])
{
    static char own[L_tmpnam];
    struct world_page *page = temporary(FILES_FOR_CALLER(), P_tmpdir);
    return page ? name_in(page, out ? out : own, L_tmpnam, P_tmpdir, "file") : NEXT(tmpnam)(out);
}

WORLD_API char *tmpnam_r(char out[L_tmpnam])
{
    struct world_page *page = out ? temporary(FILES_FOR_CALLER(), P_tmpdir) : NULL;
    return page ? name_in(page, out, L_tmpnam, P_tmpdir, "file") : NEXT(tmpnam_r)(out);
}

/* The folder that the environment names comes first, as in the C library. */
WORLD_API char *tempnam(const char *folder, const char *prefix)
{
    const char *set = getenv("TMPDIR"), *in = set && *set ? set : folder ? folder : P_tmpdir;
    struct world_page *page = temporary(FILES_FOR_CALLER(), in);
    char name[SHADOW_PATH];
    if (!page || !file_there(AT_FDCWD, in))
        return NEXT(tempnam)(folder, prefix);
    return name_in(page, name, sizeof name, in, prefix ? prefix : "file") ? strdup(name) : NULL;
}
