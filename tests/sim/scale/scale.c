#include "tests/sim/scale/scale.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/look.h"

enum kind { EV_TICK, EV_DATAGRAM, EV_READ, EV_BROKEN, EV_REFUSED, EV_KERNEL, EV_FAIL, EV_HEAL, EV_FLAP };
enum { WATCHERS = 8, RETRIES = 3, CORES_MAX = 64 };
#define RETRY_NS (20 * MS)
#define DELAY_NS 40000
#define JITTER_NS 100000

struct node {
    struct member *m;
    uint64_t tick_at, thaw_at;
    int id;
    bool dead, off, stopped, slow, cut, failed, excused; /* excused: may be declared dead */
    int watchers[WATCHERS];
};

static struct world {
    struct plan p;
    struct outcome *out;
    struct wheel *wheel;
    struct node *nodes;
    struct rng rng;
    uint64_t now;
    uint64_t *history; /* hash of each epoch's events */
    uint64_t n_history, cap_history;
    bool *link_down; /* between i and i + 1 */
    uint64_t free_at[CORES_MAX];
    int core; /* on which the event that is handled runs */
} w;

static bool path(int a, int b)
{
    int low = a < b ? a : b;
    return !w.nodes[a].off && !w.nodes[b].off && w.nodes[a].cut == w.nodes[b].cut &&
           !(w.link_down && (a - b == 1 || b - a == 1) && w.link_down[low]);
}

static uint64_t delay(int to)
{
    uint64_t d = DELAY_NS + rng_below(&w.rng, JITTER_NS);
    if (w.p.spike > 0 && rng_double(&w.rng) < w.p.spike)
        d += rng_below(&w.rng, w.p.spike_ns);
    if (w.nodes[to].slow)
        d += rng_below(&w.rng, w.p.slow_ns);
    return d;
}

static bool is_lost(void)
{
    return w.p.loss > 0 && rng_double(&w.rng) < w.p.loss;
}

static bool is_answered(void)
{
    bool arrived = !is_lost();
    return arrived && !is_lost();
}

static struct occurrence *happens(uint64_t t, enum kind kind, int node, int from)
{
    struct occurrence *o = wheel_add(w.wheel, t);
    o->kind = (uint8_t)kind;
    o->node = node;
    o->from = from;
    return o;
}

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct node *s = user;
    w.out->messages++;
    w.out->by_type[((const uint8_t *)data)[0] % SCALE_TYPES]++;
    w.free_at[w.core] += w.p.work_ns;
    w.out->longest = len > w.out->longest ? len : w.out->longest;
    if (is_lost() || !path(s->id, to))
        return;
    struct occurrence *o = happens(w.now + delay(to), EV_DATAGRAM, to, s->id);
    o->len = (uint16_t)len;
    if (len > WHEEL_INLINE && !(o->far = malloc(len)))
        o->len = 0; /* a message lost */
    else
        memcpy(o->far ? o->far : o->near, data, len);
}

static void on_read(void *user, int node)
{
    struct node *s = user;
    uint64_t t = w.now + delay(node) + delay(s->id), again = RETRY_NS;
    int tries = 0;
    w.out->reads++;
    for (; tries <= RETRIES && !is_answered(); tries++, again *= 2)
        t += again;
    if (path(s->id, node) && path(node, s->id))
        happens(t, tries > RETRIES ? EV_BROKEN : EV_READ, s->id, node);
}

static void on_watch(void *user, int node, bool on)
{
    struct node *s = user;
    int *list = w.nodes[node].watchers;
    for (int i = 0; i < WATCHERS; i++)
        if (list[i] == (on ? -1 : s->id)) {
            list[i] = on ? s->id : -1;
            return;
        }
}

static void on_probe(void *user, int node)
{
    struct node *s = user;
    w.out->messages++;
    if (path(s->id, node) && is_answered())
        happens(w.now + delay(node) + delay(s->id), w.nodes[node].dead ? EV_REFUSED : EV_KERNEL, s->id, node);
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct node *s = user;
    (void)epoch;
    (void)events;
    (void)n;
    member_prepared(s->m, proposal, 0, w.now);
}

