#include <stdlib.h>

#include "runtime/agent/repair_int.h"
#include "runtime/base/fault.h"
#include "runtime/wire/doubt.h"

enum { WORD = 8 };

void claim_add(struct agent *a, struct repair *r, int copy, struct life writer, const struct patch *patch, bool living)
{
    struct claim *c = malloc(sizeof *c);
    if (!c) {
        agent_break(a, "out of memory for the patches of a dead writer");
        return;
    }
    *c = (struct claim){.copy = copy, .writer = writer, .patch = *patch, .living = living};
    *r->claims_tail = c;
    r->claims_tail = &c->next;
}

void claim_free_all(struct repair *r)
{
    for (struct claim *c = r->claims, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    r->claims = r->at = NULL;
    r->claims_tail = &r->claims;
}

/* The writer went on to another copy when this one was whole: so says a claim of the other about the same put. */
static bool went_on(const struct repair *r, const struct claim *c)
{
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->copy != c->copy && o->patch.torn && o->patch.level > c->patch.level && o->patch.put == c->patch.put &&
            life_equal(o->writer, c->writer) && o->patch.seg == c->patch.seg &&
            o->patch.offset < c->patch.offset + c->patch.len && c->patch.offset < o->patch.offset + o->patch.len)
            return true;
    return false;
}

/* The writer has begun a later put to these bytes at another copy: what the claim is about was complete. */
static bool is_outdated(const struct repair *r, const struct claim *c)
{
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->copy != c->copy && o->patch.torn && o->patch.put > c->patch.put && life_equal(o->writer, c->writer) &&
            o->patch.seg == c->patch.seg && o->patch.offset < c->patch.offset + c->patch.len &&
            c->patch.offset < o->patch.offset + o->patch.len)
            return true;
    return false;
}

/* A patch with the rest of its words: what is moved in a repair are whole ones, or half of a put that is under way
 * there would be moved, and half not. */
static struct patch in_words(const struct patch *p)
{
    struct patch words = *p;
    uint64_t head = p->offset % WORD;
    words.offset -= head;
    words.len = (p->len + head + WORD - 1) / WORD * WORD;
    return words;
}

/* A copy in which nothing tears the bytes, 0: none. The writer lets one copy at a time be torn, the one that it came to
 * last: any other one is whole. */
static int untorn_copy(const struct repair *r, const struct view_copyset *g, const struct patch *p)
{
    bool torn[COPIES_MAX] = {true};
    for (int i = 1; i < g->copies; i++)
        torn[i] = !g->copy[i].whole;
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->patch.torn && o->patch.seg == p->seg && o->patch.offset < p->offset + p->len &&
            p->offset < o->patch.offset + o->patch.len && !went_on(r, o))
            torn[o->copy] = true;
    for (int i = 1; i < g->copies; i++)
        if (!torn[i])
            return i;
    return 0;
}

/* Where the claim's bytes are whole, and which bytes to take from there: the rest of their words, too, if that is as
 * whole. */
int claim_whole_copy(const struct repair *r, const struct view_copyset *g, const struct claim *c, struct patch *bytes)
{
    *bytes = in_words(&c->patch);
    int copy = untorn_copy(r, g, bytes);
    if (copy)
        return copy;
    *bytes = c->patch;
    copy = untorn_copy(r, g, bytes);
    if (copy)
        return copy;
    for (int i = 1; i < g->copies && !is_outdated(r, c); i++)
        if (g->copy[i].whole)
            return i; /* several writers raced for the patch: any value will do, the same everywhere */
    return 0;
}

bool claim_must_fetch(const struct repair *r, const struct claim *c)
{
    return !c->living && c->copy == 0 && c->patch.torn && !went_on(r, c);
}

/* A process of this node that lives may stand still in the middle of these bytes, here. A copy that is filled gets them
 * from another one, where they are whole; they are not stored here, where the process may go on at any moment. */
int claim_copy_around(const struct repair *r, const struct view_copyset *g, const struct claim *c, struct patch *bytes)
{
    *bytes = in_words(&c->patch);
    return c->living && c->copy == 0 && repair_is_one_filled(g) ? untorn_copy(r, g, bytes) : 0;
}

static bool overlap(const struct patch *p, const struct patch *q)
{
    return p->seg == q->seg && p->offset < q->offset + q->len && q->offset < p->offset + p->len;
}

/* What the others get of the claim: the rest of its words, too, if nobody who lives may have torn that here. */
struct patch claim_to_spread(const struct repair *r, const struct claim *c)
{
    struct patch words = in_words(&c->patch);
    for (const struct claim *o = r->claims; o; o = o->next)
        if (o->living && o->copy == 0 && overlap(&o->patch, &words) && !overlap(&o->patch, &c->patch))
            return c->patch;
    return words;
}

/* The next block ends before what the copy has from another one; false: it would begin in it, and is behind it now. */
bool claim_goes_around(const struct repair *r, struct fill *f, uint64_t *end)
{
    for (const struct claim *c = r->claims; c; c = c->next) {
        const struct patch p = in_words(&c->patch);
        if (!c->around || p.seg != f->seg || p.offset + p.len <= f->offset || p.offset >= *end)
            continue;
        if (p.offset <= f->offset) {
            f->offset = p.offset + p.len;
            return false;
        }
        *end = p.offset;
    }
    return true;
}

/* The primary of the copyset gets it of another copy's node, and the generation is this one: that copy's place. Else
 * -1. */
static int place_of(const struct agent *a, int copyset, uint64_t generation, int from)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    int copy = view_copy_at(g, from);
    return repair_is_primary(a, g) && copy > 0 && generation == g->generation && g->mode == COPYSET_REPAIR ? copy : -1;
}

static void all_doubts_told(struct agent *a, int from, const struct msg_doubt_end *m)
{
    int copyset = repair_copyset_of(a, m->slot, m->class);
    int copy = copyset >= 0 ? place_of(a, copyset, m->generation, from) : -1;
    if (copy < 0)
        return;
    FAULT_POINT("push.doubts_told");
    a->repairs.of[copyset].told_by[copy] = true;
}

static void doubt_told(struct agent *a, int from, const struct msg_doubt *m)
{
    const struct store_segment *s = store_find(&a->store, m->at.seg);
    int copyset = s ? repair_copyset_of(a, m->at.slot, s->redundancy) : -1; /* -1: freed meanwhile */
    int copy = copyset >= 0 ? place_of(a, copyset, m->generation, from) : -1;
    if (copy < 0)
        return;
    struct patch patch = {.seg = m->at.seg,
                          .slot = m->at.slot,
                          .offset = m->at.offset,
                          .len = m->bytes,
                          .torn = m->torn,
                          .level = (uint8_t)(m->level < COPIES_MAX ? m->level : COPIES_MAX - 1),
                          .put = m->put};
    claim_add(a, &a->repairs.of[copyset], copy, m->writer, &patch, m->living);
}

void claim_receive(struct agent *a, int from, const struct wire *w)
{
    struct msg_doubt doubt;
    struct msg_doubt_end end;
    if (msg_doubt_is_end(w)) {
        msg_doubt_end_decode(w, &end);
        all_doubts_told(a, from, &end);
    } else {
        msg_doubt_decode(w, &doubt);
        doubt_told(a, from, &doubt);
    }
}
