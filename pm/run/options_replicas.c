/* A program that runs several times side by side: what keelrun's options say of it, who runs where, and who is who. */
#include "pm/run/options_parts.h"

#include "pm/run/allocation.h"
#include "pm/run/replica_file.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void refuse_without_replicas(const struct parsing *p)
{
    const char *useless = p->replicas.map                 ? "--replica-map"
                          : p->replicas.check_given       ? "--check"
                          : p->replicas.on_mismatch_given ? "--on-mismatch"
                          : p->replicas.on_death_given    ? "--on-death"
                          : p->replicas.world_given       ? "--replica-world"
                          : p->replicas.files_given       ? "--replica-files"
                          : p->replicas.copies_given      ? "--replica-copies"
                                                          : NULL;
    if (useless)
        pm_quit(2, "%s is of use only with --replicas", useless);
}

/* A lost set is not begun again, and what is left of the job goes on: other modes say something else. Nodes that slide
 * on a grid, and a beginning from saved memory, know ranks and no sets. */
static void refuse_together(const struct options *o, const struct parsing *p)
{
    const char *other = p->grid.shape                                         ? "--grid"
                        : o->restore                                          ? "--restore"
                        : p->on_failure_given && p->on_failure != MODE_COPIES ? "--on-failure"
                                                                              : NULL;
    if (other && strcmp(other, "--on-failure") == 0)
        pm_quit(2, "--replicas cannot be used with --on-failure but for copies: a set that loses a process ends, and "
                   "the others go on");
    if (other)
        pm_quit(2, "--replicas cannot be used with %s", other);
}

/* Replicas that do not meet, or have parted, cannot do the part of each other. */
static void refuse_partners(const struct options *o)
{
    if (o->job.on_death != DEATH_PARTNER)
        return;
    if (o->job.check == CHECK_NONE)
        pm_quit(2, "--on-death partner cannot be used with --check none: replicas that do not meet cannot do the part "
                   "of each other");
    if (o->job.on_mismatch != MISMATCH_STOP)
        pm_quit(2, "--on-death partner cannot be used with --on-mismatch but for stop: replicas that differ cannot do "
                   "the part of each other");
}

void options_replicas(struct options *o, const struct parsing *p)
{
    if (!p->replicas.count) {
        refuse_without_replicas(p);
        return;
    }
    refuse_together(o, p);
    o->job.began_s = (int)(time(NULL) - JOB_ERA_S);
    o->job.check = p->replicas.check_given ? o->job.check : CHECK_FENCE;
    refuse_partners(o);
    if (o->job.ranks > LIMIT_RANKS / p->replicas.count)
        pm_quit(2, "%d ranks with --replicas %d are more than the %d processes that a job has at most", o->job.ranks,
                p->replicas.count, LIMIT_RANKS);
    if (!p->hosts_given && !p->nodes_given)
        o->job.nodes = p->replicas.count * (o->ppn ? (o->job.ranks + o->ppn - 1) / o->ppn : 1);
    int nodes = p->hosts_given ? o->hosts.count - o->job.spares : o->job.nodes;
    if (nodes < p->replicas.count)
        pm_quit(2, "--replicas %d on %d node%s: each replica of a rank needs a node of its own", p->replicas.count,
                nodes > 0 ? nodes : 0, nodes == 1 ? "" : "s");
    if (!p->replicas.map && nodes % p->replicas.count)
        pm_quit(2, "--replicas %d: %d nodes are no multiple of it, so the sets would not be alike", p->replicas.count,
                nodes);
}

void options_inject(const struct options *o)
{
    const struct replica_map *m = &o->job.replicas;
    int ranks = replica_map_is_used(m) ? m->ranks : o->job.ranks, sets = replica_map_is_used(m) ? m->replicas : 1;
    for (int i = 0; i < o->job.inject.n; i++) {
        const struct flip_rule *r = &o->job.inject.rule[i];
        if (r->rank >= ranks)
            pm_quit(2, "--inject rank=%d: the last rank is %d", r->rank, ranks - 1);
        if (r->set >= sets)
            pm_quit(2, "--inject set=%d: the last set is %d", r->set, sets - 1);
    }
}

/* The hosts of a set that get no rank are left out in each set. Returns how many are left. */
static int lay_out_hosts(struct options *o, const struct parsing *p, int each)
{
    int sets = p->replicas.count;
    int wanted = o->ppn ? (o->job.ranks + o->ppn - 1) / o->ppn : o->job.ranks;
    if (o->hosts.slots_said && !o->ppn)
        wanted = hosts_layout(&o->hosts, each, o->job.ranks, o->job.rank_node);
    if (wanted == 0)
        pm_quit(2, "%d ranks are more than the max_slots of the %d hosts of a set allow", o->job.ranks, each);
    if (wanted >= each)
        return each;
    for (int set = sets; set-- > 0;)
        hosts_drop(&o->hosts, set * each + wanted, (set + 1) * each);
    return wanted;
}

