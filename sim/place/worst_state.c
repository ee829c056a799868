/* The state of a search, see state.h. A task that was under way is done again; what it has found meanwhile stays. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/place/state.h"
#include "sim/place/worst_int.h"

/* Everything the result depends on. */
static void describe(const struct search *s, bool zero, char *buf, size_t len)
{
    char grid[96], layout[32];
    const struct worst_config *c = s->config;
    const struct setup *u = s->setup;
    uint64_t dead = 0;
    for (int32_t i = 0; i < c->ndead; i++)
        dead = dead * 0x100000001b3u + (uint64_t)c->dead[i] + 1;
    snprintf(buf, len, "keel-place-worst 1 %s %s %s %s %s %d %d/%d failures %d draw %d full %d dead %" PRIx64 " by %s",
             grid_format(&u->grid, grid, sizeof grid), spare_format(&u->layout, layout, sizeof layout), u->method,
             u->order[0] ? u->order : "default", pattern_kind_name(u->pattern), (int)u->convention, u->net.tree.down,
             u->net.tree.spines, c->failures, (int)c->draw, c->full, dead, zero ? "zero" : "all");
}

const char *worst_state_save(const struct search *s, const struct progress *p, bool zero)
{
    char name[512];
    struct state out;
    int32_t next = p->tasks, open = 0;
    describe(s, zero, name, sizeof name);
    const char *why = state_begin(&out, name);
    if (why)
        return why;
    while (next > 0 && !p->done[next - 1])
        next--;
    for (int32_t i = 0; i < next; i++)
        open += !p->done[i];
    fprintf(out.f, "%d %d %d %d %" PRId64 " %" PRId64 "\n", p->climbed, p->stage, next, open, p->maps, p->cannot);
    for (int32_t i = 0; i < next; i++)
        if (!p->done[i])
            fprintf(out.f, "%d\n", i);
    for (int32_t f = 1; f <= s->failures; f++) {
        fprintf(out.f, "%d %" PRIu32, worst_best_value(&s->best, f), worst_best_task(&s->best, f));
        for (int32_t i = 0; i < f; i++)
            fprintf(out.f, " %d", s->best.nodes[f][i]);
        fputc('\n', out.f);
    }
    return state_save(&out, s->config->state, !ferror(out.f));
}

static bool read_done(FILE *f, struct progress *p)
{
    int climbed, next, open, task;
    if (fscanf(f, "%d %d %d %d %" SCNd64 " %" SCNd64, &climbed, &p->stage, &next, &open, &p->maps, &p->cannot) != 6 ||
        climbed < 0 || climbed > 1 || p->stage < 0 || p->stage >= p->stages || next < 0 || next > p->tasks ||
        open < 0 || open > next || p->maps < 0 || p->cannot < 0)
        return false;
    p->climbed = climbed;
    memset(p->done, 0, (size_t)p->tasks * sizeof *p->done);
    for (int i = 0; i < next; i++)
        p->done[i] = true;
    for (int i = 0; i < open; i++) {
        if (fscanf(f, "%d", &task) != 1 || task < 0 || task >= next)
            return false;
        p->done[task] = false;
    }
    return true;
}

static bool read_best(FILE *f, struct search *s)
{
    for (int32_t n = 1; n <= s->failures; n++) {
        int32_t value, nodes[WORST_MAX];
        uint32_t task;
        if (fscanf(f, "%d %" SCNu32, &value, &task) != 2 || value < -1 || value == INT32_MAX ||
            task > (uint32_t)s->setup->grid.nodes)
            return false;
        for (int32_t i = 0; i < n; i++)
            if (fscanf(f, "%d", &nodes[i]) != 1 || nodes[i] < 0 || nodes[i] >= s->setup->grid.nodes)
                return false;
        worst_best_note(&s->best, n, value, task, nodes);
    }
    return true;
}

const char *worst_state_load(struct search *s, struct progress *p, bool zero)
{
    char name[512];
    struct state in;
    describe(s, zero, name, sizeof name);
    const char *why = state_open(&in, s->config->state, name);
    if (!why && (!read_done(in.f, p) || (p->climbed && !read_best(in.f, s))))
        why = state_damaged;
    state_close(&in);
    return why;
}
