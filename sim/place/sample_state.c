/* The state of an unfinished sampling run, as text: a line that names the study, then counters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/place/sample.h"
#include "sim/place/state.h"

/* Everything the numbers depend on. A state of another study is refused. */
static void describe(const struct sample_config *c, const struct sample_result *r, char *buf, size_t len)
{
    char grid[96], layout[32];
    uint64_t dead = 0;
    for (int32_t i = 0; i < c->ndead; i++)
        dead = dead * 0x100000001b3u + (uint64_t)c->dead[i] + 1;
    snprintf(buf, len,
             "keel-place-state 3 %s %s %s %s %s %d %d/%d seed %" PRIu64 " sequences %" PRId64
             " failures %d draw %d links %d dead %" PRIx64,
             grid_format(&c->setup.grid, grid, sizeof grid), spare_format(&c->setup.layout, layout, sizeof layout),
             c->setup.method, c->setup.order[0] ? c->setup.order : "default", pattern_kind_name(c->setup.pattern),
             (int)c->setup.convention, c->setup.net.tree.down, c->setup.net.tree.spines, c->seed, r->sequences,
             r->failures, (int)c->draw, c->links, dead);
    size_t used = strlen(buf);
    if (c->setup.moves)
        snprintf(buf + used, len - used, " moves %d", c->setup.moves);
}

static void write_row(FILE *f, const struct sample_row *w)
{
    const int64_t *v = (const int64_t *)w;
    for (size_t i = 0; i < sizeof *w / sizeof *v; i++)
        fprintf(f, "%" PRId64 "%c", v[i], i + 1 < sizeof *w / sizeof *v ? ' ' : '\n');
}

const char *sample_state_save(const struct sample_config *c, const struct sample_result *r,
                              const struct sample_pending *p)
{
    char name[512];
    struct state out;
    describe(c, r, name, sizeof name);
    const char *why = state_begin(&out, name);
    if (why)
        return why;
    FILE *f = out.f;
    fprintf(f, "%" PRId64 " %" PRId64 " %d\n", r->done, p->next, p->ntodo);
    for (int32_t i = 0; i < p->ntodo; i++)
        fprintf(f, "%" PRId64 "\n", p->todo[i]);
    for (int32_t i = 0; i <= r->failures; i++)
        write_row(f, &r->row[i]);
    for (int32_t i = 0; r->link_loads && i <= r->failures; i++)
        for (int n = 0; n < SAMPLE_LINK_LOADS; n++)
            fprintf(f, "%" PRId64 "%c", r->link_loads[i][n], n + 1 < SAMPLE_LINK_LOADS ? ' ' : '\n');
    return state_save(&out, c->state, !ferror(f));
}

static bool read_numbers(FILE *f, int64_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fscanf(f, "%" SCNd64, &v[i]) != 1)
            return false;
    return true;
}

static bool read_body(FILE *f, struct sample_result *r, struct sample_pending *p)
{
    int64_t head[3];
    if (!read_numbers(f, head, 3) || head[0] < 0 || head[1] > r->sequences || head[2] < 0 ||
        head[2] > SAMPLE_MAX_TODO || head[0] + head[2] != head[1])
        return false;
    r->done = head[0];
    p->next = head[1];
    p->ntodo = (int32_t)head[2];
    if (!read_numbers(f, p->todo, (size_t)p->ntodo))
        return false;
    for (int32_t i = 0; i < p->ntodo; i++)
        if (p->todo[i] < 0 || p->todo[i] >= p->next)
            return false;
    size_t rows = (size_t)r->failures + 1;
    return read_numbers(f, (int64_t *)r->row, rows * sizeof *r->row / sizeof(int64_t)) &&
           (!r->link_loads || read_numbers(f, r->link_loads[0], rows * SAMPLE_LINK_LOADS));
}

const char *sample_state_load(const struct sample_config *c, struct sample_result *r, struct sample_pending *p)
{
    char name[512];
    struct state in;
    describe(c, r, name, sizeof name);
    const char *why = state_open(&in, c->state, name);
    if (!why && !read_body(in.f, r, p))
        why = state_damaged;
    state_close(&in);
    return why;
}
