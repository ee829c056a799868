#include "runtime/topo/weigh.h"

#include <stdlib.h>
#include <string.h>

bool weigh_init(struct weigh *w, const struct place *p)
{
    size_t slots = (size_t)p->slots, nodes = (size_t)p->grid.nodes, links = (size_t)grid_links(&p->grid);
    *w = (struct weigh){.place = p};
    w->slot_bytes = calloc(slots, sizeof *w->slot_bytes);
    w->made_from = malloc(slots * sizeof *w->made_from);
    w->at = malloc(slots * sizeof *w->at);
    w->messages = malloc(links * sizeof *w->messages);
    w->over = malloc(links * sizeof *w->over);
    w->in = malloc(nodes * sizeof *w->in);
    w->out = malloc(nodes * sizeof *w->out);
    for (int i = 0; i < WEIGH_SHAPES; i++)
        w->at_launch[i] = -1;
    if (w->made_from)
        memset(w->made_from, -1, slots * sizeof *w->made_from);
    if (w->slot_bytes && w->made_from && w->at && w->messages && w->over && w->in && w->out)
        return true;
    weigh_fini(w);
    return false;
}

void weigh_fini(struct weigh *w)
{
    free(w->slot_bytes);
    free(w->made_from);
    free(w->at);
    free(w->messages);
    free(w->over);
    free(w->in);
    free(w->out);
    *w = (struct weigh){0};
}

/* ---- numbers that do not run over ---- */

/* Product and quotient by hand: no compiler's library is called. */
static void multiply(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low)
{
    uint64_t al = a & UINT32_MAX, ah = a >> 32, bl = b & UINT32_MAX, bh = b >> 32;
    uint64_t middle = (al * bl >> 32) + (ah * bl & UINT32_MAX) + (al * bh & UINT32_MAX);
    *low = a * b;
    *high = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (middle >> 32);
}

