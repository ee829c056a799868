/* keelctl kill-node: what dies when a machine dies, all at once. */
#include "pm/ctl/ask.h"
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/codec.h"
#include "pm/wire/order.h"
#include "pm/wire/quit.h"
#include "runtime/base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 17 }; /* of a process */

struct pid_list {
    pid_t pids[1024];
    int count;
};

static void add_tree(struct pid_list *l, long long pid)
{
    char path[64];
    int child;
    for (int i = 0; i < l->count; i++)
        if (l->pids[i] == (pid_t)pid)
            return;
    if (pid <= 1 || l->count == (int)(sizeof l->pids / sizeof l->pids[0]))
        return;
    l->pids[l->count++] = (pid_t)pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%d", &child) == 1)
        if (!start_is_of(child)) /* else it starts another node */
            add_tree(l, child);
    if (f)
        fclose(f);
}

static void add_live(struct pid_list *l, const json_t *rank)
{
    const char *state = json_string_value(json_object_get(rank, "state"));
    if (state && (strcmp(state, "running") == 0 || strcmp(state, "standby") == 0))
        add_tree(l, int_of(rank, "pid"));
}

/* Of a process, as the kernel has it: its state (a letter, 0: there is none) and its parent. */
static char look_at(long long pid, char *name, long long *parent)
{
    char path[64], line[512], state = 0;
    snprintf(path, sizeof path, "/proc/%lld/stat", pid);
    FILE *f = fopen(path, "re");
    char *from = f && fgets(line, sizeof line, f) ? strchr(line, '(') : NULL, *after = from ? strrchr(from, ')') : NULL;
    *parent = 0;
    if (after && sscanf(after + 1, " %c %lld", &state, parent) == 2)
        snprintf(name, NAME_BYTES, "%.*s", (int)(after - from - 1), from + 1);
    if (f)
        fclose(f);
    return state;
}

static long long parent_of(long long pid)
{
    char name[NAME_BYTES];
    long long parent;
    (void)look_at(pid, name, &parent);
    return parent;
}

/* An agent that is stopped says nothing of itself: what is known is who it is, and whose child. */
static bool add_stopped(struct pid_list *l, long long agent)
{
    char name[NAME_BYTES], above[NAME_BYTES];
    long long stub, launcher;
    if (agent <= 0 || look_at(agent, name, &stub) != 'T')
        return false;
    add_tree(l, agent);
    if (look_at(stub, above, &launcher) && strcmp(above, name) == 0)
        add_tree(l, stub);
    return true;
}

static void add_answered(struct pid_list *l, const json_t *status)
{
    long long stub = int_of(status, "stub_pid");
    add_tree(l, int_of(status, "agent_pid"));
    const json_t *ranks = json_object_get(status, "ranks"); /* children of others where keelrun did not start them */
    for (size_t i = 0; i < json_array_size(ranks); i++)
        add_live(l, json_array_get(ranks, i));
    if (parent_of(int_of(status, "agent_pid")) == stub)
        add_tree(l, stub);
}

/* The agent with everything below it, and the stub: what dies when a machine dies. The launcher stays where it is not
 * the stub: it runs where keelrun runs. */
int verb_kill_node(const struct job_agents *job, const struct request *r)
{
    static struct pid_list l;
    int node = node_number(r->words[2]);
    int fd = -1;
    for (int i = 0; i < job->count && fd < 0; i++)
        if (job->agents[i].node == node)
            fd = job->agents[i].fd;
    if (!add_stopped(&l, ask_whom(fd))) {
        json_t *status = fd >= 0 ? ask_status(fd) : NULL;
        if (!status)
            pm_quit(1, "node %d of the job is not on this machine, or does not answer", node);
        add_answered(&l, status);
        json_decref(status);
    }
    uint64_t now = clock_now_ns();
    for (int i = 0; i < l.count; i++)
        kill(l.pids[i], r->signal);
    json_t *pids = codec_ints((int *)l.pids, l.count);
    json_t *told =
        json_pack("{s:I, s:i, s:i, s:o}", "t_ns", (json_int_t)now, "node", node, "signal", r->signal, "pids", pids);
    show_json(told);
    json_decref(told);
    return 0;
}
