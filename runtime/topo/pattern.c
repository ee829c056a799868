#include "runtime/topo/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    int dims;
} kinds[PATTERN_KINDS] = {
    [PATTERN_5P] = {"5p", 2},
    [PATTERN_9P] = {"9p", 2},
    [PATTERN_7P] = {"7p", 3},
    [PATTERN_27P] = {"27p", 3},
    [PATTERN_STAR] = {"star", 0},
    [PATTERN_BARRIER] = {"barrier", 0},
    [PATTERN_ALLREDUCE] = {"allreduce", 0},
    [PATTERN_RING] = {"ring", 0},
};

enum pattern_kind pattern_kind_parse(const char *text)
{
    for (int k = 0; k < PATTERN_KINDS; k++)
        if (strcasecmp(text, kinds[k].name) == 0)
            return (enum pattern_kind)k;
    return PATTERN_KINDS;
}

const char *pattern_kind_name(enum pattern_kind kind)
{
    return kinds[kind].name;
}

int pattern_kind_dims(enum pattern_kind kind)
{
    return kinds[kind].dims;
}

typedef void emit_fn(struct pattern *p, int32_t from, int32_t to, int32_t phase);

/* Messages are listed twice: once to count them, once to store them. */
static void emit_count(struct pattern *p, int32_t from, int32_t to, int32_t phase)
{
    (void)phase;
    p->out_at[from + 1]++;
    p->in_at[to + 1]++;
}

static void emit_store(struct pattern *p, int32_t from, int32_t to, int32_t phase)
{
    p->out[p->out_at[from]++] = (struct pattern_peer){to, phase};
    p->in[p->in_at[to]++] = (struct pattern_peer){from, phase};
}

static void list_star(struct pattern *p, const struct grid *g, emit_fn *emit, const atomic_bool *stop)
{
    for (int32_t r = 0; r < g->nodes && !grid_stopped(stop, r); r++)
        for (int d = 0; d < g->ndims; d++) {
            int c = grid_coord(g, r, d);
            if (c + 1 < g->size[d]) {
                emit(p, r, r + g->stride[d], 0);
                emit(p, r + g->stride[d], r, 0);
            }
        }
}

/* All of the 3^n - 1 cells around. */
static void list_box(struct pattern *p, const struct grid *g, emit_fn *emit, const atomic_bool *stop)
{
    int c[GRID_MAX_DIMS], o[GRID_MAX_DIMS], cells = 1;
    for (int d = 0; d < g->ndims; d++)
        cells *= 3;
    for (int32_t r = 0; r < g->nodes && !grid_stopped(stop, r); r++) {
        grid_coords(g, r, c);
        for (int cell = 0; cell < cells; cell++) {
            bool inside = true;
            for (int d = 0, rest = cell; d < g->ndims; d++, rest /= 3) {
                o[d] = c[d] + rest % 3 - 1;
                inside = inside && o[d] >= 0 && o[d] < g->size[d];
            }
            int32_t to = inside ? grid_node(g, o) : r;
            if (to != r)
                emit(p, r, to, 0);
        }
    }
}

static void list_doubling(struct pattern *p, int32_t slots, emit_fn *emit, const atomic_bool *stop)
{
    int32_t whole = 1, phase = 0;
    while (whole * 2 <= slots)
        whole *= 2;
    if (whole < slots) {
        for (int32_t r = whole; r < slots; r++)
            emit(p, r, r - whole, phase);
        phase++;
    }
    for (int32_t step = 1; step < whole; step *= 2, phase++)
        for (int32_t r = 0; r < whole && !grid_stopped(stop, r); r++)
            emit(p, r, r ^ step, phase);
    if (whole < slots) {
        for (int32_t r = whole; r < slots; r++)
            emit(p, r - whole, r, phase);
        phase++;
    }
    p->phases = phase ? phase : 1;
}

/* returns   false when stopped. */
static bool list(struct pattern *p, const struct grid *g, emit_fn *emit, const atomic_bool *stop)
{
    p->phases = 1;
    switch (p->kind) {
    case PATTERN_5P:
    case PATTERN_7P:
    case PATTERN_STAR:
        list_star(p, g, emit, stop);
        break;
    case PATTERN_9P:
    case PATTERN_27P:
        list_box(p, g, emit, stop);
        break;
    case PATTERN_BARRIER:
    case PATTERN_ALLREDUCE:
        list_doubling(p, g->nodes, emit, stop);
        break;
    default:
        for (int32_t r = 0; r < g->nodes && g->nodes > 1 && !grid_stopped(stop, r); r++)
            emit(p, r, (r + 1) % g->nodes, 0);
    }
    return !grid_stopped(stop, 0);
}

/* Counts at [r + 1] become starts at [r]; emit_store then moves each start to the next slot's. */
static void starts(int32_t *at, int32_t slots)
{
    for (int32_t r = 0; r < slots; r++)
        at[r + 1] += at[r];
}

static void starts_restore(int32_t *at, int32_t slots)
{
    memmove(at + 1, at, (size_t)slots * sizeof *at);
    at[0] = 0;
}

bool pattern_init(struct pattern *p, enum pattern_kind kind, const struct grid *slots)
{
    return pattern_init_until(p, kind, slots, NULL);
}

bool pattern_init_until(struct pattern *p, enum pattern_kind kind, const struct grid *slots, const atomic_bool *stop)
{
    *p = (struct pattern){.kind = kind, .slots = slots->nodes};
    if (kinds[kind].dims && kinds[kind].dims != slots->ndims)
        return false;
    size_t n = (size_t)slots->nodes + 1;
    p->out_at = calloc(n, sizeof *p->out_at);
    p->in_at = calloc(n, sizeof *p->in_at);
    if (!p->out_at || !p->in_at || !list(p, slots, emit_count, stop)) {
        pattern_fini(p);
        return false;
    }
    starts(p->out_at, p->slots);
    starts(p->in_at, p->slots);
    size_t messages = (size_t)p->out_at[p->slots] + 1;
    p->out = malloc(messages * sizeof *p->out);
    p->in = malloc(messages * sizeof *p->in);
    if (!p->out || !p->in || !list(p, slots, emit_store, stop)) {
        pattern_fini(p);
        return false;
    }
    starts_restore(p->out_at, p->slots);
    starts_restore(p->in_at, p->slots);
    if (memcmp(p->out_at, p->in_at, n * sizeof *p->in_at) == 0 &&
        memcmp(p->out, p->in, (messages - 1) * sizeof *p->in) == 0) { /* a stencil: one list is kept in the caches */
        free(p->in);
        free(p->in_at);
        p->in = p->out;
        p->in_at = p->out_at;
    }
    return true;
}

void pattern_fini(struct pattern *p)
{
    if (p->in != p->out || !p->out) {
        free(p->in_at);
        free(p->in);
    }
    free(p->out_at);
    free(p->out);
    *p = (struct pattern){.kind = p->kind};
}
