/* keelctl rebalance: should ranks that live go to other nodes? */
#include "pm/ctl/ask.h"
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 60000 }; /* a view: within --silence if a node dies meanwhile, and more where that waits longer */

/* returns   the exit code */
static int tell_result(const json_t *v, const char *result)
{
    bool moves = strcmp(result, "moves") == 0;
    if (moves)
        printf("%lld moves, as by %s: %.3g s for them, and %.3g s lost to collisions in %lld s, instead of %.3g s\n",
               int_of(v, "moves"), text_of(v, "chose"), real_of(v, "moving_s"), real_of(v, "lost_s"),
               int_of(v, "horizon_s"), real_of(v, "lost_staying_s"));
    else if (strcmp(result, "stays") == 0)
        printf("nothing pays: in %lld s %.3g s are lost to collisions; moving, and what is lost then: %s\n",
               int_of(v, "horizon_s"), real_of(v, "lost_staying_s"), text_of(v, "prices_s"));
    else if (strcmp(result, "unknown") == 0)
        pm_quit(1, "nobody knows yet what the program sends");
    else if (strcmp(result, "under_way") == 0)
        pm_quit(1, "ranks are on their way, or cannot go where they are to be");
    else if (strcmp(result, "not_auto") == 0)
        pm_quit(1, "the job has no grid with --substitution auto, or its ranks do not move");
    else
        pm_quit(1, "the agent says: %s", result);
    return 0;
}

/* Any agent that answers will do. */
int verb_rebalance(const struct job_agents *job, const struct request *r)
{
    json_t *answer = NULL;
    char question[64];
    snprintf(question, sizeof question, "{\"seconds\": %d}", r->time_s);
    for (int i = 0; i < job->count && !answer; i++) {
        json_t *status = ask_status(job->agents[i].fd);
        if (status && strcmp(text_of(status, "state"), "running") == 0)
            answer = ask_about(job->agents[i].fd, MSG_REBALANCE, question, MSG_REBALANCED, ANSWER_MS);
        json_decref(status);
    }
    if (!answer)
        pm_quit(1, "no node of the job answers");
    const char *result = text_of(answer, "result");
    bool answered = strcmp(result, "moves") == 0 || strcmp(result, "stays") == 0;
    int code = answered ? 0 : 1;
    if (r->json)
        show_json(answer);
    else
        code = tell_result(answer, result);
    json_decref(answer);
    return code;
}
