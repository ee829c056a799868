#include "pm/run/grid_files.h"

#include "pm/run/file_line.h"
#include "pm/wire/bytes.h"
#include "runtime/base/job_settings.h"
#include "runtime/base/plural.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    const struct grid_names *names;
    char *rest; /* of the text */
    char *line; /* of this line; NULL: none is left */
    struct file_line at;
};

/* The next line that says anything, without its comment. */
static bool next_line(struct reading *r)
{
    while ((r->line = strsep(&r->rest, "\n"))) {
        r->at.number++;
        r->line[strcspn(r->line, "#")] = '\0';
        if (r->line[strspn(r->line, " \t\r")])
            return true;
    }
    return false;
}

static char *next_word(struct reading *r)
{
    char *word;
    while ((word = strsep(&r->line, " \t\r")))
        if (*word)
            return word;
    return NULL;
}

/* -1: it is none from 0 to most. */
static int number(const char *word, int most)
{
    char *end;
    long value = isdigit((unsigned char)*word) ? strtol(word, &end, 10) : -1;
    return value >= 0 && value <= most && !*end ? (int)value : -1;
}

static int host_of(const struct grid_names *names, const char *word)
{
    for (int i = 0; i < names->hosts; i++)
        if (strcmp(names->host[i], word) == 0)
            return i;
    return -1;
}

int grid_place_of(const struct grid_names *names, const char *word)
{
    int place = number(word, names->places - 1), host = place < 0 ? host_of(names, word) : -1;
    if (host >= 0)
        place = names->place_of ? names->place_of[host] : host;
    return place;
}

/* ---- positions ---- */

static bool read_position(struct reading *r, int dims, const int *size, int *place_of, bool *taken)
{
    const char *name = next_word(r), *word;
    int host = host_of(r->names, name), place = 0, stride = 1, d = 0;
    if (host < 0)
        return file_line_wrong(&r->at, "%s is no host of the job", name);
    if (place_of[host] >= 0)
        return file_line_wrong(&r->at, "host %s is named twice", name);
    for (; (word = next_word(r)); d++) {
        int at = d < dims ? number(word, size[d] - 1) : 0;
        if (at < 0)
            return file_line_wrong(&r->at, "%s is no coordinate from 0 to %d", word, size[d] - 1);
        place += at * (d < dims ? stride : 0);
        stride *= d < dims ? size[d] : 1;
    }
    if (d != dims)
        return file_line_wrong(&r->at, "host %s has %d %s, and the grid %d %s", name, d,
                               plural(d, "coordinate", "coordinates"), dims, plural(dims, "dimension", "dimensions"));
    if (taken[place])
        return file_line_wrong(&r->at, "host %s stands where another one does", name);
    taken[place] = true;
    place_of[host] = place;
    return true;
}

bool grid_positions_parse(const struct grid_names *names, int dims, const int *size, const char *text, int *place_of,
                          char *why, size_t len)
{
    char *copy = pm_strdup(text);
    bool *taken = pm_alloc((size_t)names->places * sizeof *taken), good = true;
    struct reading r = {.names = names, .rest = copy, .at = {.why = why, .len = len}};
    for (int i = 0; i < names->hosts; i++)
        place_of[i] = -1;
    while (good && next_line(&r))
        good = read_position(&r, dims, size, place_of, taken);
    for (int i = 0; i < names->hosts && good; i++)
        if (place_of[i] < 0) {
            snprintf(why, len, "host %s is in no line", names->host[i]);
            good = false;
        }
    free(taken);
    free(copy);
    return good;
}

static bool read_extents(struct reading *r, int most, int limit, int *dims, int *size)
{
    const char *name = next_word(r), *word;
    int d = 0;
    long long places = 1;
    for (; (word = next_word(r)); d++) {
        int at = number(word, limit - 1);
        if (d == most || at < 0)
            return file_line_wrong(&r->at, d == most ? "%s is one coordinate too many" : "%s is no coordinate", word);
        size[d] = *dims == 0 || at >= size[d] ? at + 1 : size[d];
    }
    if (d == 0 || (*dims && d != *dims))
        return file_line_wrong(&r->at, "host %s has another number of coordinates than the first one, or none", name);
    *dims = d;
    for (int i = 0; i < d; i++)
        places = places > limit ? places : places * size[i];
    return places <= limit || file_line_wrong(&r->at, "the grid of all positions has more than %d places", limit);
}

