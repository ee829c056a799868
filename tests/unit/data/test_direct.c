/* Two ranks on two nodes and their messages: over a connection of their own, and through agents when there is none. The agents here
 * pass on and count; ranks do something when the other waits, or the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/channel/hello.h"
#include "runtime/client/client.h"

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

static uint64_t e_now(void *user)
{
    (void)user;
    return now_ns += 1000;
}

static void e_yield(void *user)
{
    (void)user;
}

static int checked[RANKS]; /* how often rank 0 had its agent look whether that node lives */

static bool e_tell(void *user, const struct control *r)
{
    if (user == &rank[0] && r->type == CONTROL_CHECK)
        checked[r->slot]++;
    return true;
}

static bool e_gone(void *user)
{
    (void)user;
    return false;
}

/* ---- agents ---- */

static void on_asked(const struct tp_event *e)
{
    struct wire_hello h;
    struct tp_ep *ep;
    memcpy(&h, e->data, sizeof h);
    struct tp_ep **at = h.to_node == h.node ? &rank[h.rank].own : &rank[h.rank].agent[h.to_node];
    assert_int_equal(agents->table->accept(agents, e->req, at, &ep), KEEL_OK);
    *at = ep;
}

static void agents_turn(void)
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
        if (w.type != WIRE_PARCEL)
            continue;
        passed++;
        pieces += w.identity > COURIER_PIECE;
        struct tp_ep *to = rank[parcel_rank(w.a)].own;
        bool lost = loses && (parcel_rank(w.a) == 0 || (w.identity > COURIER_PIECE && pieces > loses));
        if (to && !lost)
            assert_int_equal(tp_send(to, e[i].data, e[i].len, NULL, 0, NULL), KEEL_OK);
    }
}

static void ranks_turn(void)
{
    for (int r = 0; r < RANKS; r++)
        if (!rank[r].asleep && pthread_mutex_trylock(&rank[r].c.lock) == 0) {
            client_progress(&rank[r].c);
            pthread_mutex_unlock(&rank[r].c.lock);
        }
}

static void turn(void)
{
    agents_turn();
    ranks_turn();
}

static int sleeps; /* so many until `then` happens, 0: it does not */
static void (*then)(void);

static void e_sleep(void *user, int ms)
{
    (void)user;
    now_ns += (uint64_t)ms * KEEL_NS_PER_MS;
    if (sleeps && --sleeps == 0)
        then();
    turn();
}

static void pump(void)
{
    for (int i = 0; i < 50; i++) {
        now_ns += KEEL_NS_PER_MS;
        turn();
    }
}

/* ---- connections that lose ---- */

static void check_parcel(const struct tp_event *e)
{
    struct wire w;
    memcpy(&w, e->data, sizeof w);
    assert_true(w.type != WIRE_PARCEL || !w.seq || (w.offset <= w.identity && w.len <= w.identity - w.offset));
}

static int lossy_poll(struct tp *tp, struct tp_event *e, int max)
{
    int n = tp_mem.poll(tp, e, max), kept = 0;
    bool deaf = tp == rank[0].net ? rank[0].deaf : rank[1].deaf;
    for (int i = 0; i < n; i++) {
        const struct link *l = e[i].type == TP_RECV ? tp_ep_user(e[i].ep) : NULL;
        if (l && l->rank >= 0)
            check_parcel(&e[i]);
        arrived += l && l->rank >= 0;
        together += l && l->rank >= 0 && e[i].len > TP_MSG_MAX;
        if (!deaf || e[i].type != TP_RECV)
            e[kept++] = e[i];
    }
    return kept;
}

static bool lossy_room(const struct tp_ep *ep)
{
    const struct link *l = tp_ep_user(ep);
    return !crowded || l->rank < 0;
}

static struct tp_table lossy;

/* The connection ends, and what was sent over it to `to` meanwhile with it. */
static void lose(int to, int breaks)
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

