/* --grid auto: how nodes are joined, by what is known of it. In this order: a file of positions, Slurm's switches,
 * Slurm's torus; else nothing is known. */
#include "pm/run/options_parts.h"

#include "pm/run/allocation.h"
#include "pm/run/grid_files.h"
#include "pm/run/scontrol.h"
#include "pm/run/topology.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/topo/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_shape(struct grid_found *f, int dims, const int *size)
{
    size_t n = 0;
    for (int d = 0; d < dims; d++)
        n += (size_t)snprintf(f->shape + n, sizeof f->shape - n, d ? "x%d" : "%d", size[d]);
}

static void by_positions(const char *path, struct grid_found *f)
{
    char why[300], *text = read_whole_file(path);
    int size[GRID_MAX_DIMS], dims;
    if (!grid_positions_extents(text, GRID_MAX_DIMS, LIMIT_NODES, &dims, size, why, sizeof why))
        pm_quit(2, "%s: %s", path, why);
    free(text);
    write_shape(f, dims, size);
}

/* The last line of it that says anything. */
static const char *last_line(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && strchr(" \r\n", text[n - 1]))
        text[--n] = '\0';
    const char *before = strrchr(text, '\n');
    return before ? before + 1 : text;
}

static char *show(const char *what)
{
    char why[120], *text = scontrol_show(what, why, sizeof why);
    if (!text)
        pm_quit(2, "--grid auto: %s; --grid 4x4 says the shape", why);
    return text;
}

/* False: it says nothing of switches, and last what it did say. */
static bool by_switches(const struct topology_hosts *hosts, struct grid_found *f, char *last, size_t len)
{
    char why[300], *text = show("topology");
    int size[2];
    enum topology_result result = topology_of_switches(hosts, text, size, f->place_of, why, sizeof why);
    if (result == TOPOLOGY_BAD)
        pm_quit(2, "--grid auto: scontrol show topology does not fit this job: %s", why);
    const char *said = last_line(text);
    snprintf(last, len, "%.150s", *said ? said : "no switches");
    if (result == TOPOLOGY_FOUND)
        write_shape(f, 2, size);
    free(text);
    return result == TOPOLOGY_FOUND;
}

static bool by_torus(const struct topology_hosts *hosts, struct grid_found *f)
{
    char why[300], *text = show("config");
    const char *plugin = strstr(text, "TopologyPlugin");
    size_t line = plugin ? strcspn(plugin, "\n") : 0;
    bool is_torus = plugin && memmem(plugin, line, "topology/3d_torus", strlen("topology/3d_torus"));
    int size[3];
    free(text);
    if (!is_torus)
        return false;
    if (topology_of_names(hosts, size, f->place_of, why, sizeof why) == TOPOLOGY_BAD)
        pm_quit(2, "--grid auto: topology/3d_torus does not fit this job: %s", why);
    write_shape(f, 3, size);
    f->torus = "xyz";
    return true;
}

static void by_slurm(const struct options *o, struct grid_found *f)
{
    char last[160];
    int count = o->hosts.count;
    const char **names = pm_alloc((size_t)count * sizeof *names);
    f->place_of = pm_alloc((size_t)count * sizeof *f->place_of);
    for (int i = 0; i < count; i++)
        names[i] = host_address(o->hosts.names[i]);
    const struct topology_hosts hosts = {names, count};
    if (!by_switches(&hosts, f, last, sizeof last) && !by_torus(&hosts, f))
        pm_quit(2,
                "--grid auto: no --positions, and Slurm tells of no switches (scontrol show topology: %s) and of no "
                "torus (TopologyPlugin); --grid 4x4 says the shape",
                last);
    free(names);
}

void options_auto(const struct options *o, const struct grid_options *said, struct grid_found *f)
{
    *f = (struct grid_found){.torus = said->torus};
    if (!o->hosts.count)
        pm_quit(2, "--grid auto is of use only with hosts: emulated nodes are joined as you say, as in --grid 4x4");
    if (said->positions)
        by_positions(said->positions, f);
    else if (getenv("SLURM_JOB_ID"))
        by_slurm(o, f);
    else
        pm_quit(2,
                "--grid auto: nobody says how the nodes are joined: there is neither --positions nor a job of Slurm's "
                "(SLURM_JOB_ID); --grid 4x4 says the shape");
}
