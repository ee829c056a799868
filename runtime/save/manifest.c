/* The manifest of a save: lines of text, the last of which is the digest of those before. */
#include "runtime/save/save.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 256, HEX = 2 * SAVE_SUM + 1, RANKS_MAX = 1 << 22, BLOCK = 1 << 20, MANIFEST_MAX = 1 << 30 };
static const char file_name[] = "manifest";

void save_name(char name[SAVE_NAME], uint64_t version, uint64_t job, uint64_t rank)
{
    snprintf(name, SAVE_NAME, "%llu.%016llx.rank%llu", (unsigned long long)version, (unsigned long long)job,
             (unsigned long long)rank);
}

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

/* VERSION.JOB.rankN, and perhaps more behind it. */
static bool is_ours(const char *name, unsigned long long *version, unsigned long long *job)
{
    unsigned long long rank;
    int n = 0;
    return sscanf(name, "%llu.%16llx.rank%llu%n", version, job, &rank, &n) == 3 &&
           (!name[n] || strcmp(name + n, ".part") == 0);
}

/* Is the file one of a later save of the same job? Then who writes m stood still while others went on, and what it has
 * to say is of the past. */
static bool is_later(const char *name, const struct save_manifest *m)
{
    unsigned long long version, job, mine, own;
    return is_ours(name, &version, &job) && is_ours(m->rank[0].name, &mine, &own) && job == own && version > mine;
}

static bool is_overtaken(const char *folder, const struct save_manifest *m)
{
    struct save_manifest there;
    char why[SAVE_WHY];
    if (!save_manifest_read(folder, &there, why))
        return false;
    bool later = is_later(there.rank[0].name, m);
    save_manifest_free(&there);
    return later;
}

bool save_manifest_write(const char *folder, const struct save_manifest *m, char *why)
{
    struct save_file f;
    uint8_t sum[SAVE_SUM];
    size_t len;
    if (is_overtaken(folder, m)) {
        snprintf(why, SAVE_WHY, "%s has a later save of this job than version %llu", folder,
                 (unsigned long long)m->version);
        return false;
    }
    char *text = save_manifest_text(m, &len);
    snprintf(why, SAVE_WHY, "out of memory");
    bool done = text && save_create(&f, folder, file_name, why);
    if (done && !save_append(&f, text, len, why)) {
        save_drop(&f);
        done = false;
    }
    free(text);
    return done && save_finish(&f, sum, why);
}

bool save_manifest_read(const char *folder, struct save_manifest *m, char *why)
{
    struct save_file f;
    if (!save_open(&f, folder, file_name, why))
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

bool save_verify(const char *folder, uint64_t ranks, char *why)
{
    struct save_manifest m;
    if (!save_manifest_read(folder, &m, why))
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

void save_sweep(const char *folder, const struct save_manifest *m)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        unsigned long long version, job;
        bool named = is_later(e->d_name, m);
        for (uint64_t r = 0; r < m->ranks && !named; r++)
            named = strcmp(e->d_name, m->rank[r].name) == 0;
        if (!named && is_ours(e->d_name, &version, &job))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}
