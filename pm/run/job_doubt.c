/* The loss of a node that no view explains.
 *
 * Usually the others declare a lost node dead, or the job ends. If neither comes, the others may stand still, and may
 * do so for ever: a node that halted for want of a quorum leaves behind just those that are frozen. Pings are counted,
 * not time: who was suspended together with the whole job finds one timer run out, not ten. And only those that the
 * node's kernel has acknowledged: a node that is out of reach from here may be well. */
#include "pm/run/job.h"

#include "runtime/base/log.h"

#include <stdio.h>

enum {
    DOUBT_MS = 1000,        /* between pings while the loss of a node is unexplained */
    DOUBT_PINGS = 10,       /* without an answer from anybody: nothing is left to wait for */
    OUT_OF_REACH_MS = 3000, /* is told: see job_dialogue.c */
};

/* Who would know what became of the job: how many are left, all of them out of reach, and for how long. */
struct remote {
    int node, count; /* the last of them; 0: there is none, or one is in reach */
    uint64_t cut_ms;
};

static struct remote all_remote(const struct job *j)
{
    struct remote r = {.node = -1, .cut_ms = UINT64_MAX};
    uint64_t now = uv_now(&j->loop);
    for (int i = 0; i < j->total; i++) {
        const struct job_node *n = &j->nodes[i];
        if (!job_is_left(j, i))
            continue;
        if (n->conn || !n->cut_ms)
            return (struct remote){.node = -1};
        r.node = i;
        r.count++;
        if (now - n->cut_ms < r.cut_ms)
            r.cut_ms = now - n->cut_ms;
    }
    return r;
}

/* A node whose loss makes it likely that those out of reach are lost, too: one that no view explains, or the last of
 * the others. -1: none, and it is our own cable that may be cut. */
static int sign_of_the_end(const struct job *j, int left)
{
    int lost = -1;
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].phase == NODE_LOST && (left == 1 || j->nodes[i].unexplained))
            lost = i;
    return lost;
}

void job_wait_for_news(struct job *j)
{
    struct remote r = all_remote(j);
    int lost = r.count ? sign_of_the_end(j, r.count) : -1;
    char a[128], b[128], why[512];
    if (j->phase != JOB_RUNNING || lost < 0 || r.cut_ms < OUT_OF_REACH_MS) {
        j->news_awaited = j->news_awaited && r.count;
        return;
    }
    job_node_name(j, lost, a, sizeof a);
    job_node_name(j, r.node, b, sizeof b);
    if (r.cut_ms >= (uint64_t)j->options->console_s * 1000) {
        snprintf(why, sizeof why,
                 "%s is lost, and %s has been out of reach for %d s: nobody else is left who would say what became of "
                 "the job",
                 a, b, j->options->console_s);
        job_decide(j, 1, why);
        job_use_force(j);
    } else if (!j->news_awaited) {
        j->news_awaited = true;
        job_say(j,
                "%s is lost, and %s, which would know of the job, is out of reach: it is waited for, %d s at most; "
                "Ctrl-C does without",
                a, b, j->options->console_s);
    }
}

static void doubt_tick(uv_timer_t *timer)
{
    struct job *j = timer->data;
    int lost = -1, silent = -1, least = DOUBT_PINGS;
    for (int i = 0; i < j->total; i++) {
        struct job_node *n = &j->nodes[i];
        if (n->unexplained)
            lost = i;
        if (n->phase == NODE_LOST || n->unborn)
            continue;
        if (!n->conn || conn_unacknowledged(n->conn)) /* its host does not hear us, or is slow: that says nothing */
            n->unanswered = 0;
        if (n->unanswered < least)
            least = n->unanswered;
        silent = i;
        n->unanswered++;
        job_send(j, i, MSG_PING, NULL, 0);
    }
    if (lost < 0) {
        uv_timer_stop(&j->doubt);
    } else if (silent >= 0 && least >= DOUBT_PINGS) {
        char a[128], b[128], why[384];
        snprintf(why, sizeof why,
                 "the agent of %s ended, and that of %s has not answered for %d s, though its host does: frozen",
                 job_node_name(j, lost, a, sizeof a), job_node_name(j, silent, b, sizeof b),
                 DOUBT_PINGS * DOUBT_MS / 1000);
        job_decide(j, 1, why);
        job_use_force(j);
    }
}

static void doubt(struct job *j, int node)
{
    bool active = uv_is_active((uv_handle_t *)&j->doubt);
    j->nodes[node].unexplained = true;
    if (j->phase != JOB_RUNNING || active)
        return;
    for (int i = 0; i < j->total; i++)
        j->nodes[i].unanswered = 0;
    uv_timer_start(&j->doubt, doubt_tick, DOUBT_MS, DOUBT_MS);
}

void job_node_gone(struct job *j, int node, const char *why)
{
    char name[128];
    if (j->nodes[node].unborn)
        job_return_failed(j, node, why);
    if (!job_is_left(j, node))
        return;
    j->nodes[node].phase = NODE_LOST;
    log_info("%s: its agent has ended: %s", job_node_name(j, node, name, sizeof name), why);
    job_event(j, "agent_lost", json_pack("{s:i, s:s}", "lost", node, "why", why));
    job_waits_report(j, node, NULL); /* its ranks wait for nobody any more */
    doubt(j, node);
    job_return_look(j); /* it is not waited for */
    job_end_if_all_gone(j);
}
