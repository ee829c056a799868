/* How long silence is waited out before it is a death.
 *
 * A verdict is for ever, so waiting is the rule and has to cost something before it ends:
 *
 *   its kernel says that it is gone               nothing to wait for: at once (detector.c)
 *   neither it nor its host answers               limit_ns; STAKE_TIMES as long where its death would cost data or the
 *                                                 job;
 *                                                 SIDE_TIMES where this side may be the smaller one; and more for who
 *                                                 was late
 *   its host answers: stopped, starved, hung      never, unless somebody waits for it: then stopped_ns from when both
 *   are so
 *
 * Lateness (Lifeguard). A member whose own clock was not looked at in time is a bad judge for a while, and a member
 * that says so of itself is likely to be late again: a limit grows by MEMBER_LATE_TIMES what each of both was late by,
 * but by no more than itself.
 *
 * The larger side. Where several fall silent at once it is the network, and maybe we are those who are cut off. Before
 * a verdict on a silent host all others are asked, of many a sample; if not surely more than half of the view is heard,
 * the limit is longer: the larger side will have decided by then, or the network has healed. Safety does not hang on
 * it (quorum.c). */
#include "detect/member_internal.h"

enum { STAKE_TIMES = 4, SIDE_TIMES = 2 };
#define LATE_UNIT_NS (10ull * 1000 * 1000)       /* of what is published, in a byte */
#define LATE_HALF_NS (8ull * 1000 * 1000 * 1000) /* after which half of it counts */
#define TOLD_AFTER_NS (1000ull * 1000 * 1000)

/* ------------------------------------------------------------------------------------------------ lateness */

static uint64_t own_lateness(const struct member *m)
{
    uint64_t halvings = (m->now - m->patience.late_at) / LATE_HALF_NS;
    return halvings < 32 ? m->patience.lateness >> halvings : 0;
}

/* The room that its limit has for that is used up. */
static void tell_late(struct member *m, uint64_t by)
{
    struct member_report r = {
        .kind = MEMBER_REPORT_LATE, .node = m->p.self, .epoch = m->ledger.epoch, .now_ns = m->now, .limit_ns = by};
    if (MEMBER_LATE_TIMES * by <= m->p.limit_ns || by < 2 * m->patience.late_told)
        return;
    m->patience.late_told = by;
    if (m->ops.report)
        m->ops.report(m->ops.user, &r);
}

void patience_late(struct member *m, uint64_t by)
{
    m->patience.lateness = later(own_lateness(m), by);
    m->patience.late_at = m->now;
    tell_late(m, by);
}

unsigned patience_publish(const struct member *m)
{
    uint64_t units = own_lateness(m) / LATE_UNIT_NS;
    return units < 255 ? (unsigned)units : 255;
}

uint64_t patience_published(unsigned byte)
{
    return byte * LATE_UNIT_NS;
}

uint64_t member_beat(const struct member *m, uint64_t number)
{
    return (number & ((1ull << MEMBER_BEAT_BITS) - 1)) | (uint64_t)patience_publish(m) << MEMBER_BEAT_BITS;
}

static uint64_t room_for(const struct member *m, uint64_t lateness)
{
    uint64_t room = MEMBER_LATE_TIMES * lateness;
    return room < m->p.limit_ns ? room : m->p.limit_ns;
}

/* ------------------------------------------------------------------------------------------------ stakes and waits */

void member_stake(struct member *m, int node, enum member_stake stake, uint64_t now)
{
    if (node < 0 || node >= m->p.n || m->halted)
        return;
    member_enter(m, now);
    struct idset *sets[] = {&m->patience.costly, &m->patience.fatal};
    for (int i = 0; i < 2 && !m->halted; i++) {
        bool is = stake == (i ? MEMBER_FATAL : MEMBER_COSTLY), was = idset_has(sets[i], node);
        if (is && !was)
            member_put(m, sets[i], node);
        else if (!is && was && !idset_del(sets[i], node))
            member_halt(m, "out of memory");
    }
    member_leave(m);
}

static struct waiting *waiting_find(const struct patience *p, int node)
{
    for (int i = 0; i < p->n_waiting; i++)
        if (p->waiting[i].node == node)
            return &p->waiting[i];
    return NULL;
}

void member_waits(struct member *m, int node, uint64_t until, uint64_t now)
{
    struct patience *pa = &m->patience;
    if (node < 0 || node >= m->p.n || node == m->p.self || m->halted)
        return;
    member_enter(m, now);
    struct waiting *w = waiting_find(pa, node);
    if (w && w->until < now)
        w->since = m->t;
    if (!w && grow((void **)&pa->waiting, &pa->cap_waiting, pa->n_waiting + 1, sizeof *w)) {
        w = &pa->waiting[pa->n_waiting++];
        *w = (struct waiting){.node = node, .since = m->t};
    }
    if (w)
        w->until = until; /* without memory for it nobody waits: it is told again */
    if (until > now)
        detector_check(m, node, "waited for"); /* others watch it, and it is we who judge */
    member_leave(m);
}