static uint64_t hash_of(const struct view_event *events, int n)
{
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < (size_t)n * sizeof *events; i++)
        h = (h ^ ((const uint8_t *)events)[i]) * 1099511628211ull;
    return h;
}

static void note_event(const struct view_event *e)
{
    if (e->type != VIEW_NODE_DEAD) {
        w.out->ordered++;
        return;
    }
    const struct node *victim = &w.nodes[e->a];
    w.out->declared++;
    w.out->wrong += !victim->dead && !victim->excused;
}

/* Of two that run, at most one has the other outside its view. Looked at where nodes are cut off, since it is work
 * for each pair. */
static bool is_one_job(const struct node *s)
{
    for (int i = 0; w.p.cut > 0 && i < w.p.n; i++)
        if (i != s->id && !w.nodes[i].dead && !look_alive(s->m, i) && !look_alive(w.nodes[i].m, s->id))
            return false;
    return true;
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct node *s = user;
    (void)max_value;
    if (epoch == w.n_history + 1) {
        if (w.n_history == w.cap_history) {
            w.cap_history = w.cap_history ? 2 * w.cap_history : 64;
            uint64_t *more = realloc(w.history, w.cap_history * sizeof *more);
            if (!more)
                abort();
            w.history = more;
        }
        w.history[w.n_history++] = hash_of(events, n);
        for (int i = 0; i < n; i++)
            note_event(&events[i]);
    }
    if (epoch > w.n_history || w.history[epoch - 1] != hash_of(events, n))
        w.out->consistent = false;
    w.out->two_jobs |= !is_one_job(s);
    if (!s->cut && !s->failed)
        w.out->known = w.now - w.p.at - SEC;
}

static void on_settled(void *user, uint64_t epoch)
{
    (void)user;
    (void)epoch;
}

static void end(struct node *s)
{
    s->dead = true;
    for (int i = 0; i < WATCHERS; i++)
        if (s->watchers[i] >= 0 && path(s->id, s->watchers[i]))
            happens(w.now + delay(s->watchers[i]), EV_BROKEN, s->watchers[i], s->id);
}

static void on_halt(void *user, const char *reason)
{
    struct node *s = user;
    (void)reason;
    w.out->halted++;
    w.out->wrong += !s->excused && !s->failed;
    end(s);
}

static void on_report(void *user, const struct member_report *r)
{
    const struct node *s = user;
    if (w.p.trace && s->id == w.p.trace - 1)
        fprintf(stderr, "%.3f ms, node %d, epoch %llu: %s %d (%s), %s\n", ((double)w.now - SEC) / MS, s->id,
                (unsigned long long)r->epoch, member_report_name(r->kind), r->node, member_evidence_name(r->evidence),
                r->text ? r->text : "");
    w.out->suspicions += r->kind == MEMBER_REPORT_SUSPECT;
    if (r->kind == MEMBER_REPORT_VERDICT && !w.out->detected && w.now > w.p.at + SEC)
        w.out->detected = w.now - w.p.at - SEC;
}

static void set_timer(struct node *s)
{
    uint64_t d = member_deadline(s->m);
    if (d <= w.now)
        d = w.now + 1000;
    if (d < s->tick_at) {
        s->tick_at = d;
        happens(d, EV_TICK, s->id, -1);
    }
}

/* Those that fail: at random, or neighbours. */
static struct node *victim(int k)
{
    if (w.p.together)
        return &w.nodes[(w.p.n / 3 + k) % w.p.n];
    for (;;) {
        struct node *s = &w.nodes[rng_below(&w.rng, (uint64_t)w.p.n)];
        if (!s->failed)
            return s;
    }
}

