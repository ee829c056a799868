#include "runtime/agent/scrub.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/scrub_int.h"
#include "runtime/base/clock.h"
#include "runtime/base/counters.h"

enum {
    STRETCH = SCRUB_BLOCKS_MAX * SCRUB_BLOCK,
    TRIES = 8,                      /* of a block that stays different */
    AGAIN_NS = 25 * KEEL_NS_PER_MS, /* between them */
    PARTS = 64,                     /* looked at in one round for one to read */
};
static const uint64_t SLACK_NS = 100 * KEEL_NS_PER_MS;
static const uint64_t PASS_NS = KEEL_NS_PER_S;       /* begins so long after the last one at least */
static const uint64_t VIEW_NS = 10 * KEEL_NS_PER_S;  /* for a view that was asked for */
static const uint64_t ROUND_NS = 2 * KEEL_NS_PER_MS; /* where there was nothing to read in one */

void scrub_init(struct scrub *s, uint64_t rate)
{
    *s = (struct scrub){.rate = rate, .pass_ns = PASS_NS, .slack_ns = SLACK_NS, .slot = -1, .pass = 1};
}

void scrub_fini(struct scrub *s)
{
    scrub_forget(&s->parts, UINT64_MAX);
    free(s->image);
    s->image = NULL;
}

/* Few bytes count as many: a message is work, too. */
static uint64_t stretch_ns(const struct scrub *s)
{
    return STRETCH * KEEL_NS_PER_S / s->rate;
}

static void charge(struct agent *a)
{
    struct scrub *s = &a->scrub;
    s->next_at = (s->next_at > a->now ? s->next_at : a->now) + stretch_ns(s);
}

/* What others ask for is read at this agent's expense, but never all that it may read. */
static void charge_for_others(struct agent *a)
{
    uint64_t before = a->scrub.next_at, most = a->now + COPIES_MAX * stretch_ns(&a->scrub);
    charge(a);
    if (a->scrub.next_at > most)
        a->scrub.next_at = before > most ? before : most;
}

/* ---- where it is ---- */

static const struct store_segment *segment_from(const struct agent *a, uint32_t seg)
{
    const struct store_segment *best = NULL;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        if (s->seg >= seg && (!best || s->seg < best->seg))
            best = s;
    return best;
}

static bool is_read_here(const struct agent *a, const struct store_segment *g, int slot)
{
    const struct view_copyset *set = &a->view.copyset[copyset_of(slot, g->redundancy)];
    return g->redundancy > 0 && g->copy[slot].base && set->copies > 1 && set->mode == COPYSET_DIRECT &&
           set->copy[0].node == a->self;
}

/* Also while its copies are being made equal. */
static bool is_kept_here(const struct agent *a, const struct scrub_part *p)
{
    const struct store_segment *g = store_find(&a->store, p->seg);
    return g && g->copy[p->slot].base && a->view.copyset[copyset_of(p->slot, g->redundancy)].copy[0].node == a->self;
}

static void pass_ends(struct agent *a)
{
    struct scrub *s = &a->scrub;
    uint64_t next_at = s->pass_at + s->pass_ns;
    for (struct scrub_part *p = s->parts; p; p = p->next)
        if (is_kept_here(a, p))
            p->pass = s->pass;
    scrub_forget(&s->parts, s->pass);
    s->pass++;
    s->seg = 0;
    s->slot = -1;
    s->next_at = next_at > s->next_at ? next_at : s->next_at;
    s->pass_at = s->next_at > a->now ? s->next_at : a->now;
}

/* The next part that is read here, if there is one among the next few. */
static const struct store_copy *find_part(struct agent *a)
{
    struct scrub *s = &a->scrub;
    const struct store_segment *g = segment_from(a, s->seg);
    for (int i = 0; i < PARTS; i++) {
        if (!g) {
            pass_ends(a);
            return NULL;
        }
        if (g->seg != s->seg) {
            s->seg = g->seg;
            s->slot = -1;
            s->offset = 0;
        }
        if (s->slot >= 0 && is_read_here(a, g, s->slot) && s->offset < g->copy[s->slot].bytes)
            return &g->copy[s->slot];
        s->offset = 0;
        if (++s->slot == a->view.nodes) {
            s->slot = -1;
            s->seg++;
            g = segment_from(a, s->seg);
        }
    }
    s->next_at = a->now + ROUND_NS;
    return NULL;
}

