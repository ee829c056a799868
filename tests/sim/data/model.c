/* The model's book-keeping: what was asked for, what was answered, who died. model_check.c looks at the copies. */
#include "tests/sim/data/model.h"
#include "tests/sim/data/replicas.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/wire/arith.h"
#include "tests/sim/data/check.h"
#include "tests/sim/data/returns.h"
#include "tests/sim/data/slides.h"

static struct heap model_heap;

static void doubt(struct model *m, int rank, uint32_t incarnation);

bool model_init(struct world *w)
{
    struct model *m = w->model = sim_alloc(sizeof *m);
    const struct setup *s = &w->setup;
    struct heap *outer = heap_enter(&model_heap);
    const struct copy_rule copies = setup_copies(s);
    m->view_made = view_init(&m->view, s->policy, s->nodes, s->spares, s->joiners, s->ranks, s->rank_node, &copies);
    m->view_made = m->view_made && slides_init(w);
    view_replicate(&m->view, w->replicas ? &w->replicas->map : NULL);
    if (s->on_death == DEATH_PARTNER)
        view_take_partners(&m->view);
    heap_enter(outer);
    m->whole = s->whole;
    if (s->fail_at && s->fail_node >= 0)
        m->tainted[s->fail_node] = true; /* it may end itself: others must be enough */
    m->lost = sim_alloc((size_t)s->nodes * CLASSES * sizeof *m->lost);
    m->losing = sim_alloc((size_t)s->nodes * CLASSES * sizeof *m->losing);
    return m->view_made;
}

void model_fini(struct world *w)
{
    (void)w;
    heap_drop(&model_heap);
}

/* ---- what agents do ---- */

static int copies_left(const struct model *m, const struct view_copyset *copyset)
{
    int left = 0;
    for (int i = 0; i < copyset->copies; i++)
        left += copyset->copy[i].whole && !m->dead[copyset->copy[i].node];
    return left;
}

static void lose(struct model *m, int copyset)
{
    m->lost[copyset] = true;
    m->losing[copyset] = NEVER; /* it does not begin anew yet */
    for (int i = 0; i < m->segments; i++)
        if (m->planned[i].begun && (unsigned)m->planned[i].redundancy == copyset_class(copyset))
            m->planned[i].lost[copyset_slot(copyset)] = true;
}

/* What is allocated after every agent has heard of the loss is there; before that it may be lost with the rest. */
void model_allocates(struct world *w, int segment)
{
    const struct model *m = w->model;
    struct planned *s = &w->model->planned[segment];
    for (int slot = 0; slot < w->setup.nodes && !s->begun; slot++)
        s->lost[slot] = m->losing[copyset_of(slot, (unsigned)s->redundancy)] != 0;
    s->begun = true;
}

/* The last whole copy of a copyset is gone: what it held is excused. */
static void look_for_losses(struct world *w)
{
    struct model *m = w->model;
    for (int g = 0; g < w->setup.nodes * CLASSES; g++) {
        const struct view_copyset *copyset = &m->view.copyset[g];
        if (copies_left(m, copyset) == 0) {
            if (m->losing[g] != NEVER)
                world_say(w, "slot %d, redundancy %u: no whole copy is left", copyset_slot(g), copyset_class(g));
            lose(m, g);
        } else if (m->losing[g] == NEVER) {
            m->losing[g] = m->view.epoch;
        }
    }
}

/* Large puts write one copy after the other: where only the one that is being written is left, its living writer alone
 * makes it whole again. If it dies too, these are two failures, with three copies three. */
static void note_tears(struct world *w, int node)
{
    struct model *m = w->model;
    for (struct region *g = m->regions; g; g = g->next) {
        const struct view_copyset *copyset =
            &m->view.copyset[copyset_of(w->setup.rank_node[g->rank], (unsigned)m->planned[g->segment].redundancy)];
        if (view_copy_at(copyset, node) < 0 || copies_left(m, copyset) > 1)
            continue;
        for (struct pending *p = g->pending; p; p = p->next)
            p->may_tear = p->may_tear || p->len > WIRE_BULK_MAX;
    }
}

/* There is no other copy of it, and no node that has room for one: a put is one remote write, and may be there in
 * part. */
