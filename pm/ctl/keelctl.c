/* keelctl: look at jobs on this machine, attach to one, stop it; and, for test beds, break things. */
#include "pm/bed/bed.h"
#include "pm/wire/bytes.h"
#include "pm/wire/codec.h"
#include "pm/ctl/finder.h"
#include "pm/wire/message.h"
#include "pm/wire/quit.h"
#include "pm/wire/session.h"
#include "pm/wire/order.h"
#include "pm/wire/waits.h"
#include "runtime/base/clock.h"
#include "runtime/base/kernel.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS = 2000, STOP_MS = 10000, VERIFY_MS = 600000, ARGS_MAX = 6, EXIT_DIFFER = 3, EXIT_BUSY = 4 };

__attribute__((visibility("default"))) const char *argp_program_version = "keelctl (Keel) " KEEL_VERSION;

static const char doc[] = "Look at running Keel jobs and control them.\v"
                          "  list                    the jobs of this machine\n"
                          "  status [JOB]            nodes, processes, view\n"
                          "  attach [JOB]            recent output, and what follows, until the job ends\n"
                          "  stop [JOB]              end the job (its exit code is 143)\n"
                          "  verify [JOB]            compare the copies of all segments\n"
                          "  kill-node JOB NODE      signal all processes of a node at once\n"
                          "  bed cut|heal JOB NODE   netns bed: link of the node down or up\n"
                          "JOB is an id from list, or the beginning of one. It may be left out if there is one job.";

struct request {
    bool json, detect, aimed; /* aimed: --signal was given */
    int signal;
    const char *host;
    char *words[ARGS_MAX];
    int count;
};

struct watched {
    struct session session;
    int fd;
    int node;
    bool over;
};

/* ---- talking to an agent ---- */

static bool ask(int fd, uint8_t type, const char *body)
{
    struct session s;
    struct bytes out = {0};
    session_init(&s, SESSION_PLAIN, 0, NULL, NULL, &out);
    session_seal(&s, type, body, strlen(body), &out);
    ssize_t n = send(fd, out.data, out.len, MSG_NOSIGNAL); /* small enough for the socket's buffer */
    bool good = n == (ssize_t)out.len;
    bytes_free(&out);
    session_fini(&s);
    return good;
}

/* One read; 0 at the end, -1 if nothing came in time. */
static ssize_t receive(struct session *s, int fd, int timeout_ms)
{
    uint8_t buffer[65536];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, timeout_ms) <= 0)
        return -1;
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0)
        session_feed(s, buffer, (size_t)n);
    return n < 0 ? 0 : n;
}

/* What the agent answers, NULL if it does not (it is frozen, or just ended). */
static json_t *ask_for(int fd, uint8_t question, uint8_t wanted, int timeout_ms)
{
    struct session s;
    struct bytes out = {0};
    json_t *answer = NULL;
    session_init(&s, SESSION_PLAIN, 0, NULL, NULL, &out);
    if (ask(fd, question, "")) {
        uint8_t type;
        const uint8_t *body;
        size_t len;
        while (!answer && receive(&s, fd, timeout_ms) > 0)
            while (!answer && session_next(&s, &out, &type, &body, &len))
                if (type == wanted)
                    answer = codec_object(body, len);
    }
    bytes_free(&out);
    session_fini(&s);
    return answer;
}

static json_t *ask_status(int fd)
{
    return ask_for(fd, MSG_ASK_STATUS, MSG_STATUS, ANSWER_MS);
}

/* ---- which job ---- */

struct job_agents {
    uint64_t id;
    struct found_agent *agents;
    int count;
};

static struct job_agents select_job(struct found_agent *all, int count, const char *wanted)
{
    struct job_agents job = {0};
    for (int i = 0; i < count; i++) {
        char id[17];
        snprintf(id, sizeof id, "%016" PRIx64, all[i].job_id);
        if (wanted && strncmp(id, wanted, strlen(wanted)) != 0)
            continue;
        if (job.count && job.id != all[i].job_id)
            pm_quit(2, wanted ? "more than one job begins with %s" : "there is more than one job: which one?", wanted);
        if (!job.count)
            job = (struct job_agents){.id = all[i].job_id, .agents = &all[i]};
        job.count++;
    }
    if (!job.count)
        pm_quit(1, wanted ? "no job %s on this machine" : "no job on this machine", wanted);
    return job;
}

