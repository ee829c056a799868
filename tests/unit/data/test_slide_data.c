/* Copies go where their slots go: one that is made at the target, handed over when the ranks are there, and what is too
 * much goes. A line of three slots is gone through in every order of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/lib/topo/look.h"
#include "runtime/view/plan.h"
#include "seed.h"

enum { NONE, SHADOW, TRIPLE };

/* A row of nodes, of which the last ones are spares. */
struct row {
    struct view v;
    struct grid_rule rule;
};

static void open_row(struct row *w, const char *grid, const char *spares, int slots, int ranks, int room)
{
    int rank_node[32];
    memset(w, 0, sizeof *w);
    assert_null(grid_parse(&w->rule.grid, grid));
    assert_null(spare_parse(&w->rule.layout, spares));
    assert_null(place_method_parse(&w->rule.method, "hybrid(1D+0D)", w->rule.grid.ndims));
    for (int r = 0; r < ranks; r++)
        rank_node[r] = r * slots / ranks;
    assert_true(view_init(&w->v, VIEW_SUBSTITUTE, slots, w->rule.grid.nodes - slots, room, ranks, rank_node, NULL));
    assert_true(view_place(&w->v, &w->rule));
}

static bool is_whole_at(const struct view_copyset *g, int node)
{
    int at = view_copy_at(g, node);
    return at >= 0 && g->copy[at].whole;
}

/* From one view to the next: what was whole and lives is whole, and goes only where enough are left; nothing is lost of
 * which a whole copy lives; a copy that is whole was so, or its primary said so. */
static void check_change(const struct view *v, int copyset, const struct view_copyset *old, bool said)
{
    const struct view_copyset *g = &v->copyset[copyset];
    int lived = 0, wanted = (int)copyset_class(copyset) + 1;
    for (int i = 0; i < old->copies; i++)
        lived += old->copy[i].whole && v->alive[old->copy[i].node];
    assert_int_equal(g->lost_at, lived || g->copies == 0 ? old->lost_at : v->epoch);
    assert_true(g->copies == 0 || g->copy[0].whole);
    assert_true(view_whole_copies(g) >= (lived < wanted ? lived : wanted));
    assert_true(view_whole_copies(g) <= LEGS_MAX); /* the chain, and the writers' legs */
    assert_true(g->mode == COPYSET_REPAIR || view_whole_copies(g) == g->copies);
    assert_true(g->mode == COPYSET_REPAIR || copyset_class(copyset) != NONE || g->copies <= 1);
    for (int i = 0; i < g->copies && lived; i++) {
        assert_true(v->alive[g->copy[i].node]);
        assert_int_equal(view_copy_at(g, g->copy[i].node), i);
        assert_true(!g->copy[i].whole || is_whole_at(old, g->copy[i].node) || said);
    }
    if (g->copies > 0 && lived && old->copies > 0 && v->alive[old->copy[0].node] &&
        g->copy[0].node != old->copy[0].node) { /* handed over: by its own word, to the ranks' node */
        assert_true(said);
        assert_int_equal(g->copy[0].node, view_slot_node(v, copyset_slot(copyset)));
    }
}

static void apply(struct view *v, const struct view_event *e, int n)
{
    struct view_copyset old[7 * CLASSES];
    memcpy(old, v->copyset, sizeof *old * (size_t)(v->nodes * CLASSES));
    view_apply(v, v->epoch + 1, e, n);
    for (int i = 0; i < v->nodes * CLASSES; i++)
        check_change(v, i, &old[i], e->type == VIEW_RESTORED);
}

static void one(struct view *v, uint32_t type, int a, uint32_t b, uint32_t c, uint64_t d)
{
    apply(v, &(struct view_event){.type = type, .a = (uint32_t)a, .b = b, .c = c, .d = d}, 1);
}

static void kill_node(struct view *v, int node)
{
    one(v, VIEW_NODE_DEAD, node, 0, 0, 0);
}

static void decline(struct view *v, int node)
{
    one(v, VIEW_DECLINED, node, 0, 0, 0);
}

