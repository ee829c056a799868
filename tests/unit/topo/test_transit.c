/* Deaths while slots are on their way: every state of a slide, and what must hold whatever happens. */
#include "tests/unit/topo/testlib.h"

#include "runtime/topo/balance.h"
#include "runtime/topo/remap.h"
#include "runtime/topo/transit.h"
#include "tests/lib/topo/look.h"

struct world {
    struct job job;
    struct transit t;
    struct balance balance;
    struct remap remap;
};

struct study {
    const char *grid, *layout, *method;
    int32_t slots, moves; /* 0: one on each place; no bound */
    bool always;          /* its last step is 0D: only for want of live nodes is a slot without one */
};

static void world_open(struct world *w, const struct study *s)
{
    struct job *j = &w->job;
    memset(w, 0, sizeof *w);
    assert_null(grid_parse(&j->grid, s->grid));
    assert_null(spare_parse(&j->layout, s->layout));
    assert_true(place_init(&j->place, &j->grid, &j->layout, s->slots, NULL));
    assert_true(place_plan_init(&j->plan, &j->place));
    assert_true(pattern_init(&j->pattern, PATTERN_STAR, &j->place.slot_grid));
    assert_true(load_init(&j->load, &j->pattern, &j->place, NULL, LOAD_ALL));
    if (strcmp(s->method, "balance") == 0) {
        assert_true(balance_init(&w->balance, &j->place, &j->load));
        assert_true(place_method_add(&j->method, balance_plan, &w->balance));
    } else if (strcmp(s->method, "repair") == 0) {
        assert_true(remap_init(&w->remap, &j->place, &j->load, 20));
        assert_true(place_method_add(&j->method, remap_plan, &w->remap));
    } else
        assert_null(place_method_parse(&j->method, s->method, j->grid.ndims));
    j->method.moves = s->moves;
    assert_true(transit_init(&w->t, &j->place, &j->load));
}

static void world_close(struct world *w)
{
    transit_fini(&w->t);
    balance_fini(&w->balance);
    remap_fini(&w->remap);
    job_close(&w->job);
}

static int32_t die(struct world *w, int32_t node)
{
    int32_t without = transit_change(&w->t, &w->job.method, &node, 1, NULL, 0);
    assert_true(look_transit_valid(&w->t));
    return without;
}

static int32_t die_two(struct world *w, int32_t a, int32_t b)
{
    int32_t without = transit_change(&w->t, &w->job.method, (int32_t[]){a, b}, 2, NULL, 0);
    assert_true(look_transit_valid(&w->t));
    return without;
}

static int32_t come(struct world *w, int32_t node)
{
    int32_t without = transit_change(&w->t, &w->job.method, NULL, 0, &node, 1);
    assert_true(look_transit_valid(&w->t));
    return without;
}

static void done(struct world *w, int32_t slot, int32_t to)
{
    assert_int_equal(transit_done(&w->t, slot, to), TRANSIT_OK);
    assert_true(look_transit_valid(&w->t));
}

static void assert_moves(const struct world *w, const struct place_move *want, int32_t n)
{
    assert_int_equal(w->t.lines.count, n);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(w->t.lines.move[i].slot, want[i].slot);
        assert_int_equal(w->t.lines.move[i].from, want[i].from);
        assert_int_equal(w->t.lines.move[i].to, want[i].to);
    }
}

static const struct study line_only = {"6x6", "2D(1,1)", "1D", 0, 0, false};
static const struct study line_or_near = {"6x6", "2D(1,1)", "hybrid(1D+0D)", 0, 0, true};

/* Row 2 of 6x6 has slots 10 to 14 on nodes 12 to 16 and the spare 17. Node 13 dies: 11 is lost, and the line slides. */
static void open_sliding(struct world *w, const struct study *s)
{
    world_open(w, s);
    assert_int_equal(die(w, 13), 0);
    assert_moves(w, (struct place_move[]){{14, 16, 17}, {13, 15, 16}, {12, 14, 15}, {11, TRANSIT_COPIES, 14}}, 4);
    assert_int_equal(w->t.lines.lines, 1);
}

