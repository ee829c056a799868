/* Engines of one group that send each other letters through a queue that the test looks into. Part of test_engine.c
 * and test_early.c. */
#ifndef KEEL_TESTS_COLLECTIVES_FAKES_H
#define KEEL_TESTS_COLLECTIVES_FAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/engine.h"

enum { N = 6, QUEUE = 4096, DONE_MAX = 200 };
#define SEC 1000000000ull

struct fake {
    int id;
    struct engine *e;
    int done;
    struct engine_result result[DONE_MAX];
    uint64_t seq[DONE_MAX];
    int lent[N]; /* sends to that one whose data are not the engine's again, by what on_arrived knows */
};
extern struct fake fakes[N];
struct letter {
    int from, to;
    size_t len;
    uint8_t *data;
};
extern struct letter queue[QUEUE];
extern int head, tail, n_members;
extern uint64_t now;
extern struct roster *roster;
extern bool poor;    /* allocations may fail (test_nomem.c), those of the engine */
extern bool borrows; /* data are the engine's again when the test says so */
extern bool keeps;   /* of engines that start: or when the engine asks, as they are copied */

bool on_send(void *user, int to, uint64_t seq, const void *h, size_t head_len, const void *data, size_t len);
void on_arrived(void *user, uint64_t seq);
void on_done(void *user, uint64_t seq, const struct engine_result *r);
struct roster *all_but(int n, int dead, uint64_t epoch);
void start(int n);
void lose(void);
void stop(void);
void deliver(void);
void deliver_but(int dead);
void let_time_pass(void);
void begin(int member, const struct engine_call *call);
void assert_all(enum engine_status status, int done);
struct engine_call sum_of(const uint64_t *in, uint64_t *out, int n);
#endif
