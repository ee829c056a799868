/* The failure detector: whose heartbeats are read, who is in doubt, and who votes on it. The states of a doubt are
 * drawn in detector.c. */
#ifndef KEEL_DETECT_DETECTOR_H
#define KEEL_DETECT_DETECTOR_H

#include "detect/datagram.h"
#include "detect/idset.h"

enum { VOTERS_MAX = 8, WATCH_MAX = MEMBER_WATCHES_MAX };
/* Open at once before nodes behind a suspect are no longer looked at; so many more with each verdict; and never
 * more. */
enum { DOUBTS = 8, DOUBTS_VERDICT = 4, DOUBTS_MAX = 1024, WIDENED_MAX = 7 };
enum { PINGS_SLOW = 3 }; /* times ping_ns: between questions about one on whom no verdict is near */

/* A node whose heartbeat this one reads. */
struct watch {
    int node;
    bool have_counter;
    bool fresh; /* scratch of the topology update */
    int same;   /* completed reads since the counter last moved */
    uint64_t counter;
    uint64_t next_read;
    uint64_t posted;    /* of the read outstanding, 0: none */
    uint64_t last_life; /* counter seen to move */
    uint64_t last_done; /* a read completed */
    uint64_t late_ns;   /* how late it was of late, by its own words */
    uint64_t reads;     /* completed, and how long they took */
    uint32_t latency[MEMBER_LATENCY_BUCKETS];
};

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

struct detector {
    struct watch *watch;
    int n_watch, cap_watch;
    struct target *targets;
    int n_targets, cap_targets;
    int verdicts; /* own ones since nobody was in doubt */
    int widened;  /* so often has the room for doubts doubled since then */
};

/* watch.c */
struct watch *watch_find(const struct detector *d, int node);
void watch_tick(struct member *m, struct watch *w);
/* When its heartbeat is late: one that was never heard of may only be starting. */
uint64_t watch_late_at(const struct member *m, const struct watch *w);
void detector_rewatch(struct member *m);
int watch_targets(const struct member *m, const struct idset *away, int want[WATCH_MAX]);

/* vote.c */
int vote_panel(const struct member *m, const struct target *tg); /* how many others are to vote */
void vote_ask(struct member *m, struct target *tg);
void vote_answer(struct member *m, const struct datagram *ask);
void vote_take(struct member *m, const struct datagram *msg);
bool vote_majority_unreached(const struct member *m, const struct target *tg);
bool vote_is_dark(const struct member *m, const struct target *tg);

/* detector.c */
uint64_t detector_nonce(struct member *m);
struct target *target_find(const struct detector *d, int node);
struct target *target_add(struct member *m, int node);
void detector_suspect(struct member *m, int node, uint64_t base, const char *text);
void detector_tick(struct member *m);
uint64_t detector_deadline(const struct member *m);
void detector_check(struct member *m, int node, const char *why);
void detector_ask(struct member *m, int node);                      /* and say when it has answered */
void detector_note_late(struct member *m, int node, uint64_t late); /* it was so late of late, it says */
void detector_clear_relay(struct member *m, int node);              /* a message came the direct way */
void detector_receive(struct member *m, const struct datagram *msg);
void detector_forget(struct member *m, int node);
/* A verdict: ours, or one reported to us. False if it is not passed, because it would leave no quorum. Never taken
 * back: the node ends as declared dead. */
bool detector_believe_dead(struct member *m, int node, enum member_evidence evidence, int finder, const char *text);
/* One that is part of a proposal: its coordinator has a quorum, whatever we think of the others. */
void detector_adopt_death(struct member *m, int node, enum member_evidence evidence, int finder, const char *text);

/* detector.c: what a record says */
uint64_t target_sign(const struct member *m, const struct target *tg);
uint64_t target_host_sign(const struct member *m, const struct target *tg); /* its own, or its host's */
bool target_host_answers(const struct member *m, const struct target *tg);
bool target_is_stopped(const struct member *m, const struct target *tg);
void target_indirect(const struct member *m, struct target *tg, uint64_t at); /* others heard it then */
#endif
