#include "detect/batch.h"

int batch_next_death(const struct view_event *e, int after)
{
    int first = (int)e->a, bit = after - first; /* of the next one */
    if (e->type != VIEW_NODE_DEAD || bit >= BATCH_SPAN - 1)
        return -1;
    if (bit < 0)
        return first;
    uint64_t rest = e->d & ~0ull << bit;
    return rest ? first + 1 + __builtin_ctzll(rest) : -1;
}

bool batch_declares(const struct batch *b, int node)
{
    for (int i = 0; i < b->n; i++)
        if (batch_next_death(&b->e[i].event, node - 1 < (int)b->e[i].event.a ? -1 : node - 1) == node)
            return true;
    return false;
}

const struct view_event *batch_birth(const struct batch *b)
{
    for (int i = 0; i < b->n; i++)
        if (b->e[i].event.type == VIEW_NODE_BORN)
            return &b->e[i].event;
    return NULL;
}

int batch_events(const struct batch *b, struct view_event out[MEMBER_EVENTS_MAX])
{
    int n = 0;
    for (int i = 0; i < b->n; i++) {
        const struct view_event *e = &b->e[i].event;
        if (e->type != VIEW_NODE_DEAD && e->type != BATCH_VOID)
            out[n++] = *e;
        for (int node = batch_next_death(e, -1); node >= 0 && n < MEMBER_EVENTS_MAX; node = batch_next_death(e, node)) {
            out[n] = *e;
            out[n].a = (uint32_t)node;
            out[n++].d = 0;
        }
    }
    return n;
}
