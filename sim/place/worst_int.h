/* What the parts of the search for worst cases share: the search itself, and what each of its threads works on. */
#ifndef KEEL_SIM_PLACE_WORST_INT_H
#define KEEL_SIM_PLACE_WORST_INT_H
#include "sim/place/seen.h"
#include "sim/place/worst_best.h"

/* One for all threads. */
struct search {
    const struct worst_config *config;
    const struct setup *setup;
    int32_t failures;
    bool only_lines; /* no method of order 2 or more */
    int32_t gain;    /* what one failure of order 0 or 1 can add to any link, 0 unknown */
    bool sides;      /* does the method have 0D, which remembers sides? */
    struct job base; /* the map before the first failure */
    struct seen seen;
    struct worst_best best;
    int32_t *node_image; /* [symmetries][nodes] */
    int32_t *slot_image; /* [symmetries][slots] */
    int symmetries;
};

/* One thread's. */
struct walker {
    struct search *search;
    struct job level[WORST_MAX + 1]; /* the map after that many failures */
    struct place_plan tie[WORST_MAX + 1];
    int32_t levels, path[WORST_MAX];
    uint32_t task; /* at hand, from 1 up */
    int64_t maps, cannot;
    const atomic_bool *stop;
};

/* The base must have been made. returns false when out of memory. */
bool search_prepare(struct search *s);
void search_free(struct search *s);
/* levels: how many failures deep it can go. returns false when out of memory; close in any case. */
bool walker_open(struct walker *w, struct search *s, int32_t levels, const atomic_bool *stop);
void walker_close(struct walker *w);
/* Bytes of one with that many levels. */
size_t walker_size(const struct search *s, int32_t levels);
/* All sequences that begin with this node; task is its number and one. */
void walker_follow(struct walker *w, int32_t node);
/* Bad sequences found quickly raise the best, so that the bounds leave out more: the paper's shapes and hill
 * climbing. */
void walker_climb(struct walker *w);

/* The state of an unfinished search: the stages before this one are done, and of this one the tasks that done tells. */
struct progress {
    bool climbed;
    int32_t stage, stages;
    int32_t tasks; /* of each stage */
    bool *done;    /* [tasks] */
    int64_t maps, cannot;
};
const char *worst_state_save(const struct search *s, const struct progress *p, bool zero);
const char *worst_state_load(struct search *s, struct progress *p, bool zero);
#endif
