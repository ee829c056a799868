/* The failure detector: whose heartbeats are read, who is in doubt, and who votes on it. */
#ifndef KEEL_DETECT_DETECTOR_H
#define KEEL_DETECT_DETECTOR_H

#include "detect/datagram.h"
#include "detect/idset.h"
#include "detect/target.h"

enum { WATCH_MAX = MEMBER_WATCHES_MAX };
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
void detector_suspect(struct member *m, int node, uint64_t base, const char *text);
void detector_tick(struct member *m);
uint64_t detector_deadline(const struct member *m);
void detector_check(struct member *m, int node, const char *why);
void detector_ask(struct member *m, int node);                      /* and say when it has answered */
void detector_note_late(struct member *m, int node, uint64_t late); /* it was so late of late, it says */
void detector_clear_relay(struct member *m, int node);              /* a message came the direct way */
void detector_receive(struct member *m, const struct datagram *msg);
void detector_forget(struct member *m, int node);
void detector_check_behind(struct member *m); /* of the suspects: those whom nobody may be reading now */

/* verdicts.c */
/* A verdict: ours, or one reported to us. False if it is not passed, because it would leave no quorum. Never taken
 * back: the node ends as declared dead. */
bool verdict_believe(struct member *m, int node, enum member_evidence evidence, int finder, const char *text);
/* One that is part of a proposal: its coordinator has a quorum, whatever we think of the others. */
void verdict_adopt(struct member *m, int node, enum member_evidence evidence, int finder, const char *text);
#endif
