/* One phase of a view change: the root's message goes down a tree over all members that are to live (tree.c), the
 * answers come back up combined. Fan-out 8, so four levels below the root for 4,096 members, six for 100,000. A message
 * names only those whom the root leaves out beyond the ones declared dead before the index: these everybody knows who
 * takes part in it.
 *
 * A parent sends again to children whose part has not answered; the root, after a while, writes directly to whoever is
 * not accounted for (inner nodes may have died), as fast as they answer, and those answer it directly, for themselves.
 * Who still does not answer is checked by the detector, and once it is believed dead no longer waited for. If that
 * happens to many at once, the root begins again without them. */
#include "detect/member_internal.h"

#include <stdlib.h>

enum { DIRECT_AFTER = 2, CHECK_AFTER = 4, INNER_ATTEMPTS = 8, ANEW_DEATHS = 16 };

static bool subtree_done(const struct wave *r)
{
    return r->self_done && r->child_done == (1ull << r->n_pieces) - 1;
}

/* ------------------------------------------------------------------------------------------------ sending */

/* A proposal names whom its root leaves out to everybody, if one of them may live (adopt_left_out). */
static bool names_to_all(const struct wave *r)
{
    return (r->phase == PHASE_PREPARE || r->phase == PHASE_ACCEPT) && !r->certain;
}

static void send_down(struct member *m, struct piece to, bool direct)
{
    struct wave *r = &m->wave;
    struct datagram msg = {.type = DATAGRAM_WAVE,
                           .flags = (direct ? DATAGRAM_DIRECT : 0u) | (r->certain ? DATAGRAM_CERTAIN : 0u),
                           .phase = r->phase,
                           .root = r->root,
                           .ballot = r->ballot,
                           .index = r->index,
                           .value = r->phase == PHASE_ACCEPT || r->phase == PHASE_COMMIT ? r->value : 0,
                           .nonce = m->now,
                           .end = to.end,
                           .batch = r->batch};
    msg.n_left = tree_named(r, names_to_all(r) ? NULL : &to, &msg.left);
    member_post(m, to.head, &msg);
}

/* To one of our children for its piece, to others for themselves. */
static void send_direct(struct member *m, int id)
{
    const struct wave *r = &m->wave;
    struct piece to = {id, id + 1};
    for (int i = 0; i < r->n_pieces; i++)
        if (r->piece[i].head == id)
            to = r->piece[i];
    send_down(m, to, true);
}

static void send_to_children(struct member *m)
{
    struct wave *r = &m->wave;
    for (int i = 0; i < r->n_pieces && !m->halted; i++)
        if (!(r->child_done >> i & 1) && is_live(m, r->piece[i].head))
            send_down(m, r->piece[i], false);
}

static void send_ack(struct member *m, int to, unsigned flags)
{
    struct wave *r = &m->wave;
    struct datagram msg = {.type = DATAGRAM_ACK,
                           .flags = flags,
                           .phase = r->phase,
                           .root = r->root,
                           .ballot = r->ballot,
                           .index = r->index,
                           .value = r->phase == PHASE_COLLECT ? r->best_value : r->value,
                           .end = r->end,
                           .nonce = to == r->copy_from ? r->copy_nonce + (m->now - r->copy_at) : 0,
                           .accepted_ballot = r->best_ballot};
    if (r->phase == PHASE_COLLECT && r->best_ballot)
        msg.batch = r->best;
    member_post(m, to, &msg);
}

/* ------------------------------------------------------------------------------------------------ life of a wave */

void wave_cancel(struct member *m)
{
    m->wave.phase = PHASE_NONE;
    m->wave.next_resend = NEVER;
}

/* This member's part of the tree, whose `out` is known. */
static void take_part(struct member *m, int parent, int end)
{
    struct wave *r = &m->wave;
    r->parent = parent;
    r->end = end;
    r->size = tree_pos(m, end);
    r->child_done = 0;
    r->full_sent = false;
    tree_split(m);
    r->rto = rtt_rto(m, &m->wave_rtt, tree_levels(r));
    r->next_resend = r->phase == PHASE_SETTLE ? NEVER : m->t + r->rto;
}

