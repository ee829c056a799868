/* Sets of replicas: who is who, whom the run may lose, and what is compared. */
#include "tests/sim/data/replicas.h"

#include <string.h>

#include "runtime/wire/layout.h"
#include "tests/sim/data/check.h"

/* ---- who is who ---- */

/* Natives in the order of sets, or of ranks, or in any; the sets' nodes likewise. Each set has its ranks in blocks. */
void replicas_place(struct setup *s, struct rng *rng)
{
    int per = s->nodes / s->sets, ranks = s->ranks / s->sets, order[RANKS_MAX] = {0};
    bool by_rank = rng_below(rng, 2), any = rng_below(rng, 3) == 0, side_by_side = rng_below(rng, 2);
    for (int i = 0; i < s->ranks; i++)
        order[i] = i;
    for (int i = s->ranks - 1; any && i > 0; i--) {
        int j = (int)rng_below(rng, (uint64_t)i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int set = 0; set < s->sets; set++)
        for (int q = 0; q < ranks; q++) {
            int native = order[by_rank ? q * s->sets + set : set * ranks + q], k = q * per / ranks;
            s->native[set * ranks + q] = native;
            s->rank_node[native] = side_by_side ? k * s->sets + set : set * per + k;
        }
}

bool replicas_init(struct world *w)
{
    struct replicas *s = w->replicas = sim_alloc(sizeof *s);
    return replica_map_init_from(&s->map, w->setup.ranks / w->setup.sets, w->setup.sets, w->setup.native);
}

void replicas_fini(struct world *w)
{
    if (w->replicas)
        replica_map_fini(&w->replicas->map);
}

void replicas_plan(struct world *w)
{
    struct replicas *s = w->replicas;
    struct sched *r = &w->sched;
    struct model *m = w->model;
    s->segments = (int)sched_between(r, 1, REPLICA_SEGMENTS);
    for (int i = 0; i < s->segments; i++) {
        struct replica_segment_plan *g = &s->segment[i];
        *g = (struct replica_segment_plan){.redundancy =
                                               sched_chance(r, 0.7) ? KEEL_REDUNDANCY_NONE : KEEL_REDUNDANCY_SHADOW,
                                           .doubles = sched_chance(r, 0.2) ? 2500 : sched_between(r, 1, 12),
                                           .index = {-1, -1, -1}};
        g->bytes = replica_word_at(s, REPLICA_DOUBLES) + 8 * g->doubles;
    }
    for (int q = 0; q < s->map.ranks; q++)
        s->found[q] = sim_alloc(REPLICA_STEPS * sizeof *s->found[q]);
    s->flip_set = (int)sched_below(r, (uint64_t)w->setup.sets);
    s->flip_rank = (int)sched_below(r, (uint64_t)s->map.ranks);
    s->flip_put = (int)sched_between(r, 1, 6);
    m->stages = w->setup.rounds;
    for (int k = 0; k < m->stages; k++) {
        m->stage[k].chain = sched_chance(r, 0.4);
        if (k + 1 == m->stages || sched_chance(r, 0.3))
            m->stage[k].gate = ++m->gates;
    }
}

/* ---- whom it may lose ---- */

static int set_of(const struct world *w, int rank)
{
    return replica_of(&w->replicas->map, rank).set;
}

bool replicas_is_hit(const struct world *w, int set)
{
    const struct model *m = w->model;
    for (int r = 0; r < w->setup.ranks; r++)
        if (set_of(w, r) == set && (m->dead[w->setup.rank_node[r]] || m->tainted[w->setup.rank_node[r]]))
            return true;
    for (const struct runner *r = w->runners; r; r = r->next)
        if (r->rank >= 0 && r->killed && set_of(w, r->rank) == set)
            return true;
    return !view_set_is_whole(&m->view, set);
}

static bool is_gone(const struct world *w, int native)
{
    int node = w->setup.rank_node[native];
    for (const struct runner *r = w->runners; r; r = r->next)
        if (r->rank == native && r->killed)
            return true;
    return w->model->dead[node] || w->model->tainted[node] || !view_set_is_whole(&w->model->view, set_of(w, native));
}

/* In another set, whose node is neither of these. */
static bool lives_elsewhere(const struct world *w, int native, int a, int b)
{
    struct replica who = replica_of(&w->replicas->map, native);
    for (int s = 0; s < w->setup.sets; s++) {
        int other = replica_native(&w->replicas->map, who.rank, s), node = w->setup.rank_node[other];
        if (s != who.set && node != a && node != b && !is_gone(w, other))
            return true;
    }
    return false;
}

/* Where partners act a rank's replica is enough. */
static bool ranks_live_without(const struct world *w, int a, int b)
{
    for (int r = 0; r < w->setup.ranks; r++)
        if ((w->setup.rank_node[r] == a || w->setup.rank_node[r] == b) && !lives_elsewhere(w, r, a, b))
            return false;
    return true;
}

static bool others_stay(const struct world *w, int set)
{
    for (int s = 0; s < w->setup.sets; s++)
        if (s != set && !replicas_is_hit(w, s))
            return true;
    return false;
}

bool replicas_may_lose_rank(const struct world *w, int rank)
{
    if (w->replicas && w->setup.plain)
        return lives_elsewhere(w, rank, -1, -1);
    return !w->replicas || others_stay(w, set_of(w, rank));
}

bool replicas_may_lose_node(const struct world *w, int node)
{
    if (w->replicas && w->setup.plain)
        return ranks_live_without(w, node, -1);
    for (int r = 0; w->replicas && r < w->setup.ranks; r++)
        if (w->setup.rank_node[r] == node && !others_stay(w, set_of(w, r)))
            return false;
    return true;
}

/* Sets whose ranks are on neither of the nodes. */
bool replicas_may_lose_both(const struct world *w, int a, int b)
{
    bool hit[REPLICAS_MAX] = {false}, any = !w->replicas;
    if (w->replicas && w->setup.plain)
        return ranks_live_without(w, a, b);
    for (int r = 0; w->replicas && r < w->setup.ranks; r++)
        if (w->setup.rank_node[r] == a || w->setup.rank_node[r] == b)
            hit[set_of(w, r)] = true;
    for (int s = 0; s < w->setup.sets; s++)
        any = any || (!hit[s] && !replicas_is_hit(w, s));
    return any;
}

/* Whom nobody can replace may have died while segments were allocated, and all sets are retired by that. */
void replicas_view(struct world *w)
{
    const struct view *v = &w->model->view;
    if (!w->replicas || !w->setup.plain)
        return;
    for (int r = 0; r < v->ranks; r++)
        w->replicas->early |= v->rank[r].state == RANK_DEAD && w->replicas->begun < w->setup.ranks;
    if (!v->partners && !w->replicas->early)
        world_fail(w, "a set is to be retired whose members can all be replaced");
    w->hopeless = w->hopeless || (v->stopped && v->code);
}

static void retired(void *arg, uint64_t unused)
{
    (void)unused;
    runner_kill(arg, 9);
}

void replicas_committed(struct node *n)
{
    struct world *w = n->w;
    for (struct runner *r = w->runners; w->replicas && r; r = r->next)
        if (r->node == n && r->state == RUNNER_RUNS && r->rank >= 0 &&
            !view_set_is_whole(&n->agent.view, set_of(w, r->rank)))
            sched_at(&w->sched, w->sched.now + sched_below(&w->sched, 300 * US), retired, r, 0);
}

/* ---- what atomics find ---- */

bool replicas_act(const struct world *w)
{
    return w->setup.on_death == DEATH_PARTNER;
}

static struct replica_found *found_of(const struct replica_program *q)
{
    return &q->all->found[q->rank][q->steps % REPLICA_STEPS];
}

struct history *replicas_history(const struct replica_program *q, int segment, int target, int word)
{
    return &q->all->history[replicas_act(q->p.w) ? 0 : q->set][segment][target][word];
}

/* Sets have one order, so an atomic has its place between the first call and the first return. */
size_t replicas_call(struct replica_program *q, struct history *all, const struct history_op *op)
{
    struct replica_found *f = found_of(q);
    if (!replicas_act(q->p.w))
        return history_call(all, op);
    if (!f->place)
        f->place = 1 + history_call(all, op);
    return f->place - 1;
}

void replicas_return(const struct replica_program *q, struct history *all, size_t at, int64_t result)
{
    struct replica_found *f = found_of(q);
    if (!f->told)
        history_return(all, at, result, q->p.w->sched.now);
    f->told = replicas_act(q->p.w);
}

void replicas_found(struct world *w, const struct replica_program *q, int64_t value)
{
    struct replica_found *f = found_of(q);
    if (!f->is) {
        f->is = true;
        f->set = q->set;
        f->value = value;
    } else if (f->value != value)
        world_fail(w, "rank %d of set %d: the atomic of step %d has found %lld, in set %d %lld", q->rank, q->set,
                   q->steps, (long long)value, f->set, (long long)f->value);
}

/* ---- bits that flip ---- */

bool replicas_has_flipped(const struct world *w, int rank)
{
    const struct replicas *s = w->replicas;
    return s->flipped && rank == replica_native(&s->map, s->flip_rank, s->flip_set);
}

void replicas_told(struct runner *r, const char *text)
{
    struct world *w = r->w;
    world_say(w, "rank %d says: %s", r->rank, text);
    if (!w->replicas || strncmp(text, "rank ", 5) != 0)
        return;
    if (!w->replicas->flipped)
        world_fail(w, "nothing has flipped, and %s", text);
    w->replicas->told = true;
}

void replicas_check_told(struct world *w, const char *when)
{
    const struct replicas *s = w->replicas;
    if (s && s->flipped && !s->told && !replicas_is_hit(w, s->flip_set) && others_stay(w, s->flip_set))
        world_fail(w, "%s: a bit has flipped, and nobody has told it", when);
}

static int copies_of(const struct world *w, int segment, int rank, int set, const uint8_t *part[COPIES_MAX]);

void replicas_flip(const struct replica_program *q, int segment, int target, size_t at)
{
    const uint8_t *part[COPIES_MAX];
    struct world *w = q->p.w;
    for (int n = copies_of(w, segment, target, q->set, part); n > 0; n--)
        ((uint8_t *)part[n - 1])[at] ^= 1u << sched_below(&w->sched, 8);
    world_say(w, "a bit flips: set %d, segment %d, byte %zu of rank %d", q->set, segment, at, target);
}

/* ---- logs ---- */

/* The part that begins on the node of that rank, in that set; NULL: it is not there any more. */
static const struct ordered_part *part_of(const struct world *w, int rank, int set, unsigned class)
{
    int native = replica_native(&w->replicas->map, rank, set);
    const struct node *n = &w->node[w->setup.rank_node[native]];
    if (!view_set_is_whole(&w->model->view, set) || !w->model->view.alive[w->setup.rank_node[native]] || !n->page ||
        n->dead || !n->agent.ordering.map)
        return NULL;
    return n->agent.ordering.part[class].in ? &n->agent.ordering.part[class] : NULL;
}

static const struct order_entry *entry_of(const struct order *o, uint64_t number)
{
    return &o->log[number & (o->room - 1)].entry;
}

/* a is before b in the chain. */
static void compare(struct world *w, const char *when, int rank, int a, int b, unsigned class)
{
    const struct ordered_part *x = part_of(w, rank, a, class), *y = part_of(w, rank, b, class);
    if (!x || !y)
        return;
    const struct order *p = &x->order, *q = &y->order;
    if (p->known < q->known)
        world_fail(w, "%s: set %d knows %llu entries of the part of rank %d, set %d behind it %llu", when, a,
                   (unsigned long long)p->known, rank, b, (unsigned long long)q->known);
    if (p->answered > q->known)
        world_fail(w, "%s: set %d has answered %llu operations on the part of rank %d, and set %d knows of %llu", when,
                   a, (unsigned long long)p->answered, rank, b, (unsigned long long)q->known);
    uint64_t n = 1 + (p->answered > q->answered ? p->answered : q->answered);
    for (; n <= p->known && n <= q->known && !w->failed; n++, w->replicas->orders++)
        if (memcmp(entry_of(p, n), entry_of(q, n), sizeof(struct order_entry)) != 0)
            world_fail(w, "%s: entry %llu of the part of rank %d is another one in set %d than in set %d", when,
                       (unsigned long long)n, rank, a, b);
}

static bool is_first(const struct world *w, int rank)
{
    const struct replica_map *m = &w->replicas->map;
    return rank == 0 ||
           w->setup.rank_node[replica_native(m, rank, 0)] != w->setup.rank_node[replica_native(m, rank - 1, 0)];
}

void replicas_check(struct world *w, const char *when)
{
    if (!w->replicas)
        return;
    for (int rank = 0; rank < w->replicas->map.ranks && !w->failed; rank++)
        for (unsigned class = 0; is_first(w, rank) && class < CLASSES; class ++)
            for (int a = 0; a < w->setup.sets; a++)
                for (int b = a + 1; b < w->setup.sets; b++)
                    compare(w, when, rank, a, b, class);
    for (int i = 0; i < w->members && !w->failed; i++)
        if (w->node[i].page && w->node[i].agent.ordering.said)
            world_fail(w, "%s: node %d has found sets to differ", when, i);
}

/* ---- memory ---- */

/* In that set, or another one in which it lives: replicas have done the same at a quiet moment.
 * NULL: it has ended. */
static const struct replica_program *program_of(const struct world *w, int rank, int set)
{
    const struct runner *r = NULL;
    for (int i = 0; !r && i < w->setup.sets; i++) {
        int s = (set + i) % w->setup.sets;
        bool lives = view_rank_lives(&w->model->view, rank) >> s & 1;
        r = lives ? world_rank(w, replica_native(&w->replicas->map, rank, s)) : NULL;
    }
    return r ? (const struct replica_program *)(const void *)r->program : NULL;
}

/* Whole copies of the rank's part in that set. */
static int copies_of(const struct world *w, int segment, int rank, int set, const uint8_t *part[COPIES_MAX])
{
    const struct replica_segment_plan *g = &w->replicas->segment[segment];
    int native = replica_native(&w->replicas->map, rank, set), slot = w->setup.rank_node[native], n = 0;
    const struct view_copyset *copyset = &w->model->view.copyset[copyset_of(slot, (unsigned)g->redundancy)];
    size_t at = (size_t)w->model->view.rank[native].index * layout_stride(g->bytes);
    for (int i = 0; i < copyset->copies; i++) {
        int node = copyset->copy[i].node;
        const struct store_copy *c =
            w->node[node].dead ? NULL : store_copy(&w->node[node].agent.store, (uint32_t)g->index[set], slot);
        if (copyset->copy[i].whole && c && c->base)
            part[n++] = c->base + at;
    }
    return n;
}

static void expect_word(struct world *w, const uint8_t *part, int segment, int rank, int set, int word, int64_t is,
                        const char *what)
{
    int64_t found;
    memcpy(&found, part + replica_word_at(w->replicas, word), sizeof found);
    if (found != is)
        world_fail(w, "quiet: %s of rank %d of set %d, segment %d, are %lld, not %lld", what, rank, set, segment,
                   (long long)found, (long long)is);
}

/* Its bit has flipped when nobody was left to compare with. */
static bool is_alone_with_it(const struct world *w, int set)
{
    const struct replicas *s = w->replicas;
    return s->flipped && !s->told && s->flip_set == set && !others_stay(w, set);
}

/* What all ranks of the set have put and added there. */
static void expect_sent(struct world *w, const uint8_t *part, int segment, int rank, int set)
{
    int64_t added = 0, signalled = 0, chained = 0, locks = 0;
    for (int from = 0; from < w->replicas->map.ranks && !w->failed; from++) {
        const struct replica_program *q = program_of(w, from, set);
        if (!q)
            return;
        if (memcmp(part + replica_own_at(from), q->own[segment][rank], REPLICA_OWN) != 0 && !is_alone_with_it(w, set))
            world_fail(w, "quiet: what rank %d has put to rank %d of set %d, segment %d, is not there", from, rank, set,
                       segment);
        locks += q->locks;
        added += q->added[segment][rank];
        signalled += q->signalled[segment][rank];
        chained += segment == 0 && (from + 1) % w->replicas->map.ranks == rank ? q->chained : 0;
    }
    expect_word(w, part, segment, rank, set, REPLICA_BELL, signalled, "signals");
    expect_word(w, part, segment, rank, set, REPLICA_CHAIN, chained, "signals of the rank before");
    expect_word(w, part, segment, rank, set, REPLICA_NUMBER, added, "accumulates");
    expect_word(w, part, segment, rank, set, REPLICA_LOCKED, segment == 0 && rank == 0 ? locks : 0, "turns");
}

static void same_in_all(struct world *w, int segment, int rank)
{
    const struct replica_segment_plan *g = &w->replicas->segment[segment];
    const uint8_t *first = NULL, *part[COPIES_MAX];
    int of = -1;
    for (int set = 0; set < w->setup.sets && !w->failed; set++) {
        if (!(view_rank_lives(&w->model->view, rank) >> set & 1) || g->index[set] < 0)
            continue;
        int n = copies_of(w, segment, rank, set, part);
        if (n == 0)
            world_fail(w, "quiet: no copy of rank %d of set %d, segment %d", rank, set, segment);
        for (int i = 0; i < n && !w->failed; i++) {
            of = first ? of : set;
            first = first ? first : part[i];
            for (size_t at = 0; at < g->bytes && !w->failed; at++)
                if (part[i][at] != first[at])
                    world_fail(w, "quiet: byte %zu of rank %d, segment %d, is %02x in set %d and %02x in set %d", at,
                               rank, segment, part[i][at], set, first[at], of);
            expect_sent(w, part[i], segment, rank, set);
        }
    }
}

/* Nobody waits, and each log is at its end. */
static void nothing_waits(struct world *w, int rank, unsigned class)
{
    for (int set = 0; set < w->setup.sets && !w->failed; set++) {
        const struct ordered_part *p = part_of(w, rank, set, class);
        if (p && (p->waiting || p->order.helds || p->order.executed != p->order.known ||
                  p->order.answered != p->order.known))
            world_fail(w, "quiet: of %llu operations on the part of rank %d set %d has executed %llu and answered %llu",
                       (unsigned long long)p->order.known, rank, set, (unsigned long long)p->order.executed,
                       (unsigned long long)p->order.answered);
    }
}

void replicas_check_quiet(struct world *w)
{
    if (!w->replicas)
        return;
    replicas_check_told(w, "quiet");
    replicas_check(w, "quiet");
    for (int rank = 0; rank < w->replicas->map.ranks; rank++) {
        for (unsigned class = 0; is_first(w, rank) && class < CLASSES; class ++)
            nothing_waits(w, rank, class);
        for (int segment = 0; segment < w->replicas->segments; segment++)
            same_in_all(w, segment, rank);
    }
}

static void check_word(struct world *w, int set, int segment, int rank, int word)
{
    struct history *h = &w->replicas->history[replicas_act(w) ? 0 : set][segment][rank][word];
    const uint8_t *part[COPIES_MAX];
    if (h->n == 0 || copies_of(w, segment, rank, set, part) == 0)
        return;
    size_t at = history_call(h, &(struct history_op){.kind = HISTORY_GET, .called = w->sched.now});
    int64_t value;
    memcpy(&value, part[0] + replica_word_at(w->replicas, word), sizeof value);
    history_return(h, at, value, w->sched.now + 1);
    if (history_check(h, 0) == HISTORY_BROKEN)
        world_fail(w, "the history of word %d of rank %d of set %d, segment %d, is not linearizable", word, rank, set,
                   segment);
}

void replicas_check_end(struct world *w)
{
    for (int set = 0; w->replicas && set < w->setup.sets; set++)
        for (int segment = 0; view_set_is_whole(&w->model->view, set) && segment < w->replicas->segments; segment++)
            for (int rank = 0; rank < w->replicas->map.ranks; rank++)
                for (int word = 0;
                     view_rank_lives(&w->model->view, rank) >> set & 1 && word < REPLICA_WORDS && !w->failed; word++)
                    check_word(w, set, segment, rank, word);
}
