/* Rumours: every rumour_ns an endpoint tells a random other one what it knows of broken cables and of who sends to
 * whom. Acknowledgements do that, too, but where everybody has one partner they never leave the pair. A rumour is a
 * packet like any other, behind acknowledgements; who has learnt nothing since its last one sends at every eighth time
 * only, and who hears of it from somebody that knows other faults tells that one all that fits into a packet. */
#include "sim/route/sim_internal.h"

#include <stdlib.h>

static struct rumour *rumour_make(struct sim *s, int32_t p)
{
    if (s->free_rumour == NONE && s->next_rumour == s->cap_rumour) {
        int32_t cap = s->cap_rumour ? 2 * s->cap_rumour : 64;
        struct rumour *more = realloc(s->rumour, (size_t)cap * sizeof *more);
        if (!more) {
            s->failed = true;
            return NULL;
        }
        s->rumour = more;
        s->cap_rumour = cap;
    }
    int32_t i = s->free_rumour;
    if (i != NONE)
        s->free_rumour = s->rumour[i].next_free;
    else
        i = s->next_rumour++;
    s->packet[p].info = (uint32_t)i;
    return &s->rumour[i];
}

void rumour_free(struct sim *s, uint32_t i)
{
    s->rumour[i].next_free = s->free_rumour;
    s->free_rumour = (int32_t)i;
}

/* As many things as fit into the largest packet. */
static int room(const struct sim *s)
{
    uint32_t most = 0;
    for (int i = 0; i < s->c.nsizes; i++)
        most = s->c.size[i] > most ? s->c.size[i] : most;
    uint32_t head = s->c.ack_bytes + RUMOUR_DIGEST;
    return most > head ? (int)((most - head) / RUMOUR_BYTES) : 0;
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static void tell(struct sim *s, int32_t e, int32_t to, int most, bool answer)
{
    int32_t p = packet_make(s, PACKET_RUMOUR, e, to, s->c.ack_bytes + RUMOUR_DIGEST);
    struct rumour *r = p != NONE ? rumour_make(s, p) : NULL;
    if (!r) /* the run has failed */
        return;
    struct detour_source *from = &s->source[e];
    int fit = room(s);
    r->answer = answer;
    r->digest = detour_digest(from);
    r->nflows = detour_recall_flows(&s->detour, from, at_most(fit, RUMOUR_FLOWS), r->flow);
    r->nnews = detour_recall(&s->detour, from, s->now, true, at_most(fit - r->nflows, most), r->news);
    s->packet[p].bytes = (uint16_t)(s->packet[p].bytes + (r->nflows + r->nnews) * RUMOUR_BYTES);
    s->r->rumours++;
    traffic_inject(s, p);
}

void rumour_event(struct sim *s, int32_t e)
{
    if (s->now >= s->c.time_ns)
        return;
    uint32_t faults = s->source[e].faults.version;
    bool due = ++s->teller[e].turn % RUMOUR_EVERY == 0, learnt = faults != s->teller[e].faults || s->teller[e].has_news;
    if (due || learnt) {
        s->teller[e].faults = faults;
        s->teller[e].has_news = false;
        int32_t to = (int32_t)rng_below(&s->rng, (uint64_t)s->f->endpoints - 1);
        tell(s, e, to < e ? to : to + 1, learnt ? RUMOUR_NEWS : RUMOUR_OLD, false);
    }
    sim_at(s, s->now + s->c.rumour_ns, EV_RUMOUR, e);
}

void rumour_start(struct sim *s)
{
    for (int32_t e = 0; s->c.rumour_ns && s->c.ack_bytes && room(s) > 0 && e < s->f->endpoints; e++)
        sim_at(s, rng_below(&s->rng, s->c.rumour_ns), EV_RUMOUR, e);
}

void rumour_heard(struct sim *s, int32_t i)
{
    const struct packet *p = &s->packet[i];
    const struct rumour *r = &s->rumour[p->info];
    int32_t e = p->dst, from = p->src;
    struct detour_source *to = &s->source[e];
    for (int n = 0; n < r->nnews; n++) {
        struct detour_news news = r->news[n];
        news.age_ns += s->now - p->created;
        news.known_ns += s->now - p->created;
        detour_told(&s->detour, to, &news, s->now);
    }
    for (int n = 0; n < r->nflows; n++)
        if (r->flow[n].from != e) {
            bool changed = detour_told_flow(&s->detour, to, &r->flow[n]);
            s->teller[e].has_news |= changed;
        }
    bool quiet = s->source[e].faults.version == s->teller[e].faults;
    if (detour_compare(to, &r->digest) && quiet && !r->answer)
        tell(s, e, from, RUMOUR_NEWS_MAX, true);
}
