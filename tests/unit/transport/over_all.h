/* What the tests of transport.h's contract have in common: the implementations that connect by address, a pair of
 * ends, and a run over all. */
#ifndef KEEL_TESTS_UNIT_TRANSPORT_OVER_ALL_H
#define KEEL_TESTS_UNIT_TRANSPORT_OVER_ALL_H

#include "tests/lib/net/inject.h"
#include "runtime/net/sealed/sealed.h"
#include "tests/unit/transport/tp_peer.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/base/rng.h"
#include "tests/lib/net/mem.h"

static struct tp_table tp_inject_over_mem, tp_sealed_over_mem, tp_sealed_over_stream; /* filled by run_over_all */

static inline keel_status open_inject_over_mem(const struct tp_config *config, struct tp **out)
{
    struct tp *inner;
    keel_status status = tp_mem.open(config, &inner);
    return status == KEEL_OK ? tp_inject_open(inner, NULL, NULL, out) : status;
}

static const uint8_t secret[32] = "a secret that all of a job know";

static inline keel_status open_sealed_over_mem(const struct tp_config *config, struct tp **out)
{
    struct tp *inner;
    keel_status status = tp_mem.open(config, &inner);
    return status == KEEL_OK ? tp_sealed_open(inner, secret, out) : status;
}

static inline keel_status open_sealed_over_stream(const struct tp_config *config, struct tp **out)
{
    return tp_net_open(config, secret, out);
}

/* The table of an implementation that lies over another one. */
static inline void make_over(keel_status (*open)(const struct tp_config *config, struct tp **out), const char *host,
                             struct tp_table *out)
{
    struct tp *tp;
    if (open(&(struct tp_config){.host = host, .provider = "tcp"}, &tp) != KEEL_OK)
        abort();
    *out = *tp->table;
    out->open = open;
    tp->table->close(tp);
}

static const struct implementation {
    const struct tp_table *table;
    const char *host_a, *host_b;
    size_t most;       /* bytes of one write or read in these tests; 0: any number */
    bool drops_unsent; /* tp_disconnect takes back messages that the peer's device has not acknowledged */
} implementations[] = {
    {&tp_ofi, "127.0.0.1", "127.0.0.2", 0, false},
    {&tp_mem, "a", "b", 0, false},
    {&tp_inject_over_mem, "a", "b", 0, false},
    {&tp_sealed_over_mem, "a", "b", 0, false},
    {&tp_sealed_over_stream, "127.0.0.1", "127.0.0.2", 0, false},
};
/* The same over RDMA devices; by "KEEL_TEST_VERBS=ADDRESS ADDRESS", these two alone. */
static struct implementation over_verbs = {.table = &tp_ofi, .most = 6u << 20, .drops_unsent = true};
static const struct implementation *impl;

struct pair {
    struct world world;
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
};

static inline void pair_open(struct pair *p)
{
    *p = (struct pair){0};
    peer_open(&p->world, &p->a, impl->table, impl->host_a, true);
    peer_open(&p->world, &p->b, impl->table, impl->host_b, true);
    world_connect(&p->world, &p->a, &p->b, &p->a_ep, &p->b_ep);
}

static inline void pair_close(struct pair *p)
{
    peer_close(&p->world, &p->a);
    peer_close(&p->world, &p->b);
}

static inline keel_status done(struct pair *p, struct tp_op *op)
{
    struct peer_record *record = world_await(&p->world, &p->a, TP_DONE, p->a_ep);
    assert_ptr_equal(record->event.op, op);
    keel_status status = record->event.status;
    record_free(record);
    return status;
}

static inline void expect_message(struct pair *p, struct peer *at, struct tp_ep *ep, size_t len, uint64_t seed)
{
    struct peer_record *record = world_await(&p->world, at, TP_RECV, ep);
    assert_int_equal(record->event.len, len);
    assert_true(is_pattern(record->event.data, len, seed));
    record_free(record);
}

/* The tests over each implementation, or over the devices that the environment names; exit code. */
static inline int run_over_all(const struct CMUnitTest *tests, size_t n, const char *filter)
{
    if (filter)
        cmocka_set_test_filter(filter);
    int failed = 0;
    static char a[64], b[64];
    const char *hosts = getenv("KEEL_TEST_VERBS");
    if (hosts && sscanf(hosts, "%63s %63s", a, b) == 2) {
        peer_provider = "verbs";
        over_verbs.host_a = a;
        over_verbs.host_b = b;
        impl = &over_verbs;
        return _cmocka_run_group_tests("verbs", tests, n, NULL, NULL) != 0;
    }
    make_over(open_inject_over_mem, "x", &tp_inject_over_mem);
    make_over(open_sealed_over_mem, "x", &tp_sealed_over_mem);
    make_over(open_sealed_over_stream, "127.0.0.1", &tp_sealed_over_stream);
    for (size_t i = 0; i < sizeof(implementations) / sizeof(*implementations); i++) {
        impl = &implementations[i];
        failed += _cmocka_run_group_tests(impl->table->name, tests, n, NULL, NULL);
    }
    return failed != 0;
}
#endif
