#include "pm/run/job_grid.h"

#include "pm/wire/bytes.h"
#include "pm/wire/codec.h"
#include "pm/wire/quit.h"
#include "runtime/topo/rule.h"

#include <stdlib.h>

/* [places] the numbers of the nodes; NULL: a slot has none. */
static int *numbers(const struct job_settings *s, const struct grid_choice *choice)
{
    static struct grid_state state; /* its parts point to each other */
    struct grid_rule rule;
    (void)rule_read(&rule, choice); /* options_grid.c has read it before */
    int *node_at = pm_alloc((size_t)rule.grid.nodes * sizeof *node_at);
    if (!grid_open(&state, &rule, s->nodes))
        pm_quit(1, "out of memory");
    (void)grid_numbers(&state, node_at);
    if (state.place.homeless) {
        free(node_at);
        node_at = NULL;
    }
    grid_close(&state);
    return node_at;
}

static int places_of(const struct job_settings *s)
{
    return s->nodes + s->spares + s->grid.ndead;
}

bool job_grid_close_up(struct job_settings *s, const bool *lost, int *order)
{
    int places = places_of(s), left = 0;
    struct grid_choice less = s->grid;
    int *was = numbers(s, &s->grid);
    less.dead = pm_alloc((size_t)places * sizeof *less.dead);
    for (int i = 0; i < less.ndead; i++)
        less.dead[i] = s->grid.dead[i];
    for (int g = 0; g < places; g++)
        if (was[g] >= 0 && lost[was[g]])
            less.dead[less.ndead++] = g;
    int *now = less.ndead < places ? numbers(s, &less) : NULL;
    if (now) {
        for (int g = 0; g < places; g++)
            if (now[g] >= 0) {
                order[now[g]] = was[g];
                left++;
            }
        for (int n = 0; n < s->nodes + s->spares; n++) /* those that are lost come behind */
            if (lost[n])
                order[left++] = n;
        free(s->grid.dead);
        s->grid = less;
    } else {
        free(less.dead);
    }
    free(was);
    free(now);
    return now != NULL;
}

int *job_grid_numbers(const struct job_settings *s)
{
    return numbers(s, &s->grid);
}

void job_grid_tell(const struct job_settings *s, json_t *event)
{
    int places = places_of(s), *node_at = numbers(s, &s->grid);
    const struct grid_choice *g = &s->grid;
    int *place = pm_alloc((size_t)places * sizeof *place);
    for (int p = 0; p < places; p++)
        if (node_at[p] >= 0)
            place[node_at[p]] = p;
    json_object_set_new(event, "grid",
                        json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "nodes", g->grid, "spare_alloc", g->spares,
                                  "substitution", g->method, "moves", g->moves, "dead", codec_ints(g->dead, g->ndead),
                                  "place", codec_ints(place, s->nodes + s->spares)));
    free(place);
    free(node_at);
}