static bool restore(struct view *v, int copyset)
{
    bool any = v->copyset[copyset].mode == COPYSET_REPAIR;
    if (any)
        one(v, VIEW_RESTORED, copyset, 0, 0, v->copyset[copyset].generation);
    return any;
}

static bool restore_slot(struct view *v, int slot)
{
    bool any = false;
    for (unsigned c = 0; c < CLASSES; c++)
        any = restore(v, copyset_of(slot, c)) || any;
    return any;
}

static bool move_rank(struct view *v, int rank)
{
    int to = plan_of_rank(v, rank);
    if (to < 0 || !view_slot_ready(v, v->rank[rank].slot))
        return false;
    one(v, VIEW_RANK_MOVED, rank, v->rank[rank].incarnation, (uint32_t)to, view_moved_word(true, 0));
    assert_int_equal(v->rank[rank].node, to);
    return true;
}

static const struct view_copyset *set(const struct row *w, int slot, unsigned redundancy)
{
    return &w->v.copyset[copyset_of(slot, redundancy)];
}

/* ---- one line ---- */

static void test_slide_data_further_copy_is_made_at_the_target_of_each_slot_of_a_line(void **state)
{
    (void)state;
    struct row w;
    open_row(&w, "8", "1D(1,1)", 7, 7, 0);
    kill_node(&w.v, 3); /* 3 begins on 4; 4, 5, 6 go one on */
    assert_int_equal(view_slot_node(&w.v, 3), 4);
    for (int s = 4; s < 7; s++) {
        assert_int_equal(plan_slot_target(&w.v, s), s + 1);
        assert_false(view_slot_ready(&w.v, s));
        assert_int_equal(set(&w, s, NONE)->copies, 1); /* goes behind its ranks */
        for (unsigned c = SHADOW; c <= TRIPLE; c++) {
            const struct view_copyset *g = set(&w, s, c);
            int at = view_copy_at(g, s + 1);
            assert_int_equal(g->copy[0].node, s);
            assert_true(at > 0);
            assert_int_equal(g->mode, COPYSET_REPAIR);
            assert_int_equal(g->copy[at].placed, w.v.epoch); /* all at once: nobody waits for its own to leave */
        }
    }
    for (int s = 0; s < 3; s++)
        assert_true(view_slot_ready(&w.v, s)); /* they go nowhere */
    view_fini(&w.v);
}

static void test_slide_data_target_is_the_primary_when_the_ranks_are_there_and_the_old_copy_goes(void **state)
{
    (void)state;
    struct row w;
    open_row(&w, "8", "1D(1,1)", 7, 14, 0);
    kill_node(&w.v, 3);
    const int slot = 5, ranks[2] = {10, 11};
    restore_slot(&w.v, slot);
    assert_true(view_slot_ready(&w.v, slot));
    assert_int_equal(set(&w, slot, SHADOW)->copies, 3); /* all of which writers write: */
    assert_int_equal(set(&w, slot, TRIPLE)->copies, 3); /* three at most */
    for (unsigned c = SHADOW; c <= TRIPLE; c++) {
        assert_int_equal(set(&w, slot, c)->mode, COPYSET_DIRECT);
        assert_int_equal(set(&w, slot, c)->copy[0].node, slot);
    }
    assert_true(move_rank(&w.v, ranks[0]));
    assert_int_equal(set(&w, slot, SHADOW)->copy[0].node, slot); /* one is there still */
    assert_true(move_rank(&w.v, ranks[1]));
    assert_int_equal(view_slot_node(&w.v, slot), slot + 1);
    for (unsigned c = NONE; c <= TRIPLE; c++) { /* not before all is acknowledged */
        assert_int_equal(set(&w, slot, c)->mode, COPYSET_REPAIR);
        assert_int_equal(set(&w, slot, c)->copy[0].node, slot);
    }
    assert_false(is_whole_at(set(&w, slot, NONE), slot + 1));
    restore_slot(&w.v, slot);
    for (unsigned c = NONE; c <= TRIPLE; c++) {
        assert_int_equal(set(&w, slot, c)->mode, COPYSET_DIRECT);
        assert_int_equal(set(&w, slot, c)->copies, c + 1);
        assert_int_equal(set(&w, slot, c)->copy[0].node, slot + 1);
        assert_true(is_whole_at(set(&w, slot, c), slot + 1));
    }
    view_fini(&w.v);
}

