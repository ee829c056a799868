/* The plan of a view on a grid of nodes: that of the placement library, made of the deaths of a view, and kept while
 * ranks move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "memory.h"
#include "runtime/view/plan.h"
#include "runtime/wire/control.h"
#include "seed.h"

enum { SLOTS = 9, SPARES = 7, NODES = SLOTS + SPARES, DEATHS = 7 };

/* 4x4 with 2D(2,1): nine slots, and seven spares, on two sides. */
struct grid_world {
    struct view v, twin;
    struct grid_rule rule;
    struct place place; /* what keel-place keeps */
    struct place_plan plan;
    int node_at[NODES]; /* who has a place */
};

static void open_rule(struct grid_rule *rule, const char *grid, const char *method)
{
    memset(rule, 0, sizeof *rule);
    assert_null(grid_parse(&rule->grid, grid));
    assert_null(spare_parse(&rule->layout, "2D(2,1)"));
    assert_null(place_method_parse(&rule->method, method, rule->grid.ndims));
}

static void open_one(struct view *v, const struct grid_rule *rule, int ranks, int room)
{
    int rank_node[4 * SLOTS];
    for (int r = 0; r < ranks; r++)
        rank_node[r] = r * SLOTS / ranks;
    assert_true(view_init(v, VIEW_SUBSTITUTE, SLOTS, SPARES, room, ranks, rank_node, NULL));
    if (rule)
        assert_true(view_place(v, rule));
}

static void open_world(struct grid_world *w, const char *method, int ranks, int room)
{
    open_rule(&w->rule, "4x4", method);
    open_one(&w->v, &w->rule, ranks, room);
    open_one(&w->twin, &w->rule, ranks, room);
    assert_true(place_init(&w->place, &w->rule.grid, &w->rule.layout, 0, NULL));
    assert_true(place_plan_init(&w->plan, &w->place));
    int spare = SLOTS;
    for (int g = 0; g < NODES; g++)
        w->node_at[g] = w->place.slot_at[g] >= 0 ? w->place.slot_at[g] : spare++;
    assert_int_equal(spare, NODES);
}

static void close_world(struct grid_world *w)
{
    view_fini(&w->v);
    view_fini(&w->twin);
    place_plan_fini(&w->plan);
    place_fini(&w->place);
}

static int place_of(const struct grid_world *w, int node)
{
    int g = 0;
    while (w->node_at[g] != node)
        g++;
    return g;
}

/* To both. No view change allocates. */
static void change(struct grid_world *w, const struct view_event *e, int n)
{
    memory_fail_at(1);
    view_apply(&w->v, w->v.epoch + 1, e, n);
    assert_false(memory_failed());
    memory_fail_at(0);
    view_apply(&w->twin, w->twin.epoch + 1, e, n);
    assert_int_equal(w->v.planned, w->twin.planned);
    assert_memory_equal(w->v.plan, w->twin.plan, (size_t)w->v.planned * sizeof *w->v.plan);
    for (int s = 0; s < SLOTS; s++)
        assert_int_equal(view_slot_node(&w->v, s), view_slot_node(&w->twin, s));
}

static void kill_nodes(struct grid_world *w, const int *node, int n)
{
    struct view_event e[NODES];
    for (int i = 0; i < n; i++)
        e[i] = (struct view_event){.type = VIEW_NODE_DEAD, .a = (uint32_t)node[i]};
    change(w, e, n);
}

static void move_rank(struct grid_world *w, int rank, int to)
{
    struct view_event e = {.type = VIEW_RANK_MOVED,
                           .a = (uint32_t)rank,
                           .b = w->v.rank[rank].incarnation,
                           .c = (uint32_t)to,
                           .d = view_moved_word(true, 0)};
    change(w, &e, 1);
}

static bool in_plan(const struct view *v, int slot, int from, int to)
{
    for (int i = 0; i < v->planned; i++)
        if (v->plan[i].slot == slot && v->plan[i].from == from && v->plan[i].to == to)
            return true;
    return false;
}

/* The ranks that live go where the plan says, in any order. */
static void carry_out(struct grid_world *w, struct rng *rng)
{
    for (int left = 1; left;) {
        left = 0;
        for (int r = 0; r < w->v.ranks; r++) {
            int to = plan_of_rank(&w->v, r);
            left += to >= 0;
            if (to < 0 || rng_below(rng, 2))
                continue;
            move_rank(w, r, to);
            assert_int_equal(w->v.rank[r].node, to);
        }
    }
}