static bool is_single(const struct world *w, const struct region *g)
{
    const struct model *m = w->model;
    return m->view.copyset[copyset_of(w->setup.rank_node[g->rank], (unsigned)m->planned[g->segment].redundancy)]
               .copies == 1;
}

/* One begins while all copies but one are dead, and nobody knows it yet. */
static bool begins_alone(const struct world *w, const struct region *g, size_t len)
{
    const struct model *m = w->model;
    unsigned redundancy = (unsigned)m->planned[g->segment].redundancy;
    return len > WIRE_BULK_MAX &&
           copies_left(m, &m->view.copyset[copyset_of(w->setup.rank_node[g->rank], redundancy)]) == 1;
}

static void note_singles(struct world *w)
{
    for (struct region *g = w->model->regions; g; g = g->next)
        for (struct pending *p = is_single(w, g) ? g->pending : NULL; p; p = p->next)
            p->may_tear = true;
}

void model_commit(struct world *w, struct node *n, const struct command *c)
{
    struct model *m = w->model;
    if (c->epoch <= m->view.epoch)
        return;
    if (c->epoch != m->view.epoch + 1) {
        world_fail(w, "node %d commits epoch %llu, the last one was %llu", n->id, (unsigned long long)c->epoch,
                   (unsigned long long)m->view.epoch);
        return;
    }
    for (int i = 0; i < c->n; i++) {
        const struct view_event *e = &c->event[i];
        if (e->type != VIEW_NODE_DEAD)
            continue;
        if (!m->dead[e->a] && !m->tainted[e->a])
            world_fail(w, "node %u was declared dead and is well", e->a);
        m->dead[e->a] = true;
        note_tears(w, (int)e->a);
    }
    look_for_losses(w);
    m->commits++;
    struct heap *outer = heap_enter(&model_heap);
    uint32_t before[RANKS_MAX] = {0};
    for (int r = 0; r < w->setup.ranks; r++)
        before[r] = m->view.rank[r].incarnation;
    view_apply(&m->view, c->epoch, c->event, c->n);
    slides_committed(w, c);
    replicas_view(w);
    for (int r = 0; r < w->setup.ranks; r++)
        if (model_is_zombie(w, r, before[r])) {
            doubt(m, r, before[r]);
            for (struct region *g = m->regions; g; g = g->next)
                for (struct pending *p = g->pending; p; p = p->next)
                    p->known = p->known || (p->rank == r && p->incarnation == before[r]);
        }
    heap_enter(outer);
    note_singles(w);
    look_for_losses(w);
}

void model_settled(struct world *w, struct node *n, uint64_t epoch)
{
    slides_settled(w, n);
    returns_settled(w, n);
    for (int g = 0; g < w->setup.nodes * CLASSES; g++)
        if (w->model->losing[g] <= epoch)
            w->model->losing[g] = 0;
    model_check(w, "settled");
}

void model_event(struct world *w, struct node *n, const char *name)
{
    if (strcmp(name, "redundancy_restored") == 0) {
        w->restored_said++;
        model_check(w, "restored");
        model_check_restored(w, n);
    } else if (strcmp(name, "redundancy_reduced") == 0) {
        w->reduced_said++;
    } else if (strcmp(name, "data_lost") == 0) {
        w->lost_said++;
    }
}

void model_agent_ends(struct world *w, struct node *n, const char *why)
{
    const struct model *m = w->model;
    int well = 0;
    for (int i = 0; i < w->members; i++)
        well += !m->dead[i] && !m->tainted[i];
    if (n->halted && 2 * well <= w->members) {
        w->hopeless = true; /* no quorum is left that certainly works */
        return;
    }
    if (w->setup.scant && strstr(why, "all ranks have")) /* the rank there that would have refused it is dead */
        return;
    if (!m->tainted[n->id] && !m->dead[n->id] && n->process.heap.fail_at == 0)
        world_fail(w, "node %d ends itself and is well: %s", n->id, why);
}

void model_over(struct world *w, struct node *n)
{
    world_say(w, "node %d: the job is over, code %d", n->id, n->agent.view.code);
}

