/* Notes that an operation holds at the agents of its legs, until all copies have the bytes (wire/note.h). */
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/stream/connection.h"
#include "runtime/wire/intent.h"

/* Each leg has its share: one that is ahead must not take what another needs to come after it, for the notes of a piece
 * are given back when all legs have it. */
bool note_has_room(const struct op *op, int node)
{
    int of_leg = 0;
    for (int i = 0; i < op->held.notes; i++)
        of_leg += op->held.note[i].node == node;
    return op->held.notes < OP_NOTES_MAX && of_leg < OP_NOTES_MAX / LEGS_MAX;
}

/* A note at the agent of the leg for these bytes; the one that it has already, if they are sent again. */
int note_take(struct op *op, int node, const struct stripe_piece *part)
{
    for (int i = 0; i < op->held.notes; i++)
        if (op->held.note[i].node == node && op->held.note[i].offset == part->offset &&
            op->held.note[i].len == part->len) {
            op->held.note[i].done = false;
            op->held.note[i].clearing = 0;
            return op->held.note[i].note;
        }
    int note = note_has_room(op, node) ? connection_note_take(&op->client->connections.of[node]) : -1;
    if (note >= 0)
        op->held.note[op->held.notes++] =
            (struct held_note){.node = (int16_t)node, .note = (int16_t)note, .offset = part->offset, .len = part->len};
    return note;
}

static void note_free(struct op *op, int i)
{
    connection_note_free(op->client, &op->client->connections.of[op->held.note[i].node], op->held.note[i].note);
    op->held.note[i] = op->held.note[--op->held.notes];
}

/* If the connection breaks: again on the next one. */
static void tell_clear(const struct op *op, const struct held_note *n)
{
    const struct connection *l = &op->client->connections.of[n->node];
    struct wire w;
    msg_intent_encode(
        &(struct msg_intent){
            .seq = n->clearing,
            .at = {.seg = op->segment->index, .slot = (uint16_t)op->slot, .offset = op->offset + n->offset},
            .note = n->note,
            .put = op->number},
        &w);
    if (l->way.state == WAY_UP)
        (void)tp_send(l->way.ep, &w, sizeof w, NULL, 0, NULL);
}

/* All copies have the bytes of the note. One that may say "torn" is the agent's until it answers that it says nothing
 * any more: it would call its copy torn, and bytes of another copy, which the next writer tears, would be taken for
 * whole ones. */
static void note_give_back(struct op *op, int i)
{
    if (!op->held.announced) {
        note_free(op, i);
        return;
    }
    if (op->held.note[i].clearing)
        return;
    op->held.note[i].clearing = ++op->client->ops.next_seq;
    tell_clear(op, &op->held.note[i]);
}

bool note_all_given_back(struct op *op, uint64_t now)
{
    for (int i = op->held.notes - 1; op->held.announced && i >= 0; i--) {
        int node = op->held.note[i].node;
        if (!atomic_load_explicit(&page_node(op->client->page, node)->alive, memory_order_acquire)) {
            note_free(op, i);
            continue;
        }
        note_give_back(op, i);
        (void)connection_up(op->client, node, now);
    }
    return !op->held.announced || op->held.notes == 0;
}

void note_cleared(struct client *c, uint64_t seq)
{
    for (struct op *op = c->ops.announced; op; op = op->held.next_announced)
        for (int i = 0; i < op->held.notes; i++)
            if (op->held.note[i].clearing == seq) {
                note_free(op, i);
                op_advance(op, c->env.now(c->env.user));
                return;
            }
}

void note_clear_again(const struct client *c, int node)
{
    for (const struct op *op = c->ops.announced; op; op = op->held.next_announced)
        for (int i = 0; i < op->held.notes; i++)
            if (op->held.note[i].clearing && op->held.note[i].node == node)
                tell_clear(op, &op->held.note[i]);
}

void note_announce(struct op *op)
{
    struct client *c = op->client;
    if (op->held.announced)
        return;
    op->held.announced = true;
    op->held.next_announced = c->ops.announced;
    c->ops.announced = op;
}

static void note_announce_no_more(struct op *op)
{
    struct op **link = &op->client->ops.announced;
    if (!op->held.announced)
        return;
    while (*link != op)
        link = &(*link)->held.next_announced;
    *link = op->held.next_announced;
    op->held.announced = false;
}

void note_done(struct op *op, const struct piece *p)
{
    int done = 0;
    for (int i = 0; i < op->held.notes; i++)
        if (op->held.note[i].offset == p->offset && op->held.note[i].len == p->len) {
            op->held.note[i].done = op->held.note[i].done || op->held.note[i].node == p->node;
            done += op->held.note[i].done;
        }
    if (done < op->plan.legs || (op->plan.here && op->stored < p->offset + p->len))
        return;
    if (op->plan.way == PLAN_CHUNKS)
        FAULT_POINT("op.chunk_in_all_copies");
    for (int i = op->held.notes - 1; i >= 0; i--)
        if (op->held.note[i].offset == p->offset && op->held.note[i].len == p->len)
            note_give_back(op, i);
}

void note_free_all(struct op *op)
{
    note_announce_no_more(op);
    while (op->held.notes)
        note_free(op, op->held.notes - 1);
}