static void one_sequence(struct rng *rng, const char *method, int *most)
{
    struct grid_world w;
    open_world(&w, method, rng_below(rng, 2) ? SLOTS : 2 * SLOTS, 0);
    for (int deaths = 0; deaths < DEATHS; deaths++) {
        int node = (int)rng_below(rng, NODES);
        if (!w.v.alive[node])
            continue;
        enum place_result got = place_substitute(&w.place, &w.rule.method, place_of(&w, node), &w.plan);
        assert_int_not_equal(got, PLACE_CANNOT);
        kill_nodes(&w, &node, 1);
        int moves = got == PLACE_MOVED ? w.plan.count : 0;
        assert_int_equal(w.v.planned, moves);
        for (int i = 0; i < moves; i++)
            assert_true(
                in_plan(&w.v, w.plan.moves[i].slot, w.node_at[w.plan.moves[i].from], w.node_at[w.plan.moves[i].to]));
        *most = moves > *most ? moves : *most;
        carry_out(&w, rng);
        for (int s = 0; s < SLOTS; s++) {
            assert_int_equal(view_slot_node(&w.v, s), w.node_at[w.place.node_of[s]]);
            for (int r = 0; r < w.v.ranks; r++)
                assert_true(w.v.rank[r].slot != s || w.v.rank[r].node == view_slot_node(&w.v, s));
        }
    }
    close_world(&w);
}

static void test_slides_plan_of_the_view_is_that_of_keel_place(void **state)
{
    (void)state;
    static const char *const methods[] = {"hybrid(all)", "0D", "hybrid(2D+1D+0D)", "hybrid(-2D)"};
    struct rng rng;
    seed_rng(&rng);
    int most = 0;
    for (int run = 0; run < 200; run++)
        one_sequence(&rng, methods[run % 4], &most);
    assert_true(most > 3); /* slides did come */
}

/* Not one after the other: the second would be aimed at, or would aim, as if it lived. */
static void test_slides_two_deaths_in_one_view_are_one_plan(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 200; run++) {
        struct grid_world w;
        struct transit t;
        open_world(&w, "hybrid(all)", SLOTS, 0);
        assert_true(transit_init(&t, &w.place, NULL));
        int a = (int)rng_below(&rng, NODES), b = (a + 1 + (int)rng_below(&rng, NODES - 1)) % NODES;
        int32_t dead[2] = {place_of(&w, a), place_of(&w, b)};
        assert_int_equal(transit_change(&t, &w.rule.method, dead, 2, NULL, 0), 0);
        kill_nodes(&w, (int[]){a, b}, 2);
        assert_int_equal(w.v.planned, t.lines.count);
        for (int i = 0; i < w.v.planned; i++) {
            const struct view_move *m = &w.v.plan[i];
            assert_int_equal(m->slot, t.lines.move[i].slot);
            assert_int_equal(m->to, w.node_at[t.lines.move[i].to]);
            assert_true(m->to != a && m->to != b);
        }
        for (int r = 0; r < SLOTS; r++) { /* who was lost has begun already, beside who is to go */
            assert_int_equal(w.v.rank[r].state, RANK_RUNNING);
            assert_true(w.v.alive[w.v.rank[r].node]);
            assert_int_equal(w.v.rank[r].incarnation, r == a || r == b);
        }
        carry_out(&w, &rng);
        for (int s = 0; s < SLOTS; s++)
            for (int k = 0; k < s; k++)
                assert_true(view_slot_node(&w.v, s) != view_slot_node(&w.v, k));
        transit_fini(&t);
        close_world(&w);
    }
}

/* Deaths at any time while ranks of several in a slot move: each lives somewhere, and in the end each slot has its
 * own node. */
