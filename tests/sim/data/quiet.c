/* The checks of quiet moments, and of those at which redundancy is said to be restored: copies against each other. */
#include <stdio.h>
#include <string.h>

#include "runtime/view/plan.h"
#include "tests/sim/data/check.h"
#include "tests/sim/data/slides.h"

static bool runs_over(const struct region *g, size_t word, size_t len)
{
    for (const struct pending *p = g->pending; p; p = p->next)
        if (p->offset < word + len && word < p->offset + p->len && (p->state == PENDING_RUNS || !p->known || p->plain))
            return true;
    return false;
}

static bool all_equal(const struct region *g, const struct check_parts *p)
{
    for (int k = 1; k < p->n; k++)
        if (memcmp(p->part[0] + g->offset, p->part[k] + g->offset, g->len) != 0)
            return false;
    return true;
}

/* "Restored" was said under this view: every copyset in use has its copies, and what the dead left is decided. */
void model_check_restored(struct world *w, const struct node *n)
{
    const struct model *m = w->model;
    if (w->flipped || n->agent.view.epoch != m->view.epoch)
        return; /* others know of a later one */
    for (int i = 0; i < m->segments; i++) {
        const struct planned *s = &m->planned[i];
        for (int slot = 0; slot < w->setup.nodes && s->index >= 0 && !s->freed && !w->failed; slot++) {
            int g = copyset_of(slot, (unsigned)s->redundancy);
            const struct view_copyset *copyset = &m->view.copyset[g];
            if (s->redundancy == KEEL_REDUNDANCY_NONE || s->lost[slot])
                continue;
            int least = (int)s->redundancy + 1, most = least + (plan_slot_target(&m->view, slot) >= 0);
            if (copyset->copies < least || copyset->copies > most) /* one more while the slot goes elsewhere */
                world_fail(w, "restored: slot %d of segment %d has %d copies", slot, i, copyset->copies);
            for (int k = 0; k < copyset->copies; k++) {
                size_t bytes;
                int node = copyset->copy[k].node;
                if (!m->dead[node] && s->made && !check_copy(w, node, i, slot, &bytes))
                    world_fail(w, "restored: node %d has no copy of slot %d of segment %d", node, slot, i);
            }
        }
    }
    for (const struct region *g = m->regions; g && !w->failed; g = g->next) {
        struct check_parts p = check_parts(w, g->segment, g->rank);
        if (all_equal(g, &p))
            continue;
        for (size_t word = 0, len; word < g->len && !w->failed; word += len) {
            len = word_until(g, word) - word;
            for (int k = 1; k < p.n; k++)
                if (memcmp(p.part[0] + g->offset + word, p.part[k] + g->offset + word, len) != 0 &&
                    !runs_over(g, word, len))
                    check_region_failed(w, "restored", g, &p, word, len, "copies differ");
        }
    }
}

/* Nobody is under way with a put: no agent may call a copy torn for one who lives. */
static void check_notes(struct world *w)
{
    for (int i = 0; i < w->members && !w->failed; i++)
        for (const struct conn *c = w->node[i].dead ? NULL : w->node[i].agent.conns; c && !w->failed; c = c->next)
            for (int k = 0; k < NOTES_MAX; k++)
                if (c->note[k].len && c->note[k].torn && !model_is_zombie(w, c->life.rank, c->life.incarnation))
                    world_fail(w, "quiet: node %d has a note of rank %d.%u that its copy may be torn", i, c->life.rank,
                               c->life.incarnation);
}

static bool copyset_is_used(const struct model *m, int copyset)
{
    if (copyset_class(copyset) == KEEL_REDUNDANCY_SHADOW)
        return true; /* the runtime's own */
    for (int i = 0; i < m->segments; i++)
        if (m->planned[i].index >= 0 && !m->planned[i].freed &&
            (unsigned)m->planned[i].redundancy == copyset_class(copyset))
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
        if (n->process.frozen || n->agent.view.epoch != m->view.epoch || n->agent.recovery.settled != m->view.epoch ||
            n->commands || n->agent.recovery.preparing || n->agent.waiters || n->agent.relays.first)
            return false;
    }
    *why = "a dead node is not declared dead";
    for (int i = 0; i < w->members; i++)
        if (w->node[i].dead && m->view.alive[i])
            return false;
    *why = "a group is not restored";
    for (int g = 0; g < w->setup.nodes * CLASSES; g++)
        if (copyset_is_used(m, g) && m->view.copyset[g].mode != COPYSET_DIRECT)
            return false;
    *why = "a rank has still to move";
    if (!slides_are_over(w))
        return false;
    *why = "a rank's end is not known";
    for (const struct runner *r = w->runners; r; r = r->next) {
        if (r->rank < 0 || r->node->dead)
            continue;
        const struct view_rank *k = &m->view.rank[r->rank];
        if (r->state == RUNNER_ENDED && k->state == RANK_RUNNING && k->incarnation == r->incarnation)
            return false;
        if (r->state == RUNNER_RUNS && r->joined && (r->client.doubts.untold || r->client.doubts.given_up[0].any)) {
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
        size_t from = check_part_at(w, g->segment, g->rank) + g->offset;
        if (g->segment == segment && w->setup.rank_node[g->rank] == slot && at >= from && at < from + g->len)
            snprintf(text, bytes, " (rank %d's part, byte %zu of what rank %d writes)", g->rank, at - from, g->writer);
    }
}

