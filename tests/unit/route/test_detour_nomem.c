/* Routing where memory runs out: whichever allocation fails, calls return, and a path is a path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/topo/detour.h"

#include <limits.h>
#include <stdlib.h>

/* The allocator, by the linker: allocation number `fail` fails, and with `all` each after it, too. */
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static int done, fail;
static bool all;

static bool fails(void)
{
    done++;
    return fail && (all ? done >= fail : done == fail);
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}
// NOLINTEND(bugprone-reserved-identifier)

enum { MS = 1000000, MESSAGES = 600 };

/* Follows a path to its end; the network's own limit of hops. */
static bool leads_there(const struct fabric *f, int32_t from, const struct detour_path *path, int32_t dest)
{
    struct detour_walk w;
    int hops = 0;
    detour_walk_begin(&w, f, from, path, dest);
    while (detour_walk_next(&w) >= 0 && hops < 100)
        hops++;
    return w.at == fabric_home(f, dest);
}

/* Everything that a source does, under faults that are new all the time. returns whether there was memory to begin. */
static bool scenario(const struct fabric *f, const struct detour_config *c)
{
    struct detour d;
    struct detour_source s;
    struct rng rng;
    rng_seed(&rng, 3);
    detour_source_init(&s, 1);
    if (!detour_init(&d, f, c))
        return false;
    for (int i = 1; i <= MESSAGES; i++) {
        uint64_t now = (uint64_t)i * MS;
        int32_t dest = 2 + (int32_t)rng_below(&rng, (uint64_t)f->endpoints - 2), cable = -1;
        while (cable < 0 || f->neighbor[cable] < 0)
            cable = (int32_t)rng_below(&rng, (uint64_t)fabric_links(f));
        cable = fabric_cable(f, cable);
        struct detour_path path;
        detour_sent(&d, &s, dest);
        detour_choose(&d, &s, dest, now, &rng, &path);
        assert_true(leads_there(f, 1, &path, dest));
        if (i % 3 == 0)
            detour_faulted(&d, &s, cable, 10 * MS, now);
        else if (i % 7 == 0)
            detour_silent(&d, &s, dest, &path, now);
        else
            detour_acked(&d, &s, dest, &path, 1000 + 50000 * (uint64_t)(i % 2), now);
        struct detour_news news[8] = {{.cable = cable, .out_ns = 6 * MS, .age_ns = MS, .known_ns = MS}};
        detour_told(&d, &s, news, now);
        detour_recall(&d, &s, now, i % 5 == 0, 8, news);
        struct demand_flow flow[4] = {{.from = dest, .to = (dest + 1) % f->endpoints}};
        detour_told_flow(&d, &s, flow);
        detour_recall_flows(&d, &s, 4, flow);
        if (detour_escape(&d, 1, dest, &cable, 1, &rng, &path))
            assert_true(leads_there(f, 1, &path, dest));
        if (i % 100 == 0)
            detour_alive(&d, 5, i % 200 != 0);
    }
    detour_source_fini(&s);
    detour_fini(&d);
    return true;
}

static void test_detour_whichever_allocation_fails(void **state)
{
    (void)state;
    struct fabric f;
    assert_null(fabric_parse(&f, "4tx4t"));
    struct detour_config c = detour_config_plan();
    c.traffic = (struct flow_traffic){1e-5, 8000, 8e7, 220};
    c.max_faults = 12;
    done = fail = 0;
    assert_true(scenario(&f, &c));
    int needed = done, begun = 0;
    assert_true(needed > 20);
    for (int k = 0; k < 2; k++)
        for (int i = 1; i <= needed; i += i < 60 ? 1 : needed / 20 + 1) {
            all = k;
            fail = i;
            done = 0;
            begun += scenario(&f, &c);
        }
    fail = 0;
    assert_true(begun >= needed); /* but for those of detour_init, which ends at once */
    fabric_fini(&f);
}

static void test_fabric_whichever_allocation_fails(void **state)
{
    (void)state;
    static const char *const nets[] = {"1x7", "4tx3", "2tx2tx3", "tree:2,3"};
    for (int n = 0; n < 4; n++) {
        int refused = 0;
        for (fail = 1, all = true;; fail++) {
            struct fabric f;
            done = 0;
            if (!fabric_parse(&f, nets[n])) {
                fail = 0;
                fabric_fini(&f);
                break;
            }
            refused++;
            assert_true(fail < 100);
        }
        assert_true(refused > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detour_whichever_allocation_fails),
        cmocka_unit_test(test_fabric_whichever_allocation_fails),
    };
    return cmocka_run_group_tests_name("detour-nomem", tests, NULL, NULL);
}