/* Does any agent say so? */
static bool is_dying(const json_t *nodes, size_t node)
{
    json_t *one, *dying;
    size_t i, k;
    json_array_foreach(nodes, i, one)
        json_array_foreach(json_object_get(json_object_get(one, "waiting"), "dying"), k, dying)
            if (json_integer_value(dying) == (json_int_t)node)
                return true;
    return false;
}

/* Those that the newest view calls dead, or the next one will: their agents do not say so any more. nodes is in order of
 * their numbers. */
static void add_dead(json_t *nodes, const json_t *newest)
{
    const json_t *alive = json_object_get(newest, "alive");
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(alive); i++) {
        const json_t *next = json_array_get(nodes, at);
        if (next && (size_t)json_integer_value(json_object_get(next, "node")) == i)
            at++;
        else if (json_is_false(json_array_get(alive, i)))
            json_array_insert_new(nodes, at++, json_pack("{s:i, s:s}", "node", (int)i, "state", "dead"));
        else if (is_dying(nodes, i))
            json_array_insert_new(nodes, at++, json_pack("{s:i, s:s}", "node", (int)i, "state", "dying"));
    }
}

/* {"job", "nodes": [...]}: what each agent says of itself; a node that does not answer has only what is known of it. */
static json_t *job_status(const struct job_agents *job)
{
    json_t *nodes = json_array(), *newest = NULL;
    for (int i = 0; i < job->count; i++) {
        json_t *one = ask_status(job->agents[i].fd);
        if (!one)
            one = json_pack("{s:i, s:s}", "node", job->agents[i].node, "state", "silent");
        else if (!newest || json_integer_value(json_object_get(one, "epoch")) >
                                json_integer_value(json_object_get(newest, "epoch")))
            newest = one;
        json_object_del(one, "hosts");
        json_array_append_new(nodes, one);
    }
    add_dead(nodes, newest);
    char id[17];
    snprintf(id, sizeof id, "%016" PRIx64, job->id);
    json_t *all = json_pack("{s:s, s:o}", "job", id, "nodes", nodes);
    static const char *const common[] = {"program", "size", "epoch", "alive", "rank_node", "keelrun"};
    for (size_t i = 0; newest && i < sizeof common / sizeof common[0]; i++)
        json_object_set(all, common[i], json_object_get(newest, common[i]));
    return all;
}

/* ---- commands ---- */

static long long int_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "?";
}

static int do_list(struct found_agent *all, int count, const struct request *r)
{
    json_t *jobs = json_array();
    for (int i = 0; i < count;) {
        struct job_agents job = {.id = all[i].job_id, .agents = &all[i]};
        while (i < count && all[i].job_id == job.id)
            job.count++, i++;
        json_t *status = job_status(&job);
        if (!r->json)
            printf("%s  %lld ranks  %d nodes here  epoch %lld  %s%s\n", text_of(status, "job"), int_of(status, "size"),
                   job.count, int_of(status, "epoch"), text_of(status, "program"),
                   json_is_true(json_object_get(status, "keelrun")) ? "" : "  (without keelrun)");
        json_array_append_new(jobs, status);
    }
    if (r->json) {
        json_dumpf(jobs, stdout, JSON_COMPACT);
        putchar('\n');
    }
    json_decref(jobs);
    return 0;
}

static double real_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The bound below which half of the reads stayed: the histogram's, so a power of two. */
static double median_us(const json_t *latency, long long reads)
{
    long long below = 0;
    json_t *count;
    size_t k;
    json_array_foreach(latency, k, count) {
        below += json_integer_value(count);
        if (2 * below >= reads)
            return (double)(2ull << k);
    }
    return 0;
}

