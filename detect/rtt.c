#include "detect/member_internal.h"

enum { RTT_STEP = 4, RTT_TIMES = 4, RTT_LEAST_NS = 100000 };

void rtt_note(struct rtt *rtt, uint64_t took)
{
    uint64_t step = rtt->half / RTT_STEP;
    if (!rtt->half)
        rtt->half = later(took, RTT_LEAST_NS);
    else
        rtt->half = took > rtt->half ? rtt->half + step : later(rtt->half - step, RTT_LEAST_NS);
}

uint64_t rtt_rto(const struct member *m, const struct rtt *rtt, int hops)
{
    uint64_t rto = later((uint64_t)hops * RTT_TIMES * rtt->half, m->p.rto_ns);
    return rto < m->p.answer_ns / 2 ? rto : m->p.answer_ns / 2;
}

uint64_t rtt_rto_max(const struct member *m, const struct rtt *rtt, int hops)
{
    return later(m->p.rto_max_ns, rtt_rto(m, rtt, hops));
}
