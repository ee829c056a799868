/* The failure detector.
 *
 * A late or failed heartbeat read is only a suspicion. The suspect is pinged directly and by voters; its kernel is
 * asked whether anybody still listens. One record per node in doubt:
 *
 *            ask (of another member)                  direct sign of life
 *     DUTY <------------------------ (none) --------------------+
 *       |                              | member_check           |
 *       |  own doubt                   v            no answer   |      heartbeat late, connection broken
 *       +--------------------------> CHECK --------------+      |  +----------------- (none)
 *                                      | pong            v      |  v
 *                                      +-----> ANSWERS <----- SUSPECT ----> verdict: dead
 *                                                 |  ^  silence   ^  |
 *                                                 |  |            |  | indirect signs only
 *                                                 |  +--------- BEYOND <-+   (link broken, the node lives)
 *                                                 v   direct
 *                                              (none) when the heartbeat moves again
 *
 *   from     event                                               to
 *   -        asked for a vote                                    DUTY
 *   -, DUTY  member_check                                        CHECK
 *   -, DUTY  heartbeat late, connection broken                   SUSPECT
 *   CHECK    direct sign of life                                 ANSWERS
 *   CHECK    late_ns / 2 without one, connection broken          SUSPECT
 *   SUSPECT  direct sign of life                                 ANSWERS  (cleared)
 *   SUSPECT  only indirect signs, for late_ns                    BEYOND   (link broken)
 *   SUSPECT  no sign of it nor of its host's kernel for its limit, majority of voters agrees: dead: silent
 *   SUSPECT  its host answers, majority, waited for for stopped_ns  dead: hung
 *   ANSWERS  late_ns without a direct sign                       SUSPECT
 *   ANSWERS  heartbeat read but still, waited for for stopped_ns  dead: hung
 *   BEYOND   direct sign                                         ANSWERS  (link works)
 *   BEYOND   late_ns without any sign                            SUSPECT
 *   BEYOND   majority of voters cannot reach it for two limits   dead: unreachable
 *   any      refused                                             dead: refused (certain)
 *
 * The limits: patience.c. */
#include "detect/member_internal.h"

#include <assert.h>
#include <stdlib.h>

enum { PROBE_GAP_MIN = 1000000, PROBE_GAP_MAX = 32000000, CHECK_GAP_MIN = 4000000 };

/* Pongs bring it back: so they say that the node lived, and both ways worked, after that time. */
uint64_t detector_nonce(struct member *m)
{
    m->nonce = m->now > m->nonce ? m->now : m->nonce + 1;
    return m->nonce;
}

struct target *target_find(const struct detector *d, int node)
{
    for (int i = 0; i < d->n_targets; i++)
        if (d->targets[i].node == node)
            return &d->targets[i];
    return NULL;
}

/* Only assertions ask. */
__attribute__((unused)) static bool move_is_legal(enum target_state from, enum target_state to)
{
    static const unsigned char legal[] = {
        [TARGET_DUTY] = 1 << TARGET_CHECK | 1 << TARGET_SUSPECT,
        [TARGET_CHECK] = 1 << TARGET_ANSWERS | 1 << TARGET_SUSPECT,
        [TARGET_SUSPECT] = 1 << TARGET_ANSWERS | 1 << TARGET_BEYOND,
        [TARGET_ANSWERS] = 1 << TARGET_SUSPECT | 1 << TARGET_DUTY,
        [TARGET_BEYOND] = 1 << TARGET_ANSWERS | 1 << TARGET_SUSPECT,
    };
    return legal[from] >> to & 1;
}

