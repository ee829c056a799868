#include "runtime/client/replica/renew.h"

/* ---- hosts ---- */

struct renew_waits renew_answer(const struct renew_set *sets, int n, const uint32_t *waits)
{
    struct renew_waits answer = {{0}};
    for (int s = 0; s < n; s++)
        if (sets[s].coming && sets[s].at_home && waits[s] == sets[s].attempt)
            answer.attempt[s] = sets[s].attempt;
    return answer;
}

void renew_words(const struct renew_waits *answer, uint64_t words[2 * REPLICAS_MAX])
{
    for (int s = 0; s < REPLICAS_MAX; s++) {
        words[2 * s] = answer->attempt[s];
        words[2 * s + 1] = ~words[2 * s];
    }
}

int renew_agreed(const uint64_t greatest[2 * REPLICAS_MAX], uint32_t *attempt)
{
    for (int s = 0; s < REPLICAS_MAX; s++)
        if (greatest[2 * s] && greatest[2 * s] == ~greatest[2 * s + 1]) {
            *attempt = (uint32_t)greatest[2 * s];
            return s;
        }
    return -1;
}

/* Is this host, that of `set`, the one that tells the guest? Asked when all have agreed, and with each view. */
static bool tells_guest(const struct renew_set *sets, int n, int set)
{
    for (int s = 0; s < n; s++)
        if (sets[s].whole)
            return s == set;
    return false;
}

enum renew_fate renew_fate(const struct renew_set *set, uint32_t attempt)
{
    if (set->attempt < attempt) /* the view in which it began is still to come here */
        return RENEW_WAITS;
    if (set->attempt > attempt)
        return RENEW_GONE;
    return set->whole ? RENEW_JOINS : set->coming ? RENEW_WAITS : RENEW_GONE;
}

void renew_host_init(struct renew_host *h, int guest, uint32_t attempt)
{
    *h = (struct renew_host){.guest = guest, .attempt = attempt};
}

enum renew_fate renew_host_looks(struct renew_host *h, const struct renew_set *sets, int n, int own, bool *tells)
{
    enum renew_fate fate = renew_fate(&sets[h->guest], h->attempt);
    *tells = fate == RENEW_WAITS && !h->told && tells_guest(sets, n, own);
    h->told = h->told || *tells;
    return fate;
}

bool renew_is_late(struct renew_late *l, const struct renew_set *set, uint32_t waits, uint64_t now_ns,
                   uint64_t limit_ns)
{
    if (l->attempt != set->attempt)
        *l = (struct renew_late){set->attempt, now_ns};
    return set->coming && waits != set->attempt && now_ns - l->since_ns > limit_ns;
}

/* ---- guests ---- */

void renew_guest_init(struct renew_guest *g, uint32_t attempt)
{
    *g = (struct renew_guest){.attempt = attempt, .from = -1};
}

bool renew_guest_says(const struct renew_guest *g, int set, const struct renew_set *is)
{
    return is->whole && g->said[set] != 1 + (uint64_t)is->attempt;
}

void renew_guest_said(struct renew_guest *g, int set, uint32_t life)
{
    g->said[set] = 1 + (uint64_t)life;
}

bool renew_guest_hears(const struct renew_guest *g, int set, uint32_t *life)
{
    *life = (uint32_t)(g->said[set] - 1);
    return g->said[set];
}

bool renew_guest_told(struct renew_guest *g, int set, uint32_t attempt, uint64_t version)
{
    if (attempt != g->attempt || !version || g->has)
        return false;
    g->told |= 1U << set;
    g->version[set] = version;
    if (g->from >= 0)
        return false;
    g->from = set;
    return true;
}

int renew_guest_read(struct renew_guest *g, bool all)
{
    g->told &= ~(1U << g->from);
    g->has = all ? g->version[g->from] : 0;
    g->host = g->from;
    g->from = all || !g->told ? -1 : __builtin_ctz(g->told);
    return g->from;
}

bool renew_may_join(uint64_t greatest, uint64_t greatest_complement)
{
    return greatest && greatest == ~greatest_complement;
}
