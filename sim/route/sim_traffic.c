#include "sim/route/sim_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HOT_SHARE_PERCENT = 10 };

static const char *const pattern_name[SIM_PATTERNS] = {"uniform", "transpose", "complement", "hotspot", "neighbor"};

const char *sim_pattern_name(enum sim_pattern p)
{
    return pattern_name[p];
}

int sim_pattern_parse(const char *name)
{
    for (int i = 0; i < SIM_PATTERNS; i++)
        if (strcmp(name, pattern_name[i]) == 0)
            return i;
    return -1;
}

/* (x, y) to (y, x); elsewhere the two halves of the endpoint's number change places. */
static int32_t transpose_of(const struct fabric *f, int32_t e)
{
    if (f->kind == FABRIC_GRID)
        return e / f->grid.size[0] + e % f->grid.size[0] * f->grid.size[0];
    int32_t low = 1;
    for (int i = 0; i < f->levels / 2; i++)
        low *= f->arity;
    return e / low + e % low * (f->endpoints / low);
}

int32_t *sim_partners(const struct fabric *f, enum sim_pattern pattern)
{
    if (pattern != SIM_TRANSPOSE && pattern != SIM_COMPLEMENT)
        return NULL;
    int32_t *partner = malloc((size_t)f->endpoints * sizeof *partner);
    for (int32_t e = 0; partner && e < f->endpoints; e++) {
        int32_t d = pattern == SIM_TRANSPOSE ? transpose_of(f, e) : f->endpoints - 1 - e;
        partner[e] = d == e ? NONE : d;
    }
    return partner;
}

struct flow_traffic sim_flow_traffic(const struct sim_config *c)
{
    double bytes = 0, squares = 0;
    for (int i = 0; i < c->nsizes; i++) {
        bytes += (double)c->size[i] / c->nsizes;
        squares += (double)c->size[i] * c->size[i] / c->nsizes;
    }
    double ns = 8 / c->link_gbps; /* of a byte on a link */
    return (struct flow_traffic){.rate = c->rate_gbps / 8 / bytes,
                                 .serial_ns = bytes * ns,
                                 .serial2_ns = squares * ns * ns,
                                 .hop_ns = c->hop_ns};
}

bool traffic_init(struct sim *s)
{
    const struct fabric *f = s->f;
    for (int32_t e = 0; e < f->endpoints; e++)
        rng_seed(&s->nic_rng[e], s->c.seed * 0x9e3779b97f4a7c15u + (uint64_t)e);
    s->partner = sim_partners(f, s->c.pattern);
    return s->partner || (s->c.pattern != SIM_TRANSPOSE && s->c.pattern != SIM_COMPLEMENT);
}

static int32_t neighbor_of(struct sim *s, int32_t src)
{
    if (s->f->kind == FABRIC_TREE)
        return (src + 1) % s->f->endpoints;
    for (;;) {
        int32_t to = s->f->neighbor[src * s->f->ports + (int32_t)rng_below(&s->nic_rng[src], (uint64_t)s->f->ports)];
        if (to >= 0 && to != src)
            return to;
    }
}

/* NONE: this endpoint does not send */
static int32_t traffic_dest(struct sim *s, int32_t src)
{
    struct rng *rng = &s->nic_rng[src];
    uint64_t n = (uint64_t)s->f->endpoints;
    if (s->partner)
        return s->partner[src];
    if (s->c.pattern == SIM_NEIGHBOR)
        return neighbor_of(s, src);
    int32_t hot = s->f->endpoints / 2;
    if (s->c.pattern == SIM_HOTSPOT && src != hot && rng_below(rng, 100) < HOT_SHARE_PERCENT)
        return hot;
    int32_t d = (int32_t)rng_below(rng, n - 1);
    return d < src ? d : d + 1;
}

static uint64_t gap_ns(struct sim *s, int32_t e, uint32_t bytes)
{
    double gap = bytes * 8 / s->c.rate_gbps;
    if (s->c.poisson)
        gap *= -log(1.0 - rng_double(&s->nic_rng[e]));
    return gap < 1 ? 1 : (uint64_t)gap;
}