/* The target holds the shadow: nothing is to be filled, and the old copy is the shadow from then on. */
static void test_slide_data_old_copy_stays_where_another_would_be_filled(void **state)
{
    (void)state;
    struct row w;
    open_row(&w, "3", "1D(1,1)", 2, 2, 0);
    kill_node(&w.v, 0); /* 0 begins on 1, which has its shadow; 1 goes to 2 */
    const struct view_copyset *g = set(&w, 1, SHADOW);
    assert_int_equal(g->copies, 2); /* its shadow was on 0 */
    assert_int_equal(view_copy_at(g, 2), 1);
    restore_slot(&w.v, 0);
    restore_slot(&w.v, 1);
    assert_true(move_rank(&w.v, 1));
    restore_slot(&w.v, 1);
    assert_int_equal(g->copy[0].node, 2);
    assert_int_equal(g->copy[1].node, 1);
    assert_int_equal(g->copies, 2);
    view_fini(&w.v);
}

static void test_slide_data_copy_whose_plan_went_goes_or_is_the_shadow(void **state)
{
    (void)state;
    for (int shadow_dies = 0; shadow_dies < 2; shadow_dies++) {
        struct row w;
        open_row(&w, "8", "1D(1,1)", 7, 7, 0);
        kill_node(&w.v, 5); /* 5 begins on 6; 6 goes to 7 */
        assert_int_equal(plan_slot_target(&w.v, 6), 7);
        const struct view_copyset *g = set(&w, 6, SHADOW);
        int shadow = g->copy[1].node;
        assert_true(shadow != 7 && view_copy_at(g, 7) > 0);
        struct view_event e[2] = {{.type = VIEW_DECLINED, .a = 7}, {.type = VIEW_NODE_DEAD, .a = (uint32_t)shadow}};
        apply(&w.v, e, 1 + shadow_dies);
        int to;
        assert_int_equal(plan_gave_up(&w.v, 6, &to), w.v.epoch);
        assert_int_equal(to, 7);
        assert_int_equal(plan_slot_target(&w.v, 6), -1);
        assert_int_equal(plan_of_rank(&w.v, 6), -1);
        assert_int_equal(view_copy_at(g, 7), -1);
        assert_int_equal(g->copies, 2);
        assert_int_equal(g->copy[0].node, 6);
        view_fini(&w.v);
    }
}

/* Whoever lives behind it in the line stays as well; who was lost has begun beside it. */
static void test_slide_data_line_stays_behind_a_node_without_memory(void **state)
{
    (void)state;
    struct row w;
    int to;
    open_row(&w, "8", "1D(1,1)", 7, 7, 0);
    kill_node(&w.v, 3);
    restore_slot(&w.v, 4);
    decline(&w.v, 6); /* has no memory for 5 */
    assert_int_equal(plan_gave_up(&w.v, 5, &to), w.v.epoch);
    assert_int_equal(plan_gave_up(&w.v, 4, &to), w.v.epoch);
    assert_int_equal(to, 5);
    assert_int_equal(plan_gave_up(&w.v, 6, &to), 0);
    assert_int_equal(plan_slot_target(&w.v, 6), 7);
    assert_int_equal(w.v.rank[3].node, 4);
    uint64_t since = w.v.epoch;
    for (int s = 0; s < 7; s++)
        restore_slot(&w.v, s);
    assert_true(move_rank(&w.v, 6));
    assert_int_equal(plan_gave_up(&w.v, 4, &to), since); /* said once */
    enum plan_waiting why;
    int node;
    assert_int_equal(plan_waits_for(&w.v, &why, &node, &to), 4);
    assert_true(why == PLAN_STAYS && node == 4 && to == 5);
    for (int r = 0; r < 7; r++)
        assert_int_equal(plan_of_rank(&w.v, r), -1);
    for (unsigned c = SHADOW; c <= TRIPLE; c++)
        assert_int_equal(view_copy_at(set(&w, 4, c), 4), 0);
    view_fini(&w.v);
}

