/* A node in doubt. Its states are drawn in target.c. */
#ifndef KEEL_DETECT_TARGET_H
#define KEEL_DETECT_TARGET_H

#include "detect/datagram.h"

enum { VOTERS_MAX = 8 };
enum { PROBE_GAP_MIN = 1000000, PROBE_GAP_MAX = 32000000, CHECK_GAP_MIN = 4000000 };

struct detector;

enum target_state { TARGET_DUTY, TARGET_CHECK, TARGET_SUSPECT, TARGET_ANSWERS, TARGET_BEYOND };

/* A node that this one has doubts about, or pings because another asked for a vote. */
struct target {
    int node;
    enum target_state state;
    uint64_t since;  /* state entered */
    uint64_t raised; /* when the doubt arose */
    uint64_t base;   /* silence counts from here, at the earliest */
    uint64_t first_ping;
    uint64_t last_direct; /* signs of life, 0: none */
    uint64_t last_indirect;
    uint64_t indirect_since;              /* of a row of them without a gap of late_ns */
    uint64_t last_kernel;                 /* of its host; 0: none */
    uint64_t last_host;                   /* the same, as a voter heard it */
    uint64_t late_ns;                     /* how late it was of late, by its own words */
    uint64_t last_unasked;                /* it could not be asked; 0: it could */
    uint64_t stopped_since, last_stopped; /* its host says so; 0: it does not */
    bool agent_told;                      /* in this suspicion */
    unsigned how_told; /* the same: two bits for each enum member_how, nobody waits and somebody does */
    uint64_t next_ping, next_probe, next_panel;
    uint64_t ping_gap, probe_gap, panel_gap;
    uint64_t asked;              /* outer time: since then somebody waits for its answer; 0: nobody */
    uint64_t duty_until;         /* votes are asked of us until then */
    uint64_t majority_unreached; /* since when a majority of voters does not reach it, and some do; 0: not so */
    int n_voters, n_mute;        /* asked now; given up because they did not answer */
    struct voter {
        int node;
        enum vote_kind vote;
        bool answered;
        uint64_t asked; /* first time */
        uint64_t heard; /* last time */
    } voters[VOTERS_MAX];
};

struct target *target_find(const struct detector *d, int node);
/* It is found, or begins with TARGET_DUTY. NULL: there is no memory for one more. */
struct target *target_have(struct member *m, int node);
/* The only place that changes a state. */
void target_set_state(struct member *m, struct target *tg, enum target_state to, const char *text);
/* The state may change; false: the record is gone or the verdict fell (nothing more to do with it). */
bool target_judge(struct member *m, struct target *tg);

/* What a record says. */
uint64_t target_sign(const struct member *m, const struct target *tg);
uint64_t target_host_sign(const struct member *m, const struct target *tg); /* its own, or its host's */
bool target_host_answers(const struct member *m, const struct target *tg);
bool target_is_stopped(const struct member *m, const struct target *tg);
void target_indirect(const struct member *m, struct target *tg, uint64_t at); /* others heard it then */
#endif
