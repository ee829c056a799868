#include "agents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/agent/execute.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/segments.h"
#include "runtime/net/hello.h"
#include "runtime/wire/digested.h"
#include "runtime/wire/kinds.h"
#include "tests/lib/net/mem.h"

struct world w;

static const uint8_t secret[32] = {4, 2};

/* ---- what agents ask of their owner ---- */

static void on_submit(void *user, const struct view_event *event)
{
    (void)user;
    assert_true(w.submissions < SUBMITTED_MAX);
    w.submitted[w.submissions++] = *event;
}

static void on_check(void *user, int node)
{
    ((struct node *)user)->checked[node]++;
}

static void on_refused(void *user, int node)
{
    (void)node;
    ((struct node *)user)->refused++;
}

static void on_broken(void *user, int node)
{
    (void)node;
    ((struct node *)user)->broken++;
}

static void on_prepared(void *user, uint64_t proposal, uint64_t value)
{
    (void)value;
    ((struct node *)user)->prepared = proposal;
}

static void on_fatal(void *user, const char *why)
{
    (void)why;
    ((struct node *)user)->fatal = true;
}

static void on_event(void *user, const char *name, const char *members)
{
    struct node *node = user;
    snprintf(node->last, sizeof node->last, "%s", members);
    if (strcmp(name, "scrubbed") == 0)
        snprintf(node->found, sizeof node->found, "%s", members);
    if (strlen(node->said) + strlen(name) + 2 < sizeof node->said) {
        strcat(node->said, name);
        strcat(node->said, " ");
    }
}

static keel_status on_memory_make(void *user, size_t bytes, void **base, int64_t *handle)
{
    *base = ((struct node *)user)->full ? NULL : calloc(1, bytes);
    *handle = 0;
    return *base ? KEEL_OK : KEEL_ERR_NOMEM;
}

static void on_memory_free(void *user, void *base, size_t bytes, int64_t handle)
{
    (void)user, (void)bytes, (void)handle;
    free(base);
}

static keel_status on_memory_fill(void *user, void *base, int64_t handle, size_t offset, const void *from, size_t bytes)
{
    struct node *node = user;
    (void)handle;
    if (node->refused_block && --node->refused_block == 0)
        return KEEL_ERR_NOMEM;
    memcpy((char *)base + offset, from, bytes);
    return KEEL_OK;
}

static void on_memory_empty(void *user, void *base, int64_t handle, size_t offset, size_t bytes)
{
    (void)user, (void)handle;
    memset((char *)base + offset, 0, bytes);
}

static void on_answer(void *user, struct proc *proc, const struct control *reply, int64_t handle)
{
    (void)user, (void)proc, (void)handle;
    w.answer = *reply;
}

static void on_assign(void *user, struct proc *proc, struct life life)
{
    struct node *node = user;
    (void)proc;
    node->assigns++;
    node->assigned = life;
}

static void on_stay(void *user, struct proc *proc)
{
    ((struct node *)user)->stays += proc != NULL;
}

static void on_release(void *user, struct proc *proc)
{
    ((struct node *)user)->released = proc;
}

static void on_forgotten(void *user, struct proc *proc)
{
    (void)user, (void)proc;
}

static unsigned on_look_at(void *user, const struct proc *proc, uint64_t *ticks)
{
    (void)proc;
    const struct node *node = user;
    *ticks = node->ticks;
    return node->process;
}

static void on_failed(void *user)
{
    ((struct node *)user)->failures++;
}

static void on_verified(void *user, uint64_t id, const char *members)
{
    (void)user;
    w.verified = id;
    snprintf(w.verdict, sizeof w.verdict, "%s", members);
}

/* ---- start and end ---- */

static int there(void)
{
    return w.nodes + w.spares + w.joined;
}

