/* What a member is told of its job: defaults, what follows from the limits asked for, and what is no sense. */
#include "detect/member_internal.h"

void member_params_default(struct member_params *p, int n, int self)
{
    const uint64_t ms = 1000 * 1000;
    *p = (struct member_params){.n = n,
                                .n_born = n,
                                .self = self,
                                .topology = MEMBER_RING,
                                .degree = 2,
                                .seed = 1,
                                .voters = 3,
                                .period_ns = 60 * ms,
                                .late_ns = 150 * ms,
                                .ping_ns = 30 * ms,
                                .limit_ns = SILENCE_DEFAULT_MS * ms,
                                .stopped_ns = STOPPED_DEFAULT_MS * ms,
                                .answer_ns = 780 * ms,
                                .startup_ns = 3000 * ms,
                                .rto_ns = 5 * ms,
                                .rto_max_ns = 100 * ms};
}

/* A voter needs two pings before it says no, and all that must fit between the suspicion and the verdict. */
static void look_after(struct member_params *p, uint64_t late)
{
    p->late_ns = late;
    p->period_ns = late * 4 / 10;
    p->ping_ns = late / 5;
    p->answer_ns = late * 26 / 5;
}

void member_params_late(struct member_params *p, int late_ms)
{
    uint64_t late = (uint64_t)late_ms * 1000 * 1000;
    p->startup_ns = later(p->startup_ns, 20 * late);
    look_after(p, late);
}

/* What is no verdict does not become slower with it: only who wants quick ones must look more often. */
void member_params_silence(struct member_params *p, int limit_ms, int stopped_ms)
{
    const uint64_t ms = 1000 * 1000, limit = (uint64_t)limit_ms * ms, late = limit * 6 / 10;
    p->limit_ns = limit;
    p->stopped_ns = stopped_ms ? (uint64_t)stopped_ms * ms : MEMBER_NEVER;
    if (late < p->late_ns)
        look_after(p, late);
}

static bool edges_ok(const struct member_params *p)
{
    for (int i = 0; i < 2 * p->edge_count; i++)
        if (p->edges[i] < 0 || p->edges[i] >= p->n)
            return false;
    return true;
}

bool member_params_ok(const struct member_params *p)
{
    return p->n >= 1 && p->n <= MEMBER_NODES_MAX && p->self >= 0 && p->self < p->n && p->n_born >= 1 &&
           p->n_born <= p->n && p->sponsor >= 0 && p->sponsor < p->n && p->was >= 0 && p->was <= p->n &&
           p->degree >= 1 && p->degree <= WATCH_MAX / 2 && p->voters >= 1 && p->voters <= VOTERS_MAX &&
           p->period_ns > 0 && p->late_ns > p->period_ns && p->limit_ns > p->late_ns && p->stopped_ns > p->late_ns &&
           p->answer_ns >= p->late_ns && p->ping_ns > 0 && p->rto_ns > 0 && p->rto_max_ns >= p->rto_ns &&
           (unsigned)p->topology <= MEMBER_FILE && p->edge_count >= 0 && (p->edge_count == 0 || p->edges) &&
           edges_ok(p);
}
