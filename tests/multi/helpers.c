/* Real helper threads in real processes on 127.0.0.x: `helpers MODE`, MODE one of
 *   kill    SIGKILL of each node in turn (a fresh job each time): every other commits its death, told for certain by
 *           its kernel
 *   freeze  SIGSTOP for good of each node in turn: every other commits its death, told by its witness; after SIGCONT it
 *           ends itself
 *   pause   SIGSTOP for 300 ms: nobody dies where 780 ms are allowed
 *   blind   SIGSTOP for good of each node and its witness: where that has real-time priority, its not answering tells
 *           as much
 *   load    8 busy processes at nice 0 (KEEL_LOAD_NICE) for 20 s (KEEL_LOAD_S): nobody dies
 *   idle    how often an idle node wakes up: less than a hundred times a second. Processor time is printed: below 0.5 %
 *           of a core on a
 *           machine that has nothing else to do
 *   full    no node may open a descriptor more: one whose thread stands still for 450 ms, and whose witness has died,
 *           does not die of
 *           that; a connection that waits to be taken keeps no processor busy; a death is found
 *   forge   garbage, foreign and altered datagrams and connections: dropped and counted, nobody dies
 * and, where the environment says how (tests/rdma-vm does),
 *   cut     the network of each node in turn is cut without a word: the others commit its death, it ends itself
 *   loss    every fifth packet to and from one node is lost: nobody dies
 *   delay   what goes to one node comes 600 ms later: all agree on what that means
 *   fallback  the device of one node carries nothing any more: it goes on without, nobody dies, a kill is known as ever
 * Environment: KEEL_HELPERS_HOST the nodes' addresses, 127.0.0.%d by default (%d is 2, 3, ...); KEEL_HELPERS_PROBE
 * auto, verbs or ofi; KEEL_HELPERS_CUT and _HEAL, _LOSE, _DELAY and _STRAIGHT, _BREAK: commands, %d as above.
 * Prints the times measured. */
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

struct node {
    int pid, to; /* pipe to it */
};
static struct node nodes[NODES];
int notes[2];
int dark_ms;

/* Builds with sanitizers run several times slower: how many times the limits to allow. */
static uint64_t patience(void)
{
    const char *text = getenv("KEEL_TEST_PATIENCE");
    return text ? strtoull(text, NULL, 10) : 1;
}

static void fail(const char *what)
{
    printf("FAILED: %s\n", what);
    for (int i = 0; i < NODES; i++)
        if (nodes[i].pid)
            kill(nodes[i].pid, SIGKILL);
    exit(1);
}

static struct { /* the process that was killed: its kernel takes a while to close what it had */
    int fd;
    uint64_t gone; /* 0: not yet */
} dying = {.fd = -1};

static bool next_note(struct note *n, uint64_t until)
{
    for (;;) {
        struct pollfd p[] = {{.fd = notes[0], .events = POLLIN}, {.fd = dying.gone ? -1 : dying.fd, .events = POLLIN}};
        uint64_t now = clock_now_ns();
        if (poll(p, 2, until > now ? (int)((until - now) / MS) + 1 : 0) <= 0)
            return false;
        if (p[1].revents)
            dying.gone = clock_now_ns();
        if (p[0].revents)
            return read(notes[0], n, sizeof *n) == sizeof *n;
    }
}

static struct helper_blob job_blobs[NODES];

static void start_job(void)
{
    if (pipe(notes))
        fail("pipe");
    for (int i = 0; i < NODES; i++) {
        int down[2];
        if (pipe(down))
            fail("pipe");
        nodes[i].to = down[1];
        if ((nodes[i].pid = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int k = 0; k <= i; k++)
                close(nodes[k].to);
            close(notes[0]);
            node_main(i, down[0]);
        }
        close(down[0]);
    }
    struct note n;
    for (int i = 0; i < NODES; i++) {
        if (!next_note(&n, clock_now_ns() + 10000 * MS * patience()) || n.kind != NOTE_BLOB)
            fail("a node does not start");
        job_blobs[n.node] = n.blob;
    }
    for (int i = 0; i < NODES; i++)
        if (write(nodes[i].to, job_blobs, sizeof job_blobs) != sizeof job_blobs)
            fail("write");
    while (next_note(&n, clock_now_ns() + 600 * MS))
        if (n.kind != NOTE_SUSPECT)
            fail("something happened before anything was done");
}

