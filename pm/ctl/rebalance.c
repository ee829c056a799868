/* keelctl rebalance: should ranks that live go to other nodes? */
#include "pm/ctl/ask.h"
#include "pm/ctl/job_status.h"
#include "pm/ctl/verb.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"
#include "runtime/base/json.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 60000 }; /* a view: within --silence if a node dies meanwhile, and more where that waits longer */

/* The slot that is not where it is to be. */
static void tell_waiting(const json_t *v)
{
    const char *why = text_of(v, "why"), *ranks = text_of(v, "ranks");
    long long slot = int_of(v, "slot"), node = int_of(v, "node"), to = int_of(v, "to");
    const char *s = strchr(ranks, ' ') ? "s" : "";
    if (strcmp(why, "lost") == 0)
        pm_quit(1,
                "nobody moves: slot %lld (rank%s %s) was lost when no node was free for it, and gets none any more; a "
                "job that is started again (keelrun --restore) has it",
                slot, s, ranks);
    if (strcmp(why, "no_node") == 0)
        pm_quit(1,
                "nobody moves: slot %lld (rank%s %s) has no node; ask again when it has one (keelctl add-node gives "
                "the job one)",
                slot, s, ranks);
    if (strcmp(why, "no_place") == 0)
        pm_quit(1,
                "nobody moves: slot %lld (rank%s %s) is on node %lld, which can start no process, and no other node is "
                "free for it; ask again when one is (keelctl add-node gives the job one)",
                slot, s, ranks, node);
    if (strcmp(why, "no_memory") == 0)
        pm_quit(1,
                "nobody moves: slot %lld (rank%s %s) is to go from node %lld to node %lld, and stays, as there is no "
                "memory for it there or for who is in its way; ask again when a node has died or come "
                "(keelctl add-node)",
                slot, s, ranks, node, to);
    if (strcmp(why, "goes") == 0)
        pm_quit(1, "slot %lld (rank%s %s) is on its way from node %lld to node %lld; ask again when it is there", slot,
                s, ranks, node, to);
    pm_quit(1, "ranks are on their way");
}

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
        tell_waiting(v);
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
    struct json_writer w = json_into(question, sizeof question);
    json_open(&w, NULL, '{');
    json_put(&w, J_INT("seconds", r->time_s));
    json_close(&w, '}');
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
