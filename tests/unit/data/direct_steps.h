/* What the tests of messages between ranks have in common: two ranks on two nodes. The agents here pass on and count;
 * ranks do something when the other waits, or the test says so. */
#ifndef KEEL_TESTS_UNIT_DATA_DIRECT_STEPS_H
#define KEEL_TESTS_UNIT_DATA_DIRECT_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/net/hello.h"
#include "runtime/client/client.h"
#include "runtime/client/progress.h"
#include "runtime/client/stream/connection.h"
#include "runtime/client/stream/mail.h"
#include "runtime/wire/parcel.h"
#include "tests/lib/net/mem.h"

enum { RANKS = 2 };

static struct rank {
    struct client c;
    struct intent_page intents;
    struct tp *net, *shm;
    struct tp_ep *own, *agent[RANKS]; /* the agents' ends: of its own agent, and of that of node i */
    bool asleep;                      /* does not look */
    bool deaf;                        /* what comes over its connections to others is lost, as with the connection */
} rank[RANKS];

static struct page *page;
static struct tp *agents;
static uint64_t now_ns;
static int passed;            /* by the agents */
static int pieces;            /* of long messages, passed by the agents */
static int loses;             /* those after so many are lost, and all answers; 0: none */
static int arrived, together; /* over connections of ranks; those that hold more than a usual message does */
static bool crowded;          /* their sockets are full */
static bool deserted;         /* they can have none */

static inline uint64_t e_now(void *user)
{
    (void)user;
    return now_ns += 1000;
}

static inline void e_yield(void *user)
{
    (void)user;
}

static int checked[RANKS]; /* how often rank 0 had its agent look whether that node lives */

static inline bool e_tell(void *user, const struct control *r)
{
    if (user == &rank[0] && r->type == CONTROL_CHECK)
        checked[r->node]++;
    return true;
}

static inline bool e_gone(void *user)
{
    (void)user;
    return false;
}

/* ---- agents ---- */

static inline void on_asked(const struct tp_event *e)
{
    struct hello h;
    struct tp_ep *ep;
    memcpy(&h, e->data, sizeof h);
    struct tp_ep **at = h.to_node == h.node ? &rank[h.rank].own : &rank[h.rank].agent[h.to_node];
    assert_int_equal(agents->table->accept(agents, e->req, at, &ep), KEEL_OK);
    *at = ep;
}

static inline void agents_turn(void)
{
    struct tp_event e[16];
    int n = tp_poll(agents, e, 16);
    for (int i = 0; i < n; i++) {
        struct wire w;
        if (e[i].type == TP_CONNREQ)
            on_asked(&e[i]);
        if (e[i].type == TP_CLOSED) {
            *(struct tp_ep **)tp_ep_user(e[i].ep) = NULL;
            tp_ep_destroy(e[i].ep);
        }
        if (e[i].type != TP_RECV)
            continue;
        memcpy(&w, e[i].data, sizeof w);
        if (w.type != WIRE_PARCEL && w.type != WIRE_PARCEL_BACK)
            continue;
        passed += w.type == WIRE_PARCEL;
        pieces += w.type == WIRE_PARCEL && w.raw.identity > COURIER_PIECE;
        struct tp_ep *to = rank[parcel_life(w.raw.a).rank].own;
        bool lost = loses && (parcel_life(w.raw.a).rank == 0 || (w.raw.identity > COURIER_PIECE && pieces > loses));
        if (to && !lost)
            assert_int_equal(tp_send(to, e[i].data, e[i].len, NULL, 0, NULL), KEEL_OK);
    }
}

static inline void ranks_turn(void)
{
    for (int r = 0; r < RANKS; r++)
        if (!rank[r].asleep && pthread_mutex_trylock(&rank[r].c.lock) == 0) {
            client_progress(&rank[r].c);
            pthread_mutex_unlock(&rank[r].c.lock);
        }
}

static inline void turn(void)
{
    agents_turn();
    ranks_turn();
}

static int sleeps; /* so many until `then` happens, 0: it does not */
static void (*then)(void);

static inline void e_sleep(void *user, int ms)
{
    (void)user;
    now_ns += (uint64_t)ms * KEEL_NS_PER_MS;
    if (sleeps && --sleeps == 0)
        then();
    turn();
}

static inline void pump(void)
{
    for (int i = 0; i < 50; i++) {
        now_ns += KEEL_NS_PER_MS;
        turn();
    }
}

/* ---- connections that lose ---- */

static inline void check_parcel(const struct tp_event *e)
{
    struct wire w;
    memcpy(&w, e->data, sizeof w);
    assert_true(w.type != WIRE_PARCEL || !w.seq ||
                (w.raw.offset <= w.raw.identity && w.len <= w.raw.identity - w.raw.offset));
}

static inline int lossy_poll(struct tp *tp, struct tp_event *e, int max)
{
    int n = tp_mem.poll(tp, e, max), kept = 0;
    bool deaf = tp == rank[0].net ? rank[0].deaf : rank[1].deaf;
    for (int i = 0; i < n; i++) {
        const struct connection *l = e[i].type == TP_RECV ? tp_ep_user(e[i].ep) : NULL;
        if (l && l->rank >= 0)
            check_parcel(&e[i]);
        arrived += l && l->rank >= 0;
        together += l && l->rank >= 0 && e[i].len > TP_MSG_MAX;
        if (!deaf || e[i].type != TP_RECV)
            e[kept++] = e[i];
    }
    return kept;
}

