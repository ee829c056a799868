/* What keelrun's options mean together: refusals, defaults, who runs where. */
#include "pm/run/options_parts.h"

#include "pm/bed/bed.h"
#include "pm/run/allocation.h"
#include "pm/run/watchers.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "pm/wire/settings.h"
#include "runtime/base/plural.h"
#include "runtime/base/racks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As many ranks as the hosts have slots, if the user leaves it open and somebody has said that; ends the program if
 * it stays open. */
static void count_ranks(struct options *o, const struct parsing *p)
{
    if (o->job.ranks == 0 && !o->program) {
        fprintf(stderr, "usage: keelrun -n RANKS [OPTION...] PROGRAM [ARGUMENT...]; see keelrun --help\n");
        exit(2);
    }
    int of_hosts = o->hosts.count - o->job.spares;
    if (o->job.ranks == 0 && p->hosts_given && !p->replicas.count && o->hosts.slots_said && of_hosts > 0 && !o->ppn)
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
        pm_quit(2, "%d %s too few for %d %s and a node", o->hosts.count, plural(o->hosts.count, "host is", "hosts are"),
                o->job.spares, plural(o->job.spares, "spare", "spares"));
    int wanted = o->ppn ? (o->job.ranks + o->ppn - 1) / o->ppn : o->job.ranks;
    bool by_slots = o->hosts.slots_said && !o->ppn;
    if (by_slots)
        wanted = hosts_layout(&o->hosts, o->job.nodes, o->job.ranks, o->job.rank_node);
    if (wanted == 0)
        pm_quit(2, "%d %s more than the max_slots of the hosts allow", o->job.ranks,
                plural(o->job.ranks, "rank is", "ranks are"));
    if (wanted < o->job.nodes && settings_on_grid(&o->job))
        pm_quit(2, "%d %s room on %d of the grid's %d nodes that compute: every node needs at least one rank",
                o->job.ranks, plural(o->job.ranks, "rank has", "ranks have"), wanted, o->job.nodes);
    if (wanted < o->job.nodes) {
        hosts_drop(&o->hosts, wanted, o->job.nodes);
        o->job.nodes = wanted;
    }
}

static void lay_out(struct options *o, const struct parsing *p)
{
    if (options_replicas_lay_out(o, p))
        return;
    o->job.rank_node = pm_alloc((size_t)o->job.ranks * sizeof *o->job.rank_node);
    if (p->hosts_given)
        lay_out_on_hosts(o);
    else if (!p->nodes_given && !settings_on_grid(&o->job) && !p->replicas.count)
        o->job.nodes = o->ppn ? (o->job.ranks + o->ppn - 1) / o->ppn : 1;
    if (o->job.nodes > o->job.ranks)
        pm_quit(2, "%d %s on %d nodes: every node needs at least one rank", o->job.ranks,
                plural(o->job.ranks, "rank", "ranks"), o->job.nodes);
    if (p->hosts_given && o->hosts.slots_said && !o->ppn)
        return;
    if (!layout_ranks(o->job.ranks, o->job.nodes, o->ppn, o->job.rank_node)) {
        assert(o->ppn > 0);
        int needed = (o->job.ranks + o->ppn - 1) / o->ppn;
        pm_quit(2, "%d %s with %d on each node %s %d %s, not %d", o->job.ranks, plural(o->job.ranks, "rank", "ranks"),
                o->ppn, plural(o->job.ranks, "needs", "need"), needed, plural(needed, "node", "nodes"), o->job.nodes);
    }
}

