#include "runtime/topo/rule.h"

#include "runtime/base/number.h"

#include <stdio.h>
#include <string.h>

int32_t rule_repair_moves(const char *text)
{
    int moves = 0, used = 0;
    if (strcmp(text, "repair") == 0)
        return REMAP_MOVES;
    if (!number_none_is_odd(text) || sscanf(text, "repair(%9d)%n", &moves, &used) != 1 || text[used] || !used)
        return 0;
    return moves >= 1 && moves <= REMAP_MOVES_MAX ? moves : 0;
}

static bool is_named(const struct place_method *m, const char *name)
{
    return m->steps == 0 && strcmp(m->name, name) == 0;
}

const char *rule_method(struct place_method *m, const char *text, int ndims)
{
    static const char *const names[] = {"balance", "auto", "user", "none"};
    bool named = rule_repair_moves(text) > 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        named = named || strcmp(text, names[i]) == 0;
    if (!named && strncmp(text, "repair", 6) == 0)
        return "the bound of repair(N) is 1 to 256 moves per failure";
    if (!named)
        return place_method_parse(m, text, ndims);
    *m = (struct place_method){0};
    snprintf(m->name, sizeof m->name, "%s", text);
    return NULL;
}

/* The words of the plan for a failure of this place, or of any if it is -1, from *at on; NULL: there is none (left).
 * *at is then behind it; past the end if a plan is not whole. */
static const int *find_plan(const struct grid_plans *p, int *at, int32_t failed)
{
    while (*at >= 0 && *at < p->count) {
        const int *plan = p->word + *at;
        int left = p->count - *at - 2;
        *at = left >= 0 && plan[1] <= left / 2 ? *at + 2 + 2 * plan[1] : p->count + 1;
        if (*at <= p->count && (failed < 0 || plan[0] == failed))
            return plan;
    }
    return NULL;
}

static bool plans_are_whole(const struct grid_plans *p, int32_t nodes)
{
    int at = 0;
    for (const int *plan; (plan = find_plan(p, &at, -1));)
        for (int i = 0; i <= 2 * plan[1]; i++)
            if (plan[i ? i + 1 : 0] < 0 || plan[i ? i + 1 : 0] >= nodes)
                return false;
    return at == p->count;
}

const char *rule_read(struct grid_rule *r, const struct grid_choice *said)
{
    *r = (struct grid_rule){.dead = said->dead, .ndead = said->ndead, .plans = {said->plans, said->nplans}};
    const char *why = grid_parse(&r->grid, said->grid);
    if (!why)
        why = spare_parse(&r->layout, said->spares);
    if (!why)
        why = spare_check(&r->layout, &r->grid);
    if (!why)
        why = rule_method(&r->method, said->method, r->grid.ndims);
    r->method.moves = said->moves;
    for (int i = 0; i < r->ndead && !why; i++)
        if (r->dead[i] < 0 || r->dead[i] >= r->grid.nodes)
            why = "a node that is dead at the start is none of the grid";
    if (!why && !plans_are_whole(&r->plans, r->grid.nodes))
        why = "a plan names a node that is none of the grid";
    return why;
}

/* ---- methods that are made by their name ---- */

static bool open_load(struct grid_state *s)
{
    const struct load_network net = {0};
    return pattern_init(&s->pattern, PATTERN_STAR, &s->place.slot_grid) &&
           load_init(&s->load, &s->pattern, &s->place, &net, LOAD_ALL);
}

static bool open_balance(struct grid_state *s)
{
    return open_load(s) && balance_init(&s->balance, &s->place, &s->load) &&
           place_method_add(&s->method, balance_plan, &s->balance);
}

static bool open_auto(struct grid_state *s)
{
    return open_load(s) && balance_init(&s->balance, &s->place, &s->load) &&
           remap_init(&s->remap, &s->place, &s->load, REMAP_MOVES) &&
           auto_init(&s->chooser, &s->place, &s->balance, &s->remap) &&
           place_method_add(&s->method, auto_plan, &s->chooser);
}

static bool open_repair(struct grid_state *s, int32_t moves)
{
    return open_load(s) && remap_init(&s->remap, &s->place, &s->load, moves) &&
           place_method_add(&s->method, remap_plan, &s->remap);
}

