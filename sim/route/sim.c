#include "sim/route/sim_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICK_NS = 500000 };

static const char *const method_name[SIM_METHODS] = {"dor", "single", "ft", "ft-perm", "ft-plus", "ft-plan"};

const char *sim_method_name(enum sim_method m)
{
    return method_name[m];
}

int sim_method_parse(const char *name)
{
    for (int i = 0; i < SIM_METHODS; i++)
        if (strcmp(name, method_name[i]) == 0)
            return i;
    return -1;
}

struct sim_config sim_config_default(const struct fabric *fabric)
{
    struct sim_config c = {
        .fabric = fabric,
        .link_gbps = 1.0,
        .hop_ns = 220,
        .buffer_bytes = 2 << 20,
        .size = {256, 512, 1024, 2048},
        .nsizes = 4,
        .ack_bytes = 32,
        .avoidance = true,
        .stall_ns = 50000,
        .warmup_ns = 2000000,
        .time_ns = 20000000,
        .drain_ns = 20000000,
        .watchdog_ns = 5000000,
        .seed = 1,
    };
    c.rate_gbps = 0.3 * fabric_bisection_bound(fabric) * c.link_gbps;
    sim_method_apply(&c, SIM_FT);
    return c;
}

void sim_method_apply(struct sim_config *c, enum sim_method method)
{
    c->method = method;
    c->detour = method == SIM_FT_PLAN   ? detour_config_plan()
                : method == SIM_FT_PLUS ? detour_config_plus()
                                        : detour_config_paper();
    c->detour.hop_ns = c->hop_ns;
    c->rumour_ns = method == SIM_FT_PLAN ? 5000000 : 0;
    c->notify = method != SIM_DOR;
    c->escape = method != SIM_DOR && method != SIM_SINGLE;
    if (method == SIM_SINGLE) {
        c->detour.threshold = 1;
        c->detour.max_paths = 2;
        c->detour.grow_wait_ns = UINT32_MAX; /* never a second path at a time */
    }
    if (method == SIM_FT_PERM)
        c->detour.threshold = 1;
}

static uint32_t largest_packet(const struct sim_config *c)
{
    uint32_t most = c->ack_bytes;
    for (int i = 0; i < c->nsizes; i++)
        most = c->size[i] > most ? c->size[i] : most;
    return most;
}

/* Slots of an input or output buffer: a router's memory, half for input, half for output, in equal parts for its links
 * and the one to (in a tree: the `arity` ones to) its endpoints. */
static uint32_t slots(const struct sim_config *c)
{
    const struct fabric *f = c->fabric;
    uint32_t ports = (uint32_t)f->ports + (f->kind == FABRIC_GRID);
    return c->buffer_bytes / 2 / ports / largest_packet(c);
}

const char *sim_config_wrong(const struct sim_config *c)
{
    if (c->fabric->endpoints < 2)
        return "the network needs at least two endpoints";
    if (!(c->rate_gbps > 0 && c->rate_gbps <= 1e6) || !(c->link_gbps > 0 && c->link_gbps <= 1e6))
        return "rates must be above 0 and at most 1000000 Gbps";
    if (c->nsizes < 1 || c->nsizes > SIM_MAX_SIZES)
        return "there must be 1 to 8 packet sizes";
    for (int i = 0; i < c->nsizes; i++)
        if (c->size[i] < 8 || c->size[i] > 65535)
            return "packet sizes must be 8 to 65535 bytes";
    if (c->ack_bytes > 65535)
        return "acknowledgements must be at most 65535 bytes";
    if (slots(c) < 1 || slots(c) > 65535)
        return "router buffers must hold 1 to 65535 of the largest packets per link and direction";
    if (c->time_ns <= c->warmup_ns || c->time_ns > 1000000000000000u)
        return "the time must be above the warm-up and at most 1000000 s";
    if (c->hop_ns < 1 || c->hop_ns > 1000000)
        return "the cost of a hop must be 1 to 1000000 ns";
    if (c->pattern == SIM_TRANSPOSE && c->fabric->kind == FABRIC_GRID) {
        const struct grid *g = &c->fabric->grid;
        if (g->ndims != 2 || g->size[0] != g->size[1])
            return "transpose needs a square network of two dimensions (or a tree)";
    }
    if (c->pattern == SIM_TRANSPOSE && c->fabric->kind == FABRIC_TREE && c->fabric->levels % 2)
        return "transpose on a tree needs an even number of levels";
    if (c->stall_ns < 1)
        return "the stall time must be at least 1 ns";
    return NULL;
}

