/* What a source hears of broken cables, and what it passes on. Per cable, the latest news counts:
 *
 *     found broken, or told so  --> left alone for as long as it has been out, or longer (`forget`)
 *     a message came through    --> works; with `tell` the entry stays, so that others hear of it (detour.c)
 */
#include "runtime/topo/detour_search.h"

#include <assert.h>

enum { LOOKS = 4 }; /* entries looked at for each that may be passed on, where most have been often enough */

static uint64_t before(uint64_t now, uint64_t age)
{
    return age < now ? now - age : 0;
}

/* When something was heard of. What is older than the clock is taken for as old as that, as 0 stands for never. */
static uint64_t time_of(uint64_t now, uint64_t age)
{
    return age < now ? now - age : 1;
}

/* How long a cable that was found broken is left alone: as long as it has been out already, as then it is as likely to
 * work as not when outages have lengths of all orders. Sources differ about long ones, so that a few of them try first
 * and the others hear from those. */
static uint64_t retry_after(const struct detour *d, const struct detour_source *s, const struct detour_fault *f)
{
    uint64_t wait = f->out_ns;
    wait = wait < d->config.retry_ns ? d->config.retry_ns : wait;
    wait = wait > d->config.retry_max_ns ? d->config.retry_max_ns : wait;
    uint64_t turn = ((uint32_t)s->endpoint * 0x9e3779b1u ^ (uint32_t)f->cable * 0x85ebca6bu) >> 22;
    uint64_t spread = wait < d->config.turns_ns ? wait * wait / d->config.turns_ns : wait;
    return f->last_ns + wait + (spread * 15 * turn >> 10);
}

/* It was found broken at `seen`, out_ns after it went out as far as the finder knows; first by somebody at `found`. */
static void note_broken(const struct detour *d, struct detour_source *s, struct detour_fault *f, uint64_t out_ns,
                        uint64_t seen, uint64_t found)
{
    uint64_t since = before(f->last_ns, f->out_ns);
    if (!f->last_ns || f->works || found < f->found_ns)
        f->found_ns = found;
    if (f->last_ns && !f->works && before(seen, since) > out_ns)
        out_ns = before(seen, since); /* it is the same outage */
    f->out_ns = out_ns;
    f->works = false;
    f->told = 0;
    f->last_ns = seen;
    f->retry_ns = retry_after(d, s, f);
    f->lasting = out_ns >= d->config.lasting_ns;
}

void detour_faulted(struct detour *d, struct detour_source *s, int32_t cable, uint64_t out_ns, uint64_t now)
{
    assert(cable >= 0 && cable < fabric_links(d->fabric));
    struct detour_fault *f = detour_faults_add(&s->faults, cable, d->config.max_faults);
    if (!f)
        return; /* out of memory: the next notification tries again */
    if (f->works)
        f = detour_faults_renew(&s->faults, f);
    note_broken(d, s, f, out_ns, time_of(now, 0), time_of(now, 0));
    f->count++;
    if (!f->permanent && f->count >= d->config.threshold) {
        f->permanent = true;
        s->faults.version++;
    }
}

bool detour_is_cable(const struct fabric *f, int32_t link)
{
    return link >= 0 && link < fabric_links(f) && f->neighbor[link] >= 0 && fabric_cable(f, link) == link &&
           !fabric_firm(f, link);
}

/* A lasting fault is remembered until a message came through: it counts for what is expected. */
static bool is_remembered(const struct detour *d, uint64_t out_ns, uint64_t age_ns)
{
    uint64_t more = before(age_ns, 2 * d->config.retry_max_ns);
    return more == 0 || (more - 1) / 16 < out_ns;
}

/* Plans are for the faults that all know: of a lasting one it is told for as long as it is remembered, also that it
 * works again, as otherwise who has not heard of that tells the others once more that it is broken. */
static bool is_planned_for(const struct detour *d, uint64_t out_ns, uint64_t age_ns)
{
    return d->config.plan && out_ns >= d->config.lasting_ns && is_remembered(d, out_ns, age_ns);
}

static uint64_t more(uint64_t age, uint64_t by)
{
    return age < UINT64_MAX - by ? age + by : UINT64_MAX;
}