static void begin(struct member *m, enum wave_phase phase, uint64_t ballot, uint64_t index, int root,
                  const struct batch *batch, uint64_t value)
{
    struct wave *r = &m->wave;
    struct wave old = *r;
    *r = (struct wave){.phase = phase,
                       .root = root,
                       .ballot = ballot,
                       .index = index,
                       .value = value,
                       .out = old.out,
                       .n_left = old.n_left,
                       .cap_left = old.cap_left,
                       .left = old.left,
                       .acked = old.acked,
                       .acked_words = old.acked_words,
                       .heard = old.heard,
                       .started = m->t,
                       .copy_from = -1,
                       .direct_at = 1,
                       .told_at = old.told_at};
    if (batch)
        r->batch = *batch;
    if (phase == PHASE_COLLECT && m->accepted.any) {
        r->best_ballot = m->accepted.ballot + 1; /* 0 is "none", and ballot 0 exists */
        r->best = m->accepted.batch;
        r->best_value = m->accepted.value;
    }
}

static bool has_answered(const struct member *m, int id)
{
    return m->wave.root == m->p.self && tree_has(m, id) && bitset_has(m->wave.acked, tree_pos(m, id));
}

/* Are those who answered enough to bind the others? All others are believed dead. */
static bool answers_are_a_quorum(struct member *m)
{
    struct verdicts *v = &m->verdicts;
    const struct wave *r = &m->wave;
    if (r->phase == PHASE_COMMIT)
        return true; /* it is decided already */
    bool certain = true;
    for (int i = 0; i < v->n; i++)
        certain &= has_answered(m, v->deaths[i].node) || idset_has(&m->roster.positive, v->deaths[i].node);
    return quorum_admissible(member_count(m), bitset_count(r->acked, r->acked_words), certain,
                             has_answered(m, lowest_member(m)));
}

/* The least position from p on of whom the root has no answer, or -1. */
static int next_unanswered(const struct wave *r, int p)
{
    for (unsigned i = (unsigned)p >> 6; i < r->acked_words; i++) {
        uint64_t w = ~r->acked[i] & (i == (unsigned)p >> 6 ? ~0ull << (p & 63) : ~0ull);
        if (w) {
            int found = (int)(i * 64) + __builtin_ctzll(w);
            return found < r->size ? found : -1;
        }
    }
    return -1;
}

/* Does the root have an answer from, or a verdict on, everybody? */
void wave_recheck(struct member *m)
{
    struct wave *r = &m->wave;
    if (r->phase == PHASE_NONE || r->phase == PHASE_SETTLE || r->root != m->p.self || m->halted)
        return;
    if (!r->self_done)
        return;
    for (int p = next_unanswered(r, 0); p >= 0; p = next_unanswered(r, p + 1))
        if (is_live(m, tree_id(m, p)))
            return;
    if (answers_are_a_quorum(m))
        agreement_wave_complete(m);
    else
        detector_no_quorum(m);
}

/* Root: did every member of the view answer, but those that the batch declares dead? Who is only believed dead may
 * live, and then has not. */
bool wave_everybody(struct member *m)
{
    const struct wave *r = &m->wave;
    for (int k = 0; k < m->verdicts.n; k++) { /* all others have answered, or the phase would not be complete */
        int id = m->verdicts.deaths[k].node;
        if (!has_answered(m, id) && !(r->phase == PHASE_ACCEPT && batch_declares(&r->batch, id)))
            return false;
    }
    return true;
}

static void subtree_progress(struct member *m)
{
    struct wave *r = &m->wave;
    if (r->root == m->p.self) {
        if (r->self_done)
            bitset_add(r->acked, 0);
        wave_recheck(m);
        return;
    }
    if (!subtree_done(r) || r->full_sent)
        return;
    r->full_sent = true;
    r->next_resend = NEVER;
    send_ack(m, r->parent, DATAGRAM_FULL);
    if (r->answer_root && r->parent != r->root)
        send_ack(m, r->root, DATAGRAM_FULL);
}