static void test_transit_line_is_done_from_its_end_only(void **state)
{
    (void)state;
    struct world w;
    open_sliding(&w, &line_only);
    assert_int_equal(transit_done(&w.t, 12, 15), TRANSIT_NOT_YET); /* 13 is still there */
    assert_int_equal(transit_done(&w.t, 12, 16), TRANSIT_STALE);
    assert_int_equal(transit_done(&w.t, 10, 13), TRANSIT_STALE);
    for (int32_t s = 14; s >= 11; s--)
        done(&w, s, s + 3);
    assert_int_equal(w.t.pending, 0);
    assert_int_equal(transit_done(&w.t, 11, 14), TRANSIT_STALE);
    world_close(&w);
}

/* Node 15 dies before 13 has left it: 13 is lost and goes on to node 16 from its copies. 12 lives on 14 and stays,
 * though it was to go to 15. 11, lost before, finds no way in a row with four live nodes for five slots. */
static void test_transit_source_dies_who_lives_keeps_its_node(void **state)
{
    (void)state;
    struct world w;
    open_sliding(&w, &line_only);
    assert_int_equal(die(&w, 15), 1);
    assert_moves(&w, (struct place_move[]){{14, 16, 17}, {13, TRANSIT_COPIES, 16}}, 2);
    assert_int_equal(w.t.stands[12], 14);
    assert_int_equal(w.job.place.node_of[12], 14);
    assert_int_equal(place_lost_on(&w.job.place, 13), 11);
    world_close(&w);
    open_sliding(&w, &line_or_near); /* and with 0D behind 1D it has the nearest spare */
    assert_int_equal(die(&w, 15), 0);
    assert_moves(&w, (struct place_move[]){{11, TRANSIT_COPIES, 11}, {14, 16, 17}, {13, TRANSIT_COPIES, 16}}, 3);
    assert_int_equal(w.t.lines.lines, 2);
    world_close(&w);
}

/* The same after 14 and 13 have moved: node 15 is empty, and only the moves behind it are given up. */
static void test_transit_node_dies_after_it_was_left(void **state)
{
    (void)state;
    struct world w;
    open_sliding(&w, &line_only);
    done(&w, 14, 17);
    done(&w, 13, 16);
    assert_int_equal(die(&w, 15), 1);
    assert_int_equal(w.t.lines.count, 0);
    assert_int_equal(w.t.stands[12], 14);
    assert_int_equal(w.t.stands[13], 16);
    world_close(&w);
}

/* Node 16 dies, the target of 13: nobody who lives is without a node, whether 14 has left it or not. */
static void test_transit_target_dies_the_mover_stays(void **state)
{
    (void)state;
    for (int left = 0; left <= 1; left++) {
        struct world w;
        open_sliding(&w, &line_only);
        if (left)
            done(&w, 14, 17);
        assert_int_equal(die(&w, 16), 1);
        assert_int_equal(w.t.stands[13], 15);
        assert_int_equal(w.t.stands[12], 14);
        assert_int_equal(place_lost_on(&w.job.place, 13), 11);
        if (left)
            assert_int_equal(w.t.lines.count, 0);
        else
            assert_moves(&w, (struct place_move[]){{14, TRANSIT_COPIES, 17}}, 1);
        world_close(&w);
    }
}

/* The spare at the line's end dies: all stay, and 11 is planned anew. */
static void test_transit_spare_dies_all_stay(void **state)
{
    (void)state;
    struct world w;
    open_sliding(&w, &line_or_near);
    assert_int_equal(die(&w, 17), 0);
    assert_moves(&w, (struct place_move[]){{11, TRANSIT_COPIES, 11}}, 1);
    world_close(&w);
}

static void test_transit_unrelated_node_dies_the_line_goes_on(void **state)
{
    (void)state;
    struct world w;
    open_sliding(&w, &line_only);
    assert_int_equal(die(&w, 28), 0); /* row 4: slots 20 to 24 on nodes 24 to 28 */
    assert_int_equal(w.t.lines.lines, 2);
    assert_int_equal(w.t.lines.count, 5);
    assert_int_equal(w.job.place.node_of[24], 29);
    assert_int_equal(die(&w, 35), 0); /* an idle spare */
    assert_int_equal(w.t.lines.count, 5);
    world_close(&w);
}

