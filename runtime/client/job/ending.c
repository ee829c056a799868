#include "runtime/client/job/ending.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/client/job/process.h"

static pid_t rank; /* whose end it is: a fork's child has our handlers, and our page */

void ending_say(int code)
{
    if (process_client.intents && getpid() == rank)
        atomic_store(&process_client.intents->ended, (uint32_t)(code & 0xff) + 1);
}

static void exiting(int code, void *arg)
{
    (void)arg;
    ending_say(code);
}

/* The code is not told. */
static void exiting_quickly(void)
{
    ending_say(0);
}

void ending_begin(void)
{
    rank = getpid();
    if (on_exit(exiting, NULL) != 0 || at_quick_exit(exiting_quickly) != 0)
        log_warn("no memory to tell the agent of this process's exit");
}