static uint32_t draw_size(struct sim *s, int32_t e)
{
    return s->c.size[rng_below(&s->nic_rng[e], (uint64_t)s->c.nsizes)];
}

void traffic_start(struct sim *s)
{
    for (int32_t e = 0; e < s->f->endpoints; e++) {
        if (s->partner && s->partner[e] == NONE)
            continue;
        uint64_t gap = gap_ns(s, e, s->c.size[s->c.nsizes - 1]);
        sim_at(s, rng_below(&s->nic_rng[e], gap + 1), EV_NIC, e);
    }
}

/* Give a packet to its endpoint's link into the network; the endpoint's memory is not limited. */
static void inject(struct sim *s, int32_t p)
{
    int32_t o = s->inject0 + s->packet[p].src;
    int class = packet_class(&s->packet[p]);
    list_append(s, &s->port[o].head[class], &s->port[o].tail[class], p);
    router_send(s, o);
}

/* The endpoint's policy chooses the path of a packet it sends. An acknowledgement takes the same care, and keeps as
 * `sent` the path it reports on. returns whether it is another than the original path. */
static bool choose_path(struct sim *s, int32_t p, bool report)
{
    if (!s->c.notify)
        return false;
    struct detour_path path;
    int32_t src = s->packet[p].src, dst = s->packet[p].dst;
    if (s->c.routes)
        path = s->c.routes[(size_t)src * (size_t)s->f->endpoints + (size_t)dst];
    else
        detour_choose(&s->detour, &s->source[src], dst, s->now, &s->rng, &path);
    struct ext *x = path.nvia ? packet_ext(s, p) : NULL;
    if (!x)
        return false;
    x->way = path;
    if (report)
        x->sent = path;
    return true;
}

void traffic_inject(struct sim *s, int32_t p)
{
    choose_path(s, p, false);
    inject(s, p);
}

void traffic_nic(struct sim *s, int32_t e)
{
    if (s->now >= s->c.time_ns)
        return;
    uint32_t bytes = draw_size(s, e);
    int32_t dest = traffic_dest(s, e), p = packet_make(s, PACKET_DATA, e, dest, bytes);
    if (p == NONE)
        return;
    s->r->created++;
    if (s->now >= s->c.warmup_ns) {
        s->packet[p].flags |= FLAG_MEASURED;
        s->bytes_offered += bytes;
    }
    if (s->c.notify)
        detour_sent(&s->detour, &s->source[e], dest);
    s->r->multistep += choose_path(s, p, true);
    inject(s, p);
    sim_at(s, s->now + gap_ns(s, e, bytes), EV_NIC, e);
}

static void count_latency(struct sim *s, const struct packet *p, uint64_t head_ns)
{
    double latency = (double)(s->now - p->created);
    s->r->measured++;
    s->sum_latency += latency;
    s->sum_head += (double)head_ns;
    s->sum_hops += p->hops;
    uint64_t bin = p->created * SIM_BINS / s->c.time_ns;
    s->r->lat_by_time[bin] += latency;
    s->r->n_by_time[bin]++;
    if (latency > s->r->max_ns)
        s->r->max_ns = latency;
    int octave;
    double part = frexp(latency, &octave); /* latency = part * 2^octave, part in [0.5, 1) */
    if (octave >= 0 && octave < SIM_HIST_OCTAVES)
        s->hist[octave * SIM_HIST_STEPS + (int)((part - 0.5) * 2 * SIM_HIST_STEPS)]++;
    if (p->hops < SIM_HOPS_MAX && !(p->flags & FLAG_FAULTED)) {
        s->r->lat_by_hops[p->hops] += (double)head_ns;
        s->r->n_by_hops[p->hops]++;
    }
}

