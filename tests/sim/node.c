/* One simulated node: the cores and a model of the agent around them. The agent freezes its barrier at PREPARE and
 * gives its count as the value; at COMMIT every dead participant is replaced by the lowest live spare, by the same
 * rule everywhere, and a spare that becomes a participant starts from the largest count. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/bitset.h"
#include "detect/datagram.h"
#include "tests/sim/look.h"
#include "tests/sim/world.h"

#define TYPE_NOTE VIEW_EVENT_FIRST

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct simnode *s = user;
    if (len > MEMBER_DATAGRAM_MAX)
        sim_fail(s->w, s->id, "a datagram of %zu bytes", len);
    unsigned type = *(const uint8_t *)data;
    if (!look_born(s->m) && type != DATAGRAM_JOIN && type != DATAGRAM_FETCH && type != DATAGRAM_LOG &&
        type != DATAGRAM_PONG)
        sim_fail(s->w, s->id, "sends a message of type %u before it is born", type);
    world_send(s->w, EV_DATAGRAM, s->id, to, data, len);
}

static void on_read(void *user, int node)
{
    struct simnode *s = user;
    world_send(s->w, EV_READ, s->id, node, "", 0);
}

static void on_watch(void *user, int node, bool on)
{
    struct simnode *s = user, *t = &s->w->nodes[node];
    if (!t->watchers)
        t->watchers = calloc(BITSET_WORDS(s->w->sc.n), 8);
    if (on)
        bitset_add(t->watchers, s->id);
    else
        bitset_del(t->watchers, s->id);
}

static void on_probe(void *user, int node)
{
    struct simnode *s = user;
    world_send(s->w, EV_PROBE, s->id, node, "", 0);
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct simnode *s = user;
    if (!look_born(s->m))
        sim_fail(s->w, s->id, "is asked to prepare epoch %llu, and is not born", (unsigned long long)epoch);
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_DEAD)
            bitset_add(s->fenced, (int)events[i].a);
    barrier_freeze(s->b);
    if (rng_below(&s->w->rng, 2)) {
        member_prepared(s->m, proposal, barrier_completed(s->b), s->w->now);
    } else {
        struct event *e = world_push(s->w, s->w->now + rng_below(&s->w->rng, 3 * MS), EV_PREPARED, s->id, -1);
        e->value = proposal;
    }
}

static void schedule_enter(struct simnode *s)
{
    if (s->participant && s->entered < s->w->target)
        world_push(s->w, s->w->now + rng_below(&s->w->rng, 20 * MS), EV_ENTER, s->id, -1);
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct simnode *s = user;
    bool was = s->participant;
    world_check_commit(s->w, s, epoch, events, n, max_value);
    for (int i = 0; i < n; i++) {
        int node = (int)events[i].a;
        if (events[i].type == VIEW_NODE_DEAD)
            bitset_add(s->fenced, node);
        if (events[i].type != VIEW_NODE_DEAD || !bitset_has(s->participants, node))
            continue;
        bitset_del(s->participants, node);
        for (int k = look_next(s->m, s->w->sc.n - s->w->sc.spares); k >= 0; k = look_next(s->m, k + 1))
            if (!bitset_has(s->participants, k)) {
                bitset_add(s->participants, k);
                s->w->nodes[k].join_base = max_value;
                break;
            }
    }
    s->participant = bitset_has(s->participants, s->id);
    if (s->w->sc.verbose)
        printf("%10.3f  node %d: commits %llu with value %llu, barrier %llu%s\n", (double)(s->w->now - SEC) / MS, s->id,
               (unsigned long long)epoch, (unsigned long long)max_value, (unsigned long long)barrier_completed(s->b),
               s->participant ? was ? "" : ", joins" : ", spare");
    barrier_freeze(s->b);
    if (s->participant && !was) {
        barrier_join(s->b, max_value);
        s->entered = max_value;
    }
    barrier_set_members(s->b, s->participants, s->w->now);
    barrier_thaw(s->b, s->w->now);
    if (s->participant && !was)
        schedule_enter(s);
}

static void on_settled(void *user, uint64_t epoch)
{
    struct simnode *s = user;
    world_check_settled(s->w, s, epoch);
}

static void on_halt(void *user, const char *reason)
{
    struct simnode *s = user;
    if (!s->tainted && !s->w->sc.may_lose_quorum)
        sim_fail(s->w, s->id, "halted though nothing is wrong with it: %s", reason);
    if (s->w->sc.quiet)
        sim_fail(s->w, s->id, "ended, and nothing was to end: %s", reason);
    if (s->w->sc.told_before && strncmp(reason, "no quorum", 9) == 0 &&
        (!s->cut_off_at || s->w->now < s->cut_off_at + s->w->sc.told_before))
        sim_fail(s->w, s->id, "ended without having said in time that it is cut off: %s", reason);
    s->halted = true;
    world_exit(s->w, s);
}

static void on_report(void *user, const struct member_report *r)
{
    struct simnode *s = user;
    if (r->kind == MEMBER_REPORT_CUT_OFF)
        s->cut_off_at = r->now_ns;
    if (s->w->sc.whole && r->kind == MEMBER_REPORT_LINK_BROKEN)
        sim_fail(s->w, s->id, "calls the link to node %d broken, and it is whole", r->node);
    s->link_words += r->kind == MEMBER_REPORT_LINK_BROKEN || r->kind == MEMBER_REPORT_LINK_OK;
    if (s->w->sc.verbose)
        printf("%10.3f  node %d: %s node %d epoch %llu evidence %s: %s\n", (double)(s->w->now - SEC) / MS, s->id,
               member_report_name(r->kind), r->node, (unsigned long long)r->epoch, member_evidence_name(r->evidence),
               r->text);
}

static void on_barrier_send(void *user, int to, const void *data, size_t len)
{
    struct simnode *s = user;
    world_send(s->w, EV_BARRIER, s->id, to, data, len);
}

static void on_complete(void *user, uint64_t seq)
{
    struct simnode *s = user;
    if (s->w->sc.verbose)
        printf("%10.3f  node %d: barrier %llu complete\n", (double)(s->w->now - SEC) / MS, s->id,
               (unsigned long long)seq);
    world_check_barrier(s->w, s, seq);
    schedule_enter(s);
}

size_t node_init(struct world *w, int id)
{
    struct simnode *s = &w->nodes[id];
    int n = w->sc.n;
    s->born = (uint32_t)(n - w->sc.joiners);
    s->id = id;
    s->w = w;
    if (!s->watchers)
        s->watchers = calloc(BITSET_WORDS(n), 8);
    s->participants = calloc(BITSET_WORDS(n), 8);
    s->fenced = calloc(BITSET_WORDS(n), 8);
    bitset_fill(s->participants, n - w->sc.spares);
    s->participant = bitset_has(s->participants, id);
    struct member_params p = w->sc.params;
    p.n = n;
    p.self = id;
    p.seed = w->sc.seed;
    p.n_born = n - w->sc.joiners;
    p.incarnation = 1 + (uint32_t)id;
    p.was = id / 2;
    p.sponsor = (int)rng_below(&w->rng, (uint64_t)p.n_born);
    struct member_ops ops = {.user = s,
                             .send = on_send,
                             .read = on_read,
                             .watch = on_watch,
                             .probe = on_probe,
                             .prepare = on_prepare,
                             .commit = on_commit,
                             .settled = on_settled,
                             .halt = on_halt,
                             .report = on_report};
    struct barrier_ops bops = {.user = s, .send = on_barrier_send, .complete = on_complete};
    size_t before = mallinfo2().uordblks;
    s->m = member_create(&p, &ops, w->now);
    size_t bytes = mallinfo2().uordblks - before;
    s->b = barrier_create(n, id, &bops);
    if (!s->m || !s->b)
        sim_fail(w, id, "could not be made");
    if (w->sc.waited >= 0 && w->sc.waited != id)
        member_waits(s->m, w->sc.waited, UINT64_MAX, w->now);
    if (w->sc.costly >= 0)
        member_stake(s->m, w->sc.costly, MEMBER_COSTLY, w->now);
    barrier_set_members(s->b, s->participants, w->now);
    s->ordered = calloc((size_t)(w->sc.submitters ? w->sc.submitters : 1), sizeof *s->ordered);
    s->tick_at = s->barrier_tick_at = UINT64_MAX;
    schedule_enter(s);
    if (id < w->sc.submitters)
        world_push(w, w->now + rng_below(&w->rng, 50 * MS), EV_SUBMIT, id, -1);
    node_sync(s);
    return bytes;
}

void node_fini(struct simnode *s)
{
    member_destroy(s->m);
    barrier_destroy(s->b);
    free(s->participants);
    free(s->watchers);
    free(s->fenced);
    free(s->ordered);
}

/* One timer event per core is enough as long as it comes no later than the deadline. */
void node_sync(struct simnode *s)
{
    uint64_t d = member_deadline(s->m);
    if (d <= s->w->now)
        d = s->w->now + 1000;
    if (d < s->tick_at) {
        s->tick_at = d;
        world_push(s->w, d, EV_TICK, s->id, -1);
    }
    d = barrier_deadline(s->b);
    if (d < s->barrier_tick_at) {
        s->barrier_tick_at = d;
        world_push(s->w, d, EV_BARRIER_TICK, s->id, -1);
    }
}

