#include "runtime/client/spin.h"

enum {
    MOVE_EVERY_NS = 2000000,
    VAIN_WEIGHT = 4, /* of a long look in vain, to one that is not */
    VAIN_MAX = 16,
    PAUSE_MIN = 64, /* short looks */
    PAUSE_MAX = 4096,
    TURN_MIN_NS = 2000, /* offering the processor in vain takes less */
    LENT_MAX_NS = 10000000,
};

static bool has_room(const struct looks *l)
{
    return l->long_ns > l->short_ns;
}

struct spin spin_begin(struct looks *l, uint64_t now, bool by_agent)
{
    bool longer = !by_agent && has_room(l);
    contended_pause(&l->contended);
    if (!by_agent && contended_is(&l->computed, now))
        return (struct spin){.begun = now, .keep = UINT64_MAX, .until = now};
    if (!longer || l->pause) {
        l->pause -= longer;
        return (struct spin){
            .begun = now, .keep = now, .until = now + l->short_ns, .lent = LENT_MAX_NS, .by_agent = by_agent};
    }
    return (struct spin){
        .begun = now, .keep = UINT64_MAX, .until = now + l->long_ns, .lent = LENT_MAX_NS, .longer = true};
}

void spin_end(struct looks *l, const struct spin *spin, bool came)
{
    if (!spin->longer)
        return;
    if (came) {
        l->vain -= l->vain > 0;
        l->pauses = ++l->good >= PAUSE_MIN ? PAUSE_MIN : l->pauses;
        return;
    }
    l->good = 0;
    l->vain += VAIN_WEIGHT;
    if (l->vain < VAIN_MAX)
        return;
    l->vain = 0;
    l->pause = l->pauses < PAUSE_MIN ? PAUSE_MIN : l->pauses;
    l->pauses = l->pause < PAUSE_MAX ? 2 * l->pause : PAUSE_MAX;
}

bool spin_goes_on(struct looks *l, struct spin *spin, uint64_t now, bool came)
{
    if (came) {
        uint64_t until = now + (spin->longer ? l->long_ns : l->short_ns);
        spin->until = until > spin->until ? until : spin->until;
        contended_pause(&l->contended);
        return now < spin->until;
    }
    bool contended = spin->by_agent ? l->few && contended_in_vain(&l->contended, now) : contended_is(&l->computed, now);
    return !contended && now < spin->until;
}

void spin_awake(struct looks *l, struct spin *spin, uint64_t now)
{
    spin->until = now + l->short_ns / 4;
    contended_pause(&l->contended);
}

void spin_lend(struct looks *l, struct spin *spin, uint64_t since, uint64_t now)
{
    uint64_t away = now - since;
    if (!spin->by_agent)
        contended_took(&l->computed, away, away >= CONTENDED_LONG_NS, now);
    if (away < TURN_MIN_NS)
        return;
    away = away < spin->lent ? away : spin->lent;
    spin->lent -= away;
    spin->until += away;
}

bool spin_moves(struct looks *l, uint64_t now)
{
    if (!has_room(l) || now < l->move_at)
        return false;
    l->move_at = now + MOVE_EVERY_NS;
    return true;
}
