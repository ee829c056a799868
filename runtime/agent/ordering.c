/* Operations that have come, and what becomes of them. */
#include "runtime/agent/ordering_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/execute.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/wire/acc.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/order.h"
#include "runtime/wire/rmw.h"

/* Another replica of its rank waits for the same operation, under the same name. */
struct asker {
    struct asker *next;
    struct conn *conn;
    uint64_t seq;
};

/* An operation that has come. */
struct ordered {
    struct ordered *next, *prev, *beside; /* beside: in its place by its name */
    struct conn *conn;
    struct asker *also;
    struct order_name name;
    bool executed;
    struct wire wire;
    uint8_t body[];
};

static_assert(sizeof(struct order_record) == sizeof(struct order_entry) &&
                  offsetof(struct order_record, what) == offsetof(struct order_entry, what),
              "an entry is sent as it is");

static void free_one(struct ordered *w)
{
    for (struct asker *k = w->also, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(w);
}

void ordering_fini(struct ordering *o)
{
    ordering_forget_late(o);
    for (unsigned class = 0; o->map && class < CLASSES; class ++) {
        for (struct ordered *w = o->part[class].waiting, *next; w; w = next) {
            next = w->next;
            free_one(w);
        }
        order_fini(&o->part[class].order);
    }
    *o = (struct ordering){0};
}

/* ---- operations ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static unsigned place_of(const struct order_name *name)
{
    return (unsigned)(mix(mix(name->origin, name->number), name->step) % ORDERED_PLACES);
}

static void link_in(struct ordered_part *p, struct ordered *w)
{
    unsigned place = place_of(&w->name);
    w->beside = p->named[place];
    p->named[place] = w;
    w->prev = NULL;
    w->next = p->waiting;
    if (w->next)
        w->next->prev = w;
    p->waiting = w;
}

static void drop(struct ordered_part *p, struct ordered *w)
{
    struct ordered **link = &p->named[place_of(&w->name)];
    while (*link != w)
        link = &(*link)->beside;
    *link = w->beside;
    *(w->prev ? &w->prev->next : &p->waiting) = w->next;
    if (w->next)
        w->next->prev = w->prev;
    free_one(w);
}

static struct ordered *find(const struct ordered_part *p, const struct order_name *name)
{
    struct ordered *w = p->named[place_of(name)];
    while (w && (w->name.origin != name->origin || w->name.number != name->number || w->name.step != name->step))
        w = w->beside;
    return w;
}

static struct ordered *keep(struct ordered_part *p, struct conn *c, const struct wire *w, const void *body,
                            struct order_name name)
{
    struct ordered *kept = malloc(sizeof *kept + w->len);
    if (!kept)
        return NULL;
    *kept = (struct ordered){.conn = c, .name = name, .wire = *w};
    if (w->len)
        memcpy(kept->body, body, w->len);
    link_in(p, kept);
    return kept;
}

/* Replicas give the same name: no message says the number of a set. */
static struct order_name name_of(const struct agent *a, const struct wire *w, const struct msg_identity *id)
{
    uint64_t rank = (uint64_t)replica_of(a->ordering.map, wire_life(w).rank).rank;
    return (struct order_name){.origin = rank << 32 | id->lane, .number = id->number, .step = id->step};
}

/* What it does, where, with which bytes. */
static uint64_t what_of(const struct agent *a, const struct wire *w, const void *body)
{
    struct msg_request r;
    struct msg_acc acc = {.type = 0};
    struct msg_rmw rmw = {.operation = 0};
    msg_request_decode(w, &r);
    uint64_t hash = mix(w->type, a->ordering.alike ? r.at.offset : 0);
    hash = mix(hash, (uint64_t)r.len << 1 | r.packed);
    if (w->type == WIRE_ACC) {
        msg_acc_decode(w, &acc);
        hash = mix(mix(mix(hash, acc.type), (uint64_t)acc.scale[0]), (uint64_t)acc.scale[1]);
    } else {
        msg_rmw_decode(w, &rmw);
        hash = mix(mix(mix(hash, rmw.operation << 8 | rmw.bytes), (uint64_t)rmw.a), (uint64_t)rmw.b);
    }
    return digest(body, w->len, hash);
}

/* Nobody is told what it has found, and with others of its kind it commutes. */
static bool is_unordered(const struct wire *w)
{
    struct msg_rmw rmw = {.unordered = false};
    if (w->type == WIRE_RMW)
        msg_rmw_decode(w, &rmw);
    return rmw.unordered;
}

bool ordering_shares(const struct agent *a, const struct wire *w)
{
    return !a->view.replicas || (is_unordered(w) && !a->partners);
}

/* Of those that do not commute, to what a set has for itself. */
static bool is_ordered(const struct agent *a, const struct wire *w)
{
    struct msg_at at;
    struct msg_identity id;
    if (!a->view.replicas || is_unordered(w) || (w->type != WIRE_ACC && w->type != WIRE_RMW))
        return false;
    msg_at_decode(w, &at);
    msg_identity_decode(w, &id);
    return at.seg >= SEGMENT_GROUP_FIRST && !id.of_task;
}

static int set_of(const struct agent *a, const struct wire *w)
{
    return replica_of(a->view.replicas, wire_life(w).rank).set;
}

bool ordering_is_over(const struct agent *a, const struct wire *w)
{
    int set = is_ordered(a, w) ? set_of(a, w) : -1;
    return set >= 0 && !view_set_is_whole(&a->view, set) && !view_set_is_coming(&a->view, set);
}

bool ordering_refuses(const struct agent *a, const struct wire *w, int copyset)
{
    const struct ordering *o = &a->ordering;
    return a->partners && o->map && is_ordered(a, w) && copyset_slot(copyset) == o->slot &&
           !view_set_is_whole(&a->view, o->set);
}

bool ordering_has_turn(const struct agent *a, const struct wire *w, int copyset)
{
    const struct ordering *o = &a->ordering;
    return o->map && copyset_slot(copyset) == o->slot && is_ordered(a, w) && (a->partners || set_of(a, w) == o->set);
}

static void again(struct conn *c, const struct wire *w)
{
    execute_reply(c, w->seq, WIRE_RETRY, 0, NULL, 0);
}

static void all_again(const struct ordered *w)
{
    again(w->conn, &w->wire);
    for (const struct asker *k = w->also; k; k = k->next)
        execute_reply(k->conn, k->seq, WIRE_RETRY, 0, NULL, 0);
}

static struct asker *asker_of(const struct ordered *w, struct life life)
{
    struct asker *k = w->also;
    while (k && !life_equal(k->conn->life, life))
        k = k->next;
    return k;
}

/* Replicas that do each other's part may all ask here, where they are to be told the same: each gets its answer. One
 * that asks again has it once. */
static void asks_too(struct ordered *w, struct conn *c, const struct wire *wire)
{
    struct asker *k = asker_of(w, c->life);
    if (life_equal(w->conn->life, c->life)) {
        w->conn = c;
        w->wire.seq = wire->seq;
        w->wire.epoch = wire->epoch;
        return;
    }
    if (!k && (k = malloc(sizeof *k))) {
        k->next = w->also;
        w->also = k;
    }
    if (!k) {
        again(c, wire);
        return;
    }
    k->conn = c;
    k->seq = wire->seq;
}

/* The piece before it has come, and waits for its turn. */
static bool is_behind(const struct ordered_part *p, struct order_name name)
{
    name.step--;
    return find(p, &name) != NULL;
}

static void arrived(struct agent *a, struct ordered_part *p, struct ordered *w, struct ordered *earlier)
{
    struct conn *c = w->conn;
    struct wire wire = w->wire;
    if (order_arrived(&p->order, w->name, what_of(a, &w->wire, w->body), w)) { /* w may be answered by now */
        if (earlier)
            drop(p, earlier);
        return;
    }
    drop(p, w);
    again(c, &wire);
}

void ordering_take(struct agent *a, struct conn *c, const struct wire *w, const void *body, int copyset,
                   enum dedup_verdict verdict)
{
    struct ordered_part *p = &a->ordering.part[copyset_class(copyset)];
    struct msg_identity id;
    msg_identity_decode(w, &id);
    struct order_name name = name_of(a, w, &id);
    struct ordered *earlier = find(p, &name);
    if (a->partners && earlier) {
        asks_too(earlier, c, w);
        return;
    }
    struct ordered *kept = verdict == DEDUP_EARLY && !is_behind(p, name) ? NULL : keep(p, c, w, body, name);
    if (!kept) {
        again(c, w);
    } else if (verdict != DEDUP_SEEN) {
        arrived(a, p, kept, earlier);
    } else if (order_repeated(&p->order, name, kept)) {
        kept->executed = true;
        if (earlier)
            drop(p, earlier);
    } else {
        drop(p, kept);
        execute_answer(a, c, w, body);
    }
}

static void forget(struct ordered_part *p, struct ordered *w)
{
    order_forget(&p->order, w);
    drop(p, w);
}

/* Whoever else asks for it does so in its place. */
static bool is_passed_on(struct ordered *w)
{
    struct asker *k = w->also;
    if (!k)
        return false;
    w->conn = k->conn;
    w->wire.seq = k->seq;
    w->also = k->next;
    free(k);
    return true;
}

static void forget_asker(struct ordered *w, const struct conn *c)
{
    struct asker **link = &w->also;
    while (*link && (*link)->conn != c)
        link = &(*link)->next;
    struct asker *k = *link;
    if (!k)
        return;
    *link = k->next;
    free(k);
}

void ordering_forget(struct agent *a, const struct conn *c)
{
    for (unsigned class = 0; a->ordering.map && class < CLASSES; class ++) {
        struct ordered_part *p = &a->ordering.part[class];
        for (struct ordered *w = p->waiting, *next; w; w = next) {
            next = w->next;
            forget_asker(w, c);
            if (w->conn == c && !is_passed_on(w))
                forget(p, w);
        }
    }
}

/* ---- what the order asks for ---- */

static void execute_one(void *user, void *op)
{
    struct ordered_part *p = user;
    struct ordered *w = op;
    w->executed = true;
    FAULT_POINT("order.executing");
    execute_in_turn(p->agent, &w->wire, w->body);
    FAULT_POINT("order.executed");
}

static void answer_one(void *user, void *op)
{
    struct ordered_part *p = user;
    struct ordered *w = op;
    FAULT_POINT("order.answering");
    execute_answer(p->agent, w->conn, &w->wire, w->body);
    for (struct asker *k = w->also; k; k = k->next) {
        w->wire.seq = k->seq;
        execute_answer(p->agent, k->conn, &w->wire, w->body);
    }
    drop(p, w);
}

static void tell_differ(void *user, void *op, const struct order_entry *entry)
{
    const struct ordered_part *p = user;
    const struct ordered *w = op;
    struct ordering *o = &p->agent->ordering;
    char who[REPLICA_NAME];
    (void)entry;
    if (o->said)
        return;
    o->said = true;
    log_warn("%s: an accumulate or atomic is not what the leading set has there (%llu of lane %u, %u bytes)",
             replica_name(o->map, wire_life(&w->wire).rank, who), (unsigned long long)w->name.number,
             (unsigned)(w->name.origin & UINT32_MAX), w->wire.len);
}

static void send_entries(void *user, uint64_t first, const struct order_entry *entry, size_t n)
{
    const struct ordered_part *p = user;
    struct wire w;
    msg_order_encode(&(struct msg_order){.class = p->class, .first = first, .len = (uint32_t)(n * sizeof *entry)}, &w);
    FAULT_POINT("order.telling");
    agent_tell(p->agent, p->behind, &w, entry);
    FAULT_POINT("order.told");
}

static void send_ack(void *user, uint64_t upto)
{
    const struct ordered_part *p = user;
    struct wire w;
    msg_ordered_encode(&(struct msg_ordered){.class = p->class, .upto = upto}, &w);
    FAULT_POINT("order.acknowledging");
    agent_tell(p->agent, p->before, &w, NULL);
}

const struct order_ops ordering_ops = {
    .execute = execute_one, .answer = answer_one, .differ = tell_differ, .send = send_entries, .ack = send_ack};

void ordering_give_back(struct agent *a, struct ordered_part *p, bool all)
{
    uint64_t generation = a->view.copyset[copyset_of(a->ordering.slot, p->class)].generation;
    for (struct ordered *w = p->waiting, *next; w; w = next) {
        next = w->next;
        if (all || (!w->executed && w->wire.epoch < generation)) {
            all_again(w);
            forget(p, w);
        }
    }
}
