#include "armci/graft/find.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY = 8,          /* bytes at the begin of a window that the linker does not write */
    LITERAL_MIN = 12, /* and of all its bytes */
    ALIKE_MAX = 2,    /* windows with one key: more are what any code has, and say nothing */
    HITS_MAX = 8,     /* of one window in the program: the same */
    PART = 8,         /* an eighth of an object's windows at one place: a part of it is there */
    FILTER = 1 << 16,
};

/* A piece of an object's code by which its place is found. */
struct window {
    uint64_t key;
    size_t object;
    uint64_t at;
    unsigned hits;
};

/* A window that was seen, and where its object is if the window is of it. */
struct hit {
    size_t window, object;
    uint64_t address;
};

/* Where an object may be. */
struct spot {
    uint64_t address;
    unsigned windows; /* that are there */
};

struct sight {
    struct spot *place;
    unsigned places;
    unsigned windows; /* that say something */
};

struct search {
    struct graft_archive *a;
    const struct graft_code *code;
    struct window *window; /* by key */
    size_t windows;
    struct hit *hit;
    size_t hits, hit_room;
    bool poor;           /* in memory */
    struct sight *sight; /* [objects] */
    struct spot *place;  /* of all */
    uint8_t filter[FILTER / 8];
    char *why;
    size_t why_len;
};

static bool refuse(struct search *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(struct search *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->why, s->why_len, format, list);
    va_end(list);
    return false;
}

/* What an object is for, for a line. */
static const char *first_function(const struct graft_object *o)
{
    return o->functions ? o->function[0].name : "its code";
}

static uint64_t key_at(const uint8_t *bytes)
{
    uint64_t key;
    memcpy(&key, bytes, sizeof key);
    return key;
}

static unsigned filter_of(uint64_t key)
{
    return (unsigned)((key * 0x9e3779b97f4a7c15u) >> 48);
}

/* ---- windows ---- */

static bool is_window(const struct graft_object *o, uint64_t at)
{
    int literal = 0;
    for (int i = 0; i < GRAFT_STEP; i++) {
        if (i < KEY && !o->literal[at + (uint64_t)i])
            return false;
        literal += o->literal[at + (uint64_t)i] != 0;
    }
    return literal >= LITERAL_MIN;
}

static int by_key(const void *left, const void *right)
{
    const struct window *l = left, *r = right;
    return l->key < r->key ? -1 : l->key > r->key;
}

static bool gather_windows(struct search *s)
{
    size_t room = 0;
    for (size_t i = 0; i < s->a->count; i++)
        room += s->a->object[i].len / GRAFT_STEP;
    s->window = malloc((room + 1) * sizeof *s->window);
    if (!s->window)
        return refuse(s, "out of memory");
    for (size_t i = 0; i < s->a->count; i++) {
        const struct graft_object *o = &s->a->object[i];
        for (uint64_t at = 0; at + GRAFT_STEP <= o->len; at += GRAFT_STEP)
            if (is_window(o, at))
                s->window[s->windows++] = (struct window){.key = key_at(o->code + at), .object = i, .at = at};
    }
    qsort(s->window, s->windows, sizeof *s->window, by_key);
    size_t kept = 0;
    for (size_t i = 0, end; i < s->windows; i = end) {
        for (end = i + 1; end < s->windows && s->window[end].key == s->window[i].key; end++)
            ;
        if (end - i > ALIKE_MAX)
            continue;
        unsigned bit = filter_of(s->window[i].key);
        s->filter[bit / 8] |= (uint8_t)(1u << bit % 8);
        for (size_t k = i; k < end; k++)
            s->window[kept++] = s->window[k];
    }
    s->windows = kept;
    return true;
}

/* The object's bytes [at, at + len) against the program's at this offset of its code. */
static bool same(const struct search *s, const struct graft_object *o, uint64_t at, uint64_t len, uint64_t offset)
{
    if (offset > s->code->len || len > s->code->len - offset)
        return false;
    const uint8_t *program = s->code->bytes + offset;
    for (uint64_t i = 0; i < len; i++)
        if ((program[i] ^ o->code[at + i]) & o->literal[at + i])
            return false;
    return true;
}

