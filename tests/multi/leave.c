/* leave mail|wait|request|several: what finalize does with messages that were sent, with a thread that waits, with a request that nobody
 * waited for. Two ranks, several: five. Exit 0 if all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

enum { MESSAGES = 16, LENGTH = 60000 };

static char bytes[LENGTH];

/* All of them arrive, though the receiver looks only after the sender has begun to leave. */
static void mail(void)
{
    size_t len;
    for (int i = 0; i < MESSAGES; i++) {
        bytes[0] = (char)i;
        if (keel_rank() == 0)
            EXPECT_STATUS(keel_message_send(1, 5, bytes, sizeof bytes), KEEL_OK);
    }
    if (keel_rank() == 0)
        return;
    for (int i = 0; i < MESSAGES; i++) {
        EXPECT_STATUS(keel_message_receive(0, 5, bytes, sizeof bytes, &len, NULL), KEEL_OK);
        EXPECT_STATUS(len == LENGTH && bytes[0] == (char)i ? KEEL_OK : KEEL_ERR_SYSTEM, KEEL_OK);
    }
    EXPECT_STATUS(keel_message_receive(0, 5, bytes, sizeof bytes, &len, NULL), KEEL_ERR_RANK_DEAD);
}

/* Everybody has messages for everybody, gets them, and leaves; those who leave later hear of views meanwhile. */
static void several(void)
{
    size_t len;
    for (int r = 0; r < keel_size(); r++)
        if (r != keel_rank())
            EXPECT_STATUS(keel_message_send(r, 5, bytes, 100), KEEL_OK);
    for (int r = 0; r < keel_size(); r++)
        if (r != keel_rank())
            EXPECT_STATUS(keel_message_receive(r, 5, bytes, sizeof bytes, &len, NULL), KEEL_OK);
    EXPECT_STATUS(keel_barrier(), KEEL_OK);
}

static void *wait_for_a_message(void *unused)
{
    EXPECT_STATUS(keel_message_receive(1, 7, NULL, 0, NULL, NULL), KEEL_ERR_STATE);
    return unused;
}

int main(int argc, char **argv)
{
    keel_request *r = NULL;
    pthread_t thread;
    if (argc != 2 || keel_init() != KEEL_OK)
        return 2;
    bool first = keel_rank() == 0, waits = strcmp(argv[1], "wait") == 0 && first;
    if (strcmp(argv[1], "mail") == 0)
        mail();
    if (strcmp(argv[1], "several") == 0)
        several();
    if (strcmp(argv[1], "request") == 0 && first)
        EXPECT_STATUS(keel_group_barrier_begin(keel_group_world(), &r), KEEL_OK);
    if (waits && pthread_create(&thread, NULL, wait_for_a_message, NULL))
        return 2;
    if (!first && (argv[1][0] == 'w' || argv[1][0] == 'r')) /* stays until the other has left */
        EXPECT_STATUS(keel_message_receive(0, 9, NULL, 0, NULL, NULL), KEEL_ERR_RANK_DEAD);
    EXPECT_STATUS(keel_finalize(), KEEL_OK);
    if (r)
        EXPECT_STATUS(keel_request_wait(r, NULL), KEEL_ERR_STATE);
    if (waits)
        pthread_join(thread, NULL);
    return 0;
}