/* Two deaths in one view: no move aims at the second dead node, and the slots lost are planned in the order given. */
static void test_transit_two_deaths_in_one_view_one_plan(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, &line_or_near);
    assert_int_equal(die_two(&w, 13, 17), 0); /* the spare of the row, too */
    assert_moves(&w, (struct place_move[]){{11, TRANSIT_COPIES, 11}}, 1);
    world_close(&w);
    world_open(&w, &line_or_near);
    assert_int_equal(die_two(&w, 13, 15), 0);
    for (int32_t i = 0; i < w.t.lines.count; i++)
        assert_true(w.t.lines.move[i].to != 13 && w.t.lines.move[i].to != 15);
    uint64_t one = look_transit_digest(&w.t);
    world_close(&w);
    world_open(&w, &line_or_near);
    assert_int_equal(die_two(&w, 15, 13), 0);
    assert_true(look_transit_digest(&w.t) != one); /* the order counts, and the digest tells */
    world_close(&w);
}

/* A slot stays without a node until one comes back; a node that nobody misses is a spare; an unknown one is no news. */
static void test_transit_node_comes_back(void **state)
{
    (void)state;
    struct world w;
    struct study two = {"3x1", "2D(1,1)", "0D", 0, 0, true};
    world_open(&w, &two); /* slots 0 and 1 on nodes 0 and 1, node 2 is spare */
    assert_int_equal(die(&w, 2), 0);
    assert_int_equal(die(&w, 1), 1);
    assert_int_equal(come(&w, 0), 1); /* it is alive */
    assert_int_equal(come(&w, 2), 0);
    assert_moves(&w, (struct place_move[]){{1, TRANSIT_COPIES, 2}}, 1);
    assert_int_equal(come(&w, 1), 0); /* the slot's own node, but it has an aim already */
    assert_moves(&w, (struct place_move[]){{1, TRANSIT_COPIES, 2}}, 1);
    assert_int_equal(die(&w, 2), 0);
    assert_moves(&w, (struct place_move[]){{1, TRANSIT_COPIES, 1}}, 1);
    world_close(&w);
    world_open(&w, &two);
    assert_int_equal(die(&w, 2), 0);
    assert_int_equal(die(&w, 1), 1);
    int32_t node = 1; /* dead, and back in one view, under a new incarnation: empty */
    assert_int_equal(come(&w, node), 0);
    assert_moves(&w, (struct place_move[]){{1, TRANSIT_COPIES, 1}}, 1);
    done(&w, 1, 1);
    assert_int_equal(transit_change(&w.t, &w.job.method, &node, 1, &node, 1), 0);
    assert_moves(&w, (struct place_move[]){{1, TRANSIT_COPIES, 1}}, 1);
    world_close(&w);
}

/* Slots 0 and 1 on nodes 0 and 1; both other nodes are dead when 1 dies. */
static void test_transit_slot_given_up_keeps_no_node(void **state)
{
    (void)state;
    struct world w;
    struct study three = {"4x1", "2D(1,1)", "0D", 2, 0, true};
    world_open(&w, &three);
    assert_int_equal(die_two(&w, 2, 3), 0);
    assert_int_equal(die(&w, 1), 1);
    uint64_t before = look_transit_digest(&w.t);
    assert_false(transit_give_up(&w.t, 0)); /* it has a node */
    assert_true(transit_give_up(&w.t, 1));
    assert_true(look_transit_digest(&w.t) != before);
    assert_true(look_transit_valid(&w.t));
    assert_int_equal(come(&w, 2), 1);
    assert_moves(&w, NULL, 0);
    assert_int_equal(come(&w, 1), 1); /* also not the one on which it was lost */
    assert_moves(&w, NULL, 0);
    assert_int_equal(w.job.place.nfree, 2);
    assert_int_equal(die(&w, 0), 1);
    assert_moves(&w, (struct place_move[]){{0, TRANSIT_COPIES, 1}}, 1);
    done(&w, 0, 1);
    assert_int_equal(die(&w, 1), 1);
    assert_moves(&w, (struct place_move[]){{0, TRANSIT_COPIES, 2}}, 1);
    world_close(&w);
}

