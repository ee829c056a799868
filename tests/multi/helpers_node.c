/* A node's process in the test of helper threads: its reports go to the test as notes. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "detect/dgram.h"
#include "detect/helper.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "tests/multi/helpers.h"

struct self {
    int node;
    struct helper *h;
    atomic_bool stands; /* the helper's thread, at the next report */
};

static void say(const struct note *n)
{
    if (write(notes[1], n, sizeof *n) != sizeof *n)
        _exit(3);
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct self *s = user;
    (void)epoch;
    (void)events;
    (void)n;
    helper_prepared(s->h, proposal, (uint64_t)s->node);
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct self *s = user;
    (void)max_value;
    for (int i = 0; i < n; i++) {
        struct note note = {.node = s->node, .kind = NOTE_COMMIT, .about = -1, .epoch = epoch, .t = clock_now_ns()};
        if (events[i].type == VIEW_NODE_DEAD)
            note.about = (int)events[i].a;
        say(&note);
    }
}

static void on_settled(void *user, uint64_t epoch)
{
    (void)user;
    (void)epoch;
}

static void on_halt(void *user, const char *reason)
{
    struct self *s = user;
    (void)reason;
    say(&(struct note){.node = s->node, .kind = NOTE_HALT, .t = clock_now_ns()});
    _exit(0);
}

static void on_report(void *user, const struct member_report *r)
{
    struct self *s = user;
    if (getenv("KEEL_VERBOSE"))
        fprintf(stderr, "%.3f node %d: %s node %d epoch %llu %s: %s\n", (double)r->now_ns / 1e6, s->node,
                member_report_name(r->kind), r->node, (unsigned long long)r->epoch, member_evidence_name(r->evidence),
                r->text);
    if (atomic_exchange(&s->stands, false))
        usleep(450 * 1000);
    if (r->kind == MEMBER_REPORT_SUSPECT)
        say(&(struct note){.node = s->node, .kind = NOTE_SUSPECT, .about = r->node, .t = clock_now_ns()});
    if (r->kind == MEMBER_REPORT_VERDICT)
        say(&(struct note){
            .node = s->node, .kind = NOTE_VERDICT, .about = r->node, .evidence = r->evidence, .t = clock_now_ns()});
}

/* %d becomes the number that stands for the node in addresses and names of devices. */
void fill_in(char *out, size_t size, const char *format, int node)
{
    const char *at = strstr(format, "%d");
    if (at)
        snprintf(out, size, "%.*s%d%s", (int)(at - format), format, node + 2, at + 2);
    else
        snprintf(out, size, "%s", format);
}

enum probe_choice wanted_probe(void)
{
    const char *text = getenv("KEEL_HELPERS_PROBE");
    if (!text || strcmp(text, "auto") == 0)
        return PROBE_AUTO;
    return strcmp(text, "verbs") == 0 ? PROBE_VERBS : PROBE_OFI;
}

/* All that are free; what is closed later may be used again. */
static void use_up_descriptors(void)
{
    struct rlimit limit;
    rlim_t top = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        _exit(4);
    for (int fd = 0; fd < 1000; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            top = (rlim_t)fd;
    limit.rlim_cur = top + 1;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        _exit(4);
    while (dup(0) >= 0)
        ;
}

void node_main(int node, int from)
{
    struct self s = {.node = node};
    char host[32], who[32];
    snprintf(who, sizeof who, "helpers node %d", node);
    log_init(who);
    const char *hosts = getenv("KEEL_HELPERS_HOST");
    fill_in(host, sizeof host, hosts ? hosts : "127.0.0.%d", node);
    static const uint8_t secret[32] = "what all helpers of this test kn";
    struct helper_config config = {
        .job_id = 77, .host = host, .provider = "tcp", .incarnation = 100 + (uint32_t)node, .secret = secret};
    config.probe = wanted_probe();
    member_params_default(&config.params, NODES, node);
    member_params_silence(&config.params, dark_ms ? dark_ms : 250, 780);
    struct helper_callbacks callbacks = {&s, on_prepare, on_commit, on_settled, on_halt, on_report};
    struct note first = {.node = node, .kind = NOTE_BLOB};
    struct helper_blob blobs[NODES];
    if (helper_create(&config, &callbacks, &s.h, &first.blob) != KEEL_OK)
        _exit(4);
    say(&first);
    if (read(from, blobs, sizeof blobs) != sizeof blobs || helper_start(s.h, blobs, &(int){-1}) != KEEL_OK)
        _exit(4);
    for (int i = 0; i < NODES; i++) /* else who is stopped lives */
        helper_waits(s.h, i, UINT64_MAX);
    char order;
    while (read(from, &order, 1) ==
           1) { /* 'p': statistics; 'd': no descriptors; 's': the helper's thread stands still */
        struct rusage u;
        if (order == 'd')
            use_up_descriptors();
        if (order == 's') {
            s.stands = true;
            helper_check(s.h, (node + 1) % NODES);
            continue;
        }
        struct note n = {.node = node, .kind = NOTE_STATS, .t = clock_now_ns()};
        getrusage(RUSAGE_SELF, &u);
        n.cpu =
            (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
        n.counters = s.h->count;
        say(&n);
    }
    helper_destroy(s.h);
    _exit(0);
}