/* Is nobody there once the moves so far are carried out? */
static bool is_free(const struct place *p, const struct place_plan *plan, int32_t node)
{
    bool left = p->slot_at[node] == PLACE_FREE;
    for (int32_t i = 0; i < plan->count; i++) {
        left = plan->moves[i].from == node ? p->slot_at[node] != PLACE_DEAD : left;
        left = plan->moves[i].to == node ? false : left;
    }
    return left;
}

/* A place_fn; arg is a struct grid_plans. Each slot moves once, and the one that lost its node is among them. */
static bool user_plan(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    int at = 0;
    const int *given = find_plan(arg, &at, node);
    bool lost = false;
    if (!given || given[1] > plan->most || given[1] > plan->cap) {
        plan->bounded |= given != NULL;
        return false;
    }
    for (int i = 0; i < given[1]; i++) {
        int32_t from = given[2 + 2 * i], to = given[3 + 2 * i], slot = from == node ? plan->slot : p->slot_at[from];
        for (int32_t k = 0; k < plan->count; k++)
            slot = plan->moves[k].slot == slot ? -1 : slot;
        if (slot < 0 || !is_free(p, plan, to))
            break;
        lost = lost || from == node;
        plan->moves[plan->count++] = (struct place_move){slot, from, to};
    }
    if (lost && plan->count == given[1])
        return true;
    plan->count = 0;
    return false;
}

static bool open_user(struct grid_state *s, const struct grid_plans *plans)
{
    struct place_method nearest;
    s->plans = *plans;
    if (place_method_parse(&nearest, "0D", s->place.grid.ndims) || !place_method_add(&s->method, user_plan, &s->plans))
        return false;
    s->method.step[s->method.steps++] = nearest.step[0];
    return true;
}

static int32_t longest_side(const struct grid *g)
{
    int32_t longest = 1;
    for (int d = 0; d < g->ndims; d++)
        longest = g->size[d] > longest ? g->size[d] : longest;
    return longest;
}

static bool open_method(struct grid_state *s, const struct grid_plans *plans)
{
    struct place_method *m = &s->method;
    int32_t repair = m->steps ? 0 : rule_repair_moves(m->name);
    s->chooses = is_named(m, "auto");
    if (s->chooses && !m->moves)
        m->moves = longest_side(&s->place.grid);
    if (s->chooses)
        return open_auto(s);
    if (is_named(m, "balance"))
        return open_balance(s);
    if (is_named(m, "user"))
        return open_user(s, plans);
    return !repair || open_repair(s, repair);
}

/* ---- the start ---- */

/* Who was not there has died before anything stood anywhere: moves are nothing but another place to begin at. */
static void leave_out(struct grid_state *s, const int *dead, int ndead)
{
    struct transit *t = &s->transit;
    (void)transit_change(t, &s->method, dead, ndead, NULL, 0);
    for (int32_t i = 0; i < t->lines.count; i++)
        (void)transit_done(t, t->lines.move[i].slot, t->lines.move[i].to);
}

bool grid_open(struct grid_state *s, const struct grid_rule *rule, int32_t slots)
{
    *s = (struct grid_state){.method = rule->method};
    bool ok = place_init(&s->place, &rule->grid, &rule->layout, slots, NULL) && open_method(s, &rule->plans) &&
              transit_init(&s->transit, &s->place, s->load.pattern ? &s->load : NULL);
    if (!ok) {
        grid_close(s);
        return false;
    }
    leave_out(s, rule->dead, rule->ndead);
    return true;
}

void grid_close(struct grid_state *s)
{
    transit_fini(&s->transit);
    auto_fini(&s->chooser);
    balance_fini(&s->balance);
    remap_fini(&s->remap);
    load_fini(&s->load);
    pattern_fini(&s->pattern);
    place_fini(&s->place);
}

int32_t grid_numbers(const struct grid_state *s, int *node_at)
{
    int32_t next = s->place.slots;
    for (int32_t g = 0; g < s->place.grid.nodes; g++) {
        int32_t slot = s->place.slot_at[g];
        node_at[g] = slot >= 0 ? slot : slot == PLACE_FREE ? next++ : -1;
    }
    return next;
}
