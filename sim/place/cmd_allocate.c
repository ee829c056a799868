#include <jansson.h>
#include <string.h>

#include "runtime/base/plural.h"
#include "sim/place/options.h"

static void print_nodes(FILE *f, const struct options *o, const struct job *j)
{
    const struct grid *g = &o->setup.grid;
    fputs("node", f);
    for (int d = 0; d < g->ndims; d++)
        fprintf(f, ",%c", "xyzuvw"[d]);
    fputs(",role\n", f);
    for (int32_t n = 0; n < g->nodes; n++) {
        fprintf(f, "%d", n);
        for (int d = 0; d < g->ndims; d++)
            fprintf(f, ",%d", grid_coord(g, n, d));
        const char *role = spare_is(&o->setup.layout, g, n) ? "spare" : "free";
        fprintf(f, ",%s\n", j->launch.slot_at[n] >= 0 ? "slot" : role);
    }
}

static void print_text(FILE *f, const struct options *o, const struct job *j, const int at[GRID_MAX_DIMS])
{
    const struct spare_layout *l = &o->setup.layout;
    const struct grid *g = &o->setup.grid;
    int32_t spares = spare_count(l, g), collisions = load_collisions(&j->load);
    char layout[32], grid[96], slots[96];
    fprintf(f, "grid       %s, %d %s\n", grid_format(g, grid, sizeof grid), g->nodes,
            plural(g->nodes, "node", "nodes"));
    fprintf(f, "spares     %s: %d %s, %.3f %% (formula R %.3f %%)\n", spare_format(l, layout, sizeof layout), spares,
            plural(spares, "node", "nodes"), 100.0 * spares / g->nodes, 100 * spare_share(l, g->nodes));
    fprintf(f, "slots      %s, %d\n", grid_format(&j->place.slot_grid, slots, sizeof slots), j->place.slots);
    if (o->ndead)
        fprintf(f, "at launch  %d dead, %d %s left, %d %s without a node, %d %s\n", j->place.ndead, j->place.nfree,
                plural(j->place.nfree, "spare", "spares"), j->place.homeless,
                plural(j->place.homeless, "slot", "slots"), collisions, plural(collisions, "collision", "collisions"));
    if (!o->no_draw && g->size[0] <= 120)
        draw_plane(f, j, at);
}

static void print_json(FILE *f, const struct options *o, const struct job *j)
{
    const struct spare_layout *l = &o->setup.layout;
    char layout[32], grid[96], slots[96];
    json_t *map = json_array();
    for (int32_t r = 0; r < j->place.slots; r++)
        json_array_append_new(map, json_integer(j->place.node_of[r]));
    json_t *doc = json_pack("{s:s, s:i, s:s, s:i, s:f, s:f, s:s, s:i, s:i, s:i, s:o}", "grid",
                            grid_format(&o->setup.grid, grid, sizeof grid), "nodes", o->setup.grid.nodes, "spares",
                            spare_format(l, layout, sizeof layout), "spare_nodes", spare_count(l, &o->setup.grid),
                            "share", (double)spare_count(l, &o->setup.grid) / o->setup.grid.nodes, "formula",
                            spare_share(l, o->setup.grid.nodes), "slot_grid",
                            grid_format(&j->place.slot_grid, slots, sizeof slots), "slots", j->place.slots, "dead",
                            j->place.ndead, "homeless", j->place.homeless, "map", map);
    json_dumpf(doc, f, JSON_COMPACT);
    fputc('\n', f);
    json_decref(doc);
}

int cmd_allocate(int argc, char **argv)
{
    static struct options o;
    struct job j;
    struct out out;
    int at[GRID_MAX_DIMS];
    options_parse(&o, "allocate", "Which nodes of a grid are spare, how many they are, and the map at launch.",
                  "gsSmTbzpdPNojv", argc, argv);
    options_setup(&o);
    draw_plane_parse(&o, o.plane, at);
    if (o.methods > 1)
        cli_die("one method at a time");
    if (!o.ndead)
        options_useless(&o, "mTbp", "without --dead: nothing is substituted");
    if (!job_open(&j, &o.setup))
        cli_die("out of memory");
    for (int32_t i = 0; i < o.ndead; i++)
        job_fail(&j, o.dead_node[i]);
    out_open(&out, o.out);
    if (o.format == FORMAT_CSV)
        print_nodes(out.f, &o, &j);
    else if (o.format == FORMAT_JSON)
        print_json(out.f, &o, &j);
    else
        print_text(out.f, &o, &j, at);
    out_commit(&out);
    job_close(&j);
    return 0;
}
