/* What a core knows at this moment, for people. Times are the owner's, as in its calls. */
#include "detect/member_internal.h"

static uint64_t outer(const struct member *m, uint64_t inner)
{
    return inner + m->blind;
}

static const char *state_name(enum target_state state)
{
    static const char *const names[] = {"asked", "checked", "suspect", "answers", "link broken"};
    return names[state];
}

void member_status(const struct member *m, struct member_status *out)
{
    const struct detector *d = &m->detector;
    *out = (struct member_status){.epoch = m->ledger.epoch,
                                  .born = m->joining.born,
                                  .next_id = m->roster.next_id,
                                  .coordinator = agreement_coordinator(m)};
    for (int i = 0; i < d->n_watch; i++) {
        const struct watch *w = &d->watch[i];
        struct member_watch_status *s = &out->watches[out->n_watches++];
        *s = (struct member_watch_status){.node = w->node, .last_life_ns = outer(m, w->last_life), .reads = w->reads};
        memcpy(s->latency, w->latency, sizeof s->latency);
    }
    for (int i = 0; i < d->n_targets && out->n_doubts < MEMBER_DOUBTS_MAX; i++) {
        const struct target *tg = &d->targets[i];
        struct member_doubt_status *s = &out->doubts[out->n_doubts];
        if (tg->state == TARGET_DUTY)
            continue;
        *s = (struct member_doubt_status){
            .node = tg->node, .state = state_name(tg->state), .since_ns = outer(m, tg->since), .asked = tg->n_voters};
        for (int k = 0; k < tg->n_voters; k++) {
            s->reached += tg->voters[k].vote == VOTE_REACHED;
            s->unreached += tg->voters[k].vote == VOTE_UNREACHED || tg->voters[k].vote == VOTE_KERNEL;
        }
        if (!member_doubt(m, tg->node, &s->doubt))
            s->doubt.node = -1;
        out->n_doubts++;
    }
    out->n_links = member_links(m, out->links, MEMBER_LINKS_MAX);
}
