/* behind [groups]: the last rank is stopped in the middle of a gathering of all; with "groups" also in those of a group
 * of every second rank and of one with rank 0 alone, all at once. The others, of two the one who has got what it gave,
 * leave by keel_finalize without it, as KEEL_TIMEOUT_MS is short. When it goes on it is told of an error in each group
 * of which it has not all blocks: nobody is left to give it them. Exit 0 if all is right. */
#include <keel/keel.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { TAG = 3, WORDS = 4, GROUPS = 3 };

static int me, last, groups = 1;
static int64_t mine[WORDS];
/* The world and, with "groups", every second rank from the last one down and the pair of the last and rank 0. */
static struct {
    keel_group *group;
    int rank[64], n;
    int64_t *all;
} of[GROUPS];

static bool is_member(int g)
{
    bool is = false;
    for (int i = 0; i < of[g].n; i++)
        is = is || of[g].rank[i] == me;
    return is;
}

static void fill(void)
{
    for (int r = 0; r <= last; r++)
        of[0].rank[of[0].n++] = r;
    for (int r = last % 2; r <= last; r += 2)
        of[1].rank[of[1].n++] = r;
    of[2].rank[of[2].n++] = 0;
    of[2].rank[of[2].n++] = last;
    of[0].group = keel_group_world();
    for (int i = 0; i < WORDS; i++)
        mine[i] = 100 * (me + 1) + i;
    for (int g = 0; g < groups; g++) {
        of[g].all = calloc((size_t)of[g].n * WORDS, sizeof mine[0]);
        if (g && is_member(g))
            CHECK(keel_group_create(of[g].rank, of[g].n, g, &of[g].group));
    }
}

static void expect_all(int g)
{
    for (int k = 0; k < of[g].n; k++)
        for (int i = 0; i < WORDS; i++)
            EXPECT(of[g].all[k * WORDS + i] == 100 * (of[g].rank[k] + 1) + i);
}

static void be_left_behind(void)
{
    pid_t pid = getpid();
    keel_request *r[GROUPS];
    CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
    CHECK(keel_barrier());
    for (int g = 0; g < groups; g++)
        CHECK(keel_group_allgather_begin(of[g].group, mine, of[g].all, sizeof mine, &r[g]));
    raise(SIGSTOP);
    keel_status status[GROUPS];
    for (int g = 0; g < groups; g++) {
        status[g] = keel_request_wait(r[g], NULL);
        if (status[g] == KEEL_OK) /* what the others had sent was here */
            expect_all(g);
        else
            EXPECT(status[g] == KEEL_ERR_REVOKED || status[g] == KEEL_ERR_RANK_DEAD);
    }
    /* Of a group whose members were all done with that call it is the only one now, and may gather alone. */
    for (int g = 0; g < groups; g++)
        EXPECT(keel_group_allgather(of[g].group, mine, of[g].all, sizeof mine) != KEEL_OK ||
               (last > 1 && status[g] == KEEL_OK));
}

/* Blocks of others come by way of the one that is stopped, where there are many. */
static void gather_before(int g)
{
    keel_status status = keel_group_allgather(of[g].group, mine, of[g].all, sizeof mine);
    if (status == KEEL_OK)
        expect_all(g);
    else
        EXPECT(last > 1 && (status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_REVOKED || status == KEEL_ERR_RANK_DEAD));
}

static void leave(void)
{
    pid_t pid = 0;
    if (me == 0)
        CHECK(keel_message_receive(last, TAG, &pid, sizeof pid, NULL, NULL));
    CHECK(keel_barrier());
    for (int g = 0; g < groups; g++)
        if (is_member(g))
            gather_before(g);
    CHECK(keel_finalize());
    if (me == 0)
        EXPECT(kill(pid, SIGCONT) == 0);
}

int main(int argc, char **argv)
{
    setenv("KEEL_TIMEOUT_MS", "1000", 1);
    CHECK(keel_init());
    me = keel_rank();
    last = keel_size() - 1;
    groups = argc > 1 && strcmp(argv[1], "groups") == 0 ? GROUPS : 1;
    fill();
    if (me != last) {
        leave();
        return 0;
    }
    be_left_behind();
    CHECK(keel_finalize());
    return 0;
}
