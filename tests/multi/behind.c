/* behind: of two ranks the second one is stopped in the middle of a gathering of all. The first one, who has got what it gave, leaves by
 * keel_finalize without it, as KEEL_TIMEOUT_MS is short. When the second one goes on it is told of an error: nobody is left to give it the
 * other's block. Exit 0 if all is right. */
#include <keel/keel.h>

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { TAG = 3, WORDS = 4 };

static int me, last;
static int64_t mine[WORDS], *all;

static void fill(void)
{
    all = calloc((size_t)(last + 1) * WORDS, sizeof *all);
    for (int i = 0; i < WORDS; i++)
        mine[i] = 100 * (me + 1) + i;
}

static void expect_all(void)
{
    for (int r = 0; r <= last; r++)
        for (int i = 0; i < WORDS; i++)
            EXPECT(all[r * WORDS + i] == 100 * (r + 1) + i);
}

static void be_left_behind(void)
{
    pid_t pid = getpid();
    keel_request *r;
    CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
    CHECK(keel_barrier());
    CHECK(keel_group_allgather_begin(keel_group_world(), mine, all, sizeof mine, &r));
    raise(SIGSTOP);
    keel_status status = keel_request_wait(r, NULL);
    if (status == KEEL_OK) /* what the first one had sent was here */
        expect_all();
    else
        EXPECT(status == KEEL_ERR_REVOKED || status == KEEL_ERR_RANK_DEAD);
    EXPECT(keel_group_allgather(keel_group_world(), mine, all, sizeof mine) != KEEL_OK);
}

static void leave(void)
{
    pid_t pid;
    CHECK(keel_message_receive(last, TAG, &pid, sizeof pid, NULL, NULL));
    CHECK(keel_barrier());
    CHECK(keel_group_allgather(keel_group_world(), mine, all, sizeof mine));
    expect_all();
    CHECK(keel_finalize());
    EXPECT(kill(pid, SIGCONT) == 0);
}

int main(void)
{
    setenv("KEEL_TIMEOUT_MS", "300", 1);
    CHECK(keel_init());
    me = keel_rank();
    last = keel_size() - 1;
    fill();
    if (me != last) {
        leave();
        return 0;
    }
    be_left_behind();
    CHECK(keel_finalize());
    return 0;
}
