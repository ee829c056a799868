#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/detect/cores.h"

#define WAY_NS (MS / 10)

enum { QUEUE = 1 << 15, HISTORY = 64 };

struct cores cores;

/* What is under way, in the order of arrival: all takes the same time. */
static struct thing {
    enum { DATAGRAM, HEARTBEAT, REFUSED } kind;
    int from, to;
    uint64_t at;
    size_t len;
    uint8_t data[MEMBER_DATAGRAM_MAX];
} queue[QUEUE];
static unsigned head, tail;

static struct {
    bool there;
    int n;
    uint64_t value;
    struct view_event events[MEMBER_EVENTS_MAX];
} history[HISTORY + 1];

static uint64_t now_of(const struct core *c)
{
    return (c->clock_stands ? c->clock_stands : cores.now) + (uint64_t)c->clock_off;
}

bool cores_is_well(const struct core *c)
{
    return !c->killed && !c->off && !c->halted;
}

static struct thing *push(int kind, int from, int to)
{
    struct thing *t = &queue[tail++ % QUEUE];
    assert_true(tail - head < QUEUE);
    t->kind = kind;
    t->from = from;
    t->to = to;
    t->at = cores.now + WAY_NS;
    return t;
}

static void end_process(struct core *c, bool off)
{
    c->may_go = true;
    *(off ? &c->off : &c->killed) = true;
}

void cores_kill(int node)
{
    end_process(&cores.c[node], false);
    for (int i = 0; i < cores.n; i++) /* its kernel closes what it had open */
        if (cores_is_well(&cores.c[i]) && watch_find(&cores.c[i].m->detector, node))
            push(REFUSED, node, i);
}

void cores_off(int node)
{
    end_process(&cores.c[node], true);
}

/* ------------------------------------------------------------------------------------------------ what the cores
 * want */

static struct core *acts(void *user)
{
    struct core *c = user;
    assert_false(c->halted);
    return c;
}

static bool is_agreement(const void *data, size_t len)
{
    struct datagram msg;
    int left[DATAGRAM_LEFT_MAX];
    assert_true(datagram_decode(data, len, cores.n, &msg, left));
    return msg.type == DATAGRAM_WAVE || msg.type == DATAGRAM_ACK || msg.type == DATAGRAM_NACK ||
           msg.type == DATAGRAM_REPORT || msg.type == DATAGRAM_FETCH || msg.type == DATAGRAM_LOG ||
           msg.type == DATAGRAM_JOIN;
}

/* False: it does not go out. */
static bool note_sent(const struct core *c, const void *data, size_t len)
{
    if (!cores.counts || !is_agreement(data, len))
        return true;
    cores.sent++;
    for (int k = 0; k < 2; k++)
        if (cores.sent == cores.kill_at[k])
            (cores.kill_off ? cores_off : cores_kill)(c->id);
    return cores.sent != cores.lose;
}

static void on_send(void *user, int to, const void *data, size_t len)
{
    const struct core *c = acts(user);
    if (!cores_is_well(c) || !note_sent(c, data, len) || !cores_is_well(c) || cores.lost[c->id][to])
        return;
    struct thing *t = push(DATAGRAM, c->id, to);
    t->len = len;
    memcpy(t->data, data, len);
}

static bool is_reached(const struct core *c, int node)
{
    return cores_is_well(c) && !cores.lost[c->id][node] && !cores.lost[node][c->id] && !cores.c[node].off;
}

static void on_read(void *user, int node)
{
    const struct core *c = acts(user);
    if (is_reached(c, node) && cores_is_well(&cores.c[node]))
        push(HEARTBEAT, node, c->id);
}

static void on_watch(void *user, int node, bool on)
{
    (void)acts(user);
    (void)node;
    (void)on;
}

static void on_probe(void *user, int node)
{
    const struct core *c = acts(user);
    if (is_reached(c, node) && !cores_is_well(&cores.c[node]))
        push(REFUSED, node, c->id);
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    const struct core *c = acts(user);
    (void)events;
    if (!cores_is_well(c))
        return; /* it ends in the middle of what it does */
    assert_int_equal(epoch, c->commits + 1);
    assert_true(look_born(c->m));
    assert_true(n > 0 || cores.joiners); /* a birth that came to nothing */
    member_prepared(c->m, proposal, 100 + (uint64_t)c->id, now_of(c));
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct core *c = acts(user);
    if (!cores_is_well(c))
        return;
    assert_int_equal(epoch, c->commits + 1);
    assert_true(epoch <= HISTORY && n <= MEMBER_EVENTS_MAX);
    c->commits++;
    if (!history[epoch].there) {
        history[epoch].there = true;
        history[epoch].n = n;
        history[epoch].value = max_value;
        memcpy(history[epoch].events, events, (size_t)n * sizeof *events);
    }
    assert_int_equal(history[epoch].n, n);
    assert_true(history[epoch].value == max_value);
    assert_memory_equal(history[epoch].events, events, (size_t)n * sizeof *events);
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_DEAD)
            assert_true(cores.c[events[i].a].may_go);
        else if (events[i].type == VIEW_NODE_BORN)
            cores.c[events[i].a].born_at = epoch;
        else if (events[i].a == (uint32_t)c->id)
            assert_int_equal(events[i].b, ++c->ordered);
    for (int i = 0; i < cores.n; i++) {
        const struct core *o = &cores.c[i];
        bool know = o->m && i < member_next_id(c->m) && c->id < member_next_id(o->m); /* of each other's births */
        if (cores_is_well(o) && o != c && know)
            assert_true(look_alive(c->m, i) || look_alive(o->m, c->id));
    }
}

