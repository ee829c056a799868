/* Standard input, on its way to rank 0's process. */
#include "pm/run/job.h"

#include "pm/wire/codec.h"
#include "runtime/base/fault.h"

#include <stdlib.h>
#include <string.h>

/* One at a time, of at most what the feed reads at once. */
static void feed_send(void *user, const uint8_t *data, size_t len)
{
    struct job *j = user;
    if (j->replicas.output) {
        job_replicas_feed(j, data, len);
        return;
    }
    uint8_t *frame = pm_alloc(4 + len);
    put_u32(frame, j->feed_life);
    if (len)
        memcpy(frame + 4, data, len);
    job_send(j, j->feed_node, MSG_STDIN, frame, 4 + len);
    free(frame);
}

void job_tell_input(struct job *j, int node)
{
    const uint8_t read = j->feed.read == 0 ? INPUT_NONE : j->options->stdin_keep ? INPUT_SOME : INPUT_SOME_ONCE;
    job_send(j, node, MSG_INPUT, &read, 1);
}

/* Before it is sent: if we end then, each agent knows that a process which begins without it lacks it. */
static void feed_came(void *user)
{
    struct job *j = user;
    for (int i = 0; i < j->total; i++)
        job_tell_input(j, i);
    FAULT_POINT("run.input_came");
}

static void feed_lost(void *user, uint64_t read)
{
    struct job *j = user;
    uint8_t frame[4];
    put_u32(frame, j->feed_life);
    if (j->options->stdin_keep > 0)
        job_send(j, j->feed_node, MSG_STDIN_CUT, frame, sizeof frame);
    job_say(j,
            "rank 0 has begun again, without standard input: %llu bytes of it went to its process before, more than "
            "the %d that are kept (--stdin-keep)",
            (unsigned long long)read, j->options->stdin_keep);
}

static void feed_failed(void *user, uint64_t read, int error)
{
    char why[160];
    snprintf(why, sizeof why, "standard input cannot be read any further than %llu bytes: %s", (unsigned long long)read,
             strerror(error));
    job_stop(user, 1, why);
}

void job_feed_again(struct job *j, int node, uint32_t life)
{
    if (life <= j->feed_life)
        return; /* who began before has ended since */
    j->feed_node = node;
    j->feed_life = life;
    job_event(j, "stdin_again",
              json_pack("{s:i, s:i, s:I}", "to", node, "incarnation", (int)life, "read", (json_int_t)j->feed.read));
    stdin_feed_again(&j->feed);
}

void job_feed_begin(struct job *j)
{
    j->feed_node = j->options->job.rank_node[0];
    stdin_feed_start(&j->feed, &j->loop, (size_t)j->options->stdin_keep,
                     &(struct stdin_feed_ops){feed_send, feed_came, feed_lost, feed_failed, j});
}
