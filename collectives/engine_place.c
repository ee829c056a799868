/* Data of a step that is waited for right now, piece by piece as they come: to where they belong, or, where they are to
 * be combined next, combined with what is there. So long messages are not gathered first, and copied once instead of
 * three times.
 *
 * A piece counts only while its step is waited for. Whatever ends the attempt ends that, for the rest of the message,
 * too; what was written until then is as good as the output of any attempt that ended. */
#include <string.h>

#include "collectives/engine_int.h"

/* The instance that waits for this message, at its step `at`, or NULL. */
static struct instance *waiting(const struct engine *e, const struct message_head *h, int from)
{
    struct instance *i = e->instances;
    while (i && i->seq != h->seq)
        i = i->next;
    if (!i || h->kind != MESSAGE_DATA || i->state != INSTANCE_MOVING || !i->built || i->at == i->schedule.n)
        return NULL;
    const struct schedule_step *s = &i->schedule.step[i->at];
    bool fits = s->op == SCHEDULE_RECV && roster_member(i->members, s->peer) == from && s->tag == h->tag &&
                h->attempt == i->attempt && h->epoch == roster_epoch(i->members) && h->signature == i->signature;
    return fits ? i : NULL;
}

/* What came at that step is needed by nothing after the next one. */
static bool is_needed_once(const struct instance *i)
{
    const struct schedule_step *came = &i->schedule.step[i->at];
    for (size_t k = i->at + 2; k < i->schedule.n; k++) {
        const struct schedule_step *s = &i->schedule.step[k];
        if (s->op == SCHEDULE_RECV && s->to.buffer == came->to.buffer && s->to.at <= came->to.at &&
            s->to.at + s->len >= came->to.at + came->len)
            return true;
        bool reads = s->op == SCHEDULE_SEND || s->op == SCHEDULE_COMBINE;
        if ((reads && schedule_overlap(&s->to, &came->to, s->len, came->len)) ||
            (s->op != SCHEDULE_SEND && s->op != SCHEDULE_RECV &&
             schedule_overlap(&s->from, &came->to, s->len, came->len)))
            return false;
    }
    return true;
}

/* All that the next step does is to combine what comes now. */
static bool is_combined_next(const struct instance *i)
{
    const struct schedule_step *s = &i->schedule.step[i->at], *next = s + 1;
    return i->at + 1 < i->schedule.n && next->op == SCHEDULE_COMBINE && s->to.buffer == SCHEDULE_TMP &&
           next->from.buffer == SCHEDULE_TMP && next->from.at == s->to.at && next->len == s->len &&
           i->call.element.op != ELEMENT_USER && ENGINE_PIECE_UNIT % element_size(&i->call.element) == 0 &&
           is_needed_once(i);
}

static const struct schedule_step *combined(const struct instance *i)
{
    return i->combining ? &i->schedule.step[i->at + 1] : NULL;
}

static bool may_begin(struct instance *i, size_t total)
{
    i->combining = is_combined_next(i);
    const struct schedule_step *s = &i->schedule.step[i->at], *next = combined(i);
    bool good =
        total == s->len && !instance_sends(i, &s->to, s->len) && !(next && instance_sends(i, &next->to, next->len));
    i->placed = 0;
    i->placing = good;
    return good;
}

static void put(struct instance *i, const uint8_t *data, size_t len)
{
    const struct schedule_step *s = &i->schedule.step[i->at], *next = combined(i);
    const struct element *el = &i->call.element;
    uint8_t *place = engine_bytes_of(i, s->to) + i->placed;
    bool aligned = (uintptr_t)data % ENGINE_PIECE_UNIT == 0;
    if (!next || !aligned)
        memcpy(place, data, len);
    if (!next)
        return;
    const uint8_t *from = aligned ? data : place;
    uint8_t *to = engine_bytes_of(i, next->to) + i->placed;
    element_combine(el, to, next->from_is_left ? from : to, next->from_is_left ? to : from, len / element_size(el),
                    NULL);
}

bool engine_place(struct engine *e, int from, const void *head, size_t total, size_t at, const void *data, size_t len,
                  uint64_t now)
{
    struct message_head h;
    bool known = message_head_read(head, MESSAGE_HEAD, &h) && h.group == e->id && from != e->self &&
                 roster_has(engine_roster(e), from);
    struct instance *i = known ? waiting(e, &h, from) : NULL;
    if (at == 0 && (!i || !may_begin(i, total)))
        return false;
    if (!i || !i->placing || at != i->placed || len > total - at)
        return true;
    put(i, data, len);
    i->placed += len;
    if (i->placed < total)
        return true;
    i->placing = false;
    i->behind = h.behind > i->behind ? h.behind : i->behind;
    i->at += combined(i) ? 2 : 1;
    e->now = now;
    instance_progress(e, i);
    return true;
}