/* The primary said that its copies are equal before it could know that the slot is another node's. */
static void test_slide_data_word_about_an_older_home_hands_nothing_over(void **state)
{
    (void)state;
    struct row w;
    open_row(&w, "8", "1D(1,1)", 7, 7, 0);
    kill_node(&w.v, 5);
    restore_slot(&w.v, 6);
    int copyset = copyset_of(6, SHADOW);
    uint64_t said = w.v.copyset[copyset].generation;
    struct view_event e[2] = {{.type = VIEW_RANK_MOVED, .a = 6, .b = 0, .c = 7, .d = view_moved_word(true, 0)},
                              {.type = VIEW_RESTORED, .a = (uint32_t)copyset, .d = said}};
    apply(&w.v, e, 2);
    assert_int_equal(view_slot_node(&w.v, 6), 7);
    assert_int_equal(w.v.copyset[copyset].copy[0].node, 6);
    assert_int_equal(w.v.copyset[copyset].mode, COPYSET_REPAIR);
    /* nor of a slot whose ranks have all ended */
    struct row x;
    open_row(&x, "8", "1D(1,1)", 7, 7, 0);
    kill_node(&x.v, 5);
    restore_slot(&x.v, 6);
    one(&x.v, VIEW_RANK_DONE, 6, 0, 0, 0);
    assert_int_equal(view_slot_node(&x.v, 6), 7);
    assert_int_equal(x.v.copyset[copyset].mode, COPYSET_REPAIR);
    view_fini(&w.v);
    view_fini(&x.v);
}

/* ---- every order of events ---- */

enum { STEPS_MAX = 24, SLOTS = 3, NODES = 5, DEATHS = 1 };
enum action { RESTORE, MOVE, DEATH, TWO_DEATHS, DECLINE, ACTIONS };

struct path {
    int steps, deaths, declines;
    uint8_t step[STEPS_MAX][2]; /* action, of what */
};

/* What is possible is done. False: it is not possible now. */
static bool act(struct view *v, struct path *p, enum action action, int of)
{
    int other = (of + 1) % NODES;
    switch (action) {
    case RESTORE:
        return restore_slot(v, of);
    case MOVE:
        return move_rank(v, of);
    case DEATH:
        if (!v->alive[of] || p->deaths >= DEATHS)
            return false;
        p->deaths++;
        kill_node(v, of);
        return true;
    case TWO_DEATHS:
        if (!v->alive[of] || !v->alive[other] || p->deaths > 0)
            return false;
        p->deaths += 2;
        apply(v,
              (struct view_event[]){{.type = VIEW_NODE_DEAD, .a = (uint32_t)of},
                                    {.type = VIEW_NODE_DEAD, .a = (uint32_t)other}},
              2);
        return true;
    default:
        if (!v->alive[of] || p->declines == 1)
            return false;
        p->declines++;
        decline(v, of);
        return true;
    }
}

static void open_path(struct row *w, struct path *p)
{
    struct path again = *p;
    open_row(w, "5", "1D(1,2)", SLOTS, SLOTS, 0);
    kill_node(&w->v, 0);
    again.deaths = again.declines = 0;
    for (int i = 0; i < p->steps; i++)
        assert_true(act(&w->v, &again, (enum action)p->step[i][0], p->step[i][1]));
}

/* Of all that decides what may come. */
static uint64_t digest(const struct view *v, const struct path *p)
{
    uint64_t sum = digest_add(digest_add(1, p->deaths), p->declines);
    for (int m = 0; m < NODES; m++)
        sum = digest_add(sum, v->alive[m] | v->full[m] << 1 | v->spare_free[m] << 2);
    for (int s = 0; s < SLOTS; s++) {
        sum = digest_add(digest_add(sum, v->home[s]), v->rank[s].node);
        sum = digest_add(digest_add(sum, plan_slot_target(v, s)), v->ring[s]);
    }
    for (int i = 0; i < SLOTS * CLASSES; i++) {
        const struct view_copyset *g = &v->copyset[i];
        sum = digest_add(sum, g->copies | g->mode << 4);
        for (int k = 0; k < g->copies; k++)
            sum = digest_add(sum, g->copy[k].node | g->copy[k].whole << 8);
    }
    return sum;
}

