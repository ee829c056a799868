/* keelrun's options: one row each. A row whose member lies in o.job is a setting of the job: agents are told of it as
 * the list in runtime/base/job_settings.h says. */
#include "pm/run/options_parts.h"

#include "pm/bed/bed.h"
#include "pm/bed/grid.h"
#include "pm/run/allocation.h"
#include "pm/run/option_row.h"
#include "pm/wire/quit.h"
#include "runtime/base/number.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAN_OUT = 100, YEARS_20 = 20 * 365 * 86400, STDIN_KEEP = 1 << 20, STDIN_KEEP_MOST = 1 << 30 };

/* ---- options that need more than a row says ---- */

static void take_hosts(void *into, const char *list)
{
    struct parsing *p = into;
    char why[256];
    if (!hosts_parse_list(&p->o.hosts, list, why, sizeof why))
        pm_quit(2, "--hosts: %s", why);
    p->hosts_given = p->list_given = true;
}

static void take_hostfile(void *into, const char *path)
{
    struct parsing *p = into;
    char why[256], *text = read_whole_file(path);
    if (!hosts_parse_file(&p->o.hosts, text, why, sizeof why))
        pm_quit(2, "%s: %s", path, why);
    free(text);
    p->hosts_given = p->file_given = true;
}

static void take_bed(void *into, const char *text)
{
    static const char *const beds[] = {"", "loopback", "netns", "grid", NULL};
    struct parsing *p = into;
    int bed = option_choice("--bed", text[0] ? text : "?", beds);
    p->o.bed_grid = bed > BED_NETNS;
    p->o.bed = p->o.bed_grid ? BED_NETNS : (enum bed)bed;
}

static void take_topology(void *into, const char *text)
{
    static const char *const shapes[] = {"ring", "torus", "hypercube", "random", NULL};
    struct parsing *p = into;
    if (strncmp(text, "file:", 5) == 0) {
        p->o.job.topology = MEMBER_FILE;
        p->watch_file = text + 5;
    } else {
        p->o.job.topology = (enum member_topology)option_choice("--topology", text, shapes);
    }
}

/* Once it was in milliseconds, from 200 on. What was right then has that meaning still: nobody waits for 200 seconds
 * for a host. */
static void take_silence(void *into, const char *text)
{
    static const struct option_row time = {.name = "silence", .low = SILENCE_MIN_MS, .high = SILENCE_MAX_MS};
    struct parsing *p = into;
    int64_t plain;
    if (number_whole(text, SILENCE_MIN_MS, SILENCE_MAX_MS, &plain)) {
        fprintf(stderr,
                "keelrun: --silence %s without a unit is taken for milliseconds, which is deprecated: say %sms\n", text,
                text);
        p->o.job.silence_ms = (int)plain;
        return;
    }
    p->o.job.silence_ms = option_time(&time, text);
}

static void take_scrub(void *into, const char *text)
{
    struct parsing *p = into;
    int64_t mb = SCRUB_OFF;
    if (strcmp(text, "off") != 0 && !number_whole(text, 1, SCRUB_MAX_MB, &mb))
        pm_quit(2, "--scrub: %s is neither off nor a number of MB/s from 1 to %d", text, SCRUB_MAX_MB);
    p->o.job.scrub_mb = (int)mb;
}

static void take_rails(void *into, const char *text)
{
    struct parsing *p = into;
    char why[128];
    if (!rails_parse(text, &p->o.job.rails, why, sizeof why))
        pm_quit(2, "--rails: %s", why);
}

static void take_inject(void *into, const char *text)
{
    struct flip_rules *rules = &((struct parsing *)into)->o.job.inject;
    char why[FLIP_TEXT_MAX + 64];
    if (rules->n == FLIP_RULES_MAX)
        pm_quit(2, "--inject: more than %d rules", FLIP_RULES_MAX);
    if (!flip_rule_parse(text, &rules->rule[rules->n], why, sizeof why))
        pm_quit(2, "--inject %s: %s", text, why);
    rules->n++;
}

static void show_help(void *into, const char *text);
static void show_usage(void *into, const char *text);

static void show_version(void *into, const char *text)
{
    (void)into;
    (void)text;
    puts("keelrun (Keel) " KEEL_VERSION);
    exit(0);
}

/* ---- all of them ---- */

#define FLAG(member) OPTION_FLAG(struct parsing, member)
#define NUMBER(member, low, high) OPTION_NUMBER(struct parsing, member, low, high)
#define TIME(member, low, high) OPTION_TIME(struct parsing, member, low, high)
#define CHOICE(member, ...) OPTION_CHOICE(struct parsing, member, __VA_ARGS__)
#define TEXT(member) OPTION_TEXT(struct parsing, member)
#define CALL(function) OPTION_CALL(function)
#define GIVEN(member) .given = OPTION_AT(struct parsing, member, bool : 1)