static uint64_t heartbeat(const struct simnode *s)
{
    return member_beat(s->m, (s->hung ? s->hang_since : s->w->now) / (s->w->sc.params.period_ns / 2));
}

static void submit(struct simnode *s)
{
    struct view_event ev = {.type = TYPE_NOTE, .a = (uint32_t)s->id, .b = s->submitted + 1};
    if (s->w->now - SEC > s->w->sc.end * 2 / 3)
        return;
    s->submitted++; /* before: the call may order it at once */
    uint32_t number = member_submit(s->m, &ev, s->w->now);
    if (s->w->sc.joiners ? number < s->submitted : number != s->submitted) /* births that it orders have numbers, too */
        sim_fail(s->w, s->id, "submission got another number");
    world_push(s->w, s->w->now + 20 * MS + rng_below(&s->w->rng, 200 * MS), EV_SUBMIT, s->id, -1);
}

/* What a dead process's host answers. */
static void host_event(struct simnode *s, const struct event *e)
{
    struct world *w = s->w;
    if (s->off)
        return;
    if (e->kind == EV_PROBE)
        world_push(w, w->now + world_delay(w), EV_REFUSED, e->from, s->id);
    if (e->kind == EV_READ)
        world_push(w, w->now + world_delay(w), EV_BROKEN, e->from, s->id);
}