void model_node_dies(struct world *w, struct node *n)
{
    struct model *m = w->model;
    m->dead[n->id] = true;
    m->tainted[n->id] = true;
    note_tears(w, n->id);
    look_for_losses(w);
    model_check(w, "a node died");
}

/* ---- what ranks do ---- */

bool model_is_lost(const struct world *w, int segment, int rank)
{
    return w->model->planned[segment].lost[w->setup.rank_node[rank]];
}

/* Puts and accumulates to lost unreplicated parts are ignored; what returns data says that they are lost. */
void model_status(struct world *w, struct runner *r, int segment, int rank, keel_status status, const char *call)
{
    if (status == KEEL_OK || status == KEEL_ERR_FENCED || status == KEEL_ERR_AGENT_GONE)
        return;
    if (status == KEEL_ERR_TIMEOUT && w->setup.timeout_ns < SEC)
        return;
    if (status == KEEL_ERR_DATA_LOST && model_is_lost(w, segment, rank))
        return;
    if (status == KEEL_ERR_NOMEM && w->setup.fail_at)
        return;
    world_fail(w, "rank %d.%u: %s to rank %d's part of segment %d says %s", r->rank, r->incarnation, call, rank,
               segment, keel_status_name(status));
}

void model_changed(struct world *w, struct region *g, size_t offset, size_t len)
{
    g->changes++;
    for (size_t b = offset / LOOK_BLOCK; len && b <= (offset + len - 1) / LOOK_BLOCK; b++)
        g->changed[b] = w->model->checks + 1;
    if (len)
        g->changed[look_blocks(g->len)] = w->model->checks + 1;
}

struct pending *model_put(struct world *w, struct runner *r, struct region *region, size_t offset, const void *src,
                          size_t len)
{
    struct pending *p = sim_alloc(sizeof *p + len);
    *p = (struct pending){.region = region,
                          .offset = offset,
                          .len = len,
                          .rank = r->rank,
                          .incarnation = r->incarnation,
                          .may_tear = is_single(w, region) || begins_alone(w, region, len)};
    memcpy(p->bytes, src, len);
    struct pending **link = &region->pending;
    while (*link)
        link = &(*link)->next;
    *link = p;
    model_changed(w, region, offset, len);
    world_trace(w, "rank %d: put %zu+%zu to rank %d, segment %d, region of %d", r->rank, offset, len, region->rank,
                region->segment, region->writer);
    return p;
}

/* It is over. Not freed: its writer may be a zombie that has not heard of that. */
static void pending_drop(struct pending *p)
{
    struct pending **link = &p->region->pending;
    while (*link && *link != p)
        link = &(*link)->next;
    *link = p->next;
    p->region = NULL;
}

/* Has the process been declared dead? What it is told then is of no account. */
bool model_is_zombie(const struct world *w, int rank, uint32_t incarnation)
{
    const struct view_rank *k = &w->model->view.rank[rank];
    return k->incarnation != incarnation || k->state == RANK_DEAD;
}

void model_enters(struct runner *r)
{
    r->entered = r->client.collectives + 1;
    r->seen = atomic_load(&r->client.page->epoch);
}

void model_met(struct world *w, struct runner *r, uint64_t in)
{
    uint64_t n = r->client.collectives;
    r->met_seen = in > r->seen ? in - 1 : r->seen;
    struct met *met = &w->model->met[n];
    if (model_is_zombie(w, r->rank, r->incarnation))
        return;
    for (const struct runner *o = w->runners; o; o = o->next)
        if (o->state == RUNNER_RUNS && o->joined && !o->leaving && o->process.state != PROCESS_DEAD && o->entered < n &&
            n > o->met_at && !model_is_zombie(w, o->rank, o->incarnation))
            world_fail(w, "rank %d.%u is through collective %llu, which rank %d.%u has not begun", r->rank,
                       r->incarnation, (unsigned long long)n, o->rank, o->incarnation);
    if (!in)
        return;
    const struct view_rank *told = &w->model->view.rank[met->rank];
    bool lives = told->state == RANK_RUNNING && told->incarnation == met->incarnation && !told->left;
    if (met->in && met->in != in && lives)
        world_fail(w, "rank %d.%u has ended barrier %llu in view %llu, rank %d in view %llu", r->rank, r->incarnation,
                   (unsigned long long)n, (unsigned long long)in - 1, met->rank, (unsigned long long)met->in - 1);
    *met = (struct met){in, r->rank, r->incarnation};
}

