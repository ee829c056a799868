/* keelrun: launcher, job server and the user's terminal of a job. */
#include "pm/bed/grid.h"
#include "pm/run/job.h"
#include "pm/run/job_grid.h"
#include "pm/run/restore.h"
#include "pm/wire/codec.h"
#include "pm/wire/descriptors.h"
#include "pm/wire/orphans.h"
#include "pm/wire/quit.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/plural.h"
#include "runtime/base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef KEEL_LIBEXECDIR
#define KEEL_LIBEXECDIR "/usr/libexec/keel"
#endif

/* A program of ours: beside keelrun, where an installation has it seen from there (it may have been moved as a whole),
 * or where it was installed. */
static char *find_program(const char *name)
{
    static const char *const places[] = {"", "../libexec/keel/"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        char *path = pm_printf("%.*s/%s%s", (int)(slash - self), self, places[i], name);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    char *path = pm_printf("%s/%s", KEEL_LIBEXECDIR, name);
    if (access(path, X_OK) != 0)
        pm_quit(1, "%s is neither beside keelrun nor in %s", name, KEEL_LIBEXECDIR);
    return path;
}

/* Our address for that host, or why there is none (until the next call of such a kind). */
static const char *local_towards(const char *name, char *out, size_t size)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM}, *found = NULL;
    struct sockaddr_storage local;
    socklen_t len = sizeof local;
    int rc = getaddrinfo(host_address(name), "9", &hints, &found);
    if (rc != 0)
        return gai_strerror(rc);
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                getsockname(fd, (struct sockaddr *)&local, &len) == 0;
    int failed = errno;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    if (!good)
        return strerror(failed);
    uv_ip_name((struct sockaddr *)&local, out, size);
    return NULL;
}

/* Our address as the hosts see it: that of the interface which the packets to the first remote one leave from. A host
 * that has no address here is its launcher's matter, which may know it; the node is missing if not. */
static void interface_towards(const struct host_list *hosts, char *out, size_t size)
{
    char why[128] = "";
    const char *name = NULL;
    bool any = false;
    snprintf(out, size, "127.0.0.1");
    for (int i = 0; i < hosts->count; i++) {
        const char *failed = local_towards(hosts->names[i], out, size);
        any |= !failed;
        if (failed && !name) {
            name = hosts->names[i];
            snprintf(why, sizeof why, "%s", failed);
        }
        if (!failed && strncmp(out, "127.", 4) != 0 && strcmp(out, "::1") != 0)
            return;
    }
    if (!any && name)
        pm_quit(1, "host %s cannot be reached: %s", name, why);
}

static void agent_waiting(uv_stream_t *listener, int status)
{
    if (status == 0)
        job_agent_connected(listener->data, false);
}

static void agent_waiting_again(uv_stream_t *listener, int status)
{
    if (status == 0)
        job_agent_connected(listener->data, true);
}

/* Returns its port. */
static int open_listener(struct job *j, uv_tcp_t *listener, const char *host, uv_connection_cb waiting)
{
    struct sockaddr_storage a;
    int len = sizeof a;
    if (uv_ip4_addr(host, 0, (struct sockaddr_in *)&a) != 0)
        uv_ip6_addr(host, 0, (struct sockaddr_in6 *)&a);
    uv_tcp_init(&j->loop, listener);
    listener->data = j;
    int rc = uv_tcp_bind(listener, (struct sockaddr *)&a, 0);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)listener, 512, waiting);
    if (rc == 0)
        rc = uv_tcp_getsockname(listener, (struct sockaddr *)&a, &len);
    if (rc != 0)
        pm_quit(1, "cannot listen on %s: %s", host, uv_strerror(rc));
    return ntohs(((struct sockaddr_in *)&a)->sin_port);
}

/* Those that were closed, so that nothing else gets their numbers. What is written to a closed standard output fails,
 * as it does everywhere; who closes standard error does not want to be told. */
static void occupy_standard_descriptors(void)
{
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", modes[fd]); /* the lowest free number: fd */
}

/* *before is what it was: the launchers' and, on this machine, the ranks'. */
static void enough_descriptors(int nodes, struct rlimit *before)
{
    long needed = descriptors_of_keelrun(nodes), missing;
    descriptors_raise(before);
    missing = descriptors_missing(needed);
    if (missing)
        pm_quit(1, "%d %s %ld descriptors (4 each), the hard limit is %ld: see ulimit -Hn", nodes,
                plural(nodes, "node needs", "nodes need"), needed, needed - missing);
}

static void launcher_ended(void *user, int node, int wait_status, const char *text)
{
    job_launcher_ended(user, node, wait_status, text);
}

static void hand_over(void *user, int by, int node, const struct start_plan *plan)
{
    job_hand_over(user, by, node, plan);
}

