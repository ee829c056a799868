/* armci-ended: a process dies, and the agent of another one's node is stopped when it is about to end the program: that
 * process says for whom it waits (armci_ended.py). The agent goes on after a while. */
#include <armci.h>

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#define EXPECT_WHO armci_msg_me()
#include "../lib/expect.h"

enum { STOPPED_S = 3 };
static pid_t agent;

/* The agent asks its processes to end before it kills them. */
static void stop_the_agent(int number)
{
    (void)number;
    (void)kill(agent, SIGSTOP);
    (void)alarm(STOPPED_S);
}

static void let_it_go_on(int number)
{
    (void)number;
    (void)kill(agent, SIGCONT);
}

int main(void)
{
    double one = 1;
    EXPECT(ARMCI_Init() == 0);
    agent = getppid();
    if (armci_msg_me() == 0)
        EXPECT(signal(SIGTERM, stop_the_agent) != SIG_ERR && signal(SIGALRM, let_it_go_on) != SIG_ERR);
    ARMCI_Barrier();
    if (armci_msg_me() == armci_msg_nproc() - 1)
        (void)raise(SIGKILL);
    while (one > 0) {
        armci_msg_dgop(&one, 1, "max");
    }
    return 0;
}
