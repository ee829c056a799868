#include "runtime/agent/weighing.h"

#include <stdio.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/base/fault.h"
#include "runtime/view/plan.h"

#define SECOND_NS UINT64_C(1000000000)
enum {
    LOOK_S = 1,
    QUIET_S = 5,          /* without another view slots that live may be moved: a failure seldom comes alone */
    LEAST_BYTES = 1 << 20 /* less says nothing: of a program's messages, or of a link's rate */
};

void weighing_init(struct agent *a)
{
    struct weighing *w = &a->weighing;
    *w = (struct weighing){.began = a->now, .look_at = a->now + LOOK_S * SECOND_NS, .changed = a->now};
    w->count.since = a->now;
}

static const struct weigh *weigh_of(const struct agent *a)
{
    const struct auto_method *m = plan_auto(&a->view);
    return m ? &m->weigh : NULL;
}

static void say(struct agent *a, enum view_figure kind, uint32_t b, uint32_t c, uint64_t d)
{
    struct view_event e = {.type = VIEW_FIGURE, .a = kind, .b = b, .c = c, .d = d};
    FAULT_POINT("weighing.said");
    a->ops.submit(a->ops.user, &e);
}

/* Twice as much, or half? */
static bool is_another(uint64_t now, uint64_t said)
{
    return now != said && (now / 2 >= said || said / 2 >= now);
}

/* ---- what each one knows ---- */

static void say_bytes(struct agent *a)
{
    const struct weigh *w = weigh_of(a);
    for (int slot = 0; slot < a->view.nodes; slot++) {
        uint64_t bytes = 0;
        if (view_slot_node(&a->view, slot) != a->self)
            continue;
        for (const struct store_segment *s = a->store.first; s; s = s->next)
            bytes += s->copy[slot].base ? s->copy[slot].bytes : 0;
        if (is_another(bytes, w->slot_bytes[slot]))
            say(a, FIGURE_SLOT, (uint32_t)slot, 0, bytes);
    }
}

void weighing_filled(struct agent *a, uint64_t bytes, uint64_t ns)
{
    const struct weigh *w = weigh_of(a);
    uint64_t rate = weigh_part(bytes, SECOND_NS, ns);
    if (w && bytes >= LEAST_BYTES && ns && is_another(rate, w->figures.link_rate))
        say(a, FIGURE_RATE, 0, 0, rate);
}

void weighing_left(struct agent *a, uint64_t ns)
{
    const struct weigh *w = weigh_of(a);
    if (w && is_another(ns / 1000, w->figures.begin_us))
        say(a, FIGURE_BEGIN, 0, 0, ns / 1000);
}

/* ---- what the speaker says of the program ---- */

static bool is_speaker(const struct agent *a)
{
    for (int r = 0; r < a->view.ranks; r++)
        if (a->view.rank[r].state == RANK_RUNNING)
            return a->view.rank[r].node == a->self;
    return false;
}

/* The slot of the first rank that runs here. */
static int own_slot(const struct agent *a)
{
    int r = 0;
    while (a->view.rank[r].state != RANK_RUNNING)
        r++;
    return a->view.rank[r].slot;
}

_Static_assert((int)PATTERN_BESIDE == (int)WEIGH_STAR && (int)PATTERN_AROUND == (int)WEIGH_BOX &&
                   (int)PATTERN_NEXT == (int)WEIGH_RING && (int)PATTERN_EVERYBODY == (int)WEIGH_ALL,
               "the same numbers");
static enum weigh_shape shape_of(uint32_t declared)
{
    return declared < WEIGH_SHAPES ? (enum weigh_shape)declared : WEIGH_NOTHING;
}

/* What the processes here have declared and moved. With several ranks on a node each of them is taken to send to the
 * neighbouring ones: an upper bound. */
struct seen {
    enum weigh_shape shape;
    bool withdrawn; /* by a process that has declared nothing else since */
    uint64_t bytes, ranks;
    uint64_t moved[COUNTERS_N], all;
};