static void fail_all(void)
{
    int k = 0, killed = w.p.killed, off = killed + w.p.off, frozen = off + w.p.frozen, all = frozen + w.p.starved;
    for (; k < all; k++) {
        struct node *s = victim(k);
        s->failed = true;
        s->excused = k < frozen;
        if (k < killed)
            end(s);
        else if (k < off)
            s->off = s->dead = true;
        else
            s->thaw_at = k < frozen ? UINT64_MAX : w.now + w.p.starve_ns;
        s->stopped = k >= off && k < frozen;
        if (s->stopped) /* somebody waits for it, or nobody would mind */
            member_waits(w.nodes[(s->id + w.p.n - 1) % w.p.n].m, s->id, UINT64_MAX, w.now);
    }
    w.out->failed = frozen;
    for (int i = 0; i < w.p.submitted; i++) {
        struct node *s = &w.nodes[(int64_t)i * w.p.n / w.p.submitted];
        struct view_event e = {.type = VIEW_EVENT_FIRST, .a = (uint32_t)s->id};
        if (!s->dead)
            member_submit(s->m, &e, w.now);
    }
    for (int i = 0; i < w.p.n; i++) /* the smaller part; it may be the one that has the coordinator */
        w.nodes[i].cut = (i >= w.p.n - (int)(w.p.cut * w.p.n)) == (w.p.cut <= 0.5);
    for (int i = 0; i < w.p.n && w.p.cut > 0;
         i++) /* each side finds the other dead; when they meet again a quorum decides */
        w.nodes[i].excused = true;
}

static void handle(struct node *s, struct occurrence *o)
{
    const uint8_t *data = o->far ? o->far : o->near;
    switch ((enum kind)o->kind) {
    case EV_TICK:
        s->tick_at = UINT64_MAX;
        if (w.now >= member_deadline(s->m))
            member_tick(s->m, w.now);
        break;
    case EV_DATAGRAM:
        member_receive(s->m, o->from, data, o->len, w.now);
        break;
    case EV_READ: { /* the word as it is half a way back, nearly */
        const struct node *t = &w.nodes[o->from];
        if (!path(s->id, t->id))
            return;
        if (t->dead || !look_alive(t->m, s->id))
            member_broken(s->m, o->from, w.now);
        else if (t->thaw_at <= w.now)
            member_heartbeat(s->m, o->from, w.now / (w.p.params.period_ns / 2), w.now);
        break;
    }
    case EV_BROKEN:
        member_broken(s->m, o->from, w.now);
        break;
    case EV_REFUSED:
        member_refused(s->m, o->from, w.now);
        break;
    case EV_KERNEL:
        (w.nodes[o->from].stopped ? member_stopped : member_runs)(s->m, o->from, w.now);
        break;
    default:
        break;
    }
    if (!s->dead)
        set_timer(s);
}

/* A timer that was set anew since. */
static bool is_stale(const struct node *s, const struct occurrence *o)
{
    return o->kind == EV_TICK && !o->has_turn && o->t < s->tick_at;
}

/* The same event, later. */
static void put_off(struct occurrence *o, uint64_t t)
{
    struct occurrence *again = happens(t, (enum kind)o->kind, o->node, o->from);
    uint32_t next = again->next;
    *again = *o;
    again->next = next;
    again->t = t;
    o->far = NULL;
}

/* Is there a processor for it now? If not, it has its turn later. */
static bool has_turn(struct occurrence *o)
{
    int core = 0;
    if (!w.p.cores || o->has_turn) {
        w.core = o->has_turn ? o->has_turn - 1 : 0;
        return true;
    }
    for (int i = 1; i < w.p.cores; i++)
        if (w.free_at[i] < w.free_at[core])
            core = i;
    uint64_t start = w.free_at[core] > w.now ? w.free_at[core] : w.now;
    w.free_at[core] = start + w.p.work_ns;
    w.core = core;
    if (start == w.now)
        return true;
    o->has_turn = (uint8_t)(core + 1);
    put_off(o, start);
    return false;
}

static void dispatch(struct occurrence *o)
{
    struct node *s = o->node >= 0 ? &w.nodes[o->node] : NULL;
    if (o->kind == EV_FAIL) {
        fail_all();
    } else if (o->kind == EV_HEAL) {
        for (int i = 0; i < w.p.n; i++)
            w.nodes[i].cut = false;
    } else if (o->kind == EV_FLAP) {
        w.link_down[o->node] = !w.link_down[o->node];
        happens(w.now + 20 * MS + rng_below(&w.rng, 700 * MS), EV_FLAP, o->node, -1);
    } else if (s && s->thaw_at > w.now) {
        if (s->thaw_at == UINT64_MAX)
            return;
        put_off(o, s->thaw_at);
        if (o->kind == EV_TICK)
            s->tick_at = s->thaw_at;
    } else if (s && !s->dead && !s->off && !is_stale(s, o) && has_turn(o)) {
        handle(s, o);
    }
}

