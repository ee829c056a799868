/* keelctl --host */
#include "pm/ctl/verb.h"
#include "pm/wire/quit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The same there: Keel has the same path on all hosts. What we pass on has no character that a shell would take. */
_Noreturn void run_elsewhere(const struct request *r)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:_";
    char self[4096], signal_number[16], seconds[16];
    char *argv[ARGS_MAX + 10] = {"ssh", (char *)r->host, self};
    int n = 3;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    if (r->json)
        argv[n++] = "--json";
    if (r->counters)
        argv[n++] = "--counters";
    if (r->detect)
        argv[n++] = "--detect";
    if (r->signal != SIGKILL) {
        snprintf(signal_number, sizeof signal_number, "%d", r->signal);
        argv[n++] = "--signal";
        argv[n++] = signal_number;
    }
    if (r->position) {
        if (r->position[strspn(r->position, "0123456789,")])
            pm_quit(2, "--position %s is no place of a grid", r->position);
        argv[n++] = "--position";
        argv[n++] = (char *)r->position;
    }
    if (r->time_s) {
        snprintf(seconds, sizeof seconds, "%d", r->time_s);
        argv[n++] = "--time";
        argv[n++] = seconds;
    }
    for (int i = 0; i < r->count; i++) {
        if (r->words[i][strspn(r->words[i], plain)])
            pm_quit(2, "%s is not a command, job, node or host", r->words[i]);
        argv[n++] = r->words[i];
    }
    execvp(argv[0], argv);
    char why[128];
    pm_cannot_run("ssh", errno, why, sizeof why);
    pm_quit(1, "%s", why);
}
