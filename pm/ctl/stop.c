/* keelctl stop: the job's end, which is waited for. */
#include "pm/ctl/ask.h"
#include "pm/ctl/verb.h"
#include "pm/wire/bytes.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"
#include "runtime/base/kernel.h"

#include <poll.h>
#include <stdlib.h>

enum { STOP_MS = 10000 };

/* The process at the other end of a console; -1: it has ended. */
static int process_behind(int fd)
{
    long long pid = ask_whom(fd);
    return pid ? process_open((pid_t)pid) : -1;
}

int verb_stop(const struct job_agents *job, const struct request *r)
{
    (void)r;
    bool any = false;
    int *processes = pm_alloc((size_t)job->count * sizeof *processes);
    for (int i = 0; i < job->count; i++) {
        processes[i] = process_behind(job->agents[i].fd);
        any |= ask(job->agents[i].fd, MSG_STOP, "{\"code\":143,\"why\":\"stopped by keelctl\",\"hard\":false}");
    }
    if (!any)
        pm_quit(1, "no node of the job takes the request");
    /* until they are gone; one that is frozen is not waited for for ever */
    for (int i = 0; i < job->count; i++) {
        struct pollfd p = {.fd = processes[i], .events = POLLIN};
        if (p.fd < 0)
            continue;
        (void)poll(&p, 1, STOP_MS);
        process_close(p.fd);
    }
    free(processes);
    return 0;
}
