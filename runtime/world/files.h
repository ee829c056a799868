/* Files that the program writes (shadow.h). Paths are relative to `at`, as in openat. */
#ifndef KEEL_WORLD_FILES_H
#define KEEL_WORLD_FILES_H

#include <sys/stat.h>
#include <sys/types.h>

#include "runtime/world/shadow.h"
#include "runtime/world/world.h"

/* ---- copy.c: of the host, past our own calls ---- */

int file_open(int at, const char *path, int flags, mode_t mode);
bool file_stat(int at, const char *path, struct stat *s);
bool file_there(int at, const char *path);
void file_remove(int at, const char *path);
bool file_rename(int at, const char *from, int to_at, const char *to);
bool file_make(int at, const char *path, mode_t mode);
bool file_name(const struct world_page *page, enum shadow_kind kind, const char *path, char out[SHADOW_PATH]);
bool file_copy(const struct world_page *page, int at, const char *from, const char *path, const char *to, bool content);
int file_lock(int at, const char *path);
void file_unlock(int lock);
/* The agent is to know of it. False: there is no room. */
bool file_list(struct world_page *page, int at, const char *path);

/* ---- files.c ---- */

int files_open(struct world_page *page, int at, const char *path, int flags, mode_t mode);
int files_mkdir(struct world_page *page, int at, const char *path, mode_t mode);

/* ---- view.c: what a set has in place of a file ---- */

/* The page, where that path is one of those that are looked after; else NULL. */
struct world_page *view_of(struct world_page *page, int at, const char *path);
/* Where the set reads it. Returns out, or NULL with errno: it is not there for the set. */
const char *view_read(const struct world_page *page, int at, const char *path, char out[SHADOW_PATH]);
/* What is open now as `seen` may be what set 0 has written since: look again. */
bool view_has_moved(const struct world_page *page, int at, const char *path, const char *seen);
/* Where the set writes it, with the flags of open; what is in it is there, without O_TRUNC. NULL with errno. */
const char *view_write(struct world_page *page, int at, const char *path, int flags, char out[SHADOW_PATH]);
int view_unlink(struct world_page *page, int at, const char *path);
int view_mkdir(struct world_page *page, int at, const char *path, mode_t mode);
int view_rename(struct world_page *page, int at, const char *from, int to_at, const char *to);
#endif