static void test_transit_fewer_slots_than_places(void **state)
{
    (void)state;
    struct world w;
    struct study few = {"4x4", "2D(1,1)", "0D", 7, 0, true}; /* twelve places */
    world_open(&w, &few);
    assert_int_equal(w.job.place.nfree, 9);
    assert_int_equal(die(&w, 8), 0); /* slot 6 is alone in its row, nodes 9 and 10 are places without a slot */
    assert_moves(&w, (struct place_move[]){{6, TRANSIT_COPIES, 9}}, 1);
    world_close(&w);
    struct place p;
    struct grid g;
    struct spare_layout l;
    assert_null(grid_parse(&g, "4x4"));
    assert_null(spare_parse(&l, "2D(1,1)"));
    assert_false(place_init(&p, &g, &l, 13, NULL));
    assert_false(place_init(&p, &g, &l, -1, NULL));
}

/* Slot 0 is lost with node 0 and goes to the spare 3, and 1 and 2 change places. */
static bool swap_two(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    const int32_t to[3] = {3, 2, 1};
    return node == 0 && place_arrange(p, NULL, 3, to, arg, plan);
}

static void open_ring(struct world *w, int32_t *mark)
{
    struct study s = {"4x1", "2D(1,1)", "0D", 0, 0, false};
    world_open(w, &s);
    memset(&w->job.method, 0, sizeof w->job.method);
    assert_true(place_method_add(&w->job.method, swap_two, mark));
    place_arrange_init(&w->job.place, mark);
    assert_int_equal(die(w, 0), 0);
    assert_moves(w, (struct place_move[]){{1, 1, 3}, {2, 2, 1}, {1, 3, 2}, {0, TRANSIT_COPIES, 3}}, 4);
    assert_int_equal(w->t.lines.lines, 1);
}

/* The node to step aside to is the one that slot 0 is for: it has to wait. When that node dies, who changes places
 * stays, for want of another one; when the slot that stepped aside dies with it, the others' moves go on. */
static void test_transit_ring_steps_aside_or_stays(void **state)
{
    (void)state;
    struct world w;
    int32_t mark[3];
    open_ring(&w, mark);
    assert_int_equal(transit_done(&w.t, 0, 3), TRANSIT_NOT_YET);
    assert_int_equal(transit_done(&w.t, 2, 1), TRANSIT_NOT_YET);
    done(&w, 1, 3);
    done(&w, 2, 1);
    done(&w, 1, 2);
    done(&w, 0, 3);
    assert_int_equal(w.t.pending, 0);
    world_close(&w);
    open_ring(&w, mark);
    assert_int_equal(die(&w, 3), 1);
    assert_int_equal(w.t.lines.count, 0);
    assert_int_equal(w.job.place.node_of[1], 1);
    assert_int_equal(w.job.place.node_of[2], 2);
    world_close(&w);
    open_ring(&w, mark);
    done(&w, 1, 3);
    assert_int_equal(die(&w, 3), 1);
    assert_moves(&w, (struct place_move[]){{2, 2, 1}, {1, TRANSIT_COPIES, 2}}, 2);
    world_close(&w);
}

/* --- what must hold whatever happens --- */

enum { MOST_NODES = 128 };

/* Not by the library's own books: nodes and lines from the moves and from where slots stand. */
static void check(const struct world *w, const struct study *s)
{
    const struct transit *t = &w->t;
    const struct place *p = &w->job.place;
    int8_t used[MOST_NODES] = {0}, line[MOST_NODES] = {0};
    int32_t live = 0, without = 0;
    assert_true(p->grid.nodes <= MOST_NODES && look_transit_valid(t));
    for (int32_t n = 0; n < p->grid.nodes; n++)
        live += p->slot_at[n] != PLACE_DEAD;
    for (int32_t r = 0; r < p->slots; r++) {
        bool aims = p->slot_at[p->node_of[r]] == r;
        without += !aims;
        if (t->stands[r] >= 0) {
            assert_true(aims); /* who lives has a node */
            assert_true(p->slot_at[t->stands[r]] != PLACE_DEAD);
            assert_int_equal(used[t->stands[r]]++, 0); /* and no node two */
        }
    }
    if (s->always)
        assert_int_equal(without, live < p->slots ? p->slots - live : 0);
    for (int32_t k = 0; k < t->lines.lines; k++)
        for (int32_t i = t->lines.first[k]; i < t->lines.first[k + 1]; i++) {
            const struct place_move *m = &t->lines.move[i];
            if (!t->done[i]) {
                assert_true(p->slot_at[m->to] != PLACE_DEAD);
                assert_true(m->from < 0 || p->slot_at[m->from] != PLACE_DEAD);
            }
            if (i > t->lines.first[k])
                assert_int_equal(m->to, m[-1].from); /* each behind the one it waits for */
            assert_true(line[m->to] == 0 || line[m->to] == (int8_t)(k + 1));
            line[m->to] = (int8_t)(k + 1);
            if (m->from >= 0) {
                assert_true(line[m->from] == 0 || line[m->from] == (int8_t)(k + 1));
                line[m->from] = (int8_t)(k + 1);
            }
        }
}