/* name, letter, value, group, help; what becomes of it */
static const struct option_row rows[] = {
    {"ranks", 'n', "RANKS", 1, "number of ranks (default: as many as the hosts have slots, if that is said)",
     NUMBER(o.job.ranks, 1, LIMIT_RANKS)},
    {"np", 0, NULL, 1, NULL, .kind = IS_ALIAS},
    {"nodes", 0, "N", 2, "run on N emulated nodes of this machine (see --bed)", NUMBER(o.job.nodes, 1, LIMIT_NODES),
     GIVEN(nodes_given)},
    {"hosts", 0, "A,B:4,C[1-8]", 2,
     "run on these hosts, with so many slots for ranks; the last ones are the spares (default: those that a batch "
     "system has given)",
     CALL(take_hosts)},
    {"host", 0, NULL, 2, NULL, .kind = IS_ALIAS},
    {"hostfile", 0, "FILE", 2, "run on the hosts in FILE, one a line, which may say slots=N", CALL(take_hostfile)},
    {"machinefile", 0, NULL, 2, NULL, .kind = IS_ALIAS},
    {"replicas", 0, "2|3", 3,
     "run the program so often side by side, each time with RANKS ranks and never two of a rank on one node: while one "
     "of these sets has all its ranks the job goes on",
     NUMBER(replicas.count, 2, REPLICAS_MAX)},
    {"replica-map", 0, "FILE", 3,
     "who is who: a line \"RANK NATIVE REPLICA\" for each process, and one \"racks\" if replicas of a rank are to be "
     "in "
     "different racks, too (default: the first nodes run the first set)",
     TEXT(replicas.map)},
    {"check", 0, "WAY", 3, "how replicas of a rank compare what they did: fence (the default), hash, all, none",
     CHOICE(o.job.check, "none", "fence", "hash", "all"), GIVEN(replicas.check_given)},
    {"on-mismatch", 0, "MODE", 3,
     "if they differ and nobody can say which is right: stop the job (the default), report it, keep on without a line",
     CHOICE(o.job.on_mismatch, "stop", "report", "keep"), GIVEN(replicas.on_mismatch_given)},
    {"on-death", 0, "MODE", 3,
     "if a process dies: retire its set (the default); partner: replicas of its rank do its part (docs/replicas.md)",
     CHOICE(o.job.on_death, "retire", "partner"), GIVEN(replicas.on_death_given)},
    {"inject", 0, "RULE", 3,
     "make bits wrong on purpose: rate=R or count=N, where=send|flight|rest, set=S, rank=R, step=A..B, seed=N, between "
     "commas (may be given several times)",
     CALL(take_inject)},
    {"replica-world", 0, "WHOSE", 3,
     "clocks, random bytes, process numbers and host names: one for all replicas of a rank (the default), or all "
     "have their own",
     CHOICE(o.job.world, "one", "all"), GIVEN(replicas.world_given)},
    {"replica-files", 0, "WHOSE", 3, "files that the program writes: those of one set (the default), or all sets write",
     CHOICE(o.job.files, "one", "all"), GIVEN(replicas.files_given)},
    {"replica-copies", 0, "HOW-MANY", 3,
     "copies of a segment in each set: one (the default), or all that the program allocates it with",
     CHOICE(o.job.set_copies, "one", "all"), GIVEN(replicas.copies_given)},
    {"ppn", 0, "K", 3, "K ranks on each node (default: spread evenly)", NUMBER(o.ppn, 1, LIMIT_RANKS)},
    {"spares", 0, "S", 3, "S further nodes that take the place of lost ones (default 0)",
     NUMBER(o.job.spares, 0, LIMIT_NODES), GIVEN(spares_given)},
    {"grid", 0, "4x4[x...]", 3,
     "nodes and spares together stand on this grid, hosts in their order, x first; a dead node's ranks, and others, "
     "move on it as --substitution says",
     TEXT(grid.shape)},
    {"torus", 0, "xy", 3, "the dimensions of the grid that are rings (t behind a size says the same: 4tx4t)",
     TEXT(grid.torus)},
    {"spare-alloc", 0, "qD(r,s)", 3,
     "the spares are the last s layers of r sides of the grid of q dimensions: 2D(2,1), or 3D(1,1):z for other sides "
     "than the first (default: two sides, one layer)",
     TEXT(grid.spares)},
    {"substitution", 0, "METHOD", 3,
     "0D (the nearest free node), 1D, 2D, ... (a line, a plane moves by one), hybrid(all), hybrid(-2D), "
     "hybrid(2D+0D), balance, repair, repair(N), auto (the default), user:FILE (a line \"PLACE: FROM>TO ...\" for each "
     "failure), none; see keel-place",
     TEXT(grid.method)},
    {"moves", 0, "N", 3, "how many nodes' ranks one failure may move, by any method (default: any number)",
     NUMBER(o.job.grid.moves, 1, GRID_MOVES_MAX), GIVEN(grid.moves_given)},
    {"positions", 0, "FILE", 3,
     "where the hosts stand on the grid: a line \"HOST X Y ...\" for each (default: x first, in their order)",
     TEXT(grid.positions)},
    {"dead", 0, "PLACE,...", 3,
     "places of the grid, by their numbers from 0 or their hosts, whose nodes are dead: nothing is started there",
     TEXT(grid.dead)},
    {"room", 0, "N", 3,
     "room for N nodes that come later: those that were declared dead and live come back as spares (default: as many "
     "as the job has nodes, at least 4)",
     NUMBER(o.job.room, 0, LIMIT_NODES), GIVEN(room_given)},
    {"on-failure", 0, "MODE", 3,
     "substitute (a spare takes over; the default with spares), copies (lost ranks stay lost, spares take copies of "
     "data; the default without), degrade (the same, and that a rank was lost is no failure), abort",
     CHOICE(on_failure, "substitute", "degrade", "abort", "copies"), GIVEN(on_failure_given)},
    {"copies-at", 0, "WHERE", 3,
     "where further copies of a node's data are: half (half the ring of nodes away, and in another rack where racks "
     "are told; the default) or next (on the next node)",
     CHOICE(o.job.copies.at, "half", "next")},
    {"topology-file", 0, "FILE", 3,
     "racks, to keep copies apart: a line \"HOSTS RACK [SWITCH ...]\" for each, with lists of hosts as in n[01-16]",
     TEXT(o.topology_file)},
    {"restore", 0, "FOLDER", 3,
     "begin with what another job of as many ranks has saved there (keel_keep_save); all hosts see the folder",
     TEXT(o.restore)},
    {"rack-of", 0, "EXPRESSION", 3,
     "racks by the hosts' names: what the first group of this regular expression matches is the host's rack",
     TEXT(o.rack_of)},
    {"bed", 0, "BED", 4,
     "emulated nodes: loopback (the default), netns (network namespaces; needs root), or grid (the same, joined as "
     "--grid says)",
     CALL(take_bed)},
    {"link-rate", 0, "KBIT", 4,
     "on the bed grid: what each link carries in each direction, 1,000 bits a second (default: as fast as it goes)",
     NUMBER(o.link_kbit, BED_LINK_KBIT_MIN, BED_LINK_KBIT_MAX)},
    {"launcher", 0, "NAME", 4, "how to reach hosts: ssh, slurm, pbs, lsf, sge, ... as mpiexec.hydra knows it",
     TEXT(o.launcher)},
    {"launcher-exec", 0, "FILE", 4, "program to use as the launcher's", TEXT(o.launcher_exec)},
    {"fan-out", 0, "K", 4,
     "keelrun starts at most K nodes itself; of more the others are started by agents, K by each (default 100)",
     NUMBER(o.fan_out, 1, LIMIT_NODES)},
    {"provider", 0, "WAY", 4,
     "what carries data between nodes: tcp (the default), verbs (RDMA devices), auto (verbs if all nodes have one)",
     CHOICE(o.job.provider, "tcp", "verbs", "auto")},
    {"probe", 0, "WAY", 4,
     "how nodes watch each other: verbs (RDMA devices), ofi (libfabric), auto (verbs where there is a device; the "
     "default)",
     CHOICE(o.job.probe, "auto", "verbs", "ofi")},
    {"topology", 0, "SHAPE", 4,
     "who watches whom: ring (the default), torus, hypercube, random, or file:PATH with a line \"READER WATCHED\" for "
     "each",
     CALL(take_topology)},
    {"rails", 0, "LIST", 4,
     "networks between the nodes, up to four: interfaces (eth1), or subnets (10.1.0.0/16). The first that works is "
     "used, "
     "and a node is dead when none does (default: the one that leads to keelrun)",
     CALL(take_rails)},
    {"secure", 0, NULL, 4, "encrypt and authenticate what ranks and nodes send each other (large transfers are slower)",
     FLAG(o.job.secure)},
    {"silence", 0, "TIME", 4,
     "a node is dead when neither it nor its host has answered for TIME (default 3s; 0.5 and 500ms are times, too); "
     "four times that if data or the job would be lost with it",
     CALL(take_silence)},
    {"stopped", 0, "TIME", 4,
     "a node whose host answers, but whose agent does not (a signal, a debugger, no processor), is dead when it was "
     "waited for for TIME, or never (default 30s)",
     TIME(o.job.stopped_ms, STOPPED_MIN_MS, STOPPED_MAX_MS), .never = "never", GIVEN(stopped_given)},
    {"scrub", 0, "RATE", 4,
     "each node reads RATE MB/s of its copies of segments with shadows, and mends what has changed by itself (default "
     "off)",
     CALL(take_scrub)},
    {"dark", 0, "MS", 4, NULL, NUMBER(dark_ms, SILENCE_MIN_MS, SILENCE_MAX_MS)},
    {"label", 0, NULL, 5, "put the rank before each line of output", FLAG(o.label)},
    {"quiet", 0, NULL, 5, "do not tell of ranks and nodes that die on the way", FLAG(o.quiet)},
    {"stdin-keep", 0, "BYTES", 5,
     "keep so much of standard input for the process in which rank 0 begins again (default 1048576)",
     NUMBER(o.stdin_keep, 0, STDIN_KEEP_MOST)},
    {"event-log", 0, "FILE", 5, "write the job's events to FILE, one JSON object a line", TEXT(o.event_log)},
    {"start-timeout", 0, "SECONDS", 6, "how long each node has to come and to be ready (default 30)",
     NUMBER(o.start_timeout_s, 1, 86400)},
    {"console-timeout", 0, "SECONDS", 6,
     "a node that cannot reach keelrun for this time does not keep its output any longer (default 600)",
     NUMBER(o.console_s, 1, YEARS_20)},
    {"timeout", 0, "SECONDS", 6, "end the job after this time, with exit code 124 (default: never)",
     NUMBER(o.timeout_s, 1, YEARS_20)},
    {"help", '?', NULL, -1, "print this", CALL(show_help)},
    {"usage", 0, NULL, -1, "print a short summary", CALL(show_usage)},
    {"version", 'V', NULL, -1, "print the version", CALL(show_version)},
};
enum { ROWS = sizeof rows / sizeof rows[0], KEY_FIRST = 256 };
_Static_assert(STOPPED_NEVER_MS == 0, "what a row has for never");

