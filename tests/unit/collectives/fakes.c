#include "tests/unit/collectives/fakes.h"
#include "tests/unit/collectives/made.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct fake fakes[N];
struct letter queue[QUEUE];
int head, tail, n_members;
uint64_t now;
struct roster *roster;
bool borrows, keeps, poor;

bool on_send(void *user, int to, uint64_t seq, const void *h, size_t head_len, const void *data, size_t len)
{
    struct fake *f = user;
    bool was = poor;
    (void)seq;
    poor = false;
    assert_true(tail < QUEUE);
    queue[tail] = (struct letter){f->id, to, head_len + len, malloc(head_len + len)};
    assert_non_null(queue[tail].data);
    memcpy(queue[tail].data, h, head_len);
    if (len)
        memcpy(queue[tail].data + head_len, data, len);
    tail++;
    poor = was;
    f->lent[to] += borrows && len;
    return !(borrows && len);
}

void on_arrived(void *user, uint64_t seq)
{
    struct fake *f = user;
    for (int to = 0; to < N; to++)
        for (; f->lent[to]; f->lent[to]--)
            engine_sent(f->e, to, seq, now);
}

void on_done(void *user, uint64_t seq, const struct engine_result *r)
{
    struct fake *f = user;
    assert_true(f->done < DONE_MAX);
    f->seq[f->done] = seq;
    f->result[f->done++] = *r;
}

struct roster *all_but(int n, int dead, uint64_t epoch)
{
    uint64_t bits[1] = {(1ull << n) - 1};
    if (dead >= 0)
        bits[0] &= ~(1ull << dead);
    return made_roster(n, bits, epoch);
}

void start(int n)
{
    n_members = n;
    now = SEC;
    roster = all_but(n, -1, 1);
    for (int i = 0; i < n; i++) {
        struct engine_ops ops = {&fakes[i], on_send, on_done, keeps ? on_arrived : NULL, on_arrived, NULL, NULL};
        fakes[i] = (struct fake){.id = i, .e = made_engine(7, i, roster, NULL, &ops)};
        assert_non_null(fakes[i].e);
    }
}

void lose(void)
{
    for (; head < tail; head++)
        free(queue[head].data);
    head = tail = 0;
}

void stop(void)
{
    lose();
    for (int i = 0; i < n_members; i++)
        engine_destroy(fakes[i].e);
    roster_unref(roster);
}

void deliver(void)
{
    for (; head < tail; head++) {
        engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    head = tail = 0;
}

void deliver_but(int dead)
{
    for (; head < tail; head++) {
        if (queue[head].to != dead && queue[head].from != dead)
            engine_receive(fakes[queue[head].to].e, queue[head].from, queue[head].data, queue[head].len, now);
        free(queue[head].data);
    }
    head = tail = 0;
}

void let_time_pass(void)
{
    for (int round = 0; round < 40; round++) {
        now += SEC;
        for (int i = 0; i < n_members; i++)
            if (fakes[i].e && engine_deadline(fakes[i].e) <= now)
                engine_tick(fakes[i].e, now);
        deliver();
    }
}

void begin(int member, const struct engine_call *call)
{
    uint64_t seq;
    assert_int_equal(engine_start(fakes[member].e, call, now, &seq), ENGINE_OK);
}

void assert_all(enum engine_status status, int done)
{
    for (int i = 0; i < n_members; i++) {
        assert_int_equal(fakes[i].done, done);
        assert_int_equal(fakes[i].result[done - 1].status, status);
    }
}

struct engine_call sum_of(const uint64_t *in, uint64_t *out, int n)
{
    return (struct engine_call){.kind = ENGINE_MOVE,
                                .move = SCHEDULE_ALLREDUCE,
                                .in = in,
                                .out = out,
                                .len = (size_t)n * 8,
                                .element = {.type = ELEMENT_UINT64, .op = ELEMENT_SUM}};
}
