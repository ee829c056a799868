/* What members say to an agent on accepted data connections (a rank's requests, another agent's stream) and on a rank's
 * control socket. Two agents that are whole, and a third one that is played. The input is records: one byte who speaks,
 * one byte of length, bytes. Most bytes are laid over a message that makes sense. */
#include "runtime/agent/ranks.h"
#include "runtime/base/log.h"
#include "runtime/net/hello.h"
#include "tests/unit/data/agents.h"
#include "tests/lib/net/mem.h"

#include <stdlib.h>
#include <string.h>

enum { PLAYED = 2, INPUTS_OF_WORLD = 500 };
enum speaker { RAW_RANK, RANK, RAW_AGENT, AGENT, CONTROL, SPEAKERS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first record's byte says which type; the rest lies over the message from `at` on. */
static void say(struct tp_ep *ep, bool raw, const struct rank *r, const uint8_t *data, size_t len)
{
    uint8_t bytes[sizeof(struct wire) + 256] = {0};
    size_t size = len;
    if (!raw && len >= 2) {
        struct wire wire = rank_wire(r, data[0] % WIRE_TYPES, 1 + data[1] % 3, data[1] / 3 % 2, 8 * (data[1] / 8));
        memcpy(bytes, &wire, sizeof wire);
        size_t at = data[0] / 32 * sizeof wire / 8;
        memcpy(bytes + at, data + 2, len - 2);
        size = at + len - 2 > sizeof wire ? at + len - 2 : sizeof wire;
    } else {
        memcpy(bytes, data, len);
    }
    if (ep)
        (void)tp_send(ep, bytes, size, NULL, 0, NULL);
}

static struct tp_ep *play_agent(struct tp *from)
{
    static uint64_t attempt = 1000;
    static const uint8_t secret[32] = {4, 2}; /* as in agents.c */
    struct hello hello = {.job = 1,
                          .incarnation = w.node[PLAYED].agent.incarnation,
                          .node = PLAYED,
                          .rank = -1,
                          .to_node = 0,
                          .to_incarnation = w.node[0].agent.incarnation,
                          .attempt = ++attempt};
    struct tp_ep *ep = NULL;
    hello_sign(&hello, secret);
    if (tp_mem.connect(from, &w.node[0].addr, &hello, sizeof hello, NULL, &ep) != KEEL_OK)
        abort();
    return ep;
}

static void hear(struct tp *at, struct tp_ep **ep)
{
    struct tp_event events[16];
    int n = tp_poll(at, events, 16);
    for (int i = 0; i < n; i++)
        if (events[i].type == TP_CLOSED) {
            tp_ep_destroy(events[i].ep);
            *ep = NULL;
        }
}

static void control(const uint8_t *data, size_t len)
{
    struct agent *a = &w.node[0].agent;
    static struct proc proc;
    struct control c = {.type = len ? data[0] % 12 : 0, .seg = 1, .bytes = 64};
    proc = (struct proc){.id = 0, .life.rank = 0, .life.incarnation = 0};
    if (len > 1)
        memcpy((uint8_t *)&c + data[1] % sizeof c, data + 2,
               len - 2 < sizeof c - data[1] % sizeof c ? len - 2 : sizeof c - data[1] % sizeof c);
    c.bytes %= 1 << 16; /* memory is not what is tried here */
    ranks_control(a, &proc, &c);
}

/* A world is made for a number of inputs: that takes longer than they do. */
static struct tp *net;
static struct tp_ep *agent;

static void begin(void)
{
    static int inputs;
    log_threshold = -1; /* nonsense is complained about */
    if (inputs++ % INPUTS_OF_WORLD == 0) {
        if (net) {
            net->table->close(net);
            world_close();
        }
        agent = NULL;
        world_open(2, 1, VIEW_DEGRADE);
        w.node[PLAYED].still = true;
        if (tp_mem.open(&(struct tp_config){.host = "played"}, &net) != KEEL_OK)
            abort();
    }
    if (!w.rank[0].ep[0])
        rank_connect(&w.rank[0], 0);
    if (!agent)
        agent = play_agent(net);
    for (int i = 0; i < 5; i++) {
        world_turn();
        hear(net, &agent);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    while (size >= 2) {
        enum speaker who = data[0] % SPEAKERS;
        size_t len = data[1] < size - 2 ? data[1] : size - 2;
        if (who == CONTROL)
            control(data + 2, len);
        else if (who == RANK || who == RAW_RANK)
            say(w.rank[0].ep[0], who == RAW_RANK, &w.rank[0], data + 2, len);
        else
            say(agent, who == RAW_AGENT, &w.rank[1], data + 2, len);
        data += 2 + len;
        size -= 2 + len;
        for (int i = 0; i < 3; i++)
            world_turn();
        hear(net, &agent);
        w.submissions = 0;
    }
    return 0;
}
