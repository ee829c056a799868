#include "sim/place/setup.h"

#include "runtime/topo/rule.h"

#include <stdio.h>
#include <string.h>

enum pattern_kind setup_stencil(const struct grid *g)
{
    return g->ndims == 2 ? PATTERN_5P : g->ndims == 3 ? PATTERN_7P : PATTERN_STAR;
}

bool setup_is_own(const char *method)
{
    return strcmp(method, "balance") == 0 || rule_repair_moves(method);
}

bool setup_slides(const struct setup *s)
{
    struct place_method m;
    bool slides = false;
    if (setup_is_own(s->method) || place_method_parse(&m, s->method, s->grid.ndims))
        return false;
    for (int i = 0; i < m.steps; i++)
        slides = slides || m.step[i].order > 0;
    return slides;
}

const char *setup_check(const struct setup *s)
{
    struct place_method m;
    const char *why = spare_check(&s->layout, &s->grid);
    if (why)
        return why;
    for (int d = 0; d < s->grid.ndims; d++)
        if (s->grid.size[d] > INT16_MAX)
            return "a side of the grid is longer than 32767 nodes";
    if (s->slots > spare_slot_grid(&s->layout, &s->grid).nodes)
        return "there are more slots than places for them";
    int dims = pattern_kind_dims(s->pattern);
    if (dims && dims != s->grid.ndims)
        return dims == 2 ? "this stencil needs a grid of 2 dimensions" : "this stencil needs a grid of 3 dimensions";
    struct place_order order;
    why = s->order[0] ? place_order_parse(&order, s->order, s->grid.ndims) : NULL;
    if (why)
        return why;
    if (setup_is_own(s->method))
        return s->order[0] ? "an order is for slides; this method looks at all of them" : NULL;
    if (strncmp(s->method, "repair", 6) == 0)
        return "the bound of repair(N) is 1 to 256 moves per failure";
    why = place_method_parse(&m, s->method, s->grid.ndims);
    return why;
}

bool job_open(struct job *j, const struct setup *s)
{
    return job_open_until(j, s, NULL);
}

bool job_open_until(struct job *j, const struct setup *s, const atomic_bool *stop)
{
    memset(j, 0, sizeof *j);
    j->setup = s;
    const struct grid slots = spare_slot_grid(&s->layout, &s->grid);
    bool ok = place_init(&j->place, &s->grid, &s->layout, s->slots, stop) &&
              place_init(&j->launch, &s->grid, &s->layout, s->slots, stop) && place_plan_init(&j->plan, &j->place) &&
              pattern_init_until(&j->pattern, s->pattern, &slots, stop) &&
              load_init_until(&j->load, &j->pattern, &j->place, &s->net, s->convention, stop) &&
              load_init_until(&j->launch_load, &j->pattern, &j->place, &s->net, s->convention, stop);
    if (ok && strcmp(s->method, "balance") == 0) {
        strcpy(j->method.name, "balance");
        ok = balance_init(&j->balance, &j->place, &j->load) && place_method_add(&j->method, balance_plan, &j->balance);
    } else if (ok && rule_repair_moves(s->method)) {
        strcpy(j->method.name, s->method);
        ok = remap_init(&j->remap, &j->place, &j->load, rule_repair_moves(s->method)) &&
             place_method_add(&j->method, remap_plan, &j->remap);
    } else if (ok)
        place_method_parse(&j->method, s->method, s->grid.ndims);
    j->method.moves = s->moves;
    struct place_order order;
    if (ok && s->order[0] && !place_order_parse(&order, s->order, s->grid.ndims))
        place_method_order(&j->method, &order);
    if (!ok)
        job_close(j);
    return ok;
}

void job_close(struct job *j)
{
    balance_fini(&j->balance);
    remap_fini(&j->remap);
    load_fini(&j->load);
    load_fini(&j->launch_load);
    pattern_fini(&j->pattern);
    place_plan_fini(&j->plan);
    place_fini(&j->place);
    place_fini(&j->launch);
}

void job_launch(struct job *j)
{
    place_copy(&j->launch, &j->place);
    load_copy(&j->launch_load, &j->load);
}

void job_reset(struct job *j)
{
    place_copy(&j->place, &j->launch);
    load_copy(&j->load, &j->launch_load);
    if (j->balance.load)
        balance_reset(&j->balance);
}

enum place_result job_fail(struct job *j, int32_t node)
{
    return load_substitute(&j->load, &j->place, &j->method, node, &j->plan);
}

int job_order(const struct job *j)
{
    return j->plan.order;
}
