/* What is found out and mended in a repair: its primary executes nothing, all whole copies have what it had executed,
 * and no rank writes to a copy itself. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/agent/repair_int.h"
#include "runtime/agent/scrub_int.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/words.h"

enum { WORD = 8 };

/* ---- what is told ---- */

static uint64_t sums_of(const struct scrub *s)
{
    uint64_t sums = 0;
    for (int i = 0; i < s->nodes; i++)
        sums = sums * 31 + s->answer[i].sum[0];
    return sums;
}

bool scrub_was_told(struct scrub *s)
{
    for (unsigned i = 0; i < SCRUB_TOLD_MAX; i++)
        if (s->told[i].seg == s->seg && s->told[i].slot == s->slot && s->told[i].offset == s->offset &&
            s->told[i].sums == sums_of(s))
            return true;
    return false;
}

/* The rank in whose part the byte is, and where in it; -1: it is not known. */
static int rank_at(const struct agent *a, const struct scrub *s, uint64_t at, uint64_t *offset)
{
    const struct store_segment *g = store_find(&a->store, s->seg);
    uint64_t stride = g && !g->uneven ? layout_stride(g->bytes_per_rank) : 0;
    for (int r = 0; stride && r < a->view.ranks; r++)
        if (a->view.rank[r].slot == s->slot && (uint64_t)a->view.rank[r].index == at / stride) {
            *offset = at % stride;
            return r;
        }
    return -1;
}

/* One copy, or, node -1, nobody knows which. */
static void tell(struct agent *a, int node, bool mended)
{
    const struct scrub *s = &a->scrub;
    uint64_t at = s->offset + s->bad_at, offset = 0;
    int rank = rank_at(a, s, at, &offset);
    char where[96], whose[64];
    agent_say(a, "scrubbed", J_UINT("segment", s->seg), J_INT("slot", s->slot), J_UINT("slot_offset", at),
              J_INT("rank", rank), J_UINT("offset", offset), J_UINT("bytes", s->bad_bytes), J_INT("node", node),
              J_TEXT("mended", mended ? "yes" : "no"));
    counter_add(&a->counts, COUNTER_scrub_mismatches, 1);
    counter_add(&a->counts, COUNTER_scrub_mended, mended);
    if (rank >= 0)
        snprintf(where, sizeof where, "rank %d's part, offset %llu", rank, (unsigned long long)offset);
    else
        snprintf(where, sizeof where, "slot %d, offset %llu", s->slot, (unsigned long long)at);
    snprintf(whose, sizeof whose, node >= 0 ? "the copy on node %d" : "a copy", node);
    log_warn("scrubber: %s of segment %u changed by itself (%s, within %u byte%s): %s", whose, s->seg, where,
             s->bad_bytes, s->bad_bytes == 1 ? "" : "s",
             mended      ? "mended from another copy"
             : node >= 0 ? "not mended"
                         : "not mended, as nobody can say which copy is right");
}

/* Nobody can say which copy is right. */
static void tell_unknown(struct agent *a)
{
    struct scrub *s = &a->scrub;
    s->told[s->tolds++ % SCRUB_TOLD_MAX] =
        (struct scrub_told){.seg = s->seg, .slot = s->slot, .offset = s->offset, .sums = sums_of(s)};
    tell(a, -1, false);
}

static void tell_copies(struct agent *a, unsigned wrong, bool mended)
{
    const struct scrub *s = &a->scrub;
    for (int i = 0; i < s->nodes; i++)
        if (wrong >> i & 1)
            tell(a, s->node[i], mended);
}

/* ---- views ---- */

void scrub_drop(struct agent *a)
{
    struct scrub *s = &a->scrub;
    if (s->state == SCRUB_SPREAD)
        tell_copies(a, s->wrong, false);
    scrub_leave(a);
}

/* A death may have come between: then it is found out in the repair for that, before any copy is filled from one that
 * may be wrong. */
void scrub_view_committed(struct agent *a)
{
    struct scrub *s = &a->scrub;
    const struct store_segment *g = s->state == SCRUB_SWEEP ? NULL : store_find(&a->store, s->seg);
    if (s->state == SCRUB_LOOK && g)
        s->copyset = copyset_of(s->slot, g->redundancy);
    const struct view_copyset *set = g ? &a->view.copyset[s->copyset] : NULL;
    if (s->state == SCRUB_SWEEP || (set && set->generation == s->generation))
        return;
    if (!set || set->mode != COPYSET_REPAIR || !repair_is_primary(a, set) || view_whole_copies(set) < 2) {
        scrub_drop(a);
        return;
    }
    free(s->image);
    s->image = NULL;
    s->asked = false;
    s->state = SCRUB_HELD;
    s->generation = set->generation;
}

bool scrub_holds(const struct agent *a, int copyset)
{
    return a->scrub.state >= SCRUB_HELD && a->scrub.copyset == copyset;
}

/* ---- the repair ---- */

/* A patch that is in doubt anyway: the repair decides it. */
static bool is_claimed(const struct repair *r, const struct scrub *s)
{
    for (const struct claim *c = r->claims; c; c = c->next)
        if (c->patch.seg == s->seg && c->patch.offset < s->offset + s->len &&
            s->offset < c->patch.offset + c->patch.len)
            return true;
    return false;
}

