/* full: a call that is complete does not wait for a stopped process to which there is no room. Two ranks: the second
 * begins a barrier and stops itself; the first fills the way to it with messages, completes the barrier, and lets it
 * go on. Exit 0 if all is right; it hangs if not. */
#include <keel/keel.h>

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/expect.h"

enum { TAG = 3, MESSAGES = 15 }; /* of KEEL_MESSAGE_MAX: more would wait for the receiver */

static unsigned char bytes[KEEL_MESSAGE_MAX];

static void be_stopped(void)
{
    keel_request *request;
    pid_t pid = getpid();
    CHECK(keel_group_barrier_begin(keel_group_world(), &request));
    CHECK(keel_message_send(0, TAG, &pid, sizeof pid));
    raise(SIGSTOP);
    CHECK(keel_request_wait(request, NULL));
    for (int i = 0; i < MESSAGES; i++) {
        CHECK(keel_message_receive(0, TAG, bytes, sizeof bytes, NULL, NULL));
        EXPECT(bytes[0] == i && bytes[sizeof bytes - 1] == i);
    }
}

static void complete(void)
{
    pid_t pid;
    CHECK(keel_message_receive(1, TAG, &pid, sizeof pid, NULL, NULL));
    for (int i = 0; i < MESSAGES; i++) {
        bytes[0] = bytes[sizeof bytes - 1] = (unsigned char)i;
        CHECK(keel_message_send(1, TAG, bytes, sizeof bytes));
    }
    CHECK(keel_group_barrier(keel_group_world()));
    EXPECT(kill(pid, SIGCONT) == 0);
}

int main(void)
{
    setenv("KEEL_TIMEOUT_MS", "500", 1);
    CHECK(keel_init());
    EXPECT(keel_size() == 2);
    if (keel_rank() == 1)
        be_stopped();
    else
        complete();
    CHECK(keel_barrier());
    CHECK(keel_finalize());
    return 0;
}
