#include "runtime/client/replica/partner.h"

/* ---- who does what ---- */

static unsigned bit(int set)
{
    return 1U << set;
}

static int lowest(unsigned lives)
{
    return lives ? __builtin_ctz(lives) : -1;
}

int partner_actor(unsigned lives, int set)
{
    return lives & bit(set) ? set : lowest(lives);
}

unsigned partner_acts(unsigned lives, int set, int sets)
{
    unsigned acts = 0;
    for (int s = 0; s < sets && lives & bit(set); s++)
        if (partner_actor(lives, s) == set)
            acts |= bit(s);
    return acts;
}

int partner_reads(unsigned target, int set)
{
    return target & bit(set) ? set : lowest(target);
}

/* ---- intervals ---- */

static uint64_t rank_bit(int rank)
{
    return UINT64_C(1) << (unsigned)rank % 64;
}

bool partner_meets(const struct partner_interval *iv, enum partner_use use, int target, size_t bytes, size_t limit)
{
    bool full = iv->bytes && (iv->bytes >= limit || bytes > limit - iv->bytes);
    uint64_t with = 0;
    switch (use) {
    case PARTNER_GET: /* what it has written itself is complete in the set that it reads from */
        with = iv->put | iv->named;
        break;
    case PARTNER_PUT: /* who is behind reads what was there before; what was added stays, though this is put again */
        with = iv->read | iv->named;
        break;
    case PARTNER_ADD: /* likewise; and who is behind is still to be told what was exchanged */
        with = iv->exchanged ? UINT64_MAX : iv->read | iv->put;
        break;
    case PARTNER_EXCHANGE: /* whoever asks first, no name before it is still under way */
    case PARTNER_SIGNAL:   /* nobody sees what the program has stored by itself */
        return true;
    case PARTNER_PASS: /* nobody else uses that memory */
        return false;
    }
    return (full && use != PARTNER_GET) || with & rank_bit(target);
}

void partner_used(struct partner_interval *iv, enum partner_use use, int target, size_t bytes)
{
    uint64_t *to = use == PARTNER_GET ? &iv->read : use == PARTNER_PUT ? &iv->put : &iv->named;
    if (use != PARTNER_PASS)
        *to |= rank_bit(target);
    iv->exchanged = iv->exchanged || use == PARTNER_EXCHANGE;
    iv->bytes += bytes;
}

/* ---- meetings ---- */

void partner_init(struct partner *p, int set, int sets, const struct partner_ops *ops, void *user)
{
    unsigned all = bit(sets) - 1;
    *p = (struct partner){
        .set = set, .sets = sets, .all = all, .lives = all, .acts = bit(set), .ops = ops, .user = user};
}

static void learn(struct partner *p, unsigned sets)
{
    if ((p->complete | sets) == p->complete)
        return;
    p->complete |= sets;
    for (int s = 0; s < p->sets; s++)
        if (s != p->set && p->lives & bit(s))
            p->ops->say(p->user, s, p->complete);
}

/* None of those that live writes once more what was written before this meeting. */
static void leave_if(struct partner *p)
{
    if (!p->came || p->complete != p->all || p->lives & ~p->know & ~bit(p->set))
        return;
    p->came = false;
    p->complete = p->know = 0;
    p->ops->leave(p->user);
}

void partner_comes(struct partner *p, unsigned sets)
{
    p->came = true;
    learn(p, sets);
    if (p->acts & ~p->complete) /* since its writes were complete */
        p->ops->take_over(p->user, p->acts & ~p->complete);
    leave_if(p);
}

void partner_completes(struct partner *p, unsigned sets)
{
    if (!p->came)
        return;
    learn(p, sets);
    leave_if(p);
}

void partner_heard(struct partner *p, int set, unsigned complete)
{
    if (!p->came)
        return;
    if (complete == p->all)
        p->know |= bit(set);
    learn(p, complete);
    leave_if(p);
}

void partner_died(struct partner *p, int set)
{
    unsigned before = p->acts;
    p->lives &= ~bit(set);
    p->acts = partner_acts(p->lives, p->set, p->sets);
    unsigned more = p->acts & ~before & ~p->complete;
    if (more)
        p->ops->take_over(p->user, more);
    leave_if(p);
}