static void note(struct search *s, size_t window, uint64_t address)
{
    struct window *w = &s->window[window];
    if (++w->hits > HITS_MAX)
        return;
    if (s->hits == s->hit_room) {
        size_t room = s->hit_room ? 2 * s->hit_room : 1024;
        struct hit *more = realloc(s->hit, room * sizeof *more);
        s->poor |= !more;
        if (!more)
            return;
        s->hit = more;
        s->hit_room = room;
    }
    s->hit[s->hits++] = (struct hit){.window = window, .object = w->object, .address = address};
}

static void look_at(struct search *s, uint64_t offset)
{
    uint64_t key = key_at(s->code->bytes + offset);
    size_t low = 0, high = s->windows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->window[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->windows && s->window[low].key == key; low++) {
        const struct window *w = &s->window[low];
        if (offset >= w->at && same(s, &s->a->object[w->object], w->at, GRAFT_STEP, offset))
            note(s, low, s->code->address + offset - w->at);
    }
}

static void look_everywhere(struct search *s)
{
    const struct graft_code *code = s->code;
    uint64_t first = (GRAFT_STEP - code->address % GRAFT_STEP) % GRAFT_STEP;
    for (uint64_t offset = first; offset + GRAFT_STEP <= code->len; offset += GRAFT_STEP) {
        unsigned bit = filter_of(key_at(code->bytes + offset));
        if (s->filter[bit / 8] & 1u << bit % 8)
            look_at(s, offset);
    }
}

static int by_object(const void *left, const void *right)
{
    const struct hit *l = left, *r = right;
    if (l->object != r->object)
        return l->object < r->object ? -1 : 1;
    return l->address < r->address ? -1 : l->address > r->address;
}

/* From windows that were seen to places of objects. */
static bool gather_places(struct search *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->windows; i++)
        s->sight[s->window[i].object].windows += s->window[i].hits <= HITS_MAX;
    for (size_t i = 0; i < s->hits; i++)
        if (s->window[s->hit[i].window].hits <= HITS_MAX)
            s->hit[kept++] = s->hit[i];
    s->place = calloc(kept + 1, sizeof *s->place);
    if (!s->place || s->poor)
        return refuse(s, "out of memory");
    if (kept)
        qsort(s->hit, kept, sizeof *s->hit, by_object);
    struct spot *place = s->place;
    for (size_t i = 0, end; i < kept; i = end, place++) {
        for (end = i + 1; end < kept && by_object(&s->hit[i], &s->hit[end]) == 0; end++)
            ;
        *place = (struct spot){.address = s->hit[i].address, .windows = (unsigned)(end - i)};
        struct sight *sight = &s->sight[s->hit[i].object];
        if (!sight->places++)
            sight->place = place;
    }
    return true;
}

/* ---- what objects refer to ---- */

/* Where the program has what the object at this address refers to there. */
static uint64_t told(const struct search *s, const struct graft_reference *r, uint64_t address)
{
    int32_t distance;
    memcpy(&distance, s->code->bytes + (address - s->code->address) + r->at, sizeof distance);
    return address + r->at + (uint64_t)(int64_t)distance - (uint64_t)r->offset;
}

/* How many of its references lead where others' do; -1: one leads elsewhere. */
static int agreement(const struct search *s, const struct graft_object *o, uint64_t address)
{
    int agree = 0;
    for (size_t i = 0; i < o->references; i++) {
        if (o->reference[i].anchor < 0)
            continue;
        uint64_t known = s->a->anchor[o->reference[i].anchor].address;
        if (known && known != told(s, &o->reference[i], address))
            return -1;
        agree += known != 0;
    }
    return agree;
}

/* The object is at this address; false: something refers to it, or it refers to something, elsewhere. */
static bool settle(struct search *s, size_t object, uint64_t address)
{
    struct graft_object *o = &s->a->object[object];
    for (size_t i = 0; i < s->a->anchors; i++) {
        struct graft_anchor *anchor = &s->a->anchor[i];
        if (anchor->name || anchor->object != (int)object || anchor->section != o->section)
            continue;
        if (anchor->address && anchor->address != address)
            return refuse(s, "%s (%s) is there, but others call another one", first_function(o), o->name);
        anchor->address = address;
    }
    for (size_t i = 0; i < o->references; i++) {
        if (o->reference[i].anchor < 0)
            continue;
        struct graft_anchor *anchor = &s->a->anchor[o->reference[i].anchor];
        uint64_t is = told(s, &o->reference[i], address);
        if (anchor->address && anchor->address != is)
            return refuse(s, "%s (%s) refers to %s elsewhere than others do", first_function(o), o->name,
                          anchor->name ? anchor->name : s->a->object[anchor->object].name);
        anchor->address = is;
    }
    o->address = address;
    return true;
}

