/* What a member has to say to the coordinator. */
#ifndef KEEL_DETECT_REPORTS_H
#define KEEL_DETECT_REPORTS_H

#include "detect/datagram.h"
#include "detect/rtt.h"

/* What this member has to say to the coordinator. */
struct report {
    int to;           /* the coordinator, as believed at the last look */
    uint64_t heard;   /* its last sign of life, 0: none */
    uint64_t changed; /* reports with a later number contain all that there is to say */
    uint64_t since;   /* the first of them */
    bool taken;       /* one of them was answered so */
    uint64_t next, rto, hold;
    uint32_t said;       /* number of the last own event in the last one */
    uint64_t said_nonce; /* of the last one, and the deaths in it */
    int said_dead[MEMBER_BATCH_MAX], n_said;
    int from; /* of the deaths, that the next report begins with */
    struct rtt rtt;
};

uint32_t report_submit(struct member *m, const struct view_event *event); /* 0: no memory, it has ended */
void report_death(struct member *m, bool own);
void report_committed(struct member *m);
void report_heard(struct member *m, int node); /* a sign of life, or of work */
void report_taken(struct member *m, int node, uint64_t nonce);
void report_known(struct member *m, int node, uint64_t nonce);
void report_take(struct member *m, const struct datagram *msg);
void report_send(struct member *m);
uint64_t report_deadline(const struct member *m);
void poll_tick(struct member *m);
uint64_t poll_deadline(const struct member *m);
void report_tell_deaths(struct member *m, int to); /* those believed dead and not declared yet */
#endif
