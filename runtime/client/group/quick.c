/* A blocking call of a group whose members all share the hall, over a board there (collectives/board.h): as long as
 * they come within some microseconds of each other nothing is sent, and the clock is hardly looked at. Whoever comes
 * late finds the others gone on to messages, which know how to wait: asleep, and looking after who has died or is
 * stopped. */
#include "collectives/group.h"
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/progress.h"
#include "runtime/client/spin.h"
#include "runtime/client/group/quick.h"

enum {
    GLANCES = 100,       /* at the board, then the clock is looked at, and the processor offered to others */
    PROGRESS_EVERY = 64, /* calls: what else there is to do */
    TURN_NS = 60 * 1000, /* with messages, about */
    PATIENCE_NS = 10 * 1000 * 1000,
};

/* The board, if every member that lives now can use it. */
static bool find_board(struct keel_group *g)
{
    struct client *c = g->client;
    int which = g == c->coll.living ? 0 : g == c->coll.world ? 1 : g == c->coll.node ? 2 : -1, n = group_size(g->ranks);
    void *memory = hall_board(c, which, group_id(g->ranks));
    bool all = memory && !g->creation && n <= c->hall.n;
    for (int m = 0; all && m < n; m++)
        if (coll_member_lives(g, m) && group_rank(g->ranks, m) != c->rank)
            all = hall_place(c, group_rank(g->ranks, m)) >= 0;
    return all && board_attach(&g->board, memory, c->hall.n, group_id(g->ranks)) && engine_board(g->engine, &g->board);
}

void quick_view(struct keel_group *g)
{
    g->asked_board = false;
    (void)engine_board(g->engine, NULL);
}

void quick_forget(struct keel_group *g)
{
    if (g->board.head)
        board_release(&g->board, group_id(g->ranks));
}

static bool view_is_seen(const struct client *c)
{
    return atomic_load_explicit(&c->page->changes, memory_order_acquire) == c->coll.changes;
}

static bool nothing_else(const struct keel_group *g)
{
    const struct client *c = g->client;
    return c->fatal == KEEL_OK && c->coll.broken == KEEL_OK && !g->requests && view_is_seen(c) && !c->coll.behinds;
}

static uint32_t where(const struct client *c)
{
    return c->env.processor ? c->env.processor(c->env.user) : 0;
}

/* Who is waited for runs on the processor that we look on. The second of two (`moves`) goes to another one, where there
 * is room; both give this one away until that is so. */
static void part(struct client *c, uint64_t now, bool moves)
{
    if (moves && spin_moves(&c->looks, now))
        c->env.move(c->env.user);
    else
        c->env.yield(c->env.user);
}

/* *went: turns were met, and others follow. */
static enum engine_post glance(struct keel_group *g, struct engine_result *result, bool *went)
{
    enum engine_post state = ENGINE_POST_WAITS;
    for (int i = 0, n = g->client->looks.once ? 1 : GLANCES; i < n && state < ENGINE_POST_DONE; i++) {
        state = engine_look(g->engine, result);
        if (state == ENGINE_POST_GOES_ON) {
            *went = true;
            i = -1;
        } else if (state == ENGINE_POST_WAITS) {
            spin_relax();
        }
    }
    return state;
}

/* Where each rank has a processor a call of many bytes is not given up as soon as one of them loses it: messages take
 * longer than a call that begins late, and all of it would have to be done again. But what was waited for in all
 * stays below what messages take. */
static enum engine_post wait(struct keel_group *g, struct engine_result *result)
{
    struct client *c = g->client;
    bool went = false;
    enum engine_post state = glance(g, result, &went);
    if (state >= ENGINE_POST_DONE)
        return state;
    uint64_t now = c->env.now(c->env.user);
    struct spin spin = spin_begin(&c->looks, now, c->ops.active);
    bool patient = c->looks.long_ns > c->looks.short_ns && engine_turns(g->engine) > 1;
    uint64_t all = now + (patient ? (uint64_t)engine_turns(g->engine) * TURN_NS : 0);
    spin.until = all > spin.until ? all : spin.until;
    do {
        int beside = engine_beside(g->engine, where(c));
        uint64_t since = now;
        if (beside >= 0)
            part(c, now, beside < group_member_of(g->ranks, c->rank));
        else if (now >= spin.keep && !patient)
            c->env.yield(c->env.user);
        spin_lend(&c->looks, &spin, since, c->env.now(c->env.user));
        went = false;
        state = glance(g, result, &went);
        now = c->env.now(c->env.user);
        if (went)
            spin.until = now + (patient && now < all ? PATIENCE_NS : c->looks.short_ns);
    } while (state < ENGINE_POST_DONE && now < spin.until && view_is_seen(c));
    spin_end(&c->looks, &spin, state >= ENGINE_POST_DONE);
    return state < ENGINE_POST_DONE ? engine_leave(g->engine, result) : state;
}

bool quick_call(struct keel_group *g, struct engine_call *call, struct engine_result *result)
{
    struct client *c = g->client;
    if (!g->asked_board) {
        g->asked_board = true;
        g->boarded = find_board(g);
    }
    if (!g->boarded)
        return false;
    if (++c->coll.quick % PROGRESS_EVERY == 0)
        client_progress(c);
    (void)engine_beside(g->engine, where(c));
    if (!nothing_else(g) || !engine_post(g->engine, call))
        return false;
    FAULT_POINT("coll.posted");
    if (wait(g, result) == ENGINE_POST_DONE)
        return true;
    *call = *engine_left(g->engine);
    return false;
}