void wave_self_done(struct member *m)
{
    struct wave *r = &m->wave;
    if (r->phase == PHASE_NONE || r->self_done)
        return;
    r->self_done = true;
    if (r->phase == PHASE_PREPARE && m->proposal.value > r->value)
        r->value = m->proposal.value;
    subtree_progress(m);
}

/* Who was born in this commit is one of them only now. */
static void send_to_born(struct member *m)
{
    struct wave *r = &m->wave;
    const struct view_event *birth = batch_birth(&r->batch);
    for (int i = 0; birth && i < r->n_pieces && !m->halted; i++)
        if (r->piece[i].head == (int)birth->a && is_live(m, r->piece[i].head))
            send_down(m, r->piece[i], false);
}

/* What this member does itself in the phase, once the message is under way to the others. */
static void act(struct member *m)
{
    struct wave *r = &m->wave;
    switch (r->phase) {
    case PHASE_COLLECT:
        wave_self_done(m);
        break;
    case PHASE_PREPARE:
        agreement_prepare(m, &r->batch);
        if (m->proposal.prepared)
            wave_self_done(m);
        break;
    case PHASE_ACCEPT:
        agreement_accept(m, r->ballot, &r->batch, r->value);
        wave_self_done(m);
        break;
    case PHASE_COMMIT:
        if (r->index == m->ledger.epoch + 1) {
            agreement_commit(m, &r->batch, r->value);
            send_to_born(m);
        }
        if (!m->halted)
            wave_self_done(m);
        break;
    case PHASE_SETTLE:
        agreement_settle(m, r->index);
        break;
    case PHASE_NONE:
        break;
    }
}

static bool make_acked(struct wave *r, int size)
{
    unsigned words = BITSET_WORDS(size);
    if (words > r->acked_words) {
        uint64_t *more = realloc(r->acked, 2ul * words * sizeof *more);
        if (!more)
            return false;
        r->acked = more;
        r->acked_words = words;
    }
    memset(r->acked, 0, 2ul * r->acked_words * sizeof *r->acked);
    r->heard = r->acked + r->acked_words;
    return true;
}

void wave_start(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch, uint64_t value)
{
    struct wave *r = &m->wave;
    if (!tree_leave_out(m, phase, index, batch) || !make_acked(r, m->p.n - r->out.count)) {
        member_halt(m, "out of memory");
        return;
    }
    begin(m, phase, m->agreement.promised, index, m->p.self, batch, value);
    r->certain = true;
    for (int i = 0; i < r->n_left; i++)
        r->certain &= !is_member(m, r->left[i]) || idset_has(&m->roster.positive, r->left[i]);
    take_part(m, m->p.self, m->p.n);
    send_to_children(m);
    act(m);
}

static int key_cmp(const struct datagram *msg, const struct wave *r)
{
    if (msg->ballot != r->ballot)
        return msg->ballot > r->ballot ? 1 : -1;
    if (msg->index != r->index)
        return msg->index > r->index ? 1 : -1;
    return (int)msg->phase - (int)r->phase;
}

static void note_copy(struct member *m, const struct datagram *msg)
{
    m->wave.copy_from = msg->src;
    m->wave.copy_nonce = msg->nonce;
    m->wave.copy_at = m->now;
}

static bool take_left(struct member *m, const struct datagram *msg)
{
    struct wave *r = &m->wave;
    r->n_left = 0;
    bool ok = true;
    for (int i = 0; i < msg->n_left; i++)
        ok = ok && tree_left_add(r, msg->left[i]);
    if (!ok || !tree_make_out(m, msg->phase, msg->index, &msg->batch))
        member_halt(m, "out of memory");
    return !m->halted;
}

static void widen(struct member *m, const struct datagram *msg)
{
    if (!take_left(m, msg))
        return;
    take_part(m, msg->src, msg->end);
    note_copy(m, msg);
    send_to_children(m);
    subtree_progress(m);
}