static void test_slides_deaths_while_ranks_move(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 300; run++) {
        struct grid_world w;
        open_world(&w, run % 2 ? "hybrid(all)" : "hybrid(-2D)", 2 * SLOTS, 0);
        for (int step = 0, deaths = 0; step < 60; step++) {
            int node = (int)rng_below(&rng, NODES);
            if (rng_below(&rng, 6) == 0 && deaths < 5 && w.v.alive[node]) {
                kill_nodes(&w, &node, 1);
                deaths++;
            } else {
                int r = (int)rng_below(&rng, 2 * SLOTS), to = plan_of_rank(&w.v, r);
                if (to >= 0)
                    move_rank(&w, r, to);
            }
            for (int r = 0; r < w.v.ranks; r++)
                assert_true(w.v.rank[r].state == RANK_RUNNING && w.v.alive[w.v.rank[r].node]);
        }
        carry_out(&w, &rng);
        for (int s = 0; s < SLOTS; s++)
            for (int k = 0; k < s; k++)
                assert_true(view_slot_node(&w.v, s) != view_slot_node(&w.v, k));
        for (int r = 0; r < w.v.ranks; r++)
            assert_int_equal(w.v.rank[r].node, view_slot_node(&w.v, w.v.rank[r].slot));
        close_world(&w);
    }
}

/* A node of the line, whose slot has gone on or is to go, cannot start the one that comes: the method takes it for
 * dead, ranks that live there go on elsewhere, and nobody is lost. */
static void test_slides_nodes_that_start_no_process_are_dead_to_the_plan(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 200; run++) {
        struct grid_world w;
        open_world(&w, run % 2 ? "hybrid(all)" : "1D", 2 * SLOTS, 0);
        int dead[2] = {(int)rng_below(&rng, SLOTS), -1};
        kill_nodes(&w, dead, 1);
        int began[2 * SLOTS], n = 0, refusing = -1;
        for (int r = 0; r < w.v.ranks; r++) {
            int to = plan_of_rank(&w.v, r);
            if (to >= 0 && rng_below(&rng, 2))
                move_rank(&w, r, to);
            if (w.v.rank[r].incarnation > 0)
                began[n++] = r;
        }
        for (int i = 0; i < n; i++) {
            const struct view_rank *k = &w.v.rank[began[i]];
            if (refusing >= 0 && k->node != refusing)
                continue;
            refusing = k->node;
            struct view_event e = {VIEW_REFUSED, (uint32_t)began[i], k->incarnation, (uint32_t)k->node, 0};
            change(&w, &e, 1);
            assert_int_equal(k->state, RANK_RUNNING);
            assert_true(w.v.alive[k->node] && k->node != refusing);
        }
        carry_out(&w, &rng);
        for (int r = 0; r < w.v.ranks; r++) {
            assert_int_equal(w.v.rank[r].state, RANK_RUNNING);
            assert_true(w.v.rank[r].node != refusing);
            assert_int_equal(w.v.rank[r].node, view_slot_node(&w.v, w.v.rank[r].slot));
        }
        close_world(&w);
    }
}

static void test_slides_rank_goes_nowhere_but_where_its_slot_is_to_go(void **state)
{
    (void)state;
    struct grid_world w;
    open_world(&w, "hybrid(all)", SLOTS, 0);
    move_rank(&w, 3, 12);
    assert_int_equal(w.v.rank[3].node, 3); /* its process has ended: it begins again */
    assert_int_equal(w.v.rank[3].incarnation, 1);
    kill_nodes(&w, (int[]){0}, 1);
    for (int i = 0; i < w.v.planned; i++) {
        const struct view_move m = w.v.plan[i];
        if (!w.v.alive[m.from])
            continue;
        move_rank(&w, m.slot, m.to == 12 ? 13 : 12);
        assert_int_equal(view_slot_node(&w.v, m.slot), m.from);
        move_rank(&w, m.slot, m.to);
        assert_int_equal(view_slot_node(&w.v, m.slot), m.to);
        break;
    }
    close_world(&w);
}

/* It has the place that it had: a slot without another node would be there again. */
static void test_slides_node_that_comes_back_has_its_place(void **state)
{
    (void)state;
    struct grid_world w;
    open_world(&w, "0D", SLOTS, 2);
    int spares[SPARES], at = 0;
    for (int m = SLOTS; m < NODES; m++)
        spares[at++] = m;
    kill_nodes(&w, spares, SPARES);
    struct view_event born = {.type = VIEW_NODE_BORN, .a = NODES, .c = 1 + SLOTS};
    change(&w, &born, 1);
    kill_nodes(&w, (int[]){4}, 1);
    assert_true(in_plan(&w.v, 4, 4, NODES));
    assert_int_equal(view_slot_node(&w.v, 4), NODES);
    kill_nodes(&w, (int[]){5}, 1);
    assert_int_equal(w.v.rank[5].state, RANK_DEAD);
    close_world(&w);
}

static struct view_event new_node(int node, int place)
{
    return (struct view_event){.type = VIEW_NODE_BORN, .a = (uint32_t)node, .d = 1 + (uint64_t)place};
}

