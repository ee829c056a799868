/* The other end of adding.c: a node that is new. Until MSG_START the agent that adds it is its keelrun. From then on
 * that is another connection, which says when this node is a member; if it breaks before, nothing was, and we end. */
#include "pm/keeld/keeld.h"

#include "runtime/base/fault.h"
#include "runtime/base/log.h"

static void helper_open(struct pm_conn *c)
{
    (void)c;
}

static void helper_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    struct keeld *a = c->user;
    if (type == MSG_TAKEN) {
        keeld_output_taken(a, body, len);
    } else if (type == MSG_STANDBY) {
        keeld_kind_is_keels(a);
        keeld_ranks_standby(a);
    } else if (type == MSG_INPUT) {
        a->fed = len == 1 && body[0] <= INPUT_SOME_ONCE ? body[0] : INPUT_SOME;
    } else if (type == MSG_BYE) {
        a->dialogue.helper = NULL;
        conn_close(c);
    }
}

static bool is_member(const struct keeld *a)
{
    return a->view.alive && a->view.alive[a->launch.node];
}

static void helper_lost(struct pm_conn *c, const char *why)
{
    struct keeld *a = c->user;
    a->dialogue.helper = NULL;
    if (is_member(a))
        return;
    log_error("node %d: the agent that was to add it is gone (%s)", a->launch.node, why);
    keeld_kill_all(a);
    keeld_leave(a, 1);
}

void keeld_added_start(struct keeld *a)
{
    static const struct conn_events events = {helper_open, helper_frame, helper_lost};
    a->dialogue.helper = a->dialogue.conn;
    a->dialogue.helper->events = events;
    FAULT_POINT("added.told");
    keeld_dialogue_anew(a, a->job.keelrun);
}

void keeld_added_view(struct keeld *a)
{
    if (!a->dialogue.helper || !is_member(a))
        return;
    FAULT_POINT("added.born");
    conn_send_json(a->dialogue.helper, MSG_MET,
                   json_pack("{s:i, s:i}", "node", a->launch.node, "place", 1 + plane_place(a->plane, a->launch.node)));
}
