#include "runtime/agent/pace.h"

/* Blocks sent up to `last` were sent under the old one. */
static void set_window(struct pace *p, unsigned window, uint64_t last)
{
    p->window = window < PACE_MIN ? PACE_MIN : window > PACE_MAX ? PACE_MAX : window;
    p->sum_ns = 0;
    p->samples = 0;
    p->old_until = last;
}

/* The window is full of blocks sent under it: how many of them waited? */
static void judge(struct pace *p, uint64_t last)
{
    uint64_t mean = p->sum_ns / p->samples;
    if (p->short_ns > 2 * mean)
        p->short_ns = mean;
    double waiting = p->window * (1 - (double)p->short_ns / (double)mean);
    unsigned too_many = waiting > PACE_HIGH ? 1 + (unsigned)(waiting - PACE_HIGH) / 2 : 0;
    set_window(p, p->window + (waiting < PACE_LOW) - too_many, last);
}

static void took(struct pace *p, const struct pace_block *b, uint64_t now, uint64_t last)
{
    if (b->position <= p->old_until)
        return;
    p->sum_ns += now > b->at ? now - b->at : 1;
    p->samples++;
    if (!p->short_ns) {
        if (p->samples < PACE_BASE)
            return;
        p->short_ns = p->sum_ns / p->samples;
        p->found_at = now;
        set_window(p, p->before, last);
    } else if (now - p->found_at > PACE_ANEW_NS) { /* the way may have become another one */
        p->short_ns = 0;
        p->before = p->window;
        set_window(p, PACE_MIN, last);
    } else if (p->samples >= p->window) {
        judge(p, last);
    }
}

bool pace_may_send(struct pace *p, uint64_t acked, uint64_t now)
{
    if (!p->window)
        set_window(p, PACE_MIN, 0);
    while (p->count && p->block[p->first].position <= acked) {
        const struct pace_block b = p->block[p->first];
        took(p, &b, now, p->block[(p->first + p->count - 1) % PACE_MAX].position);
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