static void start(int r)
{
    struct rank *k = &rank[r];
    struct tp_config config = {.host = "rank"};
    struct control_welcome welcome = {.rank = r, .size = RANKS, .node = r, .job = 1};
    struct wire_hello hello = {.node = r, .rank = r, .to_node = r};
    assert_int_equal(tp_mem.open(&config, &k->net), KEEL_OK);
    assert_int_equal(tp_mem.open(&config, &k->shm), KEEL_OK);
    lossy = tp_mem;
    lossy.poll = lossy_poll;
    lossy.room = lossy_room;
    k->net->table = &lossy;
    assert_int_equal(client_init(&k->c, &env, &welcome, page, &k->intents, k->net, k->shm), KEEL_OK);
    k->c.env.user = k;
    struct tp_ep *own;
    assert_int_equal(
        k->shm->table->connect(k->shm, &page_node(page, r)->addr, &hello, sizeof hello, client_own_link(&k->c), &own),
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

static int set_up(void **state)
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
        page_node(page, r)->addr = addr;
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

static int tear_down(void **state)
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

static void send_some(int from, int n, size_t len)
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
static void get_all(int to, size_t len)
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

static void meet(void)
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

/* ---- tests ---- */

static void test_direct_messages_pass_no_agent_once_ranks_have_met(void **state)
{
    (void)state;
    meet();
    assert_true(passed > 0); /* the first, and where the ranks listen */
    passed = 0;
    for (int i = 0; i < 20; i++) {
        send_some(i % 2, 5, 100);
        get_all(1 - i % 2, 100);
    }
    assert_int_equal(passed, 0);
}

static void test_direct_who_only_receives_is_connected_to(void **state)
{
    (void)state;
    for (int from = 0; from < RANKS; from++) {
        memset(sent, 0, sizeof sent);
        memset(got, 0, sizeof got);
        send_some(from, 3, 100);
        get_all(1 - from, 100);
        assert_non_null(direct_up(&rank[from].c, 1 - from));
        passed = 0;
        send_some(from, 3, 100);
        get_all(1 - from, 100);
        assert_int_equal(passed, 0);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_direct_lost_connection_loses_and_repeats_no_message(void **state)
{
    (void)state;
    meet();
    for (int i = 0; i < 40; i++) {
        int from = i % 2, breaks = i / 2 % 2;
        rank[1 - from].asleep = true;
        send_some(from, 1 + i % 7, 100);
        lose(1 - from, breaks);
        if (i % 3 == 0)
            agents_turn();
        send_some(from, 2, 100);
        get_all(1 - from, 100);
        assert_non_null(direct_up(&rank[0].c, 1)); /* there is another one */
        assert_non_null(direct_up(&rank[1].c, 0));
    }
}

static void test_direct_pieces_of_a_long_message_go_together(void **state)
{
    (void)state;
    meet();
    together = passed = 0;
    send_some(0, 1, 50000);
    get_all(1, 50000);
    assert_int_equal(together, 1);
    assert_int_equal(passed, 0);
}

/* The agents pass so many pieces on, of which the sender does not hear; then all come together. */
static void test_direct_pieces_that_came_one_by_one_are_not_taken_again(void **state)
{
    (void)state;
    for (int known = 1; known < 4; known++) {
        meet();
        rank[1].asleep = true;
        lose(1, 0);
        assert_null(direct_up(&rank[0].c, 1));
        pieces = together = 0;
        loses = known;
        send_some(0, 1, 50000);
        for (int i = 0; i < 4; i++)
            agents_turn();
        assert_int_equal(pieces, 4);
        get_all(1, 50000);
        assert_int_equal(together, 1);
        loses = 0;
        send_some(0, 3, 100);
        get_all(1, 100);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_direct_what_sockets_do_not_take_waits_where_it_is(void **state)
{
    (void)state;
    meet();
    arrived = 0;
    crowded = true;
    send_some(0, 3, 3000);
    pump();
    assert_int_equal(arrived, 0);
    crowded = false;
    get_all(1, 3000);
    assert_int_equal(arrived, 3);
}

/* What is acknowledged together ends one by one, and with one of them the engine sends more; the way changes then, as
 * little is left. */
static void test_direct_way_changes_in_the_middle_of_an_acknowledgement(void **state)
{
    (void)state;
    enum { N = 6000, LEN = 20000 };
    static double in[RANKS][N], out[RANKS][N];
    struct keel_request *r[RANKS] = {NULL};
    struct engine_call call = {.kind = ENGINE_MOVE,
                               .move = SCHEDULE_ALLREDUCE,
                               .len = sizeof in[0],
                               .element = {.type = ELEMENT_DOUBLE, .op = ELEMENT_SUM},
                               .algorithm = SCHEDULE_DOUBLING + 1};
    for (int i = 0; i < N; i++) {
        in[0][i] = i;
        in[1][i] = 2 * i;
    }
    meet();
    call.in = in[1];
    call.out = out[1];
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &r[1]), KEEL_OK);
    pump();
    rank[1].asleep = true;
    call.in = in[0];
    call.out = out[0];
    send_some(0, 4, LEN); /* more than goes over a connection while nobody waits for it: through the agents */
    assert_int_equal(coll_call(rank[0].c.coll.world, &call, NULL, &r[0]), KEEL_OK);
    send_some(0, 2, LEN);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[0].deaf = true;
    rank[1].asleep = false;
    for (int i = 0; i < 10; i++)
        ranks_turn();
    tp_disconnect(direct_up(&rank[0].c, 1)); /* and with it all answers */
    ranks_turn();
    rank[0].deaf = false;
    for (int i = 0; i < 100 && !(direct_up(&rank[0].c, 1) && direct_up(&rank[1].c, 0)); i++) {
        now_ns += KEEL_NS_PER_MS;
        ranks_turn();
    }
    assert_non_null(direct_up(&rank[0].c, 1)); /* before the agents bring one answer to all */
    pump();
    for (int k = 0; k < RANKS; k++) {
        assert_int_equal(coll_wait(r[k], NULL, NULL), KEEL_OK);
        for (int i = 0; i < N; i++)
            assert_true(out[k][i] == 3.0 * i);
    }
    get_all(1, LEN);
    assert_null(rank[0].c.coll.stream[1].head);
}

/* Rank 1 has taken everything, and its answers are lost. What is known to have arrived of a call, and all before it, is not sent again, be it sent
 * or about to be sent again then; what comes after it is. */
static void test_direct_what_is_known_to_have_arrived_is_not_sent_again(void **state)
{
    static uint8_t out[RANKS][100000];
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = 0, .len = sizeof out[0]};
    for (int rewound = 0; rewound < 2; rewound++) {
        struct client *c = &rank[0].c;
        const struct stream *s = &c->coll.stream[1];
        struct keel_request *r[RANKS] = {NULL};
        meet();
        memset(out[0], 0x5a, sizeof out[0]);
        memset(out[1], 0, sizeof out[1]);
        call.out = out[1];
        assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &r[1]), KEEL_OK);
        pump();
        rank[1].asleep = true;
        send_some(0, 2, 100);
        call.out = out[0];
        assert_int_equal(coll_call(c->coll.world, &call, NULL, &r[0]), KEEL_OK);
        send_some(0, 2, 100);
        rank[0].deaf = true;
        rank[1].asleep = false;
        for (int i = 0; i < 10; i++)
            ranks_turn();
        assert_int_equal(rank[1].c.coll.stream[0].received, s->next);
        uint64_t acked = s->acked, seq = r[0]->seq;
        pthread_mutex_lock(&c->lock);
        if (rewound)
            courier_direct_lost(c, 1);
        courier_arrived(c, c->coll.world, seq + 2, now_ns);
        assert_int_equal(s->acked, acked); /* of another call nothing was said */
        courier_arrived(c, c->coll.world, seq, now_ns);
        pthread_mutex_unlock(&c->lock);
        assert_true(s->acked > acked + 2 && s->acked < s->next && s->sent >= s->acked && s->head);
        together = pieces = 0;
        tp_disconnect(direct_up(c, 1));
        ranks_turn();
        rank[0].deaf = false;
        get_all(1, 100);
        for (int k = 0; k < RANKS; k++) {
            assert_int_equal(coll_wait(r[k], NULL, NULL), KEEL_OK);
            assert_int_equal(out[k][sizeof out[k] - 1], 0x5a);
        }
        assert_int_equal(together + pieces, 0);
        assert_null(s->head);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_direct_what_nobody_waits_for_does_not_stay_in_sockets(void **state)
{
    (void)state;
    meet();
    passed = 0;
    rank[1].asleep = true;
    send_some(0, 4, 1000);
    assert_int_equal(passed, 0);
    send_some(0, 40, 4000); /* more than a socket takes for sure: the agents have it when the sender looks away */
    rank[0].asleep = true;
    for (int i = 0; i < 10; i++)
        agents_turn();
    assert_true(passed >= 40);
    rank[1].asleep = false;
    rank[0].asleep = false;
    for (int i = 0; i < 4; i++, got[1]++) {
        uint8_t data[1000];
        assert_int_equal(mail_receive(&rank[1].c, 0, 7, data, sizeof data, NULL, NULL), KEEL_OK);
    }
    get_all(1, 4000);
    passed = 0;
    send_some(0, 3, 100); /* and back */
    get_all(1, 100);
    assert_int_equal(passed, 0);
}

static void test_direct_who_leaves_hands_over_to_agents(void **state)
{
    (void)state;
    meet();
    rank[1].asleep = true;
    send_some(0, 5, 100);
    pthread_mutex_lock(&rank[0].c.lock);
    courier_farewell(&rank[0].c);
    assert_true(client_wait(&rank[0].c, courier_has_handed_over, &rank[0].c));
    pthread_mutex_unlock(&rank[0].c.lock);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[0].asleep = true;
    lose(1, 1); /* the sockets end */
    rank[0].net->table->close(rank[0].net);
    rank[0].net = NULL;
    get_all(1, 100);
}

static keel_status ask(const struct wire_hello *h)
{
    struct tp_config config = {.host = "stranger"};
    struct tp *tp;
    struct tp_ep *ep;
    struct tp_event e = {.type = TP_DONE};
    assert_int_equal(tp_mem.open(&config, &tp), KEEL_OK);
    assert_int_equal(tp->table->connect(tp, &rank[0].c.direct.here, h, sizeof *h, NULL, &ep), KEEL_OK);
    for (int i = 0; i < 100 && e.type == TP_DONE; i++) {
        turn();
        (void)tp_poll(tp, &e, 1);
    }
    keel_status status = e.type == TP_CLOSED ? e.status : e.type == TP_CONNECTED ? KEEL_OK : KEEL_IN_PROGRESS;
    tp->table->close(tp);
    return status;
}

static void test_direct_hello_of_a_stranger_or_of_another_time_is_refused(void **state)
{
    (void)state;
    meet();
    uint8_t wrong[32] = {1};
    const struct client *c = &rank[1].c;
    struct wire_hello good = {.job = c->job, .node = 1, .rank = 1, .to_node = -1, .attempt = 1000}, h = good;
    wire_hello_sign(&h, wrong);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.to_node = 0; /* meant for the agent */
    wire_hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.incarnation = 1; /* of no life that is known here */
    wire_hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.attempt = 1; /* recorded */
    wire_hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.rank = 0; /* nobody connects to himself, nor to a higher one */
    wire_hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    wire_hello_sign(&good, c->secret);
    for (size_t bit = 0; bit < 8 * sizeof h; bit += 3) { /* good, and garbled on the way */
        h = good;
        ((uint8_t *)&h)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    }
    assert_non_null(direct_up(&rank[0].c, 1)); /* and the connection that is there stays */
    wire_hello_sign(&good, c->secret);
    assert_int_equal(ask(&good), KEEL_OK);
    send_some(0, 3, 100); /* whoever that was: it has gone, and the messages have not */
    get_all(1, 100);
}

static void end_life(int r)
{
    uint64_t n = page->changes;
    page->change[n] = (struct page_change){.epoch = 5, .life = 0, .rank = (uint32_t)r};
    page_rank(page, r)->life = 0;
    atomic_store(&page->changes, n + 1);
    atomic_store(&page->epoch, 5);
}

static void test_direct_nothing_comes_of_a_life_that_is_over(void **state)
{
    (void)state;
    meet();
    rank[0].asleep = true;
    send_some(1, 3, 100);
    rank[1].asleep = true; /* declared dead, and goes on */
    end_life(1);
    rank[0].asleep = false;
    pump();
    size_t have;
    assert_int_equal(mail_test(&rank[0].c, 1, 7, &have, NULL), KEEL_ERR_RANK_DEAD);
    assert_null(direct_up(&rank[0].c, 1));
}

/* ---- a process that is stopped ---- */

static void stop(int r, bool stopped)
{
    rank[r].asleep = stopped;
    atomic_store(&page_rank(page, r)->process, stopped ? PAGE_PROCESS_STOPPED : PAGE_PROCESS_RUNS);
    atomic_store(&page_rank(page, r)->looked, UINT64_MAX);
}

static struct keel_request *others;

static void agree_on_nine(void)
{
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX, .value = 9};
    stop(1, false);
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &others), KEEL_OK);
}