/* Of a dead node, or of none: it is as if that one had come back. One on which somebody lives is nobody else's. */
static void test_slides_node_that_is_new_has_the_place_that_it_names(void **state)
{
    (void)state;
    struct grid_world w;
    open_world(&w, "0D", SLOTS, 3);
    int taken = plan_place(&w.v, 3), dead = plan_place(&w.v, SLOTS);
    for (int m = SLOTS; m < NODES; m++)
        kill_nodes(&w, &m, 1);
    struct view_event beside = new_node(NODES, taken), none = new_node(NODES + 1, NODES),
                      instead = new_node(NODES + 2, dead);
    change(&w, &beside, 1);
    change(&w, &none, 1);
    assert_int_equal(plan_place(&w.v, NODES), -1);
    assert_int_equal(plan_place(&w.v, NODES + 1), -1);
    assert_int_equal(plan_place(&w.v, 3), taken);
    change(&w, &instead, 1);
    assert_int_equal(plan_place(&w.v, NODES + 2), dead);
    assert_int_equal(plan_place(&w.v, SLOTS), -1);
    kill_nodes(&w, (int[]){4}, 1);
    assert_true(in_plan(&w.v, 4, 4, NODES + 2));
    assert_int_equal(view_slot_node(&w.v, 4), NODES + 2);
    close_world(&w);
}

static int first_free(const struct view *v)
{
    bool lives[NODES] = {false};
    for (int m = 0; m < view_ids(v); m++)
        if (v->alive[m] && plan_place(v, m) >= 0)
            lives[plan_place(v, m)] = true;
    int place = 0;
    while (place < NODES && lives[place])
        place++;
    return place < NODES ? place : -1;
}

/* A new one has its place, which it named. It has not, and takes another one as long as there is one. */
static void test_slides_node_that_comes_back_late_has_another_place(void **state)
{
    (void)state;
    struct grid_world w;
    open_world(&w, "0D", SLOTS, 4);
    int dead = plan_place(&w.v, SLOTS + 1);
    for (int m = SLOTS; m < SLOTS + 3; m++)
        kill_nodes(&w, &m, 1);
    struct view_event instead = new_node(NODES, dead), same = new_node(NODES + 1, dead),
                      late = {.type = VIEW_NODE_BORN, .a = NODES + 2, .c = 1 + SLOTS + 1},
                      new = {.type = VIEW_NODE_BORN, .a = NODES + 3};
    change(&w, &instead, 1);
    change(&w, &same, 1);
    assert_int_equal(plan_place(&w.v, NODES + 1), -1);
    int free = first_free(&w.v);
    change(&w, &late, 1);
    assert_int_equal(plan_place(&w.v, NODES + 2), free);
    free = first_free(&w.v);
    change(&w, &new, 1);
    assert_int_equal(plan_place(&w.v, NODES + 3), free);
    assert_int_equal(first_free(&w.v), -1);
    close_world(&w);
}

static void test_slides_node_that_comes_back_where_all_places_are_taken_stands_nowhere(void **state)
{
    (void)state;
    struct grid_world w;
    open_world(&w, "0D", SLOTS, 2);
    int dead = plan_place(&w.v, SLOTS), node = SLOTS;
    kill_nodes(&w, &node, 1);
    struct view_event instead = new_node(NODES, dead), late = {.type = VIEW_NODE_BORN, .a = NODES + 1, .c = 1 + SLOTS};
    change(&w, &instead, 1);
    change(&w, &late, 1);
    assert_true(w.v.alive[NODES + 1]);
    assert_int_equal(plan_place(&w.v, NODES + 1), -1);
    assert_int_equal(plan_place(&w.v, NODES), dead);
    close_world(&w);
}

/* Where ranks do not begin again nodes are born all the same. */
static void test_slides_where_nobody_begins_again_no_place_is_given_twice(void **state)
{
    (void)state;
    struct grid_world w;
    open_world(&w, "0D", SLOTS, 2);
    int dead = plan_place(&w.v, SLOTS), node = SLOTS;
    change(&w, &(struct view_event){.type = VIEW_NEEDS, .a = NEEDS_ALL}, 1);
    kill_nodes(&w, &node, 1);
    for (int i = 0; i < 2; i++) {
        struct view_event born = new_node(NODES + i, dead);
        change(&w, &born, 1);
        assert_int_equal(plan_place(&w.v, NODES + i), i ? -1 : dead);
    }
    close_world(&w);
}