static inline bool lossy_room(const struct tp_ep *ep)
{
    const struct connection *l = tp_ep_user(ep);
    return !crowded || l->rank < 0;
}

static inline keel_status lossy_listen(struct tp *tp, struct tp_addr *here)
{
    return deserted ? KEEL_ERR_SYSTEM : tp_mem.listen(tp, here);
}

static struct tp_table lossy;

/* The connection ends, and what was sent over it to `to` meanwhile with it. */
static inline void lose(int to, int breaks)
{
    rank[to].deaf = true;
    rank[to].asleep = false;
    turn();
    tp_disconnect(direct_up(&rank[breaks].c, 1 - breaks));
    turn();
    rank[to].deaf = false;
}

/* ---- set-up ---- */

static const struct client_env env = {
    .now = e_now, .sleep = e_sleep, .yield = e_yield, .tell = e_tell, .agent_is_gone = e_gone};

static inline void start(int r)
{
    struct rank *k = &rank[r];
    struct tp_config config = {.host = "rank"};
    struct control_welcome welcome = {.rank = r, .size = RANKS, .node = r, .job = 1};
    struct hello hello = {.node = r, .rank = r, .to_node = r};
    assert_int_equal(tp_mem.open(&config, &k->net), KEEL_OK);
    assert_int_equal(tp_mem.open(&config, &k->shm), KEEL_OK);
    lossy = tp_mem;
    lossy.poll = lossy_poll;
    lossy.room = lossy_room;
    lossy.listen = lossy_listen;
    k->net->table = &lossy;
    assert_int_equal(client_init(&k->c, &env, &welcome, page, &k->intents, k->net, k->shm), KEEL_OK);
    k->c.env.user = k;
    struct tp_ep *own;
    assert_int_equal(k->shm->table->connect(k->shm, &page_node(page, r)->addrs.of[0], &hello, sizeof hello,
                                            client_own_connection(&k->c), &own),
                     KEEL_OK);
    struct tp_event e[4];
    while (!k->own)
        agents_turn();
    while (tp_poll(k->shm, e, 4) == 0)
        agents_turn();
    client_attach(&k->c, own);
    k->c.ready = true;
    k->asleep = false;
}

static inline int set_up(void **state)
{
    (void)state;
    struct tp_config config = {.host = "agents"};
    memset(rank, 0, sizeof rank);
    page = calloc(1, page_bytes(RANKS, RANKS, RANKS));
    *page = (struct page){.magic = PAGE_MAGIC, .nodes = RANKS, .members = RANKS, .ranks = RANKS};
    assert_int_equal(tp_mem.open(&config, &agents), KEEL_OK);
    struct tp_addr addr;
    assert_int_equal(agents->table->listen(agents, &addr), KEEL_OK);
    for (int r = 0; r < RANKS; r++) {
        page_node(page, r)->alive = 1;
        page_node(page, r)->addrs = addrs_one(&addr);
        page_rank(page, r)->where = (uint64_t)r << 32;
        page_rank(page, r)->slot = (uint32_t)r;
        page_rank(page, r)->life = 1;
    }
    passed = loses = 0;
    crowded = false;
    for (int r = 0; r < RANKS; r++)
        start(r);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++) {
        if (rank[r].net)
            rank[r].net->table->close(rank[r].net);
        rank[r].shm->table->close(rank[r].shm);
        client_fini(&rank[r].c);
    }
    agents->table->close(agents);
    free(page);
    return 0;
}

/* ---- messages, each with its number ---- */

static int sent[RANKS], got[RANKS];

static inline void send_some(int from, int n, size_t len)
{
    uint8_t *data = calloc(1, len);
    for (int i = 0; i < n; i++) {
        memcpy(data, &sent[from], sizeof sent[from]);
        assert_int_equal(mail_send(&rank[from].c, 1 - from, 7, data, len), KEEL_OK);
        sent[from]++;
    }
    free(data);
}

/* All that was sent has come, once and in order. */
static inline void get_all(int to, size_t len)
{
    uint8_t *data = malloc(len);
    pump();
    for (int from = 1 - to; got[to] < sent[from]; got[to]++) {
        size_t have;
        assert_int_equal(mail_test(&rank[to].c, from, 7, &have, NULL), KEEL_OK);
        assert_int_equal(mail_receive(&rank[to].c, from, 7, data, len, &have, NULL), KEEL_OK);
        assert_int_equal(have, len);
        assert_memory_equal(data, &got[to], sizeof got[to]);
    }
    free(data);
    pump();
    size_t have;
    assert_int_equal(mail_test(&rank[to].c, 1 - to, 7, &have, NULL), KEEL_IN_PROGRESS);
}

static inline void meet(void)
{
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    send_some(0, 1, 100);
    get_all(1, 100);
    send_some(1, 1, 100);
    get_all(0, 100);
    assert_non_null(direct_up(&rank[0].c, 1));
    assert_non_null(direct_up(&rank[1].c, 0));
}
#endif