static void check_nodes(struct options *o, struct parsing *p)
{
    if (o->program && !p->hosts_given && !p->nodes_given && o->bed == BED_NONE)
        p->hosts_given = allocation_hosts(&o->hosts);
    check_together(o, p);
    options_grid(o, p);
    count_ranks(o, p);
    options_replicas(o, p);
    lay_out(o, p);
    if (!p->hosts_given && o->bed == BED_NONE)
        o->bed = BED_LOOPBACK;
    if (o->bed_grid && !settings_on_grid(&o->job))
        pm_quit(2, "--bed grid is of use only with --grid");
    if (o->bed_grid && o->job.rails.n > 1)
        pm_quit(2, "--bed grid has one network: --rails names %d", o->job.rails.n);
    if (o->link_kbit && !o->bed_grid)
        pm_quit(2, "--link-rate is of use only with --bed grid");
    if (o->bed != BED_NONE && o->job.nodes + o->job.spares > BED_NODES_MAX)
        pm_quit(2, "%d nodes do not fit on one machine: at most %d with the spares", o->job.nodes + o->job.spares,
                BED_NODES_MAX);
    if (o->job.nodes + o->job.spares > LIMIT_NODES)
        pm_quit(2, "%d %s and %d %s: a job has %d nodes at most", o->job.nodes, plural(o->job.nodes, "node", "nodes"),
                o->job.spares, plural(o->job.spares, "spare", "spares"), LIMIT_NODES);
    int mode = p->on_failure_given                   ? p->on_failure
               : o->job.spares && !p->replicas.count ? VIEW_SUBSTITUTE
                                                     : MODE_COPIES;
    o->job.on_failure = mode == MODE_COPIES ? VIEW_DEGRADE : (enum view_policy)mode;
    o->job.degrade_asked = mode == VIEW_DEGRADE;
    if (p->on_failure_given && mode != VIEW_SUBSTITUTE && (p->grid.method || p->grid.moves_given))
        pm_quit(2, "%s is of use only with --on-failure substitute", p->grid.method ? "--substitution" : "--moves");
}

/* An RDMA device is one rail; the nodes of a loopback bed have one interface. */
static void check_rails(struct options *o)
{
    const struct rail_list *rails = &o->job.rails;
    char name[16];
    if (rails->n == 0)
        return;
    if (o->job.provider != PROVIDER_TCP || o->job.probe == PROBE_VERBS)
        pm_quit(2, "--rails cannot be used with %s: an RDMA device is one network",
                o->job.probe == PROBE_VERBS ? "--probe verbs" : "--provider verbs or auto");
    if (o->bed == BED_LOOPBACK)
        pm_quit(2, "--rails is of use only with --hosts, --hostfile or --bed netns");
    for (int i = 0; o->bed == BED_NETNS && i < rails->n; i++) {
        snprintf(name, sizeof name, "veth%d", i);
        if (strcmp(rails->name[i], name) != 0)
            pm_quit(2, "--rails: on the netns bed they are called veth0,veth1 and so on, not %s", rails->name[i]);
    }
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

/* The nodes of a bed share this machine's processors, and each has something to say to all others: with many of them a
 * node stands still at times because the others run, above all while all start. */
static double crowd(const struct options *o)
{
    enum { NODES_A_CORE = 16 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN), nodes = o->job.nodes + o->job.spares;
    double load = (double)nodes / (double)(NODES_A_CORE * (cores > 0 ? cores : 1));
    return o->bed == BED_NONE || load <= 1 ? 1 : load;
}

/* Processors that have N times as many nodes to carry as they carry easily are asked for as many looks as before, and
 * what they need for an answer grows with the square: it is waited for so long. */
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
    if (!p->stopped_given)
        o->job.stopped_ms = STOPPED_DEFAULT_MS;
}

/* Room for as many again as there are, where the user does not say; a job that ends by the first death needs none. */
static void choose_room(struct options *o, const struct parsing *p)
{
    enum { ROOM_LEAST = 4 };
    int members = o->job.nodes + o->job.spares, most = LIMIT_NODES - members;
    if (p->room_given && o->job.room > most)
        pm_quit(2, "--room %d: a job has %d nodes at most, with those that come later", o->job.room, LIMIT_NODES);
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

void options_check(struct options *o, struct parsing *p)
{
    check_nodes(o, p);
    choose_limits(o, p);
    choose_room(o, p);
    check_rails(o);
    if (o->job.topology == MEMBER_FILE)
        read_watchers(o, p->watch_file);
    choose_copies(o);
    options_replicas_map(o, p);
    options_inject(o);
    choose_range(o);
}