static void forget_old_waits(struct member *m)
{
    struct patience *pa = &m->patience;
    for (int i = 0; i < pa->n_waiting;) {
        if (pa->waiting[i].until < m->now || !is_live(m, pa->waiting[i].node))
            pa->waiting[i] = pa->waiting[--pa->n_waiting];
        else
            i++;
    }
}

static uint64_t sooner_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The agreement waits, too: for each answer to a phase, and for a coordinator that takes nothing. NEVER: nobody waits
 * for the node. */
static uint64_t patience_waited_since(const struct member *m, int node)
{
    const struct waiting *w = waiting_find(&m->patience, node);
    uint64_t began = w && w->until >= m->now ? w->since : NEVER;
    if (wave_waits_for(m, node))
        began = sooner_of(began, m->wave.started);
    if (node == agreement_coordinator(m) && (m->events.n_mine || m->verdicts.n) && !m->report.taken)
        began = sooner_of(began, m->report.since);
    if (node == agreement_coordinator(m) && m->proposal.open)
        began = sooner_of(began, m->proposal.since);
    return began;
}

bool patience_is_over(const struct member *m, const struct target *tg, uint64_t sign)
{
    uint64_t waited = patience_waited_since(m, tg->node);
    if (m->p.stopped_ns == MEMBER_NEVER || waited == NEVER)
        return false;
    return m->t >= later(sign, waited) + m->p.stopped_ns;
}

/* ------------------------------------------------------------------------------------------------ the larger side */

static uint64_t hearing_window(const struct member *m)
{
    return later(m->p.limit_ns / 2, m->p.late_ns);
}

bool patience_hears_most(const struct member *m)
{
    return m->patience.hearing.passed_at && since(m, m->patience.hearing.passed_at) < hearing_window(m);
}

/* All others of the view; of many, some at random, silent ones among them. */
static void draw(struct member *m)
{
    struct hearing *h = &m->patience.hearing;
    int others = member_count(m) - 1, at = (int)rng_below(&m->rng, (uint64_t)m->p.n);
    h->n = 0;
    h->all = others <= SAMPLE_MAX;
    for (int i = 0; i < m->p.n && h->n < SAMPLE_MAX && h->n < others; i++) {
        int node = h->all ? (at + i) % m->p.n : (int)rng_below(&m->rng, (uint64_t)m->p.n);
        if (node != m->p.self && is_member(m, node))
            h->node[h->n++] = node;
    }
}

static bool hearing_passes(const struct member *m)
{
    const struct hearing *h = &m->patience.hearing;
    int heard = __builtin_popcount(h->heard);
    return h->all ? 2 * (heard + 1) > member_count(m) : 4 * heard >= 3 * h->n;
}

void patience_want(struct member *m, const struct target *tg, uint64_t sign)
{
    m->patience.hearing.wanted |= tg->state == TARGET_SUSPECT && m->t >= sign + m->p.limit_ns / 4;
}

void patience_heard(struct member *m, int node)
{
    struct hearing *h = &m->patience.hearing;
    for (int i = 0; h->active && i < h->n; i++)
        if (h->node[i] == node)
            h->heard |= 1u << i;
}

static void hearing_ping(struct member *m)
{
    struct hearing *h = &m->patience.hearing;
    for (int i = 0; i < h->n; i++) {
        struct datagram ping = {.type = DATAGRAM_PING, .nonce = detector_nonce(m)};
        if (!(h->heard >> i & 1))
            member_post_direct(m, h->node[i], &ping);
    }
    h->next_ping = m->t + h->gap;
    h->gap = sooner_of(2 * h->gap, m->p.late_ns);
}

void patience_tick(struct member *m)
{
    struct hearing *h = &m->patience.hearing;
    forget_old_waits(m);
    if (h->active && hearing_passes(m)) {
        h->active = false;
        h->passed_at = m->t;
    }
    if (h->active && since(m, h->start) >= hearing_window(m))
        h->active = false;
    if (m->contact.check.active) /* there is not even a quorum */
        h->active = false;
    else if (!h->active && h->wanted && (!h->passed_at || since(m, h->passed_at) >= hearing_window(m) / 2)) {
        draw(m);
        h->active = true;
        h->heard = 0;
        h->start = h->next_ping = m->t;
        h->gap = m->p.ping_ns;
    }
    if (h->active && m->t >= h->next_ping)
        hearing_ping(m);
}

