/* The manifest of a save: lines of text, the last of which is the digest of those before. */
#include "runtime/save/save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 256, HEX = 2 * SAVE_SUM + 1, RANKS_MAX = 1 << 22, BLOCK = 1 << 20, MANIFEST_MAX = 1 << 30 };

bool save_manifest_room(struct save_manifest *m, uint64_t ranks)
{
    *m = (struct save_manifest){.ranks = ranks, .rank = calloc(ranks, sizeof *m->rank)};
    return m->rank;
}

void save_manifest_free(struct save_manifest *m)
{
    free(m->rank);
    m->rank = NULL;
}

char *save_manifest_text(const struct save_manifest *m, size_t *len)
{
    const size_t max = (size_t)(m->ranks + 3) * LINE;
    char *text = malloc(max), hex[HEX];
    if (!text)
        return NULL;
    size_t n = (size_t)snprintf(text, max, "keel-save 1\nranks %llu version %llu\n", (unsigned long long)m->ranks,
                                (unsigned long long)m->version);
    for (uint64_t r = 0; r < m->ranks; r++) {
        const struct save_entry *e = &m->rank[r];
        sodium_bin2hex(hex, sizeof hex, e->sum, SAVE_SUM);
        n += (size_t)snprintf(text + n, max - n, "%s %llu %s\n", e->name, (unsigned long long)e->bytes, hex);
    }
    uint8_t sum[SAVE_SUM];
    crypto_generichash(sum, sizeof sum, (const uint8_t *)text, n, NULL, 0);
    sodium_bin2hex(hex, sizeof hex, sum, sizeof sum);
    *len = n + (size_t)snprintf(text + n, max - n, "digest %s\n", hex);
    return text;
}

/* The next line, without its end; false: there is none. */
static bool take_line(const char **at, const char *end, char line[LINE])
{
    const char *stop = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (!stop || stop - *at >= LINE || memchr(*at, 0, (size_t)(stop - *at)))
        return false;
    memcpy(line, *at, (size_t)(stop - *at));
    line[stop - *at] = 0;
    *at = stop + 1;
    return true;
}

static bool unhex(const char *hex, uint8_t sum[SAVE_SUM])
{
    size_t n;
    return strlen(hex) == HEX - 1 && sodium_hex2bin(sum, SAVE_SUM, hex, HEX - 1, NULL, &n, NULL) == 0 && n == SAVE_SUM;
}

static bool take_number(const char *text, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    *out = strtoull(text, &end, 10);
    return !*end;
}

static bool take_entry(const char **at, const char *end, struct save_entry *e)
{
    char line[LINE], *word = line, *bytes, *hex;
    if (!take_line(at, end, line) || !(bytes = strchr(line, ' ')) || !(hex = strchr(bytes + 1, ' ')))
        return false;
    *bytes++ = 0;
    *hex++ = 0;
    if (!*word || strlen(word) >= SAVE_NAME || strchr(word, '/'))
        return false;
    memcpy(e->name, word, strlen(word) + 1);
    return take_number(bytes, &e->bytes) && unhex(hex, e->sum);
}

static bool is_whole(const char *text, size_t len, size_t *body)
{
    static const char word[] = "\ndigest ";
    const size_t tail = sizeof word - 1 + HEX;
    uint8_t sum[SAVE_SUM];
    char hex[HEX];
    if (len < tail || memcmp(text + len - tail, word, sizeof word - 1) != 0 || text[len - 1] != '\n')
        return false;
    *body = len - tail + 1;
    crypto_generichash(sum, sizeof sum, (const uint8_t *)text, *body, NULL, 0);
    sodium_bin2hex(hex, sizeof hex, sum, sizeof sum);
    return memcmp(hex, text + len - HEX, HEX - 1) == 0;
}