static void open_node(int i, enum view_policy policy)
{
    struct node *n = &w.node[i];
    struct tp_config tp = {.host = "agents"};
    const int rank_node[NODES_MAX] = {0, 1, 2, 3, 4};
    int members = w.nodes + w.spares + w.room;
    assert_int_equal(tp_mem.open(&tp, &n->net), KEEL_OK);
    assert_int_equal(tp_mem.open(&tp, &n->shm), KEEL_OK);
    assert_int_equal(tp_mem.listen(n->net, &n->addr), KEEL_OK);
    struct agent_config config = {.ops = {.user = n,
                                          .submit = on_submit,
                                          .check = on_check,
                                          .refused = on_refused,
                                          .broken = on_broken,
                                          .prepared = on_prepared,
                                          .fatal = on_fatal,
                                          .event = on_event,
                                          .memory_make = on_memory_make,
                                          .memory_free = on_memory_free,
                                          .memory_fill = on_memory_fill,
                                          .memory_empty = on_memory_empty,
                                          .answer = on_answer,
                                          .assign = on_assign,
                                          .release = on_release,
                                          .stay = on_stay,
                                          .forgotten = on_forgotten,
                                          .look_at = on_look_at,
                                          .failed = on_failed,
                                          .verified = on_verified},
                                  .self = i,
                                  .nodes = w.nodes,
                                  .spares = w.spares,
                                  .room = w.room,
                                  .ranks = w.ranks,
                                  .rank_node = rank_node,
                                  .policy = policy,
                                  .replicas = w.replicas,
                                  .on_death = w.on_death,
                                  .copies = {.at = COPIES_AT_NEXT}, /* what the worlds below are laid out for */
                                  .job = 1,
                                  .incarnation = 100 + (uint64_t)i,
                                  .secret = secret,
                                  .net = n->net,
                                  .shm = n->shm,
                                  .page =
                                      calloc(1, page_bytes((uint32_t)w.nodes, (uint32_t)members, (uint32_t)w.ranks)),
                                  .now = w.now};
    assert_non_null(config.page);
    assert_int_equal(agent_init(&n->agent, &config), KEEL_OK);
    for (uint32_t seg = 1; seg <= 3 && i < w.nodes + w.spares; seg++) { /* numbers ascend, as in any job */
        uint32_t class = seg == SEG_NONE ? 0 : seg;
        assert_int_equal(store_define(&n->agent.store, seg, SEG_BYTES, class, 0), KEEL_OK);
        assert_int_equal(segments_make_copies(&n->agent, store_find(&n->agent.store, seg)), KEEL_OK);
    }
}

void world_open(int nodes, int spares, enum view_policy policy)
{
    int room = w.room;
    const struct replica_map *replicas = w.replicas;
    enum replica_death on_death = w.on_death;
    memset(&w, 0, sizeof w);
    w.room = room;
    w.replicas = replicas;
    w.on_death = on_death;
    w.policy = policy;
    w.nodes = w.ranks = nodes;
    w.spares = spares;
    w.now = 1000000000;
    for (int i = 0; i < nodes + spares; i++)
        open_node(i, policy);
    for (int i = 0; i < nodes + spares; i++)
        for (int k = 0; k < nodes + spares; k++)
            agent_address(&w.node[i].agent, k, &(struct tp_addrs){.n = 1, .of = {w.node[k].addr}},
                          w.node[k].agent.incarnation);
    for (int i = 0; i < w.ranks; i++) {
        struct tp_config tp = {.host = "rank"};
        w.rank[i].rank = (uint32_t)i;
        w.rank[i].node = i;
        assert_int_equal(tp_mem.open(&tp, &w.rank[i].net), KEEL_OK);
    }
    for (int i = 0; i < w.ranks; i++)
        for (int k = 0; k < nodes + spares; k++)
            rank_connect(&w.rank[i], k);
    for (int i = 0; i < nodes + spares; i++) /* a stream from each to each */
        for (int k = 0; k < nodes + spares; k++)
            if (i != k)
                segments_tell(&w.node[i].agent, k, store_find(&w.node[i].agent.store, SEG_NONE));
    world_pump();
}

void world_close(void)
{
    for (int i = 0; i < w.ranks; i++)
        w.rank[i].net->table->close(w.rank[i].net);
    for (int i = 0; i < there(); i++) {
        struct page *page = w.node[i].agent.page;
        agent_fini(&w.node[i].agent);
        w.node[i].net->table->close(w.node[i].net);
        w.node[i].shm->table->close(w.node[i].shm);
        free(page);
    }
    w.room = 0;
    w.replicas = NULL;
    w.on_death = DEATH_RETIRES;
}

/* ---- going on ---- */

static int rank_poll(struct rank *r)
{
    struct tp_event batch[16];
    int n = tp_poll(r->net, batch, 16);
    for (int i = 0; i < n; i++) {
        const struct tp_event *e = &batch[i];
        if (e->type == TP_RECV) {
            memcpy(&r->reply, e->data, sizeof r->reply);
            memcpy(r->body, (const uint8_t *)e->data + sizeof r->reply, e->len - sizeof r->reply);
            r->replies++;
        } else if (e->type == TP_DONE) {
            r->done++;
            r->status = e->status;
        } else if (e->type == TP_CLOSED) {
            for (int k = 0; k < NODES_MAX; k++)
                if (r->ep[k] == e->ep)
                    r->ep[k] = NULL;
            tp_ep_destroy(e->ep);
        }
    }
    return n;
}