/* The only place that changes a state. */
static void set_state(struct member *m, struct target *tg, enum target_state to, const char *text)
{
    enum target_state from = tg->state;
    assert(move_is_legal(from, to));
    tg->state = to;
    tg->since = m->t;
    tg->next_ping = m->t;
    if (to == TARGET_SUSPECT) {
        tg->ping_gap = m->p.ping_ns;
        tg->next_probe = m->t;
        tg->probe_gap = PROBE_GAP_MIN;
        tg->next_panel = m->t;
        tg->panel_gap = m->p.ping_ns;
        tg->stopped_since = tg->last_stopped = 0;
        tg->last_host = 0;
        tg->agent_told = false;
        tg->how_told = 0;
        linkmap_doubted(m, tg->node);
        member_note(m, MEMBER_REPORT_SUSPECT, tg->node, MEMBER_ALIVE, m->ledger.epoch, text);
    } else if (to == TARGET_BEYOND) {
        linkmap_broken(m, tg->node);
    } else if (to == TARGET_ANSWERS && from != TARGET_CHECK) {
        tg->n_voters = tg->n_mute = 0;
        tg->majority_unreached = 0;
        member_note(m, MEMBER_REPORT_CLEARED, tg->node, MEMBER_ALIVE, m->ledger.epoch, text);
    } else if (to == TARGET_CHECK) {
        tg->ping_gap = CHECK_GAP_MIN;
    }
    if (to == TARGET_ANSWERS)
        linkmap_works(m, tg->node);
}

struct target *target_add(struct member *m, int node)
{
    struct detector *d = &m->detector;
    if (!grow((void **)&d->targets, &d->cap_targets, d->n_targets + 1, sizeof *d->targets))
        return NULL;
    struct target *tg = &d->targets[d->n_targets++];
    const struct watch *w = watch_find(d, node);
    *tg = (struct target){.node = node,
                          .late_ns = w ? w->late_ns : 0,
                          .state = TARGET_DUTY,
                          .since = m->t,
                          .raised = m->t,
                          .base = m->t,
                          .next_ping = m->t,
                          .ping_gap = m->p.ping_ns};
    return tg;
}

void detector_forget(struct member *m, int node)
{
    struct detector *d = &m->detector;
    struct target *tg = target_find(d, node);
    if (tg)
        *tg = d->targets[--d->n_targets];
    relays_forget(&m->relays, node);
    linkmap_forget(m, node);
}

static int in_state(const struct detector *d, enum target_state state)
{
    int n = 0;
    for (int i = 0; i < d->n_targets; i++)
        n += d->targets[i].state == state;
    return n;
}

static int open_doubts(const struct detector *d)
{
    return in_state(d, TARGET_CHECK) + in_state(d, TARGET_SUSPECT);
}

/* Dead, suspect or looked at. False: no memory. */
static bool make_away(const struct member *m, struct idset *away)
{
    const struct detector *d = &m->detector;
    bool ok = idset_copy(away, &m->roster.dead);
    for (int i = 0; i < d->n_targets; i++)
        if (d->targets[i].state == TARGET_CHECK || d->targets[i].state == TARGET_SUSPECT)
            ok = ok && idset_add(away, d->targets[i].node);
    return ok;
}

/* While a node that we read is suspect, nobody may be reading those behind it: have a look at them now, not only when
 * it is declared dead. At as many as are suspect or were found dead before, so a row of dead is gone through in steps
 * that double; where those behind it answer it ends. */
static void check_behind(struct member *m)
{
    struct detector *d = &m->detector;
    /* so many are not silent at once, we would rather be slow; or they are so for long, or verdicts come, and make
     * room */
    int room = (DOUBTS << d->widened) + DOUBTS_VERDICT * d->verdicts, open = open_doubts(d);
    room = room < DOUBTS_MAX ? room : DOUBTS_MAX;
    int suspects = in_state(d, TARGET_SUSPECT), looks = open - suspects;
    struct idset away = {0};
    bool more = make_away(m, &away);
    while (more && open < room && looks < suspects + d->verdicts) {
        int want[WATCH_MAX];
        int n = watch_targets(m, &away, want);
        more = false;
        for (int i = 0; i < n; i++) {
            const struct target *tg = target_find(d, want[i]);
            if (watch_find(d, want[i]) || (tg && tg->state != TARGET_DUTY))
                continue;
            detector_check(m, want[i], "behind a suspect");
            more = idset_add(&away, want[i]);
            open++;
            looks++;
        }
    }
    idset_free(&away);
}

