/* What the data half asks for, on its thread: the helper thread, the event loop, the memory of copies or this node's
 * processes do it. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/plane/plane_int.h"

#define WAITED_NS (2 * KEEL_NS_PER_S) /* who waits says so more often than that */

static void submit(void *user, const struct view_event *e)
{
    struct plane *p = user;
    helper_submit(p->helper, e);
}

static void check(void *user, int node)
{
    struct plane *p = user;
    helper_check(p->helper, node);
    helper_waits(p->helper, node, clock_now_ns() + WAITED_NS); /* who asks waits, and asks again */
}

static void stake(void *user, int node, enum view_stake stake)
{
    struct plane *p = user;
    helper_stake(p->helper, node,
                 stake == STAKE_JOB    ? MEMBER_FATAL
                 : stake == STAKE_DATA ? MEMBER_COSTLY
                                       : MEMBER_CHEAP);
}

static void refused(void *user, int node)
{
    struct plane *p = user;
    helper_refused(p->helper, node);
}

static void broken(void *user, int node)
{
    struct plane *p = user;
    helper_broken(p->helper, node);
}

static void prepared(void *user, uint64_t proposal, uint64_t value)
{
    struct plane *p = user;
    helper_prepared(p->helper, proposal, value);
}

static void fatal(void *user, const char *why)
{
    queue_fatal(user, why);
}

static void event(void *user, const char *name, const char *members)
{
    queue_event(user, name, members);
}

static void tell_answer(void *user, enum upcall_type type, uint64_t id, const char *members)
{
    enum { TEXT_MAX = 640 };
    struct upcall *u = queue_upcall_new(user, type);
    if (!u || !(u->text = malloc(TEXT_MAX))) {
        free(u);
        return;
    }
    u->epoch = id;
    snprintf(u->text, TEXT_MAX, "{%s}", members);
    queue_upcall(user, u);
}

static void verified(void *user, uint64_t id, const char *members)
{
    tell_answer(user, UPCALL_VERIFIED, id, members);
}

static void rebalanced(void *user, uint64_t id, const char *members)
{
    tell_answer(user, UPCALL_REBALANCED, id, members);
}

static keel_status fill(void *user, void *base, int64_t handle, size_t offset, const void *from, size_t bytes)
{
    struct plane *p = user;
    (void)base;
    return memory_fill(&p->credit, handle, offset, from, bytes);
}

struct agent_ops asked_ops(struct plane *p)
{
    return (struct agent_ops){.user = p,
                              .submit = submit,
                              .check = check,
                              .stake = stake,
                              .refused = refused,
                              .broken = broken,
                              .prepared = prepared,
                              .fatal = fatal,
                              .event = event,
                              .memory_make = memory_make,
                              .memory_free = memory_free,
                              .memory_fill = fill,
                              .memory_empty = memory_empty,
                              .memory_used = memory_used,
                              .answer = procs_answer,
                              .assign = procs_assign,
                              .release = procs_release,
                              .stay = procs_stay,
                              .forgotten = procs_forgotten,
                              .look_at = procs_look_at,
                              .failed = procs_failed,
                              .verified = verified,
                              .rebalanced = rebalanced};
}