bool grid_positions_extents(const char *text, int most, int limit, int *dims, int *size, char *why, size_t len)
{
    char *copy = pm_strdup(text);
    struct reading r = {.rest = copy, .at = {.why = why, .len = len}};
    bool good = true;
    *dims = 0;
    for (int d = 0; d < most; d++)
        size[d] = 0;
    while (good && next_line(&r))
        good = read_extents(&r, most, limit, dims, size);
    if (good && *dims == 0) {
        snprintf(why, len, "it names no host");
        good = false;
    }
    free(copy);
    return good;
}

/* ---- plans ---- */

struct plans {
    int *word;
    int count, room;
};

static void add(struct plans *p, int word)
{
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        int *more = pm_alloc((size_t)p->room * sizeof *more);
        if (p->count)
            memcpy(more, p->word, (size_t)p->count * sizeof *more);
        free(p->word);
        p->word = more;
    }
    p->word[p->count++] = word;
}

static bool has_plan(const struct plans *p, int place)
{
    for (int at = 0; at < p->count; at += 2 + 2 * p->word[at + 1])
        if (p->word[at] == place)
            return true;
    return false;
}

/* FROM>TO: behind the others of this line, which begins at `begin`. */
static bool read_move(struct reading *r, struct plans *p, int begin, char *word)
{
    char *target = strchr(word, '>');
    if (!target)
        return file_line_wrong(&r->at, "%s is not FROM>TO", word);
    *target++ = '\0';
    int from = grid_place_of(r->names, word), to = grid_place_of(r->names, target);
    if (from < 0 || to < 0)
        return file_line_wrong(&r->at, "%s is neither a place from 0 to %d nor a host", from < 0 ? word : target,
                               r->names->places - 1);
    if (from == to)
        return file_line_wrong(&r->at, "%s moves to itself", word);
    for (int at = begin + 2; at < p->count; at += 2) {
        if (p->word[at] == from)
            return file_line_wrong(&r->at, "what is on %s moves twice", word);
        if (p->word[at + 1] == to)
            return file_line_wrong(&r->at, "two move to %s", target);
    }
    add(p, from);
    add(p, to);
    p->word[begin + 1]++;
    return true;
}

static bool read_plan(struct reading *r, struct plans *p)
{
    char *word = next_word(r);
    size_t len = strlen(word);
    int begin = p->count;
    bool moves_it = false;
    if (len < 2 || word[len - 1] != ':')
        return file_line_wrong(&r->at, "%s is not PLACE: which node dies?", word);
    word[len - 1] = '\0';
    int place = grid_place_of(r->names, word);
    if (place < 0)
        return file_line_wrong(&r->at, "%s is neither a place from 0 to %d nor a host", word, r->names->places - 1);
    if (has_plan(p, place))
        return file_line_wrong(&r->at, "%s has a plan already", word);
    add(p, place);
    add(p, 0);
    for (char *move; (move = next_word(r));) {
        if (!read_move(r, p, begin, move))
            return false;
        moves_it = moves_it || p->word[p->count - 2] == place;
    }
    if (!moves_it)
        return file_line_wrong(&r->at, "no move takes what was on %s", word);
    return p->count <= GRID_PLANS_MAX || file_line_wrong(&r->at, "these are too many plans");
}

bool grid_plans_parse(const struct grid_names *names, const char *text, int **words, int *count, char *why, size_t len)
{
    char *copy = pm_strdup(text);
    struct plans p = {0};
    struct reading r = {.names = names, .rest = copy, .at = {.why = why, .len = len}};
    bool good = true;
    while (good && next_line(&r))
        good = read_plan(&r, &p);
    if (good && !p.count) {
        snprintf(why, len, "there is no plan in it");
        good = false;
    }
    free(copy);
    *words = p.word;
    *count = p.count;
    return good;
}
