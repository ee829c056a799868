/* The checks: agents' memory against the model. */
#include "runtime/protocol/arith.h"
#include "tests/sim/data/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/protocol/layout.h"

const uint8_t *check_copy(const struct world *w, int node, int segment, int slot, size_t *bytes)
{
    const struct planned *s = &w->model->planned[segment];
    if (w->node[node].dead || s->index < 0)
        return NULL;
    const struct store_copy *c = store_copy(&w->node[node].agent.store, (uint32_t)s->index, slot);
    if (!c || !c->base)
        return NULL;
    *bytes = c->bytes;
    return c->base;
}

/* Where a rank's part begins in a copy. */
static size_t part_at(const struct world *w, int segment, int rank)
{
    const size_t *part = w->model->planned[segment].part;
    size_t at = 0;
    for (int before = 0; part && before < rank; before++)
        if (w->setup.rank_node[before] == w->setup.rank_node[rank])
            at += layout_stride(part[before]);
    if (part)
        return at;
    return (size_t)w->model->view.rank[rank].index * layout_stride(w->model->planned[segment].bytes);
}

/* The whole copies of the rank's part that live. */
struct parts {
    int n;
    int node[COPIES_MAX];
    const uint8_t *part[COPIES_MAX];
};

static struct parts parts_of(const struct world *w, int segment, int rank)
{
    struct parts p = {0};
    const struct model *m = w->model;
    const struct planned *s = &m->planned[segment];
    int slot = w->setup.rank_node[rank], g = group_of(slot, (unsigned)s->redundancy);
    if (s->index < 0 || s->freed || m->lost[g] || (s->part && !s->part[rank]))
        return p;
    const struct view_group *group = &m->view.group[g];
    for (int i = 0; i < group->copies; i++) {
        size_t bytes;
        int node = group->copy[i].node;
        const uint8_t *copy =
            group->copy[i].whole && !m->dead[node] ? check_copy(w, node, segment, slot, &bytes) : NULL;
        if (!copy)
            continue;
        p.node[p.n] = node;
        p.part[p.n++] = copy + part_at(w, segment, rank);
    }
    return p;
}

/* ---- regions ---- */

enum { WORD = 8, OVERLAPS_MAX = 3 };

static void overlay(uint8_t *value, const struct pending *p, size_t word, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t at = word + i;
        if (at >= p->offset && at < p->offset + p->len && !(p->hidden && p->hidden[at - p->offset]))
            value[i] = p->bytes[at - p->offset];
    }
}

/* Is `got` the base with some of the puts over it, in any order? */
static bool reachable(const uint8_t *got, const uint8_t *value, const struct pending **list, int n, size_t word,
                      size_t len)
{
    if (memcmp(got, value, len) == 0)
        return true;
    for (int i = 0; i < n; i++) {
        uint8_t next[WORD];
        const struct pending *rest[OVERLAPS_MAX];
        int left = 0;
        memcpy(next, value, len);
        overlay(next, list[i], word, len);
        for (int k = 0; k < n; k++)
            if (k != i)
                rest[left++] = list[k];
        if (reachable(got, next, rest, left, word, len))
            return true;
    }
    return false;
}

enum word_verdict { WORD_OK, WORD_TORN, WORD_WRONG };

static enum word_verdict check_word(const struct region *g, const uint8_t *part, size_t word, size_t len)
{
    const struct pending *list[OVERLAPS_MAX];
    int n = 0;
    const uint8_t *got = part + g->offset + word;
    if (memcmp(got, g->base + word, len) == 0)
        return WORD_OK;
    for (const struct pending *p = g->pending; p; p = p->next) {
        if (p->offset >= word + len || word >= p->offset + p->len)
            continue;
        if (n == OVERLAPS_MAX)
            return WORD_OK; /* too many to tell */
        list[n++] = p;
    }
    if (n == 0)
        return WORD_WRONG;
    return reachable(got, g->base + word, list, n, word, len) ? WORD_OK : WORD_TORN;
}

/* Is every byte of the word that of the base or of a put that may be there? */
static bool bytes_possible(const struct region *g, const uint8_t *part, size_t word, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t got = part[g->offset + word + i];
        bool ok = got == g->base[word + i];
        for (const struct pending *p = g->pending; !ok && p; p = p->next) {
            uint8_t value[WORD];
            memcpy(value, g->base + word, len);
            overlay(value, p, word, len);
            ok = value[i] == got;
        }
        if (!ok)
            return false;
    }
    return true;
}