static void show_detection(const json_t *d)
{
    json_t *one;
    size_t i;
    json_array_foreach(json_object_get(d, "watches"), i, one)
        printf("    watches node %lld by %s: heartbeat %.0f ms old, %lld reads, half of them below %.0f us\n",
               int_of(one, "node"), text_of(d, "probe"), real_of(one, "age_ms"), int_of(one, "reads"),
               median_us(json_object_get(one, "latency_us"), int_of(one, "reads")));
    json_array_foreach(json_object_get(d, "doubts"), i, one)
        printf("    node %lld: %s for %.0f ms; %lld asked, %lld reach it, %lld do not\n", int_of(one, "node"),
               text_of(one, "state"), real_of(one, "since_ms"), int_of(one, "asked"), int_of(one, "reached"),
               int_of(one, "unreached"));
    json_array_foreach(json_object_get(d, "links"), i, one)
        printf("    link between nodes %lld and %lld broken for %.0f ms\n", int_of(one, "a"), int_of(one, "b"),
               real_of(one, "since_ms"));
    json_array_foreach(json_object_get(d, "said"), i, one)
        printf("    %.1f s ago: %s node %lld, evidence %s: %s\n", real_of(one, "ms_ago") / 1e3, text_of(one, "what"),
               int_of(one, "node"), text_of(one, "evidence"), text_of(one, "why"));
}

/* What the nodes say of who waits, together. False: nothing to go by. */
static bool waits_gather(struct waits *w, const json_t *status, uint64_t now)
{
    json_t *node;
    size_t i;
    int ranks = (int)int_of(status, "size"), nodes = (int)json_array_size(json_object_get(status, "alive"));
    int *rank_node = pm_alloc((size_t)(ranks + 1) * sizeof *rank_node);
    bool good =
        ranks > 0 && nodes > 0 && codec_to_ints(json_object_get(status, "rank_node"), rank_node, ranks, -1, nodes - 1);
    if (good)
        waits_init(w, nodes, ranks, rank_node, NULL, NULL);
    free(rank_node);
    json_array_foreach(json_object_get(status, "nodes"), i, node)
        if (good)
            waits_report(w, (int)int_of(node, "node"), json_object_get(node, "waiting"), now);
    return good;
}

static void show_waits(const struct waits *w, int node, int rank, uint64_t now)
{
    char line[WAITS_LINE];
    int whose;
    for (int i = 0; waits_text(w, node, i, now, &whose, line); i++)
        if (whose == rank)
            printf("         %s\n", line);
}

static void show_rank(const struct waits *w, int node, const json_t *rank, uint64_t now)
{
    int number = (int)int_of(rank, "rank");
    printf("    rank %-4d pid %-7lld incarnation %lld  %s%s\n", number, int_of(rank, "pid"),
           int_of(rank, "incarnation"), text_of(rank, "state"),
           w && waits_is_stopped(w, number) && strcmp(text_of(rank, "state"), "running") == 0
               ? ", stopped by a signal or a debugger"
               : "");
    if (w)
        show_waits(w, node, number, now);
}