/* A row of silent nodes is not to be gone through in steps each of which waits for its own verdicts: the limits are
 * long. Who may be cut off itself would only find all others silent. */
static void look_further(struct member *m)
{
    struct detector *d = &m->detector;
    uint64_t age = 0;
    bool quorum = m->contact.check.passed_at && since(m, m->contact.check.passed_at) < m->p.limit_ns;
    if (!quorum && !patience_hears_most(m))
        return;
    for (int i = 0; i < d->n_targets; i++)
        if (d->targets[i].state == TARGET_SUSPECT)
            age = later(age, since(m, d->targets[i].since));
    if (d->widened < WIDENED_MAX && age > (uint64_t)(d->widened + 1) * m->p.answer_ns / 2) {
        d->widened++;
        check_behind(m);
    }
}

/* ------------------------------------------------------------------------------------------------ doubts */

void detector_suspect(struct member *m, int node, uint64_t base, const char *text)
{
    if (!m->joining.born)
        return;
    struct target *tg = target_find(&m->detector, node);
    if (!tg)
        tg = target_add(m, node);
    if (!tg)
        return;
    if (tg->state == TARGET_DUTY)
        tg->raised = m->t;
    if (tg->state == TARGET_DUTY || tg->state == TARGET_CHECK) {
        tg->base = base;
        set_state(m, tg, TARGET_SUSPECT, text);
        check_behind(m);
    }
}

void detector_check(struct member *m, int node, const char *why)
{
    (void)why;
    if (node == m->p.self || !is_live(m, node) || !m->joining.born)
        return;
    struct target *tg = target_find(&m->detector, node);
    if (!tg)
        tg = target_add(m, node);
    if (!tg || tg->state != TARGET_DUTY)
        return;
    tg->raised = tg->base = m->t;
    set_state(m, tg, TARGET_CHECK, why);
}

void detector_ask(struct member *m, int node)
{
    detector_check(m, node, "asked to check");
    struct target *tg = target_find(&m->detector, node);
    if (!tg)
        return;
    tg->asked = m->now;
    tg->next_ping = m->t;
}

/* A broken connection: the process may just have died. Ask its kernel at once. */
void member_broken(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    struct watch *w = watch_find(&m->detector, node);
    if (w)
        w->posted = 0;
    struct target *tg = target_find(&m->detector, node);
    if (!m->halted && is_live(m, node)) {
        if (tg && (tg->state == TARGET_ANSWERS || tg->state == TARGET_BEYOND) && since(m, tg->next_probe) > 0) {
            tg->next_probe = m->t + PROBE_GAP_MAX;
            m->ops.probe(m->ops.user, node);
        } else {
            detector_suspect(m, node, w ? w->last_life : m->t, "connection broken");
        }
    }
    member_leave(m);
}

void member_refused(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    if (!m->halted && is_member(m, node) &&
        !detector_believe_dead(m, node, MEMBER_REFUSED, m->p.self, "connection refused: no process listens"))
        detector_no_quorum(m);
    member_leave(m);
}

/* It says nothing of the agent. */
void member_kernel(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    struct target *tg = target_find(&m->detector, node);
    if (tg && !m->halted)
        tg->last_kernel = m->t;
    if (!m->halted)
        contact_host(m, node);
    member_leave(m);
}

void member_unasked(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    struct target *tg = target_find(&m->detector, node);
    if (tg && !m->halted)
        tg->last_unasked = m->t;
    member_leave(m);
}

void member_runs(struct member *m, int node, uint64_t now)
{
    struct target *tg = node >= 0 && node < m->p.n ? target_find(&m->detector, node) : NULL;
    if (tg)
        tg->stopped_since = tg->last_stopped = 0;
    member_kernel(m, node, now);
}

void member_stopped(struct member *m, int node, uint64_t now)
{
    member_kernel(m, node, now);
    struct target *tg = node >= 0 && node < m->p.n ? target_find(&m->detector, node) : NULL;
    if (!tg)
        return;
    tg->last_stopped = m->t;
    if (!tg->stopped_since)
        tg->stopped_since = m->t;
}