/* What had no node at the start gets one. */
static void test_slides_place_that_was_dead_at_the_start_gets_a_node(void **state)
{
    (void)state;
    struct grid_rule rule;
    struct view v;
    static const int dead[] = {NODES - 1};
    open_rule(&rule, "4x4", "0D");
    rule.dead = dead;
    rule.ndead = 1;
    int rank_node[SLOTS];
    for (int r = 0; r < SLOTS; r++)
        rank_node[r] = r;
    assert_true(view_init(&v, VIEW_SUBSTITUTE, SLOTS, SPARES - 1, 1, SLOTS, rank_node, NULL));
    assert_true(view_place(&v, &rule));
    struct view_event born = new_node(NODES - 1, dead[0]);
    view_apply(&v, 1, &born, 1);
    assert_int_equal(plan_place(&v, NODES - 1), dead[0]);
    uint64_t epoch = 1;
    for (int m = SLOTS; m < NODES - 1; m++) {
        struct view_event e = {.type = VIEW_NODE_DEAD, .a = (uint32_t)m, .b = 1};
        view_apply(&v, ++epoch, &e, 1);
    }
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = 4, .b = 1};
    view_apply(&v, ++epoch, &e, 1);
    assert_int_equal(view_slot_node(&v, 4), NODES - 1);
    view_fini(&v);
}

static void test_slides_where_nobody_begins_again_nothing_is_planned(void **state)
{
    (void)state;
    struct grid_world w;
    open_world(&w, "hybrid(all)", SLOTS, 0);
    struct view_event needs[2] = {{.type = VIEW_NEEDS, .a = NEEDS_ALL}, {.type = VIEW_NEEDS, .a = NEEDS_NONE}};
    change(&w, needs, 2);
    kill_nodes(&w, (int[]){4}, 1);
    assert_int_equal(w.v.planned, 0);
    assert_int_equal(w.v.rank[4].state, RANK_DEAD);
    assert_false(w.v.stopped);
    close_world(&w);
}

static void test_slides_grid_that_does_not_fit_or_without_memory_changes_nothing(void **state)
{
    (void)state;
    struct grid_rule rule;
    struct view v;
    open_one(&v, NULL, SLOTS, 0);
    open_rule(&rule, "5x4", "0D");
    assert_false(view_place(&v, &rule));
    open_rule(&rule, "4x4", "0D");
    rule.layout.s = 2; /* places for four slots */
    assert_false(view_place(&v, &rule));
    open_rule(&rule, "4x4", "0D");
    size_t before = memory_living();
    for (long n = 1;; n++) {
        memory_fail_at(n);
        bool ok = view_place(&v, &rule);
        if (!memory_failed()) {
            assert_true(ok && n > 3);
            break;
        }
        assert_false(ok);
        assert_int_equal(memory_living(), before);
    }
    memory_fail_at(0);
    assert_false(view_place(&v, &rule)); /* once */
    view_fini(&v);
}

/* ---- auto ---- */

static void open_auto(struct grid_world *w, int ranks)
{
    memset(w, 0, sizeof *w);
    open_rule(&w->rule, "4x4", "0D");
    assert_null(rule_method(&w->rule.method, "auto", w->rule.grid.ndims));
    open_one(&w->v, &w->rule, ranks, 1);
    open_one(&w->twin, &w->rule, ranks, 1);
    assert_true(place_init(&w->place, &w->rule.grid, &w->rule.layout, 0, NULL));
    assert_true(place_plan_init(&w->plan, &w->place));
}

static void figure(struct grid_world *w, enum view_figure kind, uint32_t b, uint32_t c, uint64_t d)
{
    change(w, &(struct view_event){.type = VIEW_FIGURE, .a = kind, .b = b, .c = c, .d = d}, 1);
}

static void pattern(struct grid_world *w, enum weigh_shape shape, uint64_t bytes, uint32_t horizon_s)
{
    figure(w, FIGURE_PATTERN, view_pattern_word(shape, true, horizon_s), 1000, bytes);
}

static void ask(struct grid_world *w)
{
    change(w, &(struct view_event){.type = VIEW_REBALANCE}, 1);
    assert_int_equal(plan_rebalanced(&w->v), plan_rebalanced(&w->twin));
}

static int moving(const struct view *v)
{
    int n = 0;
    for (int i = 0; i < v->planned; i++)
        n += v->alive[v->plan[i].from];
    return n;
}