static struct seen look(const struct agent *a)
{
    struct seen s = {.shape = WEIGH_NOTHING};
    static const enum counter ways[] = {COUNTER_row_bytes, COUNTER_star_bytes, COUNTER_box_bytes, COUNTER_ring_bytes,
                                        COUNTER_far_bytes};
    for (const struct proc *p = a->ranks.procs; p; p = p->next) {
        if (life_is_none(p->life) || !p->intents || p->exited)
            continue;
        uint32_t declared = atomic_load_explicit(&p->intents->pattern, memory_order_acquire);
        s.ranks++;
        s.withdrawn |= declared == PATTERN_WITHDRAWN;
        if (shape_of(declared) != WEIGH_NOTHING) {
            s.shape = shape_of(declared);
            s.bytes = atomic_load_explicit(&p->intents->pattern_bytes, memory_order_relaxed);
        }
        counters_take_page(s.moved, &p->intents->counters);
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        s.all += s.moved[ways[i]];
    return s;
}

/* The least pattern that has nine tenths of what was moved. */
static enum weigh_shape counted_shape(const struct seen *s, int dims)
{
    uint64_t rest = s->all / 10;
    if (s->moved[COUNTER_far_bytes] > rest)
        return WEIGH_ALL;
    if (s->moved[COUNTER_box_bytes] > rest)
        return WEIGH_BOX;
    if (s->moved[COUNTER_star_bytes] > rest || dims == 1)
        return WEIGH_STAR;
    return WEIGH_RING;
}

/* To how many a slot sends. */
static uint64_t peers_of(const struct agent *a, enum weigh_shape shape, int slot)
{
    const struct place *p = plan_grid(&a->view);
    uint64_t star = 0, box = 1;
    for (int d = 0; d < p->slot_grid.ndims; d++) {
        int at = grid_coord(&p->slot_grid, slot, d);
        uint64_t beside = (uint64_t)(at > 0) + (uint64_t)(at + 1 < p->slot_grid.size[d]);
        star += beside;
        box *= 1 + beside;
    }
    uint64_t n = shape == WEIGH_STAR  ? star
                 : shape == WEIGH_BOX ? box - 1
                 : shape == WEIGH_ALL ? (uint64_t)p->slots - 1
                                      : 1;
    return n ? n : 1;
}

static uint64_t seconds(const struct agent *a)
{
    const struct weigh *w = weigh_of(a);
    uint64_t here = (a->now - a->weighing.began) / SECOND_NS, said = w->figures.horizon_ms / 1000;
    return here > said ? here : said; /* who was born later has not seen all of it */
}

/* The pattern as it is seen now. Where the program declares one, steps follow from the bytes that were moved; where it
 * does not, a step is a second. */
static struct weigh_figures pattern_now(struct agent *a)
{
    struct weighing *w = &a->weighing;
    struct seen s = look(a);
    struct weigh_figures f = {.shape = s.shape, .declared = s.shape != WEIGH_NOTHING, .steps_per_ks = 1000};
    if (s.all < w->count.bytes) { /* processes have ended */
        w->count.bytes = s.all;
        w->count.since = a->now;
    }
    uint64_t moved = s.all - w->count.bytes, ms = (a->now - w->count.since) / 1000000;
    if (!f.declared && (moved < LEAST_BYTES || ms == 0))
        return f;
    if (!f.declared)
        f.shape = counted_shape(&s, plan_grid(&a->view)->slot_grid.ndims);
    uint64_t peers = peers_of(a, f.shape, own_slot(a)), ranks = s.ranks ? s.ranks : 1;
    f.message_bytes = f.declared ? weigh_part(s.bytes, ranks, 1) : weigh_part(moved, 1000, ms * peers);
    if (f.declared && moved >= LEAST_BYTES && ms && f.message_bytes)
        f.steps_per_ks = weigh_part(weigh_part(moved, 1000000, ms), 1, weigh_part(f.message_bytes, peers, 1));
    f.steps_per_ks = f.steps_per_ks < UINT32_MAX ? f.steps_per_ks : UINT32_MAX;
    return f;
}

static void say_pattern(struct agent *a, bool at_any_rate)
{
    const struct weigh_figures *said = &weigh_of(a)->figures;
    struct weigh_figures now = pattern_now(a);
    uint64_t horizon = seconds(a);
    if (said->declared && !now.declared && !look(a).withdrawn)
        return; /* the processes here have just begun, and the program has not come to it again */
    bool other = now.shape != said->shape || now.declared != said->declared ||
                 is_another(now.message_bytes, said->message_bytes) ||
                 is_another(now.steps_per_ks, said->steps_per_ks) || is_another(horizon, said->horizon_ms / 1000);
    if (now.shape == WEIGH_NOTHING && said->shape != WEIGH_NOTHING && !now.declared && !said->declared)
        return; /* the speaker has just begun: what was counted by another one holds until it has counted, too */
    if (now.shape == WEIGH_NOTHING ? now.shape == said->shape : !other && !at_any_rate)
        return;
    say(a, FIGURE_PATTERN, view_pattern_word(now.shape, now.declared, (uint32_t)horizon), (uint32_t)now.steps_per_ks,
        now.message_bytes);
    struct seen s = look(a);
    a->weighing.count.since = a->now;
    a->weighing.count.bytes = s.all;
}

/* ---- a quiet moment ---- */

static bool is_quiet(const struct agent *a)
{
    if (!plan_is_quiet(&a->view) || a->now - a->weighing.changed < QUIET_S * SECOND_NS)
        return false;
    for (int i = 0; i < agent_copysets(a); i++)
        if (a->view.copyset[i].mode != COPYSET_DIRECT)
            return false;
    return true;
}

void weighing_step(struct agent *a)
{
    if (a->now < a->weighing.look_at)
        return;
    a->weighing.look_at = a->now + LOOK_S * SECOND_NS;
    if (!plan_auto(&a->view) || a->view.stopped || a->recovery.preparing || a->recovery.settled < a->view.epoch)
        return;
    say_bytes(a);
    if (!is_speaker(a))
        return;
    say_pattern(a, false);
    if (!a->weighing.due || !is_quiet(a))
        return;
    struct view_event e = {.type = VIEW_REBALANCE};
    FAULT_POINT("weighing.asked");
    a->ops.submit(a->ops.user, &e);
}

uint64_t weighing_deadline(const struct agent *a)
{
    return plan_auto(&a->view) && !a->view.stopped ? a->weighing.look_at : UINT64_MAX;
}

void weighing_ask(struct agent *a, uint64_t id, uint32_t seconds)
{
    struct view_event e = {.type = VIEW_REBALANCE, .a = 1 + (uint32_t)a->self, .b = seconds, .d = id};
    if (plan_auto(&a->view) && is_speaker(a))
        say_pattern(a, true);
    FAULT_POINT("weighing.asked");
    a->ops.submit(a->ops.user, &e);
}

/* ---- what is told ---- */

static double in_s(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* "0D 0.1+3.2, 1D 0.15+0": seconds of moving and of what is lost. */
static const char *prices(const struct auto_decision *d, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < d->count && d->known && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s %.3g+%.3g", i ? ", " : "", d->candidate[i].name,
                              in_s(d->candidate[i].price.move_ns), in_s(d->candidate[i].price.lost_ns));
    return out;
}

static const char *chosen(const struct auto_decision *d)
{
    return d->chosen < 0 ? "none" : d->candidate[d->chosen].name;
}

static const char *why_of(const struct auto_decision *d, bool asked)
{
    if (!d->known)
        return "nobody knows what the program sends";
    if (d->slot >= 0)
        return "least time for moving and for what collisions lose";
    return asked ? "asked whether another map pays" : "in a quiet moment, whether another map pays";
}

static void tell_decision(struct agent *a, const struct auto_decision *d, bool asked)
{
    char all[280];
    agent_say(a, "auto", J_UINT("epoch", a->view.epoch), J_INT("slot", d->slot), J_TEXT("chose", chosen(d)),
              J_INT("moves", d->chosen < 0 ? 0 : d->candidate[d->chosen].price.moves), J_TEXT("why", why_of(d, asked)),
              J_TEXT("prices_s", prices(d, all, sizeof all)));
}

static void tell_figures(struct agent *a)
{
    static const char *const shapes[] = {"nothing", "star", "box", "ring", "all"};
    const struct weigh *w = weigh_of(a);
    const struct weigh_figures *f = &w->figures;
    agent_say(a, "figures", J_UINT("epoch", a->view.epoch), J_TEXT("pattern", shapes[f->shape]),
              J_TEXT("by", f->shape == WEIGH_NOTHING ? "nobody"
                           : f->declared             ? "declared"
                                                     : "counted"),
              J_UINT("message_bytes", f->message_bytes), J_REAL("steps_per_s", (double)f->steps_per_ks / 1000, 3),
              J_UINT("horizon_s", f->horizon_ms / 1000), J_UINT("link_bytes_per_s", f->link_rate),
              J_REAL("begin_ms", (double)f->begin_us / 1000, 3), J_UINT("slot_bytes", w->slot_bytes[own_slot(a)]));
}

static const char *result_of(enum plan_rebalanced what)
{
    static const char *const of[] = {
        [REBALANCE_NONE] = "none",       [REBALANCE_NOT_AUTO] = "not_auto", [REBALANCE_UNDER_WAY] = "under_way",
        [REBALANCE_UNKNOWN] = "unknown", [REBALANCE_STAYS] = "stays",       [REBALANCE_MOVES] = "moves"};
    return of[what];
}

/* "3", "4, 5 and 6" */
static const char *ranks_of_slot(const struct agent *a, int slot, char *out, size_t size)
{
    int left = 0;
    size_t n = 0;
    for (int r = 0; r < a->view.ranks; r++)
        left += a->view.rank[r].slot == slot;
    out[0] = 0;
    for (int r = 0; r < a->view.ranks && n < size; r++)
        if (a->view.rank[r].slot == slot)
            n += (size_t)snprintf(out + n, size - n, --left == 0 ? "%d" : left == 1 ? "%d and " : "%d, ", r);
    return out;
}

/* Nobody moves for the slot that is not where it is to be. */
static void put_waiting(struct agent *a, struct json_writer *w)
{
    static const char *const whys[] = {[PLAN_LOST] = "lost",
                                       [PLAN_NO_NODE] = "no_node",
                                       [PLAN_NO_PLACE] = "no_place",
                                       [PLAN_STAYS] = "no_memory",
                                       [PLAN_GOES] = "goes"};
    enum plan_waiting why;
    char ranks[200];
    int node, to, slot = plan_waits_for(&a->view, &why, &node, &to);
    if (slot >= 0)
        json_put_all(w, J_ALL(J_INT("slot", slot), J_TEXT("ranks", ranks_of_slot(a, slot, ranks, sizeof ranks)),
                              J_TEXT("why", whys[why]), J_INT("node", node), J_INT("to", to)));
}

static void answer(struct agent *a, uint64_t id)
{
    char members[480], all[280];
    const struct auto_method *m = plan_auto(&a->view);
    enum plan_rebalanced what = plan_rebalanced(&a->view);
    const struct auto_decision *d = what >= REBALANCE_STAYS ? &m->decision[plan_decisions(&a->view) - 1] : NULL;
    struct json_writer w = json_into(members, sizeof members);
    json_put_all(&w, J_ALL(J_TEXT("result", result_of(what)), J_UINT("epoch", a->view.epoch)));
    if (what == REBALANCE_UNDER_WAY)
        put_waiting(a, &w);
    if (d)
        json_put_all(&w, J_ALL(J_TEXT("chose", chosen(d)), J_INT("moves", d->candidate[d->chosen].price.moves),
                               J_UINT("horizon_s", d->figures.horizon_ms / 1000),
                               J_REAL("moving_s", in_s(d->candidate[d->chosen].price.move_ns), 3),
                               J_REAL("lost_s", in_s(d->candidate[d->chosen].price.lost_ns), 3),
                               J_REAL("lost_staying_s", in_s(d->candidate[0].price.lost_ns), 3),
                               J_TEXT("prices_s", prices(d, all, sizeof all))));
    if (a->ops.rebalanced)
        a->ops.rebalanced(a->ops.user, id, members);
}

void weighing_committed(struct agent *a, const struct view_event *events, int n)
{
    bool figures = false, asked = false;
    for (int i = 0; i < n; i++) {
        const struct view_event *e = &events[i];
        figures = figures || e->type == VIEW_FIGURE;
        if (e->type != VIEW_FIGURE)
            a->weighing.changed = a->now;
        asked = asked || (e->type == VIEW_REBALANCE && e->a);
        if (e->type == VIEW_REBALANCE)
            a->weighing.due = false;
        else if (e->type == VIEW_NODE_BORN || (e->type == VIEW_FIGURE && e->a == FIGURE_PATTERN))
            a->weighing.due = plan_auto(&a->view);
        if (e->type == VIEW_REBALANCE && e->a == 1 + (uint32_t)a->self)
            answer(a, e->d);
    }
    if (!plan_auto(&a->view) || !is_speaker(a))
        return;
    if (figures)
        tell_figures(a);
    for (int i = 0; i < plan_decisions(&a->view); i++)
        tell_decision(a, &plan_auto(&a->view)->decision[i], asked);
}
