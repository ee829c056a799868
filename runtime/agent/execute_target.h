/* A request of a rank, on its way through execute.c, execute_fits.c and execute_once.c, which alone include this. */
#ifndef KEEL_AGENT_EXECUTE_TARGET_H
#define KEEL_AGENT_EXECUTE_TARGET_H

#include "runtime/agent/agent.h"
#include "runtime/agent/execute.h"
#include "runtime/wire/pack.h"
#include "runtime/wire/request.h"

/* What a request is about, found once. */
struct request_target {
    struct conn *conn;
    const struct wire *w;
    struct msg_request request; /* of w, what all requests say */
    const void *body;
    int copyset;
    const struct view_copyset *g;
    struct store_copy *copy;
    struct pack pack; /* request.packed */
};

static inline bool is_packed(const struct request_target *t)
{
    return t->request.packed;
}

static inline void answer(const struct request_target *t, int status)
{
    execute_reply(t->conn, t->request.seq, status, 0, NULL, 0);
}

/* execute_fits.c: what the request does fits its kind and the copy. Of pieces, t->pack is them from then on. */
bool request_fits(const struct agent *a, struct request_target *t);
/* And of these kinds. */
bool acc_fits(struct request_target *t);
bool rmw_fits(const struct request_target *t);
/* execute_once.c: what the primary executes, once, and passes on. */
void execute_counted(struct agent *a, const struct request_target *t);
#endif
