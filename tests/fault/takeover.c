/* takeover: what a process finds that takes a dead rank's place. Two ranks; the last one is killed by the test when
 * rank 0 has said "ready", and a spare takes its place. Before, rank 0 has signalled to it, sent it a message, and
 * made a group with it. Exit 0 if all is right. */
#include <keel/keel.h>

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { EARLY = 1, HERE = 2, LATER = 3, GROUP = 4, SUM = 17 };

static keel_segment *words;
static const int both[] = {0, 1};

static void first(void)
{
    keel_group *group;
    int here = 0;
    keel_status status;
    CHECK(keel_signal(words, 1, 0, SUM));
    CHECK(keel_group_create(both, 2, GROUP, &group));
    CHECK(keel_message_send(1, EARLY, &here, sizeof here));
    printf("ready\n");
    fflush(stdout);
    while ((status = keel_message_receive(1, HERE, &here, sizeof here, NULL, NULL)) == KEEL_ERR_RANK_DEAD)
        sched_yield(); /* nobody has its place yet */
    CHECK(status);
    CHECK(keel_message_send(1, LATER, &here, sizeof here));
    CHECK(keel_message_receive(1, HERE, &here, sizeof here, NULL, NULL));
    CHECK(keel_group_free(group));
}

static void victim(void)
{
    keel_group *group;
    CHECK(keel_group_create(both, 2, GROUP, &group));
    for (;;)
        pause();
}

static void successor(void)
{
    keel_group *group;
    int here = 1;
    int64_t sum;
    CHECK(keel_wait_until(words, 0, KEEL_EQ, SUM, 0, &sum));
    CHECK(keel_message_send(0, HERE, &here, sizeof here));
    CHECK(keel_message_receive(0, LATER, &here, sizeof here, NULL, NULL));
    EXPECT(keel_message_test(0, EARLY, NULL, NULL) == KEEL_IN_PROGRESS);
    EXPECT(keel_group_create(both, 2, GROUP, &group) == KEEL_ERR_STATE && !group);
    CHECK(keel_message_send(0, HERE, &here, sizeof here));
}

int main(void)
{
    CHECK(keel_init());
    EXPECT(keel_size() == 2);
    CHECK(keel_segment_alloc(sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &words));
    if (keel_rank() == 0)
        first();
    else if (keel_restarted())
        successor();
    else
        victim();
    CHECK(keel_finalize());
    return 0;
}