static bool is_guardian(void *netns, pid_t pid)
{
    return netns && bed_netns_guardian(netns) == pid;
}

/* Ends the program if the agents could not be told what they need. */
static void check_launcher(const struct options *o)
{
    const char *refused = launch_refuses(o);
    if (refused)
        pm_quit(2,
                "launcher %s does not carry standard input, by which agents are told what they need: use another "
                "(--launcher ssh)",
                refused);
}

/* What this process is to itself and to the kernel: names, faults, random numbers, signals. */
static void begin_process(void)
{
    codec_init();
    log_init("keelrun");
    log_check_level();
    fault_init(-1, -1, 0);
    if (sodium_init() < 0)
        pm_quit(1, "no source of random numbers");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not become larger (ulimit -f) is told like a full disk */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Its name and its secret. */
static void name_job(struct job *j)
{
    randombytes_buf(&j->id, sizeof j->id);
    j->door.secret = secret_alloc(SESSION_SECRET);
    if (!j->door.secret)
        pm_quit(1, "out of memory");
    randombytes_buf(j->door.secret, SESSION_SECRET);
}

/* Ranks begin in our working directory, and we in none cannot tell them which. */
static void check_directory(void)
{
    char cwd[4096];
    if (!getcwd(cwd, sizeof cwd))
        pm_quit(1, "the working directory, which is that of the ranks: %s", strerror(errno));
}

/* The grid that joins the nodes of the bed. Places whose node is dead at the start have numbers behind the others: who
 * lives there runs nothing, but forwards. */
static void join_as_grid(const struct options *o, struct bed_grid *grid)
{
    int next = o->job.nodes + o->job.spares;
    (void)grid_parse(&grid->grid, o->job.grid.grid);
    grid->kbit = o->link_kbit;
    grid->node_at = job_grid_numbers(&o->job);
    grid->at = pm_alloc((size_t)grid->grid.nodes * sizeof *grid->at);
    for (int32_t place = 0; place < grid->grid.nodes; place++) {
        if (grid->node_at[place] < 0)
            grid->node_at[place] = next++;
        grid->at[grid->node_at[place]] = place;
    }
}

static struct bed_netns *make_bed(const struct job *j)
{
    const struct job_settings *s = &j->options->job;
    char why[256], *nsexec = find_program("keel-nsexec");
    struct bed_grid grid = {0};
    if (j->options->bed_grid)
        join_as_grid(j->options, &grid);
    struct bed_netns *netns =
        bed_netns_create(j->id, grid.at ? grid.grid.nodes : s->nodes + s->spares, s->rails.n > 1 ? s->rails.n : 1,
                         grid.at ? &grid : NULL, nsexec, why, sizeof why);
    free(grid.at);
    free(grid.node_at);
    free(nsexec);
    if (!netns)
        pm_quit(1, "%s", why);
    return netns;
}

/* Opens both listeners, and hands the nodes to their launchers. plan's host is ours. */
static void open_job(struct job *j, struct launch_plan *plan)
{
    static const struct launch_events events = {launcher_ended, hand_over};
    uv_loop_init(&j->loop);
    job_io_init(j);
    plan->port = open_listener(j, &j->door.listener, plan->host, agent_waiting);
    j->door.console_port = open_listener(j, &j->door.console, plan->host, agent_waiting_again);
    j->launch = launch_create(&j->loop, plan, &events, j);
}

int main(int argc, char **argv)
{
    static struct options options;
    static struct job job;
    char host[64] = "127.0.0.1";
    struct bed_netns *netns = NULL;
    occupy_standard_descriptors();
    options_parse(&options, argc, argv);
    check_launcher(&options);
    begin_process();
    job.options = &options;
    name_job(&job);
    check_directory();
    restore_begin(&options);
    static struct rlimit descriptors;
    enough_descriptors(options.job.nodes + options.job.spares, &descriptors);
    static char *keel_launch; /* until the end, which may come by pm_quit */
    free(find_program("keeld"));
    keel_launch = find_program("keel-launch");
    job_io_open(&job, options.event_log);
    if (options.bed == BED_NETNS) {
        netns = make_bed(&job);
        bed_netns_address(-1, host, sizeof host);
    } else if (options.bed == BED_NONE) {
        interface_towards(&options.hosts, host, sizeof host);
    }
    struct launch_plan plan = {.options = &options,
                               .netns = netns,
                               .keel_launch = keel_launch,
                               .descriptors = &descriptors,
                               .job_id = job.id,
                               .host = host};
    open_job(&job, &plan);
    job_run(&job);
    /* launchers that hang (an ssh that gets no answer), agents whose stub was killed */
    orphans_kill(is_guardian, netns);
    bed_netns_destroy(netns);
    secret_free(job.door.secret, SESSION_SECRET);
    free(keel_launch);
    return job_io_finish(&job);
}