/* A completed put covers what earlier puts in doubt may have left. */
static void hide(struct pending *p, size_t from, size_t to)
{
    size_t a = p->offset > from ? p->offset : from, b = p->offset + p->len < to ? p->offset + p->len : to;
    if (a >= b)
        return;
    if (!p->hidden)
        p->hidden = sim_alloc(p->len);
    memset(p->hidden + (a - p->offset), 1, b - a);
}

void model_decided(struct region *g, size_t offset, size_t len)
{
    for (struct pending *p = g->pending; p; p = p->next)
        if (p->plain || p->state == PENDING_DOUBT)
            hide(p, offset, offset + len);
}

/* A plain store is what a flush brings, unless something lies over it in the copy: what began behind it, and stores
 * within updates that have not ended. */
static bool is_covered(const struct pending *p, size_t i)
{
    size_t at = p->offset + i;
    if (p->hidden && p->hidden[i])
        return true;
    for (const struct pending *q = p->next; q; q = q->next)
        if (q->told && at >= q->offset && at < q->offset + q->len)
            return true;
    return false;
}

void model_put_done(struct world *w, struct pending *p, keel_status status)
{
    struct region *region = p->region;
    if (!region)
        return;
    world_trace(w, "rank %d: put %zu+%zu to rank %d, segment %d done: %s", p->rank, p->offset, p->len, region->rank,
                region->segment, keel_status_name(status));
    model_changed(w, region, p->offset, p->len);
    if (status == KEEL_ERR_NOMEM) { /* nothing was done */
        pending_drop(p);
        return;
    }
    if (status != KEEL_OK || model_is_zombie(w, p->rank, p->incarnation)) {
        p->state = PENDING_DOUBT;
        return;
    }
    for (size_t i = 0; i < p->len; i++)
        if (!p->plain || !is_covered(p, i))
            region->base[p->offset + i] = p->bytes[i];
    /* Others there are in doubt, or of an earlier incarnation whose end is not known yet, or plain stores; what
     * began behind a plain store lies over it. */
    for (struct pending *q = region->pending; q && !(p->plain && q == p); q = q->next)
        if (q != p)
            hide(q, p->offset, p->offset + p->len);
    pending_drop(p);
}

void model_store(struct world *w, struct runner *r, struct region *region, size_t offset, const void *src, size_t len)
{
    model_put(w, r, region, offset, src, len)->plain = true;
}

/* The last of what is not complete; what was stored later covers what was stored before. */
static struct pending *last_store(const struct region *g, const struct runner *r)
{
    struct pending *last = NULL;
    for (struct pending *p = g->pending; p; p = p->next)
        if (p->plain && !p->told && p->state == PENDING_RUNS && p->rank == r->rank && p->incarnation == r->incarnation)
            last = p;
    return last;
}

void model_flushed(struct world *w, struct runner *r, int segment)
{
    for (struct region *g = w->model->regions; g; g = g->next)
        for (struct pending *p; g->segment == segment && (p = last_store(g, r));)
            model_put_done(w, p, KEEL_OK);
}

void model_told(struct world *w, struct runner *r, struct region *region, size_t offset, const void *src, size_t len)
{
    struct pending *p = model_put(w, r, region, offset, src, len);
    p->plain = p->told = true;
}

void model_updated(const struct runner *r, struct region *region, size_t offset, size_t len)
{
    for (struct pending *p = region->pending, *next; p; p = next) {
        next = p->next;
        if (p->told && p->rank == r->rank && p->incarnation == r->incarnation && p->offset >= offset &&
            p->offset + p->len <= offset + len)
            pending_drop(p);
    }
}

bool model_is_plain(const struct region *g, size_t offset, size_t len)
{
    for (const struct pending *p = g->pending; p; p = p->next)
        if (p->plain && p->offset < offset + len && offset < p->offset + p->len)
            return true;
    return false;
}

