/* One record per node in doubt, and its states.
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

void target_set_state(struct member *m, struct target *tg, enum target_state to, const char *text)
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

static struct target *target_add(struct member *m, int node)
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

struct target *target_have(struct member *m, int node)
{
    struct target *tg = target_find(&m->detector, node);
    return tg ? tg : target_add(m, node);
}

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
    return contact_has_seen(m, tg->node) ? sign : later(sign, m->created + m->p.startup_ns);
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

/* True if it fell: the record is gone. */
static bool verdict(struct member *m, const struct target *tg, enum member_evidence evidence, const char *text)
{
    int node = tg->node;
    if (verdict_believe(m, node, evidence, m->p.self, text)) {
        m->detector.verdicts++;
        detector_check_behind(m);
    } else {
        contact_no_quorum(m);
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

/* Time out of reach is time in which some reach it and most do not: of who is reached by nobody, or stands still, it is
 * none. */
static void note_majority(const struct member *m, struct target *tg, bool majority)
{
    if (!majority || !tg->last_indirect || since(m, tg->last_indirect) >= 4 * m->p.late_ns ||
        (tg->state == TARGET_SUSPECT && target_host_answers(m, tg)))
        tg->majority_unreached = 0;
    else if (!tg->majority_unreached)
        tg->majority_unreached = m->t;
}

/* The judgements: one for each state, as target_judge. */

static bool judge_duty(struct member *m, struct target *tg)
{
    struct detector *d = &m->detector;
    if (m->t <= tg->duty_until)
        return true;
    *tg = d->targets[--d->n_targets];
    return false;
}

static bool judge_check(struct member *m, struct target *tg, bool direct)
{
    if (direct) {
        target_set_state(m, tg, TARGET_ANSWERS, "answers pings");
    } else if (since(m, tg->since) >= m->p.late_ns / 2) {
        target_set_state(m, tg, TARGET_SUSPECT, "no answer to pings");
        detector_check_behind(m);
        return false; /* the array may have moved; judged again at the next tick */
    }
    return true;
}

/* sign: its last one. */
static bool judge_suspect(struct member *m, struct target *tg, bool direct, bool majority, uint64_t sign)
{
    enum member_why why;
    if (direct) {
        target_set_state(m, tg, TARGET_ANSWERS, "answers pings");
    } else if (is_beyond(m, tg)) {
        target_set_state(m, tg, TARGET_BEYOND, "only others reach it");
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
    return true;
}

static void judge_answers(struct member *m, struct target *tg, bool direct, const struct watch *w)
{
    uint64_t late = m->p.late_ns;
    if (!direct) {
        target_set_state(m, tg, TARGET_SUSPECT, "answers pings no more");
    } else if ((!w || since(m, w->last_life) < late) && since(m, tg->since) >= late && !tg->asked &&
               !linkmap_is_tried(m, tg->node)) {
        tg->duty_until = later(tg->duty_until, m->t);
        target_set_state(m, tg, TARGET_DUTY, NULL);
    }
}

static bool judge_beyond(struct member *m, struct target *tg, bool direct)
{
    enum member_why why;
    if (direct)
        target_set_state(m, tg, TARGET_ANSWERS, "answers pings");
    else if (since(m, tg->last_indirect) >= m->p.late_ns)
        target_set_state(m, tg, TARGET_SUSPECT, "nobody reaches it any more");
    else if (tg->majority_unreached && since(m, tg->majority_unreached) >= 2 * patience_silent(m, tg, &why))
        return !verdict(m, tg, MEMBER_UNREACHABLE, "a majority of the voters cannot reach it");
    return true;
}

bool target_judge(struct member *m, struct target *tg)
{
    const struct member_params *p = &m->p;
    const struct watch *w = watch_find(&m->detector, tg->node);
    bool direct = tg->last_direct >= tg->raised && tg->last_direct && since(m, tg->last_direct) < p->late_ns;
    uint64_t sign = target_sign(m, tg);
    bool majority = tg->state >= TARGET_SUSPECT && vote_majority_unreached(m, tg);
    if (tg->asked && m->now - tg->asked >= later(p->limit_ns, p->answer_ns))
        tg->asked = 0; /* nobody waits so long */
    note_majority(m, tg, majority);
    patience_want(m, tg, sign);
    if (w && w->same >= 3 && since(m, w->last_done) < p->late_ns && patience_is_over(m, tg, w->last_life))
        return !verdict(m, tg, MEMBER_HUNG, "heartbeat stands still");
    switch (tg->state) {
    case TARGET_DUTY:
        return judge_duty(m, tg);
    case TARGET_CHECK:
        return judge_check(m, tg, direct);
    case TARGET_SUSPECT:
        return judge_suspect(m, tg, direct, majority, sign);
    case TARGET_ANSWERS:
        judge_answers(m, tg, direct, w);
        return true;
    case TARGET_BEYOND:
        return judge_beyond(m, tg, direct);
    }
    return true;
}