static int turn_of(int node)
{
    struct agent *a = &w.node[node].agent;
    int did = 0;
    if (w.node[node].still)
        return 0;
    a->now = w.now;
    did += agent_poll(a, a->net);
    did += agent_step(a);
    did += agent_deadline(a) != UINT64_MAX;
    return did;
}

void world_turn_of(int node)
{
    turn_of(node);
}

static int turn(void)
{
    int did = 0;
    w.now += 1000000;
    for (int i = 0; i < there(); i++)
        did += turn_of(i);
    for (int i = 0; i < w.ranks; i++)
        did += rank_poll(&w.rank[i]);
    return did;
}

void world_turn(void)
{
    turn();
}

void world_pump(void)
{
    for (int i = 0, idle = 0; i < 2000 && idle < 3; i++)
        idle = turn() ? 0 : idle + 1;
}

/* ---- views ---- */

void world_prepare(const struct view_event *events, int n)
{
    w.epoch++;
    assert_true(w.epoch < PAST_MAX && n <= PAST_EVENTS_MAX);
    w.past[w.epoch].n = n;
    memcpy(w.past[w.epoch].events, events, (size_t)n * sizeof *events);
    for (int i = 0; i < there(); i++) {
        struct agent *a = &w.node[i].agent;
        if (w.node[i].still)
            continue;
        recover_prepare(a, w.epoch, w.epoch, events, n);
    }
}

void world_commit(int node, const struct view_event *events, int n)
{
    if (!w.node[node].still)
        recover_commit(&w.node[node].agent, w.epoch, events, n, 0);
}

void world_settle(int node)
{
    if (!w.node[node].still)
        recover_settled(&w.node[node].agent, w.epoch);
}

void world_change(const struct view_event *events, int n)
{
    world_prepare(events, n);
    world_pump();
    for (int i = 0; i < there(); i++)
        assert_true(w.node[i].still || w.node[i].prepared == w.epoch);
    for (int i = 0; i < there(); i++)
        world_commit(i, events, n);
    for (int i = 0; i < there(); i++)
        world_settle(i);
    world_pump();
}

static int join(int dead)
{
    int node = there(), n = 1;
    struct agent *a = &w.node[node].agent;
    open_node(node, w.policy);
    for (int i = 0; i <= node; i++) {
        agent_address(a, i, &(struct tp_addrs){.n = 1, .of = {w.node[i].addr}}, 100 + (uint64_t)i);
        agent_address(&w.node[i].agent, node, &(struct tp_addrs){.n = 1, .of = {w.node[node].addr}},
                      100 + (uint64_t)node);
    }
    struct view_event events[2] = {{.type = VIEW_NODE_BORN, .a = (uint32_t)node, .b = 100 + (uint32_t)node}};
    if (dead >= 0)
        events[n++] = (struct view_event){.type = VIEW_NODE_DEAD, .a = (uint32_t)dead};
    for (uint64_t e = 1; e <= w.epoch; e++)
        recover_commit(a, e, w.past[e].events, w.past[e].n, 0);
    world_prepare(events, n);
    world_pump();
    w.joined++;
    for (int i = 0; i <= node; i++)
        world_commit(i, events, n);
    return node;
}

int world_join(void)
{
    return join(-1);
}

int world_join_for(int dead)
{
    w.node[dead].still = true;
    return join(dead);
}

void world_kill_node(int node)
{
    struct view_event e = {.type = VIEW_NODE_DEAD, .a = (uint32_t)node};
    w.node[node].still = true;
    world_change(&e, 1);
}

struct proc *world_process(struct agent *a, struct life life, struct intent_page *page)
{
    struct control_welcome welcome;
    struct proc *proc = ranks_started(a, 1);
    memset(page, 0, sizeof *page);
    assert_non_null(ranks_conn(a, proc));
    ranks_welcome(a, proc, life, NULL, page, &welcome);
    return proc;
}

void world_kill_rank(int rank)
{
    struct view_event e = {.type = VIEW_RANK_DEAD, .a = (uint32_t)rank, .b = w.rank[rank].incarnation, .c = 9};
    world_change(&e, 1);
}

