/* Entry points of the membership core: every one goes through member_enter, which moves the inner clock, and
 * member_leave, which carries out what became due and computes the next deadline. */
#include "detect/member_internal.h"

#include <stdlib.h>

/* A tick may be this late before its delay counts as time in which we were blind. */
#define BLIND_SLACK_NS (10ull * 1000 * 1000)

struct member *member_create(const struct member_params *params, const struct member_ops *ops, uint64_t now)
{
    if (!member_params_ok(params))
        return NULL;
    struct member *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->p = *params;
    m->ops = *ops;
    m->now = m->t = m->created = m->contact.last_sign = now;
    m->deadline = now;
    rng_seed(&m->rng, params->seed * 1000003u + (uint64_t)params->self);
    member_put(m, &m->roster.seen, params->self);
    relays_init(&m->relays);
    m->wave.next_resend = NEVER;
    m->agreement.leading = params->self == 0; /* ballot 0 belongs to node 0 and is promised by all */
    m->report.rto = params->rto_ns;
    m->poll_rto = 4 * params->rto_ns;
    if (join_begin(m))
        detector_rewatch(m);
    if (!m->halted)
        return m;
    member_destroy(m); /* out of memory */
    return NULL;
}

void member_destroy(struct member *m)
{
    if (!m)
        return;
    ledger_free(&m->ledger);
    struct idset *sets[] = {&m->roster.gone, &m->roster.dead,         &m->roster.positive,
                            &m->roster.seen, &m->contact.check.heard, &m->contact.check.hosts,
                            &m->wave.out,    &m->patience.costly,     &m->patience.fatal};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        idset_free(sets[i]);
    free(m->wave.left);
    free(m->wave.acked);
    free(m->detector.watch);
    free(m->patience.waiting);
    free(m->linkmap.words);
    free(m->verdicts.deaths);
    free(m->detector.targets);
    events_free(&m->events);
    free(m);
}

/* ------------------------------------------------------------------------------------------------ the inner clock */

void member_enter(struct member *m, uint64_t now)
{
    if (m->depth++ || now <= m->now)
        return;
    m->now = now;
    uint64_t t = now - m->blind;
    if (m->deadline != NEVER && t > m->deadline + BLIND_SLACK_NS && t > m->t + BLIND_SLACK_NS) {
        uint64_t seen_until = (m->deadline > m->t ? m->deadline : m->t) + BLIND_SLACK_NS;
        if (t > seen_until) {
            if (m->deadline > m->created) /* else it only begins */
                patience_late(m, t - seen_until + BLIND_SLACK_NS);
            m->blind += t - seen_until;
            if (t - seen_until >= 3 * m->p.ping_ns)
                m->woke = seen_until;
            t = seen_until;
        }
    }
    m->t = t;
    contact_note_absence(m);
}

void member_leave(struct member *m)
{
    if (m->depth == 1 && !m->halted && m->joining.born) {
        report_send(m);
        agreement_pump(m);
    }
    m->depth--;
    if (m->depth)
        return;
    if (m->halted) {
        m->deadline = NEVER;
        return;
    }
    if (!m->joining.born) {
        m->deadline = join_deadline(m);
        return;
    }
    uint64_t a = detector_deadline(m), b = agreement_deadline(m), c = linkmap_deadline(m);
    m->deadline = a < b ? a : b;
    m->deadline = c < m->deadline ? c : m->deadline;
}

uint64_t member_deadline(const struct member *m)
{
    return m->deadline == NEVER ? NEVER : m->deadline + m->blind;
}

void member_tick(struct member *m, uint64_t now)
{
    member_enter(m, now);
    bool born = m->joining.born;
    if (!m->halted && !born)
        join_tick(m);
    if (!m->halted && born)
        detector_tick(m);
    if (!m->halted && born)
        agreement_tick(m);
    if (!m->halted && born)
        linkmap_tick(m);
    member_leave(m);
}

/* ------------------------------------------------------------------------------------------------ notes, end */

void member_note(struct member *m, enum member_report_kind kind, int node, enum member_evidence evidence,
                 uint64_t epoch, const char *text)
{
    struct member_report r = {
        .kind = kind, .evidence = evidence, .node = node, .epoch = epoch, .now_ns = m->now, .text = text};
    if (m->ops.report)
        m->ops.report(m->ops.user, &r);
}

void member_note_answer(struct member *m, int node, uint64_t asked)
{
    struct member_report r = {
        .kind = MEMBER_REPORT_ANSWERED, .node = node, .epoch = m->ledger.epoch, .now_ns = m->now, .asked_ns = asked};
    if (m->ops.report)
        m->ops.report(m->ops.user, &r);
}

/* What a core that has ended still asks for: it may be in the middle of something, and what that is about may not be
 * true any more. */
static void no_send(void *user, int to, const void *data, size_t len)
{
    (void)user, (void)to, (void)data, (void)len;
}

static void no_read(void *user, int node)
{
    (void)user, (void)node;
}

static void no_watch(void *user, int node, bool on)
{
    (void)user, (void)node, (void)on;
}

static void no_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    (void)user, (void)epoch, (void)proposal, (void)events, (void)n;
}

static void no_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    (void)user, (void)epoch, (void)events, (void)n, (void)max_value;
}

static void no_settled(void *user, uint64_t epoch)
{
    (void)user, (void)epoch;
}

void member_halt(struct member *m, const char *reason)
{
    const struct member_ops nothing = {.send = no_send,
                                       .read = no_read,
                                       .watch = no_watch,
                                       .probe = no_read,
                                       .prepare = no_prepare,
                                       .commit = no_commit,
                                       .settled = no_settled};
    if (m->halted)
        return;
    m->halted = true;
    member_note(m, MEMBER_REPORT_HALT, m->p.self, MEMBER_ALIVE, m->ledger.epoch, reason);
    m->ops.halt(m->ops.user, reason);
    m->ops = nothing;
}

void member_put(struct member *m, struct idset *set, int node)
{
    if (!idset_add(set, node))
        member_halt(m, "out of memory");
}

const char *member_report_name(enum member_report_kind kind)
{
    static const char *const names[] = {"suspect",  "cleared", "verdict",  "link_broken", "link_ok",  "prepare",
                                        "born",     "view",    "settled",  "halt",        "patience", "cut_off",
                                        "in_touch", "late",    "answered", "links",       "agent"};
    return names[kind];
}

const char *member_evidence_name(enum member_evidence evidence)
{
    static const char *const names[] = {"none", "refused", "silent", "hung", "unreachable"};
    return names[evidence];
}

/* ------------------------------------------------------------------------------------------------ messages */

void member_check(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n)
        return;
    member_enter(m, now);
    if (!m->halted)
        detector_ask(m, node);
    member_leave(m);
}

/* ------------------------------------------------------------------------------------------------ queries */

int member_next_id(const struct member *m)
{
    return m->roster.next_id;
}

bool member_believes_dead(const struct member *m, int node)
{
    return node >= 0 && node < m->roster.next_id && idset_has(&m->roster.dead, node);
}

bool member_was_left_out(const char *reason)
{
    static const char *const begins[] = {"declared dead", "no quorum", "its number was given"};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(reason, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}
