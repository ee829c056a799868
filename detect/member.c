/* Entry points of the membership core: every one goes through member_enter, which moves the inner clock, and
 * member_leave, which carries out what became due and computes the next deadline. */
#include "detect/member_internal.h"

#include <stdlib.h>

/* A tick may be this late before its delay counts as time in which we were blind. */
#define BLIND_SLACK_NS (10ull * 1000 * 1000)

void member_params_default(struct member_params *p, int n, int self)
{
    const uint64_t ms = 1000 * 1000;
    *p = (struct member_params){.n = n,
                                .n_born = n,
                                .self = self,
                                .topology = MEMBER_RING,
                                .degree = 2,
                                .seed = 1,
                                .voters = 3,
                                .period_ns = 60 * ms,
                                .late_ns = 150 * ms,
                                .ping_ns = 30 * ms,
                                .limit_ns = SILENCE_DEFAULT_MS * ms,
                                .stopped_ns = STOPPED_DEFAULT_MS * ms,
                                .answer_ns = 780 * ms,
                                .startup_ns = 3000 * ms,
                                .rto_ns = 5 * ms,
                                .rto_max_ns = 100 * ms};
}

/* A voter needs two pings before it says no, and all that must fit between the suspicion and the verdict. */
static void look_after(struct member_params *p, uint64_t late)
{
    p->late_ns = late;
    p->period_ns = late * 4 / 10;
    p->ping_ns = late / 5;
    p->answer_ns = late * 26 / 5;
}

void member_params_late(struct member_params *p, int late_ms)
{
    uint64_t late = (uint64_t)late_ms * 1000 * 1000;
    p->startup_ns = later(p->startup_ns, 20 * late);
    look_after(p, late);
}

/* What is no verdict does not become slower with it: only who wants quick ones must look more often. */
void member_params_silence(struct member_params *p, int limit_ms, int stopped_ms)
{
    const uint64_t ms = 1000 * 1000, limit = (uint64_t)limit_ms * ms, late = limit * 6 / 10;
    p->limit_ns = limit;
    p->stopped_ns = stopped_ms ? (uint64_t)stopped_ms * ms : MEMBER_NEVER;
    if (late < p->late_ns)
        look_after(p, late);
}

static bool edges_ok(const struct member_params *p)
{
    for (int i = 0; i < 2 * p->edge_count; i++)
        if (p->edges[i] < 0 || p->edges[i] >= p->n)
            return false;
    return true;
}

static bool params_ok(const struct member_params *p)
{
    return p->n >= 1 && p->n <= MEMBER_NODES_MAX && p->self >= 0 && p->self < p->n && p->n_born >= 1 &&
           p->n_born <= p->n && p->sponsor >= 0 && p->sponsor < p->n && p->was >= 0 && p->was <= p->n &&
           p->degree >= 1 && p->degree <= WATCH_MAX / 2 && p->voters >= 1 && p->voters <= VOTERS_MAX &&
           p->period_ns > 0 && p->late_ns > p->period_ns && p->limit_ns > p->late_ns && p->stopped_ns > p->late_ns &&
           p->answer_ns >= p->late_ns && p->ping_ns > 0 && p->rto_ns > 0 && p->rto_max_ns >= p->rto_ns &&
           (unsigned)p->topology <= MEMBER_FILE && p->edge_count >= 0 && (p->edge_count == 0 || p->edges) &&
           edges_ok(p);
}

