/* What is under way between the processes, and the views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>

#include "tests/unit/data/renew_bed.h"

static int natives(const struct bed *b)
{
    return RANKS * b->sets;
}

/* ---- messages ---- */

void bed_send(struct bed *b, int from, int to, const struct word *w)
{
    int at = b->last[from][to]++;
    assert_true(at - b->first[from][to] < QUEUE);
    b->queue[from][to][at % QUEUE] = *w;
}

static void deliver(struct bed *b, int from, int to)
{
    if (b->first[from][to] == b->last[from][to])
        return;
    const struct word w = b->queue[from][to][b->first[from][to]++ % QUEUE];
    if (!b->process[to].dead)
        process_takes(&b->process[to], replica_of(&b->map, from).set, &w);
}

/* ---- views ---- */

void bed_submit(struct bed *b, const struct view_event *e)
{
    assert_true(b->events < EVENTS);
    b->event[b->events++] = *e;
}

static void note_view(struct bed *b)
{
    assert_true(b->views < VIEWS);
    struct facts *f = &b->facts[b->views++];
    for (int s = 0; s < b->sets; s++)
        f->set[s] = (struct renew_set){view_set_is_whole(&b->view, s), view_set_is_coming(&b->view, s),
                                       view_set_attempt(&b->view, s), view_set_is_at_home(&b->view, s)};
    for (int n = 0; n < natives(b); n++) {
        f->life[n] = b->view.rank[n].incarnation;
        f->dead[n] = b->view.rank[n].state == RANK_DEAD;
    }
}

static uint64_t last_step(const struct bed *b)
{
    uint64_t last = 0;
    for (int n = 0; n < natives(b); n++)
        last = b->process[n].step > last ? b->process[n].step : last;
    return last;
}

static void note_changes(struct bed *b)
{
    for (int s = 0; s < b->sets && b->views > 1; s++) {
        const struct renew_set *before = &b->facts[b->views - 2].set[s], *now = &b->facts[b->views - 1].set[s];
        if (now->whole != before->whole || now->coming != before->coming)
            b->changed[s] = last_step(b);
    }
}

/* Who has begun anew by this view: what was sent to, or by, the one before is gone. */
static void begin_new_ones(struct bed *b)
{
    for (int n = 0; n < natives(b); n++) {
        uint32_t life = b->view.rank[n].incarnation;
        if (life == b->process[n].life)
            continue;
        assert_true(b->process[n].dead || b->process[n].phase == DONE);
        assert_int_equal(life, view_set_attempt(&b->view, b->process[n].set));
        for (int m = 0; m < natives(b); m++) {
            b->first[m][n] = b->last[m][n];
            b->first[n][m] = b->last[n][m];
        }
        process_begin(&b->process[n], b, n, life, true);
        memset(b->step[b->process[n].set], 0, sizeof b->step[0]);
    }
}

/* Agents have filled what was to be filled: so the memory of a set that has begun on spares comes to lie there. */
static int fill(const struct bed *b, struct view_event *batch)
{
    bool away = false;
    int n = 0;
    for (int s = 0; s < b->sets; s++)
        away = away || (view_set_is_coming(&b->view, s) && !view_set_is_at_home(&b->view, s));
    for (int i = 0; i < b->view.nodes * CLASSES && away; i++)
        if (b->view.copyset[i].mode == COPYSET_REPAIR)
            batch[n++] = (struct view_event){VIEW_RESTORED, (uint32_t)i, 0, 0, b->view.copyset[i].generation};
    return n;
}

/* Some of the events that are waiting, in any order. */
static void change_view(struct bed *b)
{
    struct view_event batch[3 + SETS * RANKS * CLASSES];
    int n = 0;
    while (b->events && n < 3 && (n == 0 || rng_below(&b->rng, 2))) {
        int i = (int)rng_below(&b->rng, (uint64_t)b->events);
        batch[n++] = b->event[i];
        b->event[i] = b->event[--b->events];
    }
    if (!n || rng_below(&b->rng, 2))
        n += fill(b, batch + n);
    if (!n)
        return;
    view_apply(&b->view, b->view.epoch + 1, batch, n);
    note_view(b);
    note_changes(b);
    begin_new_ones(b);
}

/* ---- deaths ---- */

