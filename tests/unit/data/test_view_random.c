/* Whatever happens to a view: what always holds. */
#include "view_bed.h"

#include <string.h>

#include "seed.h"

static struct view_event random_event(const struct view *v, struct rng *rng)
{
    uint32_t copyset = (uint32_t)rng_below(rng, (uint64_t)v->nodes * CLASSES),
             r = (uint32_t)rng_below(rng, (uint64_t)v->ranks);
    uint64_t generation = v->copyset[copyset].generation;
    switch (rng_below(rng, 17)) {
    case 16:
        return (struct view_event){VIEW_REFUSED, r, v->rank[r].incarnation - (rng_below(rng, 4) == 0),
                                   (uint32_t)v->rank[r].node, 0};
    case 14:
        return (struct view_event){VIEW_FIGURE, (uint32_t)rng_below(rng, 5), r, 1, generation};
    case 15:
        return (struct view_event){VIEW_REBALANCE, r, 0, 0, generation};
    case 12:
    case 13:
        return (struct view_event){VIEW_RANK_MOVED, r, v->rank[r].incarnation - (rng_below(rng, 4) == 0),
                                   (uint32_t)rng_below(rng, (uint64_t)(v->nodes + v->spares + 1)),
                                   view_moved_word(rng_below(rng, 2), 0)};
    case 0:
    case 1:
        return (struct view_event){VIEW_NODE_DEAD, (uint32_t)rng_below(rng, (uint64_t)(v->nodes + v->spares + 1)), 0, 0,
                                   0};
    case 2:
        return (struct view_event){VIEW_RANK_DEAD, r, v->rank[r].incarnation - (uint32_t)rng_below(rng, 2), 9, 0};
    case 3:
        return (struct view_event){VIEW_RANK_DONE, r, v->rank[r].incarnation, 0, rng_below(rng, 2)};
    case 4:
        return (struct view_event){VIEW_RANK_DOUBT, r, v->rank[r].incarnation, 0, 0};
    case 5:
        return (struct view_event){VIEW_RANK_LEFT, r, v->rank[r].incarnation, 0, 0};
    case 6:
        return (struct view_event){(uint32_t[]){99, VIEW_SET_BEGINS, VIEW_SET_JOINS}[rng_below(rng, 3)], r, 0, 0, 0};
    default:
        return (struct view_event){VIEW_RESTORED, copyset, 0, 0, generation - (rng_below(rng, 4) == 0)};
    }
}

static int living(const struct view *v)
{
    int n = 0;
    for (int m = 0; m < v->nodes + v->spares; m++)
        n += v->alive[m];
    return n;
}

static void check_copyset(const struct view *v, int copyset)
{
    const struct view_copyset *g = &v->copyset[copyset];
    int nodes = living(v), wanted = (int)copyset_class(copyset) + 1;
    assert_true(g->copies >= (nodes < wanted ? nodes : wanted));
    if (g->mode == COPYSET_DIRECT) /* until then there are more while it follows its slot */
        assert_int_equal(g->copies, nodes < wanted ? nodes : wanted);
    for (int i = 0; i < g->copies; i++) {
        assert_true(v->alive[g->copy[i].node]);
        assert_int_equal(view_copy_at(g, g->copy[i].node), i); /* no two on one node */
    }
    assert_true(g->copies == 0 || g->copy[0].whole);
    assert_true(g->mode == COPYSET_REPAIR || view_whole_copies(g) == g->copies);
}

static bool looks_the_same(const struct view_copyset *x, const struct view_copyset *y)
{
    bool same = x->copies == y->copies && x->mode == y->mode && x->lost_at == y->lost_at;
    for (int i = 0; same && i < x->copies; i++)
        same = x->copy[i].node == y->copy[i].node && x->copy[i].whole == y->copy[i].whole &&
               x->copy[i].placed == y->copy[i].placed;
    return same;
}