bool save_manifest_parse(const char *text, size_t len, struct save_manifest *m, char *why)
{
    const char *at = text, *end;
    char line[LINE];
    size_t body = 0;
    unsigned long long ranks = 0, version = 0;
    int n = 0;
    *m = (struct save_manifest){0};
    snprintf(why, SAVE_WHY, "the manifest is not what was written: it has another digest, or none");
    if (!is_whole(text, len, &body))
        return false;
    end = text + body;
    snprintf(why, SAVE_WHY, "the manifest is of another version of Keel, or no manifest");
    if (!take_line(&at, end, line) || strcmp(line, "keel-save 1") != 0 || !take_line(&at, end, line) ||
        sscanf(line, "ranks %llu version %llu%n", &ranks, &version, &n) != 2 || line[n] || !ranks || ranks > RANKS_MAX)
        return false;
    if (!save_manifest_room(m, ranks)) {
        snprintf(why, SAVE_WHY, "out of memory");
        return false;
    }
    m->version = version;
    bool good = true;
    for (uint64_t r = 0; r < ranks && good; r++)
        good = take_entry(&at, end, &m->rank[r]);
    if (good && at == end)
        return true;
    save_manifest_free(m);
    return false;
}

void save_folder(char folder[SAVE_PATH], const char *path)
{
    const char *last = strrchr(path, '/');
    snprintf(folder, SAVE_PATH, "%.*s", last ? (int)(last - path) : 1, last ? path : ".");
}

bool save_manifest_write(const char *folder, const struct save_job *job, const struct save_manifest *m, char *why)
{
    struct save_file f;
    uint8_t sum[SAVE_SUM];
    char name[SAVE_NAME];
    size_t len;
    char *text = save_manifest_text(m, &len);
    save_name(name, job, m->version, SAVE_MANIFEST);
    snprintf(why, SAVE_WHY, "out of memory");
    bool done = text && save_create(&f, folder, name, why);
    if (done && !save_append(&f, text, len, why)) {
        save_drop(&f);
        done = false;
    }
    free(text);
    return done && save_finish(&f, sum, why);
}

bool save_manifest_read(const char *path, struct save_manifest *m, char *why)
{
    struct save_file f;
    char folder[SAVE_PATH];
    const char *last = strrchr(path, '/');
    save_folder(folder, path);
    if (!save_open(&f, folder, last ? last + 1 : path, why))
        return false;
    off_t len = lseek(f.fd, 0, SEEK_END);
    char *text = len > 0 && len < MANIFEST_MAX ? malloc((size_t)len) : NULL;
    snprintf(why, SAVE_WHY, "%s is no manifest", f.path);
    bool good = text && lseek(f.fd, 0, SEEK_SET) == 0 && save_next(&f, text, (size_t)len, why);
    close(f.fd);
    good = good && save_manifest_parse(text, (size_t)len, m, why);
    free(text);
    return good;
}

/* What it names has not been taken away for a later one; one that cannot be read is not passed over in silence. */
static bool has_its_files(const char *folder, const char *path)
{
    struct save_manifest m;
    char file[SAVE_PATH + SAVE_NAME], why[SAVE_WHY];
    bool all = true;
    if (!save_manifest_read(path, &m, why))
        return true;
    for (uint64_t r = 0; r < m.ranks && all; r++) {
        snprintf(file, sizeof file, "%s/%s", folder, m.rank[r].name);
        all = access(file, F_OK) == 0;
    }
    save_manifest_free(&m);
    return all;
}

/* Not something that another user has put there, who may in a folder with a sticky bit: it is passed by. */
static bool may_be_ours(int dir, const char *name)
{
    struct stat in, st;
    return fstat(dir, &in) == 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_uid == geteuid() || !st.st_uid || st.st_uid == in.st_uid);
}

/* The manifest of the greatest version; whole: of those whose files are all there; anybody: whoever has put it there.
 * False: there is none. */
static bool greatest(DIR *d, const char *where, bool whole, bool anybody, char path[SAVE_PATH])
{
    uint64_t best = 0;
    bool any = false;
    char here[SAVE_PATH];
    rewinddir(d);
    for (struct dirent *e; (e = readdir(d));) {
        struct save_named f;
        int n = snprintf(here, sizeof here, "%s/%s", where, e->d_name);
        if (!save_name_read(e->d_name, &f) || !f.manifest || f.part || (any && f.version <= best) ||
            n >= (int)sizeof here || !(anybody || may_be_ours(dirfd(d), e->d_name)) ||
            (whole && !has_its_files(where, here)))
            continue;
        best = f.version;
        any = true;
        memcpy(path, here, sizeof here);
    }
    return any;
}

