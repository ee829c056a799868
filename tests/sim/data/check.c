/* The checks: agents' memory against the model. */
#include "tests/sim/data/check.h"

#include <stdio.h>
#include <string.h>

#include "runtime/wire/arith.h"
#include "runtime/wire/layout.h"

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

size_t check_part_at(const struct world *w, int segment, int rank)
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

struct parts_known {
    bool any;
    int segment, rank;
    struct check_parts parts;
};

struct check_parts check_parts(const struct world *w, int segment, int rank)
{
    struct check_parts p = {0};
    const struct model *m = w->model;
    const struct planned *s = &m->planned[segment];
    int slot = w->setup.rank_node[rank], g = copyset_of(slot, (unsigned)s->redundancy);
    if (s->index < 0 || s->freed || s->lost[slot] || (s->part && !s->part[rank]))
        return p;
    const struct view_copyset *copyset = &m->view.copyset[g];
    for (int i = 0; i < copyset->copies; i++) {
        size_t bytes;
        int node = copyset->copy[i].node;
        const uint8_t *copy =
            copyset->copy[i].whole && !m->dead[node] ? check_copy(w, node, segment, slot, &bytes) : NULL;
        if (!copy)
            continue;
        p.node[p.n] = node;
        p.part[p.n++] = copy + check_part_at(w, segment, rank);
    }
    return p;
}

/* The same again while one check is made: regions and sums of one part lie side by side. */
static const struct check_parts *parts_again(const struct world *w, struct parts_known *known, int segment, int rank)
{
    if (!known->any || known->segment != segment || known->rank != rank)
        *known = (struct parts_known){true, segment, rank, check_parts(w, segment, rank)};
    return &known->parts;
}

/* ---- regions ---- */

enum { OVERLAPS_MAX = 3 };

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

/* The puts that may be in a word, for a span of words that have the same. */
struct span {
    size_t from, until;
    int n; /* OVERLAPS_MAX + 1: too many to tell */
    const struct pending *list[OVERLAPS_MAX];
};

static struct span span_at(const struct region *g, size_t from)
{
    struct span s = {.from = from, .until = g->len};
    for (const struct pending *p = g->pending; p; p = p->next) {
        size_t first = word_from(g, p->offset), end = word_until(g, p->offset + p->len - 1);
        if (first > from && first < s.until)
            s.until = first;
        if (first > from || end <= from)
            continue;
        if (end < s.until)
            s.until = end;
        if (s.n < OVERLAPS_MAX)
            s.list[s.n] = p;
        s.n += s.n <= OVERLAPS_MAX;
    }
    return s;
}

enum word_verdict { WORD_OK, WORD_TORN, WORD_WRONG };

static enum word_verdict check_word(const struct region *g, const struct span *s, const uint8_t *part, size_t word,
                                    size_t len)
{
    const struct pending *list[OVERLAPS_MAX];
    const uint8_t *got = part + g->offset + word;
    if (s->n > OVERLAPS_MAX || memcmp(got, g->base + word, len) == 0)
        return WORD_OK;
    if (s->n == 0)
        return WORD_WRONG;
    memcpy(list, s->list, sizeof list);
    return reachable(got, g->base + word, list, s->n, word, len) ? WORD_OK : WORD_TORN;
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
    size_t first = word_from(g, offset) < offset ? word_until(g, offset) : offset;
    for (size_t word = first; word + WORD <= offset + len; word += WORD) {
        if (word_until(g, word) != word + WORD)
            continue;
        const uint8_t *bytes = (const uint8_t *)got + (word - offset);
        const struct pending *list[OVERLAPS_MAX];
        int n = 0;
        if (memcmp(bytes, g->base + word, WORD) == 0 ||
            memcmp(base_before + (word - offset), g->base + word, WORD) != 0)
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
        model_changed(w, g, word, WORD);
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

void check_region_failed(struct world *w, const char *when, const struct region *g, const struct check_parts *p,
                         size_t word, size_t len, const char *what)
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
        check_part_at(w, g->segment, g->rank) + g->offset + word, g->writer, text, bytes, n,
        !some                         ? ""
        : some->state == PENDING_RUNS ? " (one in progress)"
                                      : " (one in doubt)");
}