/* From one view to the next. */
static void check_change(const struct view *v, int copyset, const struct view_copyset *old, const struct view_event *e,
                         int n)
{
    const struct view_copyset *g = &v->copyset[copyset];
    bool survives = false, hurt = false, said = false;
    if (g->copies == 0)
        return; /* nobody is left */
    for (int i = 0; i < old->copies; i++) {
        survives = survives || (old->copy[i].whole && v->alive[old->copy[i].node]);
        hurt = hurt || !v->alive[old->copy[i].node];
    }
    for (int i = 0; i < n; i++)
        said = said || (e[i].type == VIEW_RESTORED && e[i].a == (uint32_t)copyset && e[i].d == old->generation);
    assert_int_equal(g->lost_at, survives ? old->lost_at : v->epoch);
    int lived = 0, wanted = (int)copyset_class(copyset) + 1;
    for (int i = 0; i < old->copies; i++)
        lived += old->copy[i].whole && v->alive[old->copy[i].node];
    assert_true(view_whole_copies(g) >= (lived < wanted ? lived : wanted)); /* what is too much went, no more */
    if (looks_the_same(g, old))                                             /* told again, or doubted again */
        assert_true(g->generation == old->generation || g->generation == v->epoch);
    else
        assert_int_equal(g->generation, v->epoch);
    for (int i = 0; i < g->copies; i++) {
        int at = view_copy_at(old, g->copy[i].node);
        if (g->copy[i].whole && survives && (at < 0 || !old->copy[at].whole))
            assert_true(said && !hurt); /* only the primary's word makes a copy whole */
        /* What was too much for one event, and went, may be placed there again for the next one of the same view. */
        if (survives && at >= 0 && old->copy[at].whole && !g->copy[i].whole)
            assert_int_equal(g->copy[i].placed, v->epoch);
        if (at < 0)
            assert_int_equal(g->copy[i].placed, v->epoch);
    }
}

static void check_ranks(const struct view *v)
{
    for (int r = 0; r < v->ranks; r++) {
        const struct view_rank *k = &v->rank[r];
        assert_true(k->state == RANK_RUNNING ? v->alive[k->node] : k->node == -1);
        assert_true(k->restarts <= VIEW_MAX_RESTARTS);
    }
    for (int s = 0; s < v->nodes; s++)
        assert_true(view_slot_node(v, s) < 0 || v->alive[view_slot_node(v, s)]);
    for (int r = 0; r < v->ranks; r++) { /* a node that runs a rank is no spare; a slot is where ranks of it run */
        bool at_home = v->rank[r].state != RANK_RUNNING;
        assert_true(v->rank[r].state != RANK_RUNNING || !v->spare_free[v->rank[r].node]);
        for (int k = 0; k < v->ranks; k++)
            at_home = at_home || (v->rank[k].slot == v->rank[r].slot && v->rank[k].state == RANK_RUNNING &&
                                  v->rank[k].node == view_slot_node(v, v->rank[r].slot));
        assert_true(at_home);
    }
}

static void open_random(struct view *v, struct view *twin, struct rng *rng)
{
    int rank_node[7 * 3], domain[2 * 9], nodes = 1 + (int)rng_below(rng, 7), spares = (int)rng_below(rng, 3);
    int ranks = nodes * (1 + (int)rng_below(rng, 3));
    enum view_policy policy = (enum view_policy)rng_below(rng, 3);
    struct copy_rule rule = {.at = (enum copies_at)rng_below(rng, 2), .levels = (int)rng_below(rng, 3)};
    rule.domain = domain;
    for (int i = 0; i < rule.levels * (nodes + spares); i++)
        domain[i] = (int)rng_below(rng, 3);
    for (int r = 0; r < ranks; r++)
        rank_node[r] = r * nodes / ranks;
    assert_true(view_init(v, policy, nodes, spares, 0, ranks, rank_node, &rule));
    assert_true(view_init(twin, policy, nodes, spares, 0, ranks, rank_node, &rule));
}

static void test_view_random_events_keep_invariants(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 2000; run++) {
        struct view v, twin;
        open_random(&v, &twin, &rng);
        int nodes = v.nodes;
        for (int step = 0; step < 16; step++) {
            struct view_copyset old[7 * CLASSES];
            struct view_event e[3];
            int n = 1 + (int)rng_below(&rng, 3);
            memcpy(old, v.copyset, sizeof old[0] * (size_t)(nodes * CLASSES));
            for (int i = 0; i < n; i++)
                e[i] = random_event(&v, &rng);
            uint64_t epoch = v.epoch + 1 + rng_below(&rng, 2); /* epochs of views that were given up are missing */
            view_apply(&v, epoch, e, n);
            view_apply(&twin, epoch, e, n);
            for (int copyset = 0; copyset < nodes * CLASSES; copyset++) {
                check_copyset(&v, copyset);
                check_change(&v, copyset, &old[copyset], e, n);
                assert_true(looks_the_same(&v.copyset[copyset], &twin.copyset[copyset])); /* every agent has the same */
            }
            check_ranks(&v);
        }
        view_fini(&v);
        view_fini(&twin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_random_events_keep_invariants),
    };
    return cmocka_run_group_tests_name("view_random", tests, NULL, NULL);
}