static bool is_empty(const struct agent *a, const struct store_copy *c, uint64_t offset, size_t len)
{
    return a->ops.memory_used && !a->ops.memory_used(a->ops.user, c->handle, (size_t)offset, len);
}

static struct scrub_part *part_here(struct scrub *s, const struct store_copy *c)
{
    return scrub_part(&s->parts, s->seg, s->slot, (c->bytes + SCRUB_BLOCK - 1) / SCRUB_BLOCK);
}

static void sweep(struct agent *a)
{
    struct scrub *s = &a->scrub;
    const struct store_copy *c = find_part(a);
    if (!c)
        return;
    uint64_t left = c->bytes - s->offset;
    s->len = left < STRETCH ? (uint32_t)left : STRETCH;
    if (is_empty(a, c, s->offset, s->len)) {
        s->offset += s->len; /* nothing was ever written there */
        return;
    }
    charge(a);
    scrub_ask(a, false);
}

void scrub_leave(struct agent *a)
{
    struct scrub *s = &a->scrub;
    free(s->image);
    s->image = NULL;
    s->state = SCRUB_SWEEP;
    s->asked = false;
    s->offset += s->len;
    charge(a);
}

/* ---- the question ---- */

void scrub_ask(struct agent *a, bool close)
{
    struct scrub *s = &a->scrub;
    const struct store_segment *g = store_find(&a->store, s->seg);
    if (!g) {
        scrub_leave(a);
        return;
    }
    const struct view_copyset *set = &a->view.copyset[copyset_of(s->slot, g->redundancy)];
    struct msg_scrub m = {.at = {.seg = s->seg, .slot = (uint16_t)s->slot, .offset = s->offset},
                          .bytes = s->len,
                          .close = close,
                          .question = ++s->question};
    struct wire w;
    msg_scrub_encode(&m, &w);
    s->asked = true;
    s->asked_at = a->now;
    s->until = a->now + SCRUB_ANSWER_NS;
    s->generation = set->generation;
    s->nodes = 0;
    for (int i = 0; i < set->copies; i++) {
        if (!set->copy[i].whole)
            continue;
        struct scrub_answer *answer = &s->answer[s->nodes];
        answer->before = answer->sum[0];
        answer->here = false;
        s->node[s->nodes++] = set->copy[i].node;
        if (set->copy[i].node != a->self)
            agent_tell(a, set->copy[i].node, &w, NULL);
        else
            scrub_look(a, &m, answer);
    }
    counter_add(&a->counts, COUNTER_scrubbed_bytes, s->len);
}

void scrub_asked(struct agent *a, int from, const struct wire *w)
{
    struct msg_scrub m;
    struct scrub_answer answer;
    struct wire back;
    msg_scrub_decode(w, &m);
    scrub_look(a, &m, &answer);
    msg_scrubbed_encode(&answer.said, &back);
    agent_tell(a, from, &back, answer.sum);
    counter_add(&a->counts, COUNTER_scrubbed_bytes, answer.said.len ? m.bytes : 0);
    if (a->scrub.rate)
        charge_for_others(a);
}

bool scrub_all_say(const struct scrub *s)
{
    size_t len = (s->len + SCRUB_BLOCK - 1) / SCRUB_BLOCK * sizeof(uint64_t);
    for (int i = 0; i < s->nodes; i++)
        if (s->answer[i].said.status != KEEL_OK || s->answer[i].said.generation != s->generation ||
            s->answer[i].said.len != len)
            return false;
    return s->nodes > 1;
}

/* ---- answers ---- */

enum scrub_verdict scrub_verdict(const struct agent *a, unsigned *wrong)
{
    const struct scrub *s = &a->scrub;
    struct scrub_word word[COPIES_MAX];
    for (int i = 0; i < s->nodes; i++)
        word[i] = (struct scrub_word){.sum = s->answer[i].sum[0],
                                      .stored = s->answer[i].said.stored,
                                      .written = s->answer[i].said.written,
                                      .noted_ns = s->answer[i].said.noted_ns};
    const struct scrub_part *p = s->parts;
    while (p && !(p->seg == s->seg && p->slot == s->slot))
        p = p->next;
    struct scrub_kept kept = scrub_kept_of(p, (size_t)(s->offset / SCRUB_BLOCK), a->now, s->slack_ns);
    return scrub_judge(word, s->nodes, &kept, wrong);
}

static void keep(struct agent *a, size_t block, uint64_t sum)
{
    struct scrub *s = &a->scrub;
    const struct store_copy *c = store_copy(&a->store, s->seg, s->slot);
    struct scrub_part *p = c && c->base ? part_here(s, c) : NULL;
    if (p && block < p->blocks)
        scrub_keep(p, block, sum, s->asked_at);
}