static void end_job(void)
{
    for (int i = 0; i < NODES; i++) {
        close(nodes[i].to);
        kill(nodes[i].pid, SIGCONT);
    }
    for (int i = 0; i < NODES; i++)
        waitpid(nodes[i].pid, NULL, 0);
    close(notes[0]);
    close(notes[1]);
    memset(nodes, 0, sizeof nodes);
}

static enum member_evidence evidence; /* of the first verdict on the last victim */

/* A killed process keeps its sockets until its memory is taken apart, which takes long on a busy machine: until then
 * nobody can know more than that it is silent. Were they closed for all the silence of this verdict? */
static bool closed_through(uint64_t verdict)
{
    uint64_t silence = verdict - (uint64_t)(dark_ms ? dark_ms : 250) * MS;
    return dying.fd < 0 || (dying.gone && dying.gone <= silence);
}

enum basis { SILENT, CERTAIN, EITHER };

/* All but the victim have committed its death: the time of the last, in ms since t. The first verdict rested on certain
 * evidence, or on silence: what takes 1 ms and what takes the limit of silence. */
static double wait_commits(int victim, uint64_t t, enum basis basis)
{
    struct note n;
    bool has[NODES] = {false};
    uint64_t last = 0;
    int missing = NODES - 1, verdicts = 0;
    evidence = MEMBER_ALIVE;
    while (missing && next_note(&n, t + 20000 * MS * patience())) {
        if (n.kind == NOTE_HALT && n.node != victim)
            fail("a node halted");
        if (n.kind == NOTE_VERDICT && n.about == victim && !verdicts++) {
            evidence = n.evidence;
            if (basis == CERTAIN && evidence != MEMBER_REFUSED && closed_through(n.t))
                fail("a certain death was taken for silence");
            if (basis == SILENT && evidence == MEMBER_REFUSED)
                fail("silence was taken for a certain death");
        }
        if (n.kind != NOTE_COMMIT)
            continue;
        if (n.about != victim)
            fail("the wrong node was declared dead");
        if (!has[n.node])
            missing--;
        has[n.node] = true;
        last = n.t > last ? n.t : last;
    }
    if (missing)
        fail("not every node has committed the death");
    return (double)(last - t) / MS;
}

/* Kill it, and see its death told for certain: the time in ms until all have committed it. */
static double kill_node(int victim)
{
    uint64_t t = clock_now_ns();
    dying.fd = (int)syscall(SYS_pidfd_open, nodes[victim].pid, 0);
    dying.gone = 0;
    if (dying.fd < 0 || kill(nodes[victim].pid, SIGKILL))
        fail("kill");
    double ms = wait_commits(victim, t, CERTAIN);
    close(dying.fd);
    dying.fd = -1;
    return ms;
}

static void check_probe(void);
static int pauses[2];
static uint64_t longest_pause;

static void read_pauses(void)
{
    uint64_t ns;
    struct pollfd p = {.fd = pauses[0], .events = POLLIN};
    while (pauses[0] && poll(&p, 1, 0) > 0 && read(pauses[0], &ns, sizeof ns) == sizeof ns)
        longest_pause = ns > longest_pause ? ns : longest_pause;
}

/* A processor that stood still for longer than half the limit froze nodes: that is no false death. */
static void explain_pause(void)
{
    usleep(100 * 1000);
    read_pauses();
    if (longest_pause < 400 * MS)
        return;
    printf("SKIP: a node died, but a processor of this machine stood still for %.0f ms\n", (double)longest_pause / MS);
    for (int i = 0; i < NODES; i++)
        kill(nodes[i].pid, SIGKILL);
    exit(77);
}