static int do_status(const struct job_agents *job, const struct request *r)
{
    json_t *status = job_status(job), *node, *rank;
    size_t i, k;
    if (r->json) {
        json_dumpf(status, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(status);
        return 0;
    }
    struct waits waits;
    uint64_t now = clock_now_ns();
    bool gathered = waits_gather(&waits, status, now);
    printf("job %s  %s  %lld ranks  epoch %lld%s\n", text_of(status, "job"), text_of(status, "program"),
           int_of(status, "size"), int_of(status, "epoch"),
           json_is_true(json_object_get(status, "keelrun")) ? "" : "  (without keelrun)");
    json_array_foreach(json_object_get(status, "nodes"), i, node) {
        if (!json_object_get(node, "agent_pid")) {
            printf("node %-3lld %s\n", int_of(node, "node"), text_of(node, "state"));
            continue;
        }
        printf("node %-3lld %-15s %-8s agent %lld%s\n", int_of(node, "node"), text_of(node, "host"),
               text_of(node, "state"), int_of(node, "agent_pid"),
               json_is_true(json_object_get(node, "spare")) ? "  spare" : "");
        json_array_foreach(json_object_get(node, "ranks"), k, rank)
            show_rank(gathered ? &waits : NULL, (int)int_of(node, "node"), rank, now);
        if (r->detect)
            show_detection(json_object_get(node, "detection"));
    }
    if (gathered)
        waits_fini(&waits);
    json_decref(status);
    return 0;
}

static void show(const uint8_t *frame, size_t len)
{
    if (len <= OUTPUT_HEADER)
        return;
    FILE *to = get_u32(frame + 8) == 2 ? stderr : stdout;
    fwrite(frame + OUTPUT_HEADER, 1, len - OUTPUT_HEADER, to);
    fflush(to);
}

/* Returns false once this agent has nothing more to say. */
static bool attach_read(struct watched *w, int *code, bool *told)
{
    struct bytes out = {0};
    uint8_t type;
    const uint8_t *body;
    size_t len;
    if (receive(&w->session, w->fd, 0) == 0)
        return false;
    while (session_next(&w->session, &out, &type, &body, &len)) {
        if (type == MSG_OUTPUT)
            show(body, len);
        json_t *m = type == MSG_OVER ? codec_object(body, len) : NULL;
        if (!m)
            continue;
        w->over = true;
        if (!*told || (*code == 0 && int_of(m, "code") != 0)) {
            *code = (int)int_of(m, "code");
            if (*text_of(m, "why"))
                fprintf(stderr, "keelctl: %s\n", text_of(m, "why"));
        }
        *told = true;
        json_decref(m);
    }
    return !w->over;
}

static int do_attach(const struct job_agents *job)
{
    int count = job->count, left = 0, code = 0;
    bool told = false;
    struct watched *all = pm_alloc((size_t)count * sizeof *all);
    struct pollfd *fds = pm_alloc((size_t)count * sizeof *fds);
    struct bytes none = {0};
    for (int i = 0; i < count; i++) {
        session_init(&all[i].session, SESSION_PLAIN, 0, NULL, NULL, &none);
        all[i].fd = job->agents[i].fd;
        bool good = ask(all[i].fd, MSG_ATTACH, "");
        fds[i] = (struct pollfd){.fd = good ? all[i].fd : -1, .events = POLLIN};
        left += good;
    }
    while (left > 0) {
        if (poll(fds, (nfds_t)count, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < count; i++)
            if (fds[i].fd >= 0 && fds[i].revents && !attach_read(&all[i], &code, &told)) {
                fds[i].fd = -1;
                left--;
            }
    }
    for (int i = 0; i < count; i++)
        session_fini(&all[i].session);
    free(all);
    free(fds);
    if (!told)
        pm_quit(1, "the job's nodes are gone without a word");
    return code;
}

/* The process at the other end of a console; -1: it has ended. */
static int process_behind(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -1;
    return process_open(peer.pid);
}

static int do_stop(const struct job_agents *job)
{
    bool any = false;
    int *processes = pm_alloc((size_t)job->count * sizeof *processes);
    for (int i = 0; i < job->count; i++) {
        processes[i] = process_behind(job->agents[i].fd);
        any |= ask(job->agents[i].fd, MSG_STOP, "{\"code\":143,\"why\":\"stopped by keelctl\",\"hard\":false}");
    }
    if (!any)
        pm_quit(1, "no node of the job takes the request");
    /* until they are gone; one that is frozen is not waited for for ever */
    for (int i = 0; i < job->count; i++) {
        struct pollfd p = {.fd = processes[i], .events = POLLIN};
        if (p.fd < 0)
            continue;
        (void)poll(&p, 1, STOP_MS);
        process_close(p.fd);
    }
    free(processes);
    return 0;
}

static void tell_verdict(const json_t *v, const char *result)
{
    char where[200] = "";
    if (json_object_get(v, "rank"))
        snprintf(where, sizeof where, "segment %lld, rank %lld's part, offset %lld (slot %lld)", int_of(v, "segment"),
                 int_of(v, "rank"), int_of(v, "offset"), int_of(v, "slot"));
    else if (json_object_get(v, "segment"))
        snprintf(where, sizeof where, "segment %lld, slot %lld, offset %lld", int_of(v, "segment"), int_of(v, "slot"),
                 int_of(v, "slot_offset"));
    if (strcmp(result, "equal") == 0) {
        printf("all copies are equal: %lld bytes compared", int_of(v, "bytes"));
        if (int_of(v, "single"))
            printf("; %lld parts have one copy only", int_of(v, "single"));
        putchar('\n');
    } else if (strcmp(result, "differs") == 0) {
        const json_t *copies = json_object_get(v, "copies"), *a = json_array_get(copies, 0),
                     *b = json_array_get(copies, 1);
        printf("copies differ: %s: node %lld has %02llx, node %lld %02llx\n", where, int_of(a, "node"),
               int_of(a, "byte"), int_of(b, "node"), int_of(b, "byte"));
    } else if (strcmp(result, "busy") == 0) {
        printf(
            "not comparable: being written, made equal, or a node does not answer; the first of %lld blocks is in %s\n",
            int_of(v, "busy"), where);
    } else {
        pm_quit(1, "the agent says: %s", result);
    }
}

/* One agent asks the others; any that answers will do. */
static int do_verify(const struct job_agents *job, const struct request *r)
{
    json_t *verdict = NULL;
    for (int i = 0; i < job->count && !verdict; i++) {
        json_t *status = ask_status(job->agents[i].fd);
        if (status && strcmp(text_of(status, "state"), "running") == 0)
            verdict = ask_for(job->agents[i].fd, MSG_VERIFY, MSG_VERIFIED, VERIFY_MS);
        json_decref(status);
    }
    if (!verdict)
        pm_quit(1, "no node of the job answers");
    const char *result = text_of(verdict, "result");
    int code = strcmp(result, "equal") == 0     ? 0
               : strcmp(result, "differs") == 0 ? EXIT_DIFFER
               : strcmp(result, "busy") == 0    ? EXIT_BUSY
                                                : 1;
    if (r->json) {
        json_dumpf(verdict, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        tell_verdict(verdict, result);
    }
    json_decref(verdict);
    return code;
}

static int node_number(const char *text)
{
    char *end;
    long node = strtol(text, &end, 10);
    if (end == text || *end || node < 0 || node > 4096)
        pm_quit(2, "%s is not a node number", text);
    return (int)node;
}

enum { NAME_BYTES = 17 }; /* of a process */

struct pid_list {
    pid_t pids[1024];
    int count;
};

static void add_tree(struct pid_list *l, long long pid)
{
    char path[64];
    int child;
    for (int i = 0; i < l->count; i++)
        if (l->pids[i] == (pid_t)pid)
            return;
    if (pid <= 1 || l->count == (int)(sizeof l->pids / sizeof l->pids[0]))
        return;
    l->pids[l->count++] = (pid_t)pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%d", &child) == 1)
        if (!start_is_of(child)) /* else it starts another node */
            add_tree(l, child);
    if (f)
        fclose(f);
}

static void add_live(struct pid_list *l, const json_t *rank)
{
    const char *state = json_string_value(json_object_get(rank, "state"));
    if (state && (strcmp(state, "running") == 0 || strcmp(state, "standby") == 0))
        add_tree(l, int_of(rank, "pid"));
}

/* Of a process, as the kernel has it: its state (a letter, 0: there is none) and its parent. */
static char look_at(long long pid, char *name, long long *parent)
{
    char path[64], line[512], state = 0;
    snprintf(path, sizeof path, "/proc/%lld/stat", pid);
    FILE *f = fopen(path, "re");
    char *from = f && fgets(line, sizeof line, f) ? strchr(line, '(') : NULL, *after = from ? strrchr(from, ')') : NULL;
    *parent = 0;
    if (after && sscanf(after + 1, " %c %lld", &state, parent) == 2)
        snprintf(name, NAME_BYTES, "%.*s", (int)(after - from - 1), from + 1);
    if (f)
        fclose(f);
    return state;
}

static long long parent_of(long long pid)
{
    char name[NAME_BYTES];
    long long parent;
    (void)look_at(pid, name, &parent);
    return parent;
}

/* Who listens at the other end. */
static long long owner_of(int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : 0;
}

/* An agent that is stopped says nothing of itself: what is known is who it is, and whose child. */
static bool add_stopped(struct pid_list *l, long long agent)
{
    char name[NAME_BYTES], above[NAME_BYTES];
    long long stub, launcher;
    if (agent <= 0 || look_at(agent, name, &stub) != 'T')
        return false;
    add_tree(l, agent);
    if (look_at(stub, above, &launcher) && strcmp(above, name) == 0)
        add_tree(l, stub);
    return true;
}

static void add_answered(struct pid_list *l, const json_t *status)
{
    long long stub = int_of(status, "stub_pid");
    add_tree(l, int_of(status, "agent_pid"));
    const json_t *ranks = json_object_get(status, "ranks"); /* children of others where keelrun did not start them */
    for (size_t i = 0; i < json_array_size(ranks); i++)
        add_live(l, json_array_get(ranks, i));
    if (parent_of(int_of(status, "agent_pid")) == stub)
        add_tree(l, stub);
}

/* The agent with everything below it, and the stub: what dies when a machine dies. The launcher stays where it is not the stub: it runs where
 * keelrun runs. */
static int do_kill_node(const struct job_agents *job, const char *text, int signal_number)
{
    static struct pid_list l;
    int node = node_number(text);
    int fd = -1;
    for (int i = 0; i < job->count && fd < 0; i++)
        if (job->agents[i].node == node)
            fd = job->agents[i].fd;
    if (!add_stopped(&l, owner_of(fd))) {
        json_t *status = fd >= 0 ? ask_status(fd) : NULL;
        if (!status)
            pm_quit(1, "node %d of the job is not on this machine, or does not answer", node);
        add_answered(&l, status);
        json_decref(status);
    }
    uint64_t now = clock_now_ns();
    for (int i = 0; i < l.count; i++)
        kill(l.pids[i], signal_number);
    json_t *pids = codec_ints((int *)l.pids, l.count);
    json_t *told =
        json_pack("{s:I, s:i, s:i, s:o}", "t_ns", (json_int_t)now, "node", node, "signal", signal_number, "pids", pids);
    json_dumpf(told, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(told);
    return 0;
}

/* Where the node was started, which its namespace is numbered for: one that took the number of another one, which did not come, lives elsewhere. Any
 * agent knows all. Where none is left that answers, the number is most likely its own. */
static int place_of(const struct job_agents *job, int node)
{
    for (int i = 0; i < job->count; i++) {
        json_t *status = ask_status(job->agents[i].fd);
        const char *host = json_string_value(json_array_get(json_object_get(status, "hosts"), (size_t)node));
        int place = host ? bed_netns_node(host) : -1;
        json_decref(status);
        if (place >= 0)
            return place;
    }
    fprintf(stderr, "keelctl: no agent answers that knows where node %d is: its namespace is taken to be number %d\n",
            node, node);
    return node;
}

static int do_bed(const struct job_agents *job, const char *what, const char *node)
{
    char name[64];
    bool up = strcmp(what, "heal") == 0;
    if (!up && strcmp(what, "cut") != 0)
        pm_quit(2, "bed %s is not known: cut or heal", what);
    int place = place_of(job, node_number(node));
    uint64_t now = clock_now_ns();
    bed_netns_name(job->id, place, name, sizeof name);
    if (bed_netns_link(job->id, place, up) != 0)
        pm_quit(1, "the link of node %s, namespace %s, cannot be changed", node, name);
    printf("{\"t_ns\":%" PRIu64 ",\"node\":%s,\"link\":\"%s\",\"namespace\":\"%s\"}\n", now, node, up ? "up" : "down",
           name);
    return 0;
}

/* The same there: Keel has the same path on all hosts. What we pass on has no character that a shell would take. */
static _Noreturn void run_there(const struct request *r)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    char self[4096], signal_number[16];
    char *argv[ARGS_MAX + 8] = {"ssh", (char *)r->host, self};
    int n = 3;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    if (r->json)
        argv[n++] = "--json";
    if (r->detect)
        argv[n++] = "--detect";
    if (r->signal != SIGKILL) {
        snprintf(signal_number, sizeof signal_number, "%d", r->signal);
        argv[n++] = "--signal";
        argv[n++] = signal_number;
    }
    for (int i = 0; i < r->count; i++) {
        if (r->words[i][strspn(r->words[i], plain)])
            pm_quit(2, "%s is not a command, job or node", r->words[i]);
        argv[n++] = r->words[i];
    }
    execvp(argv[0], argv);
    char why[128];
    pm_cannot_run("ssh", errno, why, sizeof why);
    pm_quit(1, "%s", why);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct request *r = state->input;
    char *end;
    switch (key) {
    case 'j':
        r->json = true;
        return 0;
    case 'd':
        r->detect = true;
        return 0;
    case 'H':
        if (arg[0] == '-' || !arg[0])
            pm_quit(2, "--host: %s is not a host", arg);
        r->host = arg;
        return 0;
    case 's':
        r->signal = (int)strtol(arg, &end, 10);
        if (*end || r->signal < 1 || r->signal > 64)
            pm_quit(2, "--signal: %s is not a signal number", arg);
        r->aimed = true;
        return 0;
    case ARGP_KEY_ARG:
        if (r->count == ARGS_MAX)
            pm_quit(2, "too many arguments");
        r->words[r->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Returns the exit code. */
static int run(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", 'j', NULL, 0, "list, status, verify: one line of JSON", 0},
        {"detect", 'd', NULL, 0, "status: what each node's detector sees, too", 0},
        {"host", 'H', "HOST", 0, "do it on that host, by ssh", 0},
        {"signal", 's', "NUMBER", 0, "kill-node: this signal instead of 9 (19 freezes, 18 thaws)", 0},
        {0}};
    static const struct argp argp = {options, parse_option, "COMMAND [ARGUMENT...]", doc, NULL, NULL, NULL};
    struct request r = {.signal = SIGKILL};
    int count;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &r);
    if (r.host)
        run_there(&r);
    const char *command = r.count ? r.words[0] : "";
    struct {
        const char *name;
        int low, high; /* arguments */
    } known[] = {{"list", 0, 0},      {"status", 0, 1}, {"attach", 0, 1}, {"stop", 0, 1},
                 {"kill-node", 2, 2}, {"bed", 3, 3},    {"verify", 0, 1}};
    size_t k = 0;
    while (k < sizeof known / sizeof known[0] && strcmp(known[k].name, command) != 0)
        k++;
    if (k == sizeof known / sizeof known[0])
        pm_quit(2, *command ? "%s is not a command; see keelctl --help" : "a command is missing; see keelctl --help",
                command);
    if (r.count - 1 < known[k].low || r.count - 1 > known[k].high)
        pm_quit(2, "wrong number of arguments for %s; see keelctl --help", command);
    if (r.json && k != 0 && k != 1 && k != 6)
        pm_quit(2, "--json is for list, status and verify");
    if (r.detect && k != 1)
        pm_quit(2, "--detect is for status");
    if (r.aimed && k != 4)
        pm_quit(2, "--signal is for kill-node");
    static struct found_agent *all; /* until the end of the program */
    const char *wanted = k == 5 ? r.words[2] : r.count > 1 ? r.words[1] : NULL;
    all = finder_agents(wanted, &count);
    if (k == 0)
        return do_list(all, count, &r);
    struct job_agents job = select_job(all, count, wanted);
    switch (k) {
    case 1:
        return do_status(&job, &r);
    case 2:
        return do_attach(&job);
    case 3:
        return do_stop(&job);
    case 4:
        return do_kill_node(&job, r.words[2], r.signal);
    case 5:
        return do_bed(&job, r.words[1], r.words[3]);
    default:
        return do_verify(&job, &r);
    }
}

int main(int argc, char **argv)
{
    int code = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout))
        pm_quit(1, "cannot write standard output: %s", strerror(errno));
    return code;
}