static uint64_t load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Is it what the put leaves, which covers all of the word? */
static bool is_put(const struct pending *p, size_t word, uint64_t got)
{
    return word >= p->offset && word + WORD <= p->offset + p->len && load(p->bytes + (word - p->offset)) == got &&
           !(p->hidden && load(p->hidden + (word - p->offset)));
}

/* The first word from `word` on, within the span, that is neither what is complete nor what one of the puts leaves. */
static size_t skip_good(const struct region *g, const struct span *s, const uint8_t *bytes, size_t word)
{
    if (s->n > OVERLAPS_MAX)
        return s->until;
    if (word_until(g, word) != word + WORD)
        return word;
    for (; word + WORD <= s->until; word += WORD) {
        uint64_t got = load(bytes + word);
        bool good = got == load(g->base + word);
        for (int i = 0; !good && i < s->n; i++)
            good = is_put(s->list[i], word, got);
        if (!good)
            break;
    }
    return word;
}

/* One word of one copy, that is not simply what should be there. */
static bool check_odd_word(struct world *w, const char *when, const struct region *g, const struct check_parts *p,
                           int i, const struct span *s, size_t word)
{
    size_t len = word_until(g, word) - word;
    enum word_verdict v = check_word(g, s, p->part[i], word, len);
    if (v == WORD_WRONG || (v == WORD_TORN && !bytes_possible(g, p->part[i], word, len)))
        check_region_failed(w, when, g, p, word, len, "a completed put is lost");
    if (v == WORD_TORN && w->model->planned[g->segment].redundancy != KEEL_REDUNDANCY_NONE) {
        bool good = may_be_torn(g, word, len);
        for (int k = 0; k < p->n; k++)
            good = good || check_word(g, s, p->part[k], word, len) == WORD_OK;
        if (!good)
            check_region_failed(w, when, g, p, word, len, "no copy is whole");
    }
    return v == WORD_OK;
}

/* One block of one copy: true if every word in it is as it may be, and none of them torn. */
static bool check_block(struct world *w, const char *when, const struct region *g, const struct check_parts *p, int i,
                        size_t from, size_t until)
{
    const uint8_t *bytes = p->part[i] + g->offset;
    bool all = true;
    from = word_from(g, from);
    if (memcmp(bytes + from, g->base + from, until - from) == 0)
        return true;
    struct span s = {0};
    for (size_t word = from; word < until && !w->failed;) {
        if (word >= s.until) {
            s = span_at(g, word);
            s.until = s.until < until ? s.until : until;
        }
        word = skip_good(g, &s, bytes, word);
        if (word >= s.until)
            continue;
        all = check_odd_word(w, when, g, p, i, &s, word) && all;
        word = word_until(g, word);
    }
    return all;
}

/* One copy of what is looked at by blocks, and the checks by which each block of it was last seen to be well; well
 * NULL: not known. */
struct inspection {
    const uint8_t *bytes;
    size_t len, from, until;
    const struct memory *memory;
    struct looked *looked;
    uint64_t *well;
    const uint64_t *changed;
    bool due, bad;
};

static struct inspection inspect(const struct world *w, int node, const uint8_t *bytes, size_t len,
                                 const uint64_t *changed, struct looked *looked)
{
    struct inspection l = {.bytes = bytes, .len = len, .changed = changed};
    l.memory = len > LOOK_BLOCK ? memory_at(w, node, bytes) : NULL;
    if (!l.memory)
        return l;
    looked += node;
    if (!looked->well)
        looked->well = sim_alloc(look_blocks(len) * sizeof *looked->well);
    else if (looked->memory != l.memory->handle)
        memset(looked->well, 0, look_blocks(len) * sizeof *looked->well);
    if (looked->memory != l.memory->handle)
        looked->all = 0;
    looked->memory = l.memory->handle;
    l.looked = looked;
    l.well = looked->well;
    if (looked->all && changed[look_blocks(len)] <= looked->all && !w->model->whole &&
        !pages_written(l.memory->pages, bytes, len, looked->all))
        l.until = len;
    return l;
}

/* The next block that is to be looked at; false: none. */
static bool inspect_next(const struct world *w, struct inspection *l)
{
    for (l->from = l->until; l->from < l->len; l->from = l->until) {
        size_t b = l->from / LOOK_BLOCK;
        l->until = l->len - l->from < LOOK_BLOCK ? l->len : l->from + LOOK_BLOCK;
        l->due = !l->well || l->well[b] == 0 || l->changed[b] > l->well[b] ||
                 pages_written(l->memory->pages, l->bytes + l->from, l->until - l->from, l->well[b]);
        if (l->due || w->model->whole)
            return true;
    }
    if (l->well)
        l->looked->all = l->bad ? 0 : w->model->checks;
    return false;
}

