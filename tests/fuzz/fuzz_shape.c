/* Descriptors of strided and vector operations, against nested loops and a map of bytes. */
#include "runtime/wire/shape.h"

#include <stdlib.h>
#include <string.h>

enum { LEVELS = 4, PLACES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *in, size_t bytes)
{
    uint64_t x = 0;
    bytes = bytes < in->left ? bytes : in->left;
    if (bytes)
        memcpy(&x, in->at, bytes);
    in->at += bytes;
    in->left -= bytes;
    return x;
}

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* The byte-by-byte truth: for each byte of the global side that is touched, the one of the local side (1 + place). */
struct map {
    uint16_t from[PLACES];
    uint64_t bytes;
    bool twice;
};

static void touch(struct map *m, uint64_t global, uint64_t local)
{
    expect(global < PLACES);
    m->twice = m->twice || m->from[global];
    m->from[global] = (uint16_t)(1 + local);
    m->bytes++;
}

/* Row by row, after some runs one by one: the same runs in the same order. */
static void compare_rows(const struct shape *s, uint64_t singly)
{
    struct shape_walk one, row;
    uint64_t want[SHAPE_SIDES], got[SHAPE_SIDES], stride[SHAPE_SIDES], n;
    shape_walk_init(&one, s);
    shape_walk_init(&row, s);
    for (uint64_t i = 0; i < singly && shape_walk_next(&row, got); i++)
        expect(shape_walk_next(&one, want) && memcmp(want, got, sizeof want) == 0);
    while ((n = shape_walk_row(&row, got, stride)) > 0)
        for (uint64_t i = 0; i < n; i++) {
            expect(shape_walk_next(&one, want));
            for (int side = 0; side < SHAPE_SIDES; side++)
                expect(want[side] == got[side] + i * stride[side]);
        }
    expect(!shape_walk_next(&one, want) && !shape_walk_next(&row, got));
}

/* Small strides and counts: everything is compared. */
static void compare(const struct shape *s, int levels, const size_t *count, const size_t *global, const size_t *local)
{
    static struct map want, got;
    memset(&want, 0, sizeof want);
    memset(&got, 0, sizeof got);
    size_t total = 1, i[LEVELS] = {0};
    for (int k = 0; k < levels; k++)
        total *= count[k + 1];
    for (size_t n = 0; n < total && count[0]; n++) {
        size_t rest = n, g = 0, l = 0;
        for (int k = 0; k < levels; k++) {
            i[k] = rest % count[k + 1];
            rest /= count[k + 1];
            g += i[k] * global[k];
            l += i[k] * local[k];
        }
        for (size_t b = 0; b < count[0]; b++)
            touch(&want, g + b, l + b);
    }
    struct shape_walk w;
    uint64_t place[SHAPE_SIDES], runs = 0;
    shape_walk_init(&w, s);
    for (; shape_walk_next(&w, place); runs++)
        for (uint64_t b = 0; b < s->run; b++) {
            expect(place[SHAPE_GLOBAL] + s->run <= s->extent[SHAPE_GLOBAL]);
            expect(place[SHAPE_LOCAL] + s->run <= s->extent[SHAPE_LOCAL]);
            touch(&got, place[SHAPE_GLOBAL] + b, place[SHAPE_LOCAL] + b);
        }
    expect(runs == shape_runs(s));
    compare_rows(s, total % 7);
    expect(want.bytes == got.bytes && want.twice == got.twice);
    expect(memcmp(want.from, got.from, sizeof want.from) == 0); /* in the same order: of two, the last */
    expect(!want.twice || !shape_is_apart(s, SHAPE_GLOBAL));
    bool nested = true;
    size_t covered = count[0];
    for (int k = 0; k < levels; k++) {
        nested = nested && (count[k + 1] < 2 || global[k] >= covered);
        covered += count[k + 1] ? (count[k + 1] - 1) * global[k] : 0;
    }
    expect(!nested || shape_is_apart(s, SHAPE_GLOBAL));
}