void sim_port_at(struct sim *s, int32_t o, uint64_t time)
{
    if (s->port[o].ev_set)
        return; /* one that is set is never later than this one: it is for now, or for the end of what is on the link */
    s->port[o].ev_set = true;
    sim_at(s, time, EV_PORT, o);
}

static void tick(struct sim *s)
{
    struct sim_result *r = s->r;
    int32_t knot = avoid_knot(s);
    if (knot > 0) {
        r->knots++;
        if (!s->c.avoidance && !r->deadlock_ns)
            r->deadlock_ns = s->now;
    }
    if (s->live && s->now - s->last_move > s->c.watchdog_ns)
        r->stuck = true;
    if (s->c.permille)
        atomic_store_explicit(s->c.permille, (uint32_t)(s->now >= s->c.time_ns ? 999 : s->now * 999 / s->c.time_ns),
                              memory_order_relaxed);
    sim_at(s, s->now + TICK_NS, EV_TICK, 0);
}

static void dispatch(struct sim *s, uint32_t code)
{
    int32_t i = (int32_t)(code >> 3);
    switch ((enum event)(code & 7)) {
    case EV_HEAD:
        router_head(s, i);
        break;
    case EV_PORT:
        s->port[i].ev_set = false;
        router_port(s, i);
        break;
    case EV_STALL:
        avoid_stall(s, i);
        break;
    case EV_NIC:
        traffic_nic(s, i);
        break;
    case EV_OUTAGE:
        fault_event(s);
        break;
    case EV_TICK:
        tick(s);
        break;
    case EV_RUMOUR:
        rumour_event(s, i);
        break;
    }
}

static bool is_over(const struct sim *s)
{
    const struct sim_result *r = s->r;
    if (s->failed || s->broken || r->stuck || r->deadlock_ns || r->stopped)
        return true;
    return s->now >= s->c.time_ns && (!s->live || s->now >= s->c.time_ns + s->c.drain_ns);
}

static void run_events(struct sim *s)
{
    uint64_t events = 0;
    struct wheel *w = &s->wheel;
    while (!is_over(s)) {
        uint64_t near = wheel_next(w, s->now), far = w->n ? w->heap[0].time : UINT64_MAX;
        s->now = far <= near ? far : near;
        while (w->n && w->heap[0].time == s->now) {
            dispatch(s, wheel_pop_far(w));
            events++;
        }
        uint32_t slot = (uint32_t)s->now & (WHEEL_SLOTS - 1);
        while (w->slot[slot] != WHEEL_EMPTY) {
            uint32_t code = (uint32_t)w->slot[slot];
            w->slot[slot] = *event_link(s, (enum event)(code & 7), (int32_t)(code >> 3));
            dispatch(s, code);
            events++;
            if (s->c.check_every && events % s->c.check_every == 0 && !s->broken)
                s->broken = sim_check(s);
        }
        wheel_drop(w, s->now);
        if ((events & 0xfff) < 8 && s->c.stop && atomic_load_explicit(s->c.stop, memory_order_relaxed))
            s->r->stopped = true;
    }
    s->r->events = events;
}

static bool sim_alloc(struct sim *s)
{
    const struct fabric *f = s->f;
    size_t endpoints = (size_t)f->endpoints;
    s->nlinks = s->eject0 = fabric_links(f);
    s->inject0 = s->eject0 + f->endpoints;
    s->nports = s->inject0 + f->endpoints;
    s->port = calloc((size_t)s->nports, sizeof *s->port);
    s->nic_next = calloc(2 * endpoints + 2, sizeof *s->nic_next);
    s->nic_rng = calloc(endpoints, sizeof *s->nic_rng);
    s->source = calloc(endpoints, sizeof *s->source);
    s->teller = calloc(s->c.rumour_ns ? endpoints : 1, sizeof *s->teller);
    s->hist = calloc((size_t)SIM_HIST_OCTAVES * SIM_HIST_STEPS, sizeof *s->hist);
    s->repair = calloc(s->c.outages ? s->c.outages->n + 1 : 1, sizeof *s->repair);
    if (!s->port || !s->nic_next || !s->nic_rng || !s->source || !s->teller || !s->hist || !s->repair)
        return false;
    for (int32_t o = 0; o < s->nports; o++) {
        struct port *p = &s->port[o];
        for (int class = 0; class < 2; class ++)
            p->head[class] = p->tail[class] = p->whead[class] = p->wtail[class] = NONE;
        p->to = o < s->nlinks ? f->neighbor[o] : o < s->inject0 ? NONE : fabric_home(f, o - s->inject0);
    }
    for (int32_t e = 0; e < f->endpoints; e++)
        detour_source_init(&s->source[e], e);
    return wheel_init(&s->wheel) && detour_init(&s->detour, f, &s->c.detour) && traffic_init(s);
}

