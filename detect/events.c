#include "detect/events.h"

#include <string.h>

#include "detect/grow.h"

void events_free(struct events *e)
{
    free(e->queue);
    free(e->mine);
    free(e->ordered);
}

uint32_t events_submit(struct events *e, int self, const struct view_event *event)
{
    if (!grow((void **)&e->mine, &e->cap_mine, e->n_mine + 1, sizeof *e->mine))
        return 0;
    uint32_t seq = ++e->last_seq;
    e->mine[e->n_mine++] = (struct pending){.node = self, .seq = seq, .event = *event};
    return seq;
}

bool events_enqueue(struct events *e, const struct pending *p)
{
    if (p->seq != events_last_known(e, p->node) + 1 ||
        !grow((void **)&e->queue, &e->cap_queue, e->n_queue + 1, sizeof *e->queue))
        return false;
    e->queue[e->n_queue++] = *p;
    return true;
}

void events_enqueue_mine(struct events *e, int self)
{
    uint32_t last = events_last_known(e, self);
    for (int i = 0; i < e->n_mine; i++)
        if (e->mine[i].seq == last + 1 && grow((void **)&e->queue, &e->cap_queue, e->n_queue + 1, sizeof *e->queue)) {
            e->queue[e->n_queue++] = e->mine[i];
            last++;
        }
}

bool events_set_ordered(struct events *e, int node, uint32_t seq)
{
    int i = 0;
    while (i < e->n_ordered && e->ordered[i].node < node)
        i++;
    if (i == e->n_ordered || e->ordered[i].node != node) {
        if (!grow((void **)&e->ordered, &e->cap_ordered, e->n_ordered + 1, sizeof *e->ordered))
            return false;
        memmove(&e->ordered[i + 1], &e->ordered[i], (size_t)(e->n_ordered - i) * sizeof *e->ordered);
        e->n_ordered++;
    }
    e->ordered[i].node = node;
    e->ordered[i].seq = seq;
    return true;
}

static uint32_t last_ordered(const struct events *e, int node)
{
    for (int lo = 0, hi = e->n_ordered; lo < hi;) {
        int mid = (lo + hi) / 2;
        if (e->ordered[mid].node == node)
            return e->ordered[mid].seq;
        if (e->ordered[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

uint32_t events_last_known(const struct events *e, int node)
{
    uint32_t last = last_ordered(e, node);
    for (int k = 0; k < e->n_queue; k++)
        if (e->queue[k].node == node && e->queue[k].seq > last)
            last = e->queue[k].seq;
    return last;
}

void events_drop(struct events *e, int self, const struct idset *gone)
{
    int k = 0;
    for (int i = 0; i < e->n_queue; i++)
        if (!idset_has(gone, e->queue[i].node) && e->queue[i].seq > last_ordered(e, e->queue[i].node))
            e->queue[k++] = e->queue[i];
    e->n_queue = k;
    k = 0;
    for (int i = 0; i < e->n_mine; i++)
        if (e->mine[i].seq > last_ordered(e, self))
            e->mine[k++] = e->mine[i];
    e->n_mine = k;
}