/* Seen by a strong get and newer than what was known to be complete: from now on nothing less may be there. */
void model_got_strong(struct world *w, struct runner *r, struct region *g, size_t offset, const void *got, size_t len,
                      const uint8_t *base_before)
{
    if (model_is_zombie(w, r->rank, r->incarnation) || model_is_lost(w, g->segment, g->rank))
        return;
    for (size_t word = (offset + WORD - 1) / WORD * WORD; word + WORD <= offset + len; word += WORD) {
        const uint8_t *bytes = (const uint8_t *)got + (word - offset);
        const struct pending *list[OVERLAPS_MAX];
        int n = 0;
        if (memcmp(bytes, g->base + word, WORD) == 0 || memcmp(base_before + word, g->base + word, WORD) != 0)
            continue;
        for (const struct pending *p = g->pending; p; p = p->next) {
            if (p->offset >= word + WORD || word >= p->offset + p->len)
                continue;
            if (n == OVERLAPS_MAX)
                break; /* too many to tell */
            list[n++] = p;
        }
        if (n == OVERLAPS_MAX || !reachable(bytes, g->base + word, list, n, word, WORD))
            continue;
        memcpy(g->base + word, bytes, WORD);
        g->changes++;
    }
}

static bool may_be_torn(const struct region *g, size_t word, size_t len)
{
    for (const struct pending *p = g->pending; p; p = p->next)
        if (p->may_tear && p->offset < word + len && word < p->offset + p->len)
            return true;
    return false;
}

static void hex(char *to, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sprintf(to + 2 * i, "%02x", bytes[i]);
}

static void region_fail(struct world *w, const char *when, const struct region *g, const struct parts *p, size_t word,
                        size_t len, const char *what)
{
    char text[200] = "", bytes[2 * WORD + 1];
    int at = 0;
    for (int i = 0; i < p->n; i++) {
        hex(bytes, p->part[i] + g->offset + word, len);
        at += snprintf(text + at, sizeof text - (size_t)at, " node %d %s", p->node[i], bytes);
    }
    hex(bytes, g->base + word, len);
    int n = 0;
    const struct pending *some = NULL;
    for (const struct pending *q = g->pending; q; q = q->next)
        if (q->offset < word + len && word < q->offset + q->len) {
            some = q;
            n++;
        }
    world_fail(
        w,
        "%s: %s: segment %d (no. %lld), rank %d's part, offset %zu (of slot %zu), written by rank %d:%s, should be %s; "
        "%d puts may be there%s",
        when, what, g->segment, (long long)w->model->planned[g->segment].index, g->rank, g->offset + word,
        part_at(w, g->segment, g->rank) + g->offset + word, g->writer, text, bytes, n,
        !some                         ? ""
        : some->state == PENDING_RUNS ? " (one in progress)"
                                      : " (one in doubt)");
}

/* Looking at every word again is most of the time that a run takes. */
static bool is_as_it_was(const struct region *g, int node, const uint8_t *bytes)
{
    return g->looked[node].changes == g->changes + 1 && memcmp(g->looked[node].bytes, bytes, g->len) == 0;
}

static void note_look(struct region *g, int node, const uint8_t *bytes)
{
    if (!g->looked[node].bytes)
        g->looked[node].bytes = sim_alloc(g->len);
    memcpy(g->looked[node].bytes, bytes, g->len);
    g->looked[node].changes = g->changes + 1;
}

static void check_region(struct world *w, struct region *g, const char *when)
{
    struct parts p = parts_of(w, g->segment, g->rank);
    for (int i = 0; i < p.n && !w->failed; i++) {
        const uint8_t *bytes = p.part[i] + g->offset;
        bool all = true;
        if (memcmp(bytes, g->base, g->len) == 0 || is_as_it_was(g, p.node[i], bytes))
            continue;
        for (size_t word = 0; word < g->len && !w->failed; word += WORD) {
            size_t len = g->len - word < WORD ? g->len - word : WORD;
            enum word_verdict v = check_word(g, p.part[i], word, len);
            all = all && v == WORD_OK;
            if (v == WORD_WRONG || (v == WORD_TORN && !bytes_possible(g, p.part[i], word, len)))
                region_fail(w, when, g, &p, word, len, "a completed put is lost");
            if (v != WORD_TORN || w->model->planned[g->segment].redundancy == KEEL_REDUNDANCY_NONE)
                continue;
            bool good = may_be_torn(g, word, len);
            for (int k = 0; k < p.n; k++)
                good = good || check_word(g, p.part[k], word, len) == WORD_OK;
            if (!good)
                region_fail(w, when, g, &p, word, len, "no copy is whole");
        }
        if (all)
            note_look(g, p.node[i], bytes);
    }
}

