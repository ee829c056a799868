/* Every rank puts a number into its right neighbour's part of a segment and gets it back from there. */
#include "check.h"

int main(void)
{
    check(keel_init(), "init");
    int me = keel_rank(), n = keel_size(), right = (me + 1) % n;
    keel_segment *segment;
    check(keel_segment_alloc(1024, KEEL_REDUNDANCY_SHADOW, &segment), "segment_alloc");

    int64_t number = 100 + me, back = 0, mine = 0;
    check(keel_put(segment, right, 0, &number, sizeof number), "put"); /* blocking: both copies hold it on return */
    check(keel_get(segment, right, 0, &back, sizeof back), "get");
    check(keel_barrier(), "barrier"); /* now everybody has put */
    check(keel_get(segment, me, 0, &mine, sizeof mine), "get");
    printf("rank %d wrote %d to rank %d and found %d in its own part\n", me, (int)back, right, (int)mine);

    int64_t ticket;
    check(keel_fetch_add(segment, 0, 8, 1, &ticket), "fetch_add"); /* a counter on rank 0 */
    if (ticket == n - 1)
        printf("rank by rank, all %d drew a ticket\n", n);

    keel_handle handle;
    check(keel_put_nb(segment, right, 16, &number, sizeof number, &handle), "put_nb");
    check(keel_wait(&handle), "wait"); /* until then number belongs to Keel */
    check(keel_put_nb(segment, right, 24, &number, sizeof number, NULL), "put_nb");
    check(keel_fence(right), "fence"); /* completes what has no handle */

    check(keel_segment_free(segment), "segment_free");
    check(keel_finalize(), "finalize");
    return 0;
}
