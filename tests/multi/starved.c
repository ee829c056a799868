/* starved EACH: of all allocations of Keel's, on all ranks, each EACH-th fails, from before there is a connection
 * between any two. What is called ends all the same, and alike on all ranks: with the right result, or with
 * KEEL_ERR_NOMEM. Exit 0 if all is right; it hangs if not. */
#include <keel/keel.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/expect.h"
#include "poor.h"

enum { ROUNDS = 30, LONG = 20000 };

static int64_t in[LONG], out[LONG];

static atomic_int each, asked; /* each 0: all succeed */
static int each_was;

static bool poor_fails(void)
{
    int every = each;
    return every && ++asked % every == 0;
}

static void poor_pause(void)
{
    each_was = each;
    each = 0;
}

static void poor_go_on(void)
{
    each = each_was;
}

static void same(const char *what, keel_status status)
{
    uint64_t least, most;
    if (status != KEEL_OK && status != KEEL_ERR_NOMEM)
        fprintf(stderr, "rank %d: %s: %s\n", keel_rank(), what, keel_status_name(status));
    EXPECT(status == KEEL_OK || status == KEEL_ERR_NOMEM);
    poor_pause();
    CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_MIN, status == KEEL_OK, &least));
    CHECK(keel_group_agree(keel_group_world(), KEEL_GROUP_MAX, status == KEEL_OK, &most));
    EXPECT(least == most);
    poor_go_on();
}

int main(int argc, char **argv)
{
    static const keel_combine sum = {.type = KEEL_INT64, .op = KEEL_SUM};
    CHECK(keel_init());
    EXPECT(argc == 2);
    poor_find();
    each = atoi(argv[1]);
    keel_group *world = keel_group_world();
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t value;
        keel_status status;
        same("barrier", keel_group_barrier(world));
        in[0] = 1;
        status = keel_group_allreduce(world, in, out, 1, &sum);
        EXPECT(status != KEEL_OK || out[0] == keel_size());
        same("allreduce", status);
        in[LONG - 1] = 2;
        status = keel_group_allreduce(world, in, out, LONG, &sum);
        EXPECT(status != KEEL_OK || out[LONG - 1] == 2 * keel_size());
        same("long allreduce", status);
        while ((status = keel_group_agree(world, KEEL_GROUP_MAX, (uint64_t)keel_rank(), &value)) == KEEL_ERR_LIMIT)
            ;
        EXPECT(status != KEEL_OK || value == (uint64_t)keel_size() - 1);
        same("agree", status);
    }
    each = 0;
    keel_finalize();
    return 0;
}
