#include "relay_bed.h"
#include "tests/unit/route/cables.h"

#include <stdlib.h>
#include <string.h>

bool bed_works(const struct bed *b, int32_t link)
{
    return !b->cut[link] && !b->cut[b->f.reverse[link]];
}

bool bed_is_joined(const struct bed *b)
{
    uint8_t seen[ROUTERS_MAX] = {0};
    int32_t queue[ROUTERS_MAX], head = 0, tail = 0;
    int left = 0, first = 0;
    while (b->dead[first])
        first++;
    for (int i = 0; i < b->nodes; i++)
        left += !b->dead[i];
    seen[first] = 1;
    queue[tail++] = first;
    while (head < tail) {
        int32_t r = queue[head++];
        left -= r < b->nodes;
        for (int p = 0; p < b->f.ports; p++) {
            int32_t link = r * b->f.ports + p, to = b->f.neighbor[link];
            if (to < 0 || seen[to] || b->dead[b->owner[to]] || !bed_works(b, link))
                continue;
            seen[to] = 1;
            queue[tail++] = to;
        }
    }
    return left == 0;
}

void bed_flap_for(struct bed *b, double share)
{
    int32_t link = (int32_t)rng_below(&b->rng, (uint64_t)fabric_links(&b->f));
    if (b->f.neighbor[link] < 0 || b->f.firm[link])
        return;
    int32_t back = b->f.reverse[link];
    uint8_t was[2] = {b->cut[link], b->cut[back]};
    bool broken = rng_double(&b->rng) < share;
    b->cut[link] = broken;
    b->cut[back] = broken && rng_below(&b->rng, 2);
    if (!bed_is_joined(b)) {
        b->cut[link] = was[0];
        b->cut[back] = was[1];
    }
}

void bed_flap(struct bed *b)
{
    bed_flap_for(b, b->share);
}

int bed_broken_cables(const struct bed *b)
{
    int n = 0;
    for (int32_t l = 0; l < fabric_links(&b->f); l++)
        n += b->f.neighbor[l] >= 0 && b->f.reverse[l] > l && !bed_works(b, l);
    return n;
}

static void begin(struct bed *b, int nodes, double share, uint64_t seed)
{
    memset(b, 0, sizeof *b);
    b->nodes = nodes;
    b->share = share;
    rng_seed(&b->rng, seed);
}

/* b->f is there. */
static void furnish(struct bed *b)
{
    struct detour_config c = detour_config_plus();
    c.retry_ns = 5 * SILENCE_NS; /* a trial costs a silence */
    c.turns_ns = 20 * SILENCE_NS;
    c.tell_ns = 0;
    c.max_faults = 4096;
    assert_true(b->f.routers <= ROUTERS_MAX);
    for (int r = 0; r < b->f.routers; r++)
        for (int p = 0; p < b->f.ports; p++) {
            int32_t link = r * b->f.ports + p;
            if (r < b->nodes || (b->f.neighbor[link] >= 0 && b->f.firm[link]))
                b->owner[r] = r < b->nodes ? r : b->f.neighbor[link];
        }
    b->cut = calloc((size_t)fabric_links(&b->f), 1);
    assert_non_null(b->cut);
    for (int i = 0; i < b->nodes; i++) {
        assert_true(detour_init(&b->d[i], &b->f, &c));
        detour_source_init(&b->s[i], i);
    }
    for (int i = 0; i < 5 * fabric_cables(&b->f); i++)
        bed_flap(b);
}

void bed_full(struct bed *b, int nodes, int rails, double share, uint64_t seed)
{
    begin(b, nodes, share, seed);
    assert_null(fabric_full(&b->f, nodes, rails));
    furnish(b);
}

void bed_graph(struct bed *b, int nodes, int routers, const struct fabric_edge *edge, int edges, double share,
               uint64_t seed)
{
    begin(b, nodes, share, seed);
    assert_null(fabric_graph(&b->f, routers, nodes, edge, edges));
    furnish(b);
}

void bed_fini(struct bed *b)
{
    for (int i = 0; i < b->nodes; i++) {
        detour_source_fini(&b->s[i]);
        detour_fini(&b->d[i]);
    }
    fabric_fini(&b->f);
    free(b->cut);
    free(b->other);
}

uint64_t bed_clock(const struct bed *b, int node, uint64_t now)
{
    return b->begin_ns[node] + now + (uint64_t)(int64_t)((double)now * b->drift[node]);
}

