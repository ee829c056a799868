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
 *                                                 |  +--------- DETOUR <-+   (link broken, the node lives)
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
 *   SUSPECT  only indirect signs for late_ns                     DETOUR   (link broken)
 *   SUSPECT  limit_ns without any sign, majority of voters agrees  dead: silent
 *   ANSWERS  late_ns without a direct sign                       SUSPECT
 *   ANSWERS  heartbeat read but still for limit_ns               dead: hung
 *   DETOUR   direct sign                                         ANSWERS  (link works)
 *   DETOUR   late_ns without any sign                            SUSPECT
 *   DETOUR   majority of voters cannot reach it for 2 limit_ns   dead: unreachable
 *   any      refused                                             dead: refused (certain) */
#include "detect/member_internal.h"

#include <assert.h>
#include <stdlib.h>

enum { PROBE_GAP_MIN = 1000000, PROBE_GAP_MAX = 64000000, CHECK_GAP_MIN = 4000000, ALONE_LIMITS = 2 };
#define REFUSAL_GAP_NS (500ull * 1000 * 1000) /* no verdict refused for so long: that is over */

/* Pongs bring it back: so they say that the node lived, and both ways worked, after that time. */
static uint64_t next_nonce(struct member *m)
{
    m->nonce = m->now > m->nonce ? m->now : m->nonce + 1;
    return m->nonce;
}

static struct target *find(struct member *m, int node)
{
    for (int i = 0; i < m->n_targets; i++)
        if (m->targets[i].node == node)
            return &m->targets[i];
    return NULL;
}

