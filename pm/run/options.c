#include "pm/run/options.h"

#include "pm/bed/bed.h"
#include "pm/run/allocation.h"
#include "pm/run/duration.h"
#include "pm/run/watchers.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "pm/wire/settings.h"
#include "runtime/base/racks.h"

#include <argp.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAN_OUT = 100 };
enum { MODE_COPIES = VIEW_ABORT + 1 }; /* VIEW_DEGRADE, but for what degrade says of ranks that crash */

enum option_key {
    KEY_NODES = 256,
    KEY_HOSTS,
    KEY_HOSTFILE,
    KEY_PPN,
    KEY_SPARES,
    KEY_ON_FAILURE,
    KEY_BED,
    KEY_LAUNCHER,
    KEY_LAUNCHER_EXEC,
    KEY_LABEL,
    KEY_QUIET,
    KEY_USAGE,
    KEY_EVENT_LOG,
    KEY_START_TIMEOUT,
    KEY_TIMEOUT,
    KEY_PROVIDER,
    KEY_PROBE,
    KEY_TOPOLOGY,
    KEY_SECURE,
    KEY_SILENCE,
    KEY_DARK,
    KEY_STOPPED,
    KEY_FAN_OUT,
    KEY_CONSOLE_TIMEOUT,
    KEY_COPIES_AT,
    KEY_TOPOLOGY_FILE,
    KEY_RACK_OF,
    KEY_ROOM,
};

static const struct argp_option option_table[] = {
    {"ranks", 'n', "RANKS", 0, "number of ranks (default: as many as the hosts have slots, if that is said)", 1},
    {"np", 0, NULL, OPTION_ALIAS, NULL, 1},
    {"nodes", KEY_NODES, "N", 0, "run on N emulated nodes of this machine (see --bed)", 2},
    {"hosts", KEY_HOSTS, "A,B:4,C[1-8]", 0,
     "run on these hosts, with so many slots for ranks; the last ones are the spares (default: those that a batch "
     "system "
     "has given)",
     2},
    {"host", 0, NULL, OPTION_ALIAS, NULL, 2},
    {"hostfile", KEY_HOSTFILE, "FILE", 0, "run on the hosts in FILE, one a line, which may say slots=N", 2},
    {"machinefile", 0, NULL, OPTION_ALIAS, NULL, 2},
    {"ppn", KEY_PPN, "K", 0, "K ranks on each node (default: spread evenly)", 3},
    {"spares", KEY_SPARES, "S", 0, "S further nodes that take the place of lost ones (default 0)", 3},
    {"room", KEY_ROOM, "N", 0,
     "room for N nodes that come later: those that were declared dead and live come back as spares (default: as many "
     "as "
     "the job has nodes, at least 4)",
     3},
    {"on-failure", KEY_ON_FAILURE, "MODE", 0,
     "substitute (a spare takes over; the default with spares), copies (lost ranks stay lost, spares take copies of "
     "data; "
     "the default without), degrade (the same, and that a rank was lost is no failure), abort",
     3},
    {"copies-at", KEY_COPIES_AT, "WHERE", 0,
     "where further copies of a node's data are: half (half the ring of nodes away, and in another rack where racks "
     "are told; the default) or next (on the next node)",
     3},
    {"topology-file", KEY_TOPOLOGY_FILE, "FILE", 0,
     "racks, to keep copies apart: a line \"HOSTS RACK [SWITCH ...]\" for each, with lists of hosts as in n[01-16]", 3},
    {"rack-of", KEY_RACK_OF, "EXPRESSION", 0,
     "racks by the hosts' names: what the first group of this regular expression matches is the host's rack", 3},
    {"bed", KEY_BED, "BED", 0, "emulated nodes: loopback (the default) or netns (network namespaces; needs root)", 4},
    {"launcher", KEY_LAUNCHER, "NAME", 0,
     "how to reach hosts: ssh, slurm, pbs, lsf, sge, ... as mpiexec.hydra knows it", 4},
    {"launcher-exec", KEY_LAUNCHER_EXEC, "FILE", 0, "program to use as the launcher's", 4},
    {"fan-out", KEY_FAN_OUT, "K", 0,
     "keelrun starts at most K nodes itself; of more the others are started by agents, K by each (default 100)", 4},
    {"provider", KEY_PROVIDER, "WAY", 0,
     "what carries data between nodes: tcp (the default), verbs (RDMA devices), auto (verbs if all nodes have one)", 4},
    {"probe", KEY_PROBE, "WAY", 0,
     "how nodes watch each other: verbs (RDMA devices), ofi (libfabric), auto (verbs where there is a device; the "
     "default)",
     4},
    {"topology", KEY_TOPOLOGY, "SHAPE", 0,
     "who watches whom: ring (the default), torus, hypercube, random, or file:PATH with a line \"READER WATCHED\" for "
     "each",
     4},
    {"secure", KEY_SECURE, NULL, 0,
     "encrypt and authenticate what ranks and nodes send each other (large transfers are slower)", 4},
    {"silence", KEY_SILENCE, "TIME", 0,
     "a node is dead when neither it nor its host has answered for TIME (default 3s; 0.5 and 500ms are times, too); "
     "four times that if data or the job would be lost with it",
     4},
    {"stopped", KEY_STOPPED, "TIME", 0,
     "a node whose host answers, but whose agent does not (a signal, a debugger, no processor), is dead when it was "
     "waited for for TIME, or never (default 30s)",
     4},
    {"dark", KEY_DARK, "MS", OPTION_HIDDEN, NULL, 4},
    {"label", KEY_LABEL, NULL, 0, "put the rank before each line of output", 5},
    {"quiet", KEY_QUIET, NULL, 0, "do not tell of ranks and nodes that die on the way", 5},
    {"event-log", KEY_EVENT_LOG, "FILE", 0, "write the job's events to FILE, one JSON object a line", 5},
    {"start-timeout", KEY_START_TIMEOUT, "SECONDS", 0, "how long each node has to come and to be ready (default 30)",
     6},
    {"console-timeout", KEY_CONSOLE_TIMEOUT, "SECONDS", 0,
     "a node that cannot reach keelrun for this time does not keep its output any longer (default 600)", 6},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "end the job after this time, with exit code 124 (default: never)", 6},
    {"help", '?', NULL, 0, "print this", -1},
    {"usage", KEY_USAGE, NULL, 0, "print a short summary", -1},
    {"version", 'V', NULL, 0, "print the version", -1},
    {0},
};

