/* What a set has in place of a file: set 0 the file, the others what it was before set 0 wrote it, or their own. */
#include "runtime/world/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct world_page *view_of(struct world_page *page, int at, const char *path)
{
    char name[SHADOW_PATH];
    struct stat s;
    if (!page || !page->files || !path || shadow_is_system(path) || !file_name(page, SHADOW_OWN, path, name))
        return NULL;
    return file_stat(at, path, &s) && !S_ISREG(s.st_mode) ? NULL : page;
}

/* ---- set 0 ---- */

/* What is there before the first time is kept. The file gets a new inode, so that who reads the old one goes on to do
 * so. */
static void keep(struct world_page *page, int at, const char *path, bool remake, bool content)
{
    char before[SHADOW_PATH], none[SHADOW_PATH];
    if (!file_name(page, SHADOW_BEFORE, path, before) || !file_name(page, SHADOW_NONE, path, none))
        return;
    int lock = file_lock(at, path);
    if (file_there(at, before) || file_there(at, none) || !file_list(page, at, path)) {
        file_unlock(lock);
        return;
    }
    if (!file_there(at, path))
        (void)file_make(at, none, 0600);
    else if (NEXT(syscall)(SYS_linkat, at, path, at, before, 0) == 0 && remake)
        (void)file_copy(page, at, path, path, path, content);
    file_unlock(lock);
}

/* ---- the others ---- */

/* What the program found at the start; NULL: nothing. Set 0 leaves its marks before it does anything, so the file
 * itself is looked for first. */
static const char *first_one(const struct world_page *page, int at, const char *path, char out[SHADOW_PATH])
{
    char none[SHADOW_PATH];
    if (!file_name(page, SHADOW_BEFORE, path, out) || !file_name(page, SHADOW_NONE, path, none))
        return NULL;
    bool is_there = file_there(at, path);
    if (file_there(at, out))
        return out;
    if (file_there(at, none) || !is_there)
        return NULL;
    strcpy(out, path); // NOLINT(clang-analyzer-security.insecureAPI.strcpy) shorter than the name before
    return out;
}

static const char *seen_by_others(const struct world_page *page, int at, const char *path, char out[SHADOW_PATH])
{
    char gone[SHADOW_PATH];
    if (file_name(page, SHADOW_OWN, path, out) && file_there(at, out))
        return out;
    if (file_name(page, SHADOW_GONE, path, gone) && file_there(at, gone))
        return NULL;
    return first_one(page, at, path, out);
}

const char *view_read(const struct world_page *page, int at, const char *path, char out[SHADOW_PATH])
{
    const char *seen = page->set == 0 ? path : seen_by_others(page, at, path, out);
    if (!seen)
        errno = ENOENT;
    return seen;
}

bool view_has_moved(const struct world_page *page, int at, const char *path, const char *seen)
{
    char again[SHADOW_PATH];
    return page->set > 0 && strcmp(seen, path) == 0 && (!view_read(page, at, path, again) || strcmp(again, seen) != 0);
}

/* Set 0 may begin to write it meanwhile. */
static const char *copied(const struct world_page *page, int at, const char *seen, const char *path, const char *out,
                          int flags, char again[SHADOW_PATH])
{
    do {
        if (seen != again)
            again = strcpy(again, seen); // NOLINT(clang-analyzer-security.insecureAPI.strcpy) of the same length
        if (!file_copy(page, at, again, path, out, !(flags & O_TRUNC)))
            return NULL;
        if (strcmp(again, path) != 0)
            return out;
        seen = first_one(page, at, path, again);
    } while (seen && strcmp(seen, path) != 0);
    if (seen)
        return out;
    file_remove(at, out);
    errno = ENOENT;
    return flags & O_CREAT ? out : NULL;
}

static const char *write_of_others(struct world_page *page, int at, const char *path, int flags, char out[SHADOW_PATH])
{
    char seen_in[SHADOW_PATH], gone[SHADOW_PATH];
    const char *seen = seen_by_others(page, at, path, seen_in);
    bool created = !seen && flags & O_CREAT;
    if ((!seen && !created) || (seen && flags & O_CREAT && flags & O_EXCL)) {
        errno = seen ? EEXIST : ENOENT;
        return NULL;
    }
    if (!file_name(page, SHADOW_OWN, path, out) || !file_name(page, SHADOW_GONE, path, gone) ||
        !file_list(page, at, path))
        return NULL;
    if (seen && strcmp(seen, out) != 0 && !copied(page, at, seen, path, out, flags, seen_in))
        return NULL;
    file_remove(at, gone);
    return out;
}

const char *view_write(struct world_page *page, int at, const char *path, int flags, char out[SHADOW_PATH])
{
    if (page->set > 0)
        return write_of_others(page, at, path, flags, out);
    if (file_there(at, path) ? !(flags & O_EXCL) : flags & O_CREAT)
        keep(page, at, path, true, !(flags & O_TRUNC));
    return path;
}

int view_unlink(struct world_page *page, int at, const char *path)
{
    char own[SHADOW_PATH], gone[SHADOW_PATH];
    if (page->set == 0) {
        if (file_there(at, path))
            keep(page, at, path, false, false);
        return (int)NEXT(syscall)(SYS_unlinkat, at, path, 0);
    }
    if (!view_read(page, at, path, own))
        return -1;
    (void)file_list(page, at, path);
    if (file_name(page, SHADOW_OWN, path, own))
        file_remove(at, own);
    if (file_name(page, SHADOW_GONE, path, gone)) /* also where set 0 alone has made it: it may be there at the end */
        (void)file_make(at, gone, 0600);
    return 0;
}

int view_rename(struct world_page *page, int at, const char *from, int to_at, const char *to)
{
    char own_from[SHADOW_PATH], own_to[SHADOW_PATH], gone[SHADOW_PATH];
    if (page->set == 0) {
        if (file_there(at, from)) {
            keep(page, at, from, true, true); /* its inode is `to` now, which may be written */
            keep(page, to_at, to, false, false);
        }
        return file_rename(at, from, to_at, to) ? 0 : -1;
    }
    if (!view_write(page, at, from, 0, own_from) || !file_name(page, SHADOW_OWN, to, own_to) ||
        !file_list(page, to_at, to) || !file_rename(at, own_from, to_at, own_to))
        return -1;
    if (file_name(page, SHADOW_GONE, from, gone))
        (void)file_make(at, gone, 0600);
    if (file_name(page, SHADOW_GONE, to, gone))
        file_remove(to_at, gone);
    return 0;
}

/* A folder is one for all sets, as each has files in it: each makes it once. */
int view_mkdir(struct world_page *page, int at, const char *path, mode_t mode)
{
    char own[SHADOW_PATH], none[SHADOW_PATH], whole[SHADOW_PATH];
    strcpy(whole, path); // NOLINT(clang-analyzer-security.insecureAPI.strcpy) view_of has made a longer name
    for (size_t n = strlen(whole); n > 1 && whole[n - 1] == '/'; n--)
        whole[n - 1] = '\0';
    if (!file_name(page, SHADOW_OWN, whole, own) || !file_name(page, SHADOW_NONE, whole, none))
        return (int)NEXT(syscall)(SYS_mkdirat, at, path, mode);
    if (!file_there(at, whole) && file_list(page, at, whole))
        (void)file_make(at, none, 0600);
    long rc = NEXT(syscall)(SYS_mkdirat, at, path, mode);
    if (rc != 0 && (errno != EEXIST || !file_there(at, none) || file_there(at, own)))
        return -1;
    (void)file_list(page, at, whole);
    (void)file_make(at, own, 0600);
    return 0;
}