bool save_find(const char *where, char path[SAVE_PATH], char *why)
{
    DIR *d = opendir(where);
    if (!d && errno == ENOTDIR) {
        snprintf(path, SAVE_PATH, "%s", where);
        return true;
    }
    snprintf(why, SAVE_WHY, "read %s: %s", where, strerror(errno));
    if (!d)
        return false;
    bool found = greatest(d, where, true, false, path) || greatest(d, where, false, false, path) ||
                 greatest(d, where, false, true, path); /* which will not be read, and why is said then */
    closedir(d);
    snprintf(why, SAVE_WHY, "%s has no save: there is no manifest in it", where);
    return found;
}

static bool verify_file(const char *folder, const struct save_entry *e, uint8_t *block, char *why)
{
    struct save_file f;
    if (!save_open(&f, folder, e->name, why))
        return false;
    for (uint64_t left = e->bytes; left;) {
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        if (!save_next(&f, block, n, why)) {
            close(f.fd);
            return false;
        }
        left -= n;
    }
    return save_check(&f, e, why);
}

bool save_verify(const char *path, uint64_t ranks, char *why)
{
    struct save_manifest m;
    char folder[SAVE_PATH];
    save_folder(folder, path);
    if (!save_manifest_read(path, &m, why))
        return false;
    uint8_t *block = malloc(BLOCK);
    bool good = block && m.ranks == ranks;
    if (!block)
        snprintf(why, SAVE_WHY, "out of memory");
    else if (!good)
        snprintf(why, SAVE_WHY, "it was saved by %llu ranks, and this job has %llu", (unsigned long long)m.ranks,
                 (unsigned long long)ranks);
    for (uint64_t r = 0; r < m.ranks && good; r++)
        good = verify_file(folder, &m.rank[r], block, why);
    free(block);
    save_manifest_free(&m);
    return good;
}

static bool is_older(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec <= b->st_mtim.tv_nsec;
}

/* Of an earlier save of this job, or of a job before it: whoever stood still since then takes nothing away from a later
 * job. What others are still writing of the same version is theirs. */
static bool is_past(int dir, const char *name, const struct save_manifest *m)
{
    struct save_named f, own;
    struct stat there, mine;
    if (!save_name_read(name, &f) || !save_name_read(m->rank[0].name, &own))
        return false;
    if (f.job == own.job)
        return f.version < own.version;
    return fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstatat(dir, m->rank[0].name, &mine, 0) == 0 &&
           is_older(&there, &mine);
}

void save_sweep(const char *folder, const struct save_manifest *m)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (int files = 0; files < 2; files++) { /* manifests first: one that is there names what is there */
        rewinddir(d);
        for (struct dirent *e; (e = readdir(d));) {
            struct save_named f;
            if (is_past(dirfd(d), e->d_name, m) && save_name_read(e->d_name, &f) && (files || f.manifest))
                (void)unlinkat(dirfd(d), e->d_name, 0);
        }
        if (!files)
            (void)fsync(dirfd(d));
    }
    closedir(d);
}

/* The save of that version is whole: its manifest is there. */
static bool is_named(int dir, const struct save_job *job, uint64_t version)
{
    char name[SAVE_NAME];
    save_name(name, job, version, SAVE_MANIFEST);
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void save_forget(const char *folder, const struct save_job *job, uint64_t version, uint64_t rank)
{
    char name[SAVE_NAME];
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return;
    save_name(name, job, version, rank);
    if (!is_named(dir, job, version))
        (void)unlinkat(dir, name, 0);
    close(dir);
}

void save_forget_all(const char *folder, const struct save_job *job, uint64_t version)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        struct save_named f;
        if (save_name_read(e->d_name, &f) && f.job == job->number && f.version <= version &&
            (f.part || !is_named(dirfd(d), job, f.version)))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}
