/* What two replicas did not do alike since they last were equal: to whom how much went, for the event log; and the line
 * that says so, for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/client/client.h"
#include "runtime/client/job/channel.h"
#include "runtime/client/replica/replica.h"

enum { TOGETHER = 32, TEXT = 200, LINES_WHOLE = 16 };

struct sent {
    int target; /* -1: a contribution, to all members */
    uint32_t call;
    uint64_t operations, bytes;
};

static void tell(const struct sent *s, int a, int b)
{
    char text[TEXT];
    uint64_t step = atomic_load_explicit(&replica.client->step, memory_order_relaxed);
    int n = snprintf(text, sizeof text, "sets=%d,%d rank=%d step=%" PRIu64, a, b, replica.rank, step);
    if (s->target >= 0)
        n += snprintf(text + n, sizeof text - (size_t)n, " target=%d", s->target);
    snprintf(text + n, sizeof text - (size_t)n, " call=%s operations=%" PRIu64 " bytes=%" PRIu64,
             replica_call_name((enum replica_call)s->call), s->operations, s->bytes);
    channel_event("differs", (int64_t)step, text);
}

void replica_tell_differing(const struct check *mine, const struct check *theirs, int a, int b)
{
    struct sent to[TOGETHER];
    size_t targets = 0, i;
    uint64_t from = check_oldest(mine) > check_oldest(theirs) ? check_oldest(mine) : check_oldest(theirs);
    for (uint64_t n = from; n <= mine->now.count; n++) {
        const struct check_entry *x = check_find(mine, n), *y = check_find(theirs, n);
        if (!x || (y && memcmp(&x->op, &y->op, sizeof x->op) == 0))
            continue;
        for (i = 0; i < targets && to[i].target != x->op.target; i++)
            ;
        if (i == TOGETHER) { /* those before are told of now; a target may come again */
            for (size_t k = 0; k < targets; k++)
                tell(&to[k], a, b);
            i = targets = 0;
        }
        if (i == targets)
            to[targets++] = (struct sent){x->op.target, x->op.call, 0, 0};
        to[i].operations++;
        to[i].bytes += x->op.len;
    }
    for (size_t k = 0; k < targets; k++)
        tell(&to[k], a, b);
}

void replica_tell_people(int set, const char *text)
{
    static uint64_t told;
    if (++told > 1 && replica.on_mismatch == MISMATCH_KEEP)
        return;
    fflush(NULL);
    if (told <= LINES_WHOLE)
        fprintf(stderr, "%s\n", text);
    else if ((told & (told - 1)) == 0)
        fprintf(stderr, "rank %d: its sets have differed %" PRIu64 " times by now; the event log has a line for each\n",
                replica.rank, told);
    if (replica.set == set)
        (void)replica.below->event("mismatch", replica.rank, text);
}