uint64_t weigh_part(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t rest, low, part = 0;
    multiply(a, b, &rest, &low);
    if (!rest && c)
        return low / c;
    if (rest >= c)
        return UINT64_MAX;
    for (int bit = 63; bit >= 0; bit--) {
        bool over = rest >> 63; /* then it is more than c, without its highest bit, too */
        rest = rest << 1 | (low >> bit & 1);
        if (over || rest >= c) {
            rest -= c;
            part |= UINT64_C(1) << bit;
        }
    }
    return part;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- messages ---- */

struct count {
    struct weigh *w;
    int32_t most;
    int64_t hops;
};

static void send_message(struct count *c, int32_t from, int32_t to, int32_t times)
{
    struct weigh *w = c->w;
    if (to >= w->place->slots || w->at[from] < 0 || w->at[to] < 0)
        return;
    struct grid_walk walk;
    grid_walk_begin(&walk, &w->place->grid, NULL, w->at[from], w->at[to]);
    for (int32_t link; (link = grid_walk_next(&walk)) >= 0; c->hops += times) {
        w->messages[link] += times;
        c->most = w->messages[link] > c->most ? w->messages[link] : c->most;
    }
}

static void send_star(struct count *c, int32_t slot)
{
    const struct grid *g = &c->w->place->slot_grid;
    for (int d = 0; d < g->ndims; d++) {
        int at = grid_coord(g, slot, d);
        if (at > 0)
            send_message(c, slot, slot - g->stride[d], 1);
        if (at + 1 < g->size[d])
            send_message(c, slot, slot + g->stride[d], 1);
    }
}

static void send_box(struct count *c, int32_t slot)
{
    const struct grid *g = &c->w->place->slot_grid;
    int at[GRID_MAX_DIMS], to[GRID_MAX_DIMS], cells = 1;
    grid_coords(g, slot, at);
    for (int d = 0; d < g->ndims; d++)
        cells *= 3;
    for (int cell = 0; cell < cells; cell++) {
        bool inside = true;
        for (int d = 0, rest = cell; d < g->ndims; d++, rest /= 3) {
            to[d] = at[d] + rest % 3 - 1;
            inside = inside && to[d] >= 0 && to[d] < g->size[d];
        }
        if (inside && grid_node(g, to) != slot)
            send_message(c, slot, grid_node(g, to), 1);
    }
}

static void send_all(struct count *c, int32_t slot)
{
    int32_t slots = c->w->place->slots, others = slots - 1;
    int32_t peers = others < WEIGH_PEERS ? others : WEIGH_PEERS;
    for (int32_t i = 0; i < peers; i++) {
        int32_t first = (int32_t)((int64_t)i * others / peers), end = (int32_t)((int64_t)(i + 1) * others / peers);
        send_message(c, slot, (slot + 1 + first) % slots, end - first);
    }
}

/* One step of all slots, on the map w->at. */
static struct count one_step(struct weigh *w)
{
    struct count c = {.w = w};
    memset(w->messages, 0, (size_t)grid_links(&w->place->grid) * sizeof *w->messages);
    for (int32_t s = 0; s < w->place->slots; s++)
        switch (w->figures.shape) {
        case WEIGH_STAR:
            send_star(&c, s);
            break;
        case WEIGH_BOX:
            send_box(&c, s);
            break;
        case WEIGH_RING:
            send_message(&c, s, (s + 1) % w->place->slots, 1);
            break;
        case WEIGH_ALL:
            send_all(&c, s);
            break;
        case WEIGH_NOTHING:
        case WEIGH_SHAPES:
            break;
        }
    return c;
}

static int32_t at_launch(struct weigh *w)
{
    int32_t *most = &w->at_launch[w->figures.shape];
    if (*most < 0) {
        memcpy(w->at, w->place->home, (size_t)w->place->slots * sizeof *w->at);
        *most = one_step(w).most;
    }
    return *most;
}

/* ---- moves ---- */

static void carry(uint64_t *sum, uint64_t bytes, uint64_t *most)
{
    *sum = plus(*sum, bytes);
    *most = *sum > *most ? *sum : *most;
}

/* The bytes that go over the link, or the end of a node, over which most go. */
static uint64_t most_bytes(struct weigh *w, const struct place_plan *plan)
{
    const struct place *p = w->place;
    uint64_t most = 0;
    memset(w->over, 0, (size_t)grid_links(&p->grid) * sizeof *w->over);
    memset(w->in, 0, (size_t)p->grid.nodes * sizeof *w->in);
    memset(w->out, 0, (size_t)p->grid.nodes * sizeof *w->out);
    for (int32_t i = 0; i < plan->count; i++) {
        const struct place_move *m = &plan->moves[i];
        int32_t from = p->slot_at[m->from] == PLACE_DEAD ? w->made_from[m->slot] : m->from;
        uint64_t bytes = from == m->to ? 0 : w->slot_bytes[m->slot]; /* it may have the copy already */
        carry(&w->in[m->to], bytes, &most);
        if (from < 0)
            continue;
        carry(&w->out[from], bytes, &most);
        struct grid_walk walk;
        grid_walk_begin(&walk, &p->grid, NULL, from, m->to);
        for (int32_t link; (link = grid_walk_next(&walk)) >= 0;)
            carry(&w->over[link], bytes, &most);
    }
    return most;
}

static bool moves_who_lives(const struct weigh *w, const struct place_plan *plan)
{
    for (int32_t i = 0; i < plan->count; i++)
        if (w->place->slot_at[plan->moves[i].from] != PLACE_DEAD)
            return true;
    return false;
}

struct weigh_price weigh_plan(struct weigh *w, const struct place_plan *plan)
{
    const struct place *p = w->place;
    const struct weigh_figures *f = &w->figures;
    int32_t before = at_launch(w);
    for (int32_t s = 0; s < p->slots; s++)
        w->at[s] = p->slot_at[p->node_of[s]] == s ? p->node_of[s] : -1;
    for (int32_t i = 0; i < plan->count; i++)
        w->at[plan->moves[i].slot] = plan->moves[i].to;
    struct count c = one_step(w);
    struct weigh_price price = {.moves = plan->count, .crossing = c.most, .hops = c.hops};
    uint64_t more = c.most > before ? (uint64_t)(c.most - before) : 0;
    price.move_ns = weigh_part(most_bytes(w, plan), 1000000000, f->link_rate);
    if (moves_who_lives(w, plan))
        price.move_ns = plus(price.move_ns, weigh_part(f->begin_us, 1000, 1));
    price.step_ns = weigh_part(weigh_part(more, f->message_bytes, 1), 1000000000, f->link_rate);
    price.lost_ns = weigh_part(weigh_part(f->horizon_ms, f->steps_per_ks, 1), price.step_ns, 1000000);
    price.cost_ns = plus(price.move_ns, price.lost_ns);
    return price;
}

bool weigh_better(const struct weigh_price *a, const struct weigh_price *b)
{
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns;
    if (a->crossing != b->crossing)
        return a->crossing < b->crossing;
    return a->hops != b->hops ? a->hops < b->hops : a->moves < b->moves;
}