/* Of what a node has not heard yet, what is due. */
static void hear(struct bed *b, int at, uint64_t now)
{
    for (int node = 0; node < b->nodes; node++) {
        if (!b->hears_ns[at][node] || now < b->hears_ns[at][node])
            continue;
        b->hears_ns[at][node] = 0;
        for (int r = 0; r < b->f.routers; r++)
            if (b->owner[r] == node)
                detour_alive(&b->d[at], r, !b->dead[node]);
    }
}

void bed_view(struct bed *b, int node, bool alive, uint64_t now)
{
    b->dead[node] = !alive;
    for (int at = 0; at < b->nodes; at++) {
        b->hears_ns[at][node] = now + 1 + (b->lag_ns ? rng_below(&b->rng, b->lag_ns) : 0);
        if (!b->lag_ns)
            hear(b, at, now + 1);
    }
}

static void add(struct bed *b, int id, int at, int dest, uint64_t ready)
{
    assert_true(b->n < COPIES);
    b->m[b->n++] = (struct message){.id = id, .at = at, .dest = dest, .ready = ready, .begun = ready};
}

/* Half of the news are old ones said again, and of each something may be made up. */
static void garble(struct bed *b, struct detour_news *news)
{
    static const uint64_t odd[] = {0, 1, 1000000, 255999999, 256000000, 1ull << 40, 1ull << 59, 1ull << 63, UINT64_MAX};
    enum { ODD = sizeof odd / sizeof *odd };
    struct detour_news *kept = &b->old[rng_below(&b->rng, NEWS_OLD)], said = *news;
    if (rng_below(&b->rng, 2) && b->nold >= NEWS_OLD)
        *news = *kept;
    *kept = said;
    b->nold++;
    if (!rng_below(&b->rng, 3))
        news->works = !news->works;
    if (!rng_below(&b->rng, 3))
        news->out_ns = odd[rng_below(&b->rng, ODD)];
    if (!rng_below(&b->rng, 3))
        news->age_ns = odd[rng_below(&b->rng, ODD)];
    if (!rng_below(&b->rng, 3))
        news->known_ns = odd[rng_below(&b->rng, ODD)];
    if (!rng_below(&b->rng, 16))
        news->cable = (int32_t)rng_u64(&b->rng);
}

void bed_tell(struct bed *b, int from, int to, uint64_t now)
{
    struct detour_news news[8];
    int n = detour_recall(&b->d[from], &b->s[from], bed_clock(b, from, now), true, 8, news);
    for (int i = 0; i < n; i++) {
        if (!b->unaware) {
            news[i].age_ns += HOP_NS;
            news[i].known_ns += HOP_NS;
        }
        if (b->lies)
            garble(b, &news[i]);
        detour_told(&b->d[to], &b->s[to], &news[i], bed_clock(b, to, now + HOP_NS));
    }
}

int32_t bed_first_hop(const struct bed *b, int at, const struct detour_path *path, int dest, struct detour_path *hop)
{
    struct detour_walk w;
    int32_t link;
    detour_walk_begin(&w, &b->f, at, path, dest);
    while ((link = detour_walk_next(&w)) >= 0 && b->f.firm[link])
        ;
    assert_true(link >= 0);
    int32_t from = link / b->f.ports, to = b->f.neighbor[link];
    *hop = (struct detour_path){.nvia = 0};
    if (from >= b->nodes)
        hop->via[hop->nvia++] = from;
    if (from >= b->nodes || to >= b->nodes)
        hop->via[hop->nvia++] = to;
    return link;
}

static void arrive(struct bed *b, struct message *m, int at, bool back, uint64_t now)
{
    bool again = m->nheld == NODES_MAX;
    for (int i = 0; i < m->nheld; i++)
        again |= m->held[i] == m->at;
    if (!again)
        m->held[m->nheld++] = m->at;
    assert_true(!back || m->trail[m->ntrail - 1] == at);
    if (back)
        m->ntrail--;
    else
        m->trail[m->ntrail++] = m->at;
    m->at = at;
    m->hops++;
    m->ready = now + HOP_NS;
    if (at != m->dest || b->delivered[m->id])
        return;
    b->delivered[m->id] = true;
    b->arrived++;
    b->hops += m->hops;
    b->starts += m->starts;
    b->longest_ns = now - m->begun > b->longest_ns ? now - m->begun : b->longest_ns;
    /* between two beginnings each other node is entered once and left once */
    if (m->hops > (m->starts + 1) * 2 * (b->nodes - 1))
        fail_msg("message %d made %d hops after %d beginnings", m->id, m->hops, m->starts);
    b->most_hops = m->hops > b->most_hops ? m->hops : b->most_hops;
}

/* Where there is no room left, those of nodes that have passed it on go: it does not come to these again but
 * backwards. */
