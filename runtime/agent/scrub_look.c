/* What a copy says of some blocks. */
#include "runtime/agent/ranks.h"
#include "runtime/agent/scrub_int.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/marks.h"

uint64_t scrub_sum(const void *bytes, size_t len)
{
    return digest(bytes, len, 0);
}

/* Is there memory behind it? What was never touched has none, and must get none by being read. */
static bool is_used(const struct agent *a, const struct store_copy *c, uint64_t offset, size_t len)
{
    return !a->ops.memory_used || a->ops.memory_used(a->ops.user, c->handle, (size_t)offset, len);
}

static uint64_t sum_of(const struct agent *a, const struct store_copy *c, uint64_t offset, size_t len)
{
    static const uint8_t zeros[SCRUB_BLOCK];
    return scrub_sum(is_used(a, c, offset, len) ? c->base + offset : zeros, len);
}

static bool overlaps(const struct patch *p, const struct msg_scrub *m)
{
    return p->len && p->seg == m->at.seg && p->slot == m->at.slot && p->offset < m->at.offset + m->bytes &&
           m->at.offset < p->offset + p->len;
}

/* By plain stores that are under way to this copy, by remote writes, by what a writer left that is dead or gave up. */
static bool is_written(const struct agent *a, const struct msg_scrub *m)
{
    struct patch patch;
    for (const struct doubt *d = a->repairs.doubts; d; d = d->next)
        if (overlaps(&d->patch, m))
            return true;
    for (const struct proc *p = a->ranks.procs; p; p = p->next)
        for (int i = 0; i < INTENT_MAX; i++)
            if (ranks_intent(a, p, i, &patch) && overlaps(&patch, m))
                return true;
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (c->note[i].torn && overlaps(&c->note[i], m))
                return true;
    return false;
}

static uint64_t last_note(const struct agent *a, const struct msg_scrub *m)
{
    uint64_t age = UINT64_MAX;
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (overlaps(&c->note[i], m) && a->now - c->note[i].came_at < age)
                age = a->now - c->note[i].came_at;
    return age;
}

/* Holders set their bits before they store: read after the sum. */
static bool is_stored(const struct store_copy *c, const struct msg_scrub *m)
{
    size_t piece = layout_piece_bytes(c->bytes);
    for (size_t i = (size_t)m->at.offset / piece; i <= (size_t)(m->at.offset + m->bytes - 1) / piece; i++)
        if (atomic_load(&holders_of(c->base, c->bytes)[i]))
            return true;
    return atomic_load(unseen_of(c->base, c->bytes)) != 0;
}

void scrub_look(const struct agent *a, const struct msg_scrub *m, struct scrub_answer *answer)
{
    const struct store_segment *s = m->at.slot < a->view.nodes ? store_find(&a->store, m->at.seg) : NULL;
    const struct store_copy *c = store_copy(&a->store, m->at.seg, m->at.slot);
    struct msg_scrubbed *said = &answer->said;
    answer->here = true;
    *said = (struct msg_scrubbed){.question = m->question,
                                  .status = !c        ? KEEL_ERR_STATE
                                            : c->lost ? KEEL_ERR_DATA_LOST
                                                      : KEEL_OK};
    said->generation = s ? a->view.copyset[copyset_of(m->at.slot, s->redundancy)].generation : 0;
    if (said->status != KEEL_OK || !m->bytes || m->at.offset > c->bytes || m->bytes > c->bytes - m->at.offset ||
        m->bytes > (m->close ? 1 : SCRUB_BLOCKS_MAX) * (uint32_t)SCRUB_BLOCK)
        return;
    for (uint32_t at = 0; at < m->bytes; at += SCRUB_BLOCK) {
        size_t left = m->bytes - at;
        answer->sum[at / SCRUB_BLOCK] = sum_of(a, c, m->at.offset + at, left < SCRUB_BLOCK ? left : SCRUB_BLOCK);
        said->len += sizeof answer->sum[0];
    }
    if (!m->close)
        return;
    said->stored = is_stored(c, m);
    said->written = is_written(a, m);
    said->noted_ns = last_note(a, m);
}
