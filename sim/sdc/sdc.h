/* How wrong bits spread in a job with replicas, as its event log tells it (keel-sdc). */
#ifndef KEEL_SIM_SDC_SDC_H
#define KEEL_SIM_SDC_SDC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A wrong bit, or what one rank sent wrong to another between two comparisons of replicas. */
struct event {
    uint64_t step;
    bool flip;         /* else bad messages */
    int rank;          /* flip: whose memory is wrong by it; else the sender */
    int target;        /* of bad messages; -1: all */
    uint64_t messages; /* to each target */
};

/* Events in the order of their steps. */
struct log {
    int ranks, sets;
    struct event *event;
    size_t events, room;
};

/* Dies with a line if it is no event log. without: calls that are left out, between commas; NULL: none. */
void log_read(struct log *l, const char *name, const char *without);
void log_free(struct log *l);

/* What is so at the end of a step in which something was. */
struct moment {
    uint64_t step;
    uint64_t flips, messages; /* in the step */
    uint64_t all_messages;    /* so far, between two ranks */
    int direct, indirect;     /* ranks that are tainted: by a wrong bit of their own, and only by others' bytes */
};

enum spread { SPREAD_NONE, SPREAD_LOCALISED, SPREAD_IMMEDIATE, SPREAD_PROGRESSIVE };

struct course {
    struct moment *moment;
    size_t moments;
    enum spread spread;
};

/* A rank is tainted from the step on in which a bit of it became wrong, or it sent what its replica did not send, or it
 * was sent such. */
void course_make(struct course *c, const struct log *l);
void course_free(struct course *c);
const char *spread_name(enum spread spread);

/* steps.csv and pairs.csv in the folder, and pictures beside them; files that could not be written end the program. */
void out_csv(const struct course *c, const struct log *l, const char *dir);
/* False: gnuplot failed. */
bool out_pictures(const struct course *c, const struct log *l, const char *dir);
#endif