static void meet(const struct bed *b, struct message *m, int32_t cable)
{
    int n = 0;
    for (int i = 0; i < m->nknown && m->nknown == KNOWN; i++) {
        int32_t link = m->known[i];
        if (b->owner[link / b->f.ports] == m->at || b->owner[b->f.neighbor[link]] == m->at)
            m->known[n++] = link;
    }
    m->nknown = m->nknown == KNOWN ? n : m->nknown;
    assert_true(m->nknown < KNOWN);
    m->known[m->nknown++] = cable;
}

/* One attempt of who holds the message. */
static void attempt(struct bed *b, struct message *m)
{
    uint64_t now = m->ready;
    int here = m->at;
    struct detour *d = &b->d[here];
    struct detour_source *s = &b->s[here];
    struct detour_path path, hop;
    const struct detour_met met = {m->known, m->held, m->trail, m->nknown, m->nheld, m->ntrail};
    enum detour_relayed way = DETOUR_ON;
    if (b->dead[here]) { /* it stands still */
        m->ready = now + SILENCE_NS;
        return;
    }
    hear(b, here, now);
    if (m->nheld || m->nknown || !detour_choose(d, s, m->dest, bed_clock(b, here, now), &b->rng, &path))
        way = detour_relay(d, s, m->dest, &met, bed_clock(b, here, now), &b->rng, &path);
    if (way == DETOUR_NO_WAY) { /* what it has met may work again */
        m->nknown = m->nheld = m->ntrail = 0;
        m->starts++;
        m->ready = now + SILENCE_NS + rng_below(&b->rng, SILENCE_NS);
        return;
    }
    bool back = way == DETOUR_BACK;
    int32_t link = bed_first_hop(b, here, &path, back ? m->trail[m->ntrail - 1] : m->dest, &hop),
            cable = fabric_cable(&b->f, link);
    int next = b->owner[b->f.neighbor[link]];
    b->to_dead += b->dead[next];
    if (bed_works(b, link) && !b->dead[next]) {
        bed_tell(b, here, next, now);
        bed_tell(b, next, here, now + HOP_NS);
        detour_acked(d, s, next, &hop, HOP_NS, bed_clock(b, here, now + 2 * HOP_NS));
        arrive(b, m, next, back, now);
        return;
    }
    b->silences++;
    b->late_silences += now > END_NS / 2;
    detour_silent(d, s, next, &hop, bed_clock(b, here, now + SILENCE_NS));
    meet(b, m, cable);
    m->ready = now + SILENCE_NS;
    if (!b->cut[link] && !b->dead[next]) { /* it came through, but who sent it does not know */
        struct message copy = *m;
        arrive(b, &copy, next, back, now);
        assert_true(b->n < COPIES);
        b->m[b->n++] = copy;
    }
}

/* The one to go on next; -1 when all have arrived. */
static int next_message(struct bed *b)
{
    for (;;) {
        int best = 0;
        for (int i = 1; i < b->n; i++)
            best = b->ready[i] < b->ready[best] ? i : best;
        if (b->ready[best] == UINT64_MAX)
            return -1;
        if (!b->delivered[b->m[best].id])
            return best;
        b->ready[best] = UINT64_MAX;
    }
}

void bed_run(struct bed *b, int messages, int first, uint64_t period_ns, void (*step)(struct bed *b, uint64_t now))
{
    for (int id = 0; id < messages; id++) {
        int ends = b->nodes - first, at = (int)rng_below(&b->rng, (uint64_t)ends);
        int dest = (at + 1 + (int)rng_below(&b->rng, (uint64_t)ends - 1)) % ends;
        add(b, id, first + at, first + dest, END_NS / (uint64_t)messages * (uint64_t)id);
        b->ready[id] = b->m[id].ready;
    }
    uint64_t done = 0;
    for (int i; (i = next_message(b)) >= 0;) {
        for (; period_ns && done + period_ns < b->m[i].ready; done += period_ns)
            step(b, done + period_ns);
        if (b->m[i].ready > 20 * END_NS)
            fail_msg("message %d from %d is still at %d", b->m[i].id, i, b->m[i].at);
        int n = b->n;
        attempt(b, &b->m[i]);
        b->ready[i] = b->m[i].ready;
        for (; n < b->n; n++)
            b->ready[n] = b->m[n].ready;
    }
    assert_int_equal(b->arrived, messages);
}

void bed_check_cost(const struct bed *b, const char *what, int i, double hops, double ms)
{
    double mean = (double)b->hops / b->arrived, longest = (double)b->longest_ns / 1e6;
    if (mean > hops || longest > ms)
        fail_msg("%s, %d: %.2f hops on average, %d at most, %.1f ms at most", what, i, mean, b->most_hops, longest);
}
