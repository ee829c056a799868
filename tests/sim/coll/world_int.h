#ifndef KEEL_TESTS_SIM_COLL_WORLD_INT_H
#define KEEL_TESTS_SIM_COLL_WORLD_INT_H

#include "tests/sim/coll/world.h"

struct coll_event {
    uint64_t t, order;
    enum { EV_MESSAGE, EV_VIEW, EV_TICK, EV_CALL, EV_SENT, EV_LOST, EV_LOOK, EV_PIECE, EV_NOTHING } kind;
    int to, from;
    size_t len;
    uint64_t value; /* VIEW: index of the view; SENT: instance; PIECE: of the data, so much has come before */
    uint8_t *data;
    const void *source; /* SENT */
    bool unheard;       /* SENT: it went with a broken connection */
};

struct coll_outcome { /* of a call on one member */
    bool begun, done;
    enum engine_status status;
    uint64_t value;
    struct roster *members;
};

struct coll_buffers { /* of a call on one member */
    uint8_t *in, *out;
    size_t in_len, out_len;
    size_t *lens[4]; /* in_at, in_len, out_at, out_len of varying calls */
};

enum { COLL_LANES = 16, COLL_AHEAD = 3 };

struct coll_member {
    struct coll_world *w;
    int id;
    struct engine *engine;
    bool dead, outcast; /* outcast: dead for the others */
    bool posted;        /* its call is on the board, */
    int waits;          /* and it waits for that one: it begins no other before its end; + 1 */
    bool leaving, left; /* it is through */
    uint64_t frozen_until, tick_at;
    int view;               /* last seen */
    int call, begun;        /* so many calls are complete; so many were begun */
    int current;            /* the one that is looked at, */
    struct coll_buffers *b; /* and its buffers */
    uint64_t messages;
    uint64_t sent_at[COLL_LANES]; /* when the last send to these is over */
    struct coll_outcome outcome[COLL_CALLS_MAX];
    struct coll_buffers buffers[COLL_CALLS_MAX];
};

struct coll_known { /* the first element of a reduction over all */
    int call;       /* + 1 */
    const struct roster *members;
    uint64_t first;
};

struct coll_world {
    struct coll_params p;
    struct rng rng;
    uint64_t now, order;
    struct coll_event *heap;
    int n_heap, cap_heap;
    struct coll_member *member;
    struct roster **view;
    int views, cap_views;
    int awaited[COLL_CALLS_MAX]; /* live members that have not begun the call */
    int left;                    /* who lives and has not completed everything */
    uint64_t end_at;             /* a little after nobody was left: an outcast waits for ever */
    struct coll_stats stats;
    void *board; /* shared, NULL: there is none */
    struct coll_known known;
};

void coll_fail(const struct coll_world *w, int member, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
/* check.c: buffers and what must be in them */
void coll_prepare(struct coll_member *m, const struct coll_spec *s, struct engine_call *call);
void coll_check_data(const struct coll_member *m, const struct coll_spec *s, const struct engine_result *r);
void coll_check_done(const struct coll_member *m, int call, const struct engine_result *r);
void coll_check_end(struct coll_world *w);
#endif
