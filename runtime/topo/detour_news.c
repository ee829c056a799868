/* What a source hears of broken cables, and what it passes on. Per cable, the latest news counts:
 *
 *     found broken, or told so  --> left alone for 1 to 16 times as long as it has been out (`forget`)
 *     a message came through    --> works; with `tell` the entry stays, so that others hear of it (detour.c)
 */
#include "runtime/topo/detour.h"

#include <assert.h>

/* How long a cable that was found broken is left alone: as long as it has been out already. Sources differ, so that a
 * few of them try it first and the others hear from those. */
static uint64_t retry_after(const struct detour *d, const struct detour_source *s, const struct detour_fault *f)
{
    uint64_t wait = f->last_ns - f->first_ns;
    wait = wait < d->config.retry_ns ? d->config.retry_ns : wait;
    wait = wait > d->config.retry_max_ns ? d->config.retry_max_ns : wait;
    uint32_t turn = ((uint32_t)s->endpoint * 0x9e3779b1u ^ (uint32_t)f->cable * 0x85ebca6bu) >> 22;
    return f->last_ns + wait + (wait * 15 * turn >> 10);
}

void detour_faulted(struct detour *d, struct detour_source *s, int32_t cable, uint64_t now)
{
    assert(cable >= 0 && cable < fabric_links(d->fabric));
    struct detour_fault *f = detour_faults_add(&s->faults, cable, d->config.max_faults);
    if (!f)
        return; /* out of memory: the next notification tries again */
    if (f->works)
        f = detour_faults_renew(&s->faults, f);
    if (f->works || f->last_ns == 0)
        f->first_ns = now;
    f->works = false;
    f->count++;
    f->last_ns = now;
    f->retry_ns = retry_after(d, s, f);
    if (!f->permanent && f->count >= d->config.threshold) {
        f->permanent = true;
        s->faults.version++;
    }
}

void detour_told(struct detour *d, struct detour_source *s, const struct detour_news *news, uint64_t now)
{
    assert(news->cable >= 0 && news->cable < fabric_links(d->fabric));
    if (now > news->seen_ns + d->config.retry_max_ns)
        return; /* an old story */
    struct detour_fault *f = detour_faults_add(&s->faults, news->cable, d->config.max_faults);
    if (!f || f->last_ns >= news->seen_ns)
        return;
    bool first = f->last_ns == 0;
    if (!first && f->works != news->works)
        f = detour_faults_renew(&s->faults, f);
    if (!news->works && (first || f->works || news->since_ns < f->first_ns))
        f->first_ns = news->since_ns;
    if (news->works) {
        f->permanent = false;
        f->count = 0;
    }
    f->works = news->works;
    f->last_ns = news->seen_ns;
    f->retry_ns = retry_after(d, s, f);
}

int detour_recall(struct detour *d, struct detour_source *s, uint64_t now, int max, struct detour_news *news)
{
    enum { LATEST = 8 };
    struct detour_faults *t = &s->faults;
    int n = 0;
    for (int i = 0; i < LATEST && t->used > LATEST && n < max / 2; i++) {
        const struct detour_fault *f = &t->entry[t->used - 1 - s->turn_latest++ % LATEST];
        if (now <= f->last_ns + d->config.retry_max_ns)
            news[n++] = (struct detour_news){f->cable, f->works, f->first_ns, f->last_ns};
    }
    for (uint32_t left = t->used; left > 0 && t->used && n < max; left--) {
        const struct detour_fault *f = &t->entry[s->turn++ % t->used];
        if (now > f->last_ns + 2 * d->config.retry_max_ns)
            detour_faults_remove(t, f->cable);
        else if (now <= f->last_ns + d->config.retry_max_ns)
            news[n++] = (struct detour_news){f->cable, f->works, f->first_ns, f->last_ns};
    }
    return n;
}