/* What the runtime agrees on by itself waits for a process that is stopped: the other one hears what both have. */
static void test_direct_agreement_waits_for_who_is_stopped(void **state)
{
    (void)state;
    struct engine_call call = {.kind = ENGINE_AGREE, .agree = ENGINE_MAX, .value = 7};
    struct keel_request *r = NULL;
    uint64_t value = 0;
    meet();
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    stop(1, true);
    sleeps = 2000;
    then = agree_on_nine;
    assert_int_equal(coll_call(rank[0].c.coll.world, &call, NULL, &r), KEEL_OK);
    assert_int_equal(coll_wait(r, NULL, &value), KEEL_OK);
    assert_int_equal(value, 9);
    assert_int_equal(coll_wait(others, NULL, &value), KEEL_OK);
    assert_int_equal(value, 9);
}

static void give_up(void)
{
    fail_msg("the caller still waits for a process that is stopped");
}

static void enter_late(void)
{
    struct engine_call call = {.kind = ENGINE_BARRIER};
    others = NULL;
    rank[1].asleep = false;
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &others), KEEL_OK);
}

/* Who waits in a collective for long has the agent look whether that node lives: now and then, and not at all when it was short. */
static void test_direct_collective_that_waits_asks_whether_the_node_lives(void **state)
{
    (void)state;
    struct engine_call call = {.kind = ENGINE_BARRIER};
    meet();
    memset(checked, 0, sizeof checked);
    for (int late = 0; late < 2; late++) {
        uint64_t begin = now_ns;
        rank[1].asleep = true;
        sleeps = late ? 300 : 2;
        then = enter_late;
        assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_OK);
        assert_int_equal(coll_wait(others, NULL, NULL), KEEL_OK);
        if (late)
            assert_in_range(checked[1], 1, (now_ns - begin) / (200 * KEEL_NS_PER_MS) + 1);
        else
            assert_int_equal(checked[1], 0);
    }
    assert_int_equal(checked[0], 0); /* its own agent needs no question */
}