void node_event(struct simnode *s, const struct event *e)
{
    struct world *w = s->w;
    if (s->dead) {
        host_event(s, e);
        return;
    }
    switch (e->kind) {
    case EV_TICK:
        if (e->t < s->tick_at)
            return;
        s->tick_at = UINT64_MAX;
        if (w->now >= member_deadline(s->m))
            member_tick(s->m, w->now);
        break;
    case EV_BARRIER_TICK:
        s->barrier_tick_at = UINT64_MAX;
        barrier_tick(s->b, w->now);
        break;
    case EV_DATAGRAM:
        member_receive(s->m, e->from, e->data, e->len, w->now);
        break;
    case EV_READ: {
        if (!world_path(w, s->id, e->from))
            return;
        if (member_believes_dead(s->m, e->from)) { /* fenced */
            world_push(w, w->now + world_delay(w), EV_BROKEN, e->from, s->id);
            return;
        }
        struct event *done = world_push(w, w->now + world_delay(w), EV_READ_DONE, e->from, s->id);
        done->value = heartbeat(s);
        break;
    }
    case EV_READ_DONE:
        member_heartbeat(s->m, e->from, e->value, w->now);
        break;
    case EV_BROKEN:
        member_broken(s->m, e->from, w->now);
        break;
    case EV_REFUSED:
        member_refused(s->m, e->from, w->now);
        break;
    case EV_BARRIER:
        if (!bitset_has(s->fenced, e->from))
            barrier_receive(s->b, e->from, e->data, e->len, w->now);
        break;
    case EV_PREPARED:
        member_prepared(s->m, e->value, barrier_completed(s->b), w->now);
        break;
    case EV_ENTER:
        if (s->participant && !barrier_waiting(s->b) && barrier_completed(s->b) < w->target) {
            s->entered = barrier_completed(s->b) + 1;
            barrier_enter(s->b, w->now);
        }
        break;
    case EV_SUBMIT:
        submit(s);
        break;
    case EV_KERNEL:
        if (e->value)
            member_stopped(s->m, e->from, w->now);
        else
            member_runs(s->m, e->from, w->now);
        break;
    case EV_PROBE: /* somebody listens: world.c */
    case EV_ACTION:
        break;
    }
    if (!s->dead)
        node_sync(s);
}
