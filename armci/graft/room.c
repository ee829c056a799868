/* Pure: what else of the program may be overwritten, or is called. */
#include "armci/graft/find.h"

#include <string.h>

bool graft_overlaps(const struct graft_archive *a, uint64_t address, uint64_t len)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct graft_object *o = &a->object[i];
        if (o->address && address < o->address + o->len && o->address < address + len)
            return true;
    }
    return false;
}

/* The length of the filling at the begin of these bytes: an instruction that does nothing, or what is none; 0:
 * something else. */
static size_t filling(const uint8_t *bytes, size_t len)
{
    static const struct {
        size_t len;
        uint8_t bytes[8];
    } fill[] = {{1, {0xcc}},
                {1, {0x00}},
                {1, {0x90}},
                {3, {0x0f, 0x1f, 0x00}},
                {4, {0x0f, 0x1f, 0x40, 0x00}},
                {5, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
                {7, {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00}},
                {8, {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}}};
    size_t prefixes = 0;
    while (prefixes < len && (bytes[prefixes] == 0x66 || bytes[prefixes] == 0x2e))
        prefixes++;
    for (size_t i = 0; i < sizeof fill / sizeof *fill; i++)
        if (fill[i].len <= len - prefixes && memcmp(bytes + prefixes, fill[i].bytes, fill[i].len) == 0)
            return prefixes + fill[i].len;
    return 0;
}

uint64_t graft_room(const struct graft_code *code, const struct graft_object *o, const struct graft_function *f)
{
    uint64_t end = o->address - code->address + o->len,
             limit = end + (GRAFT_STEP - (o->address + o->len) % GRAFT_STEP) % GRAFT_STEP;
    if (f->at + f->room < o->len)
        return f->room;
    limit = limit < code->len ? limit : code->len;
    for (size_t n = 1; end < limit && n; end += n)
        n = filling(code->bytes + end, limit - end);
    return end - (o->address - code->address) - f->at;
}

/* From the lowest address of a function that was found to behind the highest. */
static void bounds_of(const struct graft_archive *a, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct graft_object *o = &a->object[i];
        *low = o->address && o->address < *low ? o->address : *low;
        *high = o->address && o->address + o->len > *high ? o->address + o->len : *high;
    }
}

static void mark(struct graft_archive *a, uint64_t address)
{
    for (size_t i = 0; i < a->count; i++) {
        struct graft_object *o = &a->object[i];
        for (size_t f = 0; o->address && f < o->functions; f++)
            if (o->address + o->function[f].at == address)
                o->function[f].called = true;
    }
}

void graft_find_calls(struct graft_archive *a, const struct graft_code *code)
{
    enum { CALL_OR_JUMP = 0xe8, LENGTH = 5 }; /* the call's number is even, the jump's the one behind it */
    uint64_t low, high;
    bounds_of(a, &low, &high);
    for (size_t i = 0; i + LENGTH <= code->len; i++) {
        if ((code->bytes[i] & 0xfe) != CALL_OR_JUMP)
            continue;
        int32_t distance;
        memcpy(&distance, code->bytes + i + 1, sizeof distance);
        uint64_t at = code->address + i, to = at + LENGTH + (uint64_t)(int64_t)distance;
        if (to >= low && to < high && !graft_overlaps(a, at, 1))
            mark(a, to);
    }
}