static void check_slots(const struct options *o, int each, int sets)
{
    for (int node = 0; node < each * sets; node++) {
        int here = 0, most = o->hosts.most[node];
        for (int r = 0; r < o->job.ranks; r++)
            here += o->job.rank_node[r] == node % each;
        if (most && here > most)
            pm_quit(2, "host %s takes %d ranks at most, and has to take %d: as many as its like in set 0",
                    o->hosts.names[node], most, here);
    }
}

bool options_replicas_lay_out(struct options *o, const struct parsing *p)
{
    int sets = p->replicas.count, ranks = o->job.ranks;
    if (!sets)
        return false;
    if (p->replicas.map) { /* native ranks stand where ranks would */
        o->job.ranks *= sets;
        return false;
    }
    int each = (p->hosts_given ? o->hosts.count - o->job.spares : o->job.nodes) / sets;
    o->job.rank_node = pm_alloc((size_t)ranks * (size_t)sets * sizeof *o->job.rank_node);
    if (p->hosts_given)
        each = lay_out_hosts(o, p, each);
    if (each > ranks)
        pm_quit(2, "%d ranks on the %d nodes of a set: every node needs at least one rank", ranks, each);
    bool by_slots = p->hosts_given && o->hosts.slots_said && !o->ppn;
    if (!by_slots && !layout_ranks(ranks, each, o->ppn, o->job.rank_node))
        pm_quit(2, "%d ranks with %d on each node need %d nodes for each set, not %d", ranks, o->ppn,
                (ranks + o->ppn - 1) / o->ppn, each);
    if (p->hosts_given)
        check_slots(o, each, sets);
    for (int i = ranks; i < ranks * sets; i++)
        o->job.rank_node[i] = o->job.rank_node[i - ranks] + each;
    o->job.nodes = each * sets;
    o->job.ranks = ranks * sets;
    return true;
}

/* ---- who is who ---- */

/* The groups that the nodes of the native ranks are in, at that level of who fails together; -1: the nodes. */
static void check_apart(const struct options *o, const char *where, const char *what, int level)
{
    const struct job_settings *s = &o->job;
    int *group = pm_alloc((size_t)s->ranks * sizeof *group), rank;
    for (int r = 0; r < s->ranks; r++)
        group[r] = level < 0 ? s->rank_node[r] : s->copies.domain[level * settings_ids(s) + s->rank_node[r]];
    if (!replica_map_is_apart(&s->replicas, group, &rank))
        pm_quit(2, "%s: two replicas of rank %d are %s", where, rank, what);
    free(group);
}

static void check_even(const struct options *o, const char *where)
{
    int rank[2], set;
    if (!replica_map_is_even(&o->job.replicas, o->job.rank_node, rank, &set))
        pm_quit(2, "%s: ranks %d and %d share a node in one of the sets 0 and %d, and do not in the other", where,
                rank[0], rank[1], set);
}

void options_replicas_map(struct options *o, const struct parsing *p)
{
    int sets = p->replicas.count, level = o->job.copies.hosts_told ? 1 : 0;
    const char *where = p->replicas.map ? p->replicas.map : "--replicas";
    bool racks = false, made;
    char why[256];
    if (!sets)
        return;
    int ranks = o->job.ranks / sets, *native = pm_alloc((size_t)o->job.ranks * sizeof *native);
    char *text = p->replicas.map ? read_whole_file(p->replicas.map) : NULL;
    bool good = !text || replica_file_parse(text, ranks, sets, native, &racks, why, sizeof why);
    free(text);
    if (!good) {
        free(native);
        pm_quit(2, "%s: %s", p->replicas.map, why);
    }
    made = p->replicas.map ? replica_map_init_from(&o->job.replicas, ranks, sets, native)
                           : replica_map_init(&o->job.replicas, ranks, sets);
    free(native);
    if (!made)
        pm_quit(1, "no memory for the map of %d ranks", o->job.ranks);
    check_apart(o, where, "on one node", -1);
    check_even(o, where);
    if (o->job.copies.hosts_told)
        check_apart(o, where, "on one host", 0);
    if (racks && o->job.copies.levels <= level)
        pm_quit(2,
                "%s: replicas of a rank are to be in different racks, and nobody says which racks there are; "
                "--topology-file or --rack-of does",
                where);
    if (racks)
        check_apart(o, where, "in one rack", level);
}
