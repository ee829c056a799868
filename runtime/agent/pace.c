#include "runtime/agent/pace.h"

static void took(struct pace *p, const struct pace_block *b, uint64_t ns, uint64_t last)
{
    if (++p->samples % PACE_ANEW == 0) { /* the way may have become another one: with a short queue we see */
        p->window = PACE_MIN;
        p->good = 0;
        p->slow_until = last;
        p->best_ns = 0;
    }
    if (b->position <= p->slow_until && p->best_ns == 0)
        return;
    if (p->best_ns == 0 || ns < p->best_ns)
        p->best_ns = ns ? ns : 1;
    if (ns > p->best_ns * PACE_SLOW) {
        if (b->position <= p->slow_until)
            return;
        p->window -= p->window / 4;
        p->window = p->window < PACE_MIN ? PACE_MIN : p->window;
        p->slow_until = last;
        p->good = 0;
    } else if (++p->good >= p->window) {
        p->window += p->window < PACE_MAX;
        p->good = 0;
    }
}

bool pace_may_send(struct pace *p, uint64_t acked, uint64_t now)
{
    if (!p->window)
        p->window = PACE_FIRST;
    while (p->count && p->block[p->first].position <= acked) {
        const struct pace_block b = p->block[p->first];
        took(p, &b, now - b.at, p->block[(p->first + p->count - 1) % PACE_MAX].position);
        p->first = (p->first + 1) % PACE_MAX;
        p->count--;
    }
    return p->count < p->window;
}

void pace_sent(struct pace *p, uint64_t position, uint64_t now)
{
    p->block[(p->first + p->count) % PACE_MAX] = (struct pace_block){position, now};
    p->count++;
}