static void swept(struct agent *a)
{
    struct scrub *s = &a->scrub;
    size_t first = (size_t)(s->offset / SCRUB_BLOCK);
    for (uint32_t i = 0; i * SCRUB_BLOCK < s->len; i++) {
        bool equal = true;
        for (int k = 1; k < s->nodes; k++)
            equal = equal && s->answer[k].sum[i] == s->answer[0].sum[i];
        if (equal) {
            keep(a, first + i, s->answer[0].sum[i]);
            continue;
        }
        uint32_t left = s->len - i * SCRUB_BLOCK;
        s->offset += (uint64_t)i * SCRUB_BLOCK;
        s->len = left < SCRUB_BLOCK ? left : SCRUB_BLOCK;
        s->state = SCRUB_LOOK;
        s->tries = 0;
        s->next_at = a->now + AGAIN_NS;
        return;
    }
    s->offset += s->len;
}

/* Was it so the last time? */
static bool stays(const struct scrub *s)
{
    for (int i = 0; i < s->nodes; i++)
        if (s->answer[i].sum[0] != s->answer[i].before)
            return false;
    return true;
}

static void ask_for_view(struct agent *a)
{
    struct scrub *s = &a->scrub;
    const struct store_segment *g = store_find(&a->store, s->seg);
    s->copyset = copyset_of(s->slot, g->redundancy);
    s->state = SCRUB_VIEW;
    s->until = a->now + VIEW_NS;
    struct view_event e = {.type = VIEW_SUSPECT, .a = (uint32_t)s->copyset, .d = s->generation};
    a->ops.submit(a->ops.user, &e);
}

static void looked(struct agent *a)
{
    struct scrub *s = &a->scrub;
    unsigned wrong;
    enum scrub_verdict verdict = scrub_verdict(a, &wrong);
    if (verdict == SCRUB_EQUAL)
        keep(a, (size_t)(s->offset / SCRUB_BLOCK), s->answer[0].sum[0]);
    if (verdict <= SCRUB_BUSY || (s->tries > 0 && !stays(s)) || (verdict == SCRUB_UNKNOWN && scrub_was_told(s))) {
        scrub_leave(a);
    } else if (++s->tries < TRIES) {
        s->next_at = a->now + AGAIN_NS;
    } else {
        ask_for_view(a);
    }
}

static void heard(struct agent *a)
{
    struct scrub *s = &a->scrub;
    for (int i = 0; i < s->nodes; i++)
        if (!s->answer[i].here)
            return;
    s->asked = false;
    if (s->state == SCRUB_JUDGE)
        scrub_judged(a);
    else if (!scrub_all_say(s))
        scrub_leave(a); /* it is freed, lost or made equal */
    else if (s->state == SCRUB_SWEEP)
        swept(a);
    else
        looked(a);
}

void scrub_answered(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct scrub *s = &a->scrub;
    struct msg_scrubbed m;
    msg_scrubbed_decode(w, &m);
    if (!s->asked || m.question != s->question || m.len > sizeof s->answer[0].sum)
        return;
    for (int i = 0; i < s->nodes; i++)
        if (s->node[i] == from) {
            s->answer[i].here = true;
            s->answer[i].said = m;
            if (m.len)
                memcpy(s->answer[i].sum, body, m.len);
        }
    heard(a);
}

/* ---- time ---- */

void scrub_step(struct agent *a)
{
    struct scrub *s = &a->scrub;
    if (!s->rate || a->recovery.frozen)
        return;
    bool late = a->now >= s->until;
    if (s->state >= SCRUB_VIEW && s->state != SCRUB_HELD && s->state != SCRUB_SPREAD && late)
        scrub_drop(a);
    else if (s->state > SCRUB_LOOK)
        return;
    else if (s->asked && late)
        scrub_leave(a); /* somebody does not answer */
    else if (!s->asked && a->now >= s->next_at) {
        if (s->state == SCRUB_SWEEP)
            sweep(a);
        else
            scrub_ask(a, true);
    }
}

uint64_t scrub_deadline(const struct agent *a)
{
    const struct scrub *s = &a->scrub;
    if (!s->rate || a->recovery.frozen || s->state == SCRUB_HELD || s->state == SCRUB_SPREAD)
        return UINT64_MAX;
    return s->asked || s->state > SCRUB_LOOK ? s->until : s->next_at;
}