static void check_load(struct world *w)
{
    int32_t collisions = load_collisions(&w->job.load);
    int64_t hops = w->job.load.hops;
    assert_true(load_count(&w->job.load, &w->job.place, NULL));
    assert_int_equal(load_collisions(&w->job.load), collisions);
    assert_true(w->job.load.hops == hops);
}

struct counts {
    int32_t changes, kept, dropped, not_yet, returned, rings, without, bounded, undone;
};

static int32_t draw(struct rng *r, int32_t n)
{
    return (int32_t)rng_below(r, (uint64_t)n);
}

/* One to three deaths and now and then a return, in one view; what dies is often what a move is about. */
static void random_change(struct world *w, struct world *twin, struct rng *r, struct counts *c)
{
    int32_t dead[3], back[3], nodes = w->job.grid.nodes, ndead = draw(r, 4),
                              nback = draw(r, 8) < 3 ? 1 + draw(r, 2) : 0;
    const struct lines *l = &w->t.lines;
    for (int32_t i = 0; i < ndead; i++) {
        dead[i] = draw(r, nodes);
        if (l->count && draw(r, 2)) {
            const struct place_move *m = &l->move[draw(r, l->count)];
            dead[i] = draw(r, 2) || m->from < 0 ? m->to : m->from;
        }
    }
    for (int32_t i = 0; i < nback; i++)
        back[i] =
            w->job.place.ndead && draw(r, 4) ? w->job.place.dead_list[draw(r, w->job.place.ndead)] : draw(r, nodes);
    struct place_move was[MOST_NODES];
    int32_t returns = w->job.place.returns;
    for (int32_t s = 0; s < w->job.place.slots; s++)
        was[s] = w->t.next[s] >= 0 ? l->move[w->t.next[s]] : (struct place_move){.slot = -1};
    c->without += transit_change(&w->t, &w->job.method, dead, ndead, back, nback) > 0;
    transit_change(&twin->t, &twin->job.method, dead, ndead, back, nback);
    c->changes++;
    for (int32_t s = 0; s < w->job.place.slots; s++) {
        const struct place_move *is = w->t.next[s] >= 0 ? &l->move[w->t.next[s]] : NULL;
        bool goes_on = was[s].slot >= 0 && is && is->from == was[s].from && is->to == was[s].to;
        c->kept += goes_on;
        c->dropped += was[s].slot >= 0 && !goes_on;
    }
    c->returned += w->job.place.returns - returns;
    c->bounded += w->t.bounded;
    for (int32_t i = 0; i < l->count; i++)
        c->rings += l->move[i].to != w->job.place.node_of[l->move[i].slot];
}

static void random_progress(struct world *w, struct world *twin, struct rng *r, struct counts *c)
{
    const struct lines *l = &w->t.lines;
    if (!l->count)
        return;
    struct place_move m = l->move[draw(r, l->count)];
    if (draw(r, 2))
        return; /* it has begun: only its end changes anything */
    bool next = w->t.next[m.slot] >= 0 && l->move[w->t.next[m.slot]].to == m.to, taken = w->t.holder[m.to] >= 0;
    enum transit_result got = transit_done(&w->t, m.slot, m.to);
    assert_int_equal(got == TRANSIT_STALE, !next);
    assert_true(got != TRANSIT_OK || !taken);
    assert_int_equal(transit_done(&twin->t, m.slot, m.to), got);
    c->not_yet += got == TRANSIT_NOT_YET;
}

