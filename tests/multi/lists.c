/* lists: calls with a length for each member whose lists do not fit together end with KEEL_ERR_MISMATCH at everybody,
 * whichever of the two sides says that there is nothing. Three ranks or more. Exit 0 if all is right. */
#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8, BLOCK = sizeof(int64_t) };

static void expect(const char *what, keel_status got, keel_status wanted)
{
    if (got == wanted)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", keel_rank(), what, keel_status_name(got));
    exit(1);
}

int main(void)
{
    const keel_combine sum = {.type = KEEL_INT64, .op = KEEL_SUM};
    int64_t in[MOST] = {0}, out[MOST];
    size_t full[MOST], hole[MOST], at[MOST], one[MOST], other[MOST];
    if (keel_init() != KEEL_OK || keel_size() > MOST)
        return 2;
    keel_group *w = keel_group_world();
    int me = keel_rank();
    for (size_t m = 0; m < MOST; m++) {
        full[m] = hole[m] = BLOCK;
        at[m] = m * BLOCK;
        one[m] = other[m] = 1;
    }
    hole[1] = 0;
    other[0] = 2;
    other[1] = 0;
    size_t mine = me == 1 ? 0 : BLOCK;
    const size_t *odd = me == 0 ? hole : full;
    expect("gather_v, root wants more", keel_group_gather_v(w, 0, in, mine, out, full, at), KEEL_ERR_MISMATCH);
    expect("gather_v, root wants less", keel_group_gather_v(w, 0, in, BLOCK, out, hole, at), KEEL_ERR_MISMATCH);
    expect("gather_v", keel_group_gather_v(w, 0, in, mine, out, hole, at), KEEL_OK);
    expect("scatter_v, root gives more", keel_group_scatter_v(w, 0, in, full, at, out, mine), KEEL_ERR_MISMATCH);
    expect("scatter_v, root gives less", keel_group_scatter_v(w, 0, in, hole, at, out, BLOCK), KEEL_ERR_MISMATCH);
    expect("scatter_v", keel_group_scatter_v(w, 0, in, hole, at, out, mine), KEEL_OK);
    expect("allgather_v", keel_group_allgather_v(w, in, mine, out, me == 1 ? hole : full, at), KEEL_ERR_MISMATCH);
    expect("alltoall_v, gives less", keel_group_alltoall_v(w, in, odd, at, out, full, at), KEEL_ERR_MISMATCH);
    expect("alltoall_v, wants less", keel_group_alltoall_v(w, in, full, at, out, odd, at), KEEL_ERR_MISMATCH);
    expect("reduce_scatter", keel_group_reduce_scatter(w, in, out, me ? one : other, &sum), KEEL_ERR_MISMATCH);
    expect("reduce_scatter to nowhere", keel_group_reduce_scatter(w, in, NULL, one, &sum), KEEL_ERR_ARG);
    expect("barrier", keel_group_barrier(w), KEEL_OK);
    return keel_finalize() == KEEL_OK ? 0 : 1;
}