/* Where it is among the deaths, or belongs. */
static struct death *death_at(const struct verdicts *v, int node)
{
    int lo = 0, hi = v->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (v->deaths[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return &v->deaths[lo];
}

void detector_adopt_death(struct member *m, int node, enum member_evidence evidence, int finder, const char *text)
{
    struct verdicts *v = &m->verdicts;
    if (node == m->p.self || !is_member(m, node) || m->halted)
        return;
    bool known = idset_has(&m->roster.dead, node), was_certain = idset_has(&m->roster.positive, node);
    if (known && (evidence != MEMBER_REFUSED || idset_has(&m->roster.positive, node)))
        return;
    if (!known && !grow((void **)&v->deaths, &v->cap, v->n + 1, sizeof *v->deaths)) {
        member_halt(m, "out of memory");
        return;
    }
    if (evidence == MEMBER_REFUSED)
        member_put(m, &m->roster.positive, node);
    member_put(m, &m->roster.dead, node);
    if (!idset_del(&m->patience.costly, node) || !idset_del(&m->patience.fatal, node))
        member_halt(m, "out of memory");
    if (!known)
        v->undeclared_since = m->t; /* as long as verdicts fall there is more to propose */
    struct death *d = death_at(v, node);
    if (!known) {
        memmove(d + 1, d, (size_t)(v->deaths + v->n++ - d) * sizeof *d);
        *d = (struct death){.node = node, .finder = finder};
    }
    d->evidence = evidence;
    if (evidence == MEMBER_REFUSED)
        v->n_uncertain -= known && !was_certain;
    else
        v->n_uncertain += !known && !was_certain;
    detector_forget(m, node);
    member_note(m, MEMBER_REPORT_VERDICT, node, evidence, m->ledger.epoch, text);
    if (!known)
        detector_rewatch(m);
    agreement_deaths_changed(m, finder == m->p.self);
}

bool detector_believe_dead(struct member *m, int node, enum member_evidence evidence, int finder, const char *text)
{
    if (node == m->p.self || m->halted || !m->joining.born)
        return true;
    if (is_live(m, node) && !contact_stays_admissible(m, node, evidence))
        return false;
    detector_adopt_death(m, node, evidence, finder, text);
    return true;
}

/* ------------------------------------------------------------------------------------------------ messages */

static void take_pong(struct member *m, const struct datagram *msg)
{
    struct target *tg = target_find(&m->detector, msg->src);
    if (!tg || !tg->asked || msg->hops || msg->nonce > m->nonce)
        return;
    if (msg->nonce >= tg->asked)
        tg->asked = 0;
    member_note_answer(m, tg->node, msg->nonce);
}

void detector_receive(struct member *m, const struct datagram *msg)
{
    switch (msg->type) {
    case DATAGRAM_PING: {
        struct datagram pong = {.type = DATAGRAM_PONG, .nonce = msg->nonce};
        if (msg->hops)
            member_post(m, msg->src, &pong);
        else
            member_post_direct(m, msg->src, &pong);
        if (msg->flags & DATAGRAM_LONELY)
            detector_contact(m, 0);
        break;
    }
    case DATAGRAM_VOTE_ASK:
        vote_answer(m, msg);
        break;
    case DATAGRAM_VOTE:
        vote_take(m, msg);
        break;
    case DATAGRAM_PONG:
        if (msg->flags & DATAGRAM_TAKEN)
            report_taken(m, msg->src, msg->nonce);
        else if (msg->flags & DATAGRAM_KNOWN)
            report_known(m, msg->src, msg->nonce);
        else
            take_pong(m, msg);
        break;
    default: /* the sign of life was noted for every message */
        break;
    }
}

/* ------------------------------------------------------------------------------------------------ time */

/* Does its host say again and again that its agent was stopped? Then it is no busy machine. */
bool target_is_stopped(const struct member *m, const struct target *tg)
{
    return tg->last_stopped && since(m, tg->last_stopped) < m->p.late_ns &&
           tg->last_stopped >= tg->stopped_since + m->p.ping_ns;
}

/* One of which nothing was ever heard may only be starting. */
uint64_t target_sign(const struct member *m, const struct target *tg)
{
    uint64_t sign = later(tg->base, later(tg->last_direct, tg->last_indirect));
    return detector_has_seen(m, tg->node) ? sign : later(sign, m->created + m->p.startup_ns);
}

void target_indirect(const struct member *m, struct target *tg, uint64_t at)
{
    if (!tg->last_indirect || since(m, tg->last_indirect) >= m->p.late_ns)
        tg->indirect_since = m->t;
    tg->last_indirect = later(tg->last_indirect, at);
}

/* Who could not ask its host does not know that it is silent. */
uint64_t target_host_sign(const struct member *m, const struct target *tg)
{
    return later(target_sign(m, tg), later(tg->last_host, later(tg->last_kernel, tg->last_unasked)));
}

/* Its host answers and it does not: it was stopped, or is not let run, and the network is well. */
bool target_host_answers(const struct member *m, const struct target *tg)
{
    uint64_t host = target_host_sign(m, tg);
    return host > target_sign(m, tg) && since(m, host) < 4 * m->p.late_ns;
}

void detector_clear_relay(struct member *m, int node)
{
    const struct target *tg = target_find(&m->detector, node);
    if (!tg || tg->state != TARGET_BEYOND) /* else it reaches us, but what we send does not arrive */
        relays_clear(&m->relays, node);
}

void detector_note_late(struct member *m, int node, uint64_t late)
{
    struct target *tg = target_find(&m->detector, node);
    if (tg)
        tg->late_ns = late;
}

/* True if it fell: the record is gone. */
static bool verdict(struct member *m, const struct target *tg, enum member_evidence evidence, const char *text)
{
    int node = tg->node;
    if (detector_believe_dead(m, node, evidence, m->p.self, text)) {
        m->detector.verdicts++;
        check_behind(m);
    } else {
        detector_no_quorum(m);
    }
    return m->halted || idset_has(&m->roster.dead, node);
}

/* Its host answers: whoever asks may know that it is the agent that does not run. */
static void note_agent(struct member *m, struct target *tg)
{
    if (tg->agent_told || tg->last_kernel <= tg->since || since(m, tg->since) < m->p.late_ns / 4)
        return;
    tg->agent_told = true;
    member_note(m, MEMBER_REPORT_AGENT, tg->node, MEMBER_ALIVE, m->ledger.epoch, NULL);
}

/* Others hear it, and we have not for as long: no link is broken because they were the first to hear one that goes
 * on. */
static bool is_beyond(const struct member *m, const struct target *tg)
{
    return tg->last_indirect >= tg->raised && tg->last_indirect && since(m, tg->last_indirect) < m->p.late_ns &&
           since(m, later(tg->since, tg->indirect_since)) >= m->p.late_ns;
}

/* The state may change; false: the record is gone or the verdict fell (nothing more to do with it). */
static bool target_judge(struct member *m, struct target *tg)
{
    struct detector *d = &m->detector;
    const struct member_params *p = &m->p;
    struct watch *w = watch_find(d, tg->node);
    bool direct = tg->last_direct >= tg->raised && tg->last_direct && since(m, tg->last_direct) < p->late_ns;
    uint64_t sign = target_sign(m, tg);
    enum member_why why;
    bool majority = tg->state >= TARGET_SUSPECT && vote_majority_unreached(m, tg);
    if (tg->asked && m->now - tg->asked >= later(p->limit_ns, p->answer_ns))
        tg->asked = 0; /* nobody waits so long */
    /* Time out of reach is time in which some reach it and most do not: of who is reached by nobody, or stands
     * still, it is none. */
    if (!majority || !tg->last_indirect || since(m, tg->last_indirect) >= 4 * p->late_ns ||
        (tg->state == TARGET_SUSPECT && target_host_answers(m, tg)))
        tg->majority_unreached = 0;
    else if (!tg->majority_unreached)
        tg->majority_unreached = m->t;
    patience_want(m, tg, sign);
    if (w && w->same >= 3 && since(m, w->last_done) < p->late_ns && patience_is_over(m, tg, w->last_life)) {
        return !verdict(m, tg, MEMBER_HUNG, "heartbeat stands still");
    }
    switch (tg->state) {
    case TARGET_DUTY:
        if (m->t > tg->duty_until) {
            *tg = d->targets[--d->n_targets];
            return false;
        }
        break;
    case TARGET_CHECK:
        if (direct)
            set_state(m, tg, TARGET_ANSWERS, "answers pings");
        else if (since(m, tg->since) >= p->late_ns / 2) {
            set_state(m, tg, TARGET_SUSPECT, "no answer to pings");
            check_behind(m);
            return false; /* the array may have moved; judged again at the next tick */
        }
        break;
    case TARGET_SUSPECT:
        if (direct) {
            set_state(m, tg, TARGET_ANSWERS, "answers pings");
        } else if (is_beyond(m, tg)) {
            set_state(m, tg, TARGET_BEYOND, "only others reach it");
        } else if (majority && vote_is_dark(m, tg) && m->t >= target_host_sign(m, tg) + patience_silent(m, tg, &why)) {
            return !verdict(m, tg, MEMBER_SILENT, "no answer to reads, direct and indirect pings, nor from its host");
        } else if (majority && target_host_sign(m, tg) > sign && patience_is_over(m, tg, sign)) {
            return !verdict(m, tg, MEMBER_HUNG,
                            target_is_stopped(m, tg) ? "its host says that its agent was stopped, and it is waited for"
                                                     : "its host answers, it does not, and it is waited for");
        } else {
            note_agent(m, tg);
            patience_tell(m, tg);
        }
        break;
    case TARGET_ANSWERS:
        if (!direct)
            set_state(m, tg, TARGET_SUSPECT, "answers pings no more");
        else if ((!w || since(m, w->last_life) < p->late_ns) && since(m, tg->since) >= p->late_ns && !tg->asked &&
                 !linkmap_is_tried(m, tg->node)) {
            tg->duty_until = later(tg->duty_until, m->t);
            set_state(m, tg, TARGET_DUTY, NULL);
        }
        break;
    case TARGET_BEYOND:
        if (direct)
            set_state(m, tg, TARGET_ANSWERS, "answers pings");
        else if (since(m, tg->last_indirect) >= p->late_ns)
            set_state(m, tg, TARGET_SUSPECT, "nobody reaches it any more");
        else if (tg->majority_unreached && since(m, tg->majority_unreached) >= 2 * patience_silent(m, tg, &why)) {
            return !verdict(m, tg, MEMBER_UNREACHABLE, "a majority of the voters cannot reach it");
        }
        break;
    }
    return true;
}

static void check_lonely(struct member *m, const struct target *tg)
{
    int answered = 0;
    enum member_why why;
    if (since(m, tg->since) < m->p.answer_ns / 3)
        return;
    for (int i = 0; i < tg->n_voters; i++)
        answered += tg->voters[i].answered;
    if (2 * answered < tg->n_voters + tg->n_mute || tg->n_voters < vote_panel(m, tg) ||
        (!patience_hears_most(m) && m->t >= target_sign(m, tg) + m->p.limit_ns / 2))
        detector_contact(m, target_host_sign(m, tg) + patience_silent(m, tg, &why));
}

/* Is there something to find out soon? Not of one that was never heard of and may only be starting, nor when it has
 * been asked about for a while: then less and less often, for a machine where many are late has no time for so many
 * questions. */
static bool is_urgent(const struct member *m, const struct target *tg)
{
    return tg->state != TARGET_SUSPECT || (detector_has_seen(m, tg->node) && since(m, tg->since) < m->p.late_ns);
}

static uint64_t slower(uint64_t gap, uint64_t most)
{
    return 2 * gap < most ? 2 * gap : most;
}

static void target_act(struct member *m, struct target *tg)
{
    bool urgent = is_urgent(m, tg);
    if (m->t >= tg->next_ping) {
        struct datagram ping = {.type = DATAGRAM_PING, .nonce = detector_nonce(m)};
        if (!tg->first_ping)
            tg->first_ping = m->t;
        tg->next_ping = m->t + (tg->state == TARGET_ANSWERS ? m->p.late_ns / 3 : tg->ping_gap);
        if (tg->state == TARGET_CHECK)
            tg->ping_gap *= 2;
        else if (!urgent)
            tg->ping_gap = slower(tg->ping_gap, PINGS_SLOW * m->p.ping_ns);
        member_post_direct(m, tg->node, &ping);
    }
    if (tg->state == TARGET_SUSPECT && m->t >= tg->next_probe) {
        tg->next_probe = m->t + tg->probe_gap;
        tg->probe_gap = slower(tg->probe_gap, urgent ? PROBE_GAP_MAX : later(PROBE_GAP_MAX, PINGS_SLOW * m->p.ping_ns));
        m->ops.probe(m->ops.user, tg->node);
    }
    if ((tg->state == TARGET_SUSPECT || tg->state == TARGET_BEYOND) && m->t >= tg->next_panel) {
        vote_ask(m, tg);
        tg->panel_gap = urgent ? m->p.ping_ns : slower(tg->panel_gap, PINGS_SLOW * m->p.ping_ns);
        tg->next_panel = m->t + tg->panel_gap;
        if (tg->state == TARGET_SUSPECT)
            check_lonely(m, tg);
    }
}

void detector_tick(struct member *m)
{
    struct detector *d = &m->detector;
    m->patience.hearing.wanted = false;
    for (int i = 0; i < d->n_watch && !m->halted; i++)
        watch_tick(m, &d->watch[i]);
    for (int i = 0; i < d->n_targets && !m->halted; i++) {
        int node = d->targets[i].node;
        if (target_judge(m, &d->targets[i])) {
            if (d->targets[i].node == node)
                target_act(m, &d->targets[i]);
        } else {
            i--; /* another record took its place, or it is to be judged again */
        }
    }
    if ((d->verdicts || d->widened) && open_doubts(d) == 0)
        d->verdicts = d->widened = 0;
    else if (!m->halted)
        look_further(m);
    if (!m->halted)
        patience_tick(m);
    if (!m->halted)
        contact_tick(m);
}

static void sooner(uint64_t *deadline, uint64_t t)
{
    if (t < *deadline)
        *deadline = t;
}

uint64_t detector_deadline(const struct member *m)
{
    const struct contact *c = &m->contact;
    uint64_t d = NEVER;
    const struct member_params *p = &m->p;
    for (int i = 0; i < m->detector.n_watch; i++) {
        const struct watch *w = &m->detector.watch[i];
        uint64_t late_at = watch_late_at(m, w);
        sooner(&d, w->posted ? later(w->next_read, w->posted + p->late_ns) : w->next_read);
        if (late_at > m->t)
            sooner(&d, late_at);
    }
    for (int i = 0; i < m->detector.n_targets; i++) {
        const struct target *tg = &m->detector.targets[i];
        sooner(&d, tg->next_ping);
        if (tg->state == TARGET_CHECK)
            sooner(&d, tg->since + p->late_ns / 2);
        if (tg->state == TARGET_SUSPECT || tg->state == TARGET_BEYOND)
            sooner(&d, tg->next_panel);
        if (tg->state == TARGET_SUSPECT) {
            enum member_why why;
            uint64_t verdict = target_host_sign(m, tg) + patience_silent(m, tg, &why);
            sooner(&d, tg->next_probe);
            if (verdict > m->t)
                sooner(&d, verdict);
        }
    }
    sooner(&d, patience_deadline(m));
    if (c->check.active)
        sooner(&d, c->check.next_ping < c->check.end ? c->check.next_ping : c->check.end);
    return d;
}