/* The same message again: whoever sent it misses our answer. */
static void repeat(struct member *m, const struct datagram *msg)
{
    struct wave *r = &m->wave;
    if (r->phase == PHASE_SETTLE || r->root == m->p.self)
        return;
    bool direct = msg->flags & DATAGRAM_DIRECT;
    r->answer_root |= direct;
    if (msg->end > r->end) { /* the root's own message was here first, and asked of us alone */
        widen(m, msg);
        return;
    }
    if (r->full_sent || direct)
        note_copy(m, msg);
    if (r->full_sent)
        send_ack(m, direct ? r->root : msg->src, DATAGRAM_FULL);
    else if (direct)
        send_ack(m, r->root, r->self_done ? 0 : DATAGRAM_WORKING);
}

/* Whom the root leaves out it believes dead, and does not ask for its value. We then believe it dead too, for good:
 * else it could go on in a view whose largest value is below its own. */
static bool adopt_left_out(struct member *m, const struct datagram *msg)
{
    enum member_evidence evidence = msg->flags & DATAGRAM_CERTAIN ? MEMBER_REFUSED : MEMBER_UNREACHABLE;
    for (int k = 0; k < msg->n_left && !m->halted; k++) {
        if (is_live(m, msg->left[k]))
            verdict_adopt(m, msg->left[k], evidence, msg->root, "left out of a proposal");
    }
    return !m->halted;
}

void wave_join(struct member *m, const struct datagram *msg)
{
    struct wave *r = &m->wave;
    if (msg->root >= m->p.self || msg->end <= m->p.self)
        return;
    int cmp = r->phase == PHASE_NONE ? 1 : key_cmp(msg, r);
    if (cmp == 0)
        repeat(m, msg);
    bool proposal = msg->phase == PHASE_PREPARE || msg->phase == PHASE_ACCEPT;
    if (cmp <= 0 || (proposal && !adopt_left_out(m, msg)))
        return;
    if (!take_left(m, msg))
        return;
    if (idset_has(&r->out, m->p.self) || idset_has(&r->out, msg->root)) {
        wave_cancel(m);
        return;
    }
    begin(m, msg->phase, msg->ballot, msg->index, msg->root, &msg->batch, msg->value);
    r->answer_root = msg->flags & DATAGRAM_DIRECT;
    r->certain = msg->flags & DATAGRAM_CERTAIN;
    take_part(m, msg->src, msg->end);
    note_copy(m, msg);
    report_heard(m, msg->root);
    send_to_children(m);
    act(m);
    if (!m->halted && r->answer_root && !r->full_sent && r->phase == msg->phase)
        send_ack(m, r->root, r->self_done ? 0 : DATAGRAM_WORKING);
}

/* Whose answer to a PREPARE is missing may wait for somebody that was found dead since it began. */
static bool tells_deaths(const struct member *m)
{
    return m->wave.phase == PHASE_PREPARE && m->wave.root == m->p.self && m->verdicts.n > 0;
}

/* Directly to the next DIRECT_MAX of those whose answer is missing. When most of them have said something the next ones
 * have their turn at once, and nobody is written to twice so; else when the time has come: a thousand whose parents
 * died are reached in a moment, and members that are slow are asked as fast as they answer. */
static void write_to_some(struct member *m, bool again)
{
    struct wave *r = &m->wave;
    r->direct = r->direct_answers = 0;
    int p = next_unanswered(r, r->direct_at);
    for (; p >= 0 && r->direct < DIRECT_MAX && !m->halted; p = next_unanswered(r, p + 1)) {
        int id = tree_id(m, p);
        if (!is_live(m, id) || (!again && bitset_has(r->heard, p)))
            continue;
        send_direct(m, id);
        if (tells_deaths(m))
            report_tell_deaths(m, id);
        r->direct++;
        if (again && r->attempts >= CHECK_AFTER &&
            !bitset_has(r->heard, p)) /* who says that it works is slow, not dead */
            detector_check(m, id, "no answer to a view change");
    }
    r->direct_at = p >= 0 ? p : r->size;
}

static void root_resend(struct member *m)
{
    struct wave *r = &m->wave;
    if (next_unanswered(r, r->direct_at) < 0) /* all have had their turn: from the beginning */
        r->direct_at = 1;
    write_to_some(m, true);
}

bool wave_waits_for(const struct member *m, int node)
{
    const struct wave *r = &m->wave;
    return r->phase != PHASE_NONE && r->root == m->p.self && node > m->p.self && tree_has(m, node) &&
           !bitset_has(r->acked, tree_pos(m, node));
}