static void on_settled(void *user, uint64_t epoch)
{
    struct core *c = acts(user);
    if (!cores_is_well(c))
        return;
    assert_true(epoch > c->settled && epoch <= c->commits);
    for (int i = 0; i < cores.n; i++)
        if (look_alive(c->m, i) && cores_is_well(&cores.c[i]) && cores.c[i].born_at <= epoch)
            assert_true(look_epoch(cores.c[i].m) >= epoch);
    c->settled = epoch;
}

static void on_halt(void *user, const char *reason)
{
    struct core *c = acts(user);
    assert_non_null(reason);
    c->halted = c->may_go = true;
    c->reason = reason;
}

static void on_report(void *user, const struct member_report *r)
{
    struct core *c = user;
    c->suspicions += r->kind == MEMBER_REPORT_SUSPECT;
    c->verdicts += r->kind == MEMBER_REPORT_VERDICT;
}

/* ------------------------------------------------------------------------------------------------ time */

static void run(struct core *c, const struct thing *t)
{
    cores.running = c;
    cores.events++;
    uint64_t now = now_of(c);
    if (!t)
        member_tick(c->m, now);
    else if (t->kind == DATAGRAM)
        member_receive(c->m, t->from, t->data, t->len, now);
    else if (t->kind == HEARTBEAT)
        member_heartbeat(c->m, t->from, cores.now, now);
    else
        member_refused(c->m, t->from, now);
    cores.running = NULL;
}

/* When the time will be at which c wants a tick. */
static uint64_t tick_at(const struct core *c)
{
    uint64_t at = c->clock_stands ? UINT64_MAX : member_deadline(c->m);
    if (at == UINT64_MAX)
        return at;
    return (int64_t)at > c->clock_off ? at - (uint64_t)c->clock_off : 0;
}

/* Its end first: all that has arrived is handed in before a tick, as in detect/helper.c. */
static bool step(uint64_t end)
{
    uint64_t next = head < tail ? queue[head % QUEUE].at : UINT64_MAX;
    struct core *who = NULL;
    for (int i = 0; i < cores.n; i++) {
        struct core *c = &cores.c[i];
        uint64_t at = cores_is_well(c) ? tick_at(c) : UINT64_MAX;
        if (at < next) {
            next = at;
            who = c;
        }
    }
    if (next > end)
        return false;
    cores.now = next > cores.now ? next : cores.now;
    if (who) {
        run(who, NULL);
        return true;
    }
    const struct thing *t = &queue[head % QUEUE];
    if (cores_is_well(&cores.c[t->to]))
        run(&cores.c[t->to], t);
    head++;
    return true;
}

void cores_pass(uint64_t ns)
{
    uint64_t end = cores.now + ns;
    while (step(end))
        ;
    cores.now = end;
}

/* ------------------------------------------------------------------------------------------------ begin and end */

bool cores_start(int n, void (*with)(struct member_params *p))
{
    static const struct cores none;
    bool ok = true;
    cores = none;
    cores.n = n;
    cores.now = 100000 * MS;
    head = tail = 0;
    memset(history, 0, sizeof history);
    for (int i = 0; i < n; i++) {
        struct core *c = &cores.c[i];
        struct member_params p;
        struct member_ops ops = {c,         on_send,    on_read, on_watch,  on_probe, on_prepare,
                                 on_commit, on_settled, on_halt, on_report, NULL};
        c->id = i;
        member_params_default(&p, n, i);
        member_params_silence(&p, 250, 780);
        if (with)
            with(&p);
        cores.joiners = p.n - p.n_born;
        cores.running = c;
        c->m = member_create(&p, &ops, cores.now);
        cores.running = NULL;
        ok = ok && c->m;
    }
    return ok;
}

void cores_end(void)
{
    for (int i = 0; i < cores.n; i++)
        member_destroy(cores.c[i].m);
    cores.n = 0;
}

bool cores_submit(int node)
{
    struct core *c = &cores.c[node];
    struct view_event e = {.type = VIEW_EVENT_FIRST, .a = (uint32_t)node, .b = c->submitted + 1};
    cores.running = c;
    uint32_t number = cores_is_well(c) ? member_submit(c->m, &e, now_of(c)) : 0;
    cores.running = NULL;
    if (number && cores.joiners) /* births that it orders have numbers, too */
        assert_true(number >= ++c->submitted);
    else if (number)
        assert_int_equal(number, ++c->submitted);
    else
        assert_false(cores_is_well(c));
    return number;
}

void cores_check(int node, int of)
{
    cores.running = &cores.c[node];
    member_check(cores.c[node].m, of, now_of(&cores.c[node]));
    cores.running = NULL;
}

void cores_expect_one_view(void)
{
    uint64_t epoch = 0;
    int running = 0;
    for (int i = 0; i < cores.n; i++)
        if (cores_is_well(&cores.c[i])) {
            epoch = cores.c[i].commits > epoch ? cores.c[i].commits : epoch;
            running++;
        }
    assert_true(running > 0);
    for (int i = 0; i < cores.n; i++) {
        const struct core *c = &cores.c[i];
        if (!cores_is_well(c))
            continue;
        assert_int_equal(c->commits, epoch);
        assert_int_equal(c->settled, epoch);
        assert_int_equal(c->ordered, c->submitted);
        for (int k = 0; k < cores.n; k++)
            assert_int_equal(look_alive(c->m, k), cores_is_well(&cores.c[k]));
    }
}