static struct watch *find_watch(struct member *m, int node)
{
    for (int i = 0; i < m->n_watch; i++)
        if (m->watch[i].node == node)
            return &m->watch[i];
    return NULL;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t since(const struct member *m, uint64_t then)
{
    return m->t > then ? m->t - then : 0;
}

/* Only assertions ask. */
__attribute__((unused)) static bool move_is_legal(enum target_state from, enum target_state to)
{
    static const unsigned char legal[] = {
        [TARGET_DUTY] = 1 << TARGET_CHECK | 1 << TARGET_SUSPECT,
        [TARGET_CHECK] = 1 << TARGET_ANSWERS | 1 << TARGET_SUSPECT,
        [TARGET_SUSPECT] = 1 << TARGET_ANSWERS | 1 << TARGET_DETOUR,
        [TARGET_ANSWERS] = 1 << TARGET_SUSPECT | 1 << TARGET_DUTY,
        [TARGET_DETOUR] = 1 << TARGET_ANSWERS | 1 << TARGET_SUSPECT,
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
        tg->agent_told = false;
        member_note(m, MEMBER_REPORT_SUSPECT, tg->node, MEMBER_ALIVE, m->epoch, text);
    } else if (to == TARGET_DETOUR) {
        linkmap_broken(m, tg->node);
    } else if (to == TARGET_ANSWERS && from != TARGET_CHECK) {
        tg->n_voters = tg->n_mute = 0;
        tg->majority_unreached = 0;
        member_note(m, MEMBER_REPORT_CLEARED, tg->node, MEMBER_ALIVE, m->epoch, text);
    } else if (to == TARGET_CHECK) {
        tg->ping_gap = CHECK_GAP_MIN;
    }
    if (to == TARGET_ANSWERS)
        linkmap_works(m, tg->node);
}

static struct target *add_target(struct member *m, int node)
{
    if (!grow((void **)&m->targets, &m->cap_targets, m->n_targets + 1, sizeof *m->targets))
        return NULL;
    struct target *tg = &m->targets[m->n_targets++];
    *tg = (struct target){.node = node,
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
    struct target *tg = find(m, node);
    if (tg)
        *tg = m->targets[--m->n_targets];
    for (int i = 0; i < DETOURS; i++)
        if (m->detours[i].node == node || m->detours[i].via == node)
            m->detours[i].node = -1;
    linkmap_forget(m, node);
}

/* ------------------------------------------------------------------------------------------------ who is watched */

static void watch_add(struct member *m, int node)
{
    struct watch *w = &m->watch[m->n_watch++];
    *w = (struct watch){.node = node, .fresh = true, .next_read = m->t, .last_life = m->t};
    m->ops.watch(m->ops.user, node, true);
}

/* After a change of who is dead: the topology closes over them. */
void detector_rewatch(struct member *m)
{
    int want[WATCH_MAX];
    memset(m->scratch, 0, m->words * 8);
    for (int id = 0; id < m->p.n; id++)
        if (!is_live(m, id))
            bitset_add(m->scratch, id);
    int n = topology_targets(&m->p, m->scratch, want, WATCH_MAX);
    for (int i = 0; i < m->n_watch; i++)
        m->watch[i].fresh = false;
    for (int i = 0; i < n; i++) {
        struct watch *w = find_watch(m, want[i]);
        if (w)
            w->fresh = true;
    }
    for (int i = 0; i < m->n_watch;) {
        if (m->watch[i].fresh) {
            i++;
            continue;
        }
        int node = m->watch[i].node;
        m->watch[i] = m->watch[--m->n_watch];
        m->ops.watch(m->ops.user, node, false);
    }
    for (int i = 0; i < n; i++)
        if (!find_watch(m, want[i]) && m->n_watch < WATCH_MAX)
            watch_add(m, want[i]);
}

/* While a node that we read is suspect, nobody may be reading those behind it: have a look at them now, not only
 * when it is declared dead. */
static void check_behind(struct member *m)
{
    int want[WATCH_MAX];
    memset(m->scratch, 0, m->words * 8);
    for (int id = 0; id < m->p.n; id++)
        if (!is_live(m, id))
            bitset_add(m->scratch, id);
    for (int i = 0; i < m->n_targets; i++)
        if (m->targets[i].state == TARGET_SUSPECT)
            bitset_add(m->scratch, m->targets[i].node);
    int n = topology_targets(&m->p, m->scratch, want, WATCH_MAX);
    for (int i = 0; i < n; i++)
        if (!find_watch(m, want[i]))
            detector_check(m, want[i], "behind a suspect");
}

/* ------------------------------------------------------------------------------------------------ doubts */

static void suspect(struct member *m, int node, uint64_t base, const char *text)
{
    struct target *tg = find(m, node);
    if (!tg)
        tg = add_target(m, node);
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
    if (node == m->p.self || !is_live(m, node))
        return;
    struct target *tg = find(m, node);
    if (!tg)
        tg = add_target(m, node);
    if (!tg || tg->state != TARGET_DUTY)
        return;
    tg->raised = tg->base = m->t;
    set_state(m, tg, TARGET_CHECK, why);
}

void detector_ask(struct member *m, int node)
{
    detector_check(m, node, "asked to check");
    struct target *tg = find(m, node);
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
    struct watch *w = find_watch(m, node);
    if (w)
        w->posted = 0;
    struct target *tg = find(m, node);
    if (!m->halted && is_live(m, node)) {
        if (tg && (tg->state == TARGET_ANSWERS || tg->state == TARGET_DETOUR) && since(m, tg->next_probe) > 0) {
            tg->next_probe = m->t + PROBE_GAP_MAX;
            m->ops.probe(m->ops.user, node);
        } else {
            suspect(m, node, w ? w->last_life : m->t, "connection broken");
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
    struct target *tg = find(m, node);
    if (tg && !m->halted)
        tg->last_kernel = m->t;
    member_leave(m);
}

static void note_latency(const struct member *m, struct watch *w)
{
    uint64_t us = w->posted ? since(m, w->posted) / 1000 : 0;
    int bucket = us ? 63 - __builtin_clzll(us) : 0;
    w->latency[bucket < MEMBER_LATENCY_BUCKETS ? bucket : MEMBER_LATENCY_BUCKETS - 1]++;
    w->reads++;
}

void member_heartbeat(struct member *m, int node, uint64_t counter, uint64_t now)
{
    if (node < 0 || node >= m->p.n)
        return;
    member_enter(m, now);
    struct watch *w = find_watch(m, node);
    if (w && !m->halted) {
        note_latency(m, w);
        w->posted = 0;
        w->last_done = m->t;
        if (!w->have_counter || counter != w->counter) {
            w->have_counter = true;
            w->counter = counter;
            w->last_life = m->t;
            w->same = 0;
            detector_sign_of_life(m, node);
        } else {
            w->same++;
        }
    }
    member_leave(m);
}

/* ------------------------------------------------------------------------------------------------ own absence
 *
 * Who was frozen or cut off for nearly the shorter limit may have been left out. If so, it hears of it from whoever it reaches; but the
 * others may have come to the end of the job meanwhile, and then their kernels refuse it as if they had died. */

void detector_note_absence(struct member *m)
{
    if (m->now - m->contact_at < m->p.dark_ns / 4 * 3) /* a machine that is stopped as a whole is dark, too */
        return;
    m->contact_at = m->now;
    m->absent = true;
    m->absent_at = m->t;
}

/* What was sent before the absence may be heard only now, so one sign is not enough. */
static void note_contact(struct member *m)
{
    m->contact_at = m->now;
    if (m->absent && since(m, m->absent_at) >= m->p.limit_ns)
        m->absent = false;
}

/* May those believed dead have gone on without us, and ended? */
static bool may_be_left_out(const struct member *m)
{
    uint64_t stay[BITSET_WORDS(MEMBER_NODES_MAX)], none[BITSET_WORDS(MEMBER_NODES_MAX)] = {0};
    if (!m->absent)
        return false;
    for (unsigned i = 0; i < m->words; i++)
        stay[i] = m->view[i] & ~m->dead[i];
    return quorum_admissible(m->view, stay, none, m->words);
}

void detector_sign_of_life(struct member *m, int node)
{
    note_contact(m);
    bitset_add(m->seen, node);
    if (m->contact.active)
        bitset_add(m->contact.heard, node);
    struct target *tg = find(m, node);
    if (tg)
        tg->last_direct = m->t;
}

void detector_sign_of_life_relayed(struct member *m, int node)
{
    note_contact(m);
    bitset_add(m->seen, node);
    if (m->contact.active)
        bitset_add(m->contact.heard, node);
    struct target *tg = find(m, node);
    if (tg)
        tg->last_indirect = m->t;
}

/* Would those not believed dead still be a quorum? */
static bool stays_admissible(struct member *m, int node, enum member_evidence evidence)
{
    for (unsigned i = 0; i < m->words; i++)
        m->scratch[i] = m->positive[i];
    bool was = bitset_has(m->dead, node);
    bitset_add(m->dead, node);
    if (evidence == MEMBER_REFUSED)
        bitset_add(m->scratch, node);
    bool ok = quorum_admissible(m->view, m->dead, m->scratch, m->words) && !may_be_left_out(m);
    if (!was)
        bitset_del(m->dead, node);
    return ok;
}

/* Too many are silent: it may be us who are cut off, or the others have all stood still for a moment. Deciding nothing
 * is safe, so there is time to wait and see; if it stays so, we end. */
void detector_no_quorum(struct member *m)
{
    if (!m->refused_since || since(m, m->refused_last) > REFUSAL_GAP_NS)
        m->refused_since = m->t;
    m->refused_last = m->t;
    if (since(m, m->refused_since) >= ALONE_LIMITS * m->p.limit_ns)
        member_halt(m, "no quorum: too many members are silent");
}

void detector_adopt_death(struct member *m, int node, enum member_evidence evidence, int finder, const char *text)
{
    if (node == m->p.self || !is_member(m, node) || m->halted)
        return;
    bool known = bitset_has(m->dead, node);
    if (known && (evidence != MEMBER_REFUSED || bitset_has(m->positive, node)))
        return;
    if (!known && !grow((void **)&m->deaths, &m->cap_deaths, m->n_deaths + 1, sizeof *m->deaths))
        return;
    if (evidence == MEMBER_REFUSED)
        bitset_add(m->positive, node);
    bitset_add(m->dead, node);
    if (!m->n_deaths)
        m->undeclared_since = m->t;
    if (!known)
        m->deaths[m->n_deaths++] = (struct death){.node = node, .finder = finder, .evidence = evidence};
    for (int i = 0; i < m->n_deaths; i++)
        if (m->deaths[i].node == node)
            m->deaths[i].evidence = evidence;
    detector_forget(m, node);
    member_note(m, MEMBER_REPORT_VERDICT, node, evidence, m->epoch, text);
    if (!known)
        detector_rewatch(m);
    agreement_deaths_changed(m, finder == m->p.self);
}

bool detector_believe_dead(struct member *m, int node, enum member_evidence evidence, int finder, const char *text)
{
    if (node == m->p.self || m->halted)
        return true;
    if (is_live(m, node) && !stays_admissible(m, node, evidence))
        return false;
    detector_adopt_death(m, node, evidence, finder, text);
    return true;
}

/* ------------------------------------------------------------------------------------------------ votes */

static bool is_voter(const struct target *tg, int node)
{
    for (int i = 0; i < tg->n_voters; i++)
        if (tg->voters[i].node == node)
            return true;
    return false;
}

/* A random member to ask, not itself in doubt if there is one. -1: none left. */
static int pick_voter(struct member *m, const struct target *tg)
{
    int start = (int)rng_below(&m->rng, (uint64_t)m->p.n), fallback = -1;
    for (int i = 0; i < m->p.n; i++) {
        int node = (start + i) % m->p.n;
        if (node == m->p.self || node == tg->node || !is_live(m, node) || is_voter(tg, node))
            continue;
        struct target *other = find(m, node);
        if (!other || other->state != TARGET_SUSPECT)
            return node;
        if (fallback < 0)
            fallback = node;
    }
    return fallback;
}

static int eligible_voters(const struct member *m, const struct target *tg)
{
    int n = 0;
    for (unsigned i = 0; i < m->words; i++)
        n += __builtin_popcountll(m->view[i] & ~m->dead[i]);
    n -= is_live(m, m->p.self) + is_live(m, tg->node);
    return n < m->p.voters ? n : m->p.voters;
}

static void ask_voters(struct member *m, struct target *tg)
{
    int want = eligible_voters(m, tg);
    for (int i = 0; i < tg->n_voters;) { /* who is dead or does not answer makes room */
        struct voter *v = &tg->voters[i];
        bool mute = !v->answered && since(m, v->asked) >= m->p.late_ns;
        if (!is_live(m, v->node) || (mute && pick_voter(m, tg) >= 0)) {
            tg->n_mute += mute;
            *v = tg->voters[--tg->n_voters];
        } else
            i++;
    }
    while (tg->n_voters < want) {
        int node = pick_voter(m, tg);
        if (node < 0)
            break;
        tg->voters[tg->n_voters++] = (struct voter){.node = node, .asked = m->t};
    }
    for (int i = 0; i < tg->n_voters; i++) {
        struct wire_msg ask = {.type = WIRE_VOTE_ASK, .node = tg->node};
        member_post(m, tg->voters[i].node, &ask);
    }
    tg->next_panel = m->t + m->p.ping_ns;
}

/* Do more than half of the panel (the voters and us) fail to reach it, and more than succeed? */
static bool majority_unreached(const struct member *m, const struct target *tg)
{
    int unreached = 1, reached = 0, panel = 1 + eligible_voters(m, tg);
    for (int i = 0; i < tg->n_voters; i++) {
        unreached += tg->voters[i].vote == VOTE_UNREACHED || tg->voters[i].vote == VOTE_KERNEL;
        reached += tg->voters[i].vote == VOTE_REACHED;
    }
    return 2 * unreached > panel && unreached > reached;
}

/* Does the kernel of its host say nothing either, to us and to more than half of the panel? Then it is no busy machine. */
static bool is_dark(const struct member *m, const struct target *tg)
{
    int dark = 1, panel = 1 + eligible_voters(m, tg);
    for (int i = 0; i < tg->n_voters; i++) {
        dark += tg->voters[i].vote == VOTE_UNREACHED;
        if (tg->voters[i].vote == VOTE_REACHED || tg->voters[i].vote == VOTE_KERNEL)
            return false;
    }
    return 2 * dark > panel && tg->last_kernel < tg->since;
}

static void answer_vote(struct member *m, const struct wire_msg *ask)
{
    int node = ask->node;
    if (node == m->p.self)
        return;
    if (!is_live(m, node)) { /* our verdict, or the view's: the epoch in the header says which */
        struct wire_msg dead = {.type = WIRE_VOTE, .node = node, .vote = VOTE_UNREACHED};
        member_post(m, ask->src, &dead);
        return;
    }
    struct target *tg = find(m, node);
    if (!tg)
        tg = add_target(m, node);
    if (!tg)
        return;
    tg->duty_until = m->t + 4 * m->p.ping_ns;
    if (tg->state == TARGET_DUTY && m->t >= tg->next_probe) { /* its kernel may answer where it does not */
        tg->next_probe = m->t + m->p.ping_ns / 2;
        m->ops.probe(m->ops.user, node);
    }
    struct watch *w = find_watch(m, node);
    uint64_t sign = tg->last_direct;
    if (w && w->have_counter)
        sign = later(sign, w->last_life);
    struct wire_msg vote = {.type = WIRE_VOTE, .node = node};
    if (sign && since(m, sign) < 3 * m->p.ping_ns) {
        vote.vote = VOTE_REACHED;
        vote.age_us = (uint32_t)(since(m, sign) / 1000);
    } else if (tg->first_ping && since(m, tg->first_ping) >= 2 * m->p.ping_ns) {
        bool kernel = tg->last_kernel >= tg->first_ping && since(m, tg->last_kernel) < m->p.late_ns;
        vote.vote = kernel ? VOTE_KERNEL : VOTE_UNREACHED;
    }
    member_post(m, ask->src, &vote);
}

void detector_set_detour(struct member *m, int node, int via)
{
    int slot = -1;
    for (int i = 0; i < DETOURS; i++)
        if (m->detours[i].node == node)
            slot = i;
    if (slot < 0)
        slot = m->next_detour++ % DETOURS;
    m->detours[slot] = (struct detour){.node = node, .via = via};
}

void detector_clear_detour(struct member *m, int node)
{
    struct target *tg = find(m, node);
    if (tg && tg->state == TARGET_DETOUR)
        return; /* it reaches us, but what we send does not arrive */
    for (int i = 0; i < DETOURS; i++)
        if (m->detours[i].node == node)
            m->detours[i].node = -1;
}

static void take_vote(struct member *m, const struct wire_msg *msg)
{
    struct target *tg = find(m, msg->node);
    if (!tg)
        return;
    for (int i = 0; i < tg->n_voters; i++) {
        struct voter *v = &tg->voters[i];
        if (v->node != msg->src)
            continue;
        v->answered = true;
        v->vote = msg->vote;
        uint64_t age = (uint64_t)msg->age_us * 1000;
        if (v->vote == VOTE_REACHED && age < m->t) {
            tg->last_indirect = later(tg->last_indirect, m->t - age);
            bitset_add(m->seen, msg->node);
            if (tg->state == TARGET_DETOUR || since(m, tg->last_direct) > m->p.late_ns)
                detector_set_detour(m, msg->node, msg->src);
        }
    }
}

/* ------------------------------------------------------------------------------------------------ own contact */

/* Pings to everybody until a quorum has answered; if that does not come by `end`, we are the ones cut off. */
void detector_contact(struct member *m, uint64_t end)
{
    struct contact_check *c = &m->contact;
    if (c->active || (c->passed_at && since(m, c->passed_at) < m->p.limit_ns))
        return;
    memset(c->heard, 0, m->words * 8);
    bitset_add(c->heard, m->p.self);
    bool started = m->n_watch == 0;
    for (int i = 0; i < m->n_watch; i++)
        started |= bitset_has(m->seen, m->watch[i].node);
    if (!started)
        end = later(end, m->created + m->p.startup_ns);
    *c = (struct contact_check){.active = true,
                                .start = m->t,
                                .end = later(end, m->t) + ALONE_LIMITS * m->p.limit_ns,
                                .next_ping = m->t,
                                .heard = c->heard};
}

static void contact_tick(struct member *m)
{
    struct contact_check *c = &m->contact;
    if (!c->active)
        return;
    for (unsigned i = 0; i < m->words; i++)
        m->scratch[i] = m->view[i] & (~c->heard[i] | m->dead[i]); /* some died since we heard them */
    if (quorum_admissible(m->view, m->scratch, m->positive, m->words)) {
        c->active = false;
        c->passed_at = m->t;
        return;
    }
    if (m->t >= c->end) {
        member_halt(m, "no quorum: cut off from the others");
        return;
    }
    if (m->t < c->next_ping)
        return;
    bool lonely = since(m, c->start) > (c->end - c->start) / 3;
    for (int i = 0; i < 4 + m->p.n / 16; i++) {
        c->next = (c->next + 1) % m->p.n;
        /* who answered may be cut off with us, and have nobody of the other side to miss: it is to look too */
        if (is_member(m, c->next) && (lonely || !bitset_has(c->heard, c->next))) {
            struct wire_msg ping = {.type = WIRE_PING, .nonce = next_nonce(m), .flags = lonely ? WIRE_LONELY : 0};
            member_post_direct(m, c->next, &ping);
        }
    }
    c->next_ping = m->t + m->p.rto_ns;
}

/* ------------------------------------------------------------------------------------------------ messages */

static void take_pong(struct member *m, const struct wire_msg *msg)
{
    struct target *tg = find(m, msg->src);
    if (!tg || !tg->asked || msg->hops || msg->nonce > m->nonce)
        return;
    if (msg->nonce >= tg->asked)
        tg->asked = 0;
    member_note_answer(m, tg->node, msg->nonce);
}

void detector_receive(struct member *m, const struct wire_msg *msg)
{
    switch (msg->type) {
    case WIRE_PING: {
        struct wire_msg pong = {.type = WIRE_PONG, .nonce = msg->nonce};
        if (msg->hops)
            member_post(m, msg->src, &pong);
        else
            member_post_direct(m, msg->src, &pong);
        if (msg->flags & WIRE_LONELY)
            detector_contact(m, 0);
        break;
    }
    case WIRE_VOTE_ASK:
        answer_vote(m, msg);
        break;
    case WIRE_VOTE:
        take_vote(m, msg);
        break;
    case WIRE_PONG:
        take_pong(m, msg);
        break;
    default: /* the sign of life was noted for every message */
        break;
    }
}

/* ------------------------------------------------------------------------------------------------ time */

static void watch_tick(struct member *m, struct watch *w)
{
    if (m->t >= w->next_read && (!w->posted || since(m, w->posted) >= m->p.late_ns)) {
        w->posted = m->t;
        w->next_read += m->p.period_ns;
        if (w->next_read <= m->t)
            w->next_read = m->t + m->p.period_ns;
        m->ops.read(m->ops.user, w->node);
    }
    if (since(m, w->last_life) >= m->p.late_ns)
        suspect(m, w->node, w->last_life, "heartbeat late");
}

/* True if it fell: the record is gone. */
static bool verdict(struct member *m, const struct target *tg, enum member_evidence evidence, const char *text)
{
    int node = tg->node;
    if (!detector_believe_dead(m, node, evidence, m->p.self, text))
        detector_no_quorum(m);
    return m->halted || bitset_has(m->dead, node);
}

/* Its host answers: whoever asks may know that it is the agent that does not run. */
static void note_agent(struct member *m, struct target *tg)
{
    if (tg->agent_told || tg->last_kernel <= tg->since || since(m, tg->since) < m->p.late_ns / 4)
        return;
    tg->agent_told = true;
    member_note(m, MEMBER_REPORT_AGENT, tg->node, MEMBER_ALIVE, m->epoch, NULL);
}

/* The state may change; false: the record is gone or the verdict fell (nothing more to do with it). */
static bool target_judge(struct member *m, struct target *tg)
{
    const struct member_params *p = &m->p;
    struct watch *w = find_watch(m, tg->node);
    bool direct = tg->last_direct >= tg->raised && tg->last_direct && since(m, tg->last_direct) < p->late_ns;
    uint64_t sign = later(tg->base, later(tg->last_direct, tg->last_indirect));
    if (!bitset_has(m->seen, tg->node))
        sign = later(sign, m->created + m->p.startup_ns);
    bool majority = tg->state >= TARGET_SUSPECT && majority_unreached(m, tg);
    if (tg->asked && m->now - tg->asked >= p->limit_ns)
        tg->asked = 0; /* nobody waits so long */
    if (!majority)
        tg->majority_unreached = 0;
    else if (!tg->majority_unreached)
        tg->majority_unreached = m->t;
    if (w && w->same >= 3 && since(m, w->last_life) >= p->limit_ns && since(m, w->last_done) < p->late_ns) {
        return !verdict(m, tg, MEMBER_HUNG, "heartbeat stands still");
    }
    switch (tg->state) {
    case TARGET_DUTY:
        if (m->t > tg->duty_until) {
            *tg = m->targets[--m->n_targets];
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
        } else if (m->t >= sign + p->dark_ns && majority && is_dark(m, tg)) {
            return !verdict(m, tg, MEMBER_SILENT, "no answer to reads, direct and indirect pings, nor from its host");
        } else if (m->t < sign + p->limit_ns) {
            note_agent(m, tg);
            if (tg->last_indirect >= tg->raised && tg->last_indirect && since(m, tg->since) >= p->late_ns &&
                since(m, tg->last_indirect) < p->late_ns)
                set_state(m, tg, TARGET_DETOUR, "only others reach it");
        } else if (majority) {
            return !verdict(m, tg, MEMBER_SILENT, "no answer to reads, direct and indirect pings");
        }
        break;
    case TARGET_ANSWERS:
        if (!direct)
            set_state(m, tg, TARGET_SUSPECT, "answers pings no more");
        else if ((!w || since(m, w->last_life) < p->late_ns) && since(m, tg->since) >= p->late_ns && !tg->asked) {
            tg->duty_until = later(tg->duty_until, m->t);
            set_state(m, tg, TARGET_DUTY, NULL);
        }
        break;
    case TARGET_DETOUR:
        if (direct)
            set_state(m, tg, TARGET_ANSWERS, "answers pings");
        else if (since(m, tg->last_indirect) >= p->late_ns)
            set_state(m, tg, TARGET_SUSPECT, "nobody reaches it any more");
        else if (tg->majority_unreached && since(m, tg->majority_unreached) >= 2 * p->limit_ns) {
            return !verdict(m, tg, MEMBER_UNREACHABLE, "a majority of the voters cannot reach it");
        }
        break;
    }
    return true;
}

static void check_lonely(struct member *m, const struct target *tg)
{
    int answered = 0;
    if (since(m, tg->since) < m->p.limit_ns / 3)
        return;
    for (int i = 0; i < tg->n_voters; i++)
        answered += tg->voters[i].answered;
    if (2 * answered < tg->n_voters + tg->n_mute || tg->n_voters < eligible_voters(m, tg))
        detector_contact(m, tg->base + m->p.limit_ns);
}

static void target_act(struct member *m, struct target *tg)
{
    if (m->t >= tg->next_ping) {
        struct wire_msg ping = {.type = WIRE_PING, .nonce = next_nonce(m)};
        if (!tg->first_ping)
            tg->first_ping = m->t;
        tg->next_ping = m->t + (tg->state == TARGET_ANSWERS ? m->p.late_ns / 3 : tg->ping_gap);
        if (tg->state == TARGET_CHECK)
            tg->ping_gap *= 2;
        member_post_direct(m, tg->node, &ping);
    }
    if (tg->state == TARGET_SUSPECT && m->t >= tg->next_probe) {
        tg->next_probe = m->t + tg->probe_gap;
        if (tg->probe_gap < PROBE_GAP_MAX)
            tg->probe_gap *= 2;
        m->ops.probe(m->ops.user, tg->node);
    }
    if ((tg->state == TARGET_SUSPECT || tg->state == TARGET_DETOUR) && m->t >= tg->next_panel) {
        ask_voters(m, tg);
        if (tg->state == TARGET_SUSPECT)
            check_lonely(m, tg);
    }
}

void detector_tick(struct member *m)
{
    for (int i = 0; i < m->n_watch && !m->halted; i++)
        watch_tick(m, &m->watch[i]);
    for (int i = 0; i < m->n_targets && !m->halted; i++) {
        int node = m->targets[i].node;
        if (target_judge(m, &m->targets[i])) {
            if (m->targets[i].node == node)
                target_act(m, &m->targets[i]);
        } else {
            i--; /* another record took its place, or it is to be judged again */
        }
    }
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
    uint64_t d = NEVER;
    const struct member_params *p = &m->p;
    for (int i = 0; i < m->n_watch; i++) {
        const struct watch *w = &m->watch[i];
        sooner(&d, w->posted ? later(w->next_read, w->posted + p->late_ns) : w->next_read);
        if (w->last_life + p->late_ns > m->t)
            sooner(&d, w->last_life + p->late_ns);
    }
    for (int i = 0; i < m->n_targets; i++) {
        const struct target *tg = &m->targets[i];
        sooner(&d, tg->next_ping);
        if (tg->state == TARGET_CHECK)
            sooner(&d, tg->since + p->late_ns / 2);
        if (tg->state == TARGET_SUSPECT || tg->state == TARGET_DETOUR)
            sooner(&d, tg->next_panel);
        if (tg->state == TARGET_SUSPECT) {
            uint64_t verdict = later(tg->base, later(tg->last_direct, tg->last_indirect)) + p->limit_ns;
            uint64_t dark = verdict - p->limit_ns + p->dark_ns;
            sooner(&d, tg->next_probe);
            if (verdict > m->t)
                sooner(&d, verdict);
            if (dark > m->t)
                sooner(&d, dark);
        }
    }
    if (m->contact.active)
        sooner(&d, m->contact.next_ping < m->contact.end ? m->contact.next_ping : m->contact.end);
    return d;
}