void world_restore(void)
{
    for (int i = 0; i < 100 && w.submissions; i++) {
        struct view_event e = w.submitted[0];
        memmove(&w.submitted[0], &w.submitted[1], sizeof e * (size_t)--w.submissions);
        world_change(&e, 1);
    }
}

/* ---- ranks ---- */

void rank_connect(struct rank *r, int node)
{
    struct hello hello = {.job = 1,
                          .incarnation = r->incarnation,
                          .node = r->node,
                          .rank = (int)r->rank,
                          .to_node = node,
                          .to_incarnation = w.node[node].agent.incarnation,
                          .attempt = ++r->attempt};
    hello_sign(&hello, secret);
    if (r->ep[node])
        tp_ep_destroy(r->ep[node]);
    assert_int_equal(tp_mem.connect(r->net, &w.node[node].addr, &hello, sizeof hello, NULL, &r->ep[node]), KEEL_OK);
    world_pump();
}

struct wire rank_wire(const struct rank *r, uint8_t type, uint32_t seg, int slot, uint64_t offset)
{
    unsigned class = seg == SEG_NONE ? 0 : seg == SEG_SHADOW ? 1 : 2;
    for (int i = 0; i < there(); i++)
        if (!w.node[i].still)
            return (struct wire){.type = type,
                                 .raw.slot = (uint16_t)slot,
                                 .raw.seg = seg,
                                 .raw.offset = offset,
                                 .epoch = w.node[i].agent.view.copyset[copyset_of(slot, class)].generation,
                                 .raw.rank = r->rank,
                                 .raw.incarnation = r->incarnation};
    return (struct wire){0};
}

void rank_send(struct rank *r, int node, struct wire wire, const void *body)
{
    struct digested m = {.wire = wire};
    uint32_t len = wire.len;
    m.wire.seq = ++r->seq;
    size_t head = w.replicas && wire_kinds[wire.type].digested ? digested_make(&m, body) : sizeof m.wire;
    if (r->ep[node])
        (void)tp_send(r->ep[node], &m, head, body, len, NULL);
}

int rank_ask(struct rank *r, int node, struct wire wire, const void *body)
{
    int before = r->replies;
    rank_send(r, node, wire, body);
    world_pump();
    if (r->replies == before)
        return -1000;
    assert_int_equal(r->replies, before + 1);
    assert_int_equal(r->reply.seq, r->seq);
    return r->reply.raw.status;
}

int rank_put(struct rank *r, int node, uint32_t seg, int slot, uint64_t offset, int64_t value, uint16_t note)
{
    struct wire put = rank_wire(r, WIRE_PUT, seg, slot, offset);
    put.len = sizeof value;
    put.raw.note = note;
    return rank_ask(r, node, put, &value);
}

/* ---- what there is ---- */

struct view_copyset *copyset_at(int node, uint32_t seg, int slot)
{
    struct agent *a = &w.node[node].agent;
    return &a->view.copyset[copyset_of(slot, store_find(&a->store, seg)->redundancy)];
}

uint8_t *bytes_at(int node, uint32_t seg, int slot)
{
    const struct store_copy *copy = store_copy(&w.node[node].agent.store, seg, slot);
    assert_non_null(copy);
    return copy->base;
}

int64_t word_at(int node, uint32_t seg, int slot, uint64_t offset)
{
    int64_t value;
    memcpy(&value, bytes_at(node, seg, slot) + offset, sizeof value);
    return value;
}

static int first_running(void)
{
    int i = 0;
    while (w.node[i].still)
        i++;
    return i;
}

bool copies_are_equal(void)
{
    struct agent *a = &w.node[first_running()].agent;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        for (int slot = 0; slot < w.nodes; slot++) {
            const struct view_copyset *g = &a->view.copyset[copyset_of(slot, s->redundancy)];
            for (int i = 1; i < g->copies; i++) {
                const struct store_copy *one = store_copy(&w.node[g->copy[0].node].agent.store, s->seg, slot),
                                        *other = store_copy(&w.node[g->copy[i].node].agent.store, s->seg, slot);
                if (!one || !other || one->lost != other->lost ||
                    (one->base && memcmp(one->base, other->base, one->bytes) != 0))
                    return false;
            }
        }
    return true;
}

bool is_direct(uint32_t seg, int slot)
{
    return copyset_at(first_running(), seg, slot)->mode == COPYSET_DIRECT;
}