/* ---- sums ---- */

enum { ADDINGS_MAX = 10 };

static bool sums_to(double rest, const double *value, int n)
{
    if (rest == 0)
        return true;
    for (int i = 0; i < n; i++)
        if (sums_to(rest - value[i], value + i + 1, n - i - 1))
            return true;
    return false;
}

static bool sum_possible(const struct sum *s, size_t i, double got)
{
    double value[ADDINGS_MAX], all = 0;
    int n = 0;
    bool many = false;
    for (const struct adding *a = s->adding; a; a = a->next) {
        if (i < a->first || i >= a->first + a->n)
            continue;
        all += a->value;
        if (n == ADDINGS_MAX)
            many = true;
        else
            value[n++] = a->value;
    }
    double rest = got - s->done[i];
    return rest >= 0 && rest <= all && (many || sums_to(rest, value, n));
}

double sum_element(const struct sum *s, const uint8_t *part, size_t i)
{
    const uint8_t *at = part + s->offset + i * arith_size(s->type);
    int32_t narrow;
    int64_t wide;
    float single;
    double real;
    switch (s->type) {
    case KEEL_INT32:
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    case KEEL_INT64:
        memcpy(&wide, at, sizeof wide);
        return (double)wide;
    case KEEL_FLOAT:
        memcpy(&single, at, sizeof single);
        return single;
    default:
        memcpy(&real, at, sizeof real);
        return real;
    }
}

static void check_sum(struct world *w, const struct sum *s, const char *when)
{
    struct parts p = parts_of(w, s->segment, s->rank);
    for (int k = 0; k < p.n && !w->failed; k++) {
        for (size_t i = 0; i < s->n && !w->failed; i++) {
            double got = sum_element(s, p.part[k], i);
            if (got != s->done[i] && !sum_possible(s, i, got))
                world_fail(
                    w,
                    "%s: an accumulate is lost or counted twice: segment %d, rank %d's part, element %zu, on node "
                    "%d: %.0f, should be %.0f%s",
                    when, s->segment, s->rank, i, p.node[k], got, s->done[i], s->adding ? " or more" : "");
        }
    }
}

/* ---- tasks ---- */

double task_value(int64_t task, int step)
{
    return (double)(1 + task * 7 + step);
}

static void check_pool(struct world *w, const struct pool *pool, const char *when)
{
    int ranks = w->setup.ranks;
    for (int64_t t = 0; t < pool->tasks && !w->failed; t++)
        for (int step = 0; step < TASK_STEPS && !w->failed; step++) {
            int rank = (int)((t + step) % ranks);
            struct parts p = parts_of(w, pool->segment, rank);
            for (int k = 0; k < p.n && !w->failed; k++) {
                double got;
                memcpy(&got, p.part[k] + pool->offset + 8 * (size_t)(t * TASK_STEPS + step), sizeof got);
                double low = (double)pool->complete * task_value(t, step),
                       high = (double)pool->begun * task_value(t, step);
                if (got != low && got != high)
                    world_fail(
                        w,
                        "%s: task %lld, step %d, on node %d: %.0f; %llu rounds are complete, %llu begun: %.0f or "
                        "%.0f",
                        when, (long long)t, step, p.node[k], got, (unsigned long long)pool->complete,
                        (unsigned long long)pool->begun, low, high);
            }
        }
}

static bool pool_is_excused(const struct world *w, int planned)
{
    for (int rank = 0; rank < w->setup.ranks; rank++)
        if (model_is_lost(w, planned, rank) || model_is_lost(w, w->model->planned[planned].pool.segment, rank))
            return true;
    return false;
}

void model_check(struct world *w, const char *when)
{
    struct model *m = w->model;
    m->checks++;
    for (struct region *g = m->regions; g && !w->failed; g = g->next)
        check_region(w, g, when);
    for (const struct sum *s = m->sums; s && !w->failed; s = s->next)
        check_sum(w, s, when);
    for (int i = 0; i < m->segments && !w->failed; i++)
        if (m->planned[i].is_pool && !pool_is_excused(w, i))
            check_pool(w, &m->planned[i].pool, when);
}

/* ---- quiet moments ---- */

static bool runs_over(const struct region *g, size_t word, size_t len)
{
    for (const struct pending *p = g->pending; p; p = p->next)
        if (p->offset < word + len && word < p->offset + p->len && (p->state == PENDING_RUNS || !p->known))
            return true;
    return false;
}