/* What the message met on its way, then what its destination knows. */
static void pass_on(struct sim *s, int32_t ack, const struct packet *p)
{
    struct ext *x = packet_ext(s, ack);
    if (!x)
        return;
    const struct ext *m = p->ext != NONE ? &s->ext[p->ext] : NULL;
    for (int k = 0; m && k < m->nnews && k < NEWS_MAX; k++) {
        struct detour_news n = m->news[k];
        n.age_ns = n.known_ns = s->now - n.age_ns;
        if (n.out_ns >= s->c.detour.tell_ns && n.age_ns <= n.out_ns)
            x->news[x->nnews++] = n;
    }
    x->nnews += detour_recall(&s->detour, &s->source[p->dst], s->now, false, NEWS_MAX - x->nnews, x->news + x->nnews);
    while (x->nnews && s->packet[ack].bytes + x->nnews * RUMOUR_BYTES > UINT16_MAX) /* an acknowledgement of 65535 */
        x->nnews--;
    s->packet[ack].bytes = (uint16_t)(s->packet[ack].bytes + x->nnews * (s->c.rumour_ns ? RUMOUR_BYTES : NEWS_BYTES));
}

/* "When the message reaches the destination node, and the path is fault-free", its latency goes back. Where news are
 * told, a message that met faults is answered too: with those. */
static void acknowledge(struct sim *s, const struct packet *p, uint64_t head_ns)
{
    bool faulted = p->flags & FLAG_FAULTED;
    if (faulted && !s->c.detour.tell)
        return;
    int32_t ack = packet_make(s, faulted ? PACKET_NEWS : PACKET_ACK, p->dst, p->src, s->c.ack_bytes);
    if (ack == NONE)
        return;
    s->packet[ack].info = head_ns < UINT32_MAX ? (uint32_t)head_ns : UINT32_MAX;
    if (p->ext != NONE) { /* the path goes with it */
        struct ext *to = packet_ext(s, ack);
        if (to)
            to->sent = s->ext[p->ext].sent;
    }
    if (s->c.detour.tell)
        pass_on(s, ack, p);
    if (faulted && (s->packet[ack].ext == NONE || s->ext[s->packet[ack].ext].nnews == 0)) {
        packet_free(s, ack);
        return;
    }
    s->r->acks++;
    traffic_inject(s, ack);
}

static void deliver_data(struct sim *s, int32_t i)
{
    const struct packet p = s->packet[i];
    uint64_t head_ns = s->now - p.started - serial_ns(s, p.bytes);
    s->r->delivered++;
    if (s->now >= s->c.warmup_ns && s->now < s->c.time_ns)
        s->bytes_accepted += p.bytes;
    if (p.flags & FLAG_MEASURED)
        count_latency(s, &p, head_ns);
    if (s->c.ack_bytes)
        acknowledge(s, &p, head_ns);
}

void traffic_delivered(struct sim *s, int32_t i)
{
    const struct packet *p = &s->packet[i];
    static const struct detour_path original = {.nvia = 0};
    if (p->kind == PACKET_DATA) {
        deliver_data(s, i);
    } else if (p->kind == PACKET_RUMOUR) {
        rumour_heard(s, i);
    } else if (s->c.notify) {
        struct detour_source *src = &s->source[p->dst];
        const struct ext *x = p->ext != NONE ? &s->ext[p->ext] : NULL;
        if (p->kind == PACKET_FAULT)
            detour_faulted(&s->detour, src, (int32_t)p->info, s->now - p->started, s->now);
        for (int n = 0; x && p->kind != PACKET_FAULT && n < x->nnews; n++) {
            struct detour_news news = x->news[n];
            news.age_ns += s->now - p->created; /* on its way, as packets carry their latency */
            news.known_ns += s->now - p->created;
            detour_told(&s->detour, src, &news, s->now);
        }
        if (p->kind == PACKET_ACK) /* last: what came through clears what was said */
            detour_acked(&s->detour, src, p->src, x ? &x->sent : &original, p->info, s->now);
    }
    packet_free(s, i);
}