struct member *member_create(const struct member_params *params, const struct member_ops *ops, uint64_t now)
{
    if (!params_ok(params))
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
    detector_note_absence(m);
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

static void post(struct member *m, int to, int via, struct datagram *msg)
{
    if (m->halted || to == m->p.self)
        return;
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    msg->src = m->p.self;
    msg->dst = to;
    msg->epoch = m->ledger.epoch;
    msg->settled = m->ledger.settled;
    msg->late = patience_publish(m);
    size_t len = datagram_encode(msg, bytes);
    m->ops.send(m->ops.user, via, bytes, len);
}

void member_post_direct(struct member *m, int to, struct datagram *msg)
{
    post(m, to, to, msg);
}

void member_post(struct member *m, int to, struct datagram *msg)
{
    post(m, to, relays_via(&m->relays, to), msg);
}

/* For somebody who cannot reach `dst` itself. One hop only. */
static void pass_on(struct member *m, const struct datagram *msg, const void *data, size_t len)
{
    if (msg->hops || !is_live(m, msg->dst))
        return;
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    memcpy(bytes, data, len);
    bytes[2] = 1;
    m->ops.send(m->ops.user, msg->dst, bytes, len);
}

static void receive(struct member *m, int from, const struct datagram *msg)
{
    struct ledger *l = &m->ledger;
    if (!m->joining.born) {
        join_receive(m, msg);
        return;
    }
    if (is_unborn(m, msg->src)) {
        join_stranger(m, msg);
        return;
    }
    if (!is_member(m, msg->src)) {
        struct datagram dead = {.type = DATAGRAM_DEAD};
        if (msg->type != DATAGRAM_DEAD)
            member_post(m, msg->src, &dead);
        return;
    }
    if (msg->type == DATAGRAM_DEAD) {
        member_halt(m, "declared dead by the others");
        return;
    }
    if (msg->hops) {
        relays_set(&m->relays, msg->src, from);
        detector_sign_of_life_relayed(m, msg->src);
    } else {
        detector_clear_relay(m, msg->src);
        detector_sign_of_life(m, msg->src, 0);
    }
    detector_note_late(m, msg->src, patience_published(msg->late));
    report_heard(m, msg->src);
    if (msg->epoch > l->epoch && msg->type != DATAGRAM_LOG && msg->type != DATAGRAM_WAVE)
        agreement_behind(m, msg->src);
    agreement_receive(m, msg);
    if (msg->type == DATAGRAM_LINK)
        linkmap_receive(m, msg);
    else
        detector_receive(m, msg);
    if (msg->settled > l->settled && msg->epoch <= l->epoch) /* "by all" is meant of the sender's view */
        agreement_settle(m, msg->settled);
    if (msg->type == DATAGRAM_LOG && msg->epoch > l->epoch && !m->halted)
        agreement_behind(m, msg->src);
}

void member_receive(struct member *m, int from, const void *data, size_t len, uint64_t now)
{
    struct datagram msg;
    int left[DATAGRAM_LEFT_MAX];
    if (m->halted || len > MEMBER_DATAGRAM_MAX || !datagram_decode(data, len, m->p.n, &msg, left) ||
        msg.src == m->p.self || (!msg.hops && msg.src != from))
        return;
    member_enter(m, now);
    if (msg.dst == m->p.self)
        receive(m, from, &msg);
    else if (is_member(m, msg.src))
        pass_on(m, &msg, data, len);
    member_leave(m);
}

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

uint64_t member_epoch(const struct member *m)
{
    return m->ledger.epoch;
}

uint64_t member_settled_epoch(const struct member *m)
{
    return m->ledger.settled;
}

bool member_alive(const struct member *m, int node)
{
    return node >= 0 && node < m->p.n && is_member(m, node);
}

int member_next(const struct member *m, int from)
{
    int node = idset_next_out(&m->roster.gone, from);
    return node < m->p.n ? node : -1;
}

int member_next_id(const struct member *m)
{
    return m->roster.next_id;
}

bool member_is_born(const struct member *m)
{
    return m->joining.born;
}

bool member_believes_dead(const struct member *m, int node)
{
    return node >= 0 && node < m->roster.next_id && idset_has(&m->roster.dead, node);
}

int member_coordinator(const struct member *m)
{
    return agreement_coordinator(m);
}

bool member_was_left_out(const char *reason)
{
    static const char *const begins[] = {"declared dead", "no quorum", "its number was given"};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(reason, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

const struct view_event *member_log(struct member *m, uint64_t epoch, int *n, uint64_t *max_value)
{
    struct ledger *l = &m->ledger;
    if (epoch < 1 || epoch > l->epoch)
        return NULL;
    if (!l->shown && !(l->shown = malloc(MEMBER_EVENTS_MAX * sizeof *l->shown)))
        return NULL;
    const struct log_entry *e = l->log[epoch - 1];
    *n = batch_events(&e->batch, l->shown);
    if (max_value)
        *max_value = e->max_value;
    return l->shown;
}