/* A plain store there has not been brought to the other copies, or never will. */
static bool is_plain(const struct world *w, int segment, int slot, size_t at)
{
    for (const struct region *g = w->model->regions; g; g = g->next) {
        size_t from = check_part_at(w, g->segment, g->rank) + g->offset;
        if (g->segment == segment && w->setup.rank_node[g->rank] == slot && at >= from && at < from + g->len) {
            size_t word = word_from(g, at - from);
            return model_is_plain(g, word, word_until(g, word) - word);
        }
    }
    return false;
}

/* bytes: nowhere where it matters. */
static size_t differ_at(const struct world *w, int segment, int slot, const uint8_t *first, const uint8_t *copy,
                        size_t bytes)
{
    if (memcmp(first, copy, bytes) == 0)
        return bytes;
    for (size_t at = 0; at < bytes; at++)
        if (first[at] != copy[at] && !is_plain(w, segment, slot, at))
            return at;
    return bytes;
}

/* All copies that the copyset should have, byte for byte. */
static void compare_copies(struct world *w, int segment, int slot)
{
    const struct model *m = w->model;
    int g = copyset_of(slot, (unsigned)m->planned[segment].redundancy);
    const struct view_copyset *copyset = &m->view.copyset[g];
    const uint8_t *first = NULL;
    size_t bytes = 0;
    if (m->planned[segment].lost[slot])
        return;
    for (int i = 0; i < copyset->copies && !w->failed; i++) {
        size_t here;
        const uint8_t *copy = check_copy(w, copyset->copy[i].node, segment, slot, &here);
        if (!copy) {
            world_fail(w, "quiet: node %d has no copy of slot %d of segment %d", copyset->copy[i].node, slot, segment);
            return;
        }
        if (!first) {
            first = copy;
            bytes = here;
            continue;
        }
        size_t at = differ_at(w, segment, slot, first, copy, bytes);
        if (at == bytes)
            continue;
        char text[100];
        where(w, segment, slot, at, text, sizeof text);
        world_fail(w,
                   "quiet: copies differ: segment %d (no. %lld, redundancy %d), slot %d, offset %zu%s: node %d has "
                   "%02x, node %d %02x",
                   segment, (long long)m->planned[segment].index, (int)m->planned[segment].redundancy, slot, at, text,
                   copyset->copy[0].node, first[at], copyset->copy[i].node, copy[at]);
    }
}

/* What a dead writer left is decided: it is what the copies say, and stays so. */
static void decide_region(struct world *w, struct region *g)
{
    struct check_parts p = check_parts(w, g->segment, g->rank);
    for (struct pending *q = g->pending, *next; q; q = next) {
        next = q->next;
        if (q->state != PENDING_DOUBT || (model_is_plain(g, q->offset, q->len) && !all_equal(g, &p)))
            continue;
        if (p.n) {
            memcpy(g->base + q->offset, p.part[0] + g->offset + q->offset, q->len);
            model_decided(g, q->offset, q->len);
        }
        model_changed(w, g, q->offset, q->len);
        struct pending **link = &g->pending;
        while (*link != q)
            link = &(*link)->next;
        *link = q->next;
        q->region = NULL; /* its writer may be a zombie that has not heard of its end */
    }
}

static void decide_sum(struct world *w, struct sum *s)
{
    struct check_parts p = check_parts(w, s->segment, s->rank);
    for (const struct adding *a = s->adding; a; a = a->next)
        if (!a->doubt || a->by_timeout)
            return; /* one that was given up may come late */
    while (s->adding) {
        s->adding->sum = NULL;
        s->adding = s->adding->next;
    }
    for (size_t i = 0; p.n && i < s->n; i++)
        sum_done(w, s, i, sum_element(s, p.part[0], i));
}

void model_check_quiet(struct world *w)
{
    struct model *m = w->model;
    model_check_whole(w, "quiet");
    check_notes(w);
    slides_check_quiet(w);
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

/* An atomic operation on 32 bits changes nothing beside them. */
static int64_t half_at(struct world *w, const struct word *word, const uint8_t *part)
{
    int32_t value, beside;
    memcpy(&value, part + word->offset, sizeof value);
    memcpy(&beside, part + (word->offset ^ sizeof beside), sizeof beside);
    if (beside && !w->failed)
        world_fail(w, "beside the word at %zu of rank %d's part of segment %d is %d", word->offset, word->rank,
                   word->segment, (int)beside);
    return value;
}

static void check_history(struct world *w, struct word *word)
{
    struct check_parts p = check_parts(w, word->segment, word->rank);
    if (p.n == 0)
        return;
    struct history_op last = {.kind = HISTORY_GET, .called = w->sched.now};
    size_t at = history_call(&word->history, &last);
    int64_t value;
    if (word->half)
        value = half_at(w, word, p.part[0]);
    else
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