static void nobody_dies(uint64_t until, int *suspicions)
{
    struct note n;
    while (next_note(&n, until)) {
        if (n.kind == NOTE_COMMIT || n.kind == NOTE_HALT) {
            explain_pause();
            fail("a node was declared dead, or ended");
        }
        *suspicions += n.kind == NOTE_SUSPECT;
    }
}

static void mode_kill(void)
{
    for (int victim = 0; victim < NODES; victim++) {
        start_job();
        if (victim == 0)
            check_probe();
        printf("node %d killed: everywhere in %.2f ms\n", victim, kill_node(victim));
        end_job();
    }
}

/* Real-time priority may be had here: a busy machine keeps neither helper threads nor witnesses waiting. */
static bool is_prompt(void)
{
    struct sched_param param = {.sched_priority = 1}, none = {.sched_priority = 0};
    bool may = sched_setscheduler(0, SCHED_RR, &param) == 0;
    sched_setscheduler(0, SCHED_OTHER, &none);
    return may;
}

/* The first child of a node's process: its witness. */
static int witness_of(int node)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", nodes[node].pid, nodes[node].pid);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%d", &pid) != 1) // NOLINT(cert-err34-c)
        pid = 0;
    if (f)
        fclose(f);
    return pid;
}

static void freeze(bool witness_too)
{
    bool prompt = is_prompt();
    for (int victim = 0; victim < NODES; victim++) {
        start_job();
        int witness = witness_too ? witness_of(victim) : 0;
        if (witness_too && (witness == 0 || kill(witness, SIGSTOP) != 0))
            fail("a node has no witness");
        uint64_t t = clock_now_ns();
        kill(nodes[victim].pid, SIGSTOP);
        double ms = wait_commits(victim, t, SILENT);
        printf("node %d stopped: everywhere in %.1f ms, %s\n", victim, ms, member_evidence_name(evidence));
        if (prompt && evidence != MEMBER_HUNG)
            fail("an agent that was stopped was taken for a silent one");
        if (witness)
            kill(witness, SIGCONT);
        kill(nodes[victim].pid, SIGCONT);
        struct note n;
        bool halted = false;
        while (!halted && next_note(&n, clock_now_ns() + 3000 * MS))
            halted = n.kind == NOTE_HALT && n.node == victim;
        if (!halted)
            fail("the node that was declared dead goes on");
        end_job();
    }
}

static void mode_freeze(void)
{
    freeze(false);
}

static void mode_blind(void)
{
    freeze(true);
}

static void mode_pause(void)
{
    dark_ms = 780;
    start_job();
    int suspicions = 0;
    for (int i = 0; i < 2 * NODES; i++) {
        kill(nodes[i % NODES].pid, SIGSTOP);
        usleep(300 * 1000);
        kill(nodes[i % NODES].pid, SIGCONT);
        nobody_dies(clock_now_ns() + 900 * MS, &suspicions);
    }
    printf("%d pauses of 300 ms, %d suspicions, nobody died\n", 2 * NODES, suspicions);
    if (!suspicions)
        fail("nobody noticed a pause");
    end_job();
}

/* The machine itself may stand still (a virtual processor that its host does not run): nodes are then frozen for real.
 * One process per processor, at the highest real-time priority, measures the longest pause. */
static void watch_processors(int out[2])
{
    int count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (pipe(out))
        fail("pipe");
    for (int cpu = 0; cpu < count && cpu < 64; cpu++) {
        if (fork() == 0) {
            cpu_set_t set;
            struct sched_param param = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            CPU_ZERO(&set);
            CPU_SET(cpu, &set);
            if (sched_setaffinity(0, sizeof set, &set) || sched_setscheduler(0, SCHED_FIFO, &param))
                _exit(0);
            for (uint64_t longest = 0;;) {
                uint64_t t = clock_now_ns();
                usleep(20 * 1000);
                t = clock_now_ns() - t;
                if (t <= longest)
                    continue;
                longest = t;
                if (write(out[1], &longest, sizeof longest) != sizeof longest)
                    _exit(0);
            }
        }
    }
    close(out[1]);
}