/* Whatever is left can be done, line by line. */
static void finish(struct world *w)
{
    struct transit *t = &w->t;
    for (int32_t i = 0; i < t->lines.count; i++) {
        const struct place_move *m = &t->lines.move[i];
        if (!t->done[i])
            done(w, m->slot, m->to);
    }
    assert_int_equal(t->pending, 0);
    for (int32_t r = 0; r < w->job.place.slots; r++)
        assert_int_equal(t->stands[r],
                         w->job.place.slot_at[w->job.place.node_of[r]] == r ? w->job.place.node_of[r] : -1);
}

static uint64_t run(const struct study *s, uint64_t seed, struct counts *c)
{
    struct world w, twin;
    struct rng r;
    uint64_t sum = 0;
    rng_seed(&r, seed);
    world_open(&w, s);
    world_open(&twin, s);
    for (int i = 0; i < 60; i++) {
        if (draw(&r, 5) == 0)
            random_change(&w, &twin, &r, c);
        else
            random_progress(&w, &twin, &r, c);
        check(&w, s);
        assert_true(look_transit_digest(&w.t) == look_transit_digest(&twin.t));
        sum = 31 * sum + look_transit_digest(&w.t);
    }
    check_load(&w);
    finish(&w);
    world_close(&w);
    world_close(&twin);
    return sum;
}

static const struct study studies[] = {
    {"6x6", "2D(1,1)", "1D", 0, 0, false},
    {"6x6", "2D(2,1)", "hybrid(all)", 0, 0, true},
    {"6x5", "2D(2,1)", "2D", 0, 0, false},
    {"4x4", "2D(2,1)", "0D", 0, 0, true},
    {"7tx6", "2D(2,1)", "hybrid(1D+0D)", 0, 0, true},
    {"5x4x4", "3D(2,1)", "hybrid(all)", 0, 0, true},
    {"6x6", "2D(2,1)", "hybrid(all)", 0, 3, true},
    {"6x6", "2D(2,1)", "1D", 0, 2, false},
    {"6x6", "2D(2,1)", "hybrid(-2D)", 13, 0, true},
    {"9", "1D(1,2)", "hybrid(all)", 0, 0, true},
    {"6x6", "2D(2,1)", "balance", 0, 0, true},
    {"6x6", "2D(2,1)", "repair", 0, 0, true},
    {"8x7", "2D(2,1)", "repair", 0, 0, true},
    {"6x5", "2D(2,1)", "balance", 14, 4, true},
    {"5x5", "2D(2,1)", "repair", 11, 3, true},
};

static void test_transit_any_events_1000_sequences(void **state)
{
    (void)state;
    enum { SEQUENCES = 1000, STUDIES = sizeof studies / sizeof *studies };
    struct counts c = {0};
    print_message("seeds 1..%d\n", SEQUENCES);
    for (uint64_t seed = 1; seed <= SEQUENCES; seed++) {
        const struct study *s = &studies[seed % STUDIES];
        uint64_t sum = run(s, seed, &c);
        if (seed % 10 == 0)
            assert_true(run(s, seed, &c) == sum);
    }
    print_message("%d changes: %d moves went on, %d were dropped, %d dones too early, %d nodes back, %d asides, "
                  "%d with slots without a node, %d bounded\n",
                  c.changes, c.kept, c.dropped, c.not_yet, c.returned, c.rings, c.without, c.bounded);
    assert_true(c.kept > 100 && c.dropped > 100 && c.not_yet > 100 && c.returned > 100 && c.rings > 10 &&
                c.without > 100 && c.bounded > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transit_line_is_done_from_its_end_only),
        cmocka_unit_test(test_transit_source_dies_who_lives_keeps_its_node),
        cmocka_unit_test(test_transit_node_dies_after_it_was_left),
        cmocka_unit_test(test_transit_target_dies_the_mover_stays),
        cmocka_unit_test(test_transit_spare_dies_all_stay),
        cmocka_unit_test(test_transit_unrelated_node_dies_the_line_goes_on),
        cmocka_unit_test(test_transit_two_deaths_in_one_view_one_plan),
        cmocka_unit_test(test_transit_node_comes_back),
        cmocka_unit_test(test_transit_slot_given_up_keeps_no_node),
        cmocka_unit_test(test_transit_fewer_slots_than_places),
        cmocka_unit_test(test_transit_ring_steps_aside_or_stays),
        cmocka_unit_test(test_transit_any_events_1000_sequences),
    };
    return cmocka_run_group_tests_name("transit", tests, NULL, NULL);
}
