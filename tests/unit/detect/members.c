#include "members.h"

int nodes = 4;
uint64_t now;
uint64_t seed = 1;
int dark_ms;
struct fake fakes[NODES_MAX];
struct packet queue[QUEUE], kept[QUEUE];
int head, tail, n_kept;
bool still[NODES_MAX], cut[NODES_MAX], kernel[NODES_MAX], deaf[NODES_MAX], stopped[NODES_MAX];
bool lost[NODES_MAX][NODES_MAX];
enum wave_phase lose_answers;
int lose_accept_but;

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct fake *f = user;
    struct datagram msg;
    int left[DATAGRAM_LEFT_MAX];
    assert_true(datagram_decode(data, len, nodes, &msg, left));
    if (msg.type == DATAGRAM_VOTE && msg.node == 3)
        f->votes[msg.vote]++;
    if (cut[f->id] || cut[to] || lost[f->id][to] || (msg.type == DATAGRAM_ACK && msg.phase == lose_answers))
        return;
    if (msg.type == DATAGRAM_WAVE && msg.phase == PHASE_ACCEPT && lose_accept_but && to != lose_accept_but)
        return;
    queue[tail % QUEUE].from = f->id;
    queue[tail % QUEUE].to = to;
    queue[tail % QUEUE].len = len;
    memcpy(queue[tail++ % QUEUE].data, data, len);
    assert_true(tail - head < QUEUE);
}

static void on_read(void *user, int node)
{
    ((struct fake *)user)->reads[node]++;
}

static void on_watch(void *user, int node, bool on)
{
    (void)user;
    (void)node;
    (void)on;
}

static void on_probe(void *user, int node)
{
    ((struct fake *)user)->probes[node]++;
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct fake *f = user;
    (void)epoch;
    (void)events;
    (void)n;
    f->prepares++;
    f->proposal = proposal;
    if (!f->hold)
        member_prepared(f->m, proposal, f->value, now);
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct fake *f = user;
    assert_int_equal(epoch, ++f->commits);
    f->last = events[n - 1];
    f->max_value = max_value;
}

static void on_settled(void *user, uint64_t epoch)
{
    struct fake *f = user;
    assert_true(epoch > f->settled);
    for (int i = 0; i < nodes; i++)
        if (look_alive(f->m, i) && !fakes[i].halted)
            assert_true(look_epoch(fakes[i].m) >= epoch);
    f->settled = epoch;
}

static void on_halt(void *user, const char *reason)
{
    (void)reason;
    ((struct fake *)user)->halted = true;
}

static void on_report(void *user, const struct member_report *r)
{
    struct fake *f = user;
    if (r->kind == MEMBER_REPORT_ANSWERED)
        f->answered[r->node] = r->asked_ns;
    f->links_changed += r->kind == MEMBER_REPORT_LINKS;
    if (r->kind == MEMBER_REPORT_PATIENCE && r->node == 3)
        f->patience = r->doubt;
    f->cut_off += r->kind == MEMBER_REPORT_CUT_OFF;
    f->in_touch += r->kind == MEMBER_REPORT_IN_TOUCH;
    if (r->kind == MEMBER_REPORT_LATE)
        f->late_told[f->lates++ % 4] = r->limit_ns;
    if (r->kind == MEMBER_REPORT_VERDICT)
        f->doomed[r->node] = true;
}

int set_up(void **state)
{
    (void)state;
    now = 1000 * MS;
    head = tail = 0;
    memset(fakes, 0, sizeof fakes);
    memset(cut, 0, sizeof cut);
    memset(kernel, 0, sizeof kernel);
    memset(deaf, 0, sizeof deaf);
    memset(stopped, 0, sizeof stopped);
    memset(still, 0, sizeof still);
    n_kept = 0;
    memset(lost, 0, sizeof lost);
    lose_answers = PHASE_NONE;
    lose_accept_but = 0;
    for (int i = 0; i < nodes; i++) {
        struct member_params p;
        member_params_default(&p, nodes, i);
        p.seed = seed;
        member_params_silence(&p, dark_ms ? dark_ms : 250, 780);
        struct member_ops ops = {&fakes[i], on_send,    on_read, on_watch,  on_probe, on_prepare,
                                 on_commit, on_settled, on_halt, on_report, NULL};
        fakes[i].id = i;
        fakes[i].value = 100 + (uint64_t)i;
        fakes[i].m = member_create(&p, &ops, now);
        assert_non_null(fakes[i].m);
    }
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < nodes; i++)
        member_destroy(fakes[i].m);
    nodes = 4;
    return 0;
}

void deliver(void)
{
    while (head < tail) {
        int k = head++ % QUEUE;
        if (still[queue[k].to]) {
            assert_true(n_kept < QUEUE);
            kept[n_kept++] = queue[k];
        } else if (!cut[queue[k].to])
            member_receive(fakes[queue[k].to].m, queue[k].from, queue[k].data, queue[k].len, now);
    }
}

void pass(uint64_t ns)
{
    for (uint64_t end = now + ns; now < end; now += MS) {
        for (int i = 0; i < nodes; i++) {
            for (int k = 0; k < nodes; k++)
                if (fakes[i].probes[k] && kernel[k] && !deaf[i]) {
                    fakes[i].probes[k] = 0;
                    (stopped[k] ? member_stopped : member_kernel)(fakes[i].m, k, now);
                }
            for (int k = 0; k < nodes; k++)
                if (fakes[i].reads[k] && !still[i] && !still[k] && !cut[i] && !cut[k] && !lost[i][k] && !lost[k][i]) {
                    fakes[i].reads[k] = 0;
                    member_heartbeat(fakes[i].m, k, now, now);
                }
            if (now >= member_deadline(fakes[i].m) && !still[i])
                member_tick(fakes[i].m, now);
        }
        deliver();
    }
}

void stop(int node)
{
    still[node] = kernel[node] = stopped[node] = true;
}

void go_on(int node)
{
    still[node] = kernel[node] = stopped[node] = false;
    for (int i = 0; i < n_kept; i++)
        if (kept[i].to == node)
            member_receive(fakes[node].m, kept[i].from, kept[i].data, kept[i].len, now);
}

void expect_nothing_said(void)
{
    for (int i = 0; i < nodes; i++) {
        assert_int_equal(fakes[i].commits, 0);
        assert_false(fakes[i].halted);
        assert_int_equal(fakes[i].links_changed, 0);
        for (int k = 0; k < nodes; k++)
            assert_false(fakes[i].doomed[k]);
    }
}

struct member *created_with(const struct member_params *p)
{
    struct member_ops ops = {&fakes[0], on_send,    on_read, on_watch,  on_probe, on_prepare,
                             on_commit, on_settled, on_halt, on_report, NULL};
    return member_create(p, &ops, now);
}