static void judge(struct agent *a)
{
    struct scrub *s = &a->scrub;
    const struct store_copy *c = store_copy(&a->store, s->seg, s->slot);
    FAULT_POINT("push.scrub_judges");
    if (!c || !repair_is_in_range(c, s->offset, s->len) || is_claimed(&a->repairs.of[s->copyset], s) ||
        !(s->image = malloc(2 * (size_t)SCRUB_BLOCK))) {
        scrub_leave(a);
        return;
    }
    s->state = SCRUB_JUDGE;
    words_load(s->image, c->base + s->offset, s->len);
    scrub_ask(a, true);
    s->answer[0].sum[0] = scrub_sum(s->image, s->len); /* a program may be storing into the rest of it */
}

bool scrub_is_judged(struct agent *a, int copyset)
{
    if (scrub_holds(a, copyset) && a->scrub.state == SCRUB_HELD)
        judge(a);
    return !scrub_holds(a, copyset) || a->scrub.state == SCRUB_SPREAD;
}

static void fetch(struct agent *a)
{
    struct scrub *s = &a->scrub;
    struct wire w;
    s->state = SCRUB_FETCH;
    s->until = a->now + SCRUB_ANSWER_NS;
    s->came = 0;
    for (s->from = 1; s->from < s->nodes && (s->wrong & 1) == (s->wrong >> s->from & 1); s->from++)
        ; /* of this one and that one exactly one is wrong */
    for (uint32_t at = 0; at < s->len; at += WIRE_BODY_MAX) {
        uint32_t left = s->len - at;
        msg_fetch_encode(
            &(struct msg_fetch){.of = {.at = {.seg = s->seg, .slot = (uint16_t)s->slot, .offset = s->offset + at},
                                       .class = copyset_class(s->copyset),
                                       .generation = s->generation},
                                .bytes = left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX},
            &w);
        agent_tell(a, s->node[s->from], &w, NULL);
    }
}

void scrub_judged(struct agent *a)
{
    struct scrub *s = &a->scrub;
    enum scrub_verdict verdict = scrub_all_say(s) ? scrub_verdict(a, &s->wrong) : SCRUB_BUSY;
    s->bad_at = 0;
    s->bad_bytes = s->len;
    if (verdict == SCRUB_WRONG) {
        fetch(a);
        return;
    }
    if (verdict == SCRUB_UNKNOWN && !scrub_was_told(s))
        tell_unknown(a);
    scrub_leave(a);
}

static void find_place(struct scrub *s)
{
    const uint8_t *here = s->image, *there = s->image + SCRUB_BLOCK;
    uint32_t first = 0, last = s->len;
    while (first < last && here[first] == there[first])
        first++;
    while (last > first && here[last - 1] == there[last - 1])
        last--;
    s->bad_at = first;
    s->bad_bytes = last - first;
}

/* Only the words that are wrong, and only if they still are as they were: a program may store into the others. */
static void mend_here(const struct scrub *s, const struct store_copy *c)
{
    for (uint32_t at = 0; at < s->len; at += WORD) {
        uint64_t is, should;
        memcpy(&is, s->image + at, WORD);
        memcpy(&should, s->image + SCRUB_BLOCK + at, WORD);
        if (is != should)
            (void)atomic_compare_exchange_strong((_Atomic uint64_t *)(void *)(c->base + s->offset + at), &is, should);
    }
}

static void fetched(struct agent *a)
{
    struct scrub *s = &a->scrub;
    const struct store_copy *c = store_copy(&a->store, s->seg, s->slot);
    struct patch patch = {.seg = s->seg, .slot = s->slot, .offset = s->offset, .len = s->len};
    find_place(s);
    if (!repair_is_in_range(c, s->offset, s->len) ||
        scrub_sum(s->image + SCRUB_BLOCK, s->len) != s->answer[s->from].sum[0]) {
        scrub_leave(a);
        return;
    }
    FAULT_POINT("push.scrub_mends");
    if (s->wrong & 1)
        mend_here(s, c);
    for (int i = 1; i < s->nodes; i++)
        if (s->wrong >> i & 1)
            claim_add(a, &a->repairs.of[s->copyset], view_copy_at(&a->view.copyset[s->copyset], s->node[i]), LIFE_NONE,
                      &patch, false);
    s->state = SCRUB_SPREAD;
}

bool scrub_takes(struct agent *a, int from, const struct msg_patch *m, const void *body)
{
    struct scrub *s = &a->scrub;
    if (s->state != SCRUB_FETCH || from != s->node[s->from] || m->of.at.seg != s->seg || m->of.at.slot != s->slot ||
        m->of.generation != s->generation || m->of.at.offset < s->offset ||
        m->of.at.offset - s->offset + m->len > s->len)
        return false;
    memcpy(s->image + SCRUB_BLOCK + (m->of.at.offset - s->offset), body, m->len);
    s->came += m->len;
    if (s->came >= s->len)
        fetched(a);
    return true;
}

void scrub_spread(struct agent *a, int copyset)
{
    struct scrub *s = &a->scrub;
    if (!scrub_holds(a, copyset) || s->state != SCRUB_SPREAD)
        return;
    tell_copies(a, s->wrong, true);
    scrub_leave(a);
}