/* The bytes of a long message to one that is stopped are the caller's again when the call has ended; also of one that is longer
 * than what may be on its way. */
static void long_message_to_who_is_stopped(size_t len)
{
    uint8_t *data = malloc(len), *out = calloc(1, len);
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = 0, .out = data, .len = len};
    memset(data, 0x5a, len);
    meet();
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    stop(1, true);
    sleeps = 5000;
    then = give_up;
    assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_ERR_TIMEOUT);
    memset(data, 0, len);
    free(data);
    stop(1, false);
    sleeps = 5000;
    call.out = out;
    keel_status status = coll_run(rank[1].c.coll.world, &call, NULL);
    assert_true(status == KEEL_OK || status == KEEL_ERR_REVOKED);
    for (size_t i = 0; i < len && status == KEEL_OK; i++)
        assert_int_equal(out[i], 0x5a); /* what was sent is what was there */
    send_some(0, 3, 100);               /* the stream goes on */
    get_all(1, 100);
    free(out);
    sleeps = 0;
}

static void test_direct_long_message_to_who_is_stopped_ends_with_the_call(void **state)
{
    long_message_to_who_is_stopped(100000);
    assert_int_equal(tear_down(state), 0);
    assert_int_equal(set_up(state), 0);
    long_message_to_who_is_stopped(5000000);
}

