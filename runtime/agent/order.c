#include "runtime/agent/order.h"

#include <stdlib.h>
#include <string.h>

enum { LOG_FIRST = 16, HELD_FIRST = 8, BATCH = 32 };

void order_init(struct order *o, bool leads, bool has_next, const struct order_ops *ops, void *user)
{
    *o = (struct order){.ops = ops, .user = user, .leads = leads, .has_next = has_next};
}

void order_fini(struct order *o)
{
    free(o->log);
    free(o->held);
    *o = (struct order){0};
}

static bool is_same(const struct order_name *a, const struct order_name *b)
{
    return a->origin == b->origin && a->number == b->number && a->step == b->step;
}

/* Of an entry that is not forgotten. */
static struct order_logged *logged(const struct order *o, uint64_t number)
{
    return &o->log[number & (o->room - 1)];
}

/* 0: it has none, or is forgotten. */
static uint64_t number_of(const struct order *o, const struct order_name *name, uint64_t from)
{
    for (uint64_t n = from; n <= o->known; n++)
        if (is_same(&logged(o, n)->entry.name, name))
            return n;
    return 0;
}

static bool reserve(struct order *o, uint64_t more)
{
    size_t room = o->room ? o->room : LOG_FIRST;
    uint64_t need = o->known - o->answered + more;
    while (room < need)
        room *= 2;
    if (room == o->room)
        return true;
    struct order_logged *log = calloc(room, sizeof *log);
    if (!log)
        return false;
    for (uint64_t n = o->answered + 1; n <= o->known; n++)
        log[n & (room - 1)] = *logged(o, n);
    free(o->log);
    o->log = log;
    o->room = room;
    return true;
}

/* After reserve. */
static void append(struct order *o, const struct order_entry *entry, void *op)
{
    o->known++;
    *logged(o, o->known) = (struct order_logged){.entry = *entry, .op = op};
}

static void send_from(struct order *o, uint64_t first)
{
    struct order_entry batch[BATCH];
    for (uint64_t n = first; o->has_next && n <= o->known;) {
        size_t count = 0;
        for (; count < BATCH && n + count <= o->known; count++)
            batch[count] = logged(o, n + count)->entry;
        o->ops->send(o->user, n, batch, count);
        n += count;
    }
}

/* Execute what has its turn. */
static void run(struct order *o)
{
    while (o->executed < o->known && logged(o, o->executed + 1)->op) {
        o->executed++;
        o->ops->execute(o->user, logged(o, o->executed)->op);
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Tell the one before us, and the own set's ranks, how far all are. */
static void advance(struct order *o)
{
    uint64_t acked = least(o->has_next ? o->passed : o->known, o->executed + ORDER_AHEAD);
    if (acked > o->acked) {
        o->acked = acked;
        if (!o->leads)
            o->ops->ack(o->user, acked);
    }
    while (o->answered < least(o->acked, o->executed)) {
        void *op = logged(o, ++o->answered)->op;
        if (op)
            o->ops->answer(o->user, op);
    }
}

static bool hold(struct order *o, const struct order_entry *entry, void *op)
{
    for (size_t i = 0; i < o->helds; i++)
        if (is_same(&o->held[i].entry.name, &entry->name)) {
            o->held[i] = (struct order_held){*entry, op};
            return true;
        }
    if (o->helds == o->held_room) {
        size_t room = o->held_room ? 2 * o->held_room : HELD_FIRST;
        struct order_held *held = realloc(o->held, room * sizeof *held);
        if (!held)
            return false;
        o->held = held;
        o->held_room = room;
    }
    o->held[o->helds++] = (struct order_held){*entry, op};
    return true;
}

static void unhold(struct order *o, size_t i)
{
    o->helds--;
    memmove(&o->held[i], &o->held[i + 1], (o->helds - i) * sizeof *o->held);
}

/* The own set's operation of an entry is here. */
static void match(struct order *o, uint64_t number, uint64_t what, void *op)
{
    struct order_logged *of = logged(o, number);
    if (of->entry.what != what)
        o->ops->differ(o->user, op, &of->entry);
    of->op = op;
}

bool order_arrived(struct order *o, struct order_name name, uint64_t what, void *op)
{
    struct order_entry entry = {name, what};
    uint64_t number = number_of(o, &name, o->executed + 1);
    if (!number && !o->leads)
        return hold(o, &entry, op);
    if (!number) {
        if (!reserve(o, 1))
            return false;
        append(o, &entry, op);
        send_from(o, o->known);
    } else {
        match(o, number, what, op);
    }
    run(o);
    advance(o);
    return true;
}

bool order_repeated(struct order *o, struct order_name name, void *op)
{
    uint64_t number = number_of(o, &name, o->answered + 1);
    if (!number)
        return false;
    logged(o, number)->op = op;
    return true;
}

void order_forget(struct order *o, const void *op)
{
    for (size_t i = o->helds; i-- > 0;)
        if (o->held[i].op == op)
            unhold(o, i);
    for (uint64_t n = o->answered + 1; n <= o->known; n++)
        if (logged(o, n)->op == op)
            logged(o, n)->op = NULL;
}

/* Those that are held may have their entries now. */
static void match_held(struct order *o, uint64_t from)
{
    for (size_t i = 0; i < o->helds;) {
        struct order_held held = o->held[i];
        uint64_t number = number_of(o, &held.entry.name, from);
        if (!number) {
            i++;
            continue;
        }
        unhold(o, i);
        match(o, number, held.entry.what, held.op);
    }
}

bool order_entries(struct order *o, uint64_t first, const struct order_entry *entry, size_t n)
{
    uint64_t known = o->known, last = first + n - 1;
    if (o->leads || n == 0)
        return true;
    if (first > known + 1 || (last > known && !reserve(o, last - known)))
        return false;
    for (uint64_t number = known + 1; number <= last; number++)
        append(o, &entry[number - first], NULL);
    match_held(o, known + 1);
    send_from(o, known + 1);
    run(o);
    uint64_t told = o->acked;
    advance(o);
    if (o->acked == told) /* who sends what is known may not know how far we are */
        o->ops->ack(o->user, o->acked);
    return true;
}

void order_acked(struct order *o, uint64_t upto)
{
    if (!o->has_next || upto <= o->passed)
        return;
    o->passed = least(upto, o->known);
    advance(o);
}

bool order_chain(struct order *o, bool leads, bool has_next)
{
    if (leads && !reserve(o, o->helds))
        return false;
    o->leads = leads;
    o->has_next = has_next;
    send_from(o, o->acked + 1);
    if (leads && o->helds > 0) {
        uint64_t known = o->known;
        for (size_t i = 0; i < o->helds; i++)
            append(o, &o->held[i].entry, o->held[i].op);
        o->helds = 0;
        send_from(o, known + 1);
    }
    run(o);
    uint64_t told = o->acked;
    advance(o);
    if (!leads && o->acked == told) /* what we said last may have gone to who is retired */
        o->ops->ack(o->user, o->acked);
    return true;
}

bool order_begin_anew(struct order *o, bool leads, bool has_next)
{
    if (o->answered < o->known || o->helds > 0)
        return false;
    o->known = o->executed = o->passed = o->acked = o->answered = 0;
    o->leads = leads;
    o->has_next = has_next;
    return true;
}
