/* Membership cores in one process, joined by a queue that delivers at once unless the test takes a message out. The
 * many-seed runs are in tests/sim; here are the single steps. */
#ifndef KEEL_TESTS_UNIT_DETECT_MEMBERS_H
#define KEEL_TESTS_UNIT_DETECT_MEMBERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "detect/member_internal.h"
#include "tests/sim/look.h"

enum { NODES_MAX = 8, QUEUE = 4096 };
#define MS 1000000ull
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

struct fake {
    int id;
    struct member *m;
    uint64_t commits, settled, max_value;
    struct view_event last;
    int prepares;
    uint64_t proposal; /* the last one */
    uint64_t value;    /* answer to prepare */
    bool halted, hold; /* hold: do not answer prepare */
    int probes[NODES_MAX], reads[NODES_MAX];
    uint64_t answered[NODES_MAX]; /* to what was asked at */
    int links_changed;
    bool doomed[NODES_MAX];       /* told that it is believed dead */
    struct member_doubt patience; /* with node 3 */
    int cut_off, in_touch, lates;
    int votes[VOTE_KERNEL + 1]; /* of node 3 */
    uint64_t late_told[4];
};

struct packet {
    int from, to;
    size_t len;
    uint8_t data[MEMBER_DATAGRAM_MAX];
};

extern int nodes; /* 4, if the test does not set another number before set_up */
extern uint64_t now, seed;
extern int dark_ms; /* the limit, if it is not 250 */
extern struct fake fakes[NODES_MAX];
extern struct packet queue[QUEUE], kept[QUEUE];
extern int head, tail, n_kept;
extern bool still[NODES_MAX]; /* nobody runs it; what it is sent is kept */
extern bool cut[NODES_MAX];
extern bool kernel[NODES_MAX]; /* of the host answers, whatever is cut; but not to whom this is not heard: */
extern bool deaf[NODES_MAX];
extern bool stopped[NODES_MAX];         /* its host says so */
extern bool lost[NODES_MAX][NODES_MAX]; /* what the first sends to the second */
extern enum wave_phase lose_answers;    /* of this phase */
extern int lose_accept_but;             /* only this node gets ACCEPT; 0: all do */

int set_up(void **state);
int tear_down(void **state);
void deliver(void);
/* Time passes; heartbeats are read, except of and by nodes that are cut. */
void pass(uint64_t ns);
void stop(int node);
/* It reads first what has come meanwhile. */
void go_on(int node);
/* All live, and all links are whole; nobody has ever said anything else. */
void expect_nothing_said(void);
struct member *created_with(const struct member_params *p);
#endif
