/* Tagged messages between any number of ranks: order, tags, any sender, lengths, the limit of what waits. Exit 0 if
 * all is right. */
#include <keel/keel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/expect.h"

static unsigned char data[KEEL_MESSAGE_MAX], got[KEEL_MESSAGE_MAX];

static void fill(int from, int to, int k, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char)(from * 31 + to * 7 + k + (int)i);
}

static size_t length_of(int k)
{
    static const size_t lengths[] = {0, 1, 100, 4097, 16384, 16500, KEEL_MESSAGE_MAX};
    return lengths[k % 7];
}

/* Everybody to everybody, two tags; received in another order than sent. */
static void all_to_all(void)
{
    enum { EACH = 14 };
    int n = keel_size(), me = keel_rank();
    for (int k = 0; k < EACH; k++)
        for (int r = 0; r < n; r++) {
            fill(me, r, k, length_of(k));
            CHECK(keel_message_send(r, (unsigned)k % 2, data, length_of(k)));
        }
    for (int tag = 1; tag >= 0; tag--)
        for (int r = n - 1; r >= 0; r--)
            for (int k = tag; k < EACH; k += 2) {
                size_t len;
                int from;
                CHECK(keel_message_receive(r, (unsigned)tag, got, sizeof got, &len, &from));
                fill(r, me, k, length_of(k));
                EXPECT(len == length_of(k) && from == r && memcmp(got, data, len) == 0);
            }
}

/* Much more than may wait, while the receiver is slow to ask; and both ways at once. */
static void floods(void)
{
    enum { MESSAGES = 200 };
    int n = keel_size(), me = keel_rank(), to = (me + 1) % n, from = (me + n - 1) % n;
    for (int k = 0; k < MESSAGES; k++) {
        if (k >= 8) {
            CHECK(keel_message_receive(from, 5, got, sizeof got, NULL, NULL));
            fill(from, me, k - 8, sizeof data);
            EXPECT(memcmp(got, data, sizeof got) == 0);
        }
        fill(me, to, k, sizeof data);
        CHECK(keel_message_send(to, 5, data, sizeof data));
    }
    for (int k = MESSAGES - 8; k < MESSAGES; k++)
        CHECK(keel_message_receive(from, 5, got, sizeof got, NULL, NULL));
    if (n > 1 && me == 0) /* one way: who sends is held back until the other receives */
        for (int k = 0; k < MESSAGES; k++)
            CHECK(keel_message_send(1, 6, data, sizeof data));
    if (me == 1)
        for (int k = 0; k < MESSAGES; k++)
            CHECK(keel_message_receive(KEEL_ANY_RANK, 6, got, sizeof got, NULL, NULL));
}

/* What was not received alone holds a sender back: both send nearly as much as may wait before either receives,
 * again and again. */
static void crossing(void)
{
    enum { ROUNDS = 6, MESSAGES = 15 };
    static char bytes[KEEL_MESSAGE_MAX];
    int me = keel_rank();
    for (int round = 0; round < ROUNDS && me < 2 && keel_size() > 1; round++) {
        for (int k = 0; k < MESSAGES; k++)
            CHECK(keel_message_send(1 - me, 8, bytes, sizeof bytes));
        for (int k = 0; k < MESSAGES; k++)
            CHECK(keel_message_receive(1 - me, 8, bytes, sizeof bytes, NULL, NULL));
    }
}

static void any_rank(void)
{
    int n = keel_size(), me = keel_rank(), seen = 0;
    if (me != 0) {
        CHECK(keel_message_send(0, 9, &me, sizeof me));
        return;
    }
    for (int k = 1; k < n; k++) {
        int who, from;
        size_t len;
        keel_status status;
        while ((status = keel_message_test(KEEL_ANY_RANK, 9, &len, &from)) == KEEL_IN_PROGRESS)
            ;
        CHECK(status);
        EXPECT(len == sizeof who);
        EXPECT(keel_message_receive(from, 9, &who, 1, &len, NULL) == KEEL_ERR_LIMIT && len == sizeof who);
        CHECK(keel_message_receive(from, 9, &who, sizeof who, &len, NULL));
        EXPECT(who == from);
        seen |= 1 << who;
    }
    EXPECT(seen == (1 << n) - 2);
    EXPECT(n == 1 || keel_message_test(1, 9, NULL, NULL) == KEEL_IN_PROGRESS);
}

enum { PER_THREAD = 50 };
static int got_by[2][PER_THREAD], left_of_me;

static void *receiver(void *which)
{
    for (int k = 0; k < PER_THREAD; k++)
        CHECK(keel_message_receive(left_of_me, 10, (int *)which + k, sizeof(int), NULL, NULL));
    return NULL;
}

/* Two threads that receive the same: each message in one of them, in each in order. */
static void two_receivers(void)
{
    pthread_t id[2];
    int n = keel_size(), me = keel_rank(), seen[2 * PER_THREAD] = {0};
    left_of_me = (me + n - 1) % n;
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&id[i], NULL, receiver, got_by[i]) == 0);
    for (int k = 0; k < 2 * PER_THREAD; k++)
        CHECK(keel_message_send((me + 1) % n, 10, &k, sizeof k));
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_join(id[i], NULL) == 0);
        for (int k = 0; k < PER_THREAD; k++) {
            EXPECT(got_by[i][k] >= 0 && got_by[i][k] < 2 * PER_THREAD && !seen[got_by[i][k]]++);
            EXPECT(k == 0 || got_by[i][k] > got_by[i][k - 1]);
        }
    }
}

static void wrong_arguments(void)
{
    EXPECT(keel_message_send(-1, 0, data, 1) == KEEL_ERR_ARG);
    EXPECT(keel_message_send(keel_size(), 0, data, 1) == KEEL_ERR_ARG);
    EXPECT(keel_message_send(0, 0, NULL, 1) == KEEL_ERR_ARG);
    EXPECT(keel_message_send(0, 0, data, KEEL_MESSAGE_MAX + 1) == KEEL_ERR_ARG);
    EXPECT(keel_message_receive(-2, 0, data, 1, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_message_receive(keel_size(), 0, data, 1, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_message_receive(0, 0, NULL, 1, NULL, NULL) == KEEL_ERR_ARG);
    EXPECT(keel_message_test(keel_size(), 0, NULL, NULL) == KEEL_ERR_ARG);
}

int main(void)
{
    EXPECT(keel_message_send(0, 0, data, 1) == KEEL_ERR_STATE);
    EXPECT(keel_message_test(0, 0, NULL, NULL) == KEEL_ERR_STATE);
    CHECK(keel_init());
    wrong_arguments();
    all_to_all();
    floods();
    crossing();
    any_rank();
    two_receivers();
    CHECK(keel_barrier());
    /* the last rank leaves: what it had sent is received, and then it is known that nothing comes any more */
    int last = keel_size() - 1, me = keel_rank();
    if (last > 0 && me == last) {
        CHECK(keel_message_send(0, 3, &me, sizeof me));
        CHECK(keel_message_receive(0, 4, got, sizeof got, NULL, NULL));
    } else if (me == 0 && last > 0) {
        CHECK(keel_message_receive(last, 3, got, sizeof got, NULL, NULL));
        CHECK(keel_message_send(last, 4, NULL, 0));
        EXPECT(keel_message_receive(last, 3, got, sizeof got, NULL, NULL) == KEEL_ERR_RANK_DEAD);
        EXPECT(keel_message_send(last, 3, NULL, 0) == KEEL_ERR_RANK_DEAD);
    }
    CHECK(keel_finalize());
    return 0;
}