static void small(struct input *in)
{
    size_t count[LEVELS + 1] = {0}, global[LEVELS] = {0}, local[LEVELS] = {0};
    int levels = (int)(take(in, 1) % (LEVELS + 1));
    size_t extent = 1;
    for (int k = 0; k <= levels; k++)
        count[k] = take(in, 1) % (k ? 5 : 9);
    for (int k = 0; k < levels; k++) {
        global[k] = take(in, 1) % 200;
        local[k] = take(in, 1) % 200;
        if (take(in, 1) % 3 == 0)
            local[k] = global[k] = k ? global[k - 1] * count[k] : count[0];
        extent += 5 * global[k];
    }
    struct shape s;
    if (extent + 9 > PLACES)
        return;
    expect(shape_init(&s, levels, count, global, local));
    compare(&s, levels, count, global, local);
    shape_merge(&s);
    compare(&s, levels, count, global, local);
}

/* Anything: what is accepted fits, by numbers that are twice as wide. */
static void wild(struct input *in)
{
    size_t count[SHAPE_LEVELS_MAX + 2] = {0}, stride[SHAPE_SIDES][SHAPE_LEVELS_MAX + 1] = {{0}};
    int levels = (int)(take(in, 1) % 12) - 1;
    bool empty = false, fits = levels >= 0 && levels <= SHAPE_LEVELS_MAX;
    for (int k = 0; k <= levels && fits; k++) {
        count[k] = take(in, 1 + take(in, 1) % 8);
        empty = empty || count[k] == 0;
    }
    unsigned __int128 extent[SHAPE_SIDES] = {fits ? count[0] : 0, fits ? count[0] : 0};
    for (int k = 0; k < levels && fits; k++)
        for (int side = 0; side < SHAPE_SIDES; side++) {
            stride[side][k] = take(in, 1 + take(in, 1) % 8);
            if (count[k + 1])
                extent[side] += (unsigned __int128)(count[k + 1] - 1) * stride[side][k];
            if (extent[side] > SIZE_MAX) /* so that the sum itself cannot overflow */
                extent[side] = (unsigned __int128)SIZE_MAX + 1;
        }
    for (int side = 0; side < SHAPE_SIDES; side++)
        fits = fits && (empty || extent[side] <= SIZE_MAX);
    struct shape s;
    bool accepted = shape_init(&s, levels, count, stride[SHAPE_GLOBAL], stride[SHAPE_LOCAL]);
    expect(accepted == fits);
    if (!accepted)
        return;
    expect(empty == (s.run == 0));
    for (int side = 0; side < SHAPE_SIDES && !empty; side++)
        expect(s.extent[side] == extent[side]);
    if (take(in, 1) % 2)
        shape_merge(&s);
    (void)shape_is_apart(&s, SHAPE_LOCAL);
    struct shape_walk w;
    uint64_t place[SHAPE_SIDES];
    shape_walk_init(&w, &s);
    for (int n = 0; n < 1000 && shape_walk_next(&w, place); n++)
        for (int side = 0; side < SHAPE_SIDES; side++)
            expect(place[side] <= s.extent[side] - s.run);
}

static void vector(struct input *in)
{
    struct shape_span span[64];
    uint8_t map[512] = {0};
    size_t n = take(in, 1) % 64;
    bool apart = true;
    for (size_t i = 0; i < n; i++) {
        span[i] = (struct shape_span){.at = take(in, 2) % 448, .len = take(in, 1) % 20};
        for (uint64_t b = 0; b < span[i].len; b++)
            apart = apart && map[span[i].at + b]++ == 0;
    }
    expect(shape_spans_are_apart(span, n) == apart);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    while (in.left > 1) {
        switch (take(&in, 1) % 3) {
        case 0:
            small(&in);
            break;
        case 1:
            wild(&in);
            break;
        default:
            vector(&in);
        }
    }
    return 0;
}
