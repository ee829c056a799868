#include "tests/unit/transport/tp_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/base/clock.h"

const char *peer_provider = "tcp";

void peer_open(struct world *world, struct peer *peer, const struct tp_table *table, const char *host, bool listening)
{
    struct tp_config config = {.host = host, .provider = peer_provider};
    *peer = (struct peer){.table = table, .batch = 16};
    peer->last = &peer->first;
    assert_int_equal(table->open(&config, &peer->tp), KEEL_OK);
    if (listening)
        assert_int_equal(table->listen(peer->tp, &peer->addr), KEEL_OK);
    assert_true(world->count < PEERS_MAX);
    world->peers[world->count++] = peer;
}

void peer_close(struct world *world, struct peer *peer)
{
    for (int i = 0; i < world->count; i++)
        if (world->peers[i] == peer)
            world->peers[i] = world->peers[--world->count];
    peer->table->close(peer->tp);
    while (peer->first) {
        struct peer_record *next = peer->first->next;
        record_free(peer->first);
        peer->first = next;
    }
}

int peer_step(struct peer *peer)
{
    struct tp_event events[64];
    int n = tp_poll(peer->tp, events, peer->batch);
    assert_in_range(n, 0, peer->batch);
    for (int i = 0; i < n; i++) {
        struct peer_record *record = calloc(1, sizeof(*record));
        assert_non_null(record);
        record->event = events[i];
        if (events[i].data) {
            void *copy = malloc(events[i].len ? events[i].len : 1);
            assert_non_null(copy);
            memcpy(copy, events[i].data, events[i].len);
            record->event.data = copy;
        }
        *peer->last = record;
        peer->last = &record->next;
    }
    return n;
}

void world_step(struct world *world)
{
    for (int i = 0; i < world->count; i++)
        peer_step(world->peers[i]);
}

static struct peer_record *take(struct peer *peer, enum tp_event_type type, struct tp_ep *ep)
{
    for (struct peer_record **at = &peer->first; *at; at = &(*at)->next) {
        struct peer_record *record = *at;
        if (record->event.type != type || (ep && record->event.ep != ep))
            continue;
        *at = record->next;
        if (peer->last == &record->next)
            peer->last = at;
        return record;
    }
    return NULL;
}

struct peer_record *world_await(struct world *world, struct peer *peer, enum tp_event_type type, struct tp_ep *ep)
{
    uint64_t deadline = clock_now_ns() + PEER_PATIENCE_S * KEEL_NS_PER_S;
    for (;;) {
        struct peer_record *record = take(peer, type, ep);
        if (record)
            return record;
        if (clock_now_ns() > deadline)
            fail_msg("no event of type %d", (int)type);
        world_step(world);
    }
}

keel_status world_await_status(struct world *world, struct peer *peer, enum tp_event_type type, struct tp_ep *ep)
{
    struct peer_record *record = world_await(world, peer, type, ep);
    keel_status status = record->event.status;
    record_free(record);
    return status;
}

void world_expect_none(struct world *world, struct peer *peer, enum tp_event_type type, int ms)
{
    uint64_t end = clock_now_ns() + (uint64_t)ms * KEEL_NS_PER_MS;
    do {
        world_step(world);
        struct peer_record *record = take(peer, type, NULL);
        if (record)
            fail_msg("unexpected event of type %d, status %d", (int)type, (int)record->event.status);
    } while (clock_now_ns() < end);
}

void record_free(struct peer_record *record)
{
    free((void *)(uintptr_t)record->event.data);
    free(record);
}

void world_connect(struct world *world, struct peer *a, struct peer *b, struct tp_ep **a_ep, struct tp_ep **b_ep)
{
    assert_int_equal(a->table->connect(a->tp, &b->addr, "hi", 2, a, a_ep), KEEL_OK);
    struct peer_record *request = world_await(world, b, TP_CONNREQ, NULL);
    assert_int_equal(request->event.len, 2);
    assert_memory_equal(request->event.data, "hi", 2);
    assert_int_equal(b->table->accept(b->tp, request->event.req, b, b_ep), KEEL_OK);
    record_free(request);
    assert_int_equal(world_await_status(world, a, TP_CONNECTED, *a_ep), KEEL_OK);
    assert_int_equal(world_await_status(world, b, TP_CONNECTED, *b_ep), KEEL_OK);
    assert_true(*a_ep && tp_ep_user(*a_ep) == a);
    assert_true(*b_ep && tp_ep_user(*b_ep) == b);
}

void fill_pattern(void *to, size_t len, uint64_t seed)
{
    uint8_t *bytes = to;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)((seed + i) * 2654435761u >> 11);
}

bool is_pattern(const void *from, size_t len, uint64_t seed)
{
    const uint8_t *bytes = from;
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != (uint8_t)((seed + i) * 2654435761u >> 11))
            return false;
    return true;
}