static int number(const char *name, const char *text, int low, int high)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < low || value > high)
        pm_quit(2, "%s: %s is not a number from %d to %d", name, text, low, high);
    return (int)value;
}

static int64_t milliseconds(const char *text, int low_ms, int high_ms, bool *unit)
{
    int64_t ms;
    return duration_parse(text, &ms, unit) && ms >= low_ms && ms <= high_ms ? ms : -1;
}

static int stopped(const char *text)
{
    bool unit;
    int64_t ms = milliseconds(text, STOPPED_MIN_MS, STOPPED_MAX_MS, &unit);
    if (strcmp(text, "never") == 0)
        return STOPPED_NEVER_MS;
    if (ms < 0)
        pm_quit(2, "--stopped: %s is neither a time from %ds to %ds nor never", text, STOPPED_MIN_MS / 1000,
                STOPPED_MAX_MS / 1000);
    return (int)ms;
}

/* Once it was in milliseconds, from 200 on. What was right then has that meaning still: nobody waits for 200 seconds for a host. */
static int silence(const char *text)
{
    char *end;
    errno = 0;
    long plain = strtol(text, &end, 10);
    if (errno == 0 && *text >= '0' && *text <= '9' && !*end && plain >= SILENCE_MIN_MS && plain <= SILENCE_MAX_MS) {
        fprintf(stderr,
                "keelrun: --silence %s without a unit is taken for milliseconds, which is deprecated: say %sms\n", text,
                text);
        return (int)plain;
    }
    bool unit;
    int64_t ms = milliseconds(text, SILENCE_MIN_MS, SILENCE_MAX_MS, &unit);
    if (ms < 0)
        pm_quit(2, "--silence: %s is not a time from %dms to %ds, as 0.5s or 500ms is", text, SILENCE_MIN_MS,
                SILENCE_MAX_MS / 1000);
    return (int)ms;
}

static int choice(const char *name, const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    pm_quit(2, "%s: %s is not known", name, text);
}

static _Noreturn void help(unsigned how);

