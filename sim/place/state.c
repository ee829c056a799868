#include "sim/place/state.h"

#include "runtime/base/user_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const state_of_another = "the state file belongs to another study";
const char *const state_damaged = "the state file is damaged";
static const char *const no_memory = "out of memory";
static const size_t too_long = (size_t)1 << 30;

static uint64_t sum(const char *text, size_t len)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
    return h;
}

const char *state_begin(struct state *s, const char *name)
{
    *s = (struct state){0};
    s->f = open_memstream(&s->text, &s->len);
    if (!s->f)
        return no_memory;
    fprintf(s->f, "%s\n", name);
    return NULL;
}

void state_close(struct state *s)
{
    if (s->f)
        fclose(s->f);
    free(s->text);
    *s = (struct state){0};
}

static bool put(const struct state *s, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    bool ok = fwrite(s->text, 1, s->len, f) == s->len && fprintf(f, "sum %016" PRIx64 "\n", sum(s->text, s->len)) > 0;
    return fclose(f) == 0 && ok;
}

const char *state_save(struct state *s, const char *path, bool ok)
{
    char temp[4096];
    ok = fclose(s->f) == 0 && ok;
    s->f = NULL;
    const char *why = ok ? NULL : no_memory;
    if (!why && ((size_t)snprintf(temp, sizeof temp, "%s.tmp", path) >= sizeof temp || !put(s, temp) ||
                 rename(temp, path) != 0)) {
        unlink(temp);
        why = "cannot write the state file";
    }
    state_close(s);
    return why;
}

static const char *read_all(struct state *s, const char *path)
{
    char why[USER_FILE_WHY];
    s->text = user_file_read(path, too_long, &s->len, why);
    if (s->text)
        return NULL;
    return errno == ENOENT   ? "there is no state file to resume from"
           : errno == ENOMEM ? no_memory
           : errno           ? "the state file cannot be read"
                             : state_damaged;
}

const char *state_open(struct state *s, const char *path, const char *name)
{
    enum { SUM_LINE = 4 + 16 + 1 };
    char want[SUM_LINE + 1];
    *s = (struct state){0};
    const char *why = read_all(s, path);
    if (why)
        return why;
    size_t len = strlen(name);
    const char *end = memchr(s->text, '\n', s->len);
    if (!end)
        return state_damaged;
    if ((size_t)(end - s->text) != len || memcmp(s->text, name, len) != 0)
        return state_of_another;
    if (s->len < len + 1 + SUM_LINE)
        return state_damaged;
    s->len -= SUM_LINE;
    snprintf(want, sizeof want, "sum %016" PRIx64 "\n", sum(s->text, s->len));
    if (memcmp(s->text + s->len, want, SUM_LINE) != 0 || s->len == len + 1)
        return state_damaged;
    s->f = fmemopen(s->text + len + 1, s->len - len - 1, "r");
    return s->f ? NULL : no_memory;
}
