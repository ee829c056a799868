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

enum { DIRECT_AFTER = 2, INNER_ATTEMPTS = 8 };

static bool subtree_done(const struct wave *r)
{
    return r->self_done && r->child_done == (1ull << r->n_pieces) - 1;
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
    wave_send_ack(m, r->parent, DATAGRAM_FULL);
    if (r->answer_root && r->parent != r->root)
        wave_send_ack(m, r->root, DATAGRAM_FULL);
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
            wave_send_down(m, r->piece[i], false);
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
        ledger_prepare(m, &r->batch);
        if (m->proposal.prepared)
            wave_self_done(m);
        break;
    case PHASE_ACCEPT:
        ledger_accept(m, r->ballot, &r->batch, r->value);
        wave_self_done(m);
        break;
    case PHASE_COMMIT:
        if (r->index == m->ledger.epoch + 1) {
            ledger_commit(m, &r->batch, r->value);
            send_to_born(m);
        }
        if (!m->halted)
            wave_self_done(m);
        break;
    case PHASE_SETTLE:
        ledger_settle(m, r->index);
        break;
    case PHASE_NONE:
        break;
    }
}

void wave_start(struct member *m, enum wave_phase phase, uint64_t index, const struct batch *batch, uint64_t value)
{
    struct wave *r = &m->wave;
    if (!tree_leave_out(m, phase, index, batch) || !wave_make_acked(r, m->p.n - r->out.count)) {
        member_halt(m, "out of memory");
        return;
    }
    begin(m, phase, m->agreement.promised, index, m->p.self, batch, value);
    r->certain = true;
    for (int i = 0; i < r->n_left; i++)
        r->certain &= !is_member(m, r->left[i]) || idset_has(&m->roster.positive, r->left[i]);
    take_part(m, m->p.self, m->p.n);
    wave_send_to_children(m);
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
    wave_send_to_children(m);
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
        wave_send_ack(m, direct ? r->root : msg->src, DATAGRAM_FULL);
    else if (direct)
        wave_send_ack(m, r->root, r->self_done ? 0 : DATAGRAM_WORKING);
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
    wave_send_to_children(m);
    act(m);
    if (!m->halted && r->answer_root && !r->full_sent && r->phase == msg->phase)
        wave_send_ack(m, r->root, r->self_done ? 0 : DATAGRAM_WORKING);
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
            wave_note_direct_answer(m);
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
        wave_note_direct_answer(m);
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
        if (wave_is_torn(m)) {
            agreement_begin_anew(m);
            return;
        }
    }
    r->attempts++;
    r->rto = 2 * r->rto < rtt_rto_max(m, &m->wave_rtt, tree_levels(r)) ? 2 * r->rto
                                                                       : rtt_rto_max(m, &m->wave_rtt, tree_levels(r));
    r->next_resend = m->t + r->rto;
    if (r->root == m->p.self && r->attempts >= DIRECT_AFTER)
        wave_write_again(m);
    else
        wave_send_to_children(m);
    if (r->root != m->p.self && r->attempts >= INNER_ATTEMPTS)
        r->next_resend = NEVER;
}