/* One of those written to has answered. */
static void note_direct_answer(struct member *m)
{
    struct wave *r = &m->wave;
    if (++r->direct_answers * 4 >= r->direct * 3 && r->direct == DIRECT_MAX)
        write_to_some(m, false);
}

/* All of a piece, if it is one: what is asked of a member by the root alone is less. */
static void piece_complete(struct member *m, struct piece piece, uint64_t nonce)
{
    struct wave *r = &m->wave;
    int i = 0;
    while (i < r->n_pieces && (r->piece[i].head != piece.head || r->piece[i].end > piece.end))
        i++;
    if (i == r->n_pieces)
        return;
    if (!(r->child_done >> i & 1) && nonce && nonce <= m->now)
        rtt_note(&m->wave_rtt, m->now - nonce);
    r->child_done |= 1ull << i;
}

void wave_ack(struct member *m, const struct datagram *msg)
{
    struct wave *r = &m->wave;
    if (r->phase == PHASE_NONE || key_cmp(msg, r) != 0 || !tree_has(m, msg->src))
        return;
    if (msg->flags & DATAGRAM_WORKING) {
        if (r->root == m->p.self) {
            bitset_add(r->heard, tree_pos(m, msg->src));
            note_direct_answer(m);
        }
        return;
    }
    if (r->phase == PHASE_PREPARE && msg->value > r->value)
        r->value = msg->value;
    if (r->phase == PHASE_COLLECT && msg->accepted_ballot > r->best_ballot) {
        r->best_ballot = msg->accepted_ballot;
        r->best = msg->batch;
        r->best_value = msg->value;
    }
    bool full = msg->flags & DATAGRAM_FULL;
    if (full)
        piece_complete(m, (struct piece){msg->src, msg->end}, msg->nonce);
    if (r->root == m->p.self)
        tree_mark(m, msg->src, full ? msg->end : msg->src + 1);
    bool same = r->root == m->p.self;
    subtree_progress(m);
    if (same && r->phase != PHASE_NONE && key_cmp(msg, r) == 0 && !m->halted)
        note_direct_answer(m);
}

void wave_tell_deaths(struct member *m)
{
    struct wave *r = &m->wave;
    int told = 0;
    if (!tells_deaths(m) || since(m, r->told_at) < m->p.rto_ns)
        return; /* what is not told now is told with the next repetition */
    r->told_at = m->t;
    for (int p = next_unanswered(r, 1); tells_deaths(m) && p >= 0 && told < DIRECT_MAX && !m->halted;
         p = next_unanswered(r, p + 1)) {
        int id = tree_id(m, p);
        if (!is_live(m, id))
            continue;
        report_tell_deaths(m, id);
        told++;
    }
}

/* Root: so many in the tree have died since the phase began that most parts of it will not be complete. */
static bool is_torn(const struct member *m)
{
    int torn = 0;
    for (int i = 0; i < m->verdicts.n; i++)
        torn += tree_has(m, m->verdicts.deaths[i].node);
    return torn >= ANEW_DEATHS && m->wave.phase != PHASE_COMMIT;
}

void wave_tick(struct member *m)
{
    struct wave *r = &m->wave;
    if (r->phase == PHASE_NONE || m->t < r->next_resend)
        return;
    if (r->root == m->p.self) {
        wave_recheck(m);
        if (r->phase == PHASE_NONE || m->t < r->next_resend || m->halted)
            return;
        if (is_torn(m)) {
            agreement_begin_anew(m);
            return;
        }
    }
    r->attempts++;
    r->rto = 2 * r->rto < rtt_rto_max(m, &m->wave_rtt, tree_levels(r)) ? 2 * r->rto
                                                                       : rtt_rto_max(m, &m->wave_rtt, tree_levels(r));
    r->next_resend = m->t + r->rto;
    if (r->root == m->p.self && r->attempts >= DIRECT_AFTER)
        root_resend(m);
    else
        send_to_children(m);
    if (r->root != m->p.self && r->attempts >= INNER_ATTEMPTS)
        r->next_resend = NEVER;
}
