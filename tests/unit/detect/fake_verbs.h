/* A device for the probe over libibverbs, in memory: nothing completes by itself, everything that is made must be
 * destroyed once and in the right order, queue pairs go from state to state as they may. The test says what the
 * device does. */
#ifndef KEEL_TESTS_FAKE_VERBS_H
#define KEEL_TESTS_FAKE_VERBS_H

#include "detect/verbs_int.h"

enum fake_kind { FAKE_CONTEXT, FAKE_PD, FAKE_MR, FAKE_CHANNEL, FAKE_CQ, FAKE_QP, FAKE_AH, FAKE_KINDS };
enum { FAKE_PORT = 2, FAKE_LATE_NS = 150 * 1000000 };

/* What the device is told to do; all zero: it works. */
extern struct fake_orders {
    int fail_at;          /* the how manieth call that makes or changes something fails; 0: none */
    bool no_queue_pairs;  /* none can be made */
    bool no_joins;        /* none can be made ready */
    bool refuse_posts;    /* of reads and sends */
    bool refuse_receives; /* of receive buffers */
    bool events_fail, completions_fail, channel_fails, arming_fails;
} fake_orders;

void fake_begin(void); /* a new device, as the library's only one */
int fake_live(enum fake_kind kind);
int fake_calls(void); /* that can fail by fail_at */

/* An event of the device. what: its port or queue pair. */
void fake_port_event(enum ibv_event_type type, int port);
void fake_event(enum ibv_event_type type, void *what);

/* What is posted and not complete. */
int fake_posted_reads(void), fake_posted_sends(void), fake_posted_receives(void);
/* The oldest read, or all sends, complete. */
void fake_finish_read(enum ibv_wc_status status, uint64_t value);
void fake_finish_sends(void);
/* A datagram comes: the oldest receive buffer is complete. */
void fake_deliver(const void *data, size_t len);
/* The buffers of sends that are not complete all differ. */
bool fake_sends_differ(void);
/* A queue pair fails: what is posted, and what will be, is flushed. */
void fake_break(struct ibv_qp *qp, enum ibv_wc_status first);
#endif