/* Node 4 is the one in the middle. */
static void test_slides_auto_chooses_by_what_was_said(void **state)
{
    (void)state;
    struct grid_world w;
    open_auto(&w, SLOTS);
    assert_int_equal(plan_auto(&w.v)->weigh.figures.shape, WEIGH_NOTHING);
    pattern(&w, WEIGH_STAR, 1, 10);
    figure(&w, FIGURE_SLOT, 4, 0, 1 << 20);
    kill_nodes(&w, (int[]){4}, 1);
    assert_int_equal(moving(&w.v), 0); /* hardly anything is sent */
    assert_int_equal(plan_decisions(&w.v), 1);
    const struct auto_decision *d = &plan_auto(&w.v)->decision[0];
    assert_true(d->known && d->slot == 4 && d->figures.horizon_ms == 10000 && d->figures.declared);
    close_world(&w);
    open_auto(&w, SLOTS);
    pattern(&w, WEIGH_STAR, 50000000, 1000);
    kill_nodes(&w, (int[]){4}, 1);
    assert_true(moving(&w.v) > 0);
    figure(&w, FIGURE_BEGIN, 0, 0, 5);
    assert_int_equal(plan_decisions(&w.v), 0); /* in this view nothing was decided */
    close_world(&w);
}

static void test_slides_figures_that_make_no_sense_change_nothing(void **state)
{
    (void)state;
    struct grid_world w;
    open_auto(&w, SLOTS);
    pattern(&w, WEIGH_BOX, 7, 10);
    pattern(&w, WEIGH_SHAPES, 9, 20);
    figure(&w, FIGURE_RATE, 0, 0, 0);
    figure(&w, FIGURE_SLOT, SLOTS, 0, 9);
    figure(&w, (enum view_figure)99, 0, 0, 9);
    const struct weigh *now = &plan_auto(&w.v)->weigh;
    assert_true(now->figures.shape == WEIGH_BOX && now->figures.message_bytes == 7 &&
                now->figures.horizon_ms == 10000 && now->figures.link_rate == PLAN_RATE &&
                now->figures.begin_us == PLAN_BEGIN_US);
    for (int s = 0; s < SLOTS; s++)
        assert_int_equal(now->slot_bytes[s], 0);
    figure(&w, FIGURE_RATE, 0, 0, 5);
    figure(&w, FIGURE_SLOT, SLOTS - 1, 0, 9);
    assert_true(now->figures.link_rate == 5 && now->slot_bytes[SLOTS - 1] == 9 && now->slot_bytes[0] == 0);
    close_world(&w);
    open_world(&w, "1D", SLOTS, 0);
    pattern(&w, WEIGH_BOX, 7, 10);
    ask(&w);
    assert_null(plan_auto(&w.v));
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_NOT_AUTO);
    close_world(&w);
}

/* The copy of a lost slot comes from a node that lives and has one, and auto knows which. */
static void test_slides_auto_knows_where_copies_are(void **state)
{
    (void)state;
    struct grid_world w;
    open_auto(&w, SLOTS);
    pattern(&w, WEIGH_STAR, 1, 10);
    int shadow = w.v.copyset[copyset_of(4, 1)].copy[1].node;
    kill_nodes(&w, (int[]){4}, 1);
    assert_int_equal(plan_auto(&w.v)->weigh.made_from[4], plan_place(&w.v, shadow));
    close_world(&w);
}

static void test_slides_a_rebalance_moves_ranks_that_live(void **state)
{
    (void)state;
    struct grid_world w;
    struct rng rng;
    seed_rng(&rng);
    open_auto(&w, 2 * SLOTS);
    ask(&w);
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_UNKNOWN);
    pattern(&w, WEIGH_STAR, 1, 10);
    kill_nodes(&w, (int[]){4}, 1);
    carry_out(&w, &rng);
    ask(&w);
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_STAYS);
    assert_int_equal(plan_decisions(&w.v), 1);
    pattern(&w, WEIGH_STAR, 50000000, 1000);
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_NONE);
    ask(&w);
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_MOVES);
    assert_true(moving(&w.v) > 0 && moving(&w.v) == w.v.planned && !plan_is_quiet(&w.v));
    enum plan_waiting why;
    int node, to, slot = plan_waits_for(&w.v, &why, &node, &to);
    assert_true(slot >= 0 && why == PLAN_GOES && node == view_slot_node(&w.v, slot) && to != node);
    assert_int_equal(to, plan_slot_target(&w.v, slot));
    ask(&w);
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_UNDER_WAY);
    int died = w.v.plan[0].to; /* one of those that go dies: the rest ends in a plan from what is true */
    kill_nodes(&w, &died, 1);
    carry_out(&w, &rng);
    assert_true(plan_is_quiet(&w.v));
    assert_int_equal(plan_waits_for(&w.v, &why, &node, &to), -1);
    for (int s = 0; s < SLOTS; s++)
        for (int k = 0; k < s; k++)
            assert_true(view_slot_node(&w.v, s) != view_slot_node(&w.v, k));
    for (int r = 0; r < w.v.ranks; r++)
        assert_true(w.v.rank[r].state == RANK_RUNNING && w.v.rank[r].node == view_slot_node(&w.v, w.v.rank[r].slot));
    close_world(&w);
}

