/* The mappings of this node's copies. */
#include <string.h>

#include "runtime/client/op/near.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"
#include "runtime/wire/layout.h"

uint8_t *segment_map(struct keel_segment *s, int slot, keel_status *status)
{
    struct client *c = s->client;
    *status = KEEL_OK;
    uint8_t *base = atomic_load_explicit(&s->map[slot], memory_order_acquire);
    if (base)
        return base;
    struct control r = {.type = CONTROL_SEG_MAP, .seg = s->index, .slot = slot};
    void *m = s->base ? (void *)(uintptr_t)(s->base + s->slot_at[slot]) : NULL; // NOLINT(performance-no-int-to-ptr)
    *status = c->env.request(c->env.user, &r, &m);
    if (*status != KEEL_OK)
        return NULL;
    uint8_t *expected = NULL;
    __atomic_store_n(&s->map_bytes[slot], r.bytes, __ATOMIC_RELAXED); /* always the same */
    if (!atomic_compare_exchange_strong(&s->map[slot], &expected, m)) {
        if (m != expected)
            c->env.unmap(c->env.user, m, layout_memory_bytes(r.bytes)); /* another thread was first */
        return expected;
    }
    return m;
}

uint8_t *segment_map_whole(struct keel_segment *s, int slot, keel_status *status)
{
    enum { LOOK_AGAIN_MS = 1 };
    struct client *c = s->client;
    uint8_t *base;
    while (!(base = segment_map(s, slot, status)) && *status == KEEL_IN_PROGRESS)
        c->env.sleep(c->env.user, LOOK_AGAIN_MS);
    return base;
}

static bool is_home(const struct client *c, int copyset)
{
    struct route route;
    return page_route_read(c->page, copyset, &route) &&
           (route.lost || (route.node[0] == c->node && route_mode(route.tag) == ROUTE_DIRECT));
}

static enum page_part own_part(const struct client *c)
{
    return (enum page_part)atomic_load_explicit(&page_rank(c->page, c->rank)->part, memory_order_relaxed);
}

/* KEEL_IN_PROGRESS: it is not here yet. */
static keel_status look_for_home(struct keel_segment *s, uint8_t **base)
{
    struct client *c = s->client;
    int slot = (int)page_rank(c->page, c->rank)->slot;
    bool is_alone = s->redundancy == KEEL_REDUNDANCY_NONE;
    keel_status status;
    enum page_part part = own_part(c); /* before the looks: what has come meanwhile is found by the next one */
    *base = segment_map_whole(s, slot, &status);
    if (*base && (is_alone || is_home(c, copyset_of(slot, s->redundancy))))
        return KEEL_OK;
    if (!*base && !(status == KEEL_ERR_STATE && part == PAGE_PART_COMES))
        return status;
    *base = NULL;
    return part == PAGE_PART_STAYS ? KEEL_ERR_STATE : KEEL_IN_PROGRESS; /* as where the node has no copy */
}

/* A slot goes behind the last of its ranks: for one that is still where the slot is, or else for its copies. */
static void waits_for_part(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct keel_segment *s = arg;
    uint32_t slot = page_rank(c->page, c->rank)->slot;
    struct route route;
    if (!page_route_read(c->page, copyset_of((int)slot, s->redundancy), &route) || route.node[0] == c->node)
        return;
    for (int r = 0; r < c->size; r++) {
        const struct page_rank *k = page_rank(c->page, r);
        uint64_t where = atomic_load_explicit(&k->where, memory_order_acquire);
        if (k->slot == slot && (int)(int32_t)(where >> 32) == route.node[0] &&
            !atomic_load_explicit(&k->done, memory_order_relaxed)) {
            out->whom = WAIT_FOR_LEAVING;
            out->rank = r;
            out->node = route.node[0];
            return;
        }
    }
}

uint8_t *segment_map_home(struct keel_segment *s, keel_status *status)
{
    enum { LOOK_AGAIN_MS = 1 };
    struct client *c = s->client;
    struct wait wait = {.call = s->redundancy == KEEL_REDUNDANCY_NONE ? WAIT_ADDRESS : WAIT_PART,
                        .whom = waits_for_part,
                        .arg = s,
                        .keeps = true};
    uint8_t *base;
    while ((*status = look_for_home(s, &base)) == KEEL_IN_PROGRESS) {
        client_lock(c);
        client_progress(c);
        uint64_t now = c->env.now(c->env.user);
        waits_last(c, &wait, now, now);
        *status = c->fatal;
        pthread_mutex_unlock(&c->lock);
        if (*status != KEEL_OK)
            break;
        c->env.sleep(c->env.user, LOOK_AGAIN_MS);
    }
    waits_over(c, &wait);
    return base;
}

bool segment_stores_rest(const struct client *c)
{
    unsigned stores = atomic_load_explicit(&c->segments.stores, memory_order_relaxed);
    for (unsigned class = 0; stores >> class; class ++) {
        struct route route;
        if (stores >> class & 1 &&
            !(page_route_read(c->page, copyset_of((int)page_rank(c->page, c->rank)->slot, class), &route) &&
              (route.lost || route.node[0] != c->node || route_mode(route.tag) == ROUTE_DIRECT)))
            return false;
    }
    return true;
}

static bool stores_rest(void *arg)
{
    return segment_stores_rest(arg);
}

void segment_await_rest(struct client *c)
{
    if (!segment_stores_rest(c))
        (void)client_wait(c, stores_rest, c, &(struct wait){.call = WAIT_BARRIER}); /* for copies */
}

keel_status segment_map_twice(struct keel_segment *s, int rank, uint8_t **view)
{
    struct client *c = s->client;
    int slot = (int)page_rank(c->page, rank)->slot;
    keel_status status;
    *view = s->view ? s->view : segment_map_home(s, &status);
    if (s->view || !*view)
        return s->view ? KEEL_OK : status;
    struct control r = {.type = CONTROL_SEG_MAP, .seg = s->index, .slot = slot, .a = 1};
    void *m = NULL;
    status = c->env.request(c->env.user, &r, &m);
    if (status != KEEL_OK)
        return status;
    s->view = *view;
    s->view_slot = slot;
    atomic_store(&s->map[slot], (uint8_t *)m);
    for (int other = 0; other < c->size; other++) /* none of them points to the old place */
        if ((int)page_rank(c->page, other)->slot == slot)
            memset((void *)&s->near[other], 0, sizeof s->near[other]);
    return KEEL_OK;
}