/* "Restored" was said under this view: every group in use has its copies, and what the dead left is decided. */
void model_check_restored(struct world *w, const struct node *n)
{
    const struct model *m = w->model;
    if (n->agent.view.epoch != m->view.epoch)
        return; /* others know of a later one */
    for (int i = 0; i < m->segments; i++) {
        const struct planned *s = &m->planned[i];
        for (int slot = 0; slot < w->setup.nodes && s->index >= 0 && !s->freed && !w->failed; slot++) {
            int g = group_of(slot, (unsigned)s->redundancy);
            const struct view_group *group = &m->view.group[g];
            if (s->redundancy == KEEL_REDUNDANCY_NONE || m->lost[g])
                continue;
            if (group->copies != (int)s->redundancy + 1)
                world_fail(w, "restored: slot %d of segment %d has %d copies", slot, i, group->copies);
            for (int k = 0; k < group->copies; k++) {
                size_t bytes;
                int node = group->copy[k].node;
                if (!m->dead[node] && s->made && !check_copy(w, node, i, slot, &bytes))
                    world_fail(w, "restored: node %d has no copy of slot %d of segment %d", node, slot, i);
            }
        }
    }
    for (const struct region *g = m->regions; g && !w->failed; g = g->next) {
        struct parts p = parts_of(w, g->segment, g->rank);
        for (size_t word = 0; p.n > 1 && word < g->len && !w->failed; word += WORD) {
            size_t len = g->len - word < WORD ? g->len - word : WORD;
            for (int k = 1; k < p.n; k++)
                if (memcmp(p.part[0] + g->offset + word, p.part[k] + g->offset + word, len) != 0 &&
                    !runs_over(g, word, len))
                    region_fail(w, "restored", g, &p, word, len, "copies differ");
        }
    }
}

/* Nobody is under way with a put: no agent may call a copy torn for one who lives. */
static void check_notes(struct world *w)
{
    for (int i = 0; i < w->members && !w->failed; i++)
        for (const struct conn *c = w->node[i].dead ? NULL : w->node[i].agent.conns; c && !w->failed; c = c->next)
            for (int k = 0; k < NOTES_MAX; k++)
                if (c->note[k].len && c->note[k].torn && !model_is_zombie(w, c->rank, c->incarnation))
                    world_fail(w, "quiet: node %d has a note of rank %d.%u that its copy may be torn", i, c->rank,
                               c->incarnation);
}

static bool group_is_used(const struct model *m, int group)
{
    if (group_class(group) == KEEL_REDUNDANCY_SHADOW)
        return true; /* the runtime's own */
    for (int i = 0; i < m->segments; i++)
        if (m->planned[i].index >= 0 && !m->planned[i].freed &&
            (unsigned)m->planned[i].redundancy == group_class(group))
            return true;
    return false;
}

bool model_is_quiet(const struct world *w, const char **why)
{
    const struct model *m = w->model;
    *why = "a node is not settled";
    for (int i = 0; i < w->members; i++) {
        const struct node *n = &w->node[i];
        if (n->dead)
            continue;
        if (n->process.frozen || n->agent.view.epoch != m->view.epoch || n->agent.settled != m->view.epoch ||
            n->commands || n->agent.preparing || n->agent.waiters || n->agent.relays)
            return false;
    }
    *why = "a dead node is not declared dead";
    for (int i = 0; i < w->members; i++)
        if (w->node[i].dead && m->view.alive[i])
            return false;
    *why = "a group is not restored";
    for (int g = 0; g < w->setup.nodes * CLASSES; g++)
        if (group_is_used(m, g) && m->view.group[g].mode != GROUP_DIRECT)
            return false;
    *why = "a rank's end is not known";
    for (const struct runner *r = w->runners; r; r = r->next) {
        if (r->rank < 0 || r->node->dead)
            continue;
        const struct view_rank *k = &m->view.rank[r->rank];
        if (r->state == RUNNER_ENDED && k->state == RANK_RUNNING && k->incarnation == r->incarnation)
            return false;
        if (r->state == RUNNER_RUNS && r->joined && (r->client.doubt_untold || r->client.given_up)) {
            *why = "a rank's doubts are not known";
            return false;
        }
    }
    return true;
}

/* What lies at the offset of a slot's part of a segment. */
static void where(struct world *w, int segment, int slot, size_t at, char *text, size_t bytes)
{
    *text = 0;
    for (const struct region *g = w->model->regions; g; g = g->next) {
        size_t from = part_at(w, g->segment, g->rank) + g->offset;
        if (g->segment == segment && w->setup.rank_node[g->rank] == slot && at >= from && at < from + g->len)
            snprintf(text, bytes, " (rank %d's part, byte %zu of what rank %d writes)", g->rank, at - from, g->writer);
    }
}