static void inspect_was(struct world *w, struct inspection *l, bool good)
{
    l->bad = l->bad || !good;
    if (w->failed && !l->due)
        world_also(w, "; it was well, and nothing is known to have changed since");
    if (l->well && !w->failed)
        l->well[l->from / LOOK_BLOCK] = good ? w->model->checks : 0;
}

static void check_region(struct world *w, struct region *g, const struct check_parts *p, const char *when)
{
    for (int i = 0; i < p->n && !w->failed; i++) {
        struct inspection l = inspect(w, p->node[i], p->part[i] + g->offset, g->len, g->changed, g->looked);
        while (!w->failed && inspect_next(w, &l))
            inspect_was(w, &l, check_block(w, when, g, p, i, l.from, l.until));
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

/* Elements of one copy. */
static void check_elements(struct world *w, const struct sum *s, const char *when, const struct check_parts *p, int k,
                           size_t from, size_t until)
{
    enum { FEW = 64 };
    size_t size = arith_size(s->type), few = FEW / size * size, len;
    const uint8_t *bytes = p->part[k] + s->offset;
    if (memcmp(bytes + from, s->expected + from, until - from) == 0)
        return;
    for (size_t at = from; at < until && !w->failed; at += len) {
        len = until - at < few ? size : few;
        if (memcmp(bytes + at, s->expected + at, len) == 0)
            continue;
        len = size;
        size_t i = at / size;
        double got = sum_element(s, p->part[k], i);
        if (got != s->done[i] && !sum_possible(s, i, got))
            world_fail(w,
                       "%s: an accumulate is lost or counted twice: segment %d, rank %d's part, element %zu, on node "
                       "%d: %.0f, should be %.0f%s",
                       when, s->segment, s->rank, i, p->node[k], got, s->done[i], s->adding ? " or more" : "");
    }
}

static void check_sum(struct world *w, struct sum *s, const struct check_parts *p, const char *when)
{
    for (int k = 0; k < p->n && !w->failed; k++) {
        struct inspection l =
            inspect(w, p->node[k], p->part[k] + s->offset, s->n * arith_size(s->type), s->changed, s->looked);
        while (!w->failed && inspect_next(w, &l)) {
            check_elements(w, s, when, p, k, l.from, l.until);
            inspect_was(w, &l, true);
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
    struct check_parts of[RANKS_MAX] = {0};
    for (int rank = 0; rank < ranks; rank++)
        of[rank] = check_parts(w, pool->segment, rank);
    for (int64_t t = 0; t < pool->tasks && !w->failed; t++)
        for (int step = 0; step < TASK_STEPS && !w->failed; step++) {
            int rank = (int)((t + step) % ranks);
            const struct check_parts *p = &of[rank];
            for (int k = 0; k < p->n && !w->failed; k++) {
                double got;
                memcpy(&got, p->part[k] + pool->offset + 8 * (size_t)(t * TASK_STEPS + step), sizeof got);
                double low = (double)pool->complete * task_value(t, step),
                       high = (double)pool->begun * task_value(t, step);
                if (got != low && got != high)
                    world_fail(
                        w,
                        "%s: task %lld, step %d, on node %d: %.0f; %llu rounds are complete, %llu begun: %.0f or "
                        "%.0f",
                        when, (long long)t, step, p->node[k], got, (unsigned long long)pool->complete,
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
    struct parts_known parts = {0};
    if (w->flipped)
        return;
    m->checks++;
    for (struct region *g = m->regions; g && !w->failed; g = g->next)
        check_region(w, g, parts_again(w, &parts, g->segment, g->rank), when);
    for (struct sum *s = m->sums; s && !w->failed; s = s->next)
        check_sum(w, s, parts_again(w, &parts, s->segment, s->rank), when);
    for (int i = 0; i < m->segments && !w->failed; i++)
        if (m->planned[i].is_pool && !pool_is_excused(w, i))
            check_pool(w, &m->planned[i].pool, when);
    pages_looked(m->checks);
}

void model_check_whole(struct world *w, const char *when)
{
    w->model->whole = true;
    model_check(w, when);
    w->model->whole = w->setup.whole;
}