/* ---- objects ---- */

/* Is this many of its windows more than chance? */
static bool is_part(const struct sight *sight, unsigned windows)
{
    return windows >= 2 && windows * PART >= sight->windows;
}

/* Of an object that has windows. */
static bool find_by_windows(struct search *s, size_t object)
{
    const struct graft_object *o = &s->a->object[object];
    const struct sight *sight = &s->sight[object];
    uint64_t where = 0;
    for (unsigned i = 0; i < sight->places; i++) {
        uint64_t address = sight->place[i].address;
        if (!same(s, o, 0, o->len, address - s->code->address))
            continue;
        if (where)
            return refuse(s, "%s (%s) is there more than once", first_function(o), o->name);
        where = address;
    }
    return !where || settle(s, object, where);
}

/* Of one that is too small for any: only what it refers to tells it from others. */
static bool find_by_references(struct search *s, size_t object)
{
    const struct graft_object *o = &s->a->object[object];
    uint64_t where = 0, first = (GRAFT_STEP - s->code->address % GRAFT_STEP) % GRAFT_STEP;
    for (uint64_t offset = first; offset + o->len <= s->code->len; offset += GRAFT_STEP) {
        uint64_t address = s->code->address + offset;
        if (!same(s, o, 0, o->len, offset) || agreement(s, o, address) <= 0)
            continue;
        if (where)
            return refuse(s, "%s (%s) is there more than once", first_function(o), o->name);
        where = address;
    }
    return !where || settle(s, object, where);
}

/* What is referred to must have been found, there. */
static bool all_are_there(struct search *s)
{
    for (size_t i = 0; i < s->a->anchors; i++) {
        const struct graft_anchor *anchor = &s->a->anchor[i];
        if (anchor->name || !anchor->address)
            continue;
        const struct graft_object *o = &s->a->object[anchor->object];
        if (anchor->section == o->section && o->address != anchor->address)
            return refuse(s, "%s (%s) is not there, or altered, but called", first_function(o), o->name);
    }
    return true;
}

/* Nothing may be left that looks like a part of an object, outside of those that were found: those look like
 * themselves and each other. */
static bool none_is_altered(struct search *s)
{
    for (size_t i = 0; i < s->a->count; i++) {
        const struct graft_object *o = &s->a->object[i];
        for (unsigned p = 0; p < s->sight[i].places; p++) {
            const struct spot *place = &s->sight[i].place[p];
            if (is_part(&s->sight[i], place->windows) && !graft_overlaps(s->a, place->address, o->len))
                return refuse(s, "%s (%s) is there%s altered", first_function(o), o->name,
                              o->address ? " once more," : ", but");
        }
    }
    return true;
}

static bool has_function(const struct graft_archive *a, const char *name)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t f = 0; a->object[i].address && f < a->object[i].functions; f++)
            if (strcmp(a->object[i].function[f].name, name) == 0)
                return true;
    return false;
}

static bool find_all(struct search *s, const char *needed)
{
    for (size_t i = 0; i < s->a->count; i++)
        if (s->sight[i].windows && !find_by_windows(s, i))
            return false;
    for (size_t i = 0; i < s->a->count; i++)
        if (s->a->object[i].len && !s->sight[i].windows && !find_by_references(s, i))
            return false;
    if (!none_is_altered(s) || !all_are_there(s))
        return false;
    return has_function(s->a, needed) || refuse(s, "it has no %s of this library", needed);
}

bool graft_find(struct graft_archive *a, const struct graft_code *code, const char *needed, char *why, size_t why_len)
{
    bool done = false;
    struct search *s = calloc(1, sizeof *s);
    if (!s) {
        snprintf(why, why_len, "out of memory");
        return false;
    }
    s->a = a;
    s->code = code;
    s->why = why;
    s->why_len = why_len;
    s->sight = calloc(a->count + 1, sizeof *s->sight);
    if (!s->sight)
        refuse(s, "out of memory");
    else if (gather_windows(s)) {
        look_everywhere(s);
        done = gather_places(s) && find_all(s, needed);
    }
    free(s->sight);
    free(s->window);
    free(s->hit);
    free(s->place);
    free(s);
    return done;
}