uint64_t patience_deadline(const struct member *m)
{
    return m->patience.hearing.active ? m->patience.hearing.next_ping : NEVER;
}

/* ------------------------------------------------------------------------------------------------ limits */

static int stake_times(const struct member *m, int node, enum member_why *why)
{
    *why = idset_has(&m->patience.fatal, node)    ? MEMBER_WHY_JOB
           : idset_has(&m->patience.costly, node) ? MEMBER_WHY_DATA
                                                  : MEMBER_WHY_NONE;
    return *why ? STAKE_TIMES : 1;
}

uint64_t patience_silent(const struct member *m, const struct target *tg, enum member_why *why)
{
    int times = stake_times(m, tg->node, why);
    if (times < SIDE_TIMES && !patience_hears_most(m)) {
        times = SIDE_TIMES;
        *why = MEMBER_WHY_SIDE;
    }
    uint64_t room = room_for(m, own_lateness(m)) + room_for(m, tg->late_ns);
    if (*why == MEMBER_WHY_NONE && room > m->p.limit_ns / 8)
        *why = MEMBER_WHY_LATE;
    return (uint64_t)times * m->p.limit_ns + room;
}

uint64_t patience_most(const struct member *m)
{
    return (uint64_t)(m->patience.costly.count || m->patience.fatal.count ? STAKE_TIMES : SIDE_TIMES) * m->p.limit_ns;
}

/* They may only have stood still for a moment, and deciding nothing is safe. */
uint64_t patience_alone(const struct member *m)
{
    return later(m->p.limit_ns, 2 * m->p.answer_ns);
}

/* ------------------------------------------------------------------------------------------------ for people */

bool member_doubt(const struct member *m, int node, struct member_doubt *out)
{
    const struct detector *d = &m->detector;
    const struct target *tg = NULL;
    for (int i = 0; i < d->n_targets && !tg; i++)
        if (d->targets[i].node == node &&
            (d->targets[i].state == TARGET_SUSPECT || d->targets[i].state == TARGET_BEYOND))
            tg = &d->targets[i];
    if (!tg)
        return false;
    uint64_t sign = target_sign(m, tg), host = target_host_sign(m, tg), waited = patience_waited_since(m, node);
    bool host_answers = target_host_answers(m, tg);
    *out = (struct member_doubt){.node = node, .since_ns = sign + m->blind, .waited_for = waited != NEVER};
    if (tg->state == TARGET_BEYOND) {
        out->how = MEMBER_IS_BEYOND;
        out->limit_ns = 2 * patience_silent(m, tg, &out->why);
    } else if (host_answers) {
        out->how = target_is_stopped(m, tg) ? MEMBER_IS_STOPPED : MEMBER_IS_HUNG;
        bool never = waited == NEVER || m->p.stopped_ns == MEMBER_NEVER;
        out->limit_ns = never ? MEMBER_NEVER : later(sign, waited) + m->p.stopped_ns - sign;
    } else {
        out->how = MEMBER_IS_SILENT;
        out->limit_ns = patience_silent(m, tg, &out->why) + (host > sign ? host - sign : 0);
    }
    return true;
}

/* In a suspicion that lasts, and once more if it turns out to be something else, or if somebody waits for it now. */
void patience_tell(struct member *m, struct target *tg)
{
    struct member_doubt doubt;
    uint64_t sign = target_sign(m, tg);
    if (m->t < sign + sooner_of(TOLD_AFTER_NS, later(m->p.limit_ns / 2, m->p.late_ns)) ||
        !member_doubt(m, tg->node, &doubt))
        return;
    unsigned told = tg->how_told >> 2 * (unsigned)doubt.how & 3;
    if (told & 2 || (told && !doubt.waited_for))
        return;
    tg->how_told |= 1u << (2 * (unsigned)doubt.how + doubt.waited_for);
    struct member_report r = {.kind = MEMBER_REPORT_PATIENCE,
                              .node = tg->node,
                              .epoch = m->ledger.epoch,
                              .now_ns = m->now,
                              .text = member_how_name(doubt.how),
                              .doubt = doubt,
                              .limit_ns = doubt.limit_ns};
    if (m->ops.report)
        m->ops.report(m->ops.user, &r);
}

const char *member_how_name(enum member_how how)
{
    static const char *const names[] = {"silent, as is its host", "stopped, says its host",
                                        "not answering, though its host is", "out of reach from here"};
    return names[how];
}

const char *member_why_name(enum member_why why)
{
    static const char *const names[] = {"", "its death would lose data", "its death would end the job",
                                        "this side may be the smaller one", "one of both was late itself"};
    return names[why];
}
