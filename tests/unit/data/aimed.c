#include "aimed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/client/op/op.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "tests/lib/net/mem.h"

struct client c;
struct tp *shm, *net;
struct intent_page intents;
bool tell_fails, map_fails;
int told;
static uint64_t e_now(void *u)
{
    (void)u;
    return w.now;
}
void (*on_sleep)(void);
static void e_sleep(void *u, int ms)
{
    (void)u, (void)ms;
    if (on_sleep)
        on_sleep();
    else
        world_turn();
}
static void e_yield(void *u)
{
    (void)u;
}
static keel_status e_request(void *u, struct control *r, void **memory)
{
    (void)u;
    if (map_fails)
        return KEEL_ERR_NOMEM;
    struct store_copy *copy = store_copy(&w.node[3].agent.store, r->seg, r->slot);
    if (!copy || !copy->base)
        return KEEL_ERR_STATE;
    r->bytes = copy->bytes;
    *memory = copy->base;
    return KEEL_OK;
}
static void e_unmap(void *u, void *m, size_t b)
{
    (void)u, (void)m, (void)b;
}
int asked[NODES_MAX + 1];
static bool e_tell(void *u, const struct control *r)
{
    (void)u;
    told += r->type == CONTROL_DOUBT && !tell_fails;
    asked[r->type == CONTROL_CHECK ? r->node : NODES_MAX]++;
    return !tell_fails;
}
int gone_in;
static bool e_gone(void *u)
{
    (void)u;
    return gone_in && --gone_in == 0;
}
static void e_copy(void *u, void *d, const void *s, size_t n)
{
    (void)u;
    memcpy(d, s, n);
}
static const struct client_env env = {NULL,   e_now, e_sleep, e_yield, e_request, e_unmap, e_tell, e_gone,
                                      e_copy, 0,     0,       NULL,    NULL,      NULL,    NULL};
struct keel_segment *triple, *shadow;

void client_open(void)
{
    struct tp_config tp = {.host = "client"};
    tp_mem.open(&tp, &shm);
    tp_mem.open(&tp, &net);
    memset(&intents, 0, sizeof intents);
    struct control_welcome welcome = {.rank = 3, .size = 4, .node = 3, .job = 1, .secret = {4, 2}};
    assert_int_equal(client_init(&c, &env, &welcome, w.node[3].agent.page, &intents, net, shm), KEEL_OK);
    c.ready = true;
    c.timeout_ns = 30000000000ull;
    for (int k = 0; k < 4; k++)
        c.connections.of[k].way.attempts = 1000;
    shadow = segment_attach(&c, SEG_SHADOW, SEG_BYTES, KEEL_REDUNDANCY_SHADOW);
    triple = segment_attach(&c, SEG_TRIPLE, SEG_BYTES, KEEL_REDUNDANCY_TRIPLE);
    tell_fails = false;
    told = 0;
}
/* agents turn, without the world's ranks: the client has the transport of rank 3. */
void turns(int n)
{
    for (int i = 0; i < n; i++) {
        world_turn();
        pthread_mutex_lock(&c.lock);
        client_progress(&c);
        pthread_mutex_unlock(&c.lock);
    }
}
void change(const struct view_event *e, int n)
{
    world_change(e, n);
}
void restore(void)
{
    world_restore();
}

int setup(void **state)
{
    (void)state;
    world_open(4, 0, VIEW_DEGRADE);
    return 0;
}
int teardown(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* The client's operations end with it. */
int client_close(void **state)
{
    pthread_mutex_lock(&c.lock);
    c.fatal = KEEL_ERR_FENCED;
    for (struct op *op = c.ops.active, *next; op; op = next) {
        next = op->next;
        op_fail(op, c.fatal);
    }
    for (int i = 0; i < 1000 && c.ops.active; i++)
        client_progress(&c);
    pthread_mutex_unlock(&c.lock);
    client_fini(&c);
    net->table->close(net);
    shm->table->close(shm);
    return teardown(state);
}
