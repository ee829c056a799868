/* Pieces of operations: what is on its way to a node. */
#include <stdlib.h>

#include "runtime/client/client.h"
#include "runtime/client/op/op_int.h"

struct piece *piece_new(struct op *op, int leg, const struct stripe_piece *part)
{
    struct client *c = op->client;
    struct piece *p = c->ops.free_pieces;
    if (p)
        c->ops.free_pieces = p->next;
    else if (!(p = malloc(sizeof *p)))
        return NULL;
    *p = (struct piece){.op = op,
                        .offset = part->offset,
                        .len = part->len,
                        .level = part->level,
                        .leg = leg,
                        .node = op->plan.leg[leg].node};
    p->tp.user = p;
    *op->out.pieces_tail = p;
    op->out.pieces_tail = &p->sibling;
    c->ops.pieces_living++;
    return p;
}

void piece_hash(struct piece *p)
{
    struct client *c = p->op->client;
    p->seq = ++c->ops.next_seq;
    p->next = c->ops.by_seq[p->seq % SEQ_SLOTS];
    c->ops.by_seq[p->seq % SEQ_SLOTS] = p;
    c->ops.messages++;
    counter_add(client_counts(c), COUNTER_requests, 1);
    counter_most(client_counts(c), COUNTER_requests_most, (uint64_t)c->ops.messages);
}

struct piece *piece_of(const struct client *c, uint64_t seq)
{
    struct piece *p = c->ops.by_seq[seq % SEQ_SLOTS];
    while (p && p->seq != seq)
        p = p->next;
    return p;
}

void piece_unhash(struct piece *p)
{
    struct client *c = p->op->client;
    if (!p->seq)
        return;
    struct piece **link = &c->ops.by_seq[p->seq % SEQ_SLOTS];
    while (*link && *link != p)
        link = &(*link)->next;
    if (*link) {
        *link = p->next;
        c->ops.messages--;
        c->ops.serve = true;
    }
    p->seq = 0;
}

void piece_free(struct piece *p)
{
    struct op *op = p->op;
    struct client *c = op->client;
    piece_unhash(p);
    struct piece **link = &op->out.pieces;
    while (*link != p)
        link = &(*link)->sibling;
    *link = p->sibling;
    if (!*link)
        op->out.pieces_tail = link;
    if (p->remote_access)
        op->out.accesses--;
    free(p->flown);
    p->flown = NULL;
    p->next = c->ops.free_pieces;
    c->ops.free_pieces = p;
    c->ops.pieces_living--;
}

void piece_done(struct piece *p)
{
    piece_unhash(p);
    p->done = true;
    if (!p->remote_access)
        piece_free(p);
}

void piece_take_back(struct op *op, bool all)
{
    for (struct piece *p = op->out.pieces, *next; p; p = next) {
        next = p->sibling;
        if (all || !op_is_once(op))
            piece_done(p);
    }
}