void detour_told(struct detour *d, struct detour_source *s, const struct detour_news *news, uint64_t now)
{
    /* Rather too old than too new: else what was seen once would be new again each time that it is said, for ever. */
    uint64_t age = more(news->age_ns, d->config.flight_ns), known = more(news->known_ns, d->config.flight_ns);
    bool old = age > d->config.retry_max_ns && !is_planned_for(d, news->out_ns, age);
    if (old || !detour_is_cable(d->fabric, news->cable))
        return; /* an old story, or none of this network's */
    struct detour_fault *f = detour_faults_find(&s->faults, news->cable);
    uint64_t seen = time_of(now, age), found = time_of(now, known);
    if (f && !f->works && !news->works && found < f->found_ns)
        f->found_ns = found; /* old news, of who found it first */
    if (f && f->last_ns >= seen)
        return;
    f = f ? f : detour_faults_add(&s->faults, news->cable, d->config.max_faults);
    if (!f)
        return; /* out of memory: the next news try again */
    if (f->last_ns && f->works != news->works)
        f = detour_faults_renew(&s->faults, f);
    if (news->works)
        detour_faults_end(f, news->out_ns, seen);
    else
        note_broken(d, s, f, news->out_ns, seen, found);
}

/* Does it change another's choice? */
static bool is_worth_telling(const struct detour *d, const struct detour_fault *f, uint64_t now)
{
    uint64_t age = before(now, f->last_ns);
    uint64_t out = f->out_ns > d->config.retry_ns ? f->out_ns : d->config.retry_ns;
    return f->out_ns >= d->config.tell_ns && age <= d->config.retry_max_ns && age <= (f->works ? 16 : 1) * out;
}

static bool is_over(const struct detour *d, const struct detour_fault *f, uint64_t now)
{
    uint64_t age = before(now, f->last_ns);
    if (f->doubts)
        return age > d->config.retry_max_ns;
    if (f->lasting)
        return !is_remembered(d, f->out_ns, age);
    return now > f->retry_ns && !is_worth_telling(d, f, now) && !is_planned_for(d, f->out_ns, age);
}

static struct detour_news news_of(const struct detour_fault *f, uint64_t now)
{
    return (struct detour_news){f->cable, f->works, f->out_ns, before(now, f->last_ns), before(now, f->found_ns)};
}

/* What a call passes on. */
enum telling {
    TELL_NEW,   /* only what has not been passed on often */
    TELL_OFTEN, /* that, too */
    TELL_ALL,   /* and what plans are for */
};

/* Pass it on, unless it has been often enough: whoever is to hear of it has, most likely. */
static int pass_on(const struct detour *d, struct detour_fault *f, enum telling telling, uint64_t now,
                   struct detour_news *news)
{
    bool planned = telling == TELL_ALL && is_planned_for(d, f->out_ns, before(now, f->last_ns));
    if (!planned && !is_worth_telling(d, f, now))
        return 0;
    if (telling == TELL_NEW && f->told >= d->config.tell_times)
        return 0;
    f->told = (uint8_t)(f->told + (f->told < UINT8_MAX));
    *news = news_of(f, now);
    return 1;
}

int detour_recall(struct detour *d, struct detour_source *s, uint64_t now, bool all, int max, struct detour_news *news)
{
    struct detour_faults *t = &s->faults;
    uint32_t latest = max / 2 > 8 ? (uint32_t)max / 2 : 8, most = max > 0 ? LOOKS * (uint32_t)max : 0;
    int n = 0;
    bool often = all || s->recalls++ % d->config.tell_times == 0;
    enum telling telling = all ? TELL_ALL : often ? TELL_OFTEN : TELL_NEW;
    for (uint32_t i = 0; i < latest && t->used > latest && n < max / 2; i++)
        n += pass_on(d, &t->entry[t->used - 1 - s->turn_latest++ % latest], telling, now, &news[n]);
    for (uint32_t left = often || t->used < most ? t->used : most; left > 0 && t->used && n < max; left--) {
        struct detour_fault *f = &t->entry[s->turn++ % t->used];
        if (is_over(d, f, now))
            detour_faults_remove(t, f->cable);
        else
            n += pass_on(d, f, telling, now, &news[n]);
    }
    return n;
}