/* ---- reading ---- */

/* As argp keeps them. */
static const struct argp_option *argp_rows(void)
{
    static struct argp_option all[ROWS + 1];
    for (int i = 0; i < ROWS; i++) {
        const struct option_row *r = &rows[i];
        int flags = r->kind == IS_ALIAS ? OPTION_ALIAS : r->help ? 0 : OPTION_HIDDEN;
        int key = r->kind == IS_ALIAS ? 0 : r->letter ? r->letter : KEY_FIRST + i;
        all[i] = (struct argp_option){r->name, key, r->value, flags, r->help, r->group};
    }
    return all;
}

static const struct option_row *row_of(int key)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind != IS_ALIAS && (rows[i].letter ? rows[i].letter == key : KEY_FIRST + i == key))
            return &rows[i];
    return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct parsing *p = state->input;
    const struct option_row *row = row_of(key);
    if (row)
        option_take(row, p, arg);
    else if (key == ARGP_KEY_ARGS)
        p->o.program = state->argv + state->next;
    else if (key == ARGP_KEY_ERROR && state->next > 0 && state->next <= state->argc)
        p->at_fault = state->argv[state->next - 1];
    else if (key != ARGP_KEY_ERROR)
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static struct argp argp = {.parser = parse,
                           .args_doc = "PROGRAM [ARGUMENT...]",
                           .doc = "Run a program on several nodes and keep it running when nodes die."};

static _Noreturn void help(unsigned how)
{
    argp_help(&argp, stdout, how, program_invocation_short_name);
    exit(fflush(stdout) == 0 ? 0 : 1);
}

static void show_help(void *into, const char *text)
{
    (void)into;
    (void)text;
    help(ARGP_HELP_STD_HELP);
}

static void show_usage(void *into, const char *text)
{
    (void)into;
    (void)text;
    help(ARGP_HELP_USAGE);
}

void options_parse(struct options *o, int argc, char **argv)
{
    struct parsing p = {.o = {.start_timeout_s = 30, .console_s = 600, .stdin_keep = STDIN_KEEP, .fan_out = FAN_OUT}};
    argp.options = argp_rows();
    argp_err_exit_status = 2;
    /* argp would say it in two lines, and without errors it gives no help either */
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_LONG_ONLY, NULL, &p) != 0)
        pm_quit(2, "%s is not an option, or its value is missing; see keelrun --help",
                p.at_fault ? p.at_fault : "something");
    *o = p.o;
    options_check(o, &p);
}
