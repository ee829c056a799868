#include "runtime/base/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/log.h"

enum { FAULTS_MAX = 8, NAME_MAX_BYTES = 64 };

enum action { ACTION_KILL, ACTION_NODE, ACTION_STOP };

static struct fault {
    char point[NAME_MAX_BYTES];
    unsigned nth;
    enum action action;
    _Atomic unsigned passed;
} faults[FAULTS_MAX];
static int faults_count;
static int in_agent, initialised;
int fault_armed;
void (*fault_hook)(const char *name);

static int parse_action(const char *text, enum action *action)
{
    static const char *const name[] = {[ACTION_KILL] = "kill", [ACTION_NODE] = "node", [ACTION_STOP] = "stop"};
    for (int i = 0; text && i <= ACTION_STOP; i++)
        if (strcmp(text, name[i]) == 0) {
            *action = (enum action)i;
            return 1;
        }
    return 0;
}

/* One specification; 1 if it is for this process, 0 if not, -1 if it is malformed. */
static int parse(char *text, int node, int rank, unsigned life, struct fault *out)
{
    char *rest, *end;
    const char *point = strtok_r(text, ":", &rest), *nth = strtok_r(NULL, ":", &rest);
    unsigned long n = nth ? strtoul(nth, &end, 10) : 0;
    if (!point || strlen(point) >= NAME_MAX_BYTES || n == 0 || *end ||
        !parse_action(strtok_r(NULL, ":", &rest), &out->action))
        return -1;
    int wanted = 1;
    unsigned wanted_life = 0;
    for (const char *option; (option = strtok_r(NULL, ":", &rest));) {
        int value;
        if (sscanf(option, "node=%d", &value) == 1)
            wanted = wanted && value == node;
        else if (sscanf(option, "rank=%d", &value) == 1)
            wanted = wanted && value == rank;
        else if (sscanf(option, "life=%d", &value) == 1)
            wanted_life = (unsigned)value;
        else
            return -1;
    }
    snprintf(out->point, sizeof out->point, "%s", point);
    out->nth = (unsigned)n;
    return wanted && life == wanted_life;
}

void fault_init(int node, int rank, unsigned life)
{
    const char *all = initialised ? NULL : getenv("KEEL_FAULT");
    char *copy = all ? strdup(all) : NULL;
    if (initialised++)
        return;
    in_agent = rank < 0;
    char *rest;
    for (char *one = copy ? strtok_r(copy, ",", &rest) : NULL; one; one = strtok_r(NULL, ",", &rest)) {
        if (faults_count == FAULTS_MAX)
            break;
        int mine = parse(one, node, rank, life, &faults[faults_count]);
        if (mine < 0)
            log_error("KEEL_FAULT: '%s' is not POINT:N:kill|node|stop[:node=N][:rank=N][:life=N]", all);
        faults_count += mine > 0;
    }
    free(copy);
    fault_armed = faults_count > 0;
}

static void act(enum action action)
{
    if (action == ACTION_NODE && !in_agent)
        kill(getppid(), SIGKILL); /* ranks are children of their agent */
    kill(getpid(), action == ACTION_STOP ? SIGSTOP : SIGKILL);
}

void fault_pass(const char *name)
{
    if (fault_hook) {
        fault_hook(name);
        return;
    }
    for (int i = 0; i < faults_count; i++)
        if (strcmp(faults[i].point, name) == 0 && atomic_fetch_add(&faults[i].passed, 1) + 1 == faults[i].nth)
            act(faults[i].action);
}