/* Those who go on without the one that is stopped wait for nothing that is for it, not even to leave. */
static void test_direct_group_without_who_is_stopped_does_not_wait_for_it(void **state)
{
    (void)state;
    size_t len = 12000000; /* more than may be on its way */
    uint8_t *data = calloc(1, len);
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = 0, .out = data, .len = len};
    keel_group *alone;
    meet();
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    stop(1, true);
    sleeps = 5000;
    then = give_up;
    assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_ERR_TIMEOUT);
    free(data);
    assert_int_equal(coll_create(&rank[0].c, (int[]){0}, 1, 1, &alone), KEEL_OK);
    call = (struct engine_call){.kind = ENGINE_BARRIER};
    assert_int_equal(coll_run(alone, &call, NULL), KEEL_OK);
    sleeps = 0;
    stop(1, false);
    pump();
    send_some(0, 3, 100); /* the stream goes on */
    get_all(1, 100);
}

/* Rank 0 returns from a small sum with rank 1's data, and wants to leave; rank 1 has not got its data, and computes. */
static void one_returns_and_leaves(double *out, struct keel_request **other)
{
    static double in[RANKS] = {1, 2};
    struct engine_call call = {.kind = ENGINE_MOVE,
                               .move = SCHEDULE_ALLREDUCE,
                               .in = &in[1],
                               .out = &out[1],
                               .len = sizeof in[0],
                               .element = {.type = ELEMENT_DOUBLE, .op = ELEMENT_SUM},
                               .early = true};
    meet();
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, other), KEEL_OK);
    pump();
    rank[1].asleep = true;
    call.in = &in[0];
    call.out = &out[0];
    assert_int_equal(coll_run(rank[0].c.coll.world, &call, NULL), KEEL_OK);
    assert_true(out[0] == 3);
    coll_settle(&rank[0].c);
    pump();
    assert_false(coll_is_settled(&rank[0].c));
}

