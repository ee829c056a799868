/* How long silence is waited out: what a death would cost, who waits for whom, is this side the larger one, and how
 * late this member was itself. */
#ifndef KEEL_DETECT_PATIENCE_H
#define KEEL_DETECT_PATIENCE_H

#include "detect/detector.h"

enum { SAMPLE_MAX = 24 }; /* members asked whether this side is the larger one */

/* Is this side surely the larger one? Asks all others, or SAMPLE_MAX of them. */
struct hearing {
    bool wanted, active, all;
    int n, node[SAMPLE_MAX];
    uint32_t heard; /* bit i: node[i] */
    uint64_t start, next_ping, gap, passed_at;
};

/* Somebody here waits for that node. */
struct waiting {
    int node;
    uint64_t since, until; /* until: outer time */
};

struct patience {
    struct idset costly, fatal; /* whose deaths would cost data, or the job */
    struct waiting *waiting;
    int n_waiting, cap_waiting;
    struct hearing hearing;
    uint64_t late_told;         /* by what, in a report */
    uint64_t lateness, late_at; /* the worst of late, and outer time of it: half as much counts after a while */
};

uint64_t patience_silent(const struct member *m, const struct target *tg, enum member_why *why);
uint64_t patience_most(const struct member *m);  /* for anybody */
uint64_t patience_alone(const struct member *m); /* who hears too few ends so much later than it would have decided */
bool patience_is_over(const struct member *m, const struct target *tg,
                      uint64_t sign);              /* its host answers, it does not */
void patience_late(struct member *m, uint64_t by); /* we were */
void patience_want(struct member *m, const struct target *tg, uint64_t sign);
bool patience_hears_most(const struct member *m); /* it was made sure of just now */
void patience_tick(struct member *m);
uint64_t patience_deadline(const struct member *m);
void patience_heard(struct member *m, int node);
unsigned patience_publish(const struct member *m);
uint64_t patience_published(unsigned byte);
void patience_tell(struct member *m, struct target *tg);
#endif