static void mode_load(void)
{
    watch_processors(pauses);
    const char *env = getenv("KEEL_LOAD_S"), *nicer = getenv("KEEL_LOAD_NICE");
    int seconds = env ? atoi(env) : 20, suspicions = 0, busy[LOAD];
    start_job();
    for (int i = 0; i < LOAD; i++)
        if ((busy[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (nicer && nice(atoi(nicer)) == -1)
                _exit(3);
            for (volatile uint64_t x = 0;; x++)
                ;
        }
    nobody_dies(clock_now_ns() + (uint64_t)seconds * KEEL_NS_PER_S, &suspicions);
    for (int i = 0; i < LOAD; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    read_pauses();
    printf("%d s with %d busy processes: %d suspicions, nobody died; a processor stood still for up to %.0f ms\n",
           seconds, LOAD, suspicions, (double)longest_pause / MS);
    end_job();
}

static void statistics(struct note out[NODES])
{
    for (int i = 0; i < NODES; i++)
        if (write(nodes[i].to, "p", 1) != 1)
            fail("write");
    struct note n;
    for (int got = 0; got < NODES;) {
        if (!next_note(&n, clock_now_ns() + 2000 * MS))
            fail("no statistics");
        if (n.kind != NOTE_STATS)
            continue;
        out[n.node] = n;
        got++;
    }
}

static void mode_idle(void)
{
    struct note a[NODES], b[NODES];
    int suspicions = 0;
    start_job();
    statistics(a);
    nobody_dies(clock_now_ns() + 5000 * MS, &suspicions);
    statistics(b);
    bool often = false;
    for (int i = 0; i < NODES; i++) {
        double seconds = (double)(b[i].t - a[i].t) / 1e9;
        double rate = (double)(b[i].counters.wakeups - a[i].counters.wakeups) / seconds;
        printf("node %d: %.3f %% of a core, %.0f wakeups/s\n", i, 100 * (b[i].cpu - a[i].cpu) / seconds, rate);
        often |= rate > 100;
    }
    if (often)
        fail("an idle node wakes up more than a hundred times a second");
    end_job();
}

/* The blob's layout is the helper's own affair: what is looked for here is the only IPv4 socket addresses in it. */
static int addresses(const struct helper_blob *blob, struct sockaddr_in out[2])
{
    int n = 0;
    for (uint32_t i = 0; i + sizeof out[0] <= blob->len && n < 2; i++) {
        struct sockaddr_in a;
        memcpy(&a, blob->bytes + i, sizeof a);
        if (a.sin_family == AF_INET && (ntohl(a.sin_addr.s_addr) >> 24) == 127 && a.sin_port) {
            out[n++] = a;
            i += sizeof a - 1;
        }
    }
    return n;
}

static void mode_forge(void)
{
    struct note after[NODES];
    struct sockaddr_in to[2];
    uint8_t junk[1200];
    int suspicions = 0;
    start_job();
    if (addresses(&job_blobs[1], to) != 2)
        fail("no addresses in the blob");
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    for (int i = 0; i < 300; i++) {
        for (size_t k = 0; k < sizeof junk; k++)
            junk[k] = (uint8_t)rand();
        if (i % 3 == 0)
            memcpy(junk, "keel\1\0\0\0\x4d\0\0\0\0\0\0\0\0\0\1\0\x64\0\0\0",
                   24); /* the right header, no authenticator */
        sendto(udp, junk, i % 2 ? sizeof junk : 64, 0, (struct sockaddr *)&to[1], sizeof to[1]);
        if (i % 30 == 0) {
            int tcp = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(tcp, (struct sockaddr *)&to[0], sizeof to[0]) == 0 && send(tcp, junk, 100, MSG_NOSIGNAL) < 0)
                printf("send: %m\n");
            close(tcp);
        }
        usleep(1000);
    }
    close(udp);
    nobody_dies(clock_now_ns() + 1500 * MS, &suspicions);
    statistics(after);
    printf("%llu datagrams dropped\n", (unsigned long long)after[1].counters.dropped);
    if (after[1].counters.dropped < 250)
        fail("forged datagrams were not dropped");
    printf("afterwards node 1 killed: everywhere in %.2f ms\n", kill_node(1));
    end_job();
}

static double cpu_of(int node, uint64_t ns)
{
    struct note a[NODES], b[NODES];
    int suspicions = 0;
    statistics(a);
    nobody_dies(clock_now_ns() + ns, &suspicions);
    statistics(b);
    return 100 * (b[node].cpu - a[node].cpu) / ((double)(b[node].t - a[node].t) / 1e9);
}

static void order_all(char order)
{
    struct note n;
    for (int i = 0; i < NODES; i++)
        if (write(nodes[i].to, &order, 1) != 1 || !next_note(&n, clock_now_ns() + 2000 * MS) || n.kind != NOTE_STATS)
            fail("a node does not do what it is told");
}

static void mode_full(void)
{
    struct sockaddr_in to[2];
    int suspicions = 0, victim = 1;
    start_job();
    if (addresses(&job_blobs[victim], to) != 2)
        fail("no addresses in the blob");
    order_all('d');
    for (int i = 0; i < NODES; i++) {
        int witness = witness_of(i);
        if (witness && kill(witness, SIGKILL))
            fail("kill");
        if (write(nodes[i].to, "s", 1) != 1)
            fail("write");
        nobody_dies(clock_now_ns() + 1200 * MS, &suspicions);
    }
    printf("no descriptors: %d threads stood still for 450 ms, %d suspicions, nobody died\n", NODES, suspicions);
    if (!suspicions)
        fail("nobody noticed that a thread stood still");
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(tcp, (struct sockaddr *)&to[0], sizeof to[0]) != 0)
        fail("connect");
    double cpu = cpu_of(victim, 2000 * MS);
    printf("a connection that cannot be taken: %.1f %% of a core\n", cpu);
    if (cpu > 20)
        fail("a connection that cannot be taken keeps a processor busy");
    close(tcp);
    uint64_t t = clock_now_ns();
    if (kill(nodes[victim].pid, SIGKILL))
        fail("kill");
    printf("afterwards node %d killed: everywhere in %.0f ms\n", victim, wait_commits(victim, t, EITHER));
    end_job();
}

/* Does what a variable of the environment says. False: it says nothing. */
static void command(const char *variable, int node)
{
    char text[500];
    const char *how = getenv(variable);
    if (!how) {
        printf("SKIP: %s does not say how\n", variable);
        exit(77);
    }
    fill_in(text, sizeof text, how, node);
    if (system(text) != 0) // NOLINT(cert-env33-c): the test's own environment
        fail(text);
}

/* With RDMA devices everything is to go through them. */
static void check_probe(void)
{
    struct note s[NODES];
    uint64_t until = clock_now_ns() + 5000 * MS;
    int suspicions = 0;
    bool all;
    do { /* paths are resolved first, which takes a second */
        nobody_dies(clock_now_ns() + 100 * MS, &suspicions);
        statistics(s);
        all = true;
        for (int i = 0; i < NODES; i++)
            all &= s[i].counters.verbs_reads > 0;
    } while (wanted_probe() == PROBE_VERBS && !all && clock_now_ns() < until);
    if (wanted_probe() == PROBE_VERBS && !all)
        fail("a node reads no heartbeat by its device");
    for (int i = 0; i < NODES; i++) {
        if (wanted_probe() == PROBE_OFI && s[i].counters.verbs_reads + s[i].counters.verbs_sent > 0)
            fail("a node uses a device though it was told not to");
    }
    printf("heartbeat reads of node 0: %llu, of these by its device %llu; datagrams %llu, by its device %llu\n",
           (unsigned long long)(s[0].counters.reads + s[0].counters.verbs_reads),
           (unsigned long long)s[0].counters.verbs_reads, (unsigned long long)s[0].counters.sent,
           (unsigned long long)s[0].counters.verbs_sent);
}

static void wait_halt(int node)
{
    struct note n;
    while (next_note(&n, clock_now_ns() + 20000 * MS))
        if (n.kind == NOTE_HALT && n.node == node)
            return;
    fail("a node that was declared dead, or is alone, goes on");
}

static void mode_cut(void)
{
    for (int victim = 0; victim < NODES; victim++) {
        start_job();
        uint64_t t = clock_now_ns();
        command("KEEL_HELPERS_CUT", victim);
        printf("node %d cut off: everywhere in %.1f ms\n", victim, wait_commits(victim, t, SILENT));
        wait_halt(victim);
        command("KEEL_HELPERS_HEAL", victim);
        end_job();
    }
}

static void mode_loss(void)
{
    int suspicions = 0;
    start_job();
    command("KEEL_HELPERS_LOSE", 1);
    nobody_dies(clock_now_ns() + 8000 * MS, &suspicions);
    check_probe();
    command("KEEL_HELPERS_STRAIGHT", 1);
    printf("every fifth packet of node 1 lost for 8 s: %d suspicions, nobody died\n", suspicions);
    end_job();
}

/* Longer than a read may take, shorter than the limit: which of the two verdicts falls depends on when the last read
 * was. If it is death, everybody says so, and the node ends. */
static void mode_delay(void)
{
    struct note n;
    int declared = 0, suspicions = 0;
    bool halted = false;
    start_job();
    uint64_t t = clock_now_ns(), last = 0;
    command("KEEL_HELPERS_DELAY", 1);
    while (next_note(&n, t + 8000 * MS)) {
        suspicions += n.kind == NOTE_SUSPECT;
        if (n.kind == NOTE_COMMIT && n.about != 1)
            fail("the wrong node was declared dead");
        if (n.kind == NOTE_HALT && n.node != 1)
            fail("a node halted");
        declared += n.kind == NOTE_COMMIT;
        halted |= n.kind == NOTE_HALT;
        last = n.kind == NOTE_COMMIT ? n.t : last;
    }
    if (declared && declared != NODES - 1)
        fail("not everybody thinks the same");
    if ((declared > 0) != halted)
        fail("a node declared dead goes on, or one that was not has ended");
    if (!suspicions)
        fail("nobody noticed the delay");
    command("KEEL_HELPERS_STRAIGHT", 1);
    if (declared)
        printf("what goes to node 1 comes 600 ms later: %d suspicions, declared dead after %.1f ms\n", suspicions,
               (double)(last - t) / MS);
    else
        printf("what goes to node 1 comes 600 ms later: %d suspicions, all cleared\n", suspicions);
    end_job();
}

static void mode_fallback(void)
{
    struct note before[NODES], after[NODES];
    int suspicions = 0;
    start_job();
    check_probe();
    command("KEEL_HELPERS_BREAK", 1);
    nobody_dies(clock_now_ns() + 3000 * MS, &suspicions);
    statistics(before);
    nobody_dies(clock_now_ns() + 2000 * MS, &suspicions);
    statistics(after);
    if (after[1].counters.verbs_reads != before[1].counters.verbs_reads)
        fail("a device that carries nothing is still used");
    if (after[1].counters.reads == before[1].counters.reads || after[0].counters.reads == before[0].counters.reads)
        fail("nothing took the place of the device");
    printf("device of node 1 carries nothing: %d suspicions, nobody died\n", suspicions);
    printf("afterwards node 2 killed: everywhere in %.2f ms\n", kill_node(2));
    end_job();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"kill", mode_kill}, {"freeze", mode_freeze}, {"blind", mode_blind},       {"pause", mode_pause},
                 {"load", mode_load}, {"idle", mode_idle},     {"forge", mode_forge},       {"cut", mode_cut},
                 {"loss", mode_loss}, {"delay", mode_delay},   {"fallback", mode_fallback}, {"full", mode_full}};
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (argc == 2 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            return 0;
        }
    fprintf(stderr, "usage: helpers kill|freeze|blind|pause|load|idle|full|forge|cut|loss|delay|fallback\n");
    return 2;
}