static void dies(struct bed *b, struct process *p, bool tells)
{
    p->dead = true;
    for (int m = 0; m < natives(b); m++) /* what it has said may be lost with it, from somewhere on */
        while (b->last[p->native][m] > b->first[p->native][m] && rng_below(&b->rng, 3))
            b->last[p->native][m]--;
    for (int i = 0; i <= STEPS; i++)
        b->step[p->set][i].broken = b->step[p->set][i].broken || rng_below(&b->rng, 2);
    b->guests[p->set][p->life].broken = rng_below(&b->rng, 2);
    if (tells)
        bed_submit(b, &(struct view_event){VIEW_RANK_DEAD, (uint32_t)p->native, p->life, SIGKILL, 0});
}

static bool is_alive(const struct process *p)
{
    return !p->dead && p->phase != DONE;
}

/* Whose set has come to its end for all, as it is not whole: their agent ends it. */
static void end_if_retired(struct bed *b, struct process *p)
{
    const struct renew_set *s = &b->facts[p->view].set[p->set];
    if (is_alive(p) && renew_fate(s, p->life) == RENEW_GONE)
        dies(b, p, true);
}

/* Is there, but for the set, one that all know to be whole, and that nobody has left? */
static bool others_are_there(const struct bed *b, int set)
{
    for (int s = 0; s < b->sets; s++) {
        bool there = s != set && view_set_is_whole(&b->view, s);
        for (int n = 0; n < natives(b); n++)
            there = there && (b->process[n].set != s || !b->process[n].dead);
        if (there)
            return true;
    }
    return false;
}

void bed_one_dies(struct bed *b, bool with_its_node)
{
    struct process *p = NULL;
    bool a_host = rng_below(&b->rng, 2); /* if there is one */
    for (int n = 0; !p || (n < natives(b) && a_host && p->phase != HOSTS); n++)
        p = &b->process[rng_below(&b->rng, (uint64_t)natives(b))];
    if (!is_alive(p) || !others_are_there(b, p->set))
        return;
    dies(b, p, !with_its_node);
    if (with_its_node)
        bed_submit(b, &(struct view_event){.type = VIEW_NODE_DEAD, .a = (uint32_t)b->view.rank[p->native].node});
}

/* ---- the run ---- */

/* A set begins anew some time after its end. */
static void ask_for_sets(struct bed *b)
{
    int set = (int)rng_below(&b->rng, (uint64_t)b->sets);
    if (!view_set_is_whole(&b->view, set) && !view_set_is_coming(&b->view, set) && b->events < EVENTS / 2)
        bed_submit(b, &(struct view_event){VIEW_SET_BEGINS, (uint32_t)set, view_set_attempt(&b->view, set), 0, 0});
}

void bed_tick(struct bed *b)
{
    struct process *p = &b->process[rng_below(&b->rng, (uint64_t)natives(b))];
    switch (rng_below(&b->rng, 8)) {
    case 0:
        if (!rng_below(&b->rng, 8))
            change_view(b);
        break;
    case 1:
        if (p->view < b->views - 1 && rng_below(&b->rng, 3) == 0)
            p->view += 1 + (int)rng_below(&b->rng, (uint64_t)(b->views - 1 - p->view));
        end_if_retired(b, p);
        break;
    case 2:
        if (!rng_below(&b->rng, 32))
            ask_for_sets(b);
        break;
    case 3:
    case 4:
        deliver(b, (int)rng_below(&b->rng, (uint64_t)natives(b)), p->native);
        break;
    default:
        if (!p->dead)
            process_step(p);
    }
}

void bed_open(struct bed *b, uint64_t seed, int sets)
{
    int node[NATIVES];
    memset(b, 0, sizeof *b);
    rng_seed(&b->rng, seed);
    b->sets = sets;
    for (int n = 0; n < natives(b); n++)
        node[n] = n;
    assert_true(replica_map_init(&b->map, RANKS, sets));
    assert_true(view_init(&b->view, VIEW_DEGRADE, natives(b), SPARES, 0, natives(b), node, NULL));
    view_replicate(&b->view, &b->map);
    note_view(b);
    for (int n = 0; n < natives(b); n++)
        process_begin(&b->process[n], b, n, 0, false);
}

void bed_close(struct bed *b)
{
    view_fini(&b->view);
    replica_map_fini(&b->map);
}