static void sim_free(struct sim *s)
{
    for (int32_t e = 0; s->source && e < s->f->endpoints; e++)
        detour_source_fini(&s->source[e]);
    detour_fini(&s->detour);
    wheel_fini(&s->wheel);
    free(s->port);
    free(s->packet);
    free(s->ext);
    free(s->rumour);
    free(s->teller);
    free(s->nic_next);
    free(s->nic_rng);
    free(s->source);
    free(s->partner);
    free(s->repair);
    free(s->hist);
}

static double percentile(const struct sim *s, double share)
{
    uint64_t want = (uint64_t)(share * (double)s->r->measured), seen = 0;
    for (int i = 0; i < SIM_HIST_OCTAVES * SIM_HIST_STEPS; i++) {
        seen += s->hist[i];
        if (seen > want) /* the middle of the bin */
            return ldexp(0.5 + (i % SIM_HIST_STEPS + 0.5) / (2.0 * SIM_HIST_STEPS), i / SIM_HIST_STEPS);
    }
    return s->r->max_ns;
}

/* Time a link was busy: of a packet that is on it at the end, only what has left. */
static uint64_t busy_until_now(const struct sim *s, const struct port *port)
{
    return port->busy_ns - (port->busy_until > s->now ? port->busy_until - s->now : 0);
}

static void summarize(struct sim *s, float *link_busy)
{
    struct sim_result *r = s->r;
    double n = r->measured ? (double)r->measured : 1, window = (double)(s->c.time_ns - s->c.warmup_ns);
    r->latency_ns = s->sum_latency / n;
    r->head_ns = s->sum_head / n;
    r->hops = s->sum_hops / n;
    r->p50_ns = percentile(s, 0.50);
    r->p99_ns = percentile(s, 0.99);
    r->offered_gbps = (double)s->bytes_offered * 8 / window / s->f->endpoints;
    r->accepted_gbps = (double)s->bytes_accepted * 8 / window / s->f->endpoints;
    r->unfinished = r->created - r->delivered - r->lost - r->undeliverable;
    r->end_ns = s->now;
    r->cap_in = s->cap_in;
    r->cap_out = s->cap_out;
    double sum = 0, links = 0;
    for (int32_t l = 0; l < s->nlinks; l++) {
        if (link_busy)
            link_busy[l] = 0;
        if (s->f->neighbor[l] < 0)
            continue;
        double share = s->now ? (double)busy_until_now(s, &s->port[l]) / (double)s->now : 0;
        if (link_busy)
            link_busy[l] = (float)share;
        sum += share;
        links++;
        r->link_max = share > r->link_max ? share : r->link_max;
    }
    r->link_mean = links > 0 ? sum / links : 0;
}

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

const char *sim_run(const struct sim_config *c, struct sim_result *result, float *link_busy)
{
    const char *wrong = sim_config_wrong(c);
    if (wrong)
        return wrong;
    memset(result, 0, sizeof *result);
    double start = cpu_seconds();
    struct sim s = {.c = *c, .f = c->fabric, .r = result, .free_packet = NONE, .free_ext = NONE, .free_rumour = NONE};
    s.cap_in = s.cap_out = (uint16_t)slots(c);
    s.c.detour.traffic = sim_flow_traffic(c);
    rng_seed(&s.rng, c->seed ^ 0x6b65656cu);
    if (sim_alloc(&s)) {
        traffic_start(&s);
        rumour_start(&s);
        sim_at(&s, TICK_NS, EV_TICK, 0);
        fault_schedule(&s);
        run_events(&s);
        if (!s.broken && c->check_every)
            s.broken = sim_check(&s);
        summarize(&s, link_busy);
        wrong = s.failed ? "out of memory" : s.broken;
    } else {
        wrong = "out of memory";
    }
    sim_free(&s);
    result->seconds = cpu_seconds() - start;
    return wrong;
}