static void test_direct_who_leaves_waits_until_others_have_what_it_returned(void **state)
{
    (void)state;
    double out[RANKS];
    struct keel_request *other = NULL;
    one_returns_and_leaves(out, &other);
    rank[1].asleep = false;
    pump();
    assert_true(coll_is_settled(&rank[0].c));
    assert_int_equal(coll_wait(other, NULL, NULL), KEEL_OK);
    assert_true(out[1] == 3);
}

static void test_direct_who_leaves_does_not_wait_for_who_is_stopped(void **state)
{
    (void)state;
    double out[RANKS];
    struct keel_request *other = NULL;
    rank[0].c.timeout_ns = 100 * KEEL_NS_PER_MS;
    one_returns_and_leaves(out, &other);
    stop(1, true);
    for (int i = 0; i < 100; i++)
        pump();
    assert_true(coll_is_settled(&rank[0].c));
    stop(1, false);
    keel_status status = coll_wait(other, NULL, NULL);
    assert_true(status == KEEL_ERR_REVOKED || (status == KEEL_OK && out[1] == 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_direct_messages_pass_no_agent_once_ranks_have_met, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_only_receives_is_connected_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_lost_connection_loses_and_repeats_no_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_pieces_of_a_long_message_go_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_pieces_that_came_one_by_one_are_not_taken_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_sockets_do_not_take_waits_where_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_way_changes_in_the_middle_of_an_acknowledgement, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_is_known_to_have_arrived_is_not_sent_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_nobody_waits_for_does_not_stay_in_sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_leaves_hands_over_to_agents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_hello_of_a_stranger_or_of_another_time_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_agreement_waits_for_who_is_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_collective_that_waits_asks_whether_the_node_lives, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_long_message_to_who_is_stopped_ends_with_the_call, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_group_without_who_is_stopped_does_not_wait_for_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_leaves_waits_until_others_have_what_it_returned, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_leaves_does_not_wait_for_who_is_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_nothing_comes_of_a_life_that_is_over, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