static bool create(struct node *s, int id)
{
    struct member_params p = w.p.params;
    const struct member_ops ops = {s,         on_send,    on_read, on_watch,  on_probe, on_prepare,
                                   on_commit, on_settled, on_halt, on_report, NULL};
    p.n = w.p.n;
    p.self = s->id = id;
    p.seed = w.p.seed;
    s->tick_at = UINT64_MAX;
    s->slow = rng_double(&w.rng) < w.p.slow;
    s->m = member_create(&p, &ops, w.now);
    if (!s->m)
        return false;
    happens(w.now + rng_below(&w.rng, p.period_ns), EV_TICK, id, -1); /* they do not start at the same moment */
    s->tick_at = w.now;
    return true;
}

/* Has everybody of the smaller part ended, where the nodes are cut apart for good? */
static bool has_minority_ended(void)
{
    for (int i = 0; i < w.p.n && !w.p.cut_ns; i++)
        if (w.nodes[i].cut && !w.nodes[i].dead)
            return false;
    return true;
}

/* Does everybody who runs, and was not cut off with a minority, have the end of the history, in which all that
 * failed are out? */
static bool all_agree(void)
{
    for (int i = 0; i < w.p.n; i++) {
        const struct node *s = &w.nodes[i];
        if (s->dead || s->cut || s->thaw_at > w.now)
            continue;
        if (look_epoch(s->m) != w.n_history)
            return false;
        for (int k = 0; k < w.p.n && s->id == agreement_coordinator(s->m); k++)
            if (((w.nodes[k].failed && w.nodes[k].excused) || w.nodes[k].cut) && look_alive(s->m, k))
                return false;
    }
    return true;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool scale_run(const struct plan *plan, struct outcome *out)
{
    *out = (struct outcome){.consistent = true};
    w = (struct world){.p = *plan, .out = out, .now = SEC};
    rng_seed(&w.rng, plan->seed * 7919u + (uint64_t)plan->n);
    w.wheel = wheel_create(w.now);
    w.nodes = calloc((size_t)plan->n, sizeof *w.nodes);
    w.link_down = plan->flapping ? calloc((size_t)plan->n, sizeof *w.link_down) : NULL;
    if (!w.wheel || !w.nodes || (plan->flapping && !w.link_down))
        return false;
    for (int i = 0; i < plan->n; i++)
        memset(w.nodes[i].watchers, -1, sizeof w.nodes[i].watchers);
    for (int i = 0; i < plan->n; i++)
        if (!create(&w.nodes[i], i))
            return false;
    happens(SEC + plan->at, EV_FAIL, -1, -1);
    if (plan->cut > 0 && plan->cut_ns)
        happens(SEC + plan->at + plan->cut_ns, EV_HEAL, -1, -1);
    for (int i = 0; i < plan->flapping; i++)
        happens(SEC + plan->at, EV_FLAP, (int)((int64_t)i * plan->n / plan->flapping), -1);
    struct occurrence o;
    double cpu = cpu_s();
    while (wheel_take(w.wheel, SEC + plan->end, &o)) {
        w.now = o.t > w.now ? o.t : w.now;
        out->events++;
        dispatch(&o);
        free(o.far);
    }
    out->cpu_s = cpu_s() - cpu;
    out->agreed = all_agree();
    out->ended = has_minority_ended();
    size_t full = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < plan->n; i++)
        member_destroy(w.nodes[i].m);
    out->node_bytes = (full - mallinfo2().uordblks - mallinfo2().hblkhd) / (size_t)plan->n;
    wheel_destroy(w.wheel);
    free(w.nodes);
    free(w.link_down);
    free(w.history);
    return true;
}