/* Nobody fails any more: the plan is carried out, or given up, and each slot has its copies, and has them at home,
 * where there is memory. */
static void check_end(struct view *v)
{
    int left = 200;
    for (bool any = true; any; left--) {
        assert_true(left > 0);
        any = false;
        for (int s = 0; s < SLOTS; s++) {
            any = restore_slot(v, s) || any;
            any = move_rank(v, s) || any;
        }
    }
    int living = 0;
    for (int m = 0; m < NODES; m++)
        living += v->alive[m] && !v->full[m];
    for (int s = 0; s < SLOTS; s++) {
        int home = view_slot_node(v, s);
        assert_int_equal(plan_slot_target(v, s), -1);
        assert_int_equal(plan_of_rank(v, s), -1);
        for (unsigned c = 0; c < CLASSES && home >= 0; c++) {
            const struct view_copyset *g = &v->copyset[copyset_of(s, c)];
            assert_int_equal(g->mode, COPYSET_DIRECT);
            assert_true(g->copies >= ((int)c + 1 < living ? (int)c + 1 : living));
            assert_true(g->copies <= (int)c + 1);
            assert_true(g->copy[0].node == home || (v->full[home] && view_copy_at(g, home) < 0));
        }
    }
}

struct seen {
    uint64_t *digest;
    struct path *path;
    size_t count, room;
};

static bool is_new(struct seen *seen, uint64_t sum, const struct path *p)
{
    enum { MASK = (1 << 22) - 1 };
    size_t at = sum & MASK;
    for (; seen->digest[at]; at = (at + 1) & MASK)
        if (seen->digest[at] == sum)
            return false;
    seen->digest[at] = sum;
    if (seen->count == seen->room) {
        seen->room = seen->room ? 2 * seen->room : 1024;
        seen->path = realloc(seen->path, seen->room * sizeof *seen->path);
        assert_non_null(seen->path);
    }
    seen->path[seen->count++] = *p;
    return true;
}

static void step_on(struct seen *seen, const struct path *from, enum action action, int of)
{
    struct row w;
    struct path p = *from;
    open_path(&w, &p);
    if (act(&w.v, &p, action, of)) {
        p.step[p.steps][0] = (uint8_t)action;
        p.step[p.steps++][1] = (uint8_t)of;
        assert_true(p.steps < STEPS_MAX);
        if (is_new(seen, digest(&w.v, &p) | 1, &p))
            check_end(&w.v);
    }
    view_fini(&w.v);
}

static void test_slide_data_every_order_of_events_on_a_line_of_three(void **state)
{
    (void)state;
    struct seen seen = {.digest = calloc(1 << 22, sizeof *seen.digest)};
    struct path start = {0};
    assert_non_null(seen.digest);
    (void)is_new(&seen, 1, &start);
    for (size_t i = 0; i < seen.count; i++) {
        struct path from = seen.path[i];
        for (int action = 0; action < ACTIONS; action++)
            for (int of = 0; of < (action == RESTORE || action == MOVE ? SLOTS : NODES); of++)
                step_on(&seen, &from, (enum action)action, of);
    }
    print_message("%zu states\n", seen.count);
    assert_true(seen.count > 500);
    free(seen.digest);
    free(seen.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slide_data_further_copy_is_made_at_the_target_of_each_slot_of_a_line),
        cmocka_unit_test(test_slide_data_target_is_the_primary_when_the_ranks_are_there_and_the_old_copy_goes),
        cmocka_unit_test(test_slide_data_old_copy_stays_where_another_would_be_filled),
        cmocka_unit_test(test_slide_data_copy_whose_plan_went_goes_or_is_the_shadow),
        cmocka_unit_test(test_slide_data_line_stays_behind_a_node_without_memory),
        cmocka_unit_test(test_slide_data_word_about_an_older_home_hands_nothing_over),
        cmocka_unit_test(test_slide_data_every_order_of_events_on_a_line_of_three),
    };
    return cmocka_run_group_tests_name("slide data", tests, NULL, NULL);
}
