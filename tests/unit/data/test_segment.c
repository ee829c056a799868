/* What a segment costs a rank of a large job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/client/client.h"
#include "runtime/client/near.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment_touches_no_memory_for_ranks_that_nobody_talks_to),
    };
    return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
