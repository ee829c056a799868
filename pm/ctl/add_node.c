/* keelctl add-node: a new node for a job that runs. An agent of this machine starts it and sees to the rest. */
#include "pm/ctl/ask.h"
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/codec.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each step of the agent's has its own limit; others may be before us. */
enum { ADD_MS = 600000 };

static json_t *order_of(const struct request *r)
{
    json_t *order = json_object();
    const char *last = r->words[r->count - 1];
    if (r->count > 2 || (r->count == 2 && !may_be_job(last)))
        json_object_set_new(order, "host", codec_text(last));
    if (r->position)
        json_object_set_new(order, "position", codec_text(r->position));
    return order;
}

int verb_add_node(const struct job_agents *job, const struct request *r)
{
    json_t *answer = NULL, *order = order_of(r);
    char *text = json_dumps(order, JSON_COMPACT);
    int by = -1;
    for (int i = 0; i < job->count && by < 0; i++) {
        json_t *status = ask_status(job->agents[i].fd);
        if (status && strcmp(text_of(status, "state"), "running") == 0) {
            by = job->agents[i].node;
            answer = ask_about(job->agents[i].fd, MSG_ADD, text, MSG_ADDED, ADD_MS);
        }
        json_decref(status);
    }
    free(text);
    json_decref(order);
    if (by < 0)
        pm_quit(1, "no node of the job answers");
    if (!answer)
        pm_quit(1, "node %d, which was to start it, has ended, or does not answer", by);
    const char *why = json_string_value(json_object_get(answer, "why"));
    int code = (int)int_of(answer, "code");
    if (why)
        pm_quit(code == 2 ? 2 : 1, "no node is added: %s", why);
    if (json_object_get(answer, "place"))
        printf("node %lld is a spare of the job from now on, on place %lld of its grid\n", int_of(answer, "node"),
               int_of(answer, "place"));
    else
        printf("node %lld is a spare of the job from now on\n", int_of(answer, "node"));
    json_decref(answer);
    return 0;
}