/* All copies that the group should have, byte for byte. */
static void compare_copies(struct world *w, int segment, int slot)
{
    const struct model *m = w->model;
    int g = group_of(slot, (unsigned)m->planned[segment].redundancy);
    const struct view_group *group = &m->view.group[g];
    const uint8_t *first = NULL;
    size_t bytes = 0;
    if (m->lost[g])
        return;
    for (int i = 0; i < group->copies && !w->failed; i++) {
        size_t here;
        const uint8_t *copy = check_copy(w, group->copy[i].node, segment, slot, &here);
        if (!copy) {
            world_fail(w, "quiet: node %d has no copy of slot %d of segment %d", group->copy[i].node, slot, segment);
            return;
        }
        if (!first) {
            first = copy;
            bytes = here;
            continue;
        }
        size_t at = 0;
        while (at < bytes && first[at] == copy[at])
            at++;
        char text[100];
        where(w, segment, slot, at, text, sizeof text);
        if (at < bytes)
            world_fail(w,
                       "quiet: copies differ: segment %d (no. %lld, redundancy %d), slot %d, offset %zu%s: node %d has "
                       "%02x, node %d %02x",
                       segment, (long long)m->planned[segment].index, (int)m->planned[segment].redundancy, slot, at,
                       text, group->copy[0].node, first[at], group->copy[i].node, copy[at]);
    }
}

/* What a dead writer left is decided: it is what the copies say, and stays so. */
static void decide_region(struct world *w, struct region *g)
{
    struct parts p = parts_of(w, g->segment, g->rank);
    for (struct pending *q = g->pending, *next; q; q = next) {
        next = q->next;
        if (q->state != PENDING_DOUBT)
            continue;
        if (p.n)
            memcpy(g->base + q->offset, p.part[0] + g->offset + q->offset, q->len);
        g->changes++;
        struct pending **link = &g->pending;
        while (*link != q)
            link = &(*link)->next;
        *link = q->next;
        q->region = NULL; /* its writer may be a zombie that has not heard of its end */
    }
}

static void decide_sum(struct world *w, struct sum *s)
{
    struct parts p = parts_of(w, s->segment, s->rank);
    for (const struct adding *a = s->adding; a; a = a->next)
        if (!a->doubt || a->by_timeout)
            return; /* one that was given up may come late */
    while (s->adding) {
        s->adding->sum = NULL;
        s->adding = s->adding->next;
    }
    for (size_t i = 0; p.n && i < s->n; i++)
        s->done[i] = sum_element(s, p.part[0], i);
}

void model_check_quiet(struct world *w)
{
    struct model *m = w->model;
    model_check(w, "quiet");
    check_notes(w);
    for (int i = 0; i < m->segments; i++)
        for (int slot = 0; slot < w->setup.nodes && m->planned[i].index >= 0 && !m->planned[i].freed; slot++)
            if (!w->failed && w->node[0].agent.view.slot_ranks[slot] > 0)
                compare_copies(w, i, slot);
    if (w->failed)
        return;
    for (struct region *g = m->regions; g; g = g->next)
        decide_region(w, g);
    for (struct sum *s = m->sums; s; s = s->next)
        decide_sum(w, s);
}

static void check_history(struct world *w, struct word *word)
{
    struct parts p = parts_of(w, word->segment, word->rank);
    if (p.n == 0)
        return;
    struct history_op last = {.kind = HISTORY_GET, .called = w->sched.now};
    size_t at = history_call(&word->history, &last);
    int64_t value;
    memcpy(&value, p.part[0] + word->offset, sizeof value);
    history_return(&word->history, at, value, w->sched.now + 1);
    if (history_check(&word->history, 0) != HISTORY_BROKEN)
        return;
    for (size_t i = 0; i < word->history.n; i++) {
        const struct history_op *op = &word->history.op[i];
        static const char *const name[] = {"atomic", "put", "get", "plain get"};
        world_say(w, "  rank %d: %s %lld %lld = %lld, from %.6f to %.6f", op->rank, name[op->kind], (long long)op->a,
                  (long long)op->b, (long long)op->result, (double)op->called / MS, (double)op->returned / MS);
    }
    if (!w->failed)
        world_fail(
            w, "the history of the word at %zu of rank %d's part of segment %d is not linearizable (%zu operations)",
            word->offset, word->rank, word->segment, word->history.n);
}

void model_check_end(struct world *w)
{
    for (struct word *word = w->model->words; word && !w->failed; word = word->next)
        check_history(w, word);
}
