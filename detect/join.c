/* A node that joins a running job.
 *
 * It has an id that was unborn so far. All members know where it is before it begins (the runtime's matter), and it
 * knows where they are; it begins with the job's first parameters, as everybody did, and is given the log, in which all
 * is that has happened since.
 *
 *   who joins                                              member that is asked
 *     BEHIND --- JOIN(epoch) ----------------------------->  it has more: LOG from there
 *       ^  |                                                 PONG in any case: it lives
 *       |  | has all that the one asked has
 *       |  v
 *     WAITS  --- JOIN(epoch), again and again ------------>  orders the birth, once; what was reported of it goes to
 *            the next coordinator
 *          |                                                 if this one dies (reports.c)
 *          |  COMMIT or LOG of the view in which it is born
 *          v
 *     BORN: a member like any other
 *
 *   state    event                                       next     action
 *   BEHIND   LOG                                         BEHIND   commit it, ask for more
 *   WAITS    any message of a later epoch                BEHIND   FETCH
 *   both     the one asked says nothing for late_ns,     same     ask another one of the view, at random
 *            or is declared dead
 *   both     nobody says anything for SILENT_LIMITS      end
 *   both     somebody else is born under its id          end
 *   both     its own birth is committed                  BORN
 *
 * Before that it answers no phase but the COMMIT that bears it: it is in no tree. It may die at any time: unborn it was
 * nobody, born it is declared dead like others. A birth of an id that is not the next one is void (agreement.c), so
 * ids are born in order and once. */
#include "detect/member_internal.h"

enum { SILENT_LIMITS = 3 };

/* ------------------------------------------------------------------------------------------------ who joins */

bool join_begin(struct member *m)
{
    struct joining *j = &m->joining;
    m->roster.next_id = m->p.n_born;
    for (int id = m->roster.next_id; id < m->p.n && !m->halted; id++) {
        member_put(m, &m->roster.gone, id);
        member_put(m, &m->roster.dead, id);
    }
    *j = (struct joining){.born = m->p.self < m->p.n_born,
                          .asked = m->p.sponsor,
                          .since = m->t,
                          .others = m->t,
                          .next = m->t,
                          .rto = m->p.rto_ns};
    return !m->halted;
}

static void ask_another(struct member *m)
{
    struct joining *j = &m->joining;
    if (member_count(m) > 0)
        j->asked = idset_nth_out(&m->roster.gone, (int)rng_below(&m->rng, (uint64_t)member_count(m)));
    j->since = m->t;
    j->heard = 0;
    j->rto = m->p.rto_ns;
}

void join_tick(struct member *m)
{
    struct joining *j = &m->joining;
    if (since(m, j->others) >= SILENT_LIMITS * later(m->p.limit_ns, m->p.answer_ns)) {
        member_halt(m, "no member answers");
        return;
    }
    if (m->t < j->next)
        return;
    if (!is_member(m, j->asked) || since(m, later(j->since, j->heard)) >= m->p.late_ns)
        ask_another(m);
    struct datagram ask = {.type = DATAGRAM_JOIN,
                           .nonce = detector_nonce(m),
                           .value = m->p.incarnation,
                           .root = m->p.was,
                           .index = (uint64_t)m->p.place};
    member_post(m, j->asked, &ask);
    j->next = m->t + j->rto;
    j->rto = 2 * j->rto < m->p.rto_max_ns ? 2 * j->rto : m->p.rto_max_ns;
}

uint64_t join_deadline(const struct member *m)
{
    return m->joining.next;
}

void join_receive(struct member *m, const struct datagram *msg)
{
    struct joining *j = &m->joining;
    if (msg->type == DATAGRAM_DEAD) {
        member_halt(m, "declared dead by the others");
        return;
    }
    j->others = m->t;
    m->contact.last_sign = m->now;
    if (msg->src == j->asked)
        j->heard = m->t;
    if (msg->type == DATAGRAM_PING)
        detector_receive(m, msg);
    else if (msg->type == DATAGRAM_LOG)
        ledger_take(m, msg);
    else if (msg->type == DATAGRAM_FETCH && msg->index > 0) /* that one is behind us, and we said so */
        ledger_send(m, msg->src, msg->index);
    else if (msg->type == DATAGRAM_WAVE && msg->phase == PHASE_COMMIT && msg->index == m->ledger.epoch + 1)
        agreement_receive(m, msg);
    if (m->halted || j->born)
        return;
    if (msg->epoch > m->ledger.epoch)
        ledger_behind(m, msg->src);
    else if (msg->type == DATAGRAM_LOG)
        j->next = m->t; /* it has all: now the birth */
}

bool join_is_other(const struct member *m, const struct batch *batch)
{
    const struct view_event *birth = batch_birth(batch);
    return birth && (int)birth->a == m->p.self && birth->b != m->p.incarnation;
}

/* ------------------------------------------------------------------------------------------------ members */

static bool is_ordered(const struct member *m, int node, uint32_t incarnation)
{
    for (int i = 0; i < m->events.n_mine; i++)
        if (m->events.mine[i].event.type == VIEW_NODE_BORN && (int)m->events.mine[i].event.a == node &&
            m->events.mine[i].event.b == incarnation)
            return true;
    return false;
}

/* Has a node's birth ordered. Kept and resent until something has come of it; asked again while it is under way it
 * changes nothing. Of a node that is not the least unborn one nothing comes, nor of the second of two that are given
 * one id. */
static void order(struct member *m, const struct view_event *birth)
{
    int node = (int)birth->a;
    if (node == m->roster.next_id && node < m->p.n && !is_ordered(m, node, birth->b))
        report_submit(m, birth);
}

/* One that joins; or we have not heard yet that it was born. */
void join_stranger(struct member *m, const struct datagram *msg)
{
    if (msg->type == DATAGRAM_JOIN) {
        const struct view_event birth = {.type = VIEW_NODE_BORN,
                                         .a = (uint32_t)msg->src,
                                         .b = (uint32_t)msg->value,
                                         .c = (uint32_t)msg->root,
                                         .d = msg->index};
        struct datagram pong = {.type = DATAGRAM_PONG, .nonce = msg->nonce};
        member_post(m, msg->src, &pong);
        if (msg->epoch < m->ledger.epoch)
            ledger_send(m, msg->src, msg->epoch + 1);
        else
            order(m, &birth);
    } else if (msg->type == DATAGRAM_FETCH && msg->index > 0) {
        ledger_send(m, msg->src, msg->index);
    }
    if (msg->epoch > m->ledger.epoch)
        ledger_behind(m, msg->src);
}

/* As the view is committed. */
void join_bear(struct member *m, const struct view_event *e)
{
    int node = (int)e->a;
    if (!idset_del(&m->roster.gone, node) || !idset_del(&m->roster.dead, node)) {
        member_halt(m, "out of memory");
        return;
    }
    m->roster.next_id = node + 1;
    m->agreement.newborn = true;
    if (node == m->p.self)
        m->joining.born = true;
    if (m->ops.born)
        m->ops.born(m->ops.user, node, e->b);
    member_note(m, MEMBER_REPORT_BORN, node, MEMBER_ALIVE, m->ledger.epoch, "joins");
}
