/* What a segment costs a rank of a large job, and how large it may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/agent/store.h"
#include "runtime/client/client.h"
#include "runtime/client/op/near.h"
#include "runtime/client/segment/segment.h"

enum { RANKS = 1 << 20, NODES = 1 << 14 };

/* Pages of the array that are in memory. */
static size_t pages_touched(const void *array, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), touched = 0;
    uintptr_t from = (uintptr_t)array / page * page, pages = ((uintptr_t)array + bytes - from + page - 1) / page;
    unsigned char *in = malloc(pages);
    assert_non_null(in);
    assert_int_equal(mincore((void *)from, pages * page, in), 0);
    for (size_t i = 0; i < pages; i++)
        touched += in[i] & 1;
    free(in);
    return touched;
}

static void test_segment_touches_no_memory_for_ranks_that_nobody_talks_to(void **state)
{
    (void)state;
    struct page *page = calloc(1, page_bytes(NODES, NODES, RANKS));
    assert_non_null(page);
    page->nodes = page->members = NODES;
    page->ranks = RANKS;
    struct client client = {.page = page, .size = RANKS, .ready = true};
    struct keel_segment *s = segment_attach(&client, 0, 4096, KEEL_REDUNDANCY_NONE);
    assert_non_null(s);
    assert_in_range(pages_touched(s->near, RANKS * sizeof *s->near), 0, 2);
    for (int rank = 0; rank < RANKS; rank += RANKS / 8) { /* nobody is near */
        assert_false(near_valid(&s->near[rank], &s->near[rank].get_tag));
        assert_false(near_valid(&s->near[rank], &s->near[rank].put_tag));
        assert_false(near_valid(&s->near[rank], &s->near[rank].add_tag));
    }
    segment_release(s);
    segment_forget_all(&client);
    free(page);
}

/* Four ranks on one node: parts whose sum, or whose size in whole cache lines, is beyond 64 bits are not taken for
 * small ones. */
static void test_segment_of_parts_beyond_what_can_be_counted_is_made_by_no_agent(void **state)
{
    (void)state;
    const size_t quarter = (size_t)1 << 62;
    const size_t parts[][4] = {{quarter, quarter, quarter, quarter}, {SIZE_MAX, 0, 0, 0}, {64, SIZE_MAX - 64, 0, 0}};
    struct page *page = calloc(1, page_bytes(1, 1, 4));
    struct store_ops none = {0};
    struct store store;
    const int slot_ranks = 4;
    assert_non_null(page);
    page->nodes = page->members = 1;
    page->ranks = 4;
    for (int r = 0; r < 4; r++)
        page_rank(page, r)->index = (uint32_t)r;
    struct client client = {.page = page, .size = 4, .ready = true};
    assert_int_equal(store_init(&store, &none, NULL, 1, &slot_ranks), KEEL_OK);
    for (uint32_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct segment_want want = {.parts = parts[i], .redundancy = KEEL_REDUNDANCY_SHADOW};
        struct keel_segment *s = segment_new(&client, i + 1, &want);
        assert_non_null(s);
        assert_int_equal(store_define(&store, i + 1, s->unit, KEEL_REDUNDANCY_SHADOW, 1), KEEL_ERR_LIMIT);
        segment_release(s);
    }
    store_fini(&store);
    segment_forget_all(&client);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment_of_parts_beyond_what_can_be_counted_is_made_by_no_agent),
        cmocka_unit_test(test_segment_touches_no_memory_for_ranks_that_nobody_talks_to),
    };
    return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
