/* What the root of a wave does: who has not answered, writing to them, and whether the wave is complete. */
#include "detect/member_internal.h"

#include <stdlib.h>

enum { CHECK_AFTER = 4, ANEW_DEATHS = 16 };

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
        contact_no_quorum(m);
}

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

bool wave_make_acked(struct wave *r, int size)
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
        wave_send_direct(m, id);
        if (tells_deaths(m))
            report_tell_deaths(m, id);
        r->direct++;
        /* Who says that it works is slow, not dead: as long as it says so each time it is asked. */
        if (again && r->attempts >= CHECK_AFTER && !bitset_has(r->heard, p))
            detector_check(m, id, "no answer to a view change");
        bitset_del(r->heard, p);
    }
    r->direct_at = p >= 0 ? p : r->size;
}

void wave_write_again(struct member *m)
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

void wave_note_direct_answer(struct member *m)
{
    struct wave *r = &m->wave;
    if (++r->direct_answers * 4 >= r->direct * 3 && r->direct == DIRECT_MAX)
        write_to_some(m, false);
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

bool wave_is_torn(const struct member *m)
{
    int torn = 0;
    for (int i = 0; i < m->verdicts.n; i++)
        torn += tree_has(m, m->verdicts.deaths[i].node);
    return torn >= ANEW_DEATHS && m->wave.phase != PHASE_COMMIT;
}