struct parsing {
    struct options *o;
    int dark_ms;
    bool stopped;
    const char *at_fault; /* the argument that could not be understood */
    bool on_failure_given, room_given, nodes_given, hosts_given, list_given, file_given;
    int on_failure; /* enum view_policy, or MODE_COPIES */
    const char *watch_file;
};

static void parse_topology(struct parsing *p, const char *text)
{
    static const char *const shapes[] = {"ring", "torus", "hypercube", "random", NULL};
    if (strncmp(text, "file:", 5) == 0) {
        p->o->job.topology = MEMBER_FILE;
        p->watch_file = text + 5;
    } else {
        p->o->job.topology = (enum member_topology)choice("--topology", text, shapes);
    }
}

static error_t parse_watching(struct parsing *p, int key, const char *arg)
{
    static const char *const ways[] = {"auto", "verbs", "ofi", NULL};
    static const char *const providers[] = {"tcp", "verbs", "auto", NULL};
    switch (key) {
    case KEY_PROVIDER:
        p->o->job.provider = (enum provider_choice)choice("--provider", arg, providers);
        return 0;
    case KEY_PROBE:
        p->o->job.probe = (enum probe_choice)choice("--probe", arg, ways);
        return 0;
    case KEY_TOPOLOGY:
        parse_topology(p, arg);
        return 0;
    case KEY_SECURE:
        p->o->job.secure = true;
        return 0;
    case KEY_SILENCE:
        p->o->job.silence_ms = silence(arg);
        return 0;
    case KEY_DARK:
        p->dark_ms = number("--dark", arg, SILENCE_MIN_MS, SILENCE_MAX_MS);
        return 0;
    case KEY_STOPPED:
        p->stopped = true;
        p->o->job.stopped_ms = stopped(arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_copies(struct parsing *p, int key, char *arg)
{
    static const char *const places[] = {"half", "next", NULL};
    switch (key) {
    case KEY_COPIES_AT:
        p->o->job.copies.at = (enum copies_at)choice("--copies-at", arg, places);
        return 0;
    case KEY_TOPOLOGY_FILE:
        p->o->topology_file = arg;
        return 0;
    case KEY_RACK_OF:
        p->o->rack_of = arg;
        return 0;
    default:
        return parse_watching(p, key, arg);
    }
}

static void parse_hosts(struct parsing *p, const char *list)
{
    char why[256];
    if (!hosts_parse_list(&p->o->hosts, list, why, sizeof why))
        pm_quit(2, "--hosts: %s", why);
    p->hosts_given = p->list_given = true;
}

static void parse_hostfile(struct parsing *p, const char *path)
{
    char why[256], *text = read_whole_file(path);
    if (!hosts_parse_file(&p->o->hosts, text, why, sizeof why))
        pm_quit(2, "%s: %s", path, why);
    free(text);
    p->hosts_given = p->file_given = true;
}

static error_t parse_time(struct parsing *p, int key, char *arg)
{
    enum { YEARS_20 = 20 * 365 * 86400 };
    switch (key) {
    case KEY_START_TIMEOUT:
        p->o->start_timeout_s = number("--start-timeout", arg, 1, 86400);
        return 0;
    case KEY_CONSOLE_TIMEOUT:
        p->o->console_s = number("--console-timeout", arg, 1, YEARS_20);
        return 0;
    case KEY_TIMEOUT:
        p->o->timeout_s = number("--timeout", arg, 1, YEARS_20);
        return 0;
    default:
        return parse_copies(p, key, arg);
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    static const char *const modes[] = {"substitute", "degrade", "abort", "copies", NULL};
    static const char *const beds[] = {"", "loopback", "netns", NULL};
    struct parsing *p = state->input;
    struct options *o = p->o;
    switch (key) {
    case 'n':
        o->job.ranks = number("-n", arg, 1, LAYOUT_MAX_RANKS);
        break;
    case KEY_NODES:
        o->job.nodes = number("--nodes", arg, 1, BED_NODES_MAX);
        p->nodes_given = true;
        break;
    case KEY_HOSTS:
        parse_hosts(p, arg);
        break;
    case KEY_HOSTFILE:
        parse_hostfile(p, arg);
        break;
    case KEY_PPN:
        o->ppn = number("--ppn", arg, 1, LAYOUT_MAX_RANKS);
        break;
    case KEY_SPARES:
        o->job.spares = number("--spares", arg, 0, BED_NODES_MAX);
        break;
    case KEY_ROOM:
        o->job.room = number("--room", arg, 0, LAYOUT_MAX_NODES);
        p->room_given = true;
        break;
    case KEY_ON_FAILURE:
        p->on_failure = choice("--on-failure", arg, modes);
        p->on_failure_given = true;
        break;
    case KEY_BED:
        o->bed = (enum bed)choice("--bed", arg[0] ? arg : "?", beds);
        break;
    case KEY_LAUNCHER:
        o->launcher = arg;
        break;
    case KEY_LAUNCHER_EXEC:
        o->launcher_exec = arg;
        break;
    case KEY_FAN_OUT:
        o->fan_out = number("--fan-out", arg, 1, LAYOUT_MAX_NODES);
        break;
    case KEY_LABEL:
        o->label = true;
        break;
    case KEY_QUIET:
        o->quiet = true;
        break;
    case '?':
        help(ARGP_HELP_STD_HELP);
    case KEY_USAGE:
        help(ARGP_HELP_USAGE);
    case 'V':
        puts("keelrun (Keel) " KEEL_VERSION);
        exit(0);
    case KEY_EVENT_LOG:
        o->event_log = arg;
        break;
    case ARGP_KEY_ARGS:
        o->program = state->argv + state->next;
        break;
    case ARGP_KEY_ERROR:
        if (state->next > 0 && state->next <= state->argc)
            p->at_fault = state->argv[state->next - 1];
        break;
    default:
        return parse_time(p, key, arg);
    }
    return 0;
}

/* As many ranks as the hosts have slots, if the user leaves it open and somebody has said that; ends the program if it stays open. */
static void count_ranks(struct options *o, const struct parsing *p)
{
    if (o->job.ranks == 0 && !o->program) {
        fprintf(stderr, "usage: keelrun -n RANKS [OPTION...] PROGRAM [ARGUMENT...]; see keelrun --help\n");
        exit(2);
    }
    int of_hosts = o->hosts.count - o->job.spares;
    if (o->job.ranks == 0 && p->hosts_given && o->hosts.slots_said && of_hosts > 0 && !o->ppn)
        o->job.ranks = hosts_slots(&o->hosts, of_hosts);
    if (o->job.ranks == 0)
        pm_quit(2, "-n RANKS is missing; see keelrun --help");
    if (!o->program)
        pm_quit(2, "the program to run is missing");
}

static void check_together(const struct options *o, const struct parsing *p)
{
    if (p->hosts_given && (p->nodes_given || o->bed != BED_NONE))
        pm_quit(2, "--hosts and --hostfile cannot be used with --nodes or --bed");
    if (p->list_given && p->file_given)
        pm_quit(2, "--hosts and --hostfile cannot be used together");
    if (o->job.secure && o->job.probe == PROBE_VERBS)
        pm_quit(2, "--secure cannot be used with --probe verbs: what RDMA devices read carries no authenticator");
    if (o->job.secure && o->job.provider == PROVIDER_VERBS)
        pm_quit(2, "--secure cannot be used with --provider verbs: what RDMA devices write and read is not encrypted");
    if (!p->hosts_given && (o->launcher || o->launcher_exec))
        pm_quit(2, "--launcher is of use only with --hosts or --hostfile");
}

/* Hosts that get no rank are left out, as mpiexec does; the spares stay at the end of the list. */
static void lay_out_on_hosts(struct options *o)
{
    o->job.nodes = o->hosts.count - o->job.spares;
    if (o->job.nodes < 1)
        pm_quit(2, "%d hosts are too few for %d spares and a node", o->hosts.count, o->job.spares);
    int wanted = o->ppn ? (o->job.ranks + o->ppn - 1) / o->ppn : o->job.ranks;
    bool by_slots = o->hosts.slots_said && !o->ppn;
    if (by_slots)
        wanted = hosts_layout(&o->hosts, o->job.nodes, o->job.ranks, o->job.rank_node);
    if (wanted == 0)
        pm_quit(2, "%d ranks are more than the max_slots of the hosts allow", o->job.ranks);
    if (wanted < o->job.nodes) {
        hosts_drop(&o->hosts, wanted, o->job.nodes);
        o->job.nodes = wanted;
    }
}

static void lay_out(struct options *o, const struct parsing *p)
{
    o->job.rank_node = pm_alloc((size_t)o->job.ranks * sizeof *o->job.rank_node);
    if (p->hosts_given)
        lay_out_on_hosts(o);
    else if (!p->nodes_given)
        o->job.nodes = o->ppn ? (o->job.ranks + o->ppn - 1) / o->ppn : 1;
    if (o->job.nodes > o->job.ranks)
        pm_quit(2, "%d ranks on %d nodes: every node needs at least one rank", o->job.ranks, o->job.nodes);
    if (p->hosts_given && o->hosts.slots_said && !o->ppn)
        return;
    if (!layout_ranks(o->job.ranks, o->job.nodes, o->ppn, o->job.rank_node)) {
        assert(o->ppn > 0);
        pm_quit(2, "%d ranks with %d on each node need %d nodes, not %d", o->job.ranks, o->ppn,
                (o->job.ranks + o->ppn - 1) / o->ppn, o->job.nodes);
    }
}

static void check_nodes(struct options *o, struct parsing *p)
{
    if (o->program && !p->hosts_given && !p->nodes_given && o->bed == BED_NONE)
        p->hosts_given = allocation_hosts(&o->hosts);
    count_ranks(o, p);
    check_together(o, p);
    lay_out(o, p);
    if (!p->hosts_given && o->bed == BED_NONE)
        o->bed = BED_LOOPBACK;
    if (o->bed != BED_NONE && o->job.nodes + o->job.spares > BED_NODES_MAX)
        pm_quit(2, "%d nodes do not fit on one machine: at most %d with the spares", o->job.nodes + o->job.spares,
                BED_NODES_MAX);
    int mode = p->on_failure_given ? p->on_failure : o->job.spares ? VIEW_SUBSTITUTE : MODE_COPIES;
    o->job.on_failure = mode == MODE_COPIES ? VIEW_DEGRADE : (enum view_policy)mode;
    o->job.degrade_asked = mode == VIEW_DEGRADE;
}

static const struct argp argp = {option_table,
                                 parse_option,
                                 "PROGRAM [ARGUMENT...]",
                                 "Run a program on several nodes and keep it running when nodes die.",
                                 NULL,
                                 NULL,
                                 NULL};

static _Noreturn void help(unsigned how)
{
    argp_help(&argp, stdout, how, program_invocation_short_name);
    exit(fflush(stdout) == 0 ? 0 : 1);
}

static void read_watchers(struct options *o, const char *path)
{
    struct watchers watchers = {0};
    char why[200], *text = read_whole_file(path);
    if (watchers_parse(&watchers, text, o->job.nodes + o->job.spares, why, sizeof why))
        pm_quit(2, "%s: %s", path, why);
    free(text);
    o->job.edges = watchers.edges;
    o->job.edge_count = watchers.count;
}

/* The nodes of a bed share this machine's processors, and each has something to say to all others: with many of them a node stands
 * still at times because the others run, above all while all start. */
static double crowd(const struct options *o)
{
    enum { NODES_A_CORE = 16 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN), nodes = o->job.nodes + o->job.spares;
    double load = (double)nodes / (double)(NODES_A_CORE * (cores > 0 ? cores : 1));
    return o->bed == BED_NONE || load <= 1 ? 1 : load;
}

/* Processors that have N times as many nodes to carry as they carry easily are asked for as many looks as before, and what they need for an
 * answer grows with the square: it is waited for so long. */
static void choose_limits(struct options *o, const struct parsing *p)
{
    double load = crowd(o), needed = 5 * LATE_DEFAULT_MS * load * load, late = LATE_DEFAULT_MS * load;
    if (p->dark_ms)
        fprintf(stderr, "keelrun: --dark is deprecated: --silence says when a node is dead whose host does not answer, "
                        "--stopped when one is whose host does\n");
    if (p->dark_ms && !o->job.silence_ms)
        o->job.silence_ms = p->dark_ms;
    if (!o->job.silence_ms)
        o->job.silence_ms = needed < SILENCE_DEFAULT_MS ? SILENCE_DEFAULT_MS
                            : needed < SILENCE_MAX_MS   ? (int)needed
                                                        : SILENCE_MAX_MS;
    o->job.late_ms = late < LATE_MAX_MS ? (int)late : LATE_MAX_MS;
    if (!p->stopped)
        o->job.stopped_ms = STOPPED_DEFAULT_MS;
}

/* Room for as many again as there are, where the user does not say; a job that ends by the first death needs none. */
static void choose_room(struct options *o, const struct parsing *p)
{
    enum { ROOM_LEAST = 4 };
    int members = o->job.nodes + o->job.spares, most = LAYOUT_MAX_NODES - members;
    if (p->room_given && o->job.room > most)
        pm_quit(2, "--room %d: a job has %d nodes at most, with those that come later", o->job.room, LAYOUT_MAX_NODES);
    if (!p->room_given)
        o->job.room = members > ROOM_LEAST ? members : ROOM_LEAST;
    if (o->job.room > most)
        o->job.room = most;
    if (o->job.on_failure == VIEW_ABORT || o->job.topology == MEMBER_FILE) /* which says nothing of who comes later */
        o->job.room = 0;
}

/* ---- where copies go ---- */

/* What a topology file and --rack-of call the nodes; of a bed node0, node1, ... */
static const char **node_names(const struct options *o, int members)
{
    const char **name = pm_alloc((size_t)members * sizeof *name);
    char text[32];
    for (int m = 0; m < members; m++) {
        snprintf(text, sizeof text, "node%d", m);
        name[m] = o->hosts.count ? host_address(o->hosts.names[m]) : pm_strdup(text);
    }
    return name;
}

static struct rack_names *read_racks(const struct options *o, const char *const *name, int members)
{
    char why[256], *text = o->topology_file ? read_whole_file(o->topology_file) : NULL;
    struct rack_names *racks = pm_alloc((size_t)members * sizeof *racks);
    for (int m = 0; m < members; m++) {
        if (text && !racks_find(text, name[m], &racks[m], why, sizeof why))
            pm_quit(2, "%s: %s", o->topology_file, why);
        if (!text && !racks_match(o->rack_of, name[m], &racks[m], why, sizeof why))
            pm_quit(2, "--rack-of: %s", why);
    }
    free(text);
    return racks;
}

static void choose_copies(struct options *o)
{
    int members = o->job.nodes + o->job.spares;
    struct copy_rule *rule = &o->job.copies;
    struct rack_names *racks = NULL;
    char why[256];
    if (o->topology_file && o->rack_of)
        pm_quit(2, "--topology-file and --rack-of cannot be used together");
    if ((o->topology_file || o->rack_of) && rule->at == COPIES_AT_NEXT)
        pm_quit(2, "--copies-at next cannot be used with %s: the next node may be in the same rack",
                o->topology_file ? "--topology-file" : "--rack-of");
    const char **name = node_names(o, members);
    if (o->topology_file || o->rack_of)
        racks = read_racks(o, name, members);
    int *domain = pm_alloc((size_t)members * DOMAIN_LEVELS_MAX * sizeof *domain);
    if (!racks_number(rule, domain, name, racks, members, why, sizeof why))
        pm_quit(2, "%s: %s", o->topology_file ? o->topology_file : "--rack-of", why);
    settings_make_room(&o->job, members);
    for (int m = 0; m < members && !o->hosts.count; m++)
        free((char *)name[m]);
    free(name);
    free(racks);
}

/* For all processes of the job: one of them that valgrind runs could not hold the usual one. */
static void choose_range(struct options *o)
{
    const char *said = getenv(ADDRESS_RANGE_ENV);
    if (said && *said && !address_range_parse(said, &o->job.range))
        pm_quit(2, "%s=%s is not %s", ADDRESS_RANGE_ENV, said, ADDRESS_RANGE_FORM);
    if ((!said || !*said) && address_range_will_be_watched(o->program))
        o->job.range = address_range_small();
}

void options_parse(struct options *o, int argc, char **argv)
{
    struct parsing p = {.o = o};
    *o = (struct options){
        .start_timeout_s = 30,
        .console_s = 600,
        .fan_out = FAN_OUT,
    };
    argp_err_exit_status = 2;
    /* argp would say it in two lines, and without errors it gives no help either */
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_LONG_ONLY, NULL, &p) != 0)
        pm_quit(2, "%s is not an option, or its value is missing; see keelrun --help",
                p.at_fault ? p.at_fault : "something");
    check_nodes(o, &p);
    choose_limits(o, &p);
    choose_room(o, &p);
    if (o->job.topology == MEMBER_FILE)
        read_watchers(o, p.watch_file);
    choose_copies(o);
    choose_range(o);
}