/* A node that is dead in the same view: moves follow from that, and nobody is asked for more. */
static void test_slides_a_rebalance_gives_way_to_a_death(void **state)
{
    (void)state;
    struct grid_world w;
    open_auto(&w, SLOTS);
    pattern(&w, WEIGH_STAR, 50000000, 1000);
    change(&w,
           (struct view_event[]){{.type = VIEW_REBALANCE}, {.type = VIEW_NODE_DEAD, .a = 4}, {.type = VIEW_REBALANCE}},
           3);
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_UNDER_WAY);
    assert_int_equal(plan_decisions(&w.v), 1);
    close_world(&w);
}

/* No spare is left, and a slot's node starts no process: its other rank lives there, and the slot is named. */
static void test_slides_a_rebalance_waits_for_a_slot_on_a_node_that_refuses(void **state)
{
    (void)state;
    struct grid_world w;
    open_auto(&w, 2 * SLOTS);
    for (int node = SLOTS; node < NODES; node++)
        kill_nodes(&w, &node, 1);
    change(&w, &(struct view_event){VIEW_REFUSED, 0, w.v.rank[0].incarnation, 0, 0}, 1);
    assert_int_equal(w.v.rank[1].state, RANK_RUNNING);
    ask(&w);
    assert_int_equal(plan_rebalanced(&w.v), REBALANCE_UNDER_WAY);
    enum plan_waiting why;
    int node, to;
    assert_int_equal(plan_waits_for(&w.v, &why, &node, &to), 0);
    assert_int_equal(why, PLAN_NO_PLACE);
    assert_int_equal(node, 0);
    assert_int_equal(to, -1);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slides_plan_of_the_view_is_that_of_keel_place),
        cmocka_unit_test(test_slides_two_deaths_in_one_view_are_one_plan),
        cmocka_unit_test(test_slides_deaths_while_ranks_move),
        cmocka_unit_test(test_slides_nodes_that_start_no_process_are_dead_to_the_plan),
        cmocka_unit_test(test_slides_rank_goes_nowhere_but_where_its_slot_is_to_go),
        cmocka_unit_test(test_slides_node_that_comes_back_has_its_place),
        cmocka_unit_test(test_slides_node_that_is_new_has_the_place_that_it_names),
        cmocka_unit_test(test_slides_node_that_comes_back_late_has_another_place),
        cmocka_unit_test(test_slides_node_that_comes_back_where_all_places_are_taken_stands_nowhere),
        cmocka_unit_test(test_slides_where_nobody_begins_again_no_place_is_given_twice),
        cmocka_unit_test(test_slides_place_that_was_dead_at_the_start_gets_a_node),
        cmocka_unit_test(test_slides_where_nobody_begins_again_nothing_is_planned),
        cmocka_unit_test(test_slides_grid_that_does_not_fit_or_without_memory_changes_nothing),
        cmocka_unit_test(test_slides_auto_chooses_by_what_was_said),
        cmocka_unit_test(test_slides_figures_that_make_no_sense_change_nothing),
        cmocka_unit_test(test_slides_auto_knows_where_copies_are),
        cmocka_unit_test(test_slides_a_rebalance_moves_ranks_that_live),
        cmocka_unit_test(test_slides_a_rebalance_gives_way_to_a_death),
        cmocka_unit_test(test_slides_a_rebalance_waits_for_a_slot_on_a_node_that_refuses),
    };
    return cmocka_run_group_tests_name("slides", tests, NULL, NULL);
}
