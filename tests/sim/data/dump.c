/* For --verbose: what somebody who does not go on is waiting for. */
#include "runtime/agent/ranks.h"
#include "runtime/wire/complete.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/stream/connection.h"
#include "tests/sim/data/world.h"

static void dump_op(struct world *w, const struct op *op)
{
    const struct client *c = op->client;
    static const char *const kind[] = {"put", "get", "acc", "add", "cas", "enter"};
    world_say(w,
              "  %s of %llu bytes: segment %lld, slot %d, group %d%s%s%s%s, status %d, tag %llx, now %llx, at %lld ms "
              "of its time",
              kind[op->kind], (unsigned long long)op->len, op->segment ? (long long)op->segment->index : -1, op->slot,
              op->copyset, op->planned ? ", planned" : "", op->replan ? ", to be planned again" : "",
              op->line.waiting ? ", waits" : "", op->out.accesses ? ", accesses" : "", op->status,
              (unsigned long long)op->route.tag, (unsigned long long)page_tag(c->page, op->copyset),
              (long long)((c->progress.lived_ns - op->times.started) / MS));
    for (int leg = 0; leg < op->plan.legs; leg++) {
        const struct connection *l = &c->connections.of[op->plan.leg[leg].node];
        world_say(w, "    leg to node %d: %llu posted, %llu done; link is %s", l->node,
                  (unsigned long long)op->plan.leg[leg].posted, (unsigned long long)op->plan.leg[leg].done,
                  l->way.state == WAY_UP     ? "up"
                  : l->way.state == WAY_DOWN ? "down"
                                             : "connecting");
    }
    for (const struct piece *p = op->out.pieces; p; p = p->sibling)
        world_say(w, "    piece %llu+%llu to node %d, leg %d, seq %llu%s", (unsigned long long)p->offset,
                  (unsigned long long)p->len, p->node, p->leg, (unsigned long long)p->seq,
                  p->remote_access ? ", access" : "");
}

void world_dump(struct world *w, const struct runner *r)
{
    const struct client *c = &r->client;
    uint64_t since = w->sched.now;
    const char *call = program_call(r, &since);
    world_say(w, "rank %d.%u of node %d is in %s for %llu ms%s:", r->rank, r->incarnation, r->node->id,
              call ? call : "no call", (unsigned long long)((w->sched.now - since) / MS),
              r->process.frozen ? ", frozen" : "");
    program_dump(r);
    for (const struct op *op = c->ops.active; op; op = op->next)
        dump_op(w, op);
    for (int m = 0; m < w->members; m++) {
        const struct node *n = &w->node[m];
        const struct agent *a = &n->agent;
        if (n->dead)
            continue;
        int stashed = 0, waiting = 0;
        for (const struct stashed *s = a->stash.first; s; s = s->next)
            stashed++;
        for (const struct waiter *q = a->waiters; q; q = q->next)
            waiting++;
        world_say(w,
                  "  node %d: epoch %llu, settled %llu%s%s, %d stashed, %d waiters, %llu segments and %llu collectives "
                  "complete",
                  m, (unsigned long long)a->view.epoch, (unsigned long long)a->recovery.settled,
                  n->process.frozen ? ", frozen" : "", a->recovery.frozen ? ", prepares" : "", stashed, waiting,
                  (unsigned long long)complete_segments(ranks_complete(a)),
                  (unsigned long long)complete_collectives(ranks_complete(a)));
    }
}
