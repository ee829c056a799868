/* keelctl bed: the link of a node of a netns bed. */
#include "pm/bed/bed.h"
#include "pm/ctl/ask.h"
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/quit.h"
#include "runtime/base/clock.h"

#include <stdio.h>
#include <string.h>

/* Where the node was started, which its namespace is numbered for: one that took the number of another one, which did
 * not come, lives elsewhere. Any agent knows all. Where none is left that answers, the number is most likely its
 * own. */
static int place_of(const struct job_agents *job, int node)
{
    for (int i = 0; i < job->count; i++) {
        json_t *status = ask_status(job->agents[i].fd);
        const char *host = json_string_value(json_array_get(json_object_get(status, "hosts"), (size_t)node));
        int place = host ? bed_netns_node(host) : -1;
        json_decref(status);
        if (place >= 0)
            return place;
    }
    fprintf(stderr, "keelctl: no agent answers that knows where node %d is: its namespace is taken to be number %d\n",
            node, node);
    return node;
}

int verb_bed(const struct job_agents *job, const struct request *r)
{
    const char *what = r->words[1], *node = r->words[3];
    char name[64];
    bool up = strcmp(what, "heal") == 0;
    if (!up && strcmp(what, "cut") != 0)
        pm_quit(2, "bed %s is not known: cut or heal", what);
    int place = place_of(job, node_number(node));
    uint64_t now = clock_now_ns();
    bed_netns_name(job->id, place, name, sizeof name);
    if (bed_netns_link(job->id, place, up) != 0)
        pm_quit(1, "the link of node %s, namespace %s, cannot be changed", node, name);
    json_t *told = json_pack("{s:I, s:i, s:s, s:s}", "t_ns", (json_int_t)now, "node", node_number(node), "link",
                             up ? "up" : "down", "namespace", name);
    show_json(told);
    json_decref(told);
    return 0;
}