void sum_write(keel_type type, uint8_t *at, double value)
{
    int32_t narrow = (int32_t)value;
    int64_t wide = (int64_t)value;
    float single = (float)value;
    double complex_[2] = {value, 0};
    const void *from = type == KEEL_INT32   ? (void *)&narrow
                       : type == KEEL_INT64 ? (void *)&wide
                       : type == KEEL_FLOAT ? (void *)&single
                                            : (void *)complex_;
    memcpy(at, from, arith_size(type));
}

/* So much is complete. */
void sum_done(struct world *w, struct sum *s, size_t i, double value)
{
    size_t at = i * arith_size(s->type);
    s->done[i] = value;
    sum_write(s->type, s->expected + at, value);
    s->changed[at / LOOK_BLOCK] = s->changed[look_blocks(s->n * arith_size(s->type))] = w->model->checks + 1;
}

struct adding *model_add(struct world *w, struct runner *r, struct sum *s, size_t first, size_t n, double value)
{
    struct adding *a = sim_alloc(sizeof *a);
    *a = (struct adding){.next = s->adding,
                         .sum = s,
                         .first = first,
                         .n = n,
                         .value = value,
                         .rank = r->rank,
                         .incarnation = r->incarnation};
    s->adding = a;
    (void)w;
    return a;
}

void model_add_done(struct world *w, struct adding *a, keel_status status)
{
    if (!a->sum)
        return;
    bool none = status == KEEL_ERR_NOMEM; /* nothing was done */
    if (none)
        for (size_t i = 0; i < a->n; i++) /* nor may it be there */
            sum_done(w, a->sum, a->first + i, a->sum->done[a->first + i]);
    if (!none && (status != KEEL_OK || model_is_zombie(w, a->rank, a->incarnation))) {
        a->doubt = true;
        a->by_timeout = a->by_timeout || status == KEEL_ERR_TIMEOUT;
        return;
    }
    for (size_t i = 0; i < a->n && !none; i++)
        sum_done(w, a->sum, a->first + i, a->sum->done[a->first + i] + a->value);
    struct adding **link = &a->sum->adding;
    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    a->sum = NULL;
}

/* What it had begun may have happened, or not. */
static void doubt(struct model *m, int rank, uint32_t incarnation)
{
    for (struct region *g = m->regions; g; g = g->next)
        for (struct pending *p = g->pending; p; p = p->next)
            if (p->state == PENDING_RUNS && p->rank == rank && p->incarnation == incarnation) {
                p->state = PENDING_DOUBT;
                g->changes++;
            }
    for (struct sum *s = m->sums; s; s = s->next)
        for (struct adding *a = s->adding; a; a = a->next)
            if (a->rank == rank && a->incarnation == incarnation) {
                a->doubt = true;
                a->by_timeout = false; /* it is fenced now */
            }
}

void model_rank_ends(struct world *w, struct runner *r, bool killed)
{
    (void)killed;
    if (r->rank >= 0)
        doubt(w->model, r->rank, r->incarnation);
}

void model_got(struct world *w, struct runner *r, struct region *region, size_t offset, const void *got, size_t len,
               const uint8_t *base_before, uint64_t changes_before)
{
    const uint8_t *bytes = got;
    if (model_is_zombie(w, r->rank, r->incarnation) || model_is_lost(w, region->segment, region->rank))
        return;
    /* Nothing happened meanwhile: exactly what is there. Else each byte is one that was or may be there. */
    for (size_t i = 0; i < len; i++) {
        size_t at = offset + i;
        bool ok = bytes[i] == region->base[at] || bytes[i] == base_before[i];
        for (const struct pending *p = region->pending; !ok && p; p = p->next)
            ok = at >= p->offset && at < p->offset + p->len && p->bytes[at - p->offset] == bytes[i];
        if (ok)
            continue;
        if (region->changes > changes_before + 2)
            continue; /* several puts came and went */
        world_fail(
            w, "rank %d.%u: a get of rank %d's part of segment %d, byte %zu of rank %d's region, gave %02x, not %02x",
            r->rank, r->incarnation, region->rank, region->segment, at, region->writer, bytes[i], region->base[at]);
        return;
    }
}
