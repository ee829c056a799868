/* The messages of a wave: down to the children, directly to one, and the answer up. */
#include "detect/member_internal.h"

/* A proposal names whom its root leaves out to everybody, if one of them may live (adopt_left_out). */
static bool names_to_all(const struct wave *r)
{
    return (r->phase == PHASE_PREPARE || r->phase == PHASE_ACCEPT) && !r->certain;
}

void wave_send_down(struct member *m, struct piece to, bool direct)
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

void wave_send_direct(struct member *m, int id)
{
    const struct wave *r = &m->wave;
    struct piece to = {id, id + 1};
    for (int i = 0; i < r->n_pieces; i++)
        if (r->piece[i].head == id)
            to = r->piece[i];
    wave_send_down(m, to, true);
}

void wave_send_to_children(struct member *m)
{
    struct wave *r = &m->wave;
    for (int i = 0; i < r->n_pieces && !m->halted; i++)
        if (!(r->child_done >> i & 1) && is_live(m, r->piece[i].head))
            wave_send_down(m, r->piece[i], false);
}

void wave_send_ack(struct member *m, int to, unsigned flags)
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
